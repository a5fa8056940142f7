"""A soak that can no longer pass, and has not failed: it ends, or goes on where the run asks for the whole of it."""

from __future__ import annotations

import pytest

from lineproof.core.deciding import TrialConditions, decide
from lineproof.core.doubts import OwnPart
from lineproof.core.goal import read_goal
from lineproof.core.rule import Ruling
from lineproof.core.sentence import parse
from lineproof.core.trial import DirectionCount, Fault, Load, Outcome, Problem
from support.catalogue import CATALOGUE
from support.paths import VARIABLES


@pytest.mark.parametrize(("whole", "fewest", "most"), [(False, 1, 10), (True, 120, 120)])
def test_a_soak_that_can_no_longer_pass_goes_on_only_where_the_whole_is_asked_for(
    whole: bool, fewest: int, most: int
) -> None:
    def down_at_first(load: Load, seconds: float) -> Outcome:
        frames, lost = round(load.pps * seconds), 100_000 * (not numbers)
        problems = () if numbers else (Problem(Fault.LINK_DOWN, "port 0"),)
        numbers.append(len(numbers))
        row = DirectionCount(0, 1, frames, frames, frames - lost)
        return Outcome(load, seconds, seconds, 0.0, (row,), problems=problems)

    numbers: list[int] = []
    goal = read_goal(VARIABLES / "goals", "quick")
    promise = parse("64b unidirectional ≥ 1 Mpps for 2 min", CATALOGUE).promise(goal, Load(1e6), 10e9, OwnPart(10_000))
    decision = decide(promise, down_at_first, TrialConditions(whole_soak=whole), 14.88e6)
    assert decision.ruling in (None, Ruling.INCONCLUSIVE) and fewest <= len(decision.trials) <= most
