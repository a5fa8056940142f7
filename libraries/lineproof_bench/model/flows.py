"""The frames of a stream: their bytes, and how they spread over flows."""

from __future__ import annotations

import math
import struct
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

from lineproof.core.traffic.ip_header import ip_header, ipv4_checksum

from ..backend import StreamTraffic

IPV4 = 14
"""Offset of the IPv4 header in an untagged frame."""

MOST_SAMPLED = 4096
"""The most frames that are examined for a stream's flows; longer periods are sampled evenly."""

HEADERS = 96
"""Bytes at a frame's beginning that decide its flow: Ethernet, tags, labels, IPv4 or IPv6, ports."""


class Flow(NamedTuple):
    """Frames with the same tags, labels, addresses and ports.

    ``hashed`` as RSS sees addresses and ports; ``destination`` address as a number; ``version`` 4 or 6; ``tags`` (VLAN
    identifiers) and ``labels`` (MPLS), outermost first; ``ip``: offset of the IP header in the frame.
    """

    hashed: bytes
    destination: int
    version: int = 4
    tags: tuple[int, ...] = ()
    labels: tuple[int, ...] = ()
    ip: int = IPV4


def frame_of(stream: StreamTraffic, number: int) -> bytes:
    """The bytes of frame *number*, without FCS."""
    frame = bytearray(stream.frame)
    for variable in stream.variables:
        frame[variable.offset : variable.offset + variable.size] = variable.written(number).to_bytes(
            variable.size, "big"
        )
    if stream.fix_ipv4_checksum is not None:
        fix_checksum(frame, stream.fix_ipv4_checksum)
    if stream.is_latency:
        # TRex writes its magic, which frame it is, and when it left
        frame[-16:] = b"\xab" + number.to_bytes(15, "big")
    return bytes(frame)


def period_of(stream: StreamTraffic) -> int:
    """After how many frames the bytes of *stream* come again; 0: never, or after more than MOST_SAMPLED."""
    if stream.is_latency or any(variable.operation == "random" for variable in stream.variables):
        return 0
    period = math.lcm(*(variable.period(0) for variable in stream.variables))
    return period if period <= MOST_SAMPLED else 0


def fix_checksum(frame: bytearray, offset: int) -> None:
    """Write the checksum of the IPv4 header at *offset* (RFC 1071)."""
    frame[offset + 10 : offset + 12] = b"\0\0"
    found = ipv4_checksum(frame[offset : offset + 4 * (frame[offset] & 0x0F)])
    frame[offset + 10 : offset + 12] = found.to_bytes(2, "big")


def flow_of(frame: bytes) -> Flow | None:
    """The flow of an IP frame, tagged and labelled or not; None for anything else.

    Ports count where they are: UDP and TCP, first fragment.
    """
    if (header := ip_header(frame)) is None:
        return None
    ip, version = header.offset, header.version
    source, destination = header.addresses()
    addresses = frame[source.start : destination.stop]
    if version == 4:
        ports, protocol = ip + 4 * (frame[ip] & 0x0F), frame[ip + 9]
        whole = not struct.unpack_from("!H", frame, ip + 6)[0] & 0x3FFF
    else:
        ports, protocol, whole = ip + 40, frame[ip + 6], True
    l4 = frame[ports : ports + 4] if protocol in (6, 17) and whole else b""
    return Flow(addresses + l4, int.from_bytes(frame[destination], "big"), version, header.tags, header.labels, ip)


def spread(stream: StreamTraffic) -> dict[Flow | None, float]:
    """The distinct flows of *stream*, each with its share of the frames (together 1)."""
    deciding = tuple(item for item in stream.variables if item.offset + item.size <= HEADERS)
    headers = replace(stream, frame=stream.frame[:HEADERS], variables=deciding, fix_ipv4_checksum=None)
    period = math.lcm(*(variable.period(MOST_SAMPLED) for variable in deciding))
    # a prime stride: samples must not coincide with the steps of the variables
    looked, stride = (period, 1) if period <= MOST_SAMPLED else (MOST_SAMPLED, 7919)
    found = Counter(flow_of(frame_of(headers, number * stride)) for number in range(looked))
    return {flow: count / looked for flow, count in found.items()}


def forwarded_frame(frame: bytes, flow: Flow | None, source_mac: str, destination_mac: str) -> bytes:
    """*frame* of *flow* as a router forwards it (RFC 1812 5.2.1.2): new MAC addresses, TTL one less, right checksum.

    A labelled frame's TTL is that of its outermost label (RFC 3443). Tags and labels stay as they are.
    """
    new = bytearray(frame)
    new[0:6], new[6:12] = mac_bytes(destination_mac), mac_bytes(source_mac)
    where = ttl_offset(flow)
    new[where] -= 1
    if flow and not flow.labels and flow.version == 4:
        fix_checksum(new, flow.ip)
    return bytes(new)


def ttl_offset(flow: Flow | None) -> int:
    """Offset of the TTL (IPv6: hop limit) that the router examines."""
    if flow is None:
        return IPV4 + 8
    if flow.labels:
        return flow.ip - 4 * len(flow.labels) + 3
    return flow.ip + (8 if flow.version == 4 else 7)


def mac_bytes(text: str) -> bytes:
    """``02:00:…`` as six bytes."""
    return bytes.fromhex(text.replace(":", ""))
