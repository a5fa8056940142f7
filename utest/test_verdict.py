from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linerate.goals import Goal, read_goal
from linerate.methods.saturate import saturate
from linerate.methods.sequential import Conditions
from linerate.methods.verify import verify
from linerate.profiles import Catalogue
from linerate.requirement import parse
from linerate.trial import DirectionCount, Fault, Load, Outcome, Problem, Tolerance, Trial, judge
from linerate.verdict import Ruling, Verdict, decide, weigh_loss

ROOT = Path(__file__).parents[1]
CATALOGUE = Catalogue.read(ROOT / "variables" / "profiles")
GOALS = ROOT / "variables" / "goals"
LINK = 10e9


def outcome(
    load: float = 1000.0, duration: float = 1.0, loss: float = 0.0, sent: float = 1.0, faults: tuple[Fault, ...] = ()
) -> Outcome:
    asked = round(load * duration)
    offered = round(asked * sent)
    count = DirectionCount(0, 1, asked, offered, offered - round(offered * loss))
    problems = tuple(Problem(fault, "for a test") for fault in faults)
    return Outcome(Load(load), duration, duration, 0.0, (count,), problems)


def trial(**what: object) -> Trial:
    return judge(1, outcome(**what), Tolerance())  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["quick", "standard", "rfc2544"])
def test_the_goals_are_files(name: str):
    assert read_goal(GOALS, name).goal == name


def test_rfc2544_is_sixty_seconds_without_a_lost_frame():
    goal = read_goal(GOALS, "rfc2544")
    assert (goal.final_trial_duration, goal.loss_ratio, goal.exceed_ratio) == (60, 0, 0)


def any_goal() -> st.SearchStrategy[Goal]:
    return st.builds(
        lambda sum_, loss, exceed, invalid: Goal(
            goal="any",
            final_trial_duration=1,
            duration_sum=sum_,
            loss_ratio=loss,
            exceed_ratio=exceed,
            invalid_trials=invalid,
            about="",
        ),
        st.integers(1, 20),
        st.sampled_from([0, 0.001, 0.1]),
        st.floats(0, 0.9),
        st.integers(0, 5),
    )


def trials() -> st.SearchStrategy[Trial]:
    return st.builds(
        lambda loss, sent, faults: trial(loss=loss, sent=sent, faults=tuple(faults)),
        st.sampled_from([0, 0.0005, 0.01, 0.5, 1.0]),
        st.sampled_from([0, 0.5, 0.99, 1.0, 1.2]),
        st.lists(st.sampled_from(Fault), max_size=1),
    )


@given(any_goal(), st.lists(trials(), max_size=30))
def test_a_pass_has_the_goals_evidence(goal: Goal, seen: list[Trial]):
    if decide(goal, seen, weigh_loss(goal, False)) is Ruling.PASS:
        good = [item for item in seen if item.valid and item.loss_ratio(False) <= goal.loss_ratio]
        assert len(good) >= goal.duration_sum * (1 - goal.exceed_ratio) - 1e-6


@given(any_goal(), st.lists(trials(), max_size=30))
def test_a_fail_needs_loss_that_is_the_routers(goal: Goal, seen: list[Trial]):
    if decide(goal, seen, weigh_loss(goal, False)) is Ruling.FAIL:
        assert any(item.blames_router and item.loss_ratio(False) > goal.loss_ratio for item in seen)


@given(any_goal(), st.lists(st.floats(0, 0.999), min_size=1, max_size=30))
def test_unsent_frames_alone_never_fail_and_never_pass(goal: Goal, shares: list[float]):
    seen = [trial(sent=min(share, 0.98)) for share in shares]
    assert decide(goal, seen, weigh_loss(goal, False)) in (None, Ruling.INCONCLUSIVE)


