"""Habits of hardware that a simulated testbed can have, for as long as it lasts: ``habits``, ``router_habits``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ..config import Config

Seconds = Annotated[float, Field(ge=0, le=600)]


class RouterHabits(Config):
    """Seconds of the testbed's clock. All 0: links are there at once.

    ``link_delay``: from taking an interface up to its carrier at both ends of the cable (negotiation, training, FEC).
    ``link_poll``: between the router's looks at its links: what it has not seen come up it does not send to
    (VPP's dpdk plugin: 3 s, ``DPDK_LINK_POLL_INTERVAL`` in its device/dpdk.h).
    """

    link_delay: Seconds = 0.0
    link_poll: Seconds = 0.0


HabitKind = Literal["gateway unknown at start", "silent gateway", "own frames only", "promiscuous off at acquire"]


class Habit(Config):
    """One habit of the generator's *port*, None: of all, and of what is cabled to it.

    ``gateway unknown at start``: the server was started before the router had addresses, and knows an IPv4 gateway
    without its MAC address. ``silent gateway``: likewise, and nobody answers when it is asked for. ``own frames only``:
    the card drops frames that are addressed to another MAC address than its own, and counts them nowhere, unless it is
    promiscuous. ``promiscuous off at acquire``: whoever acquires the port finds it not promiscuous.
    """

    kind: HabitKind
    port: Annotated[int, Field(ge=0, le=255)] | None = None
