"""Bounds of a capacity search enclose the capacity, for each varied value, and outlast an early end."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.core.doubts import OwnPart
from lineproof.errors import ConfigError, SentenceError, TestbedError
from lineproof.procedures.scaling import SCALING, flow_words, scale
from lineproof.procedures.search import SEARCH, search
from support.pure_router import EVERY_TRIAL, LINE, ONE_WAY, PureRouter, prepared, run_on
from support.pure_router import GOAL as OF_RUNS

GOAL = OF_RUNS.model_copy(update={"duration_sum": 4, "exceed_ratio": 0.25})
STRICT = GOAL.model_copy(update={"exceed_ratio": 0.0})


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
    assert none.width <= 0.005 * 1.000001
    assert partial.lower.pps * 0.995 <= capacity + 2 <= (partial.upper.pps + 3) * 0.995 + 3
    assert partial.throughput == pytest.approx(min(partial.lower.pps, capacity), rel=1e-4)


def test_router_that_carries_no_load_has_no_lower_bound():
    result = found(PureRouter(10.0))
    assert not unfinished(result)
    assert result["NDR"].lower is None and result["NDR"].throughput is None
    assert result["PDR"].upper.pps == pytest.approx(0.97e-3 * LINE)


def test_the_worse_direction_decides():
    weaker = found(PureRouter(6e6, weaker=0.5), words="64b bidirectional")
    assert weaker["NDR"].upper.pps == pytest.approx(3e6, rel=0.01) and "each way" in str(weaker)


def test_rare_burst_is_within_the_exceed_ratio():
    # whichever trial it strikes at the end, three of four are good
    calm = len(found(PureRouter(5e6)).trials)
    result = found(PureRouter(5e6, burst=frozenset({calm - 1})))
    assert result["NDR"].lower.pps == pytest.approx(5e6, rel=0.006)


@settings(max_examples=30, deadline=None)
@given(st.integers(min_value=0, max_value=60))
def test_bounds_found_before_the_deadline_are_kept(seconds):
    whole = found(PureRouter(5e6))
    result = found(PureRouter(5e6), deadline=seconds)
    assert result.traffic <= seconds
    if result.ended:
        assert "deadline: " in result.ended
        assert result.traffic < whole.traffic
    else:
        assert not unfinished(result)
    for item in result.bounds:
        assert item.lower is None or item.lower.pps * (1 - item.loss_ratio) <= 5e6 + 2
        assert item.upper is None or item.upper.pps > 5e6 - 2
        assert item.finished or item.name in unfinished(result)


def test_spoilt_trials_are_repeated():
    seen: list[Any] = []
    result = found(PureRouter(5e6, spoils=frozenset({0, 3, 4})), seen=seen)
    assert not result.ended
    assert [trial.number for trial in seen] == list(range(1, len(seen) + 1))
    assert tuple(seen) == result.trials
    assert sum(not trial.is_clean for trial in result.trials) == 3
    assert result["NDR"].lower.pps == pytest.approx(5e6, rel=0.006)


@pytest.mark.parametrize(
    ("router", "trials", "words"),
    [
        (PureRouter(5e6, spoils=EVERY_TRIAL - set(range(5))), 9, "a link was down"),
        (PureRouter(5e6, breaks=0), 0, "the testbed broke down: the generator went away"),
        (PureRouter(LINE, ceiling=10.0), 4, "use a faster generator"),
    ],
)
def test_a_testbed_at_fault_ends_the_search_with_its_bounds(router, trials, words):
    result = found(router)
    assert result.ended.startswith("inconclusive: ") and words in result.ended
    assert len(result.trials) == trials and unfinished(result) == ("NDR", "PDR")


def test_a_generator_that_is_slower_than_the_router_ends_the_search_at_what_it_sends():
    result = found(PureRouter(LINE, ceiling=8e6))
    assert not result.ended and not unfinished(result)
    assert result.highest.pps == pytest.approx(0.9 * 8e6) and result["NDR"].lower == result.highest
    assert found(PureRouter(5e6, ceiling=8e6))["NDR"].lower.pps == pytest.approx(5e6, rel=0.006)


def test_a_queue_does_not_hide_a_shortage():
    # 2 % more than 5 Mpps, behind a queue of 50 ms: in a trial of 1 s nothing is lost up to 7 %
    router = PureRouter(5.1e6, buffer=255_000, counts_held=True)
    result = found(router)
    none = result["NDR"]
    assert none.lower.pps <= 5.1e6 * 1.001 and none.upper.pps == pytest.approx(5.1e6, rel=0.011)
    assert max(seconds for _, seconds in router.asked) == 10.0
    # where 10 s are too short for the queue to fill, both ends of the loss leave the load open
    assert unfinished(result) and "queues grew while frames were sent" in result.ended


def test_a_clock_that_leaves_the_rate_open_makes_trials_longer():
    def measure(load, duration):
        return replace(PureRouter(5e6)(load, duration), readings={"elapsed_uncertainty": 0.02})

    result = found(measure)
    assert not unfinished(result)
    assert result["NDR"].lower.pps <= 5e6 <= result["NDR"].upper.pps
    assert max(trial.outcome.duration for trial in result.trials) == pytest.approx(5.0, abs=0.11)


def test_loss_that_the_generator_may_have_caused_is_no_upper_bound():
    own = OwnPart(trials=20, lossy=3, most_lost=200)
    calm = len(found(PureRouter(5e6), STRICT).trials)
    lossy = frozenset(range(0, calm, 7))
    assert found(PureRouter(5e6, burst=lossy), STRICT, own=own)["NDR"].lower.pps == pytest.approx(5e6, rel=0.006)


def test_a_search_warms_up_and_stays_below_the_testbeds_maximum():
    router, seen = PureRouter(), list[Any]()
    run = run_on(router, seen=seen, warm_up=1.0, most=0.97)
    result = SEARCH.measure(run, "64b 1-flow bidirectional")
    assert prepared(run) == [("64b 1-flow", True, None)]
    assert [trial.number for trial in seen] == list(range(len(result.trials) + 1))
    assert max(pps for pps, _ in router.asked) == pytest.approx(0.97 * LINE) and run.sent == result.traffic


# -- scaling


def scaled(queues, deadline=1e9):
    router = PureRouter()

    def set_up(value):
        if value == 5:
            raise TestbedError("the router has no fifth queue")
        router.capacity = min(LINE, 4e6 * value)

    return scale(run_on(router, goal=STRICT, deadline=deadline), "queues", queues, lambda value: ONE_WAY, 0.005, set_up)


def test_each_value_has_its_own_bounds():
    result = scaled([1, 2, 5, 3, 4])
    assert [point.value for point in result.points if point.result is None] == [5]
    assert "no fifth queue" in result.endings[2]
    lower = [point.result["NDR"].lower.pps for point in result.points if point.result]
    assert lower == pytest.approx([4e6, 8e6, 12e6, LINE], rel=0.006)


def test_all_values_share_the_deadline_alike():
    whole = scaled([1]).points[0].result.traffic
    enough = scaled([1, 2, 5, 3], 4 * whole + 4)
    assert not any(unfinished(point.result) for point in enough.points if point.result)
    short = scaled([1, 2, 3], 1.5 * whole)
    assert unfinished(short.points[0].result) and unfinished(short.points[1].result)
    assert sum(point.result.traffic for point in short.points if point.result) <= 1.5 * whole
    # what was not begun is no result
    assert all(words.startswith("inconclusive: ") for words in scaled([1, 2], 0.9).endings)


def test_values_must_be_different():
    for values in ([], [1, 1]):
        with pytest.raises(ConfigError, match="each once"):
            scaled(values)


def test_each_value_has_traffic_of_its_own_or_a_keyword_that_sets_it():
    run, begun, called = run_on(PureRouter()), list[Any](), list[Any]()
    run.begin, run.call = begun.append, lambda *words: called.append(words)
    SCALING.measure(run, "flows", "64b unidirectional", 1, 1000, relative_width=0.03)
    assert [traffic.sentence for traffic in begun] == ["64b unidirectional 1-flow", "64b unidirectional 1000-flows"]
    SCALING.measure(run, "queues", ONE_WAY, 1, 2, set_up="Set Queues", relative_width=0.03)
    assert called == [("Set Queues", 1), ("Set Queues", 2)]
    with pytest.raises(ConfigError, match="nothing sets 'queues'"):
        SCALING.measure(run, "queues", ONE_WAY, 1)


def test_all_words_are_parsed_before_any_frame_is_sent():
    router = PureRouter()
    with pytest.raises(SentenceError):
        scale(run_on(router), "flows", [1, 8], lambda number: f"64b 1-flow unidirectional {flow_words(number)}", 0.1)
    with pytest.raises(SentenceError):
        found(router, words="64b unidirectional ≥ 5 Mpps")
    assert not router.asked
