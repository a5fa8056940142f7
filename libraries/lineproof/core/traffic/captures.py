"""Frames of a packet capture and how often each occurs.

Formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng. Every length in a file is checked before it is followed.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...errors import ConfigError
from ...files import read_file
from .ip_header import ip_header

MIN_BYTES, MAX_BYTES = 60, 9212
"""Bytes without FCS: shorter frames are padded to the minimum on the wire."""

MAX_FRAMES = 256
"""Different frames of a profile: each is a stream of the generator."""

MAX_FILE_BYTES = 8 << 20
"""Bytes of a capture file."""

_ETHERNET = 1
_UDP_TCP = (6, 17)


@dataclass(frozen=True, slots=True)
class CapturedFrames:
    """``frames``: different frames without FCS, MAC addresses zero, each with its count; ``flows``: their number.

    ``sources``, ``destinations``: least and greatest IPv4 address, as numbers; (0, 0): none.
    """

    frames: tuple[tuple[bytes, int], ...]
    flows: int
    sources: tuple[int, int]
    destinations: tuple[int, int]


def read_capture(path: Path) -> CapturedFrames:
    """The frames of the capture file *path*. Raises ConfigError for frames that a router cannot forward."""
    found: Counter[bytes] = Counter()
    for number, data in enumerate(_frames(path), 1):
        found[_check_frame(data, number, path)] += 1
        if len(found) > MAX_FRAMES:
            raise ConfigError(f"has more than {MAX_FRAMES} different frames; expected a shorter one", path)
    if not found:
        raise ConfigError("has no frames", path)
    pairs = [addresses for frame in found if (addresses := _ipv4_addresses(frame))]
    sources, destinations = ((min(row), max(row)) for row in zip(*pairs, strict=True)) if pairs else ((0, 0), (0, 0))
    return CapturedFrames(tuple(found.items()), len(set(map(_flow, found))), sources, destinations)


def first_frame(path: Path) -> bytes:
    """The first frame of the capture file *path*, unchanged; none: empty. Raises ConfigError."""
    return next(_frames(path), b"")


def _frames(path: Path) -> Iterator[bytes]:
    """Each frame of the capture file *path*. Raises ConfigError."""
    for frame in capture_entries(read_file(path, MAX_FILE_BYTES), path):
        if frame.link_type != _ETHERNET:
            raise ConfigError(f"was captured on link type {frame.link_type}; expected Ethernet (1)", path)
        yield frame.data


def _check_frame(data: bytes, number: int, path: Path) -> bytes:
    frame = (bytes(12) + data[12:]).ljust(MIN_BYTES, b"\0")
    header = ip_header(frame)
    if header is None:
        raise ConfigError(f"frame {number} is not IP; expected only frames that a router forwards", path)
    at = header.offset
    length = int.from_bytes(frame[at + 2 : at + 4], "big")
    if header.version == 6:
        length = 40 + int.from_bytes(frame[at + 4 : at + 6], "big")
    if at + length > len(data):
        raise ConfigError(
            f"frame {number} was cut: {len(data)} of {at + length} bytes; expected a capture of whole"
            " frames ('tcpdump -s 0')",
            path,
        )
    if frame[at + (8 if header.version == 4 else 7)] < 2:
        raise ConfigError(f"frame {number} has no time to live left; expected 2 or more for a router", path)
    if len(frame) > MAX_BYTES:
        raise ConfigError(f"frame {number} has {len(frame)} bytes; expected at most {MAX_BYTES} without FCS", path)
    return frame


def _ipv4_addresses(frame: bytes) -> tuple[int, int] | None:
    header = ip_header(frame)
    if header is None or header.version != 4:
        return None
    source, destination = header.addresses()
    return int.from_bytes(frame[source], "big"), int.from_bytes(frame[destination], "big")


def _flow(frame: bytes) -> bytes:
    """Return what identifies the flow: all before the IP header, addresses and, if any, ports."""
    header = ip_header(frame)
    if header is None:
        return frame
    at, (source, destination) = header.offset, header.addresses()
    end, protocol = (at + 4 * (frame[at] & 15), frame[at + 9]) if header.version == 4 else (at + 40, frame[at + 6])
    ports = frame[end : end + 4] if protocol in _UDP_TCP else b""
    return frame[:at] + frame[source] + frame[destination] + ports


_LONGEST_FRAME = 1 << 18
"""Bytes, as libpcap's limit."""

