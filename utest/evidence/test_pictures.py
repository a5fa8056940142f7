"""The picture of a sentence shows its own quantity beside the promise; one of a PASS looks like a PASS."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.bounds import Bounds
from lineproof.core.quantity import Quantity
from lineproof.core.registry import quantities
from lineproof.core.trial import DirectionCount, Fault, Load, Outcome, Problem, Trial
from lineproof.documents import chart
from lineproof.documents.chart import AREAS, SIGNS, Chart, Part, columns, linear
from lineproof.evidence.pictures import plot_name, sentence_plot
from support.evidence_builders import SECOND, requirement_record, words
from support.made_trials import SENTENCES, Made, Way

BOX = re.compile(r'height="([\d.]+)" fill="([^"]+)"')


def picture(sentence: str, *trials: Trial, **more: Any) -> str:
    return sentence_plot(requirement_record(sentence=sentence), trials, sentence, **more)


@pytest.mark.parametrize("quantity", quantities().values(), ids=str)
def test_each_quantity_draws_its_trials_its_promise_and_nothing_of_none(quantity: Quantity) -> None:
    made = Made((Way(),))
    for asked in SENTENCES.get(quantity.name, (quantity.example,)):
        sentence = f"64b unidirectional {asked}"
        record = requirement_record(sentence=sentence)
        shown = words(picture(sentence, *(made.trial(number) for number in range(3)), simulated=True))
        assert record.requirement.text() in shown and "SIMULATED" in shown and "set aside" not in shown
        assert "nothing was measured" not in shown
        assert plot_name(record.requirement)[:7] in ("Offered", "Latency", quantity.title[:7])
        aside = picture(sentence, *(Made((Way(),), ((Fault.COUNTERS, None, (), 0.0),)).trial(n) for n in (1, 2)))
        assert "set aside" in words(aside)
        assert "nothing was measured" in words(picture(sentence))


@pytest.mark.parametrize(("forwarded", "is_kept"), [(5_300_000, True), (4_300_000, False)])
def test_red_is_what_was_lost_of_a_promise(forwarded: int, is_kept: bool) -> None:
    counts = (DirectionCount(0, 1, 14_000_000, 14_000_000, forwarded),)
    sent = Trial(1, Outcome(Load(14e6), 1.0, 1.0, 0.0, counts), (), SECOND)
    svg = picture("64b unidirectional forwards ≥ 5 Mpps", sent)
    assert "lost, which this sentence allows" in words(svg) and ("lost |" in words(svg)) is not is_kept
    changed = replace(sent, outcome=replace(sent.outcome, directions=(replace(counts[0], changed=1),)))
    assert "lost or changed" in words(picture("64b unidirectional forwards ≥ 5 Mpps", changed))
    heights = {fill: float(height) for height, fill in BOX.findall(svg) if height != "11.00"}
    missing = heights.get("url(#hatch45-d1382c)", 0.0) / heights["#2c6fa6"]
    assert missing == pytest.approx(0.0 if is_kept else 0.7 / 4.3, abs=1e-3)


@pytest.mark.parametrize("asked", ["≥ 5 Mpps", "forwards ≥ 5 Mpps"])
def test_frames_that_came_back_changed_are_no_small_loss(asked: str) -> None:
    counts = (DirectionCount(0, 1, 5_000_000, 5_000_000, 4_999_000, changed=1000),)
    problems = (Problem(Fault.CHANGED, "1,000 of 1,000", 4_990_000.0),)
    svg = picture(f"64b unidirectional {asked}", Trial(1, Outcome(Load(5e6), 1.0, 1.0, 0.0, counts), problems, SECOND))
    assert "may have come back changed" in words(svg) and "≤ 4.999 Mpps: changed" in words(svg)
    assert "0.02 %" not in words(svg) and "lost or changed" in words(svg)
    heights = {fill: float(height) for height, fill in BOX.findall(svg) if height != "11.00"}
    assert heights["#2c6fa6"] < 0.01 * heights[f"url(#hatch-45-{chart.CHANGED.colour[1:]})"]


def test_after_a_pass_come_the_higher_loads_each_with_what_it_lost() -> None:
    made = [
        Trial(number, Outcome(Load(load), 1.0, 1.0, 0.0, (DirectionCount(0, 1, load, load, came),)), (), SECOND)
        for number, load, came in ((1, 5_000_000, 5_000_000), (1, 9_000_000, 6_000_000), (2, 6_000_000, 6_000_000))
    ]
    svg = picture("64b unidirectional ≥ 5 Mpps", *made[:1], searched=made[1:])
    assert re.search(r"1 \| 6 M \| 9 M \|.* −33.3 %", words(svg)) and "lost at a load beyond the promise" in words(svg)
    tall = [float(height) for height, fill in BOX.findall(svg) if fill == "#2c6fa6" and height != "11.00"]
    assert [height / tall[0] for height in tall] == pytest.approx([1, 1.2, 1.2], abs=1e-3)
    assert chart.LOST.colour not in svg


EVIL = "</text><script>alert('$x$ & \"y\"')</script>]]>\x1b[31m"
LIMIT = 5.0, "≥ the promise"


def drawn(name: str = "a name", simulated: bool = False, is_level: bool = False) -> str:
    """Return a picture of everything that there is: an area, bars, a range without an end, a curve, a promise."""
    plot = Chart(name, columns(name, [name, "b"]), linear(f"{name} [Mpps]", 10.0), simulated, is_level)
    plot.area((-math.inf, math.inf), (5.0, -math.inf), chart.WORSE, "breaks the promise")
    for place, size in enumerate((3.0, 6.0)):
        plot.bar(place, [Part(size, name, AREAS[0])])
        plot.label(place, size, name)
    plot.range(plot.beside(0, 1, 2), Bounds(7.0, math.inf), SIGNS[1], name)
    plot.curve([(0.0, 2.0), (1.0, 4.0)], name, SIGNS[0])
    plot.caption((1.0, math.inf), name)
    plot.limit(*LIMIT)
    return plot.svg()


def test_a_picture_says_what_it_shows_as_text_whatever_is_in_a_name() -> None:
    svg, marked = drawn(EVIL), words(drawn(simulated=True))
    for said in ("Mpps", "≥ the promise", "no end seen", "breaks the promise"):
        assert said in marked and said in words(svg)
    assert "SIMULATED – not a measurement" in marked and "SIMULATED" not in words(svg)
    assert "<script" not in svg and "\x1b" not in svg and drawn(EVIL) == svg
    assert "<script>alert(" in words(svg) and "<script>alert(" in (ElementTree.fromstring(svg)[0].text or "")


def test_bars_that_lie_have_their_names_beside_them() -> None:
    svg = drawn("a name as long as the picture is wide " * 9, is_level=True)
    assert "a name as long" in words(svg) and "…" in words(svg)
    assert all(float(x) >= 0 for x in re.findall(r' x="(-?[\d.]+)', svg))


@given(st.floats(1e-3, 1e9))
def test_an_axis_has_a_few_round_numbers_and_says_them_exactly(end: float) -> None:
    values, texts = zip(*chart.ticks(end), strict=True)
    assert values[0] == 0 and 3 <= len(values) <= 8
    assert end - values[1] < values[-1] * (1 + 1e-9) and values[-1] <= end * (1 + 1e-9)
    assert [float(text) for text in texts] == pytest.approx(values)
    assert f"{values[1]:e}"[0] in "125" and set(f"{values[1]:e}"[1:].split("e")[0]) <= {".", "0"}
