"""The margin of a sentence that has passed: its bounds enclose the capacity, and begin with the sentence itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.core.goal import Goal, read_goal
from lineproof.core.trial import Load
from lineproof.core.verdict import Verdict
from lineproof.methods.margin import Margin, margin_of_forwarding, search_margin
from lineproof.methods.trials import CharacterisationTerms, Deadline
from support.model_bench import PROJECT
from support.pure_router import LINE, PureRouter

QUICK = read_goal(PROJECT.goals, "quick")
SLA, HIGHEST = Load(5e6), Load(0.97 * LINE)


def found(router: PureRouter, goal: Goal = QUICK, carried: Load = SLA, **terms: Any) -> Margin:
    return search_margin(router, goal, carried, HIGHEST, CharacterisationTerms(**terms))


@settings(max_examples=20, deadline=None)
@given(st.floats(min_value=1.0, max_value=2.8))
def test_the_bounds_enclose_the_capacity(ratio: float):
    result = found(PureRouter(SLA.pps * ratio))
    assert result.finished and result.high is not None
    assert 1 <= result.low <= ratio + 1e-6 <= result.high + 2e-6
    assert result.high / result.low <= 1.0051


@pytest.mark.parametrize("goal", ["quick", "standard"])
@pytest.mark.parametrize("ratio", [1.0005, 1.004, 1.08, 2.5])
def test_the_default_of_a_minute_is_enough(goal: str, ratio: float):
    result = found(PureRouter(SLA.pps * ratio), read_goal(PROJECT.goals, goal), deadline=Deadline(traffic=60))
    assert result.finished and 5 <= result.seconds <= 30


def test_the_sentences_own_load_is_not_tried_again():
    router = PureRouter(SLA.pps * 1.0005)
    result = found(router)
    assert (result.low, result.high) == (1.0, pytest.approx(1.005, abs=2e-4))
    assert min(pps for pps, _ in router.asked) > SLA.pps


@pytest.mark.parametrize("carried", [HIGHEST, Load(LINE)])
def test_nothing_is_sent_where_the_sentence_asks_for_all_that_can_be(carried: Load):
    router = PureRouter(LINE)
    assert found(router, carried=carried) == Margin(1.0, None)
    assert router.asked == []


def test_a_sentence_just_below_all_that_can_be_sent_is_searched():
    result = found(PureRouter(LINE), carried=Load(HIGHEST.pps * 0.9999))
    assert result.finished and result.high is None and result.low == pytest.approx(1.0001)


def test_the_worse_direction_decides():
    assert found(PureRouter(6e6, directions=2, weaker=0.9)).low == pytest.approx(1.08, abs=0.006)


@settings(max_examples=20, deadline=None)
@given(st.integers(min_value=1, max_value=40), st.sampled_from([1.0005, 1.08, 2.0, 3.0]))
def test_a_search_that_its_deadline_ends_keeps_what_is_proven(seconds: int, ratio: float):
    result = found(PureRouter(SLA.pps * ratio), deadline=Deadline(traffic=seconds))
    assert result.seconds <= seconds
    assert 1 <= result.low <= ratio + 1e-6
    assert result.high is None or result.high >= min(ratio, HIGHEST.pps / SLA.pps) - 1e-6
    assert result.finished is not result.reason.startswith("deadline: ")


def test_one_trial_that_no_goal_forgives_bounds_an_unfinished_search():
    result = found(PureRouter(SLA.pps * 1.08), deadline=Deadline(traffic=1))
    assert not result.finished
    # the first trial, at the highest load, lost half of it
    assert (result.low, result.high) == (1.0, pytest.approx(HIGHEST.pps / SLA.pps))
    assert "(single trials: bad from 288.7 %)" in result.reason


def test_a_search_without_time_for_a_trial_knows_the_verdict_only():
    result = found(PureRouter(SLA.pps * 2), deadline=Deadline(traffic=0.5))
    assert (result.low, result.high, result.finished, result.seconds) == (1.0, None, False, 0.0)


@pytest.mark.parametrize(
    ("figures", "bounds"),
    [({"forwarded_pps_low": 5.01e6, "forwarded_pps_high": 5.03e6}, (1.002, 1.006)), ({}, (1.004, 1.004))],
)
def test_forwarding_was_measured_by_the_verdict_itself(figures: dict[str, float], bounds: tuple[float, float]):
    requirement = SimpleNamespace(threshold_pps=lambda link_bps: 5e6)
    verdict = SimpleNamespace(figures={"forwarded_pps": 5.02e6, **figures}, requirement=requirement, link_bps=10e9)
    result = margin_of_forwarding(cast(Verdict, verdict))
    assert (result.low, result.high) == pytest.approx(bounds) and result.finished and not result.seconds
