"""RFC 2544's tests of routers that are functions find the figures of the function."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.core.latency import LatencyCount
from lineproof.procedures.rfc2544 import FRAME_LOSS, LATENCY, THROUGHPUT
from lineproof.procedures.rfc2544.overload import BACK_TO_BACK, RESET
from support.pure_router import LINE, PureRouter, at_throughput, prepared, run_on


def latency(router, repeats, seconds=10, **run):
    found, duration = [at_throughput(1e6, "bidirectional")], timedelta(seconds=seconds)
    (result,) = LATENCY.measure(run_on(router, **run), "bidirectional", found, repeats, duration)
    return result


def back_to_back(router, pps, **terms):
    (result,) = BACK_TO_BACK.measure(run_on(router), "unidirectional", [at_throughput(pps)], **terms)
    return result


def reset(outage, **router):
    run = run_on(PureRouter(**router), outage=outage)
    return RESET.measure(run, "unidirectional", [at_throughput(4e6)], limit=timedelta(seconds=60))


def deviations_text(result):
    return " ".join(str(item) for item in result.deviations)


@settings(max_examples=40, deadline=None)
@given(st.floats(min_value=LINE * 0.002, max_value=LINE * 0.998))
def test_throughput_is_the_capacity_within_the_resolution(capacity):
    (result,) = THROUGHPUT.measure(run_on(PureRouter(capacity)), "unidirectional", 64)
    (found,) = result.bounds
    assert not result.ended and found.finished
    assert found.lower.pps <= capacity + 1 <= found.upper.pps + 1
    assert found.upper.pps - found.lower.pps <= 0.001 * found.upper.pps * 1.000001
    # shorter trials narrow the search, and one of 60 s decides
    assert any(trial.outcome.load == found.lower and trial.outcome.duration == 60 for trial in result.trials)


@settings(max_examples=20, deadline=None)
@given(st.floats(min_value=0.5, max_value=10), st.floats(min_value=20, max_value=100))
def test_loss_curve_only_goes_down_and_ends(step, highest):
    run = run_on(PureRouter(1.0), most=highest / 100)
    points = FRAME_LOSS.measure(run, "64b unidirectional", step, timedelta(seconds=1)).figures["points"]
    shares = [point["asked_percent"] for point in points]
    assert shares[0] == pytest.approx(highest) and all(a > b > 0 for a, b in pairwise(shares))
    assert all(point["loss_ratio"] for point in points)


class Streams(PureRouter):
    """A router whose streams have these mean latencies (µs, both directions), one after another."""

    def __init__(self, *means):
        super().__init__(directions=2)
        self.means = iter(means)

    def __call__(self, load, duration):
        outcome, mean = super().__call__(load, duration), next(self.means)
        counts = (LatencyCount(way, 1 - way, 500, 500, mean + 10 * way, mean + 10 * way) for way in (0, 1))
        return replace(outcome, latency=tuple(counts))


def test_latency_is_the_mean_of_the_repetitions_in_each_direction():
    result = latency(Streams(10.0, 12.0, 14.0), 3)
    assert result.figures["means_us"] == {"0 → 1": [10, 12, 14], "1 → 0": [20, 22, 24]}
    rows = [[*row.values()][3:] for row in result.rows]
    assert rows == [["12.00", "10.00", "14.00", "2.00", "3"], ["22.00", "20.00", "24.00", "2.00", "3"]]
    declared = deviations_text(result)
    assert "trials of 10 s" in declared and "at least 20 repetitions; here: 3" in declared


def test_stream_without_latency_is_repeated_until_the_limit():
    nothing = float("nan")
    result = latency(Streams(nothing, 3.0, *[nothing] * 4), 9, 1)
    assert result.figures["means_us"]["0 → 1"] == [3.0] and result.ended.startswith("inconclusive: ")
    late = latency(Streams(*[1.0] * 9), 9, 120, deadline=250)
    assert late.figures["means_us"]["1 → 0"] == [11.0, 11.0] and late.ended.startswith("deadline: ")


@settings(max_examples=30, deadline=None)
@given(st.integers(min_value=50, max_value=100_000), st.floats(min_value=0.1, max_value=0.9))
def test_corrected_buffer_time_is_that_of_the_buffer(frames, share):
    result = back_to_back(PureRouter(LINE * share, buffer=frames), LINE * share, repeats=2)
    assert not result.ended and not result.figures["unlimited"]
    # the longest burst is longer than the buffer by what is forwarded meanwhile; RFC 9004 takes that off again
    assert result.figures["bursts"] == pytest.approx([frames / (1 - share)] * 2, abs=2)
    assert result.figures["corrected_s"] == pytest.approx(frames / LINE, abs=2 / LINE)


def test_bursts_that_always_pass_give_no_buffer_time():
    result = back_to_back(PureRouter(LINE), LINE)
    assert result.figures["unlimited"] and result.figures["implied_s"] is None and len(result.trials) == 1
    assert "says nothing about a buffer" in deviations_text(result)


def test_router_that_stays_down_or_never_resets_has_no_time():
    result = reset(1e9)
    assert result.figures["reset_s"] is None and result.figures["lost"] and not result.ended
    assert "the reset had no effect" in reset(0.0).ended


def test_sizes_are_taken_in_order_and_latency_follows_at_each_throughput():
    run, begun = run_on(PureRouter(3e6), most=0.97), list[Any]()
    run.begin = begun.append
    found = THROUGHPUT.measure(run, "bidirectional", 64, 512, duration=timedelta(seconds=1), resolution=0.01)
    lower = [item["throughput"].lower.pps for item in found]
    assert lower == pytest.approx([3e6, 0.97 * LINE * 84 / 532], rel=0.05)
    assert all("at most 97 % of it" in deviations_text(item) for item in found)
    measured = LATENCY.measure(run, "bidirectional", found, repeats=2, duration=timedelta(seconds=1))
    assert [item.figures["means_us"] for item in measured] == [{"0 → 1": [10, 10], "1 → 0": [20, 20]}] * 2
    assert [(name, probe.pps) for name, _, probe in prepared(run)[2:]] == [("64b", 1000), ("512b", 1000)]
    assert [item.sentence for item in begun] == ["64b bidirectional", "512b bidirectional"] * 2
