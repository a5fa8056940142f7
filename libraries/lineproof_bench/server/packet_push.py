"""``push_pkts``: single frames that clients send, for example ARP requests for a neighbour's MAC address."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable
from typing import Any

from lineproof.core.traffic.ip_header import ipv4_checksum

from ..backend import Backend, StreamTraffic
from .captures import Captures
from .filters import TYPES, headers_of
from .params import Params, refused
from .places import ServerHabits
from .ports import ServerPort
from .streams import PADDED_TO, mac_bytes, packet_bytes


class PacketPush:
    """Sends single frames by *backend*. *now* is the bench's clock in s, as of captured frames."""

    def __init__(self, backend: Backend, captures: Captures, now: Callable[[], float], habits: ServerHabits) -> None:
        self._backend, self._captures, self._now = backend, captures, now
        self._habits = habits

    def push(self, port: ServerPort, params: Params) -> dict[str, Any]:
        """The method ``push_pkts``. Raises RpcError when the frames cannot be sent."""
        frames = [_frame_of(port, packet) for packet in params.objects("pkts")]
        gap = max(1.0, params.number("ipg_usec", 0.0, least=0))
        pieces = tuple(
            StreamTraffic(number, frame.ljust(PADDED_TO, b"\0"), 1e6 / gap, count=1, isg_usec=number * gap)
            for number, frame in enumerate(frames)
        )
        if port.active and not self._backend.is_simulated:
            raise refused(f"port {port.index} sends streams; expected to stop them before packets are pushed")
        if not port.active and pieces:
            try:
                self._backend.start({port.index: pieces}, None)
            except Exception as error:
                raise refused(f"port {port.index} cannot send the packets: {error}") from error
        sent = self._now()
        for frame in frames:
            self._answer(port, frame)
        return {"sent": len(frames), "ts": sent}

    def _answer(self, port: ServerPort, frame: bytes) -> None:
        if not self._backend.is_simulated or self._habits.has("silent gateway", port.index):
            return

        def owns(address: str) -> bool:
            known = self._backend.answers(port.index, address)
            # a device without any address yet is assumed to have the one that the port was given
            return known if known is not None else port.ipv4 is not None and port.ipv4[1] == address

        reply = reply_to(frame, port.description.peer_mac, owns)
        if reply is not None:
            self._captures.arrived(port.index, reply)


def _frame_of(port: ServerPort, packet: Params) -> bytes:
    frame = bytearray(packet_bytes(packet))
    if packet.boolean("use_port_dst_mac", False):
        frame[0:6] = mac_bytes(port.destination_mac)
    if packet.boolean("use_port_src_mac", False):
        frame[6:12] = mac_bytes(port.source_mac)
    return bytes(frame)


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


def link_local(mac: bytes) -> bytes:
    """The link-local IPv6 address of an interface with *mac* (RFC 4291, appendix A)."""
    return bytes.fromhex("fe80000000000000") + bytes([mac[0] ^ 2]) + mac[1:3] + b"\xff\xfe" + mac[3:]


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
    checksum = ipv4_checksum(addresses + struct.pack("!II", len(message), 58) + message)
    message[2:4] = checksum.to_bytes(2, "big")
    return link + struct.pack("!IHBB", 6 << 28, len(message), 58, 255) + addresses + bytes(message)
