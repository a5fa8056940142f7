"""A ramp finds where a router falls behind; its JSON is what the published visualiser reads."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.core.bounds import Bounds
from lineproof.core.latency import LatencyCount
from lineproof.errors import SentenceError
from lineproof.procedures.latency import LATENCY_UNDER_LOAD
from lineproof.procedures.ramp import BEHIND, RAMP
from lineproof.procedures.search import SEARCH
from lineproof.procedures.send import SENDING
from support.pure_router import LINE, ONE_WAY, PureRouter, prepared, run_on


def ramp(router, words=ONE_WAY, steps=50, step=1.0, warm_up=2.0, hold=3.0):
    seconds = (timedelta(seconds=each) for each in (step, warm_up, hold))
    return RAMP.measure(run_on(router), words, steps, *seconds)


def loadtest(router, words=ONE_WAY, **plan):
    run = run_on(router)
    run.words = words
    return json.loads(json.dumps(RAMP.loadtest(run, [ramp(router, words, **plan)]), allow_nan=False))


@settings(max_examples=30, deadline=None)
@given(st.floats(min_value=LINE / 20, max_value=LINE * 0.97))
def test_saturation_is_the_first_step_beyond_the_capacity(capacity):
    result = ramp(PureRouter(capacity))
    found = result.saturation
    assert found.load.pps >= capacity and found.load.pps - LINE / 50 <= capacity * 1.0011
    assert found.forwarded_pps == pytest.approx(capacity, rel=1e-5)
    assert found.loss_ratio > BEHIND


def test_single_lossy_step_is_no_saturation():
    # a buffer that overflowed once, in the tenth of the steps
    frames_lost = PureRouter(LINE, burst=frozenset({12}))
    assert ramp(frames_lost).saturation is None


def test_a_router_whose_queues_grow_is_behind_though_nothing_is_lost():
    # the queue takes in 59 ms of the rate, so that each trial of a second loses nothing up to 5.4 Mpps
    found = ramp(PureRouter(5.1e6, buffer=300_000, counts_held=True))
    assert found.saturation.load.pps == pytest.approx(18 / 50 * LINE) and found.saturation.loss_ratio == 0


def test_ceiling_of_a_slow_generator_is_named_and_its_steps_kept():
    result = ramp(PureRouter(LINE, ceiling=0.8 * LINE))
    assert not result.ended and result.saturation is None
    assert result.ceiling_pps == pytest.approx(0.8 * LINE, rel=1e-6)


def test_loadtest_json_has_all_that_the_visualiser_reads():
    data = loadtest(PureRouter(5e6), "64b 1-flow bidirectional")
    settings_read = ("warmup_mult", "warmup_duration", "rampup_target", "rampup_duration", "hold_duration")
    assert all(name in data["vars"] for name in settings_read)
    assert data["vars"]["profile_file"] == "64b 1-flow" and data["vars"]["unidirectional"] is False
    assert len(data["stats"]) == 55
    for second in data["stats"].values():
        for out, back in (("0", "1"), ("1", "0")):
            sent, received = second[out]["tx_pps"], second[back]["rx_pps"]
            # it divides what it finds: whole numbers would be divided as such, and by nothing
            assert isinstance(sent, float) and isinstance(received, float)
            assert 0 <= (sent - received) / sent < 1
            assert 0 < second[out]["tx_util"] <= 100.0001 and 0 < second[back]["rx_util"] <= 100.0001
    top = data["stats"]["54"]
    assert top["0"]["tx_util"] == pytest.approx(100)
    assert top["1"]["rx_pps"] == pytest.approx(5e6)
    assert top["1"]["rx_util"] == pytest.approx(100 * 5e6 / LINE)


def test_each_second_of_the_loadtest_json_is_the_step_in_the_middle_of_it():
    stats = loadtest(PureRouter(LINE), steps=10, step=0.5, warm_up=1, hold=2)["stats"]
    assert [second["phase"] for second in stats.values()] == ["warm-up", *["rampup"] * 5, *["hold"] * 2]
    # the first second of the rise is steps of 10 and 20 %
    assert stats["1"]["0"]["tx_util"] == pytest.approx(20, rel=1e-5)
    longer = loadtest(PureRouter(LINE), steps=4, step=1.5, warm_up=0, hold=0)
    tx_utils = [second["0"]["tx_util"] for second in longer["stats"].values()]
    assert tx_utils == pytest.approx([25, 50, 50, 75, 100, 100], rel=1e-5)


def test_the_worse_direction_counts():
    result = ramp(PureRouter(10e6, weaker=0.5), "64b bidirectional")
    assert result.saturation.forwarded_pps == pytest.approx(5e6, rel=1e-5)


WORDS = "64b bidirectional"


def measured(router, **terms):
    run = run_on(router)
    found = SEARCH.measure(run, WORDS)
    router.asked.clear()
    return found, LATENCY_UNDER_LOAD.measure(run, WORDS, found, **terms)


@pytest.mark.parametrize("ratio", ["PDR", "NDR"])
def test_probes_are_sent_alone_and_at_a_tenth_half_and_nine_tenths(ratio):
    router = PureRouter()
    found, result = measured(router, ratio=ratio)
    lower = found[ratio].lower.pps
    assert router.asked == [(1001, 10), *((pytest.approx(share * lower), 10) for share in (0.1, 0.5, 0.9))]
    points = [(point["share"], point["direction"]) for point in result.figures["points"]]
    assert points[:3] == [(0, "0 → 1"), (0, "1 → 0"), (0.1, "0 → 1")] and len(points) == 8 and not result.ended


def test_no_more_than_a_tenth_of_a_small_load_is_probes():
    run = run_on(PureRouter(2e4))
    LATENCY_UNDER_LOAD.measure(run, WORDS, SEARCH.measure(run, WORDS))
    probes = [probe.pps for *_, probe in prepared(run) if probe]
    assert probes == pytest.approx([1000, 200, 1000, 1000], rel=0.02)


def test_each_direction_has_its_own_figures():
    _, result = measured(PureRouter())
    for point, fastest in zip(result.figures["points"], (10, 20) * 4, strict=True):
        least, median, *_, most = point["latency_us"].values()
        assert least == median == Bounds(fastest, fastest + 10)
        assert most == Bounds(fastest + 30, fastest + 40)


def test_a_lost_probe_frame_is_later_than_any_other():
    def losing(load, duration):
        counts = (LatencyCount(way, 1 - way, 500, 490, 10.0, 20.0, 10.0, {10: 490}) for way in (0, 1))
        return replace(PureRouter(0.97 * load.pps, directions=2)(load, duration), latency=tuple(counts))

    found = SEARCH.measure(run_on(PureRouter()), WORDS)
    point = LATENCY_UNDER_LOAD.measure(run_on(losing), WORDS, found).figures["points"][0]
    finite = [name for name, bounds in point["latency_us"].items() if math.isfinite(bounds.high)]
    assert finite == ["min", "p50", "p90"]
    assert point["latency_us"]["max"] == Bounds(math.inf, math.inf) and point["lost"] == 10


def test_a_throughput_that_was_not_found_has_no_shares():
    with pytest.raises(SentenceError, match="PDR, and none was found"):
        measured(PureRouter(10.0))


def test_what_was_measured_before_the_deadline_is_kept():
    run = run_on(PureRouter())
    found = SEARCH.measure(run, WORDS)
    run.deadline = run.sent + 25
    result = LATENCY_UNDER_LOAD.measure(run, WORDS, found, duration=timedelta(seconds=10))
    shares = [point["share"] for point in result.figures["points"]]
    assert shares == [0, 0, 0.1, 0.1] and result.ended.startswith("deadline: ")


def test_a_keyword_that_no_frame_was_sent_beside_is_named():
    run = run_on(PureRouter())
    run.__dict__["call"] = lambda name: lambda *arguments: None
    (named,) = SENDING.measure(run, ONE_WAY, "1 Mpps", timedelta(seconds=1), "A Keyword").problems
    assert "was not called" in named
