"""Traffic whose load goes down while it runs, and what its counts tell of when the router lost its last frame.

RFC 2544 26.5, system recovery. The generator's own count of sent frames is the clock: at a known rate it tells the
time since the change, on any testbed, however fast that testbed's clock runs.
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

SKEW = 0.001
"""Seconds by which a generator may read the counts of one port later than those of another."""

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

    def missing(self, direction: int) -> int:
        """Frames of a direction that are lost or under way."""
        return self.offered[direction] - self.forwarded[direction]


@dataclass(frozen=True, slots=True)
class StepDown:
    """Traffic at one load, then at the lower ``second``, without a pause.

    ``outcome``: the counts of the whole, after the drain. The load changed between ``before`` and ``after``;
    ``samples`` were read after that, in order, until the end. ``sent``: frames/s that the sending ports surely sent at
    least, and at most, in the second phase, as the testbed's clock tells it.
    """

    outcome: Outcome
    second: Load
    before: Moment
    after: Moment
    samples: tuple[Moment, ...]
    sent: tuple[float, float] = (0.0, math.inf)

    def overloaded(self, direction: int) -> float:
        """The share (0..1) of a direction's frames of the first phase that the router lost."""
        whole = self.outcome.directions[direction]
        offered = self.after.offered[direction]
        return min(self.after.missing(direction), whole.lost) / offered if offered else 0.0

    def blur(self, direction: int) -> float:
        """Frames of a direction whose loss cannot be seen: they may be under way, or counted a little later."""
        return self._blurs(direction)[0] if len(self.samples) >= LEAST else math.nan

    def recovery(self, direction: int, tolerance: float = 0.005) -> Span | None:
        """When the last frame of a direction was lost, in s since the change; None where there are too few samples.

        Missing frames (sent less received) are lost or under way. Where fewer are missing than in the end, some were
        lost later: that is ``low``, where two samples in a row say so, by more than all that such counts ever differed
        in the end. From where as many are missing as in the end, RUN samples in a row, none was lost (but for less than
        the :meth:`blur`): that is ``high``. *tolerance*: by how much (0..1) the rate sent may differ from the rate
        asked for.
        """
        if len(self.samples) < LEAST:
            return None
        missing = [moment.missing(direction) for moment in self.samples]
        fine, coarse = self._blurs(direction)
        level = median(self._tail(missing)[-LEAST // 2 :])
        far = [count < level - coarse for count in missing]
        sure = [index + 1 for index in range(len(far) - 1) if far[index] and far[index + 1]]
        low = self._since(self.samples[sure[-1]], direction)[0] / (1 + tolerance) if sure else 0.0
        first = max((index + 1 for index, count in enumerate(missing) if count < level - fine), default=0)
        flat = [abs(count - level) <= fine for count in missing]
        runs = (index for index in range(first, len(flat) - RUN + 1) if all(flat[index : index + RUN]))
        settled = next(runs, None)
        high = math.inf if settled is None else self._since(self.samples[settled], direction)[1] / (1 - tolerance)
        return Span(max(0.0, low), high)

    def _blurs(self, direction: int) -> tuple[float, float]:
        """Frames within which counts are level, and beyond which they surely are not.

        From the differences between one sample and the next in the end, about their median: what grows steadily is
        loss. The second is twice the range of all that is no steady growth.
        """
        tail = self._tail([moment.missing(direction) for moment in self.samples])
        changes = [later - earlier for earlier, later in pairwise(tail)]
        usual = median(changes)
        fine = max(BLUR * median(abs(change - usual) for change in changes), SKEW * self.second.pps) + 1
        rest = [count - usual * index for index, count in enumerate(tail)]
        return fine, fine + 2 * (max(rest) - min(rest))

    def _tail(self, missing: Sequence[int]) -> Sequence[int]:
        return missing[-max(LEAST // 2, round(TAIL * len(missing))) :]

    def _since(self, moment: Moment, direction: int) -> tuple[float, float]:
        """Seconds since the change, at least and at most, by the frames sent meanwhile."""
        sent, rate = moment.offered[direction], self.second.pps
        return (sent - self.after.offered[direction]) / rate, (sent - self.before.offered[direction]) / rate
