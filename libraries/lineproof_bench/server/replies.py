"""Replies of a modelled router to single frames: ARP (RFC 826) and neighbour solicitations (RFC 4861)."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable

from lineproof.generators.trex.next_hops import link_local

from ..model.flows import internet_checksum
from .filters import TYPES, headers_of
from .streams import mac_bytes

BROADCAST, IPV6_GROUP = b"\xff" * 6, b"\x33\x33"


def reply_to(frame: bytes, mac: str, owns: Callable[[str], bool]) -> bytes | None:
    """The answer of a device with *mac* to *frame*, without FCS, or None. *owns*: whether it has an address."""
    own = mac_bytes(mac)
    if len(frame) < 14 or (frame[:6] not in (own, BROADCAST) and frame[:2] != IPV6_GROUP):
        return None
    found = headers_of(frame)
    link = frame[6:12] + own + frame[12 : found.l3]
    body = frame[found.l3 :]
    if found.kind == TYPES["arp"]:
        return _arp(link, body, own, owns)
    if found.kind == TYPES["ip6"]:
        return _neighbour(link, body, own, owns)
    return None


def _arp(link: bytes, body: bytes, own: bytes, owns: Callable[[str], bool]) -> bytes | None:
    # Ethernet, IPv4, lengths 6 and 4, a request
    if len(body) < 28 or body[:8] != bytes.fromhex("0001080006040001"):
        return None
    wanted = body[24:28]
    if not owns(str(ipaddress.IPv4Address(wanted))):
        return None
    return link + bytes.fromhex("0001080006040002") + own + wanted + body[8:18]


def _neighbour(link: bytes, body: bytes, own: bytes, owns: Callable[[str], bool]) -> bytes | None:
    # ICMPv6, hop limit 255, a solicitation
    if len(body) < 64 or body[6:8] != b"\x3a\xff" or body[40] != 135:
        return None
    asking, wanted = body[8:24], body[48:64]
    if wanted != link_local(own) and not owns(str(ipaddress.IPv6Address(wanted))):
        return None
    addresses = wanted + asking
    # an advertisement: of a router, solicited, overriding; its option is the target's MAC address
    message = bytearray(b"\x88\0\0\0\xe0\0\0\0" + wanted + b"\x02\x01" + own)
    message[2:4] = internet_checksum(addresses + struct.pack("!II", len(message), 58) + message)
    return link + struct.pack("!IHBB", 6 << 28, len(message), 58, 255) + addresses + bytes(message)
