"""The router's neighbour entry of a generator's port, among those that the router shows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..core.neighbours import NeighbourEntry
from .base import Side

Entry = tuple[str, str, bool | None]
"""Interface ("": not shown), MAC in lower case, and whether it was set for good (None: not shown)."""

_OF_TAGS = re.compile(r"^lr\d+\.|\.297\d\d$")
"""Interfaces that are made for tagged frames, with the same peers."""


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
