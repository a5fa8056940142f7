"""The position of the IP header in a frame, after tags (IEEE 802.1Q, 802.1ad) and labels (RFC 3032)."""

from __future__ import annotations

from typing import NamedTuple

_TAGS, _LABELS = (0x8100, 0x88A8, 0x9100), (0x8847, 0x8848)
_IPV4, _IPV6 = 0x0800, 0x86DD


class IpHeaderPosition(NamedTuple):
    """An IP header: its ``version`` (4 or 6) and ``offset`` in the frame.

    ``tags`` (VLAN identifiers) and ``labels`` (MPLS) are before it, outermost first.
    """

    version: int
    offset: int
    tags: tuple[int, ...] = ()
    labels: tuple[int, ...] = ()

    def addresses(self) -> tuple[slice, slice]:
        """Return the bytes of source and destination address."""
        first, size = (self.offset + 12, 4) if self.version == 4 else (self.offset + 8, 16)
        return slice(first, first + size), slice(first + size, first + 2 * size)

    def payload(self, frame: bytes) -> tuple[int, int]:
        """Return the protocol that follows the header in *frame*, and where it begins."""
        at = self.offset
        return (frame[at + 9], at + 4 * (frame[at] & 15)) if self.version == 4 else (frame[at + 6], at + 40)

    def packet_end(self, frame: bytes | bytearray) -> int:
        """Return where the packet ends in *frame*, by the length in its header."""
        at = self.offset + (2 if self.version == 4 else 4)
        return self.offset + 40 * (self.version == 6) + int.from_bytes(frame[at : at + 2], "big")


def ip_header(frame: bytes) -> IpHeaderPosition | None:
    """Return the first IP header of *frame*; None where it has none."""
    at, tags, labels = 12, list[int](), list[int]()
    while int.from_bytes(frame[at : at + 2], "big") in _TAGS:
        tags.append(int.from_bytes(frame[at + 2 : at + 4], "big") & 0x0FFF)
        at += 4
    kind, at = int.from_bytes(frame[at : at + 2], "big"), at + 2
    labelled = kind in _LABELS
    while labelled and at + 4 < len(frame):
        labels.append(int.from_bytes(frame[at : at + 3], "big") >> 4)
        last, at = frame[at + 2] & 1, at + 4
        if last:
            # after the last label the first four bits give the IP version (RFC 4928)
            kind, labelled = {4: _IPV4, 6: _IPV6}.get(frame[at] >> 4, 0), False
    version, least = {_IPV4: (4, 20), _IPV6: (6, 40)}.get(kind, (0, 0))
    if not version or len(frame) < at + least or frame[at] >> 4 != version:
        return None
    return IpHeaderPosition(version, at, tuple(tags), tuple(labels))


def why_not_routed(frame: bytes) -> str:
    """Return why no router forwards *frame*, in words; "" if one may."""
    header = ip_header(frame)
    if header is None:
        return "is not IP; expected only frames that a router forwards"
    is_spent = frame[header.offset + (8 if header.version == 4 else 7)] < 2
    return "has no time to live left; expected 2 or more for a router" if is_spent else ""


def with_swapped_addresses(frame: bytes) -> bytes:
    """Return *frame* with its IP addresses swapped. The checksums stay valid: their sum is the same."""
    header = ip_header(frame)
    if header is None:
        return frame
    swapped, (source, destination) = bytearray(frame), header.addresses()
    swapped[source], swapped[destination] = frame[destination], frame[source]
    return bytes(swapped)


def ipv4_checksum(header: bytes | bytearray) -> int:
    """Return the checksum of an IPv4 header (RFC 1071); 0 if its checksum field is right already."""
    number = int.from_bytes(header, "big")
    # 2^16 is 1 modulo 65535, so that this is the sum of the words with its carries; only nothing has the sum 0
    return (number % 0xFFFF or (0xFFFF if number else 0)) ^ 0xFFFF
