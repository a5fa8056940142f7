"""Why a trial was given its weight, in words for its record."""

from __future__ import annotations

from .trial import Trial
from .verdict import Evidence

_WHY = {
    Evidence.GOOD: "it keeps what the sentence asks",
    Evidence.BAD: "it does not keep what the sentence asks",
    Evidence.BAD_BELOW: "it does not keep what the sentence asks, at less than the load, which is proof enough",
    Evidence.CLEAR: "it loses more than the goal's clear loss ratio, which decides alone",
    Evidence.NONE: "it proves nothing about the router",
    Evidence.SCOUT: "it is too short to count for the router",
    Evidence.TOO_COARSE: "its figure is too coarse to compare with the threshold",
}


def why_weighed(trial: Trial, evidence: Evidence) -> str:
    """The meaning of *evidence*, the frames that it rests on, and the trial's problems."""
    lost = f"lost {trial.lost} of {trial.offered} frames"
    explained = sum(min(row.lost, trial.explained(row)) for row in trial.outcome.directions)
    if explained:
        lost += f", up to {explained:.0f} of them by the testbed"
    return "; ".join([_WHY[evidence], lost, *map(str, trial.problems)])
