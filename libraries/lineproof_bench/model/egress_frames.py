"""The frames of a stream as captured at the port where they leave the router."""

from __future__ import annotations

from collections.abc import Iterator

from ..backend import StreamTraffic
from .flows import flow_of, forwarded_frame, frame_of, ttl_offset
from .routing import Fib


def egress_frames(
    traffic: StreamTraffic, numbers: range, fib: Fib, interface: str, source_mac: str, most: int
) -> Iterator[bytes]:
    """At most *most* of the frames *numbers* of *traffic* that leave by *interface*, as the router sends them.

    Lost frames are not left out: the model counts them without knowing which ones they are.
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
            yield forwarded_frame(frame, source_mac, exit_.mac)
