"""The origin of a frame that nobody asked for, by its addresses and types: who is talking on the cable."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Sequence

_MULTICAST = {
    "01:80:c2:00:00:00": "spanning tree",  # IEEE 802.1D, 7.12.3
    "01:80:c2:00:00:02": "slow protocol (LACP, OAM)",  # IEEE 802.3, annex 57A
    "01:80:c2:00:00:03": "802.1X",
    "01:00:0c:cc:cc:cc": "Cisco's CDP, VTP or UDLD",
    "01:00:0c:cc:cc:cd": "Cisco's spanning tree",
}
_TYPES = {0x0806: "ARP", 0x88CC: "LLDP", 0x8808: "pause frame", 0x9000: "loop test", 0x88F7: "PTP", 0x888E: "802.1X"}
_UDP = {67: "DHCP", 68: "DHCP", 546: "DHCPv6", 547: "DHCPv6", 1900: "SSDP", 5353: "mDNS", 5355: "LLMNR", 137: "NetBIOS"}
_IP = {1: "ICMP", 2: "IGMP", 58: "ICMPv6", 89: "OSPF", 103: "PIM", 112: "VRRP"}
_ICMPV6 = {133: "router solicitation", 134: "router advertisement", 135: "neighbour solicitation"}
_TAGS = (0x8100, 0x88A8)


def origin(frame: bytes) -> str:
    """``ARP from 02:00:00:00:00:01``: the protocol of *frame*, without its FCS, and who sent it."""
    if len(frame) < 14:
        return "a damaged frame"
    target, sender = (":".join(f"{octet:02x}" for octet in frame[at : at + 6]) for at in (0, 6))
    at = 12
    while (kind := int.from_bytes(frame[at : at + 2], "big")) in _TAGS:
        at += 4
    found = _MULTICAST.get(target) or _TYPES.get(kind) or _of_ip(kind, frame[at + 2 :])
    return f"{found or f'type 0x{kind:04x}'} from {sender}"


def _of_ip(kind: int, packet: bytes) -> str:
    """Protocol and sender of an IP packet; "": it is none."""
    if kind == 0x0800 and len(packet) >= 20:
        protocol, head, address = packet[9], 4 * (packet[0] & 15), packet[12:16]
    elif kind == 0x86DD and len(packet) >= 40:
        protocol, head, address = packet[6], 40, packet[8:24]
        if protocol == 0 and len(packet) > 48:  # hop-by-hop options, as of MLD
            protocol, head = packet[40], 48
    else:
        return ""
    inner = packet[head:]
    name = _IP.get(protocol, f"IP protocol {protocol}")
    if protocol == 17 and len(inner) >= 4:
        ports = (int.from_bytes(inner[2:4], "big"), int.from_bytes(inner[:2], "big"))
        name = next((_UDP[port] for port in ports if port in _UDP), f"UDP to port {ports[0]}")
    if protocol == 58 and inner:
        name = f"{name} ({_ICMPV6[inner[0]]})" if inner[0] in _ICMPV6 else name
    return f"{name} of {ipaddress.ip_address(address)}"


def origins(frames: Sequence[bytes], seconds: float) -> str:
    """``ARP from 02:…, every 1 s; …``: the *frames* that came in *seconds*, the most frequent first."""
    found = Counter(map(origin, frames)).most_common()
    return "; ".join(f"{name}, {_often(count, seconds)}" for name, count in found)


def _often(count: int, seconds: float) -> str:
    if count == 1:
        return f"once in {seconds:g} s"
    return f"every {seconds / count:.2g} s" if count <= seconds else f"{count / seconds:.3g} a second"