_PCAP_BYTE_ORDERS = {
    bytes.fromhex(magic): order
    for magic, order in (("d4c3b2a1", "<"), ("4d3cb2a1", "<"), ("a1b2c3d4", ">"), ("a1b23c4d", ">"))
}
"""Byte orders by the first four bytes; the second of each pair has times in ns."""

_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_PCAPNG_BYTE_ORDERS = {bytes.fromhex("4d3c2b1a"): "<", bytes.fromhex("1a2b3c4d"): ">"}


@dataclass(frozen=True, slots=True)
class CaptureEntry:
    """A frame as captured, and the type of the link (1: Ethernet)."""

    link_type: int
    data: bytes


def capture_entries(content: bytes, path: Path) -> Iterator[CaptureEntry]:
    """The frames of the capture file *content*; *path*: for messages. Raises ConfigError where it is damaged."""
    order = _PCAP_BYTE_ORDERS.get(content[:4])
    if order is not None:
        return _pcap_frames(content, order, path)
    if content[:4] == _SECTION.to_bytes(4, "big"):
        return _pcapng_frames(content, path)
    raise ConfigError("is not a pcap or pcapng file", path)


def _pcap_frames(content: bytes, order: str, path: Path) -> Iterator[CaptureEntry]:
    (link,) = _unpack(f"{order}20xI", content, 0, len(content), path)
    at = 24
    while at < len(content):
        captured, _ = _unpack(f"{order}8xII", content, at, len(content), path)
        yield CaptureEntry(link & 0xFFFF, _cut(content, at + 16, captured, len(content), path))
        at += 16 + captured


def _pcapng_frames(content: bytes, path: Path) -> Iterator[CaptureEntry]:
    order, links, at = "<", list[int](), 0
    while at < len(content):
        if content[at : at + 4] == _SECTION.to_bytes(4, "big"):
            found = _PCAPNG_BYTE_ORDERS.get(content[at + 8 : at + 12])
            if found is None:
                raise _damaged("a section without its byte order", at, path)
            order, links = found, []
        kind, length = _unpack(f"{order}II", content, at, len(content), path)
        if length < 12 or length % 4 or length > len(content) - at:
            raise _damaged(f"a block of {length} bytes", at, path)
        end = at + length - 4
        if _unpack(f"{order}I", content, end, at + length, path) != (length,):
            raise _damaged("a block with two lengths", at, path)
        if kind == _INTERFACE:
            links += _unpack(f"{order}H", content, at + 8, end, path)
        elif kind in (_PACKET, _OLD_PACKET, _SIMPLE_PACKET):
            number, captured, start = 0, 0, 12
            if kind == _SIMPLE_PACKET:  # its length is that of the block, less what fills it up
                (captured,) = _unpack(f"{order}I", content, at + 8, end, path)
                captured = min(captured, length - 16)
            else:
                number, captured = _unpack(f"{order}{'I' if kind == _PACKET else 'Hxx'}8xI", content, at + 8, end, path)
                start = 28
            if number >= len(links):
                raise _damaged(f"a frame of interface {number}, which it does not describe", at, path)
            yield CaptureEntry(links[number], _cut(content, at + start, captured, end, path))
        at += length


def _unpack(layout: str, content: bytes, at: int, end: int, path: Path) -> tuple[int, ...]:
    """The numbers from *at*, which must end before *end*."""
    if at + struct.calcsize(layout) > end:
        raise _damaged("a block that is cut", at, path)
    return struct.unpack_from(layout, content, at)


def _cut(content: bytes, at: int, length: int, end: int, path: Path) -> bytes:
    """The *length* bytes from *at*, which must end before *end*."""
    if length > min(_LONGEST_FRAME, end - at):
        raise _damaged(f"a frame of {length} bytes", at, path)
    return content[at : at + length]


def _damaged(found: str, at: int, path: Path) -> ConfigError:
    return ConfigError(f"is a damaged capture: {found} at byte {at}, which it cannot hold; capture it again", path)
