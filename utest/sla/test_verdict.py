import pytest

from lineproof.counts.trial import DirectionCount, Fault, Load, Outcome, Tolerance, assess_trial
from lineproof.methods.sequential import TrialConditions
from lineproof.methods.verify import verify
from lineproof.sla.goals import Goal, read_goal
from lineproof.sla.sentence import parse
from lineproof.sla.verdict import Ruling
from lineproof.traffic.catalogue import Catalogue
from support.known_router import GOALS, LINK, router, run, timed
from support.outcomes import outcome
from support.paths import ROOT

CATALOGUE = Catalogue.read(ROOT / "variables" / "profiles")


@pytest.mark.parametrize("name", ["quick", "standard", "rfc2544"])
def test_each_goal_is_a_file(name: str):
    assert read_goal(GOALS, name).goal == name


def test_rfc2544_goal_has_trials_of_60_s_without_loss():
    goal = read_goal(GOALS, "rfc2544")
    assert (goal.final_trial_duration, goal.loss_ratio, goal.exceed_ratio) == (60, 0, 0)


def test_pass_message():
    verdict = run("64b unidirectional ≥ 5 Mpps", router(6e6))
    assert verdict.message == (
        "PASS: 64b unidirectional ≥ 5 Mpps: lost 0 of 20000000 frames at 5 Mpps (3.36 Gbit/s L1, 2.56 Gbit/s L2,"
        " 33.6 % line rate) offered; goal 'quick'"
    )


def test_fail_message():
    verdict = run("64b bidirectional ≥ 95% line rate in total", router(12e6, directions=2))
    assert verdict.ruling is Ruling.FAIL
    assert verdict.message == (
        "FAIL: 64b bidirectional ≥ 95% line rate in total: lost 15.1 % at 14.14 Mpps offered (goal: 0 %); forwarded"
        " 12 Mpps (8.064 Gbit/s L1, 6.144 Gbit/s L2, 80.64 % line rate in total), -15.1 % against the"
        " threshold; one trial that loses more than 5 % decides; goal 'quick'"
    )


def test_slow_generator_is_inconclusive():
    verdict = run("64b unidirectional ≥ 5 Mpps", router(6e6, ceiling=1e6))
    assert verdict.ruling is Ruling.INCONCLUSIVE
    assert "1000000 of 5000000 frames (20.00 %)" in verdict.message
    assert "use a faster generator" in verdict.message


def test_loss_at_a_lower_load_is_a_fail():
    verdict = run("64b unidirectional ≥ 5 Mpps", router(0.5e6, ceiling=1e6))
    assert verdict.ruling is Ruling.FAIL
    assert "lost 50 % at 1 Mpps offered (less than was asked for, which already proves the FAIL)" in verdict.message


def test_forwarding_rate_is_compared_with_the_threshold():
    assert run("64b 1-flow forwards ≥ 5 Mpps", router(5.01e6)).ruling is Ruling.PASS
    assert run("64b 1-flow forwards ≥ 5 Mpps", router(4.99e6)).ruling is Ruling.FAIL
    slow = run("64b 1-flow forwards ≥ 5 Mpps", router(6e6, ceiling=4e6))
    assert slow.ruling is Ruling.INCONCLUSIVE
    assert "the generator offered 4 Mpps (forwarded: 4 Mpps), less than the 5 Mpps to be forwarded" in slow.message


def sequence(*outcomes: Outcome):
    """A measurement that returns *outcomes* one after another; the last one repeats."""
    left = list(outcomes)
    return lambda load, duration: left.pop(0) if len(left) > 1 else left[0]


def test_forwarding_rate_below_the_offered_threshold_is_inconclusive():
    found = run("64b 1-flow forwards ≥ 12 Mpps", router(2_999_999, ceiling=3e6))
    assert found.ruling is Ruling.INCONCLUSIVE


def test_trial_that_takes_twice_its_duration_is_inconclusive():
    slow = Outcome(Load(1000), 1.0, 2.0, 0.0, (DirectionCount(0, 1, 1000, 1000, 1000),))
    found = run("64b unidirectional ≥ 1 kpps", sequence(slow))
    assert found.ruling is Ruling.INCONCLUSIVE
    assert "2.00 s instead of 1 s" in found.message
    assert run("64b unidirectional forwards ≥ 800 pps", sequence(slow)).ruling is Ruling.INCONCLUSIVE


