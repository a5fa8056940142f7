"""Neighbours, routes and kernel settings of a Linux router, each with what takes it back. What is there stays."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import TestbedError
from .remote import Remote

_NOT_ACCEPTED = frozenset({"dead", "linkdown", "offload", "rt_offload", "trap", "rt_trap", "pervasive"})
"""Words that ``ip route show`` prints and ``ip route replace`` does not take."""


def neighbour(remote: Remote, peer: str, mac: str, interface: str, before: str) -> None:
    """*peer* is permanently at *mac* (in small letters). *before*: what ``ip neigh show`` says of it there."""
    words = before.split()
    permanent = words[-1:] == ["PERMANENT"]
    old = words[words.index("lladdr") + 1] if "lladdr" in words else None
    if permanent and old == mac:
        return
    new = ("ip", "neigh", "replace", peer, "lladdr", mac, "nud", "permanent", "dev", interface)
    undo: tuple[str, ...] = ("ip", "neigh", "del", peer, "dev", interface)
    if permanent and old:
        undo = ("ip", "neigh", "replace", peer, "lladdr", old, "nud", "permanent", "dev", interface)
    remote.change(new, undo)


def route(remote: Remote, family: Sequence[str], wanted: Sequence[str], before: str, more: Sequence[str] = ()) -> None:
    """The route *wanted* (its words as ``ip route show`` has them), and words *more* that only setting it needs.

    *family*: options of ``ip``. *before*: what ``ip route show`` says of the destination, in the same table.
    """
    old = [[word for word in line.split() if word not in _NOT_ACCEPTED] for line in before.splitlines()]
    if any(row[: len(wanted)] == list(wanted) for row in old):
        return
    undo = ("ip", *family, "route", "del", *wanted, *more)
    if old and old[0]:
        table = more[more.index("table") :] if "table" in more else ()
        undo = ("ip", *family, "route", "replace", *old[0], *table)
    remote.change(("ip", *family, "route", "replace", *wanted, *more), undo)


def sysctl(remote: Remote, key: str, value: str, notes: list[str]) -> None:
    """*key* (its parts apart by ``/``: names of interfaces hold dots) is *value*; *notes* gets what it was."""
    before = remote.run("sysctl", "-n", key).strip()
    if not re.fullmatch(r"-?\d+", before):
        raise TestbedError(f"'sysctl -n {key}' was not understood: '{before}'")
    if before != value:
        remote.change(("sysctl", "-w", f"{key}={value}"), ("sysctl", "-w", f"{key}={before}"))
        notes.append(f"{key} set from {before} to {value} for the test")
