"""Configures FreeBSD to forward tagged frames: VLAN interfaces, and a routing table (FIB) for each stack of tags.

A frame that came in by an interface is routed by its FIB (``ifconfig(8)``, fib), so that tagged frames leave tagged. A
static ARP entry needs an address whose network covers it; those of RFC 2544 C.2.2 (198.18.0.0/15) are no
testbed's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..errors import TestbedError
from .base import Side
from .changing_commands import ChangingCommands
from .configured_output import parse_inet

FIBS = "net.fibs"
FIRST_UNIT = 29700
"""Number of the first VLAN interface that is made: ``vlan29700``; the next has the next number."""

_PROTOCOLS: dict[int, tuple[str, ...]] = {0x8100: (), 0x88A8: ("vlanproto", "802.1ad")}


class FreeBsdTagSetup:
    """*commands*: of a router whose *sides* are configured for IPv4; *notes* receives what stays."""

    def __init__(self, commands: ChangingCommands, sides: Sequence[Side], notes: list[str]) -> None:
        self._commands, self._sides, self._notes = commands, sides, notes
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
