"""How long sentences take: seconds of traffic that a verdict needs, at least, when all goes well, and at most."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..sla.goals import Goal
from .sequential import most_trials

PER_TRIAL = 0.1
"""Seconds of the wall that a trial takes beyond its traffic, about (``study overhead``); 2 s more where frames miss."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds of traffic on the testbed's clock, warm-up included, and the number of trials."""

    least: float
    """Until a clear fail."""
    passing: float
    """Until a PASS without a bad trial."""
    most: float
    trials: int
    """Until that PASS, warm-up included."""

    @classmethod
    def of(cls, goal: Goal, warm_up: float) -> Budget:
        """What one sentence takes under *goal* (as it is at the sentence's load)."""
        trial = goal.final_trial_duration
        share = 1.0 if goal.whole else 1 - goal.exceed_ratio
        good = -(-share * goal.duration_sum // trial)
        forgiven = (goal.exceed_ratio * goal.duration_sum + 1e-9) // trial
        soonest = goal.scout or (trial if goal.clear_loss_ratio is not None else (forgiven + 1) * trial)
        return cls(
            least=warm_up + soonest,
            passing=warm_up + goal.scout + good * trial,
            most=warm_up + goal.scout + (most_trials(goal) - bool(goal.scout)) * trial,
            trials=int(good) + bool(goal.scout) + bool(warm_up),
        )

    def wall(self, clock_speed: float) -> float:
        """Seconds of the wall until a PASS."""
        return self.passing / clock_speed + self.trials * PER_TRIAL


def total(budgets: Iterable[Budget]) -> Budget:
    """All of them, one after the other."""
    rows = list(budgets)
    return Budget(
        sum(row.least for row in rows),
        sum(row.passing for row in rows),
        sum(row.most for row in rows),
        sum(row.trials for row in rows),
    )


def clock(seconds: float) -> str:
    """Seconds as people say them: ``48 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    minutes = round(whole / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"
