"""Trials at one load until the goal's rule decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..goals import Goal
from ..trial import Load, Measure, Tolerance, Trial, judge
from ..verdict import Ruling, Tally, Weigh, decide, tally


@dataclass(frozen=True, slots=True)
class Conditions:
    """What holds for every trial of a requirement. ``on_trial`` sees each trial at once, before the next begins."""

    tolerance: Tolerance = field(default_factory=Tolerance)
    clock_speed: float = 1.0
    on_trial: Callable[[Trial, Tally], None] = lambda trial, so_far: None


def until_decided(
    measure: Measure, load: Load, goal: Goal, weigh: Weigh, conditions: Conditions
) -> tuple[Ruling, tuple[Trial, ...]]:
    """Repeat trials of the goal's duration at *load* until they prove something.

    Ends always: each trial adds to the good, to the bad or to the spoilt, and the goal bounds all three. Whatever
    *measure* raises passes through; ``on_trial`` has seen the trials finished by then.
    """
    trials: list[Trial] = []
    while True:
        outcome = measure(load, goal.final_trial_duration)
        trial = judge(len(trials) + 1, outcome, conditions.tolerance, conditions.clock_speed)
        trials.append(trial)
        conditions.on_trial(trial, tally(trials, weigh))
        ruling = decide(goal, trials, weigh)
        if ruling is not None:
            return ruling, tuple(trials)
