"""Tables, plots and flame graphs show counts and quantities with their limits, and escape all text."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.core.bounds import Bounds
from lineproof.core.goal import Goal
from lineproof.core.latency import LatencyCount
from lineproof.core.packet_cost import PacketCost, cost_readings
from lineproof.core.quantity import Requirement
from lineproof.core.step_down import CountSnapshot, StepDown
from lineproof.core.traffic.profiles import AddressRange, Flows, FrameClass, Profile
from lineproof.core.trial import DirectionCount, Fault, Load, Outcome, Problem, Trial
from lineproof.core.under_load import CpuLoad, SampledStacks, UnderLoad
from lineproof.evidence import characterisation as report
from lineproof.evidence import characterisation as shown
from lineproof.evidence import drawing
from lineproof.evidence.integrity import check_integrity
from lineproof.evidence.plot_frame import ticks
from lineproof.evidence.quantity_plots import ThresholdLine, plot_name, sentence_plot, trials_plot
from lineproof.evidence.rates import direction_rows, percent
from lineproof.evidence.recorder import Recorder
from lineproof.evidence.records import EnvironmentRecord, UnderLoadRecord
from lineproof.evidence.tables import trials_fragment
from lineproof.evidence.under_load_record import COLOURS, MOST_ROWS, flame_graph, under_load_flame_graph
from lineproof.methods.rfc2544.back_to_back import back_to_back
from lineproof.methods.search import search
from lineproof.methods.trials import CharacterisationTerms, Deadline
from support.evidence_builders import LINK, NamedTraffic, requirement_record, trial
from support.pure_router import LINE, PureRouter

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


def words(svg: str) -> str:
    texts = (node for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text"))
    return " | ".join("".join(node.itertext()) for node in texts)


def test_the_table_is_escaped_and_has_no_script():
    page = trials_fragment(
        [trial(problems=(Problem(Fault.GENERATOR, EVIL),))], NamedTraffic(EVIL, 64), LINK, EVIL, True
    )
    assert not Cells(page).tags & {"script", "link", "img", "iframe"}
    assert "SIMULATED" in page
    assert "SIMULATED" not in trials_fragment([], SMALL, LINK)


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
    + [(drawing.TEXT_COLOUR, colour) for colour in COLOURS],
)
def test_text_has_the_contrast_that_wcag_asks_for(text, background):
    assert (luminance(background) + 0.05) / (luminance(text) + 0.05) >= 4.5


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
    assert len(Cells(trials_fragment(trials, SMALL, LINK)).lines) == 1 + 2 * len(trials)


GOAL = Goal(goal="test", final_trial_duration=1, duration_sum=2, loss_ratio=0, exceed_ratio=0, about="for these tests")


def searched(**deadline):
    return search(
        PureRouter(5e6), GOAL, Load(LINE / 1000), Load(LINE), CharacterisationTerms(deadline=Deadline(**deadline))
    )


@pytest.mark.parametrize("deadline", [{}, {"traffic": 3}, {"traffic": 0}], ids=["whole", "unfinished", "nothing"])
def test_a_picture_is_marked_and_the_same_each_time(deadline):
    marked, plain = (shown.search_plot(searched(**deadline), "T", simulated) for simulated in (True, False))
    assert "SIMULATED" in words(marked) and "SIMULATED" not in words(plain)
    assert marked == shown.search_plot(searched(**deadline), "T", True)


def test_a_burst_that_lost_nothing_is_a_bound():
    router = PureRouter(LINE / 2, buffer=1000)
    results = [
        back_to_back(router.send_burst, 64, LINE, LINE / 2, CharacterisationTerms(), repeats=2),
        back_to_back(PureRouter(LINE).send_burst, 64, LINE, LINE / 2, CharacterisationTerms(), longest=500),
    ]
    limited, unlimited = (row[1] for row in report.back_to_back_table(results, "Bursts").rows)
    assert limited in ("1,999.0", "2,000.0") and unlimited == "≥ 500.0"


FLAP = (Problem(Fault.LINK_DOWN, "port 1"),)
SECOND = Bounds(1.0, 1.0)


def measured(number: int, problems: tuple[Problem, ...] = (), lost: int = 0, late: int = 0, **readings: float) -> Trial:
    counts = (DirectionCount(0, 1, 10**6, 10**6, 10**6 - lost),)
    probe = (LatencyCount(0, 1, 1000, 1000, 20.0, 90.0, histogram={10: 1000 - late, 400: late}),)
    return Trial(number, Outcome(Load(1e6), 1.0, 1.0, 0.0, counts, readings=readings, latency=probe), problems, SECOND)


def plot(sentence: str, *trials: Trial) -> str:
    return sentence_plot(requirement_record(sentence=sentence), trials, SMALL, LINK, sentence)


def cycles(*figures: float) -> dict[str, Any]:
    """Readings of a trial whose packets cost so many cycles on the workers."""
    return cost_readings([PacketCost(f"vpp_wk_{n}", 10, 10, 10 * figure, 0.0) for n, figure in enumerate(figures)])


OVERLOAD = {"overload_loss.0": 0.5, "timed": 1.0}


@pytest.mark.parametrize(
    ("asked", "readings", "expected", "name"),
    [
        ("costs ≤ 400 cycles/packet", cycles(350.0, 360.0), "all workers; vpp_wk_0; vpp_wk_1; ≤ 400", "Cost of"),
        ("costs ≤ 20 µJ/packet at 1 Mpps", {"power_watts": 19.0}, "≤ 20 µJ/packet; Energy of a packet", "Energy"),
        ("loses ≤ 2 % at 1 Mpps", {}, "loss ratio 0 → 1; ≤ 2%; Loss ratio [%]", "Loss ratio"),
        ("reorders ≤ 2 % at 1 Mpps", {}, "Reordered frames; ≤ 2%; Reordered frames [%]", "Reordered"),
        ("recovers in ≤ 2 s", {**OVERLOAD, "recovery_low_s.0": 1.0}, "≤ 2 s; no end seen; Recovery after", "Recovery"),
        ("latency p50 ≤ 50 µs at 1 Mpps", {}, "limit p50 ≤ 50 µs; 1,000; latency [µs]", "Latency"),
        ("pdv p99 ≤ 50 µs at 1 Mpps", {}, "limit: 50 µs later than the fastest frame", "Latency"),
        ("≥ 1 Mpps", {}, "rate [Mpps]; ≥ 1 Mpps; forwarded 0 → 1", "Offered and forwarded"),
    ],
)
def test_each_quantity_has_its_own_picture(asked: str, readings: Any, expected: str, name: str) -> None:
    sentence = f"64b unidirectional {asked}"
    shown = words(plot(sentence, measured(0, **readings), measured(1, **readings), measured(2, **readings)))
    assert all(item in shown for item in expected.split("; ")), shown
    assert plot_name(requirement_record(sentence=sentence).requirement).startswith(name)
    assert "set aside" not in shown


def test_of_more_workers_than_marks_the_spread_is_shown() -> None:
    readings = cycles(*(300.0 + worker for worker in range(64)))
    shown = words(plot("64b 1-flow unidirectional costs ≤ 400 cycles/packet at 1 Mpps", measured(1, **readings)))
    assert "64 workers: least to greatest" in shown and "wk_9" not in shown


@pytest.mark.parametrize(
    "sentence",
    [
        "64b unidirectional loses ≤ 20 % at 1 Mpps",
        "64b unidirectional ≥ 1 kpps",
        "64b unidirectional forwards ≥ 1 kpps",
    ],
)
def test_a_trial_that_is_set_aside_is_hatched_and_has_no_part_in_the_scale(sentence: str) -> None:
    good = [measured(number, lost=100_000) for number in (1, 2)]
    counts = (DirectionCount(0, 1, 10**9, 10**9, 5 * 10**8),)
    wild = Trial(3, Outcome(Load(1e9), 1.0, 1.0, 0.0, counts), FLAP, SECOND)
    scale = re.compile(r'<text x="65.00"[^>]*>([^<]*)</text>')
    assert scale.findall(plot(sentence, *good, wild)) == scale.findall(plot(sentence, *good))
    assert "set aside" in words(plot(sentence, *good, wild)) and "back-" in plot(sentence, *good, wild)


def repetition(number: int, seconds: float) -> tuple[Trial, StepDown]:
    """An overload of 1 s, then half the load for 4 s, of which the router loses 40 000 frames within *seconds*."""
    start = 10**6

    def at(time: float) -> CountSnapshot:
        offered, late = start + int(time * 500_000), int(40_000 * min(1.0, time / seconds)) if seconds else 0
        return CountSnapshot((offered,), (offered - 100_000 - late,))

    change, samples = at(0.0), tuple(at(0.1 * step) for step in range(1, 40))
    end = at(4.0)
    counts = (DirectionCount(0, 1, end.offered[0], end.offered[0], end.forwarded[0]),)
    whole = Outcome(Load(1e6), 5.0, 5.0, 0.0, counts)
    found = StepDown(whole, Load(5e5), change, change, samples)
    bounds = found.recovery(0)
    assert bounds is not None
    readings = {**OVERLOAD, "recovery_low_s.0": bounds.low, "recovery_high_s.0": bounds.high}
    return Trial(number, Outcome(Load(1e6), 5.0, 5.0, 0.0, counts, readings=readings), (), Bounds(5.0, 5.0)), found


def test_a_recovery_is_shown_as_the_curve_of_frames_that_are_lost_later() -> None:
    sentence = "64b unidirectional recovers in ≤ 2 s"
    record = requirement_record(sentence=sentence)
    slow, fast, control = repetition(2, 3.0), repetition(3, 0.5), repetition(1, 0.0)
    step_downs = {found.number: step_down for found, step_down in (slow, fast, control)}
    no_figure = Trial(1, Outcome(Load(5e5), 4.0, 4.0, 0.0, control[0].outcome.directions), (), Bounds(4.0, 4.0))
    spoilt = Trial(4, slow[0].outcome, FLAP, Bounds(5.0, 5.0))

    def drawn(*trials: Trial) -> str:
        return sentence_plot(record, trials, SMALL, LINK, sentence, step_downs=step_downs)

    svg = drawn(no_figure, slow[0], fast[0], spoilt)
    shown = words(svg)
    for expected in ("trial 2", "trial 3", "seconds after the overload", "frames lost later [thousand]", "≤ 2 s"):
        assert expected in shown, shown
    assert "1 of 3 trials not shown, set aside" in shown and "trial 4" not in shown and "trial 1" not in shown
    ends = [
        [float(pair.split(",")[1]) for pair in line.split()] for line in re.findall(r'<polyline points="([^"]*)"', svg)
    ]
    assert len(ends) == 2 and all(line == sorted(line) and line[-1] > line[0] for line in ends), "both fall to none"
    # the slow one loses most of its frames where the fast one has none left
    assert ends[0][10] < ends[1][10] == ends[1][-1]
    assert "no end" not in shown and "no frame was seen to be lost later" not in shown
    at_once = repetition(5, 0.0)
    svg = sentence_plot(record, [at_once[0]], SMALL, LINK, sentence, step_downs={5: at_once[1]})
    assert "no frame was seen to be lost later" in words(svg) and "0.0 |" not in words(svg).partition("seconds")[0]


def test_frames_beyond_the_limit_and_lost_ones_are_hatched_in_the_histogram() -> None:
    sentence = "64b unidirectional latency p99 ≤ 50 µs at 1 Mpps"
    assert "later than the limit, or lost" not in words(plot(sentence, measured(1)))
    shown = plot(sentence, measured(1, late=7), measured(2, FLAP, late=9))
    assert "later than the limit, or lost" in words(shown) and "crossed-" in shown
    assert " 7 | " in words(shown) and "1 of 2 trials not shown" in words(shown)


def test_a_direction_without_late_frames_has_no_bar_for_them() -> None:
    probe = [LatencyCount(tx, 1 - tx, 9, 9, 20.0, 90.0, histogram=bars) for tx, bars in ((0, {10: 9}), (1, {60: 9}))]
    counts = (DirectionCount(0, 1, 10**6, 10**6, 10**6),)
    both = Trial(1, Outcome(Load(1e6), 1.0, 1.0, 0.0, counts, latency=tuple(probe)), (), SECOND)
    assert words(plot("64b bidirectional latency p99 ≤ 50 µs at 1 Mpps each way", both)).count(" 9 |") == 2


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(["latency p99 ≤ 50 µs", "pdv max ≤ 1 ms", "costs ≤ 4 cycles/packet", "loses ≤ 0 %"]),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 1000), st.floats(0, 1e12), st.booleans()), max_size=25),
)
def test_any_trials_can_be_drawn(what: str, figures: list[tuple[int, int, float, bool]]) -> None:
    trials = [
        measured(number, FLAP if spoilt else (), lost, late, **cycles(spent))
        for number, (lost, late, spent, spoilt) in enumerate(figures)
    ]
    svg = plot(f"64b unidirectional {what} at 1 Mpps", *trials)
    assert "nan" not in svg and "inf" not in svg.replace("info", "")
    ElementTree.fromstring(svg)


SVG = "{http://www.w3.org/2000/svg}"
STACKS = {"main;a;b": 30, "main;a": 50, "main;c": 20}
FOUND = UnderLoad(
    3e6, 3e6, 2e6, cpus=(CpuLoad(0), CpuLoad(1)), unread={"x": "why"}, sampled=SampledStacks(2.0, STACKS, 1)
)


def _boxes(svg: str) -> dict[str, tuple[float, float, float]]:
    """Tooltip -> left edge, top and width."""
    found = {}
    for group in ET.fromstring(svg.encode()).iter(f"{SVG}g"):
        title, box = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        assert title is not None and title.text is not None and box is not None
        found[title.text] = (float(box.get("x", "")), float(box.get("y", "")), float(box.get("width", "")))
    return found


def test_a_box_is_as_wide_as_its_share_upon_its_caller() -> None:
    boxes = _boxes(flame_graph(STACKS, "title", "caption"))
    assert list(map(str, sorted(boxes))) == [
        "a: 80 samples, 80.0 %",
        "all: 100 samples, 100.0 %",
        "b: 30 samples, 30.0 %",
        "c: 20 samples, 20.0 %",
        "main: 100 samples, 100.0 %",
    ]
    a, whole, b, c = (boxes[name] for name in sorted(boxes) if not name.startswith("main"))
    assert a[2] == pytest.approx(0.8 * whole[2], abs=1) and c[2] == pytest.approx(0.2 * whole[2], abs=1)
    assert b[0] == a[0] and c[0] == pytest.approx(a[0] + a[2], abs=1)
    assert whole[1] > a[1] > b[1] and c[1] == a[1]


def test_the_caption_says_what_was_sampled() -> None:
    svg = under_load_flame_graph(FOUND, "The router under load: 64b ≥ 3 Mpps", simulated=True)
    assert "2 s, 100 samples, 2 CPUs, load 3 Mpps" in svg
    assert "The router under load: 64b ≥ 3 Mpps" in svg and "SIMULATED" in svg
    unmarked = under_load_flame_graph(replace(FOUND, cpus=()), "t")
    assert "2 s, 100 samples, 1 CPU, load" in unmarked
    assert "SIMULATED" not in unmarked
    assert under_load_flame_graph(replace(FOUND, sampled=None), "t") == ""
    assert under_load_flame_graph(replace(FOUND, sampled=SampledStacks(2.0, why="no perf")), "t") == ""


def test_names_are_text_whatever_is_in_them() -> None:
    name = 'std::map<int, "a&b">::at()]]>\x1b[31m</title><script>'
    (tooltip,) = (words for words in _boxes(flame_graph({name: 1}, name, name)) if "map" in words)
    assert tooltip.startswith('std::map<int, "a&b">::at()]]>') and "</title><script>" in tooltip


def test_a_recursion_is_cut_at_a_height() -> None:
    boxes = _boxes(flame_graph({";".join(f"f{depth}" for depth in range(500)): 3}, "t", "c"))
    assert len(boxes) == MOST_ROWS


@given(
    st.dictionaries(st.lists(st.text(max_size=8), min_size=1, max_size=6).map(";".join), st.integers(1, 10**12)).filter(
        bool
    ),
    st.text(max_size=200),
)
def test_every_mapping_is_one_picture(stacks: dict[str, int], words: str) -> None:
    boxes = _boxes(flame_graph(stacks, words, words, simulated=True))
    assert all(left >= 10 and left + width <= 1191 and width >= 0 for left, _, width in boxes.values())


def test_a_run_keeps_the_stacks_of_a_flame_graph(tmp_path: Path) -> None:
    run = "20260101T000000Z-abcdef"
    recorder = Recorder(tmp_path, run, EnvironmentRecord(run, True, "simulated", "netgate6100", "vpp", 50.0, 0.0))
    requirement = cast(Requirement, SimpleNamespace(sentence="64b ≥ 3 Mpps"))
    graph = recorder.keep_under_load("under load", requirement, FOUND)
    assert recorder.keep_under_load("under load that passed", requirement, replace(FOUND, sampled=None)) == ""
    recorder.folder.close()
    folder = recorder.folder.path
    records = [UnderLoadRecord.from_json(line) for line in (folder / "results.jsonl").read_bytes().splitlines()]
    assert all(record.report == replace(FOUND, raw={}, sampled=None) for record in records)
    first, *_ = (json.loads(line) for line in (folder / "telemetry.jsonl").read_text().splitlines())
    assert first["texts"]["folded stacks"] == "main;a 50\nmain;a;b 30\nmain;c 20\n" and "SIMULATED" in graph
    assert not check_integrity(folder).altered
