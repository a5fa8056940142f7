"""Latency of a load: it rises towards capacity and ends at a full ring; loss begins only there."""

from __future__ import annotations

from functools import cache

import pytest

from lineproof.platforms import read_platform
from lineproof_bench.model.forwarding import Forwarding, StreamLoad, StreamPart, forward
from lineproof_bench.model.latency import delay_of
from lineproof_bench.model.schema import RouterModel, router_model
from lineproof_bench.packet_groups import Delay
from support.model_bench import PROJECT

CASES = [("netgate6100", "vpp"), ("netgate6100", "linux"), ("gowin_n305", "cx5_dpdk"), ("freebsd_apu2", "igb_generic")]


@cache
def model(platform: str, software: str) -> RouterModel:
    return router_model(read_platform(PROJECT.platforms, platform), software)


def offered(router: RouterModel, pps: float) -> tuple[Forwarding, Delay]:
    """One queue after a long time at *pps*: its ring is full where frames are lost."""
    loads = [StreamLoad(0, pps, 64, (StreamPart(0, 1, 1.0),))]
    found = forward(router, loads)
    return found, delay_of(router, found, loads, 0, {(0, 0): router.ring} if found.loss else {})


@cache
def capacity(router: tuple[str, str]) -> float:
    """Frames/s of one queue that are forwarded without loss."""
    low, high = 0.0, model(*router).link_bps / 672
    while high - low > 1:
        middle = (low + high) / 2
        low, high = (middle, high) if offered(model(*router), middle)[0].loss == 0 else (low, middle)
    return low


@pytest.mark.parametrize("router", CASES)
def test_latency_rises_with_the_load_and_most_near_capacity(router: tuple[str, str]) -> None:
    top = capacity(router)
    rows = [offered(model(*router), share * top) for share in (0.01, 0.3, 0.6, 0.9, 0.97, 0.99, 1.05)]
    assert [found.loss > 0 for found, _ in rows] == [False] * 6 + [True]
    means = [delay.least + delay.wait for _, delay in rows]
    assert means == sorted(means)
    assert means[-1] > 3 * means[2]
    for mean, (_, delay) in zip(means, rows, strict=True):
        assert delay.least <= mean <= delay.most
    # a full ring before a server: nothing waits less
    assert means[-1] == pytest.approx(rows[-1][1].most)


def test_streams_of_busier_cores_have_more_latency() -> None:
    router = model("netgate6100", "linux")
    loads = [StreamLoad(0, 500e3, 64, (StreamPart(0, 1, 1.0),)), StreamLoad(0, 50e3, 64, (StreamPart(1, 1, 1.0),))]
    found = forward(router, loads)
    assert delay_of(router, found, loads, 0, {}).wait > delay_of(router, found, loads, 1, {}).wait
