"""Who has to answer with the MAC address that a port sends to, and how long that takes: :mod:`.client.addresses`."""

from __future__ import annotations

from dataclasses import dataclass

TRIES, TRY_SECONDS = 5, 1.0
"""How often all ports without an answer ask, at once, and seconds that each try waits for answers."""

REQUEST_SECONDS = 0.2
"""Seconds that a busy server may take for the requests of one port in one try."""

MAC_FROM_PACKET = 1
"""TRex's mode of a stream's destination MAC address (bits 1 and 2 of its ``flags``): from the packet."""


def search_limit(ports: int) -> float:
    """Seconds that a search for the next hops of so many *ports* takes at most: they ask together."""
    return TRIES * (TRY_SECONDS + REQUEST_SECONDS * ports)


@dataclass(frozen=True, slots=True)
class NextHop:
    """Who answers with the MAC address that a port sends to: *address*, IPv4 or IPv6; *source*: the port's own IPv4.

    *explicit*: the testbed file's ``next_hop``, which is asked in any case; else its ``address``, which is asked only
    where the server knows no destination.
    """

    source: str
    address: str
    explicit: bool = False
