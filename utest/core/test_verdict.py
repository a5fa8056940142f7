"""Trials become a verdict, which is RFC 2544 throughput only under its terms."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lineproof.core.goal import Goal, read_goal
from lineproof.core.rule import Ruling
from lineproof.core.trial import HOST_COUNTS, DirectionCount, Fault, Load, Outcome, Tolerance, assess_trial
from support.known_router import GOALS, router, run, timed
from support.outcomes import outcome


def sequence(*outcomes: Outcome):
    """A measurement that returns *outcomes* one after another; the last one repeats."""
    left = list(outcomes)
    return lambda load, duration: left.pop(0) if len(left) > 1 else left[0]


def test_wall_clock_does_not_count_on_a_simulated_clock():
    slow = Outcome(Load(1000), 1.0, 2.0, 0.0, (DirectionCount(0, 1, 1000, 1000, 1000),))
    assert assess_trial(1, slow, Tolerance(), clock_speed=50).valid
    uncertain = Outcome(Load(1000), 1.0, 1.1, 0.0, slow.directions, readings={"elapsed_uncertainty": 0.1})
    assert assess_trial(1, uncertain, Tolerance()).valid


def test_a_busy_generator_spoils_a_trial_beyond_the_tolerance():
    busy = outcome(load=1000)
    busy = replace(busy, readings={"cpu_util": 98})
    (problem,) = assess_trial(1, busy, Tolerance()).problems
    assert problem.fault is Fault.CPU_BOUND
    assert assess_trial(1, busy, Tolerance(cpu=98)).valid


def test_worse_direction_counts_unless_in_total():
    lopsided = Outcome(
        Load(1000), 1, 1, 0, (DirectionCount(0, 1, 1000, 1000, 1000), DirectionCount(1, 0, 1000, 1000, 900))
    )
    seen = assess_trial(1, lopsided, Tolerance())
    assert seen.loss_ratio(in_total=False) == 0.1
    assert seen.loss_ratio(in_total=True) == 0.05


def test_burst_in_a_nearly_empty_trial_is_no_clear_fail():
    burst = outcome(load=1e6, sent=0.005, loss=0.1)
    found = run("64b unidirectional ≥ 1 Mpps", sequence(burst, outcome(load=1e6)))
    assert found.ruling is Ruling.PASS
    assert run("64b unidirectional ≥ 1 Mpps", sequence(outcome(load=1e6, sent=0.005))).ruling is Ruling.INCONCLUSIVE


def test_tolerances_of_frames_and_time_do_not_add_up():
    late = Outcome(Load(1e6), 1.0, 1.0095, 0.0, (DirectionCount(0, 1, 1_000_000, 995_100, 995_100),))
    (problem,) = assess_trial(1, late, Tolerance()).problems
    assert problem.fault is Fault.UNDER_OFFERED and "in 1.010 s" in problem.detail
    exact = Outcome(Load(1e6), 1.0, 1.005, 0.0, (DirectionCount(0, 1, 1_000_000, 998_000, 998_000),))
    assert assess_trial(1, exact, Tolerance()).valid


def buffered(capacity: float, frames: int = 4096):
    """A router whose buffer takes the first frames beyond its capacity, in each trial anew."""

    def measure(load: Load, duration: float) -> Outcome:
        asked = round(load.pps * duration)
        count = DirectionCount(0, 1, asked, asked, min(asked, round(capacity * duration) + frames))
        return Outcome(load, duration, duration, 0.0, (count,))

    return measure


@pytest.mark.parametrize("quantity", ["", "forwards "])
def test_trials_are_long_enough_to_overflow_a_buffer(quantity: str):
    slow = run(f"64b unidirectional {quantity}≥ 100 kpps", buffered(99e3), "standard")
    assert (slow.ruling, slow.goal.final_trial_duration) == (Ruling.FAIL, 5.2)
    assert slow.goal.duration_sum == pytest.approx(20 * 5.2)
    passed = run(f"64b unidirectional {quantity}≥ 100 kpps", buffered(101e3), "standard")
    assert passed.ruling is Ruling.PASS and passed.trials[0].outcome.duration == 1.0


def queueing(capacity: float, frames: float):
    """A router whose queue of *frames* takes what is beyond its capacity; the generator sees what is under way."""

    def measure(load: Load, duration: float) -> Outcome:
        asked = round(load.pps * duration)
        beyond = max(0, asked - round(capacity * duration))
        queued = round(min(beyond, frames))
        count = DirectionCount(0, 1, asked, asked, asked - (beyond - queued), backlog=queued)
        return Outcome(load, duration, duration, 0.0, (count,))

    return measure


def test_trials_grow_only_where_frames_are_under_way_at_their_end():
    passed = run("64b unidirectional ≥ 50 kpps", queueing(51e3, 4096), "standard")
    assert passed.ruling is Ruling.PASS and {trial.outcome.duration for trial in passed.trials} == {1.0}
    slow = run("64b unidirectional ≥ 50 kpps", queueing(49e3, 4096), "standard")
    assert slow.ruling is Ruling.FAIL and slow.trials[0].outcome.duration == 1.0
    assert slow.trials[-1].outcome.duration > 4


@pytest.mark.parametrize(
    ("sentence", "capacity", "ruling"),
    [
        ("≥ 100% line rate", 14.879e6, Ruling.PASS),
        ("≥ 100% line rate", 14.87e6, Ruling.FAIL),
        ("forwards ≥ 100% line rate", 14.879e6, Ruling.PASS),
    ],
)
def test_beyond_99_98_percent_of_line_rate_the_clocks_are_allowed_for(sentence: str, capacity: float, ruling: Ruling):
    assert run(f"64b unidirectional {sentence}", router(capacity)).ruling is ruling


def test_duration_sum_of_a_soak_does_not_grow_with_its_trials():
    goal = read_goal(GOALS, "standard")
    soak = goal.model_copy(update={"duration_sum": 1800.0})
    assert (soak.for_load(50e3).final_trial_duration, soak.for_load(50e3).duration_sum) == (10, 1800)
    assert (goal.for_load(50e3).final_trial_duration, goal.for_load(50e3).duration_sum) == (10, 200)
    assert goal.for_load(5e6) == goal


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"clear_loss_ratio": 0.0}, "clear_loss_ratio must be at least loss_ratio"),
        ({"scout": 0.5}, "clear_loss_ratio must say what that is"),
        ({"clear_loss_ratio": 0.1, "scout": 2}, "scout must be shorter"),
        ({"longest_trial": 0.5}, "longest_trial must be at least"),
    ],
)
def test_contradictory_goal_is_refused(wrong: dict[str, float], message: str):
    whole = {"goal": "any", "final_trial_duration": 1, "duration_sum": 10, "loss_ratio": 0.01, "exceed_ratio": 0}
    with pytest.raises(ValueError, match=message):
        Goal(**whole, about="", **wrong)


def test_only_rfc2544_goal_with_one_frame_size_is_rfc2544_throughput():
    assert run("64b unidirectional ≥ 5 Mpps", router(6e6), "rfc2544").is_rfc2544_throughput
    assert not run("imix unidirectional ≥ 1 Mpps", router(6e6), "rfc2544").is_rfc2544_throughput
    assert not run("64b unidirectional ≥ 5 Mpps", router(4e6), "rfc2544").is_rfc2544_throughput
    assert not run("64b unidirectional ≥ 5 Mpps", router(6e6), "standard").is_rfc2544_throughput


@pytest.mark.parametrize(("drops", "labelled"), [(None, True), ({"rx-miss": 0}, True), ({"rx-miss": 60}, False)])
def test_frames_that_a_router_dropped_unseen_take_the_label_of_rfc2544(drops: dict[str, int] | None, labelled: bool):
    found = run("64b unidirectional ≥ 5 Mpps", router(6e6), "rfc2544")
    assert replace(found, router_drops=drops).is_rfc2544_throughput is labelled


@pytest.mark.parametrize(("reading", "labelled"), [(None, True), (0.0, True), (1.0, False)])
def test_counts_of_a_host_that_no_switch_checked_carry_no_label_of_rfc2544(reading: float | None, labelled: bool):
    forwards = router(6e6)

    def measure(load: Load, duration: float) -> Outcome:
        found = forwards(load, duration)
        return found if reading is None else replace(found, readings={**found.readings, HOST_COUNTS: reading})

    found = run("64b unidirectional ≥ 5 Mpps", measure, "rfc2544")
    assert found.ruling is Ruling.PASS and found.is_rfc2544_throughput is labelled


def test_the_label_of_rfc_2544_needs_the_whole_load():
    sure = run("64b unidirectional ≥ 5 Mpps", timed(1.0, 0.003), "rfc2544")
    assert sure.is_rfc2544_throughput
    assert [trial.outcome.load.pps for trial in sure.trials] == [5e6, pytest.approx(5e6 * (1 + 0.003 / 60), rel=1e-6)]
    assert not run("64b unidirectional ≥ 5 Mpps", timed(1.0, 0.2), "rfc2544").is_rfc2544_throughput
    assert not run("64b unidirectional ≥ 100% line rate", timed(1.0), "rfc2544").is_rfc2544_throughput
