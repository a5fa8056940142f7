"""Frames of a packet capture and how often each occurs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...errors import ConfigError
from ...files import read_file
from . import capture_file
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
    for frame in capture_file.frames(read_file(path, MAX_FILE_BYTES), path):
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
