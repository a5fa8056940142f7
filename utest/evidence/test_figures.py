"""Tables and plots show the counts, escape all text, and say when nothing was measured."""

import re
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.core.bounds import Bounds
from lineproof.core.traffic.profiles import AddressRange, Flows, FrameClass, Profile
from lineproof.core.trial import DirectionCount, Fault, Load, Outcome, Problem, Trial
from lineproof.evidence import drawing, under_load_record
from lineproof.evidence.plots import ThresholdLine, ticks, trials_plot
from lineproof.evidence.rates import direction_rows, percent
from lineproof.evidence.tables import trials_fragment, trials_table
from support.evidence_builders import LINK, NamedTraffic, trial

SMALL = NamedTraffic("64b", 64.0)
PROFILE = Profile(
    "64b", (FrameClass(64),), Flows(AddressRange("16.0.0.1", "16.0.0.1"), AddressRange("48.0.0.1", "48.0.0.1"))
)
EVIL = "<script>alert('$x$ & \"y\"')</script>"


class Cells(HTMLParser):
    """The table's body, cell by cell, and every tag met."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.lines, self._in = set(), [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.lines.append([])
        self._in = tag == "td"

    def handle_data(self, data):
        if self._in and data.strip():
            self.lines[-1].append(data)


def words(svg):
    return " ".join(
        "".join(node.itertext()) for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text")
    )


def test_the_table_is_escaped_and_has_no_script():
    page = trials_table([trial(problems=(Problem(Fault.GENERATOR, EVIL),))], NamedTraffic(EVIL, 64), LINK, EVIL, True)
    assert not Cells(page).tags & {"script", "link", "img", "iframe"}
    assert "SIMULATED" in page
    assert "SIMULATED" not in trials_table([], SMALL, LINK)


def test_the_tables_style_does_not_apply_to_the_page_around_it():
    text = trials_fragment([trial()], SMALL, LINK)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    selectors = [one.strip() for rule in re.findall(r"([^{}]+)\{", style) for one in rule.split(",")]
    assert all(selector.startswith(".lr-trials") for selector in selectors)
    assert not Cells(text).tags & {"html", "body", "head"}


def test_rates_of_a_late_trial_are_over_the_elapsed_time():
    (row,) = direction_rows([trial(pps=1e6, duration=1.0, elapsed=4.0)], SMALL, LINK)
    assert row.offered.pps == pytest.approx(250_000)
    assert row.intended.pps == pytest.approx(1e6)


@pytest.mark.parametrize(
    ("ratio", "words"), [(0, "0 %"), (0.142, "14.20 %"), (1, "100.00 %"), (1e-5, "0.001 %"), (1e-9, "1.0e-07 %")]
)
def test_small_losses_keep_their_digits(ratio, words):
    assert percent(ratio) == words


def test_the_plot_labels_what_it_shows():
    strange = (Problem(Fault.FOREIGN, "port 0 to 1", 7.0),)
    trials = [trial(losses=(50_000, 0)), trial(number=2, unsent=300_000, losses=(0, 0), problems=strange)]
    shown = words(trials_plot(trials, PROFILE, LINK, "64b bidirectional", True, ThresholdLine(9e5, "≥ 0.9 Mpps"), True))
    for expected in (
        "64b bidirectional",
        "SIMULATED – not a measurement",
        "forwarded 0 → 1",
        "forwarded 1 → 0",
        "lost",
        "never sent by the generator",
        "doubtful",
        "≥ 0.9 Mpps",
        "−2.50 %",
        "rate [Mpps]",
        "% of one direction's line rate",
    ):
        assert expected in shown
    assert "SIMULATED" not in words(trials_plot(trials, PROFILE, LINK, "64b"))


def test_many_directions_have_hatches_and_one_label_of_the_greatest_loss():
    lost = {(0, 1): 0, (1, 0): 50_000, (2, 3): 100_000, (3, 2): 150_000}
    counts = tuple(DirectionCount(*ports, 10**6, 10**6, 10**6 - frames) for ports, frames in lost.items())
    svg = trials_plot([Trial(1, Outcome(Load(1e6), 1.0, 1.0, 0.0, counts), (), Bounds(1.0, 1.0))], SMALL, LINK, "64b")
    assert "up to −15.00 %" in words(svg) and svg.count('id="level-') == 2


def test_the_plot_takes_any_title_literally():
    svg = trials_plot([trial()], SMALL, LINK, EVIL)
    assert EVIL in words(svg).replace("\n", " ")
    assert "<script" not in svg


@given(st.floats(1e-3, 1e9))
def test_an_axis_has_a_few_round_numbers_and_says_them_exactly(end):
    values, texts = zip(*ticks(end), strict=True)
    assert values[0] == 0 and 3 <= len(values) <= 8
    assert end - values[1] < values[-1] * (1 + 1e-9) and values[-1] <= end * (1 + 1e-9)
    assert [float(text) for text in texts] == pytest.approx(values)
    assert f"{values[1]:e}"[0] in "125" and set(f"{values[1]:e}"[1:].split("e")[0]) <= {".", "0"}


def luminance(colour):
    """Return WCAG 2's relative luminance of ``#rrggbb``, 0 to 1."""
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(
    ("text", "background"),
    [(colour, "#ffffff") for colour in (drawing.TEXT_COLOUR, drawing.LOST_COLOUR, drawing.SIMULATED_COLOUR)]
    + [(drawing.TEXT_COLOUR, colour) for colour in under_load_record.COLOURS],
)
def test_text_has_the_contrast_that_wcag_asks_for(text, background):
    assert (luminance(background) + 0.05) / (luminance(text) + 0.05) >= 4.5


def test_drawing_trials_needs_no_import_that_takes_a_second(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "forwarded 0 → 1" in words(trials_plot([trial()], SMALL, LINK, "64b"))


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.5, 2e7), st.integers(0, 10**6), st.floats(1e-3, 60)), min_size=1, max_size=30),
    st.booleans(),
)
def test_any_trials_can_be_drawn_and_listed(figures, in_total):
    trials = [
        trial(number=number, pps=pps, losses=(min(lost, int(pps)),) * 2, duration=1.0, elapsed=elapsed)
        for number, (pps, lost, elapsed) in enumerate(figures)
    ]
    ElementTree.fromstring(trials_plot(trials, SMALL, LINK, "t", False, ThresholdLine(1.0), in_total))
    assert len(Cells(trials_table(trials, SMALL, LINK)).lines) == 1 + 2 * len(trials)
