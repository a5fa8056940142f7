"""Keywords that look at forwarded frames, byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

from robot.api.deco import keyword

from ..core.traffic.profiles import AddressRange, Profile
from ..errors import SlaFailure, TestbedError
from .shared import Component

ETHERNET = 14
IPV4 = bytes.fromhex("0800")
IPV4_HEADER = 20
IPV4_ADDRESSES = ETHERNET + 12
IPV4_TTL = ETHERNET + 8


class FrameKeywords(Component):
    """What a router must change in each frame it forwards (RFC 1812 5.3.1 and 4.2.2.5; new link-layer addresses).

    The keywords judge what `Capture Forwarded Frames` returns. A wrong frame fails with ``FAIL:``; a port without any
    frame is a problem of the testbed and fails without that word.
    """

    @keyword(tags=["frames"])
    def time_to_live_should_be(self, frames: Mapping[int, tuple[bytes, ...]], expected: int) -> None:
        """Each frame's IPv4 time to live is *expected*, and its header checksum is right.

        Fails with ``FAIL:`` if one is not. Example:
        | Time To Live Should Be    ${frames}    63
        """
        for port, frame in _each(frames):
            if frame[IPV4_TTL] != expected:
                raise SlaFailure(f"FAIL: port {port}: time to live {frame[IPV4_TTL]}, expected {expected}")
            if _sum16(frame[ETHERNET : ETHERNET + IPV4_HEADER]) != 0xFFFF:
                raise SlaFailure(f"FAIL: port {port}: the IPv4 header checksum is wrong: {frame[:34].hex(' ')}")

    @keyword(tags=["frames"])
    def link_addresses_should_be_rewritten(self, frames: Mapping[int, tuple[bytes, ...]], *router: str) -> None:
        """Each frame is addressed to the generator's port that received it, by one of the *router*'s own addresses.

        Fails with ``FAIL:`` if one is not. Example:
        | Link Addresses Should Be Rewritten    ${frames}    02:00:00:00:01:01    02:00:00:00:02:01
        """
        ports = {port.index: port for port in self.shared.session.generator.ports}
        senders = {mac.strip().lower() for mac in router}
        for port, frame in _each(frames):
            to, sender = _mac(frame[0:6]), _mac(frame[6:12])
            if to != ports[port].mac.lower():
                raise SlaFailure(f"FAIL: port {port}: sent to {to}, expected {ports[port].mac}")
            if sender not in senders:
                known = ", ".join(sorted(senders))
                raise SlaFailure(f"FAIL: port {port}: sent by {sender}, expected one of the router's: {known}")


def frames_of(profile: Profile, frames: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return those of *frames* that are *profile*'s: IPv4 with its addresses, of either direction.

    Neighbour discovery, routing protocols and other frames of the router's own are left out.
    """
    ranges = [_numbers(profile.flows.source), _numbers(profile.flows.destination)]
    found = []
    for frame in frames:
        if len(frame) < ETHERNET + IPV4_HEADER or frame[12:14] != IPV4:
            continue
        source, destination = struct.unpack_from("!II", frame, IPV4_ADDRESSES)
        if (source in ranges[0] and destination in ranges[1]) or (source in ranges[1] and destination in ranges[0]):
            found.append(frame)
    return tuple(found)


def _numbers(addresses: AddressRange) -> range:
    return range(addresses.at(0), addresses.at(addresses.count - 1) + 1, addresses.step)


def _each(frames: Mapping[int, tuple[bytes, ...]]) -> list[tuple[int, bytes]]:
    """Every frame with its port. Raises TestbedError if a port has none."""
    if not frames:
        raise TestbedError("no frame was captured; take what 'Capture Forwarded Frames' returns")
    for port, captured in frames.items():
        if not captured:
            raise TestbedError(f"no frame was captured at the generator's port {port}; there is nothing to judge")
    return [(port, frame) for port, captured in frames.items() for frame in captured]


def _mac(data: bytes) -> str:
    return data.hex(":")


def _sum16(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total
