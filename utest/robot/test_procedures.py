"""The tables and pictures of searches, ramps, scaling and RFC 2544's tests."""

from __future__ import annotations

import math

import pytest

from lineproof.core.goal import Goal
from lineproof.core.trial import Load
from lineproof.evidence.document import Column
from lineproof.methods.ramp import RampPlan, ramp
from lineproof.methods.rfc2544 import back_to_back, loss_curve, throughput
from lineproof.methods.scaling import scale
from lineproof.methods.search import search
from lineproof.methods.trials import CharacterisationTerms
from lineproof.robot.procedures import (
    back_to_back_rows,
    loss_plot,
    ramp_plot,
    scaling_plot,
    search_plot,
    throughput_plot,
)
from support.pictures import words
from support.pure_router import LINE, PureRouter

GOAL = Goal(goal="test", final_trial_duration=1, duration_sum=2, loss_ratio=0, exceed_ratio=0, about="for these tests")


@pytest.mark.parametrize("deadline", [math.inf, 3, 0])
def test_a_search_can_be_drawn_however_far_it_came(deadline: float) -> None:
    terms = CharacterisationTerms(deadline=deadline)
    result = search(PureRouter(5e6), GOAL, Load(LINE / 1000), Load(LINE), terms)
    shown = words(search_plot(result, "T", simulated=True))
    assert "SIMULATED" in shown and "load of each port [Mpps]" in shown
    assert ("NDR" in shown) is (deadline == math.inf)


def test_each_procedure_is_drawn_with_its_names() -> None:
    router, terms = PureRouter(5e6), CharacterisationTerms()
    at_each = scale("flows", [1, 64], lambda value, seconds: search(router, GOAL, Load(LINE / 1000), Load(LINE), terms))
    drawn = {
        scaling_plot(at_each, "T"): "load carried by each port [Mpps] | NDR | PDR",
        ramp_plot(ramp(router, RampPlan(LINE, 20), terms), "T"): "hold begins | offered | forwarded | saturation",
        throughput_plot([throughput(router, 64, LINE, terms)], "T"): "theoretical maximum | throughput",
        loss_plot([loss_curve(router, 64, LINE, terms)], "T"): "64 bytes",
    }
    assert all(said in words(svg) for svg, said in drawn.items())


def test_a_burst_that_lost_nothing_is_a_bound() -> None:
    router = PureRouter(LINE / 2, buffer=1000)
    results = [
        back_to_back(router.send_burst, 64, LINE, LINE / 2, CharacterisationTerms(), repeats=2),
        back_to_back(PureRouter(LINE).send_burst, 64, LINE, LINE / 2, CharacterisationTerms(), longest=500),
    ]
    mean = Column("back-to-back", "frames, mean")
    limited, unlimited = (row[mean] for result in results for row in back_to_back_rows(result))
    assert limited in ("1,999.0", "2,000.0") and unlimited == "≥ 500.0"
