"""What the losing side would attack: a PASS that contradicts its sentence, or sets a trial aside that proves a loss."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.goal import Goal, read_goal
from lineproof.core.latency import LatencyCount
from lineproof.core.trial import DirectionCount, Fault, Load, Outcome, Problem, Trial, assess_trial
from lineproof.core.verdict import Evidence, Ruling, Verdict, loss_rule, weigh
from lineproof.methods.sequential import TrialConditions
from support.known_router import GOALS, RANK, run

PPS = 1_000_000
NAMES = ("quick", "standard", "rfc2544")


def judged(sentence: str, goal: Goal | str, *forwarded: tuple[int, ...] | Outcome) -> Verdict:
    """The verdict where trial n forwards the n-th counts of frames per second; the last ones repeat."""
    rows = list(forwarded)

    def measure(load: Load, duration: float) -> Outcome:
        row = rows.pop(0) if len(rows) > 1 else rows[0]
        if isinstance(row, Outcome):
            return row
        frames = round(PPS * duration)
        counts = tuple(
            DirectionCount(place, 1 - place, frames, frames, round(count * duration)) for place, count in enumerate(row)
        )
        return Outcome(Load(PPS), duration, duration, 0.0, counts)

    return run(sentence, measure, goal)


@pytest.mark.parametrize("goal", NAMES)
@pytest.mark.parametrize("stray", [1, 5, 1000])
def test_stray_frames_excuse_no_loss_in_the_other_direction(goal: str, stray: int) -> None:
    found = judged("64b bidirectional ≥ 1 Mpps each way", goal, (PPS // 2, PPS + stray))
    assert found.ruling is Ruling.FAIL


@pytest.mark.parametrize("goal", ["quick", "standard"])
def test_trials_with_a_stray_frame_do_not_buy_a_pass(goal: str) -> None:
    bad, good = (PPS // 2, PPS + 1), (PPS, PPS)
    assert judged("64b bidirectional ≥ 1 Mpps each way", goal, bad, bad, bad, good).ruling is Ruling.FAIL


def test_what_a_problem_explains_is_bounded_by_its_frames_and_directions() -> None:
    ahead, back = DirectionCount(0, 1, 1000, 1000, 900), DirectionCount(1, 0, 1000, 1000, 900)
    outcome = Outcome(Load(1000), 1, 1, 0, (ahead, back))

    def certain(*problems: Problem) -> float:
        return Trial(1, outcome, problems).certain_loss_ratio(False)

    assert certain() == 0.1
    assert certain(Problem(Fault.SURPLUS, "", 40)) == pytest.approx(0.06)
    assert certain(Problem(Fault.SURPLUS, "", 40), Problem(Fault.GENERATOR, "", 60)) == 0
    assert certain(Problem(Fault.GENERATOR, "", 100, ((0, 1),))) == 0.1
    assert certain(Problem(Fault.COUNTERS, "", None, ((1, 0),))) == 0.1
    assert certain(Problem(Fault.LINK_DOWN, "")) == 0
    assert certain(Problem(Fault.UNDER_OFFERED, "")) == 0.1


def test_a_mean_below_the_threshold_is_no_pass() -> None:
    found = judged("64b unidirectional forwards ≥ 1 Mpps at 1 Mpps", "standard", (PPS,), (0,), (PPS,))
    assert found.ruling is Ruling.FAIL and "forwarded 966.7 kpps" in found.message


@pytest.mark.parametrize("loses", ["0.1%", "0.5%"])
def test_more_than_the_stated_loss_of_all_frames_is_no_pass(loses: str) -> None:
    share = float(loses.rstrip("%")) / 100
    bad = (round(PPS * (1 - 10.5 * share)),)
    rows = [bad, (PPS,), bad, (PPS,), (PPS,), bad, (PPS,)]
    found = judged(f"64b unidirectional loses ≤ {loses} at 1 Mpps", "standard", *rows)
    assert found.ruling is Ruling.FAIL and f"at most {100 * share:.3g} % of all frames" in found.message


def latency_trial(bucket: int) -> Outcome:
    counts = (DirectionCount(0, 1, PPS, PPS, PPS),)
    probes = LatencyCount(0, 1, 1000, 1000, 15.0, float(bucket), 10.0, {10: 999, bucket: 1})
    return Outcome(Load(PPS), 1.0, 1.0, 0.0, counts, latency=(probes,))


def test_a_maximum_is_that_of_all_trials() -> None:
    found = judged(
        "64b unidirectional latency max ≤ 100 µs at 1 Mpps", "standard", latency_trial(900_000), latency_trial(20)
    )
    assert found.ruling is Ruling.FAIL and "max of all probe frames of its trials together is 9e+05" in found.message


def test_a_percentile_is_that_of_all_trials() -> None:
    late = replace(latency_trial(20), latency=(replace(latency_trial(20).latency[0], histogram={10: 800, 5000: 200}),))
    rows = [late] * 4 + [latency_trial(20)]
    sentence = "64b unidirectional latency p99 ≤ 100 µs at 1 Mpps"
    assert judged(sentence, "standard", *rows).ruling is Ruling.FAIL
    few = replace(latency_trial(20), latency=(replace(latency_trial(20).latency[0], histogram={10: 985, 5000: 15}),))
    assert judged(sentence, "standard", few, latency_trial(20)).ruling is Ruling.PASS


def test_a_soak_that_loses_at_its_end_is_no_pass() -> None:
    good, bad = [(PPS,)] * 96, [(round(PPS * 0.998),)] * 24
    found = judged("64b unidirectional ≥ 1 Mpps for 2 min", "standard", *good, *bad)
    assert found.ruling is Ruling.FAIL
    assert "5 s of trials within 20 s lost more than the goal allows" in found.message
    spread = [(PPS,) if number % 10 else (round(PPS * 0.9995),) for number in range(120)]
    assert judged("64b unidirectional ≥ 1 Mpps for 2 min", "standard", *spread).ruling is Ruling.PASS


def test_more_trials_follow_until_the_loss_of_all_frames_is_small_enough() -> None:
    found = judged("64b unidirectional ≥ 1 Mpps", "quick", (990_000,), (PPS,))
    assert found.ruling is Ruling.PASS and len(found.trials) == 10  # 0.1 % of all frames; 9 are enough for the plan


RATES = st.integers(0, PPS)


@given(
    st.sampled_from(["64b unidirectional ≥ 1 Mpps", "64b unidirectional forwards ≥ 1 Mpps at 1 Mpps"]),
    st.sampled_from(["quick", "standard"]),
    st.lists(st.sampled_from([PPS, PPS, PPS - 1, PPS - 700, 990_000, 0]), min_size=1, max_size=25),
    st.data(),
)
def test_losing_more_never_makes_a_verdict_better(
    sentence: str, goal: str, rows: list[int], data: st.DataObject
) -> None:
    less = [data.draw(st.integers(0, 100_000)) for _ in rows]
    worse = [max(0, count - fewer) for count, fewer in zip(rows, less, strict=True)]
    before = judged(sentence, goal, *((count,) for count in rows), (PPS,)).ruling
    assert RANK[judged(sentence, goal, *((count,) for count in worse), (PPS,)).ruling] <= RANK[before]


@given(st.lists(st.tuples(RATES, st.integers(0, 2 * PPS)), min_size=1, max_size=12))
def test_a_pass_kept_its_sentence_over_all_trials(rows: list[tuple[int, int]]) -> None:
    found = judged("64b bidirectional ≥ 1 Mpps each way", "standard", *rows, (PPS, PPS))
    if found.ruling is Ruling.PASS:
        excess = sum(max(0, back - PPS) for _, back in rows)
        lost = sum(PPS - ahead for ahead, _ in rows)
        assert lost - excess <= 0.001 * PPS * len(found.trials)


@given(st.lists(st.booleans(), max_size=80), st.sampled_from([2.0, 5.0, 20.0]))
def test_a_bad_window_is_found_wherever_it_is(bad: list[bool], window: float) -> None:
    goal = read_goal(GOALS, "standard").model_copy(update={"window": window, "clear_loss_ratio": None})
    counts = [DirectionCount(0, 1, 100, 100, 90 if wrong else 100) for wrong in bad]
    trials = [
        assess_trial(number, Outcome(Load(100), 1.0, 1.0, 0.0, (count,)), TrialConditions().tolerance)
        for number, count in enumerate(counts, 1)
    ]
    width = int(window)
    slow = any(
        sum(bad[max(0, end - width) : end]) > goal.exceed_ratio * window + 1e-9 for end in range(1, len(bad) + 1)
    )
    assert (weigh(goal, trials, loss_rule(goal, False)).bad_window is not None) is slow


@given(
    st.lists(st.tuples(st.sampled_from(list(Evidence)), st.sampled_from([0.1, 1.0, 8.2])), max_size=40),
    st.sampled_from(NAMES),
)
def test_sums_are_those_of_all_trials_however_many_were_weighed_before(
    rows: list[tuple[Evidence, float]], name: str
) -> None:
    goal = read_goal(GOALS, name)
    count = (DirectionCount(0, 1, 100, 100, 100),)
    trials = [
        Trial(number, Outcome(Load(100), seconds, seconds, 0.0, count), ()) for number, (_, seconds) in enumerate(rows)
    ]
    looked_at: list[int] = []

    def evidence_of(trial: Trial) -> tuple[Evidence]:
        looked_at.append(trial.number)
        return (rows[trial.number][0],)

    found = weigh(goal, trials, evidence_of)
    assert looked_at == list(range(len(rows)))
    assert found.tally.good == sum(kind is Evidence.GOOD for kind, _ in rows)
    assert found.tally.bad == sum(kind.against_router for kind, _ in rows)
    assert found.tally.spoilt == sum(kind is Evidence.NONE for kind, _ in rows)
    if any(kind is Evidence.CLEAR for kind, _ in rows):
        assert found.ruling is Ruling.FAIL
