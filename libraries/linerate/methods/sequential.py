"""Trials at one load until the goal's rule decides."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from ..counts.trial import Load, Measure, Tolerance, Trial, assess_trial
from ..sla.goals import Goal
from ..sla.verdict import EvidenceRule, Ruling, Tally, Weighing


@dataclass(frozen=True, slots=True)
class TrialConditions:
    """The settings of every trial of a requirement. ``on_trial`` is called after each trial, before the next."""

    tolerance: Tolerance = field(default_factory=Tolerance)
    clock_speed: float = 1.0
    on_trial: Callable[[Trial, Tally], None] = lambda trial, so_far: None


def run_until_decided(
    measure: Measure, load: Load, goal: Goal, evidence_of: EvidenceRule, conditions: TrialConditions, scout: float = 0.0
) -> tuple[Ruling, tuple[Trial, ...]]:
    """Repeat trials of the goal's duration at *load* until they prove a ruling.

    *scout*: s of a shorter first trial, which *evidence_of* recognises by its duration (0: none). The number of trials
    is bounded (:func:`most_trials`). Exceptions of *measure* pass through, after ``on_trial`` of the finished trials.
    """
    trials: list[Trial] = []
    weighing = Weighing(goal, evidence_of)
    while True:
        outcome = measure(load, goal.final_trial_duration if trials or not scout else scout)
        trial = assess_trial(len(trials) + 1, outcome, conditions.tolerance, conditions.clock_speed)
        trials.append(trial)
        weighing.add(trial)
        conditions.on_trial(trial, weighing.tally)
        if (ruling := weighing.ruling) is not None:
            return ruling, tuple(trials)


def most_trials(goal: Goal) -> int:
    """The largest number of trials, scout included, until a ruling, if no trial is TOO_COARSE."""
    good = math.ceil((1 - goal.exceed_ratio) * goal.duration_sum / goal.final_trial_duration - 1e-6)
    allowed_bad = math.floor(goal.exceed_ratio * goal.duration_sum / goal.final_trial_duration + 1e-6)
    whole = math.ceil(goal.duration_sum / goal.final_trial_duration - 1e-6) if goal.whole else 0
    # one less than decides, of each kind, and the trial that decides
    return bool(goal.scout) + max(good - 1 + allowed_bad, whole - 1) + goal.invalid_trials + 1
