"""Trials at one load until the goal's rule decides."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from ..counts.trial import Load, Measure, Tolerance, Trial, judge
from ..sla.goals import Goal
from ..sla.verdict import Ruling, Tally, Weigh, decide, tally


@dataclass(frozen=True, slots=True)
class Conditions:
    """What holds for every trial of a requirement. ``on_trial`` sees each trial at once, before the next begins."""

    tolerance: Tolerance = field(default_factory=Tolerance)
    clock_speed: float = 1.0
    on_trial: Callable[[Trial, Tally], None] = lambda trial, so_far: None


def until_decided(
    measure: Measure, load: Load, goal: Goal, weigh: Weigh, conditions: Conditions, scout: float = 0.0
) -> tuple[Ruling, tuple[Trial, ...]]:
    """Repeat trials of the goal's duration at *load* until they prove something.

    *scout*: s of a first, shorter trial, which *weigh* knows as such (0: none).

    Ends always: each trial but a scout adds to the good, to the bad or to the spoilt, and the goal bounds all three
    (:func:`most_trials`). Whatever *measure* raises passes through; ``on_trial`` has seen the trials finished by then.
    """
    trials: list[Trial] = []
    while True:
        outcome = measure(load, goal.final_trial_duration if trials or not scout else scout)
        trial = judge(len(trials) + 1, outcome, conditions.tolerance, conditions.clock_speed)
        trials.append(trial)
        conditions.on_trial(trial, tally(trials, weigh))
        ruling = decide(goal, trials, weigh)
        if ruling is not None:
            return ruling, tuple(trials)


def most_trials(goal: Goal, untold: bool = False) -> int:
    """The most trials, scout included, after which every sequence of outcomes has been decided."""
    good = math.ceil((1 - goal.exceed_ratio) * goal.duration_sum / goal.final_trial_duration - 1e-6)
    forgiven = math.floor(goal.exceed_ratio * goal.duration_sum / goal.final_trial_duration + 1e-6)
    whole = math.ceil(goal.duration_sum / goal.final_trial_duration - 1e-6) if goal.whole else 0
    # one short of each, and the one that decides
    return (
        bool(goal.scout) + max(good - 1 + forgiven, whole - 1) + (forgiven if untold else 0) + goal.invalid_trials + 1
    )
