"""A forwarding rate is a mean, with an interval at the goal's confidence."""

import math

import pytest

from lineproof.core.goal import Goal
from lineproof.core.sentence import parse
from lineproof.core.trial import DirectionCount, Load, Outcome
from lineproof.core.verdict import Ruling
from lineproof.methods.saturate import saturate
from lineproof.methods.sequential import TrialConditions
from support.ceilings import CATALOGUE, LINK

LOAD = Load(14_880_952.0)
GOAL = Goal(
    goal="test", final_trial_duration=1, duration_sum=10, loss_ratio=0, exceed_ratio=0.3, about="for these tests"
)


def test_mean_has_an_interval_at_the_goals_confidence():
    rates = [5.00e6, 5.03e6, 5.01e6, 5.04e6, 5.02e6]
    forwarded_rates: list[float] = []

    def measure(load, duration):
        forwarded_rates.append(rates[len(forwarded_rates) % len(rates)])
        asked = int(load.pps * duration)
        return Outcome(load, duration, duration, 0.0, (DirectionCount(0, 1, asked, asked, int(forwarded_rates[-1])),))

    requirement = parse("64b 1-flow forwards ≥ 4 Mpps", CATALOGUE)
    found = saturate(requirement, LOAD, GOAL, measure, LINK, TrialConditions())
    low, high = found.figures["forwarded_pps_low"], found.figures["forwarded_pps_high"]
    assert found.ruling is Ruling.PASS
    assert low < found.figures["forwarded_pps"] < high
    # Student's t of seven trials: 2.447 s / sqrt(7)
    assert len(forwarded_rates) == 7
    mean = sum(forwarded_rates) / 7
    spread = math.sqrt(sum((rate - mean) ** 2 for rate in forwarded_rates) / 6)
    assert high - low == pytest.approx(2 * 2.4469 * spread / math.sqrt(7), rel=1e-3)
    forwarded_rates.clear()
    surer = GOAL.model_copy(update={"confidence": 0.99})
    assert saturate(requirement, LOAD, surer, measure, LINK, TrialConditions()).figures["forwarded_pps_low"] < low
