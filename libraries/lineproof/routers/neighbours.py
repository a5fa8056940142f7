"""The router's neighbour entries of the generator's ports, as VPP, Linux and FreeBSD show them.

Described routers show theirs by the command of their file (:mod:`.generic`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..core.neighbours import NeighbourEntry
from .base import Side
from .shell_commands import ShellCommands
from .shell_output import parser
from .vpp_output import parse_neighbours

Entry = tuple[str, str, bool | None]
"""Interface ("": not shown), MAC in lower case, and whether it was set for good (None: not shown)."""

_OF_TAGS = re.compile(r"^lr\d+\.|\.297\d\d$")
"""Interfaces that are made for tagged frames, with the same peers."""

_MAC = r"([0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5})"
_UNUSABLE = frozenset({"FAILED", "INCOMPLETE"})
_LASTING = frozenset({"PERMANENT", "NOARP"})


def linux_neighbours(commands: ShellCommands, sides: Sequence[Side]) -> tuple[NeighbourEntry, ...]:
    """By ``ip neigh``. Raises TestbedError."""
    output = commands.run_all({side.peer: ("ip", "neigh", "show", side.peer) for side in sides})
    return tuple(
        neighbour_of(
            side,
            parse_ip_neigh(output[side.peer]),
            ("ip", "neigh", "replace", side.peer, "lladdr", "MAC", "nud", "permanent", "dev", side.interface),
        )
        for side in sides
    )


def vpp_neighbours(commands: ShellCommands, sides: Sequence[Side]) -> tuple[NeighbourEntry, ...]:
    """By ``show ip neighbors``. Raises TestbedError."""
    rows = parse_neighbours(commands.run("vppctl", "show", "ip", "neighbors"))
    return tuple(
        neighbour_of(
            side,
            [(name, mac, static) for name, address, mac, static in sorted(rows) if address == side.peer],
            ("vppctl", "set", "ip", "neighbor", side.interface, side.peer, "MAC", "static"),
        )
        for side in sides
    )


def freebsd_neighbours(commands: ShellCommands, sides: Sequence[Side]) -> tuple[NeighbourEntry, ...]:
    """By ``arp -an`` and ``ndp -an``. Raises TestbedError."""
    ipv6 = any(":" in side.peer for side in sides)
    output = commands.run(*(("ndp", "-an") if ipv6 else ("arp", "-an")))
    if ipv6 and not all(":" in side.peer for side in sides):
        output += commands.run("arp", "-an")
    return tuple(
        neighbour_of(side, parse_ndp(output, side.peer), ("ndp", "-s", side.peer, "MAC"))
        if ":" in side.peer
        else neighbour_of(side, parse_arp(output, side.peer), ("arp", "-S", side.peer, "MAC"))
        for side in sides
    )


@parser("'ip neigh show'")
def parse_ip_neigh(text: str) -> list[Entry]:
    """Entries of ``ip neigh show ADDRESS`` that the kernel sends to, stale ones too."""
    found: list[Entry] = []
    for line in text.splitlines():
        name, mac = re.search(r"\bdev (\S+)", line), re.search(rf"\blladdr {_MAC}", line)
        words = set(line.split())
        if name and mac and not words & _UNUSABLE:
            found.append((name[1], mac[1].lower(), bool(words & _LASTING)))
    return found


@parser("'arp -an'")
def parse_arp(text: str, address: str) -> list[Entry]:
    """Entries of ``arp -an`` of FreeBSD for *address*; ``(incomplete)`` ones and expired ones are none."""
    rows = re.finditer(rf"^\S+ \({re.escape(address)}\) at {_MAC} on (\S+)(.*)$", text, re.MULTILINE)
    return [(row[2], row[1].lower(), " permanent" in row[3]) for row in rows if " expired" not in row[3]]


@parser("'ndp -an'")
def parse_ndp(text: str, address: str) -> list[Entry]:
    """Entries of ``ndp -an`` of FreeBSD for *address*; ``(incomplete)`` ones are none."""
    rows = re.finditer(rf"^{re.escape(address)}\s+{_MAC}\s+(\S+)\s+(\S+)", text, re.MULTILINE)
    return [(row[2], row[1].lower(), row[3] == "permanent") for row in rows if row[3] != "expired"]


def neighbour_of(side: Side, entries: Sequence[Entry], fix: Sequence[str]) -> NeighbourEntry:
    """Return the one of *entries* of the side's own interface: a router may reach it by another, as a bridge.

    *fix*: the command that sets it, with ``MAC`` for the address.
    """
    expected = side.peer_mac.lower()
    own = [entry for entry in entries if entry[0] == side.interface]
    own = own or [entry for entry in entries if not _OF_TAGS.search(entry[0])]
    found_at, mac, permanent = own[0] if own else ("", "", None)
    at = {side.interface: found_at} if found_at else {}
    words = [at.get(word, word) if word != "MAC" else expected or mac or "MAC" for word in fix]
    return NeighbourEntry(side.interface, side.peer, expected, mac, permanent, found_at, " ".join(words))
