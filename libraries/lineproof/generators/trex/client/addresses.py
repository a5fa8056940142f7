"""Asks the next hops of ports for their MAC addresses, through the server."""

from __future__ import annotations

import base64
import ipaddress
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from .service import TRIES, TRY_SECONDS, NextHop, Refusal

POLL_INTERVAL = 0.05
"""Seconds between two looks at what has come."""

MOST_KEPT = 200
"""Frames that the capture keeps between two looks."""

Fetch = Callable[[], list[tuple[int, str]]]
"""Gets the frames of a capture since the last time, in their order, each with its port."""

CAPTURE_FILTER = "arp or ip6 or vlan"
"""A Berkeley packet filter that every answer passes."""

DEFAULT_GATEWAY = "the server's 'default_gw'"
NEXT_HOP, ADDRESS = "'next_hop' of the testbed file", "'address' of the testbed file"
"""Where the address of a next hop comes from."""

_SHORTEST = 60
"""Bytes of a frame without FCS (IEEE 802.3)."""


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
        """Return whether it is asked by neighbour discovery (RFC 4861), not by ARP (RFC 826)."""
        return ":" in self.address

    @property
    def frame(self) -> bytes:
        """The request, without FCS."""
        from scapy.layers import inet6, l2
        from scapy.utils6 import in6_getnsma, in6_getnsmac, in6_mactoifaceid

        if self.ipv6:
            group = in6_getnsma(ipaddress.IPv6Address(self.address).packed)
            source = f"fe80::{in6_mactoifaceid(self.mac)}"
            head = inet6.IPv6(src=source, dst=str(ipaddress.IPv6Address(group)), hlim=255)
            to = in6_getnsmac(group)
            asked = head / inet6.ICMPv6ND_NS(tgt=self.address) / inet6.ICMPv6NDOptSrcLLAddr(lladdr=self.mac)
        else:
            to = "ff:ff:ff:ff:ff:ff"
            asked = l2.ARP(op="who-has", hwsrc=self.mac, psrc=self.source, pdst=self.address)
        packet = l2.Ether(src=self.mac, dst=to)
        for tag in self.tags:
            packet /= l2.Dot1Q(vlan=tag)
        return bytes(packet / asked).ljust(_SHORTEST, b"\0")

    def answer(self, frame: bytes) -> str:
        """Return the MAC address in *frame*, without FCS, if it answers this question; else ""."""
        from scapy.layers import inet6, l2

        packet, mac = l2.Ether(frame.ljust(_SHORTEST, b"\0")), ""
        # priority alone (VLAN 0) is no VLAN
        tags = tuple(layer.vlan for layer in packet.iterpayloads() if isinstance(layer, l2.Dot1Q) and layer.vlan)
        if packet.dst != self.mac or tags != self.tags:
            return ""
        if self.ipv6 and inet6.ICMPv6ND_NA in packet:
            told, wanted = packet[inet6.ICMPv6ND_NA], ipaddress.IPv6Address(self.address)
            if packet[inet6.IPv6].hlim == 255 and ipaddress.IPv6Address(told.tgt) == wanted:
                link = inet6.ICMPv6NDOptDstLLAddr
                mac = told[link].lladdr if link in told else packet.src
        elif not self.ipv6 and l2.ARP in packet:
            told = packet[l2.ARP]
            if (told.op, told.hwlen, told.psrc, told.pdst) == (2, 6, self.address, self.source):
                mac = str(told.hwsrc)
        data = bytes.fromhex(mac.replace(":", ""))
        return mac if any(data) and not data[0] & 1 else ""


def question_of(port: int, status: Mapping[str, Any], own_mac: str, named: NextHop | None) -> Question | None:
    """Return what *port* has to ask; None if its destination is known. Raises Refusal if there is nobody to ask.

    *status*: ``get_port_status``; without a report of it the destination counts as known. *named*: by the testbed file.
    """
    layers = status["attr"].get("layer_cfg") or {}
    ether, ipv4 = layers.get("ether") or {}, layers.get("ipv4") or {}
    has_gateway = ipv4.get("state") == "unresolved"
    has_nobody = ether.get("state") == "unconfigured" and not has_gateway
    mac = str(ether.get("src") or own_mac)
    tags = tuple(int(tag) for tag in (status["attr"].get("vlan") or {}).get("tags") or ())
    if named and (named.explicit or has_nobody):
        return Question(port, mac, named.source, named.address, tags, NEXT_HOP if named.explicit else ADDRESS)
    if has_nobody:
        raise Refusal(
            "refused",
            f"port {port} has no destination MAC address, so no router would take its frames; expected"
            " 'dest_mac', or 'ip' and 'default_gw', for this port in the server's trex_cfg.yaml",
        )
    return Question(port, mac, str(ipv4.get("src")), str(ipv4.get("dst")), tags) if has_gateway else None


def find_next_hops(
    ask: Callable[..., Any], fetch: Fetch, questions: Sequence[Question], check_cancelled: Callable[[], None]
) -> dict[int, str]:
    """Return the MAC addresses by port; a port whose next hop is silent is missing. The ports are in service mode.

    *ask* is a request to the server; *fetch* that for the frames of a capture by CAPTURE_FILTER. Raises Refusal if two
    machines answer one question, and what *check_cancelled* raises.
    """
    macs = dict[int, str]()
    for _ in range(TRIES):
        silent = [question for question in questions if question.port not in macs]
        for question in silent:
            packet = {"binary": base64.b64encode(question.frame).decode()}
            own = {"use_port_dst_mac": False, "use_port_src_mac": False}
            ask("push_pkts", port_id=question.port, pkts=[packet | own], force=True, ipg_usec=0)
        limit = time.monotonic() + TRY_SECONDS
        while time.monotonic() < limit:
            check_cancelled()
            for question, (port, frame) in product(silent, fetch()):
                mac = question.answer(base64.b64decode(frame)) if port == question.port else ""
                if mac and macs.setdefault(question.port, mac) != mac:
                    both = f"{macs[question.port]} and {mac} both answer for {question}"
                    raise Refusal("refused", f"{both}; expected one machine with that address")
            if len(macs) == len(questions):
                return macs
            time.sleep(POLL_INTERVAL)
    return macs


def silence(questions: Sequence[Question]) -> str:
    """Say why nothing was sent, where nobody answers *questions*; and what to do."""
    return (
        f"nobody answers for {', '.join(map(str, questions))}, asked {TRIES} times in {TRIES * TRY_SECONDS:g} s;"
        " expected that the router's interfaces are up and have these addresses; if not, fix each where it comes from"
        " ('default_gw' is in the server's trex_cfg.yaml)"
    )
