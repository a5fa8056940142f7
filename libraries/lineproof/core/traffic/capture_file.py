"""The blocks of a capture file, pcap or pcapng: every length in it is checked before it is followed.

Formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...errors import ConfigError

_LONGEST_FRAME = 1 << 18
"""Bytes, as libpcap's limit."""

_PCAP_BYTE_ORDERS = {
    bytes.fromhex(magic): order
    for magic, order in (("d4c3b2a1", "<"), ("4d3cb2a1", "<"), ("a1b2c3d4", ">"), ("a1b23c4d", ">"))
}
"""Of the first four bytes; the second of each pair has times in ns."""

_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_PCAPNG_BYTE_ORDERS = {bytes.fromhex("4d3c2b1a"): "<", bytes.fromhex("1a2b3c4d"): ">"}


@dataclass(frozen=True, slots=True)
class CaptureEntry:
    """A frame as captured, and the type of the link (1: Ethernet)."""

    link_type: int
    data: bytes


def frames(content: bytes, path: Path) -> Iterator[CaptureEntry]:
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
