"""The frames of a stream: their bytes, and how they spread over flows."""

from __future__ import annotations

import math
import struct
from collections import Counter
from dataclasses import dataclass, replace

from ..backend import FieldVariable, StreamTraffic

IPV4 = 14
"""Offset of the IPv4 header in an untagged frame."""

MOST = 4096
"""The most frames that are looked at to learn a stream's flows; longer periods are sampled evenly."""


HEADERS = 96
"""Bytes at a frame's beginning that decide its flow: Ethernet, IPv4 with all its options, ports."""

_64 = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Flow:
    """Frames with the same addresses and ports: ``hashed`` as RSS sees them, ``destination`` as a number."""

    hashed: bytes
    destination: int


def value_of(variable: FieldVariable, number: int) -> int:
    """What frame *number* of the stream holds in *variable*."""
    span = variable.maximum - variable.minimum + 1
    if variable.operation == "random":
        return variable.minimum + _scramble(number + (variable.offset << 40)) % span
    step = -variable.step if variable.operation == "dec" else variable.step
    return variable.minimum + (variable.initial - variable.minimum + number * step) % span


def _scramble(number: int) -> int:
    """64 bits that look random and are always the same for *number* (the finaliser of SplitMix64)."""
    number = (number + 0x9E3779B97F4A7C15) & _64
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & _64
    number = (number ^ number >> 27) * 0x94D049BB133111EB & _64
    return number ^ number >> 31


def frame_of(stream: StreamTraffic, number: int) -> bytes:
    """The bytes of frame *number*, without FCS."""
    frame = bytearray(stream.frame)
    for variable in stream.variables:
        value = value_of(variable, number) % (1 << 8 * variable.size)
        frame[variable.offset : variable.offset + variable.size] = value.to_bytes(variable.size, "big")
    if stream.fix_ipv4_checksum is not None:
        fix_checksum(frame, stream.fix_ipv4_checksum)
    return bytes(frame)


def fix_checksum(frame: bytearray, offset: int) -> None:
    """Make the IPv4 header at *offset* right (RFC 1071)."""
    length = 4 * (frame[offset] & 0x0F)
    frame[offset + 10 : offset + 12] = b"\0\0"
    total = sum(struct.unpack_from(f"!{length // 2}H", frame, offset))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    struct.pack_into("!H", frame, offset + 10, ~total & 0xFFFF)


def flow_of(frame: bytes) -> Flow | None:
    """The flow of an IPv4 frame; None for anything else. Ports count where they are: UDP and TCP, first fragment."""
    if len(frame) < IPV4 + 20 or frame[12:14] != b"\x08\x00" or frame[IPV4] >> 4 != 4:
        return None
    addresses, ports = frame[IPV4 + 12 : IPV4 + 20], IPV4 + 4 * (frame[IPV4] & 0x0F)
    fragment = struct.unpack_from("!H", frame, IPV4 + 6)[0] & 0x3FFF
    l4 = frame[ports : ports + 4] if frame[IPV4 + 9] in (6, 17) and not fragment else b""
    return Flow(addresses + l4, int.from_bytes(addresses[4:], "big"))


def spread(stream: StreamTraffic) -> dict[Flow | None, float]:
    """The distinct flows of *stream*, each with its share of the frames (together 1)."""
    deciding = tuple(item for item in stream.variables if item.offset + item.size <= HEADERS)
    headers = replace(stream, frame=stream.frame[:HEADERS], variables=deciding, fix_ipv4_checksum=None)
    period = 1
    for variable in deciding:
        span = variable.maximum - variable.minimum + 1
        once = MOST if variable.operation == "random" else span // math.gcd(span, variable.step)
        period = math.lcm(period, once)
    # a prime stride: sampling shall not beat with the steps of the variables
    looked, stride = (period, 1) if period <= MOST else (MOST, 7919)
    found = Counter(flow_of(frame_of(headers, number * stride)) for number in range(looked))
    return {flow: count / looked for flow, count in found.items()}


def as_forwarded(frame: bytes, source_mac: str, destination_mac: str) -> bytes:
    """*frame* as a router sends it on (RFC 1812 5.2.1.2): new MAC addresses, TTL one less, its checksum right."""
    new = bytearray(frame)
    new[0:6], new[6:12] = mac_bytes(destination_mac), mac_bytes(source_mac)
    new[IPV4 + 8] -= 1
    fix_checksum(new, IPV4)
    return bytes(new)


def mac_bytes(text: str) -> bytes:
    """``02:00:…`` as six bytes."""
    return bytes.fromhex(text.replace(":", ""))
