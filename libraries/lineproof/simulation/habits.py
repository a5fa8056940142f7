"""Habits of hardware and random variation of a simulated testbed, and the signs by which one is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

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


HabitKind = Literal[
    "gateway unknown at start", "silent gateway", "own frames only", "promiscuous off at acquire", "coarse latency"
]


class Habit(Config):
    """One habit of the generator's *port*, None: of all, and of what is cabled to it.

    ``gateway unknown at start``: the server was started before the router had addresses, and knows an IPv4 gateway
    without its MAC address. ``silent gateway``: likewise, and nobody answers when it is asked for. ``own frames only``:
    the card drops frames that are addressed to another MAC address than its own, and counts them nowhere, unless it is
    promiscuous. ``promiscuous off at acquire``: whoever acquires the port finds it not promiscuous. ``coarse latency``:
    the server was started without ``--hdrh``.
    """

    kind: HabitKind
    port: Annotated[int, Field(ge=0, le=255)] | None = None


Share = Annotated[float, Field(ge=0, lt=1)]


class LossBursts(Config):
    """``packets`` frames lost in a row, on average once in ``every`` s of traffic (testbed's clock)."""

    packets: Annotated[int, Field(ge=1, le=10**6)] = 500
    every: Annotated[float, Field(ge=0.001)] = 50.0


class WarmUp(Config):
    """The router is slower by the ratio ``dip`` in the first ``seconds`` of traffic after its configuration."""

    dip: Share
    seconds: Annotated[float, Field(gt=0, le=3600)]


class Noise(Config):
    """``capacity``: relative standard deviation of the router's capacity between starts of traffic.

    A plain number in the file is ``capacity``. The testbed's ``seed`` makes it repeatable.
    """

    capacity: Share = 0.0
    bursts: LossBursts | None = None
    warm_up: WarmUp | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_number(cls, value: Any) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return {"capacity": value} if is_number else value


MODEL_DRIVER = "lineproof_model"
"""Driver of the ports of a modelled generator."""

BY_A_MODEL = "SIMULATED by a forwarding model"

_MARKS = (MODEL_DRIVER, "SIMULATED")


def simulation_signs(said: Mapping[str, str]) -> tuple[str, ...]:
    """Return those of *said* (what says it -> its words) that a simulation says, in words."""
    return tuple(f"{who}: {words}" for who, words in said.items() if any(mark in words for mark in _MARKS))
