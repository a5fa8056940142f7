"""The margin of a sentence that has passed: its bounds enclose the capacity, and begin with the sentence itself."""

import math
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.core.deciding import TrialConditions, decide
from lineproof.core.doubts import OwnPart
from lineproof.core.goal import Goal, read_goal
from lineproof.core.rule import Ruling
from lineproof.core.sentence import parse
from lineproof.core.trial import Fault, Load, Measure, Outcome, Problem, Trial
from lineproof.core.verdict import Verdict
from lineproof.procedures.search.margin import (
    LINE_RATE,
    NAMED_LOAD,
    OWN_LIMIT,
    Margin,
    margin,
    margin_of_forwarding,
)
from lineproof.procedures.trials import TAKEN_AT_ITS_WORD
from support.catalogue import CATALOGUE
from support.paths import VARIABLES
from support.pure_router import EVERY_TRIAL, LINE, PureRouter, run_on

BUSY = Problem(Fault.CPU_BOUND, "98 % of a second")
GOALS = VARIABLES / "goals"
QUICK = read_goal(GOALS, "quick")
SLA, HIGHEST = Load(5e6), Load(0.97 * LINE)


def of(model: Measure, sentence: str, goal: Goal = QUICK, seen: list[Trial] | None = None, **run: Any) -> Margin:
    return margin(run_on(model, seen=seen, goal=goal, **{"own": TAKEN_AT_ITS_WORD, **run}), parse(sentence, CATALOGUE))


def found(model: Measure, goal: Goal = QUICK, deadline: float = math.inf, **run: Any) -> Margin:
    return of(model, "64b unidirectional ≥ 5 Mpps", goal, deadline=deadline, most=0.97, **run)


@settings(max_examples=30, deadline=None)
@given(st.floats(min_value=1.0, max_value=2.8), st.sampled_from(["quick", "standard"]))
def test_the_bounds_enclose_the_capacity_within_the_default_deadline(ratio: float, goal: str):
    result = found(PureRouter(SLA.pps * ratio), read_goal(GOALS, goal), deadline=15)
    assert not result.reason and result.high is not None and 1 <= result.figures["seconds"] <= 15
    # what is lost of all trials is forgiven up to a thousandth, and each trial may lose nothing
    assert 1 <= result.low <= ratio + 1e-6 <= result.high + 2e-6
    assert result.high / result.low <= 1.0051


def test_all_that_can_be_sent_is_carried_in_as_many_trials_as_a_verdict_has():
    result = found(PureRouter(LINE))
    assert (result.high, result.limit) == (None, OWN_LIMIT) and result.low == pytest.approx(HIGHEST.pps / SLA.pps)
    assert [trial.number for trial in result.trials] == list(range(1, QUICK.fewest_trials + 1))


@settings(max_examples=30, deadline=None)
@given(st.integers(min_value=0, max_value=40), st.sampled_from([1.0005, 1.08, 2.0, 3.0]))
def test_a_margin_that_its_deadline_ends_keeps_what_is_proven(seconds: int, ratio: float):
    result = found(PureRouter(SLA.pps * ratio), deadline=seconds)
    assert result.figures["seconds"] <= seconds
    assert 1 <= result.low <= ratio + 1e-6
    assert result.high is None or result.high >= min(ratio, HIGHEST.pps / SLA.pps) - 1e-6


def test_a_router_that_carries_less_under_overload_has_the_same_margin():
    def collapsing(load: Load, duration: float) -> Outcome:
        return PureRouter(6e6 if load.pps <= 6e6 else 5.2e6)(load, duration)

    result = found(collapsing, deadline=120)
    assert result.low <= 1.2 <= (result.high or 0.0) and result.low > 1.1


def test_a_testbed_that_breaks_down_ends_it_with_its_bounds():
    result = found(PureRouter(5.4e6, breaks=3))
    assert "the generator went away" in result.reason
    assert (result.low, result.high) == (1.0, pytest.approx(HIGHEST.pps / SLA.pps))


@pytest.mark.parametrize("goal", ["quick", "standard"])
def test_no_more_is_carried_than_the_rule_passes_where_a_queue_holds_frames(goal: str):
    # 2 % more than the sentence, behind a queue of 50 ms: in a trial of 1 s nothing is lost up to 7 %
    terms, router = read_goal(GOALS, goal), PureRouter(1.02 * SLA.pps, buffer=255_000, counts_held=True)
    result = found(router, terms, deadline=60)
    assert result.low <= 1.0202 and result.high is not None
    at = parse("64b unidirectional ≥ 5 Mpps", CATALOGUE).promise(terms, Load(1.07 * SLA.pps), 10e9, TAKEN_AT_ITS_WORD)
    assert decide(at, router, TrialConditions(), LINE).ruling is Ruling.FAIL


