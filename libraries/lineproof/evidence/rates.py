"""Trials as tables and plots show them: their names, and those that have no part in a mean."""

from __future__ import annotations

from ..core.trial import Trial


def trial_name(trial: Trial) -> str:
    """The trial's number, or ``warm-up``."""
    return str(trial.number) if trial.number else "warm-up"


def is_set_aside(trial: Trial) -> bool:
    """Return whether the testbed may have cost or hidden any number of frames of a judged trial: no mean has it."""
    doubts = (problem for problem in trial.problems if problem.frames is None)
    return bool(trial.number) and any(problem.fault.may_cost or problem.fault.may_hide for problem in doubts)
