"""Traffic whose load changes while it runs, and when a router lost its last frame after the load went down.

RFC 2544 26.5, system recovery. The generator's count of sent frames is the clock: at a known rate it gives the time
since the change on every testbed, however fast its clock runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean, median

from .bounds import Bounds
from .json_types import OpenEnd
from .trial import Load, Outcome

TAIL_SHARE = 0.25
"""Share of the samples, the last ones, that define the final level of missing frames."""

MIN_SAMPLES = 12
"""Fewer samples prove nothing."""

LEVEL_SAMPLES = 3
"""Consecutive samples at the final level before the loss counts as ended."""

READ_SKEW_SECONDS = 0.001
"""Seconds by which a generator may read the counts of one port later than those of another."""

REDUCED_LOAD_SHARE = 0.5
"""The load after the overload, as a share of it (RFC 2544 26.5)."""

OVERLOAD_LOSS_RATIO = 0.01
"""A router that loses a smaller ratio of its frames in the first phase is not overloaded."""

RATE_TOLERANCE = 0.005
"""Ratio by which the rate sent may differ from the reduced load, whose count of frames is the clock."""

SPREAD_FACTOR = 4.0
"""A difference between two samples is a change where it exceeds the usual one by this factor."""


@dataclass(frozen=True, slots=True)
class CountSnapshot:
    """Frames of each direction, offered and forwarded since the start, at one moment."""

    offered: tuple[int, ...]
    forwarded: tuple[int, ...]

    def missing(self, direction: int) -> int:
        """Return the frames of a direction that are lost or under way."""
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
    sent: tuple[OpenEnd, OpenEnd] = (0.0, math.inf)

    def overload_loss_ratio(self, direction: int) -> float:
        """Return the loss ratio (0..1) of a direction in the first phase."""
        whole = self.outcome.directions[direction]
        offered = self.after.offered[direction]
        return min(self.after.missing(direction), whole.lost) / offered if offered else 0.0

    @property
    def is_timed(self) -> bool:
        """Return whether the generator sent at the reduced load, so that its count of frames is a clock."""
        least, most = self.sent
        return least / (1 + RATE_TOLERANCE) <= self.second.pps <= most / (1 - RATE_TOLERANCE)

    def undetectable_loss(self, direction: int) -> float:
        """Return the frames of a direction whose loss cannot be seen: they may be under way, or counted later."""
        return self._level_bounds(direction)[1] if len(self.samples) >= MIN_SAMPLES else math.nan

    def recovery(self, direction: int) -> Bounds | None:
        """When the last frame of a direction was lost, in s since the change; None: too few samples.

        Missing frames (sent less received) are lost or under way; after the drain all of them are lost. ``low``: the
        last time that two consecutive samples miss clearly fewer frames than were lost in the end, so more were lost
        later. ``high``: the first time from which LEVEL_SAMPLES samples miss as many as the last ones, but for noise:
        no buffer drains, and no frame is lost any more. What a late reading may be wrong by, it is wrong by once: it
        does not add up to steady loss. Frames that are lost besides make neither bound earlier.
        """
        if len(self.samples) < MIN_SAMPLES:
            return None
        missing, lost = self._missing(direction), self.outcome.directions[direction].lost
        noise, level_bound, change_bound = self._level_bounds(direction)
        level = median(self._tail(missing)[-MIN_SAMPLES // 2 :])
        lower = [count < lost - change_bound for count in missing]
        losing = [index + 1 for index in range(len(lower) - 1) if lower[index] and lower[index + 1]]
        low = self._seconds_since_change(losing[-1], direction)[0] / (1 + RATE_TOLERANCE) if losing else 0.0
        runs = [missing[index : index + LEVEL_SAMPLES] for index in range(len(missing) - LEVEL_SAMPLES + 1)]
        unsettled = [index + 1 for index, count in enumerate(missing) if count < lost - level_bound]
        unsettled += [at + 1 for at, run in enumerate(runs) if max(run) < level - noise or min(run) > level + noise]
        first = max(unsettled, default=0)
        flat = [all(abs(count - level) <= noise for count in run) for run in runs]
        settled = next((index for index in range(first, len(runs)) if flat[index]), None)
        high = math.inf if settled is None else self._seconds_since_change(settled, direction)[1] / (1 - RATE_TOLERANCE)
        return Bounds(max(0.0, low), max(0.0, low, high))

    def lost_after(self, seconds: float, direction: int) -> float:
        """Return the frames of a direction that were certainly lost later than *seconds* after the change.

        Certain: beyond what the counts leave open (:meth:`undetectable_loss`).
        """
        times = (self._seconds_since_change(index, direction)[0] for index in range(len(self.samples)))
        first = next((index for index, time in enumerate(times) if time / (1 + RATE_TOLERANCE) >= seconds), None)
        if first is None or len(self.samples) < MIN_SAMPLES:
            return 0.0
        missing, whole = self._missing(direction)[first:], self.outcome.directions[direction]
        runs = [
            max(missing[index : index + LEVEL_SAMPLES]) for index in range(max(1, len(missing) - LEVEL_SAMPLES + 1))
        ]
        lost = whole.lost - min(runs) - self.undetectable_loss(direction)
        return max(0.0, lost)

    def _missing(self, direction: int) -> list[int]:
        return [sample.missing(direction) for sample in self.samples]

    def _level_bounds(self, direction: int) -> tuple[float, float, float]:
        """Return differences in frames: the noise between readings; what one reading may lack of all; a certain change.

        Both come from the decreases among the last samples: loss only makes missing frames more, the rest is noise. So
        a router that loses more does not blur its own counts.
        """
        tail = self._tail(self._missing(direction))
        decreases = [max(0, earlier - later) for earlier, later in pairwise(tail)]
        # noise goes down as often as up
        noise = SPREAD_FACTOR * 2 * fmean(decreases) + 1
        level_bound = max(noise, READ_SKEW_SECONDS * self.second.pps + 1)
        drops = (high - count for high, count in zip(accumulate(tail, max), tail, strict=True))
        return noise, level_bound, level_bound + 2 * max(drops)

    def _tail(self, missing: Sequence[int]) -> Sequence[int]:
        return missing[-max(MIN_SAMPLES // 2, round(TAIL_SHARE * len(missing))) :]

    def _seconds_since_change(self, sample: int, direction: int) -> tuple[float, float]:
        """Least and greatest seconds from the change to a sample, by the frames sent since."""
        sent, rate = self.samples[sample].offered[direction], self.second.pps
        return (sent - self.after.offered[direction]) / rate, (sent - self.before.offered[direction]) / rate