@pytest.mark.parametrize("goal", ["quick", "standard"])
def test_a_generator_that_sends_less_than_is_asked_is_the_limit(goal: str):
    result = found(PureRouter(LINE, ceiling=8e6), read_goal(GOALS, goal), deadline=15)
    assert (result.high, result.reason, result.limit) == (None, "", OWN_LIMIT)
    assert 1.59 <= result.low <= 1.6


def test_a_generator_that_falls_behind_near_its_limit_is_asked_for_a_tenth_less():
    sender, numbers = PureRouter(LINE, ceiling=8e6), count()

    def software(load: Load, duration: float) -> Outcome:
        # as TRex in software, whose core is too busy in each third trial with what it only just sends
        outcome = sender(load, duration)
        is_late = load.pps > 7.4e6 and next(numbers) % 3 == 2
        return replace(outcome, elapsed=1.004 * duration, problems=(BUSY,)) if is_late else outcome

    result = found(software, read_goal(GOALS, "standard"), deadline=15)
    assert (result.high, result.reason, result.limit) == (None, "", OWN_LIMIT)
    assert 1.4 <= result.low <= 1.48


def test_a_load_that_stays_open_is_left_for_lower_ones():
    # a loss that the generator may have caused, above 5.4 Mpps; 5.6 Mpps is what the router forwards of more
    def lossy(load: Load, duration: float) -> Outcome:
        return PureRouter(5.6e6, burst=EVERY_TRIAL if load.pps > 5.4e6 else frozenset())(load, duration)

    result = found(lossy, read_goal(GOALS, "standard"), 60, own=OwnPart())
    assert 1.07 <= result.low <= 1.08 and result.high is not None and "could prove neither" in result.reason


@pytest.mark.parametrize(
    ("figures", "lost", "named", "margin"),
    [
        ({"forwarded_pps_low": 5.01e6, "forwarded_pps_high": 5.03e6}, 100, None, Margin(1.002, 1.006)),
        ({}, 100, None, Margin(1.004, 1.004)),
        ({}, 0, None, Margin(1.004, None, limit=OWN_LIMIT)),
        ({}, 0, 6e6, Margin(1.004, None, limit=NAMED_LOAD)),
    ],
)
def test_forwarding_was_measured_by_the_verdict_itself(
    figures: dict[str, float], lost: int, named: float | None, margin: Margin
):
    requirement = SimpleNamespace(threshold_pps=lambda link_bps: 5e6, named_load=lambda link_bps: named)
    verdict = SimpleNamespace(
        figures={"forwarded_pps": 5.02e6, **figures},
        requirement=requirement,
        promise=SimpleNamespace(link_bps=10e9, goal=QUICK),
        trials=(SimpleNamespace(lost=lost, offered=1000),),
    )
    assert margin_of_forwarding(cast(Verdict, verdict)) == margin


# -- on a session


@pytest.mark.parametrize(
    "sentence",
    [
        "64b 1-flow unidirectional ≥ 4.63 Mpps",
        "64b bidirectional ≥ 9.26 Mpps in total",
        "64b bidirectional ≥ 4.63 Mpps each way",
    ],
)
def test_a_margin_begins_at_the_sentence_without_a_warm_up(sentence: str):
    router, seen = PureRouter(), list[Trial]()
    result = of(router, sentence, seen=seen, warm_up=1.0, most=0.97)
    assert not result.reason and result.low == pytest.approx(1.08, abs=0.006)
    assert result.high is not None and result.low <= 1.08 + 1e-6 <= result.high
    assert [trial.number for trial in seen] == list(range(1, len(seen) + 1))
    assert min(pps for pps, _ in router.asked) > 4.63e6


def test_a_margin_ends_where_the_generator_loses_frames_itself():
    router, own = PureRouter(LINE), OwnPart(lossless_pps=6e6, received_pps=6e6)
    result = of(router, "64b unidirectional ≥ 5 Mpps", own=own)
    assert (result.low, result.high, result.limit) == (pytest.approx(6e6 * 0.98 / 5e6), None, OWN_LIMIT)
    assert of(router, "64b unidirectional ≥ 5.9 Mpps", own=own).trials == ()


def test_a_margin_asks_for_no_more_than_the_clocks_allow():
    assert of(PureRouter(LINE * 2), "64b unidirectional ≥ 100% line rate").trials == ()
    result = of(PureRouter(LINE * 2), "64b unidirectional ≥ 50% line rate")
    assert (result.low, result.high, result.limit) == (pytest.approx(2 * 0.9998), None, LINE_RATE)


def test_nothing_of_a_margin_is_certain_if_the_router_restarted():
    result = of(PureRouter(), "64b unidirectional ≥ 4 Mpps", restarted=True)
    assert (result.low, result.high, result.reason) == (1.0, None, "the router restarted")
