"""The plan of a goal: it ends, it is monotonic, and each direction is judged by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.goal import Goal, read_goal
from lineproof.core.sequential_plan import SequentialPlan
from lineproof.core.trial import DirectionCount, Load, Outcome, Trial
from lineproof.core.verdict import Ruling, loss_rule, weigh
from support.model_bench import PROJECT

ORDER = {Ruling.FAIL: 0, None: 1, Ruling.PASS: 2}


@st.composite
def plans(draw: st.DrawFn) -> SequentialPlan:
    """Any plan that is allowed."""
    passing = [draw(st.integers(1, 6))]
    for step in draw(st.lists(st.integers(-1, 4), max_size=4)):
        passing.append(max(1, passing[-1] + step))
    failing: list[int] = [draw(st.integers(-1, passing[0] - 1))]
    for least in passing[1:]:
        lowest = max(-1, failing[-1] - 1)
        failing.append(draw(st.integers(min(lowest, least - 1), least - 1)))
    fails = tuple(None if most < 0 else most for most in failing)
    return SequentialPlan(good_for_pass=tuple(passing), good_for_fail=fails)


def followed(plan: SequentialPlan, bad: list[bool]) -> tuple[Ruling | None, int]:
    """The ruling and the number of trials that it took."""
    for number in range(len(bad) + 1):
        wrong = sum(bad[:number])
        if plan.passes(number - wrong, wrong):
            return Ruling.PASS, number
        if plan.fails(number - wrong, wrong):
            return Ruling.FAIL, number
    return None, len(bad)


@given(plans(), st.lists(st.booleans(), min_size=40, max_size=40), st.data())
def test_a_bad_trial_in_place_of_a_good_one_never_makes_a_verdict_better(
    plan: SequentialPlan, bad: list[bool], data: st.DataObject
) -> None:
    worse = [item or data.draw(st.booleans()) for item in bad]
    assert ORDER[followed(plan, worse)[0]] <= ORDER[followed(plan, bad)[0]]


@given(plans(), st.lists(st.booleans(), min_size=40, max_size=40))
def test_every_sequence_of_trials_is_decided(plan: SequentialPlan, bad: list[bool]) -> None:
    ruling, trials = followed(plan, bad)
    assert ruling is not None and trials <= plan.most_trials
    wrong = sum(bad[:trials])
    assert not (plan.passes(trials - wrong, wrong) and plan.fails(trials - wrong, wrong))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"good_for_pass": (5, 3), "good_for_fail": (None, None)}, "good_for_pass must not fall by more than 1"),
        ({"good_for_pass": (5, 6), "good_for_fail": (3, 1)}, "good_for_fail must not fall by more than 1"),
        ({"good_for_pass": (5, 6), "good_for_fail": (None, 6)}, "good_for_fail must be below good_for_pass"),
        ({"good_for_pass": (5, 6), "good_for_fail": (None,)}, "as many entries"),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(wrong: dict[str, tuple[int | None, ...]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SequentialPlan.model_validate(wrong)


@given(st.integers(1, 30), st.floats(0, 0.9), st.lists(st.booleans(), min_size=30, max_size=30))
def test_without_a_plan_the_duration_sum_and_the_exceed_ratio_decide(
    trials: int, exceed: float, bad: list[bool]
) -> None:
    goal = Goal(goal="any", final_trial_duration=1, duration_sum=trials, loss_ratio=0, exceed_ratio=exceed, about="")
    ruling, number = followed(goal.plan_for(1), bad)
    wrong = sum(bad[:number])
    if ruling is Ruling.FAIL:
        assert wrong > exceed * trials - 1e-5
    else:
        assert wrong <= exceed * trials + 1e-5 and number - wrong >= (1 - exceed) * trials - 1e-5


def trial(number: int, *lost: int) -> Trial:
    counts = [DirectionCount(place, place + 1, 1000, 1000, 1000 - some) for place, some in enumerate(lost)]
    return Trial(number, Outcome(Load(1000), 1.0, 1.0, 0.0, tuple(counts)), ())


STANDARD = read_goal(PROJECT.goals, "standard")


def ruling(*rows: tuple[int, ...]) -> Ruling | None:
    return weigh(STANDARD, [trial(number, *row) for number, row in enumerate(rows)], loss_rule(STANDARD, False)).ruling


def test_each_direction_is_judged_by_itself() -> None:
    assert ruling((1, 0), (0, 1), (1, 0)) is None  # one direction would fail after two of two
    assert ruling((1, 0), (1, 0)) is Ruling.FAIL
    assert ruling(*[(0, 0)] * 7) is Ruling.PASS
    assert ruling(*[(0, 0)] * 6, (0, 1)) is None
    assert ruling(*[(0, 0)] * 6, (0, 1), *[(0, 0)] * 6) is Ruling.PASS


@given(
    st.lists(st.tuples(*[st.sampled_from([0, 0, 0, 1, 900])] * 3), min_size=1, max_size=30),
    st.lists(st.integers(0, 2), min_size=30, max_size=30),
)
def test_loss_in_any_direction_never_makes_a_verdict_better(rows: list[tuple[int, ...]], where: list[int]) -> None:
    worse = [
        tuple(max(lost, place == spot) for place, lost in enumerate(row))
        for row, spot in zip(rows, where, strict=False)
    ]
    before = next((found for number in range(1, 31) if (found := ruling(*rows[:number])) is not None), None)
    after = next((found for number in range(1, 31) if (found := ruling(*worse[:number])) is not None), None)
    assert ORDER[after] <= ORDER[before]


def test_trials_without_a_direction_prove_nothing() -> None:
    assert ruling(*[()] * 4) is Ruling.INCONCLUSIVE


@pytest.mark.parametrize("whole", [False, True])
def test_no_goal_passes_without_a_good_trial(whole: bool) -> None:
    terms = {"final_trial_duration": 1, "duration_sum": 1, "exceed_ratio": 0.999999999, "whole": whole}
    goal = Goal(goal="lax", loss_ratio=0, about="", window=1 if whole else None, **terms)
    assert not goal.plan_for(1).passes(0, 0)