@given(any_goal(), st.lists(trials(), min_size=1, max_size=20), st.data())
def test_more_loss_never_turns_a_verdict_for_the_better(goal: Goal, seen: list[Trial], data: st.DataObject):
    index = data.draw(st.integers(0, len(seen) - 1))
    worse = list(seen)
    count = worse[index].outcome.directions[0]
    fewer = DirectionCount(0, 1, count.intended, count.offered, 0)
    old = worse[index].outcome
    worse[index] = judge(1, Outcome(old.load, 1.0, 1.0, 0.0, (fewer,), old.problems), Tolerance())
    order = {Ruling.PASS: 2, None: 1, Ruling.INCONCLUSIVE: 1, Ruling.FAIL: 0}
    weigh = weigh_loss(goal, False)
    assert order[decide(goal, worse, weigh)] <= order[decide(goal, seen, weigh)]


def run(sentence: str, measure, goal: str = "quick") -> Verdict:
    requirement = parse(sentence, CATALOGUE)
    chosen = read_goal(GOALS, goal)
    if requirement.quantity.value == "forwards":
        load = Load(requirement.profile.line_rate_pps(LINK))
        return saturate(requirement, load, chosen, measure, LINK, Conditions())
    return verify(requirement, requirement.threshold_load(LINK), chosen, measure, LINK, Conditions())


def router(capacity: float, ceiling: float = 1e9, directions: int = 1):
    """A router of a known capacity (frames/s, all directions) behind a generator with a ceiling (frames/s a port)."""

    def measure(load: Load, duration: float) -> Outcome:
        asked = round(load.pps * duration)
        offered = min(asked, round(ceiling * duration))
        share = min(1.0, capacity * duration / (offered * directions))
        counts = [DirectionCount(n, 1 - n, asked, offered, round(offered * share)) for n in range(directions)]
        return Outcome(load, duration, duration, 0.0, tuple(counts))

    return measure


def test_pass_message():
    verdict = run("64b unidirectional ≥ 5 Mpps", router(6e6))
    assert verdict.message == (
        "PASS: 64b unidirectional ≥ 5 Mpps: lost 0 of 35000000 frames at 5 Mpps (3.36 Gbit/s L1, 2.56 Gbit/s L2,"
        " 33.6 % line rate) offered; goal 'quick': trials of 1 s, duration sum 10 s, loss ratio 0, exceed ratio 0.3"
    )


def test_fail_message():
    verdict = run("64b bidirectional ≥ 95% line rate in total", router(12e6, directions=2))
    assert verdict.outcome is Ruling.FAIL
    assert verdict.message == (
        "FAIL: 64b bidirectional ≥ 95% line rate in total: lost 15.1 % at 14.14 Mpps offered (goal: 0 %); forwarded"
        " 12 Mpps (8.064 Gbit/s L1, 6.144 Gbit/s L2, 80.64 % line rate in total), -15.1 % against the"
        " threshold; 4 s of trials lost more than the goal allows, 0 s did not; goal 'quick': trials of 1 s, duration"
        " sum 10 s, loss ratio 0, exceed ratio 0.3"
    )


def test_a_slow_generator_is_inconclusive():
    verdict = run("64b unidirectional ≥ 5 Mpps", router(6e6, ceiling=1e6))
    assert verdict.outcome is Ruling.INCONCLUSIVE
    assert "1000000 of 5000000 frames (20.00 %)" in verdict.message
    assert "use a faster generator" in verdict.message


def test_loss_at_a_lower_load_fails_all_the_same():
    verdict = run("64b unidirectional ≥ 5 Mpps", router(0.5e6, ceiling=1e6))
    assert verdict.outcome is Ruling.FAIL
    assert "lost 50 % at 1 Mpps offered (less than was asked for, which already proves it)" in verdict.message


def test_forwarding_rate():
    assert run("64b 1-flow forwards ≥ 5 Mpps", router(5.01e6)).outcome is Ruling.PASS
    assert run("64b 1-flow forwards ≥ 5 Mpps", router(4.99e6)).outcome is Ruling.FAIL
    slow = run("64b 1-flow forwards ≥ 5 Mpps", router(6e6, ceiling=4e6))
    assert slow.outcome is Ruling.INCONCLUSIVE
    assert (
        "the generator offered 4 Mpps (forwarded: 4 Mpps), less than the 5 Mpps that are to come back" in slow.message
    )


def sequence(*outcomes: Outcome):
    """Answers trial by trial, the last one for ever."""
    left = list(outcomes)
    return lambda load, duration: left.pop(0) if len(left) > 1 else left[0]


