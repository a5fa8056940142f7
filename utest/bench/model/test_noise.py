"""Noise: off by default, seeded, the same however often the clock is read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.errors import ConfigError
from lineproof.platforms import Platform, read_platform
from lineproof.simulation.habits import LossBursts, Noise, WarmUp
from lineproof_bench.model.backend import ModelBackend
from lineproof_bench.model.schema import Scalar, router_model
from support.model_bench import PROJECT, HandClock, configuration, configured_model, platform, traffic

CAPACITY = 5.02e6
"""Frames/s of one flow, a little less than the model's VPP forwards on one core."""


def trial(backend: ModelBackend, clock: HandClock, pps: float, seconds: float, looks: int = 1) -> tuple[int, int]:
    """Frames sent and lost of a trial."""
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


def test_a_cold_router_is_slower_until_it_is_warm() -> None:
    noise = Noise(warm_up=WarmUp(dip=0.1, seconds=5))
    backend, clock = configured_model("vpp", noise=noise)
    assert trial(backend, clock, 0.95 * CAPACITY, 2.0)[1] > 0
    assert trial(backend, clock, 0.95 * CAPACITY, 3.0)[1] > 0
    assert trial(backend, clock, 0.95 * CAPACITY, 10.0)[1] == 0
    backend.configure(configuration(backend))
    sent, lost = trial(backend, clock, CAPACITY, 10.0)
    # a dip of a tenth in five of ten seconds
    assert lost / sent == pytest.approx(0.05, abs=0.005)


@given(seed=st.integers(0, 1000), looks=st.integers(2, 200), begin=st.floats(0, 1e6))
@settings(max_examples=20, deadline=None)
def test_counts_do_not_depend_on_how_often_they_are_read(seed: int, looks: int, begin: float) -> None:
    noise = Noise(capacity=0.02, bursts=LossBursts(packets=100, every=2), warm_up=WarmUp(dip=0.2, seconds=3.3))
    found = []
    for times in (1, looks):
        clock = HandClock()
        clock.time = begin
        backend = ModelBackend(platform(), "vpp", clock, None, noise, seed)
        backend.configure(configuration(backend))
        found.append(trial(backend, clock, 4.9e6, 10.0, times))
    assert found[0][0] == found[1][0]
    assert found[0][1] == pytest.approx(found[1][1], abs=30)


# -- what a study's `configured` costs the modelled router: firewalls, states, locks, queues, threads


@cache
def box(name: str) -> Platform:
    return read_platform(PROJECT.platforms, name)


@pytest.mark.parametrize(
    ("configured", "says"),
    [
        ({"entropie": True}, "'entropie', which 'model.features' does not know; did you mean 'entropy'?"),
        ({"entropy": 3}, "'configured.entropy' is 3; expected true or false"),
        ({"firewall": "nft"}, "'configured.firewall' is 'nft'; known: ipfw, pf, ipf"),
        ({"firewall": "pf", "rules": -1}, "'configured'"),
    ],
)
def test_what_the_model_does_not_know_is_refused(configured: Mapping[str, Scalar], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        router_model(box("freebsd_apu2"), "igb_tuned", configured=configured)
    assert says in str(caught.value)
