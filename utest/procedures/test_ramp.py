"""A ramp finds where a router falls behind; its JSON is what the published visualiser reads."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.errors import SentenceError
from lineproof.procedures.latency import LATENCY_UNDER_LOAD
from lineproof.procedures.ramp import BEHIND, RAMP
from lineproof.procedures.search import SEARCH
from support.pure_router import LINE, ONE_WAY, PureRouter, run_on


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


def test_a_router_whose_queues_grow_is_behind_though_nothing_is_lost():
    # the queue takes in 59 ms of the rate, so that each trial of a second loses nothing up to 5.4 Mpps
    found = ramp(PureRouter(5.1e6, buffer=300_000, counts_held=True))
    assert found.saturation.load.pps == pytest.approx(18 / 50 * LINE) and found.saturation.loss_ratio == 0


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


def test_a_throughput_that_was_not_found_has_no_shares():
    run = run_on(PureRouter(10.0))
    with pytest.raises(SentenceError, match="PDR, and none was found"):
        LATENCY_UNDER_LOAD.measure(run, "64b bidirectional", SEARCH.measure(run, "64b bidirectional"))
