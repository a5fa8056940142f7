"""Frames that no trial sent: spanning tree, ARP, LLDP. How many come is measured while nothing is sent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .group_frames import group_frames
from .trial import DirectionCount, Outcome

IDLE_SECONDS = 4.0
"""How long nothing is sent, in s of the testbed's clock: two of spanning tree's hellos (IEEE 802.1D: 2 s)."""

RECEIVED_AROUND = "received_around."
"""Readings of a trial: frames that a port received while its card's own counters grew, which are read outside."""

LARGEST_GROUP_SHARE = 0.5
"""Where more of the received frames than this share go to a group, they are those that were sent (multicast)."""


@dataclass(frozen=True, slots=True)
class Heard:
    """``frames`` that a port received in a time in which the generator sent nothing; ``kept``: some, without FCS.

    ``group_frames``: those to a group of receivers, as its card counts them.
    """

    frames: int
    kept: tuple[bytes, ...] = ()
    group_frames: int = 0


@dataclass(frozen=True, slots=True)
class ForeignFrames:
    """Frames ``received`` by port in ``seconds`` in which the generator sent nothing.

    ``overcounting``: ports whose card counts frames to a group also where it then drops them: its count is of no use.
    """

    received: Mapping[int, int] = field(default_factory=dict)
    seconds: float = IDLE_SECONDS
    overcounting: frozenset[int] = frozenset()

    @classmethod
    def of(cls, heard: Mapping[int, Heard]) -> ForeignFrames:
        """From what came in IDLE_SECONDS."""
        # the card's counters are read a little earlier and later than the others
        over = frozenset(port for port, one in heard.items() if one.group_frames > one.frames + 1)
        return cls({port: one.frames for port, one in heard.items()}, overcounting=over)

    def budget(self, port: int, seconds: float) -> int:
        """The most such frames that are expected at *port* in so many *seconds*; 0 where none came.

        Of a period *p* at least ``floor(T / p)`` frames come in *T* s and at most ``floor(T / p) + 1``, whenever it
        begins; so *n* frames in *T* s are the least of any period above ``T / (n + 1)``.
        """
        found = self.received.get(port, 0)
        return math.floor((found + 1) / self.seconds * seconds) + 1 if found else 0

    def with_budgets(self, outcome: Outcome) -> Outcome:
        """*outcome* with the budget of each direction, for the s in which its frames were counted.

        Where the card of a port counted frames to a group meanwhile, these are foreign ones in any case.
        """
        readings = outcome.readings
        seconds = max(outcome.duration, outcome.elapsed + readings.get("elapsed_uncertainty", 0.0))
        seconds += readings.get("drain", 0.0)
        rows = tuple(
            replace(row, foreign=max(self._group_frames(row, readings), self.budget(row.rx_port, seconds)))
            for row in outcome.directions
        )
        return replace(outcome, directions=rows)

    def _group_frames(self, row: DirectionCount, readings: Mapping[str, float]) -> int:
        """Return those of a trial at the receiving port of *row*; 0 where they are not known, or are what was sent."""
        if row.rx_port in self.overcounting:
            return 0
        start = f"card.{row.rx_port}."
        found = group_frames({name.removeprefix(start): n for name, n in readings.items() if name.startswith(start)})
        return found if found < LARGEST_GROUP_SHARE * row.forwarded else 0

    def __str__(self) -> str:
        found = {port: count for port, count in self.received.items() if count}
        if not found:
            return f"no frame came in {self.seconds:g} s without traffic"
        rows = ", ".join(f"{count} at port {port}" for port, count in found.items())
        return f"frames of other origin came in {self.seconds:g} s without traffic: {rows}"