def test_a_slow_generator_and_a_lost_frame_are_no_fail_of_a_forwarding_rate():
    found = run("64b 1-flow forwards ≥ 12 Mpps", router(2_999_999, ceiling=3e6))
    assert found.outcome is Ruling.INCONCLUSIVE


def test_half_the_load_in_twice_the_time_is_no_pass():
    slow = Outcome(Load(1000), 1.0, 2.0, 0.0, (DirectionCount(0, 1, 1000, 1000, 1000),))
    found = run("64b unidirectional ≥ 1 kpps", sequence(slow))
    assert found.outcome is Ruling.INCONCLUSIVE
    assert "2.00 s instead of 1 s" in found.message
    assert run("64b unidirectional forwards ≥ 800 pps", sequence(slow)).outcome is Ruling.INCONCLUSIVE


def test_on_a_simulated_clock_the_wall_says_nothing():
    slow = Outcome(Load(1000), 1.0, 2.0, 0.0, (DirectionCount(0, 1, 1000, 1000, 1000),))
    assert judge(1, slow, Tolerance(), clock_speed=50).valid
    uncertain = Outcome(Load(1000), 1.0, 1.1, 0.0, slow.directions, readings={"elapsed_uncertainty": 0.1})
    assert judge(1, uncertain, Tolerance()).valid


def test_what_the_bench_spoilt_is_in_no_figure_of_the_router():
    flapped = outcome(load=1e6, loss=1.0, faults=(Fault.LINK_DOWN,))
    passed = run("64b unidirectional ≥ 1 Mpps", sequence(flapped, outcome(load=1e6)))
    assert passed.message.startswith("PASS: 64b unidirectional ≥ 1 Mpps: lost 0 of 7000000 frames at 1 Mpps")
    assert passed.figures["worst_loss_ratio"] == 0
    failed = run("64b unidirectional ≥ 1 Mpps", sequence(flapped, outcome(load=1e6, loss=0.001)))
    assert "lost 0.1 % at 1 Mpps offered (goal: 0 %)" in failed.message


def test_a_pass_with_loss_says_why_it_is_one():
    found = run("64b unidirectional ≥ 1 Mpps", sequence(outcome(load=1e6, loss=0.01), outcome(load=1e6)))
    assert "lost 10000 of 8000000 frames" in found.message
    assert "in 1 of 8 trials (1 s; the goal allows 3 s), at most 1 %" in found.message


def test_a_busy_generator_is_named_in_a_failure():
    count = DirectionCount(0, 1, 1000, 1000, 900)
    busy = Outcome(Load(1000), 1, 1, 0, (count,), readings={"cpu_util": 97})
    found = run("64b unidirectional ≥ 1 kpps", sequence(busy))
    assert "the generator's CPU was 97 % busy, which may be a cause" in found.message


def test_only_the_rfc2544_goal_may_be_called_so():
    assert run("64b unidirectional ≥ 5 Mpps", router(6e6), "rfc2544").is_rfc2544_throughput
    assert not run("imix unidirectional ≥ 1 Mpps", router(6e6), "rfc2544").is_rfc2544_throughput
    assert not run("64b unidirectional ≥ 5 Mpps", router(4e6), "rfc2544").is_rfc2544_throughput
    assert not run("64b unidirectional ≥ 5 Mpps", router(6e6), "standard").is_rfc2544_throughput


def test_the_worse_direction_counts_unless_in_total():
    lopsided = Outcome(
        Load(1000), 1, 1, 0, (DirectionCount(0, 1, 1000, 1000, 1000), DirectionCount(1, 0, 1000, 1000, 900))
    )
    seen = judge(1, lopsided, Tolerance())
    assert seen.loss_ratio(in_total=False) == 0.1
    assert seen.loss_ratio(in_total=True) == 0.05


def test_an_early_verdict_costs_few_trials():
    assert len(run("64b unidirectional ≥ 5 Mpps", router(1e6), "standard").trials) == 4
    assert len(run("64b unidirectional ≥ 5 Mpps", router(1e6), "rfc2544").trials) == 1