def test_wall_clock_does_not_count_on_a_simulated_clock():
    slow = Outcome(Load(1000), 1.0, 2.0, 0.0, (DirectionCount(0, 1, 1000, 1000, 1000),))
    assert assess_trial(1, slow, Tolerance(), clock_speed=50).valid
    uncertain = Outcome(Load(1000), 1.0, 1.1, 0.0, slow.directions, readings={"elapsed_uncertainty": 0.1})
    assert assess_trial(1, uncertain, Tolerance()).valid


def test_spoilt_trials_are_in_no_figure_of_the_router():
    flapped = outcome(load=1e6, loss=1.0, faults=(Fault.LINK_DOWN,))
    passed = run("64b unidirectional ≥ 1 Mpps", sequence(flapped, outcome(load=1e6)))
    assert passed.message.startswith("PASS: 64b unidirectional ≥ 1 Mpps: lost 0 of 4000000 frames at 1 Mpps")
    assert passed.figures["worst_loss_ratio"] == 0
    failed = run("64b unidirectional ≥ 1 Mpps", sequence(flapped, outcome(load=1e6, loss=0.001)))
    assert "lost 0.1 % at 1 Mpps offered (goal: 0 %)" in failed.message


def test_pass_with_loss_names_the_lossy_trials():
    found = run("64b unidirectional ≥ 1 Mpps", sequence(outcome(load=1e6, loss=0.007), outcome(load=1e6)))
    assert "lost 7000 of 9000000 frames" in found.message
    assert "in 1 of 9 trials, at most 0.7 %" in found.message


def test_failure_names_a_busy_generator():
    count = DirectionCount(0, 1, 1000, 1000, 900)
    busy = Outcome(Load(1000), 1, 1, 0, (count,), readings={"cpu_util": 93})
    found = run("64b unidirectional ≥ 1 kpps", sequence(busy))
    assert "the generator's CPU was 93 % busy, which may be a cause" in found.message


@pytest.mark.parametrize("forwarded", [1000, 900, 0])
def test_trial_of_an_overloaded_generator_is_inconclusive(forwarded):
    count = DirectionCount(0, 1, 1000, 1000, forwarded)
    bound = Outcome(Load(1000), 1, 1, 0, (count,), readings={"cpu_util": 98})
    for sentence in ("64b unidirectional ≥ 1 kpps", "64b unidirectional forwards ≥ 800 pps"):
        found = run(sentence, sequence(bound))
        assert found.ruling is Ruling.INCONCLUSIVE
        assert "the generator's CPU was too busy: 98 % of a second, at most 95 % is allowed" in found.message
        assert "use a faster generator" in found.message
    assert assess_trial(1, bound, Tolerance(cpu=98)).valid


def test_worse_direction_counts_unless_in_total():
    lopsided = Outcome(
        Load(1000), 1, 1, 0, (DirectionCount(0, 1, 1000, 1000, 1000), DirectionCount(1, 0, 1000, 1000, 900))
    )
    seen = assess_trial(1, lopsided, Tolerance())
    assert seen.loss_ratio(in_total=False) == 0.1
    assert seen.loss_ratio(in_total=True) == 0.05


def test_clear_verdict_needs_few_trials():
    assert len(run("64b unidirectional ≥ 5 Mpps", router(4.9e6), "standard").trials) == 3
    assert len(run("64b unidirectional ≥ 5 Mpps", router(1e6), "standard").trials) == 1
    scouted = run("64b unidirectional ≥ 5 Mpps", router(1e6), "rfc2544")
    assert [trial.outcome.duration for trial in scouted.trials] == [1]
    slow = run("64b unidirectional ≥ 5 Mpps", router(4.99e6), "rfc2544")
    assert [trial.outcome.duration for trial in slow.trials] == [1, 60]
    assert "1 of 1 trials lost more than the goal allows" in slow.message


def test_scout_does_not_count_for_a_pass():
    shorter = outcome(load=5e6, duration=1.0, loss=0.001)
    found = run("64b unidirectional ≥ 5 Mpps", sequence(shorter, outcome(load=5e6, duration=60.0)), "rfc2544")
    assert found.ruling is Ruling.PASS
    assert found.reason.startswith("lost 0 of 300000000 frames")
    assert found.reason.endswith("a scout of 1 s before them lost 5000 frames, which does not count")
    spoilt = outcome(load=5e6, duration=1.0, faults=(Fault.LINK_DOWN,))
    seen = run("64b unidirectional ≥ 5 Mpps", sequence(spoilt, outcome(load=5e6, duration=60.0)), "rfc2544")
    assert [trial.outcome.duration for trial in seen.trials] == [1, 60]


