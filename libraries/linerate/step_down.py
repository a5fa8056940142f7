"""Traffic whose load goes down while it runs, and what its counts tell of when the router lost its last frame.

RFC 2544 26.5, system recovery. The generator's own count of sent frames is the clock: at a known rate it tells the
time since the change, on any bench, however fast that bench's clock runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from .trial import Load, Outcome

TAIL = 0.25
"""The share of the samples, the last ones, that tell where the loss levelled off."""

LEAST = 12
"""Samples without which nothing is told."""

RUN = 3
"""Samples in a row that must be level before the loss counts as ended."""

BLUR = 4.0
"""Times that the usual difference between two samples must be exceeded before it counts as a change."""


@dataclass(frozen=True, slots=True)
class Span:
    """A time in s that is known to lie within ``low`` … ``high`` (infinite: no end of it was seen)."""

    low: float
    high: float

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"more than {self.low:.3g} s"
        if self.low <= 0:
            return f"at most {self.high:.3g} s"
        return f"{self.low:.3g} to {self.high:.3g} s"


@dataclass(frozen=True, slots=True)
class Moment:
    """Frames offered and forwarded since the start, of each direction, as they stood at one moment."""

    offered: tuple[int, ...]
    forwarded: tuple[int, ...]

    def missing(self, way: int) -> int:
        """Frames of a direction that are lost or under way."""
        return self.offered[way] - self.forwarded[way]


@dataclass(frozen=True, slots=True)
class StepDown:
    """Traffic at one load, then at the lower ``second``, without a pause.

    ``outcome``: the counts of the whole, after the drain. The load changed between ``before`` and ``after``;
    ``samples`` were read after that, in order, until the end. ``sent``: frames/s that the sending ports surely sent at
    least, and at most, in the second phase, as the bench's clock tells it.
    """

    outcome: Outcome
    second: Load
    before: Moment
    after: Moment
    samples: tuple[Moment, ...]
    sent: tuple[float, float] = (0.0, math.inf)

    def overloaded(self, way: int) -> float:
        """The share (0..1) of a direction's frames of the first phase that the router lost."""
        whole = self.outcome.directions[way]
        offered = self.after.offered[way]
        return min(self.after.missing(way), whole.lost) / offered if offered else 0.0

    def blur(self, way: int) -> float:
        """Frames by which a direction's missing frames differ without meaning: under way, or counted a little later."""
        tail = self._tail([moment.missing(way) for moment in self.samples])
        return BLUR * median(abs(later - earlier) for earlier, later in pairwise(tail)) + 1

    def recovery(self, way: int, tolerance: float = 0.005) -> Span | None:
        """When the last frame of a direction was lost, in s since the change; None where there are too few samples.

        Missing frames (sent less received) are lost or under way. Where fewer are missing than in the end, some were
        lost later: that is ``low``, and two samples in a row must say so. From where as many are missing as in the
        end, RUN samples in a row, none was: that is ``high``. *tolerance*: by how much (0..1) the rate sent may differ
        from the rate asked for. Loss of fewer frames than :meth:`blur` cannot be seen.
        """
        if len(self.samples) < LEAST:
            return None
        missing = [moment.missing(way) for moment in self.samples]
        blur, level = self.blur(way), median(self._tail(missing)[-LEAST // 2 :])
        less = [count < level - blur for count in missing]
        sure = [index for index in range(len(less) - 1) if less[index] and less[index + 1]]
        low = self._since(self.samples[sure[-1] + 1], way)[0] / (1 + tolerance) if sure else 0.0
        first = max((index + 1 for index, item in enumerate(less) if item), default=0)
        flat = [abs(count - level) <= blur for count in missing]
        runs = (index for index in range(first, len(flat) - RUN + 1) if all(flat[index : index + RUN]))
        settled = next(runs, None)
        high = math.inf if settled is None else self._since(self.samples[settled], way)[1] / (1 - tolerance)
        return Span(max(0.0, low), high)

    def _tail(self, missing: Sequence[int]) -> Sequence[int]:
        return missing[-max(LEAST // 2, round(TAIL * len(missing))) :]

    def _since(self, moment: Moment, way: int) -> tuple[float, float]:
        """Seconds since the change, at least and at most, by the frames sent meanwhile."""
        sent, rate = moment.offered[way], self.second.pps
        return (sent - self.after.offered[way]) / rate, (sent - self.before.offered[way]) / rate
