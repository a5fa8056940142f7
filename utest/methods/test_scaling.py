"""Throughput against what is varied: a point for every value, whatever goes wrong at one of them."""

import pytest

from linerate.counts.trial import Load
from linerate.errors import TestbedError
from linerate.methods.scaling import Setting, scale
from linerate.methods.trials import Deadline, Terms
from linerate.sla.goals import Goal
from support.pure_router import LINE, PureRouter

GOAL = Goal(goal="test", final_trial_duration=1, duration_sum=2, loss_ratio=0, exceed_ratio=0, about="for these tests")


def setting(queues):
    return Setting(PureRouter(min(LINE, 4e6 * queues)), Load(LINE))


def test_each_value_has_its_own_capacity():
    result = scale("queues", [1, 2, 3, 4], setting, GOAL, Terms())
    assert not result.unfinished
    lower = [point.result["NDR"].lower.pps for point in result.points]
    assert lower == pytest.approx([4e6, 8e6, 12e6, LINE], rel=0.006)


def test_a_value_that_cannot_be_set_up_does_not_end_the_others():
    def prepare(value):
        if value == 2:
            raise TestbedError("the router has no second queue")
        return setting(value)

    result = scale("queues", [1, 2, 3], prepare, GOAL, Terms())
    assert result.unfinished == (2,)
    assert "no second queue" in str(result)
    assert result.points[2].result is not None


def test_the_deadline_is_for_all_of_them():
    whole = scale("queues", [1, 2, 3], setting, GOAL, Terms())
    first = whole.points[0].result.traffic
    result = scale("queues", [1, 2, 3], setting, GOAL, Terms(deadline=Deadline(traffic=first + 3)))
    assert not result.points[0].result.unfinished
    assert result.points[1].result.ended.startswith("deadline: ")
    assert set(result.unfinished) == {2, 3}
    late = scale("queues", [1, 2], setting, GOAL, Terms(deadline=Deadline(traffic=first)))
    assert late.points[1].result is None or late.points[1].result.unfinished


def test_values_are_each_named_once():
    for values in ([], [1, 1]):
        with pytest.raises(ValueError, match="each once"):
            scale("flows", values, setting, GOAL, Terms())
