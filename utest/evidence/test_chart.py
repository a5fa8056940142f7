"""Each kind of picture says what it shows, tells series apart without colours, and draws any figures."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.bounds import Bounds
from lineproof.evidence import chart
from lineproof.evidence.chart import AREAS, SIGNS, Chart, Part, columns, linear, scaled
from lineproof.robot.flame_graph import COLOURS
from support.pictures import words

EVIL = "</text><script>alert('$x$ & \"y\"')</script>]]>\x1b[31m"
LIMIT = 5.0, "≥ the promise"

Kind = Callable[[str, bool], str]


def bars(name: str = "forwarded", simulated: bool = False, is_level: bool = False) -> str:
    across, up = columns(name, [name, "b"]), linear(f"{name} [Mpps]", 10.0)
    plot = Chart(name, across, up, simulated, is_level)
    for place, size in enumerate((3.0, 6.0)):
        plot.bar(place, [Part(size, name, AREAS[0])])
        plot.label(place, size, name)
    plot.limit(*LIMIT)
    return plot.svg()


def ranges(name: str = "worker", simulated: bool = False) -> str:
    plot = Chart(name, columns(name, [name, "2"]), scaled(name, "Mpps", 9.0), simulated)
    plot.area((-math.inf, math.inf), (5.0, -math.inf), chart.WORSE, "breaks the promise")
    plot.range(plot.beside(0, 0, 2), Bounds(4.0, 6.0), SIGNS[0], name)
    plot.range(plot.beside(0, 1, 2), Bounds(7.0, math.inf), SIGNS[1], f"{name} 2")
    plot.limit(*LIMIT)
    return plot.svg()


def curves(name: str = "vpp", simulated: bool = False) -> str:
    plot = Chart(name, linear(name, 3.0), linear(f"{name} [Mpps]", 6.0), simulated)
    for shape in (0, 1):
        plot.curve([(1.0, 2.0), (2.0, 4.0)], f"{name} {shape}", SIGNS[shape])
    plot.curve([(1.5, -math.inf), (1.5, math.inf)], name, None, chart.LOST_COLOUR, "2 3")
    plot.words((1.5, math.inf), name)
    plot.limit(*LIMIT, is_upright=True)
    return plot.svg()


every = pytest.mark.parametrize("kind", [bars, ranges, curves])


@every
def test_a_picture_says_what_it_shows_and_is_the_same_each_time(kind: Kind) -> None:
    shown = words(kind("a name", True))
    assert all(said in shown for said in ("a name", "Mpps", "≥ the promise", "SIMULATED – not a measurement")), shown
    assert "SIMULATED" not in words(kind("a name", False))
    assert kind("a name", True) == kind("a name", True)


@every
def test_names_are_text_whatever_is_in_them(kind: Kind) -> None:
    svg = kind(EVIL, True)
    assert "<script" not in svg and "\x1b" not in svg
    assert "<script>alert(" in words(svg) and "<script>alert(" in (ElementTree.fromstring(svg)[0].text or "")


def test_a_bar_is_as_long_as_its_figure() -> None:
    heights = [float(height) for height in re.findall(rf'height="([\d.]+)" fill="{AREAS[0].colour}"', bars("x", False))]
    assert heights[0] == pytest.approx(0.3 * chart._HEIGHT, abs=0.01) and heights[1] == pytest.approx(2 * heights[0])


def test_bars_that_lie_have_their_names_beside_them() -> None:
    svg = bars("a name as long as the picture is wide " * 9, is_level=True)
    assert "a name as long" in words(svg) and "…" in words(svg)
    assert all(float(x) >= 0 for x in re.findall(r' x="(-?[\d.]+)', svg))


def test_a_range_shows_open_ends_and_the_side_that_breaks_the_promise() -> None:
    shown = words(ranges())
    assert all(said in shown for said in ("no end seen", "breaks the promise")), shown


def luminance(colour: str) -> float:
    """Return WCAG 2's relative luminance of ``#rrggbb``, 0 to 1."""
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(
    ("text", "background"),
    [(colour, "#ffffff") for colour in (chart.TEXT_COLOUR, chart.LIMIT_COLOUR, chart.SIMULATED_COLOUR)]
    + [(chart.TEXT_COLOUR, colour) for colour in (*COLOURS, chart.WORSE.colour)],
)
def test_text_has_the_contrast_that_wcag_asks_for(text: str, background: str) -> None:
    assert (luminance(background) + 0.05) / (luminance(text) + 0.05) >= 4.5


def test_series_beside_each_other_differ_in_more_than_their_colour() -> None:
    assert len({sign.shape for sign in SIGNS}) == len(SIGNS)
    for one, other in pairwise(AREAS):
        shades = sorted(map(luminance, (one.colour, other.colour)))
        assert one.hatch != other.hatch or (shades[1] + 0.05) / (shades[0] + 0.05) > 1.5


@given(st.floats(1e-3, 1e9))
def test_an_axis_has_a_few_round_numbers_and_says_them_exactly(end: float) -> None:
    values, texts = zip(*chart.ticks(end), strict=True)
    assert values[0] == 0 and 3 <= len(values) <= 8
    assert end - values[1] < values[-1] * (1 + 1e-9) and values[-1] <= end * (1 + 1e-9)
    assert [float(text) for text in texts] == pytest.approx(values)
    assert f"{values[1]:e}"[0] in "125" and set(f"{values[1]:e}"[1:].split("e")[0]) <= {".", "0"}


def test_rates_have_a_prefix() -> None:
    asked = (("pps", 5e6), ("pps", 50), ("bit/s L1", 5e9), ("µs", 5e6))
    assert [chart.scaled("x", *one).name[3:-1] for one in asked] == ["Mpps", "pps", "Gbit/s L1", "µs"]
