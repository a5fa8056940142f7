"""The picture of a sentence shows its own quantity and its limit; what is set aside is hatched and out of the scale."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.core.bounds import Bounds
from lineproof.core.latency import LatencyCount
from lineproof.core.packet_cost import PacketCost, cost_readings
from lineproof.core.step_down import CountSnapshot, StepDown
from lineproof.core.trial import DirectionCount, Fault, Load, Outcome, Problem, Trial
from lineproof.evidence.quantity_plots import plot_name, sentence_plot
from support.evidence_builders import LINK, NamedTraffic, requirement_record

SMALL = NamedTraffic("64b", 64.0)
FLAP = (Problem(Fault.LINK_DOWN, "port 1"),)
SECOND = Bounds(1.0, 1.0)


def trial(number: int, problems: tuple[Problem, ...] = (), lost: int = 0, late: int = 0, **readings: float) -> Trial:
    counts = (DirectionCount(0, 1, 10**6, 10**6, 10**6 - lost),)
    probe = (LatencyCount(0, 1, 1000, 1000, 20.0, 90.0, histogram={10: 1000 - late, 400: late}),)
    return Trial(number, Outcome(Load(1e6), 1.0, 1.0, 0.0, counts, readings=readings, latency=probe), problems, SECOND)


def plot(sentence: str, *trials: Trial) -> str:
    return sentence_plot(requirement_record(sentence=sentence), trials, SMALL, LINK, sentence)


def words(svg: str) -> str:
    texts = (node for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text"))
    return " | ".join("".join(node.itertext()) for node in texts)


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
    shown = words(plot(sentence, trial(0, **readings), trial(1, **readings), trial(2, **readings)))
    assert all(item in shown for item in expected.split("; ")), shown
    assert plot_name(requirement_record(sentence=sentence).demand).startswith(name)
    assert "set aside" not in shown


def test_of_more_workers_than_marks_the_spread_is_shown() -> None:
    readings = cycles(*(300.0 + worker for worker in range(64)))
    shown = words(plot("64b 1-flow unidirectional costs ≤ 400 cycles/packet at 1 Mpps", trial(1, **readings)))
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
    good = [trial(number, lost=100_000) for number in (1, 2)]
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
    assert "later than the limit, or lost" not in words(plot(sentence, trial(1)))
    shown = plot(sentence, trial(1, late=7), trial(2, FLAP, late=9))
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
        trial(number, FLAP if spoilt else (), lost, late, **cycles(spent))
        for number, (lost, late, spent, spoilt) in enumerate(figures)
    ]
    svg = plot(f"64b unidirectional {what} at 1 Mpps", *trials)
    assert "nan" not in svg and "inf" not in svg.replace("info", "")
    ElementTree.fromstring(svg)
