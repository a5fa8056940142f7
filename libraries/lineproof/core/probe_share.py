"""The base of quantities that are a share of the probe frames: out of order, copied … A subclass counts them.

Of *n* probe frames that a trial sent *k* are concerned: a sample of all frames, so its share has exact binomial bounds.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import partial

from .bounds import UNKNOWN, Bounds, Limit, highest_share
from .doubts import AT_THE_EXACT_LOAD, foreign_frames, spared_probes
from .goal import Goal
from .latency import LatencyCount
from .phrases import percent, proven
from .quantity import Promise, Quantity, Reason, Requirement
from .rule import Ruling
from .trial import DirectionCount, Trial
from .units import Unit


class ShareOfProbes(Quantity):
    """A share, 0 to 1, of the probe frames of each direction; ``happened`` says in words what happened to them.

    A probe frame that was lost, or not sent, may have been one of them: it moves the worse end. The better end is moved
    by as large a share as the testbed may have cost of the frames.
    """

    units = (Unit.PERCENT,)
    needs = frozenset({"load", "probes"})
    has_total = False
    doubts = (*AT_THE_EXACT_LOAD, foreign_frames, spared_probes)
    scale = 100.0
    happened: str

    @abstractmethod
    def count(self, probes: LatencyCount) -> int:
        """Return how many of the *probes* of a trial and direction are concerned."""

    def may_count(self, probes: LatencyCount, seconds: float) -> int:
        """Return how many more of the *probes* of so many *seconds* may be concerned: those that were lost."""
        return max(0, probes.lost)

    def limit(self, requirement: Requirement, goal: Goal, link_bps: float) -> Limit:
        """Return the promised share."""
        return Limit(requirement.threshold.number / 100)

    def probes(self, requirement: Requirement, error: float) -> float:
        """Return how many probe frames a trial needs to show so small a share; infinite for none at all."""
        share = requirement.threshold.number / 100
        if not 0 < share < 1:
            return 1 if share else math.inf
        return math.ceil(math.log(error) / math.log1p(-share))

    def figures(self, promise: Promise, trials: Sequence[Trial], perfect: int = 0) -> tuple[Bounds, ...]:
        """Return the share of each direction."""
        goal = promise.goal
        errors = (goal.risk / max(1, promise.soak),) * 2
        if len(trials) == 1 and not perfect and goal.good_share and goal.bad_share:
            errors = goal.good_share, 1 - goal.bad_share
        columns = zip(*(trial.outcome.directions for trial in trials), strict=True)
        return tuple(self._share(list(zip(trials, column, strict=True)), perfect, *errors) for column in columns)

    def _share(
        self, rows: Sequence[tuple[Trial, DirectionCount]], perfect: int, low_error: float, high_error: float
    ) -> Bounds:
        most = certain = sent = unseen = 0.0
        for trial, row in rows:
            probes, hidden = trial.probes(row), trial.hidden(row)
            if probes is None or probes.sent <= 0 or math.isinf(hidden):
                return UNKNOWN
            seen, offered = self.count(probes), max(1, row.offered)
            most += seen + self.may_count(probes, trial.seconds.high)
            # other frames that were lost, not seen, or treated otherwise than the probe frames are none of the sample
            besides = max(0.0, probes.sent * (hidden / offered + row.loss_ratio) - max(0, probes.lost))
            unseen += probes.sent if trial.spares_probes(row) else besides
            certain += max(0.0, seen - probes.sent * min(1.0, trial.cost(row) / offered))
            sent += probes.sent
        whole = round(sent * (1 + perfect / len(rows)))
        low = 1 - highest_share(whole - min(whole, math.floor(certain)), whole, low_error)
        high = highest_share(min(whole, round(most)), whole, high_error) + unseen / whole
        return Bounds(low, max(low, min(1.0, high)))

    def reason(self, promise: Promise, ruling: Ruling, trials: Sequence[Trial]) -> Reason:
        """Return the share, and the probe frames that show it."""
        counts = [count for trial in trials for count in trial.outcome.latency]
        seen, sent = sum(map(self.count, counts)), sum(count.sent for count in counts)
        share = proven(promise.worst(trials), ruling, promise.limit, partial(percent, limit=promise.limit.value))
        return Reason(f"{share} {self.happened}: {seen:,} of {sent:,} probe frames")

    def plain(self, promise: Promise, figure: str, load: str) -> str:
        """Return what happens to how many frames."""
        return f"Of the frames, {load}, {figure} {self.happened}."
