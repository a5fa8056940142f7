"""A verdict whose trials lost frames, as a method gives it."""

from __future__ import annotations

from lineproof.core.quantity import Reason
from lineproof.core.rule import Ruling
from lineproof.core.trial import DirectionCount, Load, Outcome, read_trial
from lineproof.core.verdict import Verdict
from lineproof.project import Project
from lineproof.session.plan import Plan
from support.paths import ROOT

PLAN = Plan.read(Project(ROOT), "netgate6100", "vpp", "simulated", "quick")


def verdict(sentence: str, *lost: int, ruling: Ruling = Ruling.FAIL) -> Verdict:
    """Trials with so many of 100 000 frames *lost*: from port 0, and from port 1 if there is a second one."""
    requirement = PLAN.requirement(sentence)
    goal = PLAN.goal
    counts = tuple(DirectionCount(at, 1 - at, 100_000, 100_000, 100_000 - count) for at, count in enumerate(lost))
    seconds = goal.final_trial_duration
    outcome = Outcome(Load(100_000 / seconds), seconds, seconds, 0.0, counts)
    trials = tuple(read_trial(number, outcome, PLAN.testbed.tolerances(), 20) for number in range(1, 12))
    promise = requirement.promise(goal, outcome.load, 10e9)
    return Verdict(requirement, goal, ruling, Reason("lost"), trials, 10e9, {}, promise=promise)
