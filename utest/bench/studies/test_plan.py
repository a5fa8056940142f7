"""The plans in the goals' files: they keep the promises beside them, and are what the study computes."""

from functools import cache
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from lineproof.sla.goals import read_goal
from lineproof.sla.sequential_plan import SequentialPlan
from lineproof_bench.studies.plan import (
    bad_share,
    bounds_of,
    design,
    main,
    pass_share,
    shared_pass_share,
    wald_bound,
)
from lineproof_bench.studies.router_population import NOISE
from support.model_bench import PROJECT


@pytest.mark.parametrize("name", ["quick", "standard"])
@pytest.mark.parametrize("directions", range(1, 17))
def test_each_plan_keeps_the_promises_of_its_goal(name: str, directions: int) -> None:
    goal = read_goal(PROJECT.goals, name)
    for bound in bounds_of(goal.promises_for(directions), goal.final_trial_duration, directions):
        assert bound.wrong(goal.plan_for(directions)) <= bound.most_wrong


@st.composite
def plans(draw: st.DrawFn) -> SequentialPlan:
    passing = draw(st.lists(st.integers(1, 8), min_size=1, max_size=4))
    # nothing is decided before the first trial
    failing = [None, *draw(st.lists(st.none() | st.integers(0, 5), min_size=len(passing) - 1, max_size=3))]
    try:
        return SequentialPlan(good_for_pass=tuple(passing), good_for_fail=tuple(failing[: len(passing)]))
    except ValidationError:
        assume(False)
        raise


def together(plan: SequentialPlan, bads: tuple[float, ...]) -> float:
    """The share of routers that pass, one trial of all directions after the other."""

    @cache
    def share(trials: int, levels: tuple[int, ...]) -> float:
        if any(plan.fails(trials - level, level) for level in levels):
            return 0.0
        if all(plan.passes(trials - level, level) for level in levels):
            return 1.0
        found = {levels: 1.0}
        for place, bad in enumerate(bads):
            following: dict[tuple[int, ...], float] = {}
            for after, chance in found.items():
                worse = (*after[:place], after[place] + 1, *after[place + 1 :])
                following[after] = following.get(after, 0.0) + chance * (1 - bad)
                following[worse] = following.get(worse, 0.0) + chance * bad
            found = following
        return sum(chance * share(trials + 1, after) for after, chance in found.items())

    return share(0, (0,) * len(bads))


@settings(max_examples=60, deadline=None)
@given(plans(), st.lists(st.floats(0.01, 0.9), min_size=1, max_size=3))
def test_the_share_of_several_directions_is_that_of_all_their_trials(plan: SequentialPlan, bads: list[float]) -> None:
    assert shared_pass_share(plan, bads) == pytest.approx(together(plan, tuple(bads)), abs=1e-9)
    assert shared_pass_share(plan, bads[:1]) == pytest.approx(pass_share(plan, bads[0])[0], abs=1e-9)


def test_a_direction_that_could_pass_may_fail_while_others_go_on() -> None:
    plan = read_goal(PROJECT.goals, "standard").plan_for(8)
    bad = bad_share(0.005, NOISE, 1.0)
    alone, _ = pass_share(plan, bad)
    assert shared_pass_share(plan, [bad] * 8) < alone**8


def test_the_plan_of_a_file_is_the_one_computed() -> None:
    goal = read_goal(PROJECT.goals, "quick")
    assert design(goal.promises_for(1), 1.0, 15, 1) == goal.plan[1]


def test_promises_that_cannot_be_kept_have_no_plan() -> None:
    goal = read_goal(PROJECT.goals, "standard")
    assert design(goal.promises_for(1), 1.0, 8, 1) is None


def test_no_plan_is_below_walds_bound() -> None:
    plan = read_goal(PROJECT.goals, "standard").plan[1]
    sound, slow = bad_share(0.005, NOISE, 1.0), bad_share(0.0, NOISE, 1.0)
    (passed, trials), (wrong, more) = pass_share(plan, sound), pass_share(plan, slow)
    least, most = wald_bound(sound, 1 - passed, slow, wrong)
    assert trials >= least and more >= most


def test_a_study_of_another_plan_says_so_and_draws_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quick", "--plots", str(tmp_path)]) == 0
    assert "the file has these plans" in capsys.readouterr().out
    assert "quick, one direction" in (tmp_path / "plan.svg").read_text(encoding="utf-8")
