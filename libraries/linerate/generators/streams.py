"""A profile and a direction as stream data: the frames' bytes, their shares of the rate and what varies in them.

Plain data, so that a generator's own process can be told it as JSON. Ethernet II, IPv4 (RFC 791) and UDP (RFC 768).
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import asdict, dataclass
from typing import Any

from ..profiles import HEADERS, AddressRange, Flows, Profile
from ..units import FCS
from .base import Way

IPV4 = 14
"""Offset of the IPv4 header in the frame."""

SOURCE, DESTINATION = IPV4 + 12, IPV4 + 16
"""Offsets of the IPv4 addresses in the frame."""

GAP = 0.1
"""Microseconds by which each further size of a mix begins later, as in TRex's own mixes, so that they do not burst."""

_ETHERTYPE_IPV4, _PROTOCOL_UDP, _TTL = 0x0800, 17, 64


@dataclass(frozen=True, slots=True)
class Variable:
    """A field that counts: ``minimum`` … ``maximum`` by ``step``, big-endian in ``size`` bytes at ``offset``."""

    name: str
    offset: int
    minimum: int
    maximum: int
    size: int = 4
    step: int = 1


@dataclass(frozen=True, slots=True)
class Stream:
    """One continuous stream: ``frame`` without FCS in hexadecimal digits, MAC addresses zero (the port fills them in).

    ``share`` of the port's frames, 0..1, all streams of a port together 1: a multiplier of N frames/s offers N in all.
    ``gap`` in us before the first frame. ``fix_ipv4``: offset of the header whose checksum follows the variables.
    """

    frame: str
    share: float
    gap: float = 0.0
    variables: tuple[Variable, ...] = ()
    fix_ipv4: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def streams(profile: Profile, way: Way) -> tuple[Stream, ...]:
    """The streams that the sending port of *way* needs for *profile*, one per frame size."""
    flows = profile.flows.reversed() if way.swapped else profile.flows
    variables = tuple(
        Variable(name, offset, addresses.at(0), addresses.at(addresses.count - 1))
        for name, offset, addresses in (("src", SOURCE, flows.source), ("dst", DESTINATION, flows.destination))
        if addresses.count > 1
    )
    return tuple(
        Stream(
            frame=frame_bytes(item.size, flows).hex(),
            share=share,
            gap=round(GAP * index, 6),
            variables=variables,
            fix_ipv4=IPV4 if variables else None,
        )
        for index, (item, share) in enumerate(profile.shares())
    )


def frame_bytes(size: int, flows: Flows) -> bytes:
    """The first frame of *size* bytes (FCS counted, but not contained). Raises ValueError where headers do not fit."""
    length = size - FCS
    if length < HEADERS:
        raise ValueError(f"a frame of {size} bytes cannot hold Ethernet, IPv4 and UDP headers and the FCS")
    payload = b"x" * (length - HEADERS)
    # a UDP checksum of zero says "none" (RFC 768), so it stays true while the addresses vary
    udp = struct.pack("!HHHH", flows.source_port, flows.destination_port, 8 + len(payload), 0)
    ethernet = bytes(12) + struct.pack("!H", _ETHERTYPE_IPV4)
    return ethernet + _ipv4_header(len(udp) + len(payload), flows.source, flows.destination) + udp + payload


def _ipv4_header(payload: int, source: AddressRange, destination: AddressRange) -> bytes:
    def header(checksum: int) -> bytes:
        start = struct.pack("!BBHHHBBH", 0x45, 0, 20 + payload, 1, 0, _TTL, _PROTOCOL_UDP, checksum)
        return start + b"".join(ipaddress.IPv4Address(item.at(0)).packed for item in (source, destination))

    return header(ipv4_checksum(header(0)))


def ipv4_checksum(header: bytes) -> int:
    """The checksum of an IPv4 header (RFC 1071): 0 for one whose checksum field is already right."""
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
