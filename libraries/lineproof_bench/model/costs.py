"""Cycles that a core spends: the part of a platform's ``model:`` that software and features share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from lineproof.config import Config

NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Spread = Annotated[float, Field(ge=0, lt=0.5)]
"""Standard deviation of what a router carries from one run to the next, as a share."""


class Lock(Config):
    """A lock that only one core may hold. ``cycles``: held per frame; ``far``: how much longer, as a share of that, if
    another core held it last (its cache line has to come from there); ``spin``: the same for each further core that
    takes it; ``ipv6``: the same for a frame of IPv6.
    """

    name: str = ""
    cycles: Positive
    far: NotNegative = 0.0
    spin: NotNegative = 0.0
    ipv6: NotNegative = 0.0

    def held(self, users: float, ipv6: float) -> float:
        """Cycles per frame that it is held when *users* cores take it equally often; *ipv6*: that share of frames."""
        far, spin = self.far * (1 - 1 / max(1.0, users)), self.spin * (users - 1)
        return self.cycles * (1 + far + spin) * (1 + self.ipv6 * ipv6)


class CycleCost(Config):
    """Cycles that a core spends.

    ``packet`` per frame, ``byte`` per byte of it (FCS not counted), ``input`` per frame in the input node, ``call`` per
    round of the graph, shared by the frames of a vector. ``shared``: more per frame for each Mpps of the router, where
    cores wait for each other (locks, buffers). ``duplex``: more per frame for each (Mpps)² that is carried in both
    directions at once, where reads and writes of memory contend.

    ``locks``: all that a frame needs, one after the other; ``layer``: per virtual interface that a frame passes, one
    for each VLAN tag; ``ipv6``: what share more of ``packet`` IPv6 costs. ``crossing``: per frame whose sending queue
    belongs to another core than its receive queue, ``crossing_far`` where those cores are on more than one socket.
    """

    packet: Positive
    byte: NotNegative = 0.0
    input: NotNegative = 0.0
    call: NotNegative = 0.0
    shared: NotNegative = 0.0
    duplex: NotNegative = 0.0
    locks: tuple[Lock, ...] = ()
    layer: NotNegative = 0.0
    ipv6: NotNegative = 0.0
    crossing: NotNegative = 0.0
    crossing_far: NotNegative = 0.0
