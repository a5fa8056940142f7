"""Configures FreeBSD to forward IPv6 and tagged frames; its kernel has no MPLS.

Each side gets an IPv6 address, because the kernel takes a static neighbour only where a prefix of an interface covers
it (``ndp -s``, ndp(8)), then the neighbour and a route.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

from ..errors import TestbedError
from ..traffic.frame_kinds import FrameKind, FrameKinds, NotForwarded, ipv6_address, ipv6_network
from .base import Side
from .changing_commands import ChangingCommands
from .freebsd_tags import FreeBsdTagSetup

FORWARDING = "net.inet6.ip6.forwarding"


class FreeBsdFrameSetup:
    """*commands*: of a router whose *sides* are configured for IPv4; *notes* receives changes of kernel settings."""

    def __init__(self, commands: ChangingCommands, sides: Sequence[Side], notes: list[str]) -> None:
        self._commands, self._sides, self._notes = commands, sides, notes
        self._not_forwarded: dict[frozenset[FrameKind], str] = {}

    def configure(self, frames: FrameKinds) -> NotForwarded:
        """Configure IPv6 and tags; return what is not set up, and why."""
        if frames.prefixes:
            self._configure_ipv6(frames.prefixes)
        if frames.tags:
            if lacking := FreeBsdTagSetup(self._commands, self._sides, self._notes).configure(frames.tags):
                self._mark_not_forwarded(lacking, "vlan")
            elif frames.prefixes:
                reason = "IPv6 within tags is not set up on FreeBSD from here; set it up by hand"
                self._mark_not_forwarded(reason, "vlan", "ipv6")
        if frames.labels:
            self._mark_not_forwarded("FreeBSD's kernel has no MPLS: it forwards no labelled frames", "mpls")
        return self._not_forwarded

    def _mark_not_forwarded(self, reason: str, *kinds: FrameKind) -> None:
        self._not_forwarded[frozenset(kinds)] = reason
        self._notes.append(f"not set up for {' with '.join(kinds)}: {reason}")

    def _configure_ipv6(self, prefixes: tuple[str, ...]) -> None:
        run = self._commands
        before = run.run_all({"forwarding": ("sysctl", "-n", FORWARDING)}, optional=("forwarding",))["forwarding"]
        if not before:
            self._mark_not_forwarded(f"the router's kernel has no IPv6 (there is no {FORWARDING})", "ipv6")
            return
        before = before.strip()
        if not before.isdigit():
            raise TestbedError(f"'sysctl -n {FORWARDING}' was not understood: '{before}'")
        if before != "1":
            run.change(("sysctl", f"{FORWARDING}=1"), ("sysctl", f"{FORWARDING}={before}"))
            self._notes.append(f"{FORWARDING} set from {before} to 1 for the test")
        for prefix in prefixes:
            for side in self._sides:
                self._add_side(prefix, side)

    def _add_side(self, prefix: str, side: Side) -> None:
        run, name = self._commands, side.interface
        own, length = side.address.split("/")
        address = f"{ipv6_address(prefix, own)}/{96 + int(length)}"
        network, peer = ipv6_network(prefix, side.network), ipv6_address(prefix, side.peer)
        shown = run.run_all(
            {
                "interface": ("ifconfig", name),
                "neighbours": ("ndp", "-an"),
                "routes": ("netstat", "-rnW", "-f", "inet6"),
            }
        )
        if "IFDISABLED" in shown["interface"]:
            run.change(("ifconfig", name, "inet6", "-ifdisabled"), ("ifconfig", name, "inet6", "ifdisabled"))
        if not _has_address(shown["interface"], address):
            plain = address.partition("/")[0]
            run.change(("ifconfig", name, "inet6", address, "alias"), ("ifconfig", name, "inet6", plain, "-alias"))
        entry = re.search(rf"^{re.escape(peer)}\s+(\S+)\s+\S+\s+(\S+)", shown["neighbours"], re.MULTILINE)
        if not (entry and entry[1].lower() == side.peer_mac and entry[2] == "permanent"):
            lasting = entry is not None and entry[2] == "permanent"
            undo = ("ndp", "-s", peer, entry[1]) if entry and lasting else ("ndp", "-d", peer)
            run.change(("ndp", "-s", peer, side.peer_mac), undo)
        rows = [row for row in map(str.split, shown["routes"].splitlines()) if row[:1] == [network]]
        if rows and rows[0][1] != peer:
            change = ("route", "-6", "change", "-net", network)
            run.change((*change, peer), (*change, rows[0][1]))
        elif not rows:
            run.change(("route", "-6", "add", "-net", network, peer), ("route", "-6", "delete", "-net", network, peer))


def _has_address(shown: str, address: str) -> bool:
    wanted = ipaddress.IPv6Interface(address)
    rows = re.findall(r"\binet6 ([0-9a-fA-F:]+)(?:%\S+)? prefixlen (\d+)", shown)
    return any(ipaddress.IPv6Interface(f"{ip}/{length}") == wanted for ip, length in rows)
