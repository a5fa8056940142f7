"""Frames that no trial sent: spanning tree, ARP, LLDP. How many come is measured while nothing is sent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .trial import Outcome

IDLE_SECONDS = 4.0
"""How long nothing is sent, in s of the testbed's clock: two of spanning tree's hellos (IEEE 802.1D: 2 s)."""


@dataclass(frozen=True, slots=True)
class Heard:
    """``frames`` that a port received in a time in which the generator sent nothing; ``kept``: some, without FCS."""

    frames: int
    kept: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class ForeignFrames:
    """Frames ``received`` by port in ``seconds`` in which the generator sent nothing."""

    received: Mapping[int, int] = field(default_factory=dict)
    seconds: float = IDLE_SECONDS

    def budget(self, port: int, seconds: float) -> int:
        """The most such frames that are expected at *port* in so many *seconds*; 0 where none came.

        Of a period *p* at least ``floor(T / p)`` frames come in *T* s and at most ``floor(T / p) + 1``, whenever it
        begins; so *n* frames in *T* s are the least of any period above ``T / (n + 1)``.
        """
        found = self.received.get(port, 0)
        return math.floor((found + 1) / self.seconds * seconds) + 1 if found else 0

    def with_budgets(self, outcome: Outcome) -> Outcome:
        """*outcome* with the budget of each direction, for the s in which its frames were counted."""
        if not any(self.received.values()):
            return outcome
        readings = outcome.readings
        seconds = max(outcome.duration, outcome.elapsed + readings.get("elapsed_uncertainty", 0.0))
        seconds += readings.get("drain", 0.0)
        rows = tuple(replace(row, foreign=self.budget(row.rx_port, seconds)) for row in outcome.directions)
        return replace(outcome, directions=rows)

    def __str__(self) -> str:
        found = {port: count for port, count in self.received.items() if count}
        if not found:
            return f"no frame came in {self.seconds:g} s without traffic"
        rows = ", ".join(f"{count} at port {port}" for port, count in found.items())
        return f"frames of other origin came in {self.seconds:g} s without traffic: {rows}"
