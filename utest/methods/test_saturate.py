"""The forwarding rate at maximum load: its mean with an interval, and the generator's own ceiling."""

import math

import pytest

from lineproof.counts.trial import DirectionCount, Load, Outcome
from lineproof.methods.saturate import saturate
from lineproof.methods.sequential import TrialConditions
from lineproof.sla.goals import Goal
from lineproof.sla.sentence import parse
from lineproof.sla.verdict import Ruling
from lineproof.traffic.catalogue import Catalogue
from support.model_bench import PROJECT

LINK = 10e9
LINE = 14_880_952.0
CATALOGUE = Catalogue.read(PROJECT.profiles)
GOAL = Goal(
    goal="test", final_trial_duration=1, duration_sum=10, loss_ratio=0, exceed_ratio=0.3, about="for these tests"
)


def saturated(sentence, rates, goal=GOAL, ceiling=LINE):
    """Trials that forward *rates*, one after another and then again; both directions alike."""
    requirement = parse(sentence, CATALOGUE)
    forwarded_rates: list[float] = []

    def measure(load, duration):
        rate = rates[len(forwarded_rates) % len(rates)]
        forwarded_rates.append(rate)
        asked, offered = int(load.pps * duration), int(min(load.pps, ceiling) * duration)
        directions = tuple(
            DirectionCount(direction, 1 - direction, asked, offered, min(offered, int(rate * duration)))
            for direction in range(requirement.directions)
        )
        return Outcome(load, duration, duration, 0.0, directions)

    return saturate(requirement, Load(LINE), goal, measure, LINK, TrialConditions()), forwarded_rates


def test_mean_has_an_interval_at_the_goals_confidence():
    rates = [5.00e6, 5.03e6, 5.01e6, 5.04e6, 5.02e6]
    found, forwarded_rates = saturated("64b 1-flow forwards ≥ 4 Mpps", rates)
    low, high = found.figures["forwarded_pps_low"], found.figures["forwarded_pps_high"]
    assert found.ruling is Ruling.PASS
    assert low < found.figures["forwarded_pps"] < high
    # Student's t of seven trials: 2.447 s / sqrt(7)
    mean = sum(forwarded_rates) / 7
    spread = math.sqrt(sum((rate - mean) ** 2 for rate in forwarded_rates) / 6)
    assert high - low == pytest.approx(2 * 2.4469 * spread / math.sqrt(7), rel=1e-3)
    assert "95 % interval ± 14.6 kpps (Student's t; normality is not rejected (Shapiro-Wilk p = " in found.reason
    assert "though 7 measurements would hardly show otherwise); trials from 5 Mpps to 5.04 Mpps" in found.reason
    assert "below the threshold" not in found.reason
    wider, _ = saturated("64b 1-flow forwards ≥ 4 Mpps", rates, GOAL.model_copy(update={"confidence": 0.99}))
    assert "99 % interval ±" in wider.reason
    assert wider.figures["forwarded_pps_low"] < low


def test_equal_trials_have_an_interval_of_zero_width():
    found, _ = saturated("64b 1-flow forwards ≥ 4 Mpps", [5e6])
    assert found.figures["forwarded_pps_low"] == found.figures["forwarded_pps_high"] == 5e6
    assert "(+25.00 % against the threshold; no spread: all trials forwarded as much)" in found.reason


def test_trials_below_the_threshold_are_named_beside_the_mean():
    found, forwarded_rates = saturated("64b 1-flow forwards ≥ 5 Mpps", [5.2e6, 4.9e6])
    assert found.ruling is Ruling.FAIL and len(forwarded_rates) == 8
    assert "; 4 of 8 trials below the threshold)" in found.reason and "(+1.00 % against" in found.reason


def test_rates_that_are_not_normal_have_a_bootstrap_interval():
    found, _ = saturated("64b 1-flow forwards ≥ 4 Mpps", [5e6, 5e6, 5e6, 5e6, 5e6, 5e6, 4.5e6])
    assert "(bootstrap, BCa; from 7 measurements it is narrower than 95 % calls for; taken because" in found.reason


def test_one_trial_has_no_interval():
    once = GOAL.model_copy(update={"duration_sum": 1.0, "exceed_ratio": 0.0})
    found, _ = saturated("64b 1-flow forwards ≥ 4 Mpps", [5e6], once)
    assert "forwarded_pps_low" not in found.figures and "one trial has no interval" in found.reason


@pytest.mark.parametrize(("sentence", "asked"), [("each way", "14.88 Mpps"), ("in total", "29.76 Mpps")])
def test_generators_ceiling_is_named(sentence, asked):
    found, _ = saturated(f"64b bidirectional forwards ≥ 8 Mpps {sentence}", [9e6], ceiling=0.97 * LINE)
    assert found.ruling is Ruling.PASS
    assert f"the generator's ceiling (97 % of the {asked} asked for)" in found.reason
    whole, _ = saturated(f"64b bidirectional forwards ≥ 8 Mpps {sentence}", [9e6])
    assert "ceiling" not in whole.reason
