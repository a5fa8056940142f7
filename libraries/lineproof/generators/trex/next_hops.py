"""Questions for the MAC address of a port's next hop: ARP (RFC 826) and IPv6 neighbour discovery (RFC 4861), as bytes.

Nothing is sent here: the client's process asks (:mod:`.client.addresses`), the driver needs the limit.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass

from ...core.traffic.ip_header import ipv4_checksum

TRIES, TRY_SECONDS = 5, 1.0
"""How often all ports without an answer ask, at once, and seconds that each try waits for answers."""

REQUEST_SECONDS = 0.2
"""Seconds that a busy server may take for the requests of one port in one try."""

CAPTURE_FILTER = "arp or ip6 or vlan"
"""A Berkeley packet filter that every answer passes."""

MAC_FROM_PACKET = 1
"""TRex's mode of a stream's destination MAC address (bits 1 and 2 of its ``flags``): from the packet."""

DEFAULT_GATEWAY = "the server's 'default_gw'"
NEXT_HOP, ADDRESS = "'next_hop' of the testbed file", "'address' of the testbed file"
"""Where the address of a next hop comes from."""

_SHORTEST = 60
"""Bytes of a frame without FCS (IEEE 802.3)."""

_ARP, _IPV6, _TAGS = 0x0806, 0x86DD, (0x8100, 0x88A8, 0x9100)
_ICMPV6, _SOLICITATION, _ADVERTISEMENT, _HOP_LIMIT = 58, 135, 136, 255
_SOURCE_MAC, _TARGET_MAC = 1, 2  # options


def search_limit(ports: int) -> float:
    """Seconds that a search for the next hops of so many *ports* takes at most: they ask together."""
    return TRIES * (TRY_SECONDS + REQUEST_SECONDS * ports)


def _mac(data: bytes) -> str:
    return data.hex(":")


def link_local(mac: bytes) -> bytes:
    """The link-local IPv6 address of an interface with *mac* (RFC 4291, appendix A)."""
    return bytes.fromhex("fe80000000000000") + bytes([mac[0] ^ 2]) + mac[1:3] + b"\xff\xfe" + mac[3:]


@dataclass(frozen=True, slots=True)
class NextHop:
    """Who answers with the MAC address that a port sends to: *address*, IPv4 or IPv6; *source*: the port's own IPv4.

    *explicit*: the testbed file's ``next_hop``, which is asked in any case; else its ``address``, which is asked only
    where the server knows no destination.
    """

    source: str
    address: str
    explicit: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """*port*, with *mac*, asks for the MAC address of *address*. *source*: its own IPv4 address.

    An IPv6 address is asked for from the port's link-local address. *tags*: VLANs of the port, outermost first.
    *named*: where the address comes from, in words.
    """

    port: int
    mac: str
    source: str
    address: str
    tags: tuple[int, ...] = ()
    named: str = DEFAULT_GATEWAY

    def __str__(self) -> str:
        return f"{self.address} (asked by {self.source} on port {self.port}; {self.named})"

    @property
    def ipv6(self) -> bool:
        """Return whether it is asked by neighbour discovery, not by ARP."""
        return ":" in self.address

    @property
    def frame(self) -> bytes:
        """The request, without FCS."""
        own = bytes.fromhex(self.mac.replace(":", ""))
        wanted = ipaddress.ip_address(self.address).packed
        tags = b"".join(struct.pack("!HH", _TAGS[0], tag) for tag in self.tags)
        if not self.ipv6:
            asking = own + ipaddress.IPv4Address(self.source).packed
            body = struct.pack("!HHHBBH", _ARP, 1, 0x0800, 6, 4, 1) + asking + bytes(6) + wanted
            return (b"\xff" * 6 + own + tags + body).ljust(_SHORTEST, b"\0")
        group = bytes.fromhex("ff0200000000000000000001ff") + wanted[13:]
        addresses = link_local(own) + group

        def message(checksum: int) -> bytes:
            return struct.pack("!BBH4x", _SOLICITATION, 0, checksum) + wanted + bytes([_SOURCE_MAC, 1]) + own

        length = len(message(0))
        # the checksum of IPv4 and ICMPv6 is the same sum; a pseudo-header is before the message here
        checksum = ipv4_checksum(addresses + struct.pack("!II", length, _ICMPV6) + message(0))
        header = struct.pack("!IHBB", 6 << 28, length, _ICMPV6, _HOP_LIMIT) + addresses
        ethernet = b"\x33\x33" + group[12:] + own + tags + struct.pack("!H", _IPV6)
        return ethernet + header + message(checksum)

    def answer(self, frame: bytes) -> str:
        """The MAC address in *frame*, without FCS, if it answers this question; else ""."""
        at, tags = 12, list[int]()
        while int.from_bytes(frame[at : at + 2], "big") in _TAGS and len(frame) >= at + 4:
            if tag := int.from_bytes(frame[at + 2 : at + 4], "big") & 0xFFF:
                tags.append(tag)
            at += 4
        body = frame[at + 2 :]
        if frame[:6] != bytes.fromhex(self.mac.replace(":", "")) or tuple(tags) != self.tags:
            return ""
        read = self._neighbour if self.ipv6 else self._arp
        found = read(int.from_bytes(frame[at : at + 2], "big"), body, frame[6:12])
        return _mac(found) if found and any(found) and not found[0] & 1 else ""

    def _arp(self, kind: int, body: bytes, _: bytes) -> bytes:
        wanted, own = (ipaddress.IPv4Address(text).packed for text in (self.address, self.source))
        if kind != _ARP or len(body) < 28 or body[:8] != struct.pack("!HHBBH", 1, 0x0800, 6, 4, 2):
            return b""
        return body[8:14] if (body[14:18], body[24:28]) == (wanted, own) else b""

    def _neighbour(self, kind: int, body: bytes, sender: bytes) -> bytes:
        if kind != _IPV6 or len(body) < 64 or (body[6], body[7]) != (_ICMPV6, _HOP_LIMIT):
            return b""
        if body[40] != _ADVERTISEMENT or body[48:64] != ipaddress.IPv6Address(self.address).packed:
            return b""
        option = body[64:72]
        return option[2:] if len(option) == 8 and option[:2] == bytes([_TARGET_MAC, 1]) else sender
