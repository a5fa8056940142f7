"""Pictures and tables of characterisations show the results, and whether they were simulated."""

import xml.etree.ElementTree as ElementTree
from functools import cache

import pytest

from lineproof.counts.trial import Load
from lineproof.evidence import characterisation as shown
from lineproof.evidence import rfc2544_report as report
from lineproof.methods.ramp import RampPlan, ramp
from lineproof.methods.rfc2544.back_to_back import back_to_back
from lineproof.methods.rfc2544.loss_rate import loss_curve
from lineproof.methods.rfc2544.throughput import throughput
from lineproof.methods.scaling import ScalingSetup, scale
from lineproof.methods.search import search
from lineproof.methods.trials import CharacterisationTerms, Deadline
from lineproof.sla.goals import Goal
from lineproof.units import line_rate_pps
from support.pure_router import LINE, PureRouter

GOAL = Goal(goal="test", final_trial_duration=1, duration_sum=2, loss_ratio=0, exceed_ratio=0, about="for these tests")
LINK = 10e9


def words(svg):
    return " ".join("".join(item.itertext()).strip() for item in ElementTree.fromstring(svg).iter() if item.text)


def searched(**deadline):
    return search(
        PureRouter(5e6), GOAL, Load(LINE / 1000), Load(LINE), CharacterisationTerms(deadline=Deadline(**deadline))
    )


@cache
def pictures():
    rising = ramp(PureRouter(5e6), RampPlan(LINE, steps=10, warm_up=1, hold=2), CharacterisationTerms())
    scaled = scale(
        "flows",
        [1, 8, 64],
        lambda flows: ScalingSetup(PureRouter(1e6 * flows), Load(LINE)),
        GOAL,
        CharacterisationTerms(),
    )
    sizes = [
        throughput(PureRouter(5e6), size, line_rate_pps(LINK, size), CharacterisationTerms())
        for size in (64, 512, 1518)
    ]
    curves = [
        loss_curve(PureRouter(5e6), 64, LINE, CharacterisationTerms()),
        loss_curve(PureRouter(1e6), 128, 8e6, CharacterisationTerms()),
    ]
    return {
        "search": lambda simulated: shown.search_plot(searched(), "T", simulated),
        "unfinished": lambda simulated: shown.search_plot(searched(traffic=3), "T", simulated),
        "nothing": lambda simulated: shown.search_plot(searched(traffic=0), "T", simulated),
        "ramp": lambda simulated: shown.ramp_plot(rising, "T", simulated),
        "scaling": lambda simulated: shown.scaling_plot(scaled, "T", simulated),
        "throughput": lambda simulated: report.throughput_plot(sizes, "T", simulated),
        "loss": lambda simulated: report.loss_plot(curves, "T", simulated),
    }


@pytest.mark.parametrize("name", ["search", "unfinished", "nothing", "ramp", "scaling", "throughput", "loss"])
def test_pictures_are_marked_and_the_same_each_time(name):
    draw = pictures()[name]
    marked = draw(True)
    assert "SIMULATED" in words(marked) and "SIMULATED" not in words(draw(False))
    assert marked == draw(True)


def test_a_burst_that_lost_nothing_is_a_bound():
    router = PureRouter(LINE / 2, buffer=1000)
    text = report.back_to_back_table(
        [
            back_to_back(router.send_burst, 64, LINE, LINE / 2, CharacterisationTerms(), repeats=2),
            back_to_back(PureRouter(LINE).send_burst, 64, LINE, LINE / 2, CharacterisationTerms(), longest=500),
        ],
        "Bursts",
    ).text()
    assert "1,999.0" in text or "2,000.0" in text
    assert "≥ 500" in text
