"""The verdict of a sentence about latency or packet delay variation, from the probe frames of its trials."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.goal import Goal, read_goal
from lineproof.core.latency import LatencyCount
from lineproof.core.trial import DirectionCount, Fault, Load, Outcome, Problem
from lineproof.core.verdict import Ruling, Verdict
from support.known_router import GOALS, RANK, run

QUICK = read_goal(GOALS, "quick")


def count(histogram: dict[int, int], lost: int = 0, direction: int = 0, **more: int) -> LatencyCount:
    """Probe frames of 10 µs and more by bucket, in order."""
    received = sum(histogram.values())
    return LatencyCount(
        direction,
        1 - direction,
        sent=received + lost,
        received=received,
        mean=0.0,
        maximum=float(max(histogram, default=0)),
        histogram=histogram,
        **more,
    )


def judged(
    sentence: str, *counts: LatencyCount, lost: int = 0, goal: Goal = QUICK, problems: tuple[Problem, ...] = ()
) -> Verdict:
    rows = tuple(DirectionCount(row.tx_port, row.rx_port, 100_000, 100_000, 100_000 - lost) for row in counts)
    return run(sentence, lambda load, s: Outcome(load, s, s, 0.0, rows, problems, latency=counts), goal)


FAST, SLOW = {10: 1500}, {10: 1450, 400: 50}


@pytest.mark.parametrize(
    ("histogram", "limits"),
    [
        # TRex counts a frame of 10 µs in its bucket 10, and one of 20 µs in the next
        ({10: 1500}, {9.9: Ruling.FAIL, 10: Ruling.INCONCLUSIVE, 19.9: Ruling.INCONCLUSIVE, 20: Ruling.PASS}),
        ({400: 1500}, {399: Ruling.FAIL, 400: Ruling.INCONCLUSIVE, 450: Ruling.INCONCLUSIVE, 500: Ruling.PASS}),
    ],
)
def test_the_edges_of_a_bucket_decide(histogram: dict[int, int], limits: dict[float, Ruling]):
    for limit, ruling in limits.items():
        found = judged(f"64b unidirectional latency p99 ≤ {limit:g} µs at 100 kpps", count(histogram))
        assert found.ruling is ruling, limit


def test_probe_frames_that_the_router_lost_are_beyond_any_limit():
    forgiving = QUICK.with_loss_ratio(0.01)
    sentence = "64b unidirectional latency {} ≤ 20 µs at 100 kpps"
    for statistic, ruling in (("p99", Ruling.FAIL), ("p95", Ruling.PASS), ("max", Ruling.FAIL), ("mean", Ruling.FAIL)):
        found = judged(sentence.format(statistic), count(FAST, lost=20), lost=900, goal=forgiving)
        assert found.ruling is ruling
    # the ports counted every frame: the generator did not recognise its probes
    unknown = judged(sentence.format("max"), count(FAST, lost=20), goal=forgiving)
    assert unknown.ruling is Ruling.INCONCLUSIVE


@pytest.mark.parametrize(
    "sentence", ["latency max ≤ 100 µs", "latency p99 ≤ 100 µs", "latency mean ≤ 1 ms", "pdv max ≤ 1 ms"]
)
@pytest.mark.parametrize(
    ("maximum", "histogram"), [(90.0, {10: 1450}), (1.2e6, {0: 1500, 10: 1000}), (90.0, {10: 1501})]
)
def test_a_histogram_without_all_received_frames_passes_nothing(
    sentence: str, maximum: float, histogram: dict[int, int]
):
    probes = LatencyCount(0, 1, 1500, 1500, 9.0, maximum, histogram=histogram)
    assert judged(f"64b unidirectional {sentence} at 100 kpps", probes).ruling is Ruling.INCONCLUSIVE


def test_frames_later_than_1_s_fail():
    probes = LatencyCount(0, 1, 1500, 1500, 9.0, 1.2e6, histogram={10: 1450})
    assert judged("64b unidirectional latency max ≤ 100 µs at 100 kpps", probes).ruling is Ruling.FAIL


def test_fast_frames_pass_in_bucket_0():
    probes = LatencyCount(0, 1, 1500, 1500, 5.0, 9.0, histogram={0: 4000})
    assert judged("64b unidirectional latency max ≤ 10 µs at 100 kpps", probes).ruling is Ruling.PASS


def test_a_problem_spares_the_direction_that_it_is_in():
    stray = Problem(Fault.SURPLUS, "a stray frame", frames=1, directions=((0, 1),))
    down = Problem(Fault.LINK_DOWN, "port 0", directions=((0, 1),))
    sentence = "64b bidirectional latency p99 ≤ 20 µs at 100 kpps each way"
    slow, fast = count(SLOW, direction=1), count(FAST)
    assert judged(sentence, fast, slow, problems=(stray,)).ruling is Ruling.FAIL
    mirrored = (count(SLOW), count(FAST, direction=1))
    assert judged(sentence, *mirrored, problems=(down,)).ruling is Ruling.INCONCLUSIVE
    # one frame does not excuse many late ones
    assert judged(sentence, *mirrored, problems=(stray,)).ruling is Ruling.FAIL


PROBES = st.sampled_from(
    [
        count(FAST),
        count(SLOW),
        replace(count({0: 1500}), maximum=8.0),
        replace(count({0: 1500}), maximum=1.2e6),
        replace(count(FAST), histogram={10: 1400}),
    ]
)
EVENTS = st.lists(
    st.tuples(PROBES, st.sampled_from([(0, 100_000), (10, 100_000), (0, 50_000), (10, 50_000)])),
    min_size=1,
    max_size=25,
)
"""Probe frames of a trial, and frames lost and sent. The limit below lies within the bucket of the slow ones."""

Events = list[tuple[LatencyCount, tuple[int, int]]]


def ruled(events: Events, statistic: str) -> Ruling:
    rows = iter([*events, *([events[-1]] * 100)])

    def measure(load: Load, duration: float) -> Outcome:
        probes, (lost, sent) = next(rows)
        direction = DirectionCount(0, 1, 100_000, sent, sent - lost)
        return Outcome(load, duration, duration, 0.0, (direction,), latency=(probes,))

    return run(f"64b unidirectional latency {statistic} ≤ 420 µs at 100 kpps", measure).ruling


def with_later_frame(probes: LatencyCount, to: int) -> LatencyCount:
    """100 frames of the fastest bucket are in the bucket *to* instead, or in none, as if later than 1 s."""
    first = min(probes.histogram)
    histogram = {**probes.histogram, first: probes.histogram[first] - 100}
    if to < 1_000_000:
        histogram[to] = histogram.get(to, 0) + 100
    return replace(probes, histogram=histogram, maximum=max(probes.maximum, to), out_of_order=100)


@given(EVENTS, st.sampled_from(["p99", "p50", "max", "mean"]), st.data())
def test_lost_and_later_frames_never_improve_a_verdict(events: Events, statistic: str, data: st.DataObject):
    place = data.draw(st.integers(0, len(events) - 1))
    probes, (lost, sent) = events[place]
    gone = (
        replace(count({10: 1400}), sent=1500) if probes.histogram == FAST else replace(probes, sent=probes.sent + 100)
    )
    worse = data.draw(
        st.sampled_from(
            [
                (probes, (lost + 20_000, sent)),
                (gone, (lost, sent)),
                (gone, (lost + 100, sent)),
                *((with_later_frame(probes, to), (lost, sent)) for to in (400, 5000, 900_000, 1_200_000)),
            ]
        )
    )
    assert RANK[ruled([*events[:place], worse, *events[place + 1 :]], statistic)] <= RANK[ruled(events, statistic)]
