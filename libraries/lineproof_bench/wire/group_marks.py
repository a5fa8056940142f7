"""Marks in frames that name their packet group, as TRex's software sets them (``trex_stl_fs.h``).

The mark of a ``stats`` group is an IPv4 identification, or the low 16 bits of the IPv6 flow label, from BASE on; each
group has one. Frames of all ``latency`` groups have the mark LATENCY and end in a header that names the group. A frame
keeps its length; the IPv4 checksum is updated (RFC 1624), so that a right one stays right and a wrong one wrong.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from lineproof.core.traffic.ip_header import IpHeaderPosition, ip_header

BASE = 0xFC00
"""The least identification that is reserved for groups."""
GROUPS = 1023
"""``stats`` groups that there are identifications for."""
LATENCY = 0xFFFF
"""The identification of frames that end in a HEADER."""
LATENCY_GROUPS = 128
MAGIC = 0xAB
LATENCY_HEADER = struct.Struct("<BBHIQ")
"""Magic, which start it belongs to, number of the group, sequence number, and when it was sent, in ns of real time."""

VLAN, MPLS, IPV4, IPV6 = (0x8100, 0x88A8, 0x9100), (0x8847, 0x8848), 0x0800, 0x86DD
MOST_TAGS, MOST_LABELS = 2, 4
"""The most VLAN tags and MPLS labels before an IP header that is found."""
_TCP, _UDP = 6, 17


class FrameKind(NamedTuple):
    """Frames that are counted together: IP ``version``, ``identification``, and the length in the IP header.

    ``length`` is IPv4's total length or IPv6's payload length; None: any that has no kind of its own.
    """

    version: int
    identification: int
    length: int | None

    @property
    def word(self) -> int:
        """Bytes 2 to 5 of the IP header, if ``length`` is not None."""
        length = self.length or 0
        return length << 16 | self.identification if self.version == 4 else self.identification << 16 | length


def header_of(frame: bytes) -> IpHeaderPosition | None:
    """The first IP header behind up to MOST_TAGS tags and MOST_LABELS labels; None if there is none."""
    found = ip_header(frame)
    return found if found and len(found.tags) <= MOST_TAGS and len(found.labels) <= MOST_LABELS else None


def kind_of(frame: bytes, header: IpHeaderPosition) -> FrameKind:
    """The kind of a frame as it is."""
    first, second = struct.unpack_from("!HH", frame, header.offset + 2)
    return FrameKind(4, second, first) if header.version == 4 else FrameKind(6, first, second)


def with_mark(frame: bytes, header: IpHeaderPosition, identification: int) -> bytes:
    """*frame* with *identification* as its mark."""
    found, at = bytearray(frame), header.offset
    if header.version == 6:
        # the whole label of 20 bits, the traffic class before it stays
        found[at + 1 : at + 4] = (frame[at + 1] & 0xF0, identification >> 8, identification & 0xFF)
        return bytes(found)
    before, checksum = kind_of(frame, header).identification, int.from_bytes(frame[at + 10 : at + 12], "big")
    total = (~checksum & 0xFFFF) + (~before & 0xFFFF) + identification
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    found[at + 4 : at + 6] = identification.to_bytes(2, "big")
    found[at + 10 : at + 12] = (~total & 0xFFFF).to_bytes(2, "big")
    return bytes(found)


def without_mark(frame: bytes) -> bytes:
    """*frame* for no group: an identification that is reserved for groups becomes the number before them."""
    header = header_of(frame)
    if header is None or kind_of(frame, header).identification < BASE:
        return frame
    return with_mark(frame, header, BASE - 1)


def packet_end(frame: bytes | bytearray, header: IpHeaderPosition) -> int:
    """Offset of the IP packet's end. Behind it is padding, which a router does not keep."""
    return min(len(frame), header.packet_end(frame))


def payload_room(frame: bytes, header: IpHeaderPosition) -> int:
    """Bytes behind the IP header, and the UDP or TCP header if there is one, that a HEADER can replace."""
    at = header.offset
    size, protocol = (4 * (frame[at] & 0x0F), frame[at + 9]) if header.version == 4 else (40, frame[at + 6])
    return packet_end(frame, header) - at - size - {_UDP: 8, _TCP: 20}.get(protocol, 0)
