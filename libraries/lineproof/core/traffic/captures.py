"""Frames of a packet capture.

Formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...errors import ConfigError
from ...files import read_file
from .ip_header import ip_header, why_not_routed

MIN_BYTES, MAX_BYTES = 60, 9212
"""Bytes without FCS: shorter frames are padded to the minimum on the wire."""

MAX_FRAMES = 256
"""Different frames of a profile: each is a stream of the generator."""

MAX_FILE_BYTES = 8 << 20
"""Bytes of a capture file."""

_ETHERNET = 1


def read_capture(path: Path) -> Mapping[bytes, int]:
    """The different frames of the capture file *path*, without FCS and MAC addresses, and how often each occurs.

    Raises ConfigError for frames that a router cannot forward.
    """
    found: Counter[bytes] = Counter()
    for number, data in enumerate(_frames(path), 1):
        found[_check_frame(data, number, path)] += 1
        if len(found) > MAX_FRAMES:
            raise ConfigError(f"has more than {MAX_FRAMES} different frames; expected a shorter one", path)
    if not found:
        raise ConfigError("has no frames", path)
    return found


def _frames(path: Path) -> Iterator[bytes]:
    """Each frame of the capture file *path*. Raises ConfigError."""
    content = read_file(path, MAX_FILE_BYTES)
    order, is_pcapng = _PCAP_BYTE_ORDERS.get(content[:4]), content[:4] == _SECTION.to_bytes(4, "big")
    if order is None and not is_pcapng:
        raise ConfigError("is not a pcap or pcapng file", path)
    try:
        for link_type, data in _pcap_frames(content, order) if order else _pcapng_frames(content):
            if link_type != _ETHERNET:
                raise ConfigError(f"was captured on link type {link_type}; expected Ethernet (1)", path)
            yield data
    except (struct.error, LookupError):
        raise ConfigError("is a damaged capture; capture it again", path) from None


def _check_frame(data: bytes, number: int, path: Path) -> bytes:
    frame = (bytes(12) + data[12:]).ljust(MIN_BYTES, b"\0")
    why_not, header = why_not_routed(frame), ip_header(frame)
    if header is not None and (whole := header.packet_end(frame)) > len(data):
        why_not = f"was cut: {len(data)} of {whole} bytes; expected a capture of whole frames ('tcpdump -s 0')"
    if why_not:
        raise ConfigError(f"frame {number} {why_not}", path)
    if len(frame) > MAX_BYTES:
        raise ConfigError(f"frame {number} has {len(frame)} bytes; expected at most {MAX_BYTES} without FCS", path)
    return frame


_PCAP_BYTE_ORDERS = {
    bytes.fromhex(magic): order
    for magic, order in (("d4c3b2a1", "<"), ("4d3cb2a1", "<"), ("a1b2c3d4", ">"), ("a1b23c4d", ">"))
}
"""Byte orders by the first four bytes; the second of each pair has times in ns."""

_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 0x0A0D0D0A, 1, 2, 3, 6
_PCAPNG_BYTE_ORDERS = {bytes.fromhex("4d3c2b1a"): "<", bytes.fromhex("1a2b3c4d"): ">"}


def _pcap_frames(content: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Each frame with the type of its link (1: Ethernet). Raises struct.error or LookupError where it is damaged."""
    (link,) = struct.unpack_from(f"{order}20xI", content)
    at = 24
    while at < len(content):
        captured, _ = struct.unpack_from(f"{order}8xII", content, at)
        yield link & 0xFFFF, _cut(content, at + 16, captured)
        at += 16 + captured


def _pcapng_frames(content: bytes) -> Iterator[tuple[int, bytes]]:
    order, links, at = "<", list[int](), 0
    while at < len(content):
        if content[at : at + 4] == _SECTION.to_bytes(4, "big"):
            order, links = _PCAPNG_BYTE_ORDERS[content[at + 8 : at + 12]], []
        kind, length = struct.unpack_from(f"{order}II", content, at)
        if length < 12:
            raise LookupError
        if kind == _INTERFACE:
            links += struct.unpack_from(f"{order}H", content, at + 8)
        elif kind == _SIMPLE_PACKET:  # its length is that of the block, less what fills it up
            (captured,) = struct.unpack_from(f"{order}I", content, at + 8)
            yield links[0], _cut(content, at + 12, min(captured, length - 16))
        elif kind in (_PACKET, _OLD_PACKET):
            layout = f"{order}{'I' if kind == _PACKET else 'Hxx'}8xI"
            number, captured = struct.unpack_from(layout, content, at + 8)
            yield links[number], _cut(content, at + 28, captured)
        at += length


def _cut(content: bytes, at: int, length: int) -> bytes:
    """The *length* bytes from *at*. Raises LookupError where there are fewer."""
    if at + length > len(content):
        raise LookupError
    return content[at : at + length]
