"""Throughput against a varied value: a point for every value, also after an error at another one."""

import pytest

from lineproof.counts.trial import Load
from lineproof.errors import TestbedError
from lineproof.methods.scaling import ScalingSetup, scale
from lineproof.methods.trials import CharacterisationTerms, Deadline
from lineproof.sla.goals import Goal
from support.pure_router import LINE, PureRouter

GOAL = Goal(goal="test", final_trial_duration=1, duration_sum=2, loss_ratio=0, exceed_ratio=0, about="for these tests")


def setting(queues):
    return ScalingSetup(PureRouter(min(LINE, 4e6 * queues)), Load(LINE))


def test_each_value_has_its_own_bounds():
    result = scale("queues", [1, 2, 3, 4], setting, GOAL, CharacterisationTerms())
    assert not result.unfinished
    lower = [point.result["NDR"].lower.pps for point in result.points]
    assert lower == pytest.approx([4e6, 8e6, 12e6, LINE], rel=0.006)


def test_value_that_cannot_be_set_up_has_no_result():
    def prepare(value):
        if value == 2:
            raise TestbedError("the router has no second queue")
        return setting(value)

    result = scale("queues", [1, 2, 3], prepare, GOAL, CharacterisationTerms())
    assert result.unfinished == (2,)
    assert "no second queue" in str(result)
    assert result.points[2].result is not None


def test_deadline_is_for_all_values_together():
    whole = scale("queues", [1, 2, 3], setting, GOAL, CharacterisationTerms())
    first = whole.points[0].result.traffic
    result = scale("queues", [1, 2, 3], setting, GOAL, CharacterisationTerms(deadline=Deadline(traffic=first + 3)))
    assert not result.points[0].result.unfinished
    assert result.points[1].result.ended.startswith("deadline: ")
    assert set(result.unfinished) == {2, 3}
    late = scale("queues", [1, 2], setting, GOAL, CharacterisationTerms(deadline=Deadline(traffic=first)))
    assert late.points[1].result is None or late.points[1].result.unfinished


def test_values_must_be_different():
    for values in ([], [1, 1]):
        with pytest.raises(ValueError, match="each once"):
            scale("flows", values, setting, GOAL, CharacterisationTerms())
