"""Rings of receive queues: short bursts over capacity wait and come out later, what exceeds the ring is lost."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from lineproof.simulation.habits import Noise, WarmUp
from lineproof_bench.backend import PortCounters
from lineproof_bench.model.backend import ModelBackend
from lineproof_bench.model.schema import RINGS
from support.model_bench import HandClock, configured_model, traffic

RING = RINGS["vpp"]


def received(backend: ModelBackend, clock: HandClock, pps: float, seconds: float) -> PortCounters:
    """Return what port 1 has after port 0 sent one flow; 1 s later."""
    backend.start({0: traffic("64b 1-flow", pps)}, seconds)
    clock.time += seconds + 1.0
    return backend.counters(1)


def capacity() -> float:
    """Frames/s of one flow that are forwarded for ever."""
    backend, clock = configured_model()
    before = received(backend, clock, 14e6, 1.0).ipackets
    return float(received(backend, clock, 14e6, 2.0).ipackets - before - RING) / 2


def test_just_above_capacity_only_what_exceeds_the_ring_is_lost() -> None:
    backend, clock = configured_model()
    top = capacity()
    # a millionth more: a ring is full after minutes
    pps, seconds = top * (1 + 1e-6), 60.0
    backend.start({0: traffic("64b 1-flow", pps)}, seconds)
    clock.time += seconds + 1
    assert backend.counters(1).ipackets == backend.counters(0).opackets
    over = top * (1 + 1e-4)
    lost = backend.counters(0).opackets - backend.counters(1).ipackets
    backend.start({0: traffic("64b 1-flow", over)}, 100.0)
    clock.time += 101
    lost = backend.counters(0).opackets - backend.counters(1).ipackets
    assert lost == pytest.approx((over - top) * 100 - RING, abs=100)


def test_latency_of_a_full_ring_is_its_length_and_less_for_a_short_burst() -> None:
    late = []
    for seconds in (2e-5, 0.1):
        backend, clock = configured_model()
        stream = replace(traffic("64b 1-flow", 10e6)[0], flow_stats={"stream_id": 5, "rule_type": "latency"})
        backend.start({0: (stream,)}, seconds)
        clock.time = seconds + 0.1
        found = backend.latency_counters(5)
        late.append(found.average)
        assert backend.flow_counters(5).received[1][0] + found.lost == backend.flow_counters(5).sent[0][0]
    assert late[0] < late[1] / 3
    assert late[1] == pytest.approx(RING / capacity() * 1e6, rel=0.2)


@pytest.mark.parametrize("noise", [None, Noise(warm_up=WarmUp(dip=0.1, seconds=1.3))])
@pytest.mark.parametrize("pps", [5.6e6, 12.9e6, 14.2e6])
def test_counts_do_not_depend_on_when_somebody_asked(pps: float, noise: Noise | None) -> None:
    def counts(readings: int) -> object:
        backend, clock = configured_model(noise=noise, seed=7)
        rows = {0: traffic("64b", pps), 1: traffic("64b", pps, swapped=True)}
        probes = replace(rows[0][0], stream_id=9, pps=1000.0, flow_stats={"stream_id": 9, "rule_type": "latency"})
        backend.start({**rows, 0: (*rows[0], probes)}, 1.0)
        chance = random.Random(readings)
        for moment in sorted(chance.uniform(0, 1) for _ in range(readings)):
            clock.time = moment
            backend.state()
        clock.time = 2.0
        latency = backend.latency_counters(9).histogram if readings < 100 else None
        return [backend.counters(0), backend.counters(1), backend.state().interfaces, backend.flow_counters(9)], latency

    assert counts(20) == counts(0)
    assert counts(300)[0] == counts(0)[0]
