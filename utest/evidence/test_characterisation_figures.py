"""Pictures and tables of characterisations show the results, and whether they were simulated."""

import re
import xml.etree.ElementTree as ElementTree
from functools import cache

import pytest

from lineproof.counts.trial import Load
from lineproof.evidence import characterisation as shown
from lineproof.evidence import rfc2544_report as report
from lineproof.methods.ramp import RampPlan, ramp
from lineproof.methods.rfc2544.back_to_back import back_to_back
from lineproof.methods.rfc2544.latency import latency
from lineproof.methods.rfc2544.loss_rate import loss_curve
from lineproof.methods.rfc2544.throughput import throughput
from lineproof.methods.scaling import ScalingSetup, scale
from lineproof.methods.search import search
from lineproof.methods.trials import CharacterisationTerms, Deadline
from lineproof.sla.goals import Goal
from lineproof.units import line_rate_pps
from support.evidence_builders import NamedTraffic
from support.pure_router import LINE, PureRouter

GOAL = Goal(goal="test", final_trial_duration=1, duration_sum=2, loss_ratio=0, exceed_ratio=0, about="for these tests")
TRAFFIC = NamedTraffic("64b <1-flow>", 64.0)
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


def test_the_throughput_graph_has_the_theoretical_line():
    text = words(pictures()["throughput"](False))
    assert "theoretical maximum" in text and "frame size" in text


def test_both_axes_of_the_loss_graph_go_from_0_to_100():
    text = words(pictures()["loss"](False))
    assert text.count("100") >= 2 and "64 bytes" in text and "128 bytes" in text


def test_a_search_table_has_every_unit():
    grid = shown.search_table(searched(), TRAFFIC, LINK, "A <search>", True)
    text = grid.text()
    assert text.startswith("SIMULATED") and "NDR" in text and "PDR" in text and "0.50 %" in text
    assert "33.5" in text and "goal 'test'" in text
    assert "A &lt;search&gt;" in grid.page() and "<search>" not in grid.page()
    late = shown.search_table(searched(traffic=3), TRAFFIC, LINK, "late").text()
    assert "deadline: " in late and "unfinished" in late


def test_a_ramp_table_has_every_step_its_definition_and_deviation():
    result = ramp(PureRouter(5e6), RampPlan(LINE, steps=10, warm_up=1, hold=2), CharacterisationTerms())
    text = shown.ramp_table(result, "Ramp").text()
    assert len(re.findall(r"^ *ramp ", text, re.MULTILINE)) == 10
    assert "saturation is the lowest load" in text and "traffic pauses between" in text


def test_tables_of_rfc_2544_declare_their_deviations_once():
    sizes = [
        throughput(PureRouter(5e6), size, line_rate_pps(LINK, size), CharacterisationTerms(), duration=2)
        for size in (64, 128)
    ]
    text = report.throughput_table(sizes, "Throughput").text()
    assert text.count("trials of 2 s") == 1 and "14,880,952" in text
    measured = latency(lambda load, seconds: (11.0, 12.0), 64, Load(5e6), repeats=2, duration=1)
    text = report.latency_table([measured], "Latency", "10GBASE-SR").text()
    assert "10GBASE-SR" in text and "11.00" in text and "at least 20 repetitions" in text
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
    curve = loss_curve(PureRouter(5e6), 64, LINE, CharacterisationTerms(deadline=Deadline(traffic=130)))
    assert "64 bytes: deadline: " in report.loss_table([curve], "Loss").text()
