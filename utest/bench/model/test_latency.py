"""Latency of a load: it rises towards capacity, has a tail, and ends at a full ring; loss begins only there."""

from __future__ import annotations

import random
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linerate.platforms import read_platform
from linerate_bench.model.forwarding import Forwarding, StreamLoad, StreamPart, forward
from linerate_bench.model.latency import Latency, latency_of
from linerate_bench.model.schema import RouterModel, router_model
from support.model_bench import PROJECT

CASES = [("netgate6100", "vpp"), ("netgate6100", "linux"), ("gowin_n305", "cx5_dpdk"), ("freebsd_apu2", "igb_generic")]


@cache
def model(platform: str, software: str) -> RouterModel:
    return router_model(read_platform(PROJECT.platforms, platform), software)


def offered(router: RouterModel, pps: float) -> tuple[Forwarding, Latency]:
    loads = [StreamLoad(0, pps, 64, (StreamPart(0, 1, 1.0),))]
    found = forward(router, loads)
    return found, latency_of(router, found, loads, 0)


@cache
def capacity(router: tuple[str, str]) -> float:
    """Frames/s of one queue that are forwarded without loss."""
    low, high = 0.0, model(*router).link_bps / 672
    while high - low > 1:
        middle = (low + high) / 2
        low, high = (middle, high) if offered(model(*router), middle)[0].loss == 0 else (low, middle)
    return low


@pytest.mark.parametrize("router", CASES)
def test_it_rises_with_the_load_and_most_near_capacity(router: tuple[str, str]) -> None:
    top = capacity(router)
    rows = [offered(model(*router), share * top) for share in (0.01, 0.3, 0.6, 0.9, 0.97, 0.99, 1.05)]
    assert [found.loss > 0 for found, _ in rows] == [False] * 6 + [True]
    means = [latency.mean for _, latency in rows]
    assert means == sorted(means)
    assert means[-1] > 3 * means[2]
    for _, latency in rows:
        assert latency.least <= latency.percentile(50) <= latency.percentile(99) <= latency.most
        assert latency.mean <= latency.most
    full = rows[-1][1]
    # a full ring before a server: nothing waits less
    assert full.mean == pytest.approx(full.most)


@given(share=st.floats(0.01, 1.2), seed=st.integers(0, 99), router=st.sampled_from(CASES))
def test_samples_are_of_the_distribution(share: float, seed: int, router: tuple[str, str]) -> None:
    _, latency = offered(model(*router), share * capacity(router))
    drawn = sorted(latency.samples(2000, random.Random(seed)))
    assert drawn == sorted(latency.samples(2000, random.Random(seed)))
    assert latency.least <= drawn[0]
    assert drawn[-1] <= latency.most + 1e-9
    spread = max(latency.percentile(84) - latency.percentile(16), 1e-6)
    assert sum(drawn) / 2000 == pytest.approx(latency.mean, abs=0.2 * spread)
    assert drawn[1800] == pytest.approx(latency.percentile(90), abs=0.5 * spread)


def test_streams_of_busier_cores_are_later() -> None:
    router = model("netgate6100", "linux")
    loads = [StreamLoad(0, 500e3, 64, (StreamPart(0, 1, 1.0),)), StreamLoad(0, 50e3, 64, (StreamPart(1, 1, 1.0),))]
    found = forward(router, loads)
    assert latency_of(router, found, loads, 0).mean > latency_of(router, found, loads, 1).mean
