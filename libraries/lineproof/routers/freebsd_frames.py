"""Configures FreeBSD to forward IPv6 and tagged frames; its kernel has no MPLS.

Each side gets an IPv6 address, because the kernel takes a static neighbour only where a prefix of an interface covers
it (``ndp -s``, ndp(8)), then the neighbour and a route. A frame is routed by the FIB of the interface that it came in
by (``ifconfig(8)``, fib): each stack of tags has one, so that tagged frames leave tagged. A static ARP entry needs an
address, too; those of RFC 2544 C.2.2 (198.18.0.0/15) are no testbed's own.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence

from ..core.traffic.frame_kinds import FrameKinds, NotForwarded, ipv6_address, ipv6_network
from ..errors import TestbedError
from .base import Side
from .changing_commands import ChangingCommands
from .configured_output import parse_inet
from .frame_setup import FrameSetup

FORWARDING = "net.inet6.ip6.forwarding"


def set_forwarding(commands: ChangingCommands, key: str, before: str, notes: list[str]) -> None:
    """Set the kernel variable *key* to 1. *before*: its ``sysctl -n``. Raises TestbedError."""
    before = before.strip()
    if not before.isdigit():
        raise TestbedError(f"'sysctl -n {key}' was not understood: '{before}'")
    if before != "1":
        commands.change(("sysctl", f"{key}=1"), ("sysctl", f"{key}={before}"))
        notes.append(f"{key} set from {before} to 1 for the test")


class FreeBsdFrameSetup(FrameSetup):
    """Sets a FreeBSD kernel up."""

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

    def _configure_ipv6(self, prefixes: tuple[str, ...]) -> None:
        run = self._commands
        before = run.run_all({"forwarding": ("sysctl", "-n", FORWARDING)}, optional=("forwarding",))["forwarding"]
        if not before:
            self._mark_not_forwarded(f"the router's kernel has no IPv6 (there is no {FORWARDING})", "ipv6")
            return
        set_forwarding(run, FORWARDING, before, self._notes)
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


FIBS = "net.fibs"
FIRST_UNIT = 29700
"""Number of the first VLAN interface that is made: ``vlan29700``; the next has the next number."""

_PROTOCOLS: dict[int, tuple[str, ...]] = {0x8100: (), 0x88A8: ("vlanproto", "802.1ad")}


class FreeBsdTagSetup(FrameSetup):
    """Sets a FreeBSD kernel up for tagged frames."""

    def __init__(self, commands: ChangingCommands, sides: Sequence[Side], notes: list[str]) -> None:
        super().__init__(commands, sides, notes)
        self._made = 0
        self._there: set[str] = set()

    def configure(self, stacks: Sequence[tuple[tuple[int, int], ...]]) -> str:
        """Configure each stack of (EtherType, VLAN). Returns why that cannot be, "" if it is done.

        Raises TestbedError for interfaces that somebody else has under these names.
        """
        shown = self._commands.run_all({"fibs": ("sysctl", "-n", FIBS), "names": ("ifconfig", "-l")}, ("fibs",))
        before, wanted = shown["fibs"].strip(), 1 + len(stacks)
        if not before.isdigit():
            return f"the router's kernel has one routing table only (there is no {FIBS})"
        self._there = set(shown["names"].split())
        if int(before) < wanted:
            # a kernel takes no fewer: the opposite leaves them
            more = ("sysctl", f"{FIBS}={wanted}")
            self._commands.change(more, more)
            self._notes.append(f"{FIBS} set from {before} to {wanted} for the test, and stays so until a restart")
        for fib, stack in enumerate(stacks, 1):
            for place, side in enumerate(self._sides):
                self._configure_side(fib, place, side, stack)
        return ""

    def _configure_side(self, fib: int, place: int, side: Side, stack: Iterable[tuple[int, int]]) -> None:
        run, name, shown = self._commands.change, side.interface, ""
        for kind, vlan in stack:
            parent, name = name, f"vlan{FIRST_UNIT + self._made}"
            self._made += 1
            shown = self._commands.run("ifconfig", name) if name in self._there else ""
            if not shown:
                made = ("create", "vlan", str(vlan), *_PROTOCOLS[kind], "vlandev", parent)
                run(("ifconfig", name, *made), ("ifconfig", name, "destroy"))
                run(("ifconfig", name, "up"), ("ifconfig", name, "down"))
            elif not re.search(rf"\bvlan: {vlan}\b.*\bparent interface: {re.escape(parent)}\s", shown):
                raise TestbedError(
                    f"the router has an interface {name} already, a name that 'set_up' makes for tagged frames; destroy"
                    f" it ('ifconfig {name} destroy'), or leave 'vlan' out of 'set_up'"
                )
        network, table = f"198.18.{10 * fib + place}", ("setfib", str(fib))
        if not re.search(rf"^\s+fib: {fib}\s*$", shown, re.MULTILINE):
            run(("ifconfig", name, "fib", str(fib)), ("ifconfig", name, "fib", "0"))
        if (f"{network}.1", 24) not in parse_inet(shown):
            address = ("ifconfig", name, "inet", f"{network}.1")
            run((*address[:3], f"{network}.1/24", "alias"), (*address, "-alias"))
        peer = f"{network}.2"
        known = {"arp": (*table, "arp", "-an"), "routes": (*table, "netstat", "-rnW", "-f", "inet")}
        found = self._commands.run_all(known) if shown else dict.fromkeys(known, "")
        if f"({peer}) at {side.peer_mac} " not in found["arp"]:
            run((*table, "arp", "-S", peer, side.peer_mac), (*table, "arp", "-d", peer))
        if not re.search(rf"^{re.escape(side.network)}\s+{re.escape(peer)}\s", found["routes"], re.MULTILINE):
            route = (*table, "route")
            run((*route, "add", "-net", side.network, peer), (*route, "delete", "-net", side.network, peer))
