"""The plans in the goals' files: they keep the promises beside them, and are what the study computes."""

import pytest

from linerate.sla.goals import read_goal
from linerate_bench.studies.plan import DIRECTIONS, bad_share, bounds_of, design, main, pass_share, wald_bound
from linerate_bench.studies.router_population import NOISE
from support.model_bench import PROJECT


@pytest.mark.parametrize("name", ["quick", "standard"])
@pytest.mark.parametrize("directions", DIRECTIONS)
def test_each_plan_keeps_the_promises_of_its_goal(name: str, directions: int) -> None:
    goal = read_goal(PROJECT.goals, name)
    for bound in bounds_of(goal.promises, goal.final_trial_duration, directions):
        passed, _ = pass_share(goal.plan[directions], bound.bad)
        assert passed >= bound.share if bound.at_least else passed <= bound.share


def test_the_plan_of_a_file_is_the_one_computed() -> None:
    goal = read_goal(PROJECT.goals, "quick")
    assert design(goal.promises, 1.0, 15, 1) == goal.plan[1]


def test_promises_that_cannot_be_kept_have_no_plan() -> None:
    goal = read_goal(PROJECT.goals, "standard")
    assert design(goal.promises, 1.0, 8, 1) is None


def test_no_plan_is_below_walds_bound() -> None:
    plan = read_goal(PROJECT.goals, "standard").plan[1]
    sound, slow = bad_share(0.005, NOISE, 1.0), bad_share(0.0, NOISE, 1.0)
    (passed, trials), (wrong, more) = pass_share(plan, sound), pass_share(plan, slow)
    least, most = wald_bound(sound, 1 - passed, slow, wrong)
    assert trials >= least and more >= most


def test_a_study_of_another_plan_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quick"]) == 0
    assert "the file has these plans" in capsys.readouterr().out
