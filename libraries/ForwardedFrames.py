"""Keywords that look at forwarded frames, byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from robot.api.deco import keyword, library

from linerate.session import Session

ETHERNET = 14
IPV4_TTL = ETHERNET + 8
IPV4_CHECKSUM = ETHERNET + 10


@library(scope="GLOBAL", version="0.1")
class ForwardedFrames:
    """What a router owes each frame it forwards (RFC 1812 5.3.1 and 4.2.2.5; new link-layer addresses)."""

    @keyword
    def time_to_live_should_be(self, frames: Mapping[int, tuple[bytes, ...]], expected: int) -> None:
        """Each frame's IPv4 time to live is *expected*, and its header checksum is right."""
        for port, frame in _each(frames):
            if frame[IPV4_TTL] != expected:
                raise AssertionError(f"FAIL: port {port}: time to live {frame[IPV4_TTL]}, should be {expected}")
            if _sum16(frame[ETHERNET : ETHERNET + 20]) != 0xFFFF:
                raise AssertionError(f"FAIL: port {port}: the IPv4 header checksum is wrong: {frame[:34].hex(' ')}")

    @keyword
    def link_addresses_should_be_rewritten(
        self, bench: Session, frames: Mapping[int, tuple[bytes, ...]], *router: str
    ) -> None:
        """Each frame is addressed to the generator's port that received it, by one of the *router*'s own addresses."""
        ports = {port.index: port for port in bench.generator.ports} if bench.generator else {}
        senders = {mac.strip().lower() for mac in router}
        for port, frame in _each(frames):
            to, sender = _mac(frame[0:6]), _mac(frame[6:12])
            if to != ports[port].mac.lower():
                raise AssertionError(f"FAIL: port {port}: sent to {to}, should be {ports[port].mac}")
            if sender not in senders:
                right = ", ".join(sorted(senders))
                raise AssertionError(f"FAIL: port {port}: sent by {sender}, should be one of the router's: {right}")


def _each(frames: Mapping[int, tuple[bytes, ...]]) -> list[tuple[int, bytes]]:
    found = [(port, frame) for port, seen in frames.items() for frame in seen]
    if not found:
        raise AssertionError("FAIL: no frame was captured")
    return found


def _mac(data: bytes) -> str:
    return data.hex(":")


def _sum16(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total
