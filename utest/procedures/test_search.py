"""Bounds of a capacity search enclose the capacity, for each varied value, and outlast an early end."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.core.goal import Goal, read_goal
from lineproof.core.sentence import parse
from lineproof.core.trial import Fault, Load, Measure, Problem, Trial
from lineproof.core.verdict import Verdict
from lineproof.errors import ConfigError, SentenceError, TestbedError
from lineproof.procedures.search import SEARCH, search, search_each
from lineproof.procedures.search.margin import LINE_RATE, NAMED_LOAD, OWN_LIMIT, Margin, margin, margin_of_forwarding
from lineproof.procedures.trials import TAKEN_AT_ITS_WORD
from support.catalogue import CATALOGUE
from support.paths import VARIABLES
from support.pure_router import GOAL as OF_RUNS
from support.pure_router import LINE, ONE_WAY, PureRouter, run_on

GOAL = OF_RUNS.model_copy(update={"duration_sum": 4, "exceed_ratio": 0.25})
BUSY = Problem(Fault.CPU_BOUND, "98 % of a second")


def unfinished(result):
    return tuple(bounds.name for bounds in result.bounds if not bounds.finished)


def found(router, goal=GOAL, words=ONE_WAY, **terms):
    return search(run_on(router, goal=goal, most=0.97, **terms), words)


@settings(max_examples=25, deadline=None)
@given(st.floats(min_value=50_000, max_value=14e6))
def test_bounds_enclose_the_capacity(capacity):
    result = found(PureRouter(capacity))
    none, partial = result["NDR"], result["PDR"]
    assert not result.ended and not unfinished(result)
    # a frame of a trial is the least that can be seen
    assert none.lower.pps <= capacity + 2 and capacity - 2 <= none.upper.pps
    assert 1 - none.lower.pps / none.upper.pps <= 0.005 * 1.000001
    assert partial.lower.pps * 0.995 <= capacity + 2 <= (partial.upper.pps + 3) * 0.995 + 3
    assert partial.throughput == pytest.approx(min(partial.lower.pps, capacity), rel=1e-4)


@settings(max_examples=30, deadline=None)
@given(st.integers(min_value=0, max_value=60))
def test_bounds_found_before_the_deadline_are_kept(seconds):
    whole = found(PureRouter(5e6))
    result = found(PureRouter(5e6), deadline=seconds)
    assert result.seconds <= seconds
    if result.ended:
        assert "deadline: " in result.ended
        assert result.seconds < whole.seconds
    else:
        assert not unfinished(result)
    for item in result.bounds:
        assert item.lower is None or item.lower.pps * (1 - item.loss_ratio) <= 5e6 + 2
        assert item.upper is None or item.upper.pps > 5e6 - 2


def test_a_generator_that_is_slower_than_the_router_ends_the_search_at_what_it_sends():
    result = found(PureRouter(LINE, ceiling=8e6, spoils=frozenset([0]), spoilt_by=BUSY), warm_up=1.0)
    assert not result.ended and not unfinished(result)
    assert result["NDR"].lower.pps == pytest.approx(0.9 * 8e6) and result["NDR"].upper is None


def test_a_queue_does_not_hide_a_shortage():
    # 2 % more than 5 Mpps, behind a queue of 50 ms: in a trial of 1 s nothing is lost up to 7 %
    router = PureRouter(5.1e6, buffer=255_000, counts_held=True)
    result = found(router)
    none = result["NDR"]
    assert none.lower.pps <= 5.1e6 * 1.001 and none.upper.pps == pytest.approx(5.1e6, rel=0.011)
    assert max(seconds for _, seconds in router.asked) == 10.0
    # where 10 s are too short for the queue to fill, both ends of the loss leave the load open
    assert unfinished(result) and "queues grew while frames were sent" in result.ended


def test_each_value_has_traffic_of_its_own_or_a_keyword_that_sets_it():
    run, begun, called = run_on(PureRouter()), list[Any](), list[Any]()
    run.begin = begun.append

    def set_up(value: str) -> None:
        called.append(value)
        if value == "5":
            raise TestbedError("the router has no fifth queue")

    run.__dict__["call"] = {"Set Queues": set_up}.__getitem__
    SEARCH.measure(run, "unidirectional", "64b|128b 1-flow|9-flows", "256b", axis="frames", relative_width=0.03)
    sizes = "64b 1-flow", "64b 9-flows", "128b 1-flow", "128b 9-flows", "256b"
    assert [traffic.sentence for traffic in begun] == [f"{words} unidirectional" for words in sizes]
    results = SEARCH.measure(run, ONE_WAY, "1", "5", "2", axis="queues", set_up="Set Queues", relative_width=0.03)
    assert called == ["1", "5", "2"] and "no fifth queue" in results[1].ended
    assert [result.value for result in results if result.bounds] == ["1", "2"]
    with pytest.raises(ConfigError, match="each once"):
        SEARCH.measure(run, ONE_WAY, "1", "1")


def test_all_words_are_parsed_before_any_frame_is_sent():
    router = PureRouter()
    with pytest.raises(SentenceError):
        search_each(run_on(router), "flows", ["1-flow", "8-flows"], lambda words: f"{ONE_WAY} {words}", 0.1)
    with pytest.raises(SentenceError):
        found(router, words="64b unidirectional ≥ 5 Mpps")
    assert not router.asked


GOALS = VARIABLES / "goals"
QUICK = read_goal(GOALS, "quick")
SLA, HIGHEST = Load(5e6), Load(0.97 * LINE)


def of(model: Measure, sentence: str, goal: Goal = QUICK, seen: list[Trial] | None = None, **run: Any) -> Margin:
    return margin(run_on(model, seen=seen, goal=goal, **{"own": TAKEN_AT_ITS_WORD, **run}), parse(sentence, CATALOGUE))


def searched(model: Measure, goal: Goal = QUICK, deadline: float = math.inf, **run: Any) -> Margin:
    return of(model, "64b unidirectional ≥ 5 Mpps", goal, deadline=deadline, most=0.97, **run)


@settings(max_examples=30, deadline=None)
@given(st.floats(min_value=1.0, max_value=2.8), st.sampled_from(["quick", "standard"]))
def test_the_bounds_enclose_the_capacity_within_the_default_deadline(ratio: float, goal: str):
    result = searched(PureRouter(SLA.pps * ratio), read_goal(GOALS, goal), deadline=15)
    assert not result.reason and result.high is not None and 1 <= result.figures["seconds"] <= 15
    # what is lost of all trials is forgiven up to a thousandth, and each trial may lose nothing
    assert 1 <= result.low <= ratio + 1e-6 <= result.high + 2e-6
    assert result.high / result.low <= 1.0051


@settings(max_examples=30, deadline=None)
@given(st.integers(min_value=0, max_value=40), st.sampled_from([1.0005, 1.08, 2.0, 3.0]))
def test_a_margin_that_its_deadline_ends_keeps_what_is_proven(seconds: int, ratio: float):
    result = searched(PureRouter(SLA.pps * ratio), deadline=seconds)
    assert result.figures["seconds"] <= seconds
    assert 1 <= result.low <= ratio + 1e-6
    assert result.high is None or result.high >= min(ratio, HIGHEST.pps / SLA.pps) - 1e-6


@pytest.mark.parametrize("goal", ["quick", "standard"])
def test_a_generator_that_sends_less_than_is_asked_is_the_limit(goal: str):
    result = searched(PureRouter(LINE, ceiling=8e6), read_goal(GOALS, goal), deadline=15)
    assert (result.high, result.reason, result.limit) == (None, "", OWN_LIMIT)
    assert 1.59 <= result.low <= 1.6


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


def test_a_margin_asks_for_no_more_than_the_clocks_allow_and_proves_nothing_after_a_restart():
    assert of(PureRouter(LINE * 2), "64b unidirectional ≥ 100% line rate").trials == ()
    result = of(PureRouter(LINE * 2), "64b unidirectional ≥ 50% line rate")
    assert (result.low, result.high, result.limit) == (pytest.approx(2 * 0.9998), None, LINE_RATE)
    # nothing of it is certain if the router restarted
    result = of(PureRouter(), "64b unidirectional ≥ 4 Mpps", restarted=True)
    assert (result.low, result.high, result.reason) == (1.0, None, "the router restarted")