def test_one_trial_above_the_clear_loss_ratio_is_a_fail():
    burst, stall = outcome(load=1e6, loss=0.007), outcome(load=1e6, loss=0.06)
    assert run("64b unidirectional ≥ 1 Mpps", sequence(burst, outcome(load=1e6))).ruling is Ruling.PASS
    failed = run("64b unidirectional ≥ 1 Mpps", sequence(outcome(load=1e6), stall, outcome(load=1e6)))
    assert failed.ruling is Ruling.FAIL
    assert len(failed.trials) == 2
    assert "one trial that loses more than 5 % decides" in failed.message
    below = run("64b unidirectional ≥ 1 Mpps", sequence(outcome(load=1e6, sent=0.5, loss=0.12)))
    assert (below.ruling, len(below.trials)) == (Ruling.FAIL, 1)


def test_burst_in_a_nearly_empty_trial_is_no_clear_fail():
    burst = outcome(load=1e6, sent=0.005, loss=0.1)
    found = run("64b unidirectional ≥ 1 Mpps", sequence(burst, outcome(load=1e6)))
    assert found.ruling is Ruling.PASS
    assert run("64b unidirectional ≥ 1 Mpps", sequence(outcome(load=1e6, sent=0.005))).ruling is Ruling.INCONCLUSIVE


def test_soak_lasts_for_its_duration_sum():
    goal = read_goal(GOALS, "standard").model_copy(update={"duration_sum": 120.0, "whole": True})
    requirement = parse("64b unidirectional ≥ 1 Mpps", CATALOGUE)
    rows = sequence(outcome(load=1e6, loss=0.01), outcome(load=1e6))
    found = verify(requirement, Load(1e6), goal, rows, LINK, TrialConditions())
    assert found.ruling is Ruling.PASS
    assert sum(trial.outcome.duration for trial in found.trials) == 120
    assert "120 s of trials" in found.reason


def test_tolerances_of_frames_and_time_do_not_add_up():
    late = Outcome(Load(1e6), 1.0, 1.0095, 0.0, (DirectionCount(0, 1, 1_000_000, 995_100, 995_100),))
    (problem,) = assess_trial(1, late, Tolerance()).problems
    assert problem.fault is Fault.UNDER_OFFERED and "in 1.010 s" in problem.detail
    exact = Outcome(Load(1e6), 1.0, 1.005, 0.0, (DirectionCount(0, 1, 1_000_000, 998_000, 998_000),))
    assert assess_trial(1, exact, Tolerance()).valid


def test_lossy_trials_below_the_load_prevent_a_pass():
    below = [outcome(load=1e6, sent=0.9, loss=0.01)] * 2 + [outcome(load=1e6, sent=0.9)] * 2
    found = run("64b unidirectional ≥ 1 Mpps", sequence(*below, outcome(load=1e6)))
    assert found.ruling is Ruling.INCONCLUSIVE


def buffered(capacity: float, frames: int = 4096):
    """A router whose buffer takes the first frames beyond its capacity, in each trial anew."""

    def measure(load: Load, duration: float) -> Outcome:
        asked = round(load.pps * duration)
        count = DirectionCount(0, 1, asked, asked, min(asked, round(capacity * duration) + frames))
        return Outcome(load, duration, duration, 0.0, (count,))

    return measure


def test_trials_are_long_enough_to_overflow_a_buffer():
    slow = run("64b unidirectional ≥ 100 kpps", buffered(99e3), "standard")
    assert slow.ruling is Ruling.FAIL
    assert slow.goal.final_trial_duration == 5.2
    assert slow.goal.duration_sum == pytest.approx(20 * 5.2)
    passed = run("64b unidirectional ≥ 100 kpps", buffered(101e3), "standard")
    assert passed.ruling is Ruling.PASS
    assert "a buffer" not in passed.message
    first, *longer = passed.trials
    assert first.outcome.duration == 1.0
    assert len(longer) == len(run("64b unidirectional ≥ 5 Mpps", buffered(6e6), "standard").trials)


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
    assert "a buffer" not in passed.message
    slow = run("64b unidirectional ≥ 50 kpps", queueing(49e3, 4096), "standard")
    assert slow.ruling is Ruling.FAIL and slow.trials[0].outcome.duration == 1.0
    assert slow.trials[-1].outcome.duration > 4


def test_a_queue_that_never_overflows_is_no_pass():
    found = run("64b unidirectional ≥ 1 Mpps", queueing(0.97e6, 1e9), "standard")
    assert found.ruling is Ruling.INCONCLUSIVE
    assert "a queue may hide a shortage of 3 % of the load, at most 0.8 % is allowed" in found.message
    named = run("64b unidirectional ≥ 1 Mpps", queueing(0.996e6, 1e9), "standard")
    assert named.ruling is Ruling.PASS and "up to 0.4 % of the load was still under way" in named.message
    gate = run("64b unidirectional ≥ 1 Mpps", queueing(0.97e6, 1e9), "quick")
    assert gate.ruling is Ruling.INCONCLUSIVE and len(gate.trials) == 4


