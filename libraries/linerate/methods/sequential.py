"""Trials at one load until the goal's rule decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..counts.trial import Load, Measure, Tolerance, Trial, assess_trial
from ..sla.goals import Goal
from ..sla.verdict import EvidenceRule, Ruling, Tally, Weighing, weigh


@dataclass(frozen=True, slots=True)
class TrialConditions:
    """The settings of every trial of a requirement. ``on_trial`` is called after each trial, before the next."""

    tolerance: Tolerance = field(default_factory=Tolerance)
    clock_speed: float = 1.0
    on_trial: Callable[[Trial, Tally], None] = lambda trial, so_far: None


def run_until_decided(
    measure: Measure,
    load: Load,
    goal: Goal,
    evidence_of: EvidenceRule,
    conditions: TrialConditions,
    scout: float = 0.0,
    keeps: Callable[[Sequence[Trial]], bool] = lambda trials: True,
) -> tuple[Ruling, tuple[Trial, ...]]:
    """Repeat trials of the goal's duration at *load* until they prove a ruling.

    *scout*: s of a shorter first trial, which *evidence_of* recognises by its duration (0: none). *keeps*: whether all
    trials together keep what the sentence bounds. Where they do not, good trials are no PASS: more trials follow, and
    with the last one that the goal's plan has room for it is a FAIL (:func:`contradicts`). So losing more cannot help
    by asking for more trials. The number of trials is bounded (:func:`most_trials`). Exceptions of *measure* pass
    through, after ``on_trial`` of the finished trials.
    """
    trials: list[Trial] = []
    weighing = Weighing(goal, evidence_of)
    while True:
        outcome = measure(load, goal.final_trial_duration if trials or not scout else scout)
        trial = assess_trial(len(trials) + 1, outcome, conditions.tolerance, conditions.clock_speed)
        trials.append(trial)
        weighing.add(trial)
        conditions.on_trial(trial, weighing.tally)
        ruling = weighing.ruling
        if ruling is Ruling.PASS and not keeps(trials):
            ruling = Ruling.FAIL if weighing.is_longest else None
        if ruling is not None:
            return ruling, tuple(trials)


def contradicts(ruling: Ruling, goal: Goal, trials: Sequence[Trial], evidence_of: EvidenceRule) -> bool:
    """Whether it is a FAIL because all *trials* together do not keep the sentence, though enough of them are good."""
    return ruling is Ruling.FAIL and weigh(goal, trials, evidence_of).ruling is Ruling.PASS


def most_trials(goal: Goal, directions: int = 1) -> int:
    """The largest number of trials, scout included, until a ruling, if no trial is TOO_COARSE."""
    plan = goal.plan_for(directions)
    # one less than decides, of each kind, and the trial that decides; a trial at a lower load may be bad in one
    # direction and prove nothing of the others
    below = plan.most_bad if directions > 1 else 0
    return bool(goal.scout) + plan.most_trials - 1 + below + goal.invalid_trials + 1
