"""Traffic whose load goes down while it runs, and when the router lost its last frame.

RFC 2544 26.5, system recovery. The generator's count of sent frames is the clock: at a known rate it gives the time
since the change on every testbed, however fast its clock runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from .trial import Load, Outcome

TAIL_SHARE = 0.25
"""Share of the samples, the last ones, that define the final level of missing frames."""

MIN_SAMPLES = 12
"""Fewer samples prove nothing."""

LEVEL_SAMPLES = 3
"""Consecutive samples at the final level before the loss counts as ended."""

READ_SKEW_SECONDS = 0.001
"""Seconds by which a generator may read the counts of one port later than those of another."""

SPREAD_FACTOR = 4.0
"""A difference between two samples is a change where it exceeds the usual one by this factor."""


@dataclass(frozen=True, slots=True)
class TimeBounds:
    """A time in s that lies within ``low`` … ``high`` (infinite: its end was not seen)."""

    low: float
    high: float

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"more than {self.low:.3g} s"
        if self.low <= 0:
            return f"at most {self.high:.3g} s"
        return f"{self.low:.3g} to {self.high:.3g} s"


@dataclass(frozen=True, slots=True)
class CountSnapshot:
    """Frames of each direction, offered and forwarded since the start, at one moment."""

    offered: tuple[int, ...]
    forwarded: tuple[int, ...]

    def missing(self, direction: int) -> int:
        """Frames of a direction that are lost or under way."""
        return self.offered[direction] - self.forwarded[direction]


@dataclass(frozen=True, slots=True)
class StepDown:
    """Traffic at one load, then at the lower ``second``, without a pause.

    ``outcome``: all counts, after the drain. The load changed between ``before`` and ``after``; ``samples`` follow in
    order, until the end. ``sent``: least and greatest frames/s of the sending ports in the second phase, by the
    testbed's clock.
    """

    outcome: Outcome
    second: Load
    before: CountSnapshot
    after: CountSnapshot
    samples: tuple[CountSnapshot, ...]
    sent: tuple[float, float] = (0.0, math.inf)

    def overload_loss_ratio(self, direction: int) -> float:
        """Loss ratio (0..1) of a direction in the first phase."""
        whole = self.outcome.directions[direction]
        offered = self.after.offered[direction]
        return min(self.after.missing(direction), whole.lost) / offered if offered else 0.0

    def undetectable_loss(self, direction: int) -> float:
        """Frames of a direction whose loss cannot be seen: they may be under way, or counted later."""
        return self._level_bounds(direction)[0] if len(self.samples) >= MIN_SAMPLES else math.nan

    def recovery(self, direction: int, tolerance: float = 0.005) -> TimeBounds | None:
        """When the last frame of a direction was lost, in s since the change; None: too few samples.

        Missing frames (sent less received) are lost or under way. ``low``: the last time that two consecutive samples
        miss clearly fewer frames than at the end, so more were lost later. ``high``: the first time from which
        LEVEL_SAMPLES samples miss as many as at the end, so no more than :meth:`undetectable_loss` were lost later.
        *tolerance*: ratio (0..1) by which the rate sent may differ from the intended one.
        """
        if len(self.samples) < MIN_SAMPLES:
            return None
        missing = [sample.missing(direction) for sample in self.samples]
        level_bound, change_bound = self._level_bounds(direction)
        level = median(self._tail(missing)[-MIN_SAMPLES // 2 :])
        lower = [count < level - change_bound for count in missing]
        losing = [index + 1 for index in range(len(lower) - 1) if lower[index] and lower[index + 1]]
        low = self._seconds_since_change(losing[-1], direction)[0] / (1 + tolerance) if losing else 0.0
        first = max((index + 1 for index, count in enumerate(missing) if count < level - level_bound), default=0)
        flat = [abs(count - level) <= level_bound for count in missing]
        last = len(flat) - LEVEL_SAMPLES + 1
        settled = next((index for index in range(first, last) if all(flat[index : index + LEVEL_SAMPLES])), None)
        high = math.inf if settled is None else self._seconds_since_change(settled, direction)[1] / (1 - tolerance)
        return TimeBounds(max(0.0, low), high)

    def _level_bounds(self, direction: int) -> tuple[float, float]:
        """Differences in frames: up to the first, two counts are at one level; above the second, certainly not.

        Both come from the last samples. Their median growth is steady loss and is subtracted; the rest is noise.
        """
        tail = self._tail([sample.missing(direction) for sample in self.samples])
        changes = [later - earlier for earlier, later in pairwise(tail)]
        growth = median(changes)
        spread = median(abs(change - growth) for change in changes)
        level_bound = max(SPREAD_FACTOR * spread, READ_SKEW_SECONDS * self.second.pps) + 1
        noise = [count - growth * index for index, count in enumerate(tail)]
        return level_bound, level_bound + 2 * (max(noise) - min(noise))

    def _tail(self, missing: Sequence[int]) -> Sequence[int]:
        return missing[-max(MIN_SAMPLES // 2, round(TAIL_SHARE * len(missing))) :]

    def _seconds_since_change(self, sample: int, direction: int) -> tuple[float, float]:
        """Least and greatest seconds from the change to a sample, by the frames sent since."""
        sent, rate = self.samples[sample].offered[direction], self.second.pps
        return (sent - self.after.offered[direction]) / rate, (sent - self.before.offered[direction]) / rate
