"""Which frames of a stream are seen at the port they leave the router by."""

from __future__ import annotations

from collections.abc import Iterator

from ..backend import StreamTraffic
from .flows import as_forwarded, flow_of, frame_of, ttl_offset
from .routing import Fib


def leaving(
    traffic: StreamTraffic, numbers: range, fib: Fib, interface: str, source_mac: str, most: int
) -> Iterator[bytes]:
    """At most *most* of the frames *numbers* of *traffic* that leave by *interface*, as the router sends them.

    Where frames are lost, those that get through lie spread among them: nobody knows which.
    """
    found = 0
    for number in numbers:
        if found == most:
            return
        frame = frame_of(traffic, number)
        flow = flow_of(frame)
        exit_ = fib.exit_for(flow)
        if exit_ and exit_.interface == interface and frame[ttl_offset(flow)] > 1:
            found += 1
            yield as_forwarded(frame, source_mac, exit_.mac)
