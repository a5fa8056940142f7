"""``reorders ≤ 0.01% at 1 Mpps``: the share of frames that arrive behind a later one (RFC 4737 3, Type-P-Reordered)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...core.binomial import highest_share
from ...core.bounds import UNKNOWN, Bounds, Limit
from ...core.doubts import AT_THE_LOAD
from ...core.goal import Goal
from ...core.phrases import percent, percent_bounds, proven
from ...core.quantity import Promise, Quantity, Reason, Requirement
from ...core.rule import Ruling
from ...core.trial import Trial
from ...core.units import Unit


class Reordering(Quantity):
    """The share of probe frames out of order, of each direction, 0 to 1: that of a sample, so with binomial bounds."""

    name = "reorders"
    word = "reorders"
    units = (Unit.PERCENT,)
    needs = frozenset({"load", "probes"})
    has_total = False
    doubts = AT_THE_LOAD
    title = "Reordered frames"
    example = "reorders ≤ 0.01% at 1 Mpps"

    def limit(self, requirement: Requirement, goal: Goal, link_bps: float) -> Limit:
        """Return the promised share."""
        return Limit(requirement.threshold.number / 100)

    def probes(self, requirement: Requirement, error: float) -> float:
        """Return the probe frames of a trial that can show so small a share; infinite for none at all."""
        share = requirement.threshold.number / 100
        if not 0 < share < 1:
            return 1 if share else math.inf
        return math.ceil(math.log(error) / math.log1p(-share))

    def figures(self, promise: Promise, trials: Sequence[Trial], perfect: int = 0) -> tuple[Bounds, ...]:
        """Return the share of each direction. A probe frame that was lost or not sent may have been out of order."""
        goal = promise.goal
        single = len(trials) == 1 and not perfect
        low_error = goal.good_share if single and goal.good_share else goal.risk / max(1, promise.soak)
        high_error = 1 - goal.bad_share if single and goal.bad_share else goal.risk / max(1, promise.soak)
        shares = []
        for column in zip(*(trial.outcome.directions for trial in trials), strict=True):
            rows = list(zip(trials, column, strict=True))
            counts = [count for trial, row in rows if (count := trial.probes(row)) is not None and count.sent > 0]
            if len(counts) < len(rows) or any(math.isinf(trial.hidden(row)) for trial, row in rows):
                shares.append(UNKNOWN)
                continue
            sent = round(sum(count.sent for count in counts) * (1 + perfect / len(trials)))
            late = min(sent, sum(count.out_of_order for count in counts))
            excused = sum(
                min(count.out_of_order, count.sent * min(1.0, trial.cost(row) / max(1, row.offered)))
                for count, (trial, row) in zip(counts, rows, strict=True)
            )
            unsent = sum(
                count.sent * trial.hidden(row) / max(1, row.offered)
                for count, (trial, row) in zip(counts, rows, strict=True)
            )
            most = min(sent, math.ceil(late + sum(max(0, count.lost) for count in counts) + unsent))
            certain = max(0, late - math.ceil(excused))
            low = 1 - highest_share(sent - certain, sent, low_error)
            shares.append(Bounds(low, max(low, highest_share(most, sent, high_error))))
        return tuple(shares)

    def shown(self, promise: Promise, trials: Sequence[Trial]) -> Bounds:
        """Return the share of the worst direction in per cent."""
        worst = super().shown(promise, trials)
        return Bounds(100 * worst.low, 100 * worst.high)

    def reason(self, promise: Promise, ruling: Ruling, trials: Sequence[Trial]) -> Reason:
        """Return the share, and the probe frames that show it."""
        figures = promise.figures(trials)
        worst = Bounds(max(item.low for item in figures), max(item.high for item in figures))
        counts = [count for trial in trials for count in trial.outcome.latency]
        late, sent = sum(count.out_of_order for count in counts), sum(count.sent for count in counts)
        share = proven(worst, ruling, promise.limit, percent, percent_bounds)
        return Reason(f"{share} out of order: {late} of {sent} probe frames came behind a later one")

    def plain(self, promise: Promise, figure: str, load: str) -> str:
        """Return how many frames change places."""
        return f"The router, {load}, delivers {figure} of the frames behind a later one."


REORDERING = Reordering()
