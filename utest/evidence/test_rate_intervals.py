"""Intervals of a verdict's rates in its record."""

from __future__ import annotations

from lineproof.core.deciding import TrialConditions, decide
from lineproof.core.goal import read_goal
from lineproof.core.phrases import rate_figures
from lineproof.core.sentence import parse
from lineproof.core.trial import DirectionCount, Load, Outcome
from lineproof.core.verdict import Verdict, verdict_of
from lineproof.evidence.rate_intervals import rate_intervals
from lineproof.traffic.catalogue import Catalogue
from support.paths import VARIABLES

QUICK = read_goal(VARIABLES / "goals", "quick")


def judged(*lost: int) -> Verdict:
    requirement = parse("64b unidirectional ≥ 1 Mpps", Catalogue.read(VARIABLES / "profiles"))
    rows = iter([*lost, *([0] * 50)])

    def measure(load: Load, duration: float) -> Outcome:
        count = DirectionCount(0, 1, 1_000_000, 1_000_000, 1_000_000 - next(rows))
        return Outcome(load, duration, duration, 0.0, (count,))

    promise = requirement.promise(QUICK, Load(1e6), 10e9)
    decision = decide(promise, measure, TrialConditions(), line_pps=1e6)
    return verdict_of(decision, promise, requirement, rate_figures(promise, decision.trials))


def test_the_interval_contains_the_mean():
    verdict = judged(500, 700)
    found = rate_intervals(verdict)
    assert found["forwarded_pps_low"] < verdict.figures["forwarded_pps"] < found["forwarded_pps_high"]
    assert found["offered_pps_low"] == found["offered_pps_high"] == 1e6


def test_one_trial_has_no_interval():
    verdict = judged(200_000)
    assert len(verdict.trials) == 1
    assert rate_intervals(verdict) == {}
