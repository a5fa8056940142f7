"""Every kind of plot is read by the colour-blind, and from a black-and-white printer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from evidence.test_characterisation_figures import pictures
from evidence.test_quantity_plots import FLAP, LINK, SMALL, demand, repetition
from lineproof.counts.latency import LatencyCount
from lineproof.counts.trial import DirectionCount, Load, Outcome, Trial
from lineproof.evidence import drawing
from lineproof.evidence.flame_graph import COLOURS
from lineproof.evidence.history.trend_plot import trend_svg
from lineproof.evidence.history.trends import Series, TrendPoint
from lineproof.evidence.quantity_plots import sentence_plot
from lineproof.evidence.signoff.pictures import sentence_plot as printed_plot
from lineproof.evidence.signoff.pictures import testbed_drawing as drawn_testbed
from lineproof.evidence.signoff.sheet import make_sheet
from lineproof.evidence.svg import SHAPES
from support.signoff_runs import left_run
from support.vision import confused, contrast, faint

PAIRS = ((0, 1), (1, 0), (2, 3), (3, 2))


def trial(number: int, flap: bool = False, workers: int = 5, directions: int = 4) -> Trial:
    """One that sent, lost, and did not send, of four directions."""
    rows = tuple(DirectionCount(tx, rx, 10**6, 950_000, 800_000) for tx, rx in PAIRS[:directions])
    probe = tuple(
        LatencyCount(tx, rx, 1000, 990, 20.0, 90.0, histogram={10: 900 - tx, 400: 90 + tx})
        for tx, rx in PAIRS[:directions]
    )
    cycles = {f"cycles_per_packet_wk_{index}": 300.0 + index for index in range(workers)}
    readings = {"cycles_per_packet": 310.0, "power_watts": 20.0, **cycles}
    return Trial(number, Outcome(Load(1e6), 1.0, 1.0, 0.0, rows, readings=readings, latency=probe), FLAP * flap)


def sentence(words: str, workers: int = 5, directions: int = 4) -> str:
    trials = [trial(number, number == 2, workers, directions) for number in range(4)]
    return sentence_plot(demand(words), trials, SMALL, LINK, words)


def recovery() -> str:
    words = "64b unidirectional recovers in ≤ 2 s"
    found = [repetition(number, 0.3 * number) for number in range(2, 10)]
    step_downs = {each.number: step_down for each, step_down in found}
    return sentence_plot(demand(words), [each for each, _ in found], SMALL, LINK, words, step_downs=step_downs)


def trend() -> str:
    kinds = [("PASS", "mean"), ("FAIL", "mean"), ("INCONCLUSIVE", "mean"), ("PASS", "at least")]
    points = tuple(
        TrendPoint(f"r{at}", 1.79e9 + 1e5 * at, "", verdict, kind, 5e6 + at, 5e6 - 9, 5e6 + 9, 5, True)
        for at, (verdict, kind) in enumerate(kinds)
    )
    names = ("sentence", "platform", "software", "testbed", "goal")
    key = {**dict.fromkeys(names, "x"), "simulated": False}
    return trend_svg([Series(key, "pps", 5e6, True, points)])


KINDS: dict[str, Callable[[], str]] = {
    "rates, each way": lambda: sentence("64b bidirectional ≥ 1 Mpps each way"),
    "rates, in total": lambda: sentence("64b bidirectional ≥ 1 Mpps in total"),
    "rates, two directions": lambda: sentence("64b bidirectional forwards ≥ 1 Mpps each way", directions=2),
    "histogram": lambda: sentence("64b bidirectional latency p99 ≤ 50 µs at 1 Mpps each way"),
    "cycles of workers": lambda: sentence("64b 1-flow costs ≤ 400 cycles/packet at 1 Mpps", workers=SHAPES - 2),
    "cycles of many workers": lambda: sentence("64b 1-flow costs ≤ 400 cycles/packet at 1 Mpps", workers=64),
    "energy": lambda: sentence("64b unidirectional costs ≤ 20 µJ/packet at 1 Mpps"),
    "loss": lambda: sentence("64b bidirectional loses ≤ 2 % at 1 Mpps each way"),
    "recovery": recovery,
    "trend": trend,
    **{
        f"characterisation: {name}": lambda name=name: pictures()[name](False)  # type: ignore[misc]
        for name in ("search", "unfinished", "ramp", "scaling", "throughput", "loss")
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_reader_needs_the_colours(kind: str) -> None:
    svg = KINDS[kind]()
    assert confused(svg) == []
    assert faint(svg) == []


def test_no_reader_needs_the_colours_of_what_is_printed_and_signed(tmp_path: Path) -> None:
    sheet = make_sheet(left_run(tmp_path, "FAIL", "PASS", "PASS", spoilt=(2,)), datetime.now(UTC), draft=True)
    for svg in (drawn_testbed(sheet), *(printed_plot(row, sheet.number(row)) for row in sheet.rows)):
        assert confused(svg) == []


def test_of_more_workers_than_marks_the_spread_is_shown() -> None:
    assert "64 workers: least, median, greatest" in KINDS["cycles of many workers"]()
    assert "wk_9" in KINDS["cycles of workers"]()


@pytest.mark.parametrize("colour", [drawing.TEXT_COLOUR, drawing.LOST_COLOUR, drawing.SIMULATED_COLOUR])
def test_words_are_read_on_paper(colour: str) -> None:
    assert contrast(colour) >= 4.5


@pytest.mark.parametrize("colour", COLOURS)
def test_names_are_read_on_the_boxes_of_a_flame_graph(colour: str) -> None:
    assert contrast(drawing.TEXT_COLOUR) / contrast(colour) >= 4.5
