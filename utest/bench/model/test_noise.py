"""Noise: off by default, seeded, the same however often the clock is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.core.sentence import parse_traffic
from lineproof.errors import ConfigError
from lineproof.platforms import Platform, read_platform
from lineproof.simulation.habits import LossBursts, Noise, WarmUp
from lineproof.testbed.files import read_testbed
from lineproof.testbed.settings import SimulatedSettings
from lineproof_bench.model.backend import ModelBackend
from lineproof_bench.model.features import StateTable
from lineproof_bench.model.schema import Scalar, router_model
from support.model_bench import PROJECT, HandClock, catalogue, configuration, configured_model, platform, traffic
from support.model_loads import at_saturation

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


def test_capacity_stays_the_same_within_a_trial() -> None:
    backend, clock = configured_model("vpp", noise=Noise(capacity=0.05), seed=3)
    backend.start({0: traffic("64b 1-flow", 10e6)}, 20.0)
    # a second port that starts later belongs to the same trial
    clock.time = 0.5
    backend.start({1: traffic("64b 1-flow", 1e3, swapped=True)}, 10.0)
    counts = []
    for second in range(1, 10):
        clock.time = float(second)
        counts.append(backend.counters(1).ipackets)
    steps = {new - old for old, new in pairwise(counts)}
    assert max(steps) - min(steps) <= 2


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


def noisy(tmp_path: Path, noise: str) -> SimulatedSettings:
    (tmp_path / "loud.yaml").write_text(f"testbed: loud\nkind: simulated\nnoise: {noise}\n")
    found = read_testbed(tmp_path, "loud")
    assert isinstance(found, SimulatedSettings)
    return found


def test_noise_in_a_testbed_file(tmp_path: Path) -> None:
    assert noisy(tmp_path, "0.003").noise == Noise(capacity=0.003)
    text = "{capacity: 0.003, bursts: {packets: 500, every: 50}, warm_up: {dip: 0.2, seconds: 3}}"
    noise = noisy(tmp_path, text).noise
    assert noise is not None
    assert noise == Noise(capacity=0.003, bursts=LossBursts(), warm_up=WarmUp(dip=0.2, seconds=3))
    assert Noise.model_validate(noise.model_dump()) == noise
    with pytest.raises(ConfigError, match="noise"):
        noisy(tmp_path, "{capacity: 1.5}")
    with pytest.raises(ConfigError, match="burst"):
        noisy(tmp_path, "{burst: {packets: 5}}")


# -- what a study's `configured` costs the modelled router: firewalls, states, locks, queues, threads


FREEBSD = tuple(f"freebsd_{name}" for name in ("apu2", "dell_r630", "hp_dl360p", "netgate_rcc_ve", "supermicro_5018a"))


@cache
def box(name: str) -> Platform:
    return read_platform(PROJECT.platforms, name)


def rate(
    name: str, configured: Mapping[str, Scalar], queues: int | None = None, software: str = "", words: str = "64b"
) -> float:
    """Frames/s that box *name* forwards of 2000 flows, with its first patched software."""
    chosen = software or next(key for key in box(name).software if key.endswith("_tuned"))
    model = router_model(box(name), chosen, queues, None, configured)
    return at_saturation(model, parse_traffic(f"{words} 2000-flows unidirectional", catalogue()).profile)[0]


def falls(rates: Sequence[float]) -> bool:
    return all(after <= before * (1 + 1e-9) for before, after in pairwise(rates))


@pytest.mark.parametrize("name", FREEBSD)
@pytest.mark.parametrize("firewall", ["ipfw", "pf", "ipf"])
def test_more_rules_or_states_are_never_faster_and_no_firewall_is_fastest(name: str, firewall: str) -> None:
    on: dict[str, Scalar] = {"firewall": firewall, "stateful": False}
    rules = [rate(name, on | {"rules": count}) for count in (0, 1, 9, 99, 999)]
    states = [rate(name, on | {"stateful": True, "states": count}) for count in (64, 1000, 100_000, 5_000_000)]
    assert falls(rules) and falls(states)
    assert rate(name, {}) >= max(*rules, *states)
    assert rate(name, on | {"table": 10}) == rate(name, on | {"table": 10_000}) <= rules[0]


@pytest.mark.parametrize("name", FREEBSD)
def test_what_is_switched_on_is_never_faster_but_pinning_and_a_local_socket(name: str) -> None:
    for feature, on in box(name).model["features"].items():
        words = "64b vlan" if "vlan" in feature else "64b"
        slower = rate(name, {feature: True}, words=words) <= rate(name, {feature: False}, words=words) * (1 + 1e-9)
        assert slower or feature in ("pinned", "local", "vlan_without_lock"), (feature, on)


def test_a_chain_of_states_costs_more_once_it_is_outside_the_cache() -> None:
    table = StateTable(buckets=256, hit=25, miss=75, cached=200_000)
    assert table.cycles(0) == 0
    assert table.cycles(100_000) == pytest.approx(100_000 / 256 * 25)
    assert table.cycles(1_000_000) > 10 * table.cycles(100_000) * 2


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