def test_frames_that_come_out_of_a_queue_later_are_not_forwarded_at_the_load():
    assert run("64b unidirectional forwards ≥ 1 Mpps", queueing(1.001e6, 100_000), "quick").ruling is Ruling.PASS
    late = run("64b unidirectional forwards ≥ 1 Mpps", queueing(0.98e6, 100_000), "standard")
    assert late.ruling is Ruling.FAIL and late.trials[0].outcome.duration == 1.0
    gate = run("64b unidirectional forwards ≥ 1 Mpps", queueing(0.98e6, 100_000), "quick")
    assert gate.ruling is Ruling.INCONCLUSIVE


def test_a_trial_that_took_longer_offered_less():
    late = run("64b unidirectional ≥ 20 kpps", timed(1.0099))
    assert late.ruling is Ruling.INCONCLUSIVE
    assert "20040 frames in up to 1.010 s, expected 20198" in late.message
    assert run("64b unidirectional ≥ 20 kpps", timed(1.0, 0.004)).ruling is Ruling.PASS
    assert run("64b unidirectional ≥ 20 kpps", timed(1.0, 0.015)).ruling is Ruling.INCONCLUSIVE
    assert run("64b unidirectional forwards ≥ 14.6 Mpps", timed(1.0, 0.02)).ruling is Ruling.INCONCLUSIVE


def test_a_little_more_is_asked_for_where_the_clock_needs_it():
    found = run("64b unidirectional ≥ 1 Mpps", timed(1.0, 0.003))
    assert found.ruling is Ruling.PASS
    assert [trial.outcome.load.pps for trial in found.trials][:2] == [1e6, pytest.approx(1.002e6)]
    assert "up to 0.2 % more was asked for, as much as the generator's clock is uncertain" in found.message
    assert "asked for" not in run("64b unidirectional ≥ 1 Mpps", timed(1.0, 0.001)).message
    # one that sends too few frames is slow
    slow = run("64b unidirectional ≥ 1 Mpps", sequence(outcome(load=1e6, sent=0.996)))
    assert slow.ruling is Ruling.INCONCLUSIVE and {trial.outcome.load.pps for trial in slow.trials} == {1e6}


def test_beyond_99_98_percent_of_line_rate_the_clocks_are_allowed_for():
    found = run("64b unidirectional ≥ 100% line rate", router(14.879e6))
    assert found.ruling is Ruling.PASS
    assert "judged at 99.98 % of line rate: the clocks of two ports may differ by 200 ppm" in found.message
    assert "judged at" not in run("64b unidirectional ≥ 99.97% line rate", router(14.879e6)).message
    assert run("64b unidirectional ≥ 100% line rate", router(14.87e6)).ruling is Ruling.FAIL
    assert run("64b unidirectional forwards ≥ 100% line rate", router(14.879e6)).ruling is Ruling.PASS


def test_duration_sum_of_a_soak_does_not_grow_with_its_trials():
    goal = read_goal(GOALS, "standard")
    soak = goal.model_copy(update={"duration_sum": 1800.0})
    assert (soak.for_load(50e3).final_trial_duration, soak.for_load(50e3).duration_sum) == (10, 1800)
    assert (goal.for_load(50e3).final_trial_duration, goal.for_load(50e3).duration_sum) == (10, 200)
    assert goal.for_load(5e6) == goal


def test_pass_names_the_shortage_that_a_buffer_may_hide():
    hidden = run("64b unidirectional ≥ 10 kpps", buffered(9.7e3), "standard")
    assert hidden.ruling is Ruling.PASS
    assert "a buffer of 4096 frames, if the router has one, hides a shortage of up to 4.1 %" in hidden.message
    assert "in trials of 10 s at this rate" in hidden.message


def test_buffer_does_not_hide_a_low_forwarding_rate():
    slow = run("64b unidirectional forwards ≥ 100 kpps", buffered(99e3), "standard")
    assert (slow.ruling, slow.goal.final_trial_duration) == (Ruling.FAIL, 5.2)
    # a tenth of what is asked for is there when the trial ends
    hidden = run("64b unidirectional forwards ≥ 40 kpps", buffered(39e3), "quick")
    assert hidden.ruling is Ruling.PASS
    assert "hides a shortage of up to 10.2 % in trials of 1 s at this rate" in hidden.message


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
