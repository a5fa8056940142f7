"""The simulated routers of the studies: each kind of noise is as large, and as often, as it says."""

import statistics
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.counts.trial import Load
from lineproof_bench.studies.noisy_router import GeneratorNoise, NoisyDirection, NoisyRouter, RouterNoise
from lineproof_bench.studies.router_population import RouterKind

STILL = RouterNoise(capacity=0.0, burst=0)
SMOOTH = RouterNoise(burst=0, buffer=0)


def lost(router: NoisyRouter, pps: float, duration: float = 1.0) -> int:
    return router.measure(Load(pps), duration).directions[0].lost


def test_a_router_without_noise_loses_frames_beyond_capacity_and_buffer():
    assert lost(NoisyRouter.of(1e6, "", STILL), 1.004e6) == 0
    assert lost(NoisyRouter.of(1e6, "", STILL), 1.01e6) == 10_000 - 4096
    # the buffer is empty again when the next trial begins
    router = NoisyRouter.of(1e6, "", STILL)
    assert [lost(router, 1.005e6) for _ in range(3)] == [904] * 3


@given(st.floats(0.5e6, 2e6), st.floats(0.1, 60))
def test_the_backlog_is_what_the_buffer_holds_when_sending_ends(pps: float, duration: float):
    row = NoisyRouter.of(1e6, "", STILL).measure(Load(pps), duration).directions[0]
    beyond = max(0, row.offered - round(1e6 * duration))
    assert row.backlog == min(beyond, 4096)
    assert row.lost == beyond - row.backlog


def test_bursts_come_as_often_as_they_should_whatever_the_trials():
    for duration in (1.0, 30.0):
        router = NoisyRouter.of(1e9, "a seed", RouterNoise(capacity=0.0))
        found = sum(lost(router, 1e6, duration) for _ in range(round(50_000 / duration)))
        assert 900 < found / 500 < 1100


def test_capacity_spreads_as_it_should():
    router = NoisyRouter.of(1e6, "a seed", RouterNoise(burst=0, buffer=0))
    rates = [2e6 - lost(router, 2e6) for _ in range(2000)]
    mean = sum(rates) / len(rates)
    spread = (sum((rate - mean) ** 2 for rate in rates) / len(rates)) ** 0.5
    assert mean == pytest.approx(1e6, rel=0.001)
    assert spread == pytest.approx(3000, rel=0.1)


@settings(max_examples=30)
@given(st.integers(), st.lists(st.tuples(st.floats(1e3, 1e7), st.floats(0.1, 60)), max_size=10))
def test_the_same_seed_is_the_same_router(seed: int, asked: list[tuple[float, float]]):
    first, second = (NoisyRouter.of(1e6, str(seed), RouterNoise()) for _ in range(2))
    for pps, duration in asked:
        assert first.measure(Load(pps), duration) == second.measure(Load(pps), duration)
    assert first.traffic == pytest.approx(sum(duration for _, duration in asked))


def capacities(router: NoisyRouter, trials: int) -> list[float]:
    """Of the first direction, against 1e6 frames/s, in trials of 1 s at twice that."""
    return [(2e6 - lost(router, 2e6)) / 1e6 - 1 for _ in range(trials)]


def test_correlated_capacity_spreads_as_much_but_stays_longer():
    found = capacities(NoisyRouter.of(1e6, "a seed", replace(SMOOTH, correlation=0.9)), 5000)
    assert statistics.stdev(found) == pytest.approx(0.003, rel=0.2)
    assert statistics.correlation(found[:-1], found[1:]) == pytest.approx(0.9, abs=0.05)
    independent = capacities(NoisyRouter.of(1e6, "a seed", SMOOTH), 5000)
    assert statistics.correlation(independent[:-1], independent[1:]) == pytest.approx(0, abs=0.05)


def test_each_run_has_an_offset_of_its_own():
    router = NoisyRouter.of(1e6, "a seed", replace(SMOOTH, capacity=0.0, run=0.005))
    found = []
    for _ in range(500):
        first, second = capacities(router, 2)
        assert first == second
        found.append(first)
        router.begin_run()
    assert statistics.stdev(found) == pytest.approx(0.005, rel=0.15)


def test_a_falling_capacity_settles_after_a_minute():
    found = capacities(NoisyRouter.of(1e6, "", replace(SMOOTH, capacity=0.0, fall=0.01)), 70)
    assert found[0] == pytest.approx(0.01, rel=0.02)
    assert found == sorted(found, reverse=True)
    assert found[30] == pytest.approx(0.005, rel=0.05)
    assert found[60:] == [0.0] * 10


def test_two_levels_last_as_long_as_each_other():
    found = capacities(NoisyRouter.of(1e6, "a seed", replace(SMOOTH, capacity=0.0, step=0.02)), 60_000)
    assert {round(item, 4) for item in found} == {0.0, 0.02}
    assert statistics.fmean(found) == pytest.approx(0.01, rel=0.15)
    steps = sum(first != second for first, second in pairwise(found))
    assert 60_000 / steps == pytest.approx(120, rel=0.2)


def test_periodic_bursts_come_in_every_fifth_trial():
    router = NoisyRouter.of(1e9, "a seed", RouterNoise(capacity=0.0, every=5.0, periodic=True))
    found = [lost(router, 1e6) for _ in range(50)]
    first = found.index(500)
    assert first < 5
    assert found == [500 * (number % 5 == first) for number in range(50)]


def test_a_generator_sends_less_than_it_is_asked_for():
    direction = NoisyDirection(1e9, "", STILL)
    slow = NoisyRouter([direction], GeneratorNoise(slow=0.003))
    stuttering = NoisyRouter([direction], GeneratorNoise(stutter=0.01))
    assert [slow.measure(Load(1e6), 1.0).directions[0].unsent for _ in range(2)] == [3000] * 2
    unsent = [stuttering.measure(Load(1e6), 1.0).directions[0].unsent for _ in range(10)]
    assert unsent == [0, 0, 0, 0, 10_000] * 2


def test_directions_are_independent_and_only_the_first_is_too_slow():
    alike = RouterKind(RouterNoise(), directions=4).router(1e6, 1.0, "a seed")
    rows = alike.measure(Load(2e6), 1.0).directions
    assert len({row.lost for row in rows}) == 4
    assert [(row.tx_port, row.rx_port) for row in rows] == [(0, 1), (1, 0), (2, 3), (3, 2)]
    one = RouterKind(STILL, directions=2, sound=0.05).router(1e6, 0.95, "a seed")
    slow, sound = one.measure(Load(1e6), 1.0).directions
    assert slow.lost > 0 and sound.lost == 0
    # the first direction is that of a router with one
    single = RouterKind(RouterNoise()).router(1e6, 1.0, "a seed")
    assert single.measure(Load(2e6), 1.0).directions[0] == rows[0]


def test_a_router_counts_its_trials_and_those_that_lost_frames():
    router = NoisyRouter.of(1e6, "", STILL)
    for pps in (0.9e6, 1.1e6, 1.2e6):
        router.measure(Load(pps), 2.0)
    assert (router.trials, router.lossy, router.traffic) == (3, 2, 6.0)
