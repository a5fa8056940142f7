"""Rates through the model: where queues are placed, what is lost, what must hold for any load."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.platforms import read_platform
from lineproof_bench.model.forwarding import (
    Forwarding,
    StreamLoad,
    StreamPart,
    forward,
)
from lineproof_bench.model.latency import delay_of
from lineproof_bench.model.schema import Nic, RouterModel, router_model
from lineproof_bench.packet_groups import Delay
from support.model_bench import PROJECT


@cache
def model(software: str = "vpp", rx_queues: int | None = None, platform: str = "netgate6100") -> RouterModel:
    return router_model(read_platform(PROJECT.platforms, platform), software, rx_queues)


def test_limits_of_port_and_bus_cut_what_comes_in() -> None:
    router = replace(model(), nic=Nic(reta=512, port_mpps=1.0))
    assert forward(router, [StreamLoad(0, 4e6, 64, (StreamPart(0, 1, 1.0),))]).fates[0].missed == pytest.approx(0.75)
    router = replace(model(), nic=Nic(reta=512, bus_gbps=1.024))
    fates = forward(router, [StreamLoad(port, 2e6, 64, (StreamPart(0, 1 - port, 1.0),)) for port in (0, 1)]).fates
    assert [fate.missed for fate in fates] == pytest.approx([0.5, 0.5])


def test_two_ports_into_one_drop_what_the_line_cannot_carry() -> None:
    loads = [StreamLoad(port, 800e3, 1518, (StreamPart(0, 1, 1.0),)) for port in (0, 1)]
    fates = forward(model(), loads).fates
    assert sum(fate.forwarded for fate in fates) * 800e3 * 8 * 1538 == pytest.approx(10e9)
    assert all(fate.tx_dropped > 0.4 for fate in fates)


RATES = st.floats(0, 15e6)
SIZES = st.sampled_from([64, 128, 594, 1518])


@st.composite
def loads(draw: st.DrawFn) -> list[StreamLoad]:
    found = []
    for port in (0, 1):
        queues = draw(st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True))
        parts = tuple(StreamPart(queue, draw(st.sampled_from([1 - port, None])), 1 / len(queues)) for queue in queues)
        found.append(StreamLoad(port, draw(RATES), draw(SIZES), parts))
    return found


@given(loads(), st.sampled_from(["vpp", "linux", "pfsense"]))
def test_fates_are_shares_that_add_up(rows: list[StreamLoad], software: str) -> None:
    router = model(software)
    result = forward(router, rows)
    for fate in result.fates:
        after = (1 - fate.missed) * (1 - fate.no_route) * (1 - fate.tx_dropped)
        assert 0 <= fate.forwarded <= 1 + 1e-9
        assert fate.forwarded == pytest.approx(after, abs=1e-9)
    assert all(0 <= worker.busy <= 1 and worker.vector >= 1 for worker in result.workers)


@given(st.floats(1e3, 14e6), st.floats(1, 2), st.sampled_from(["vpp", "linux", "pfsense"]))
def test_more_offered_load_never_forwards_less(pps: float, more: float, software: str) -> None:
    router = model(software)

    def total(rate: float) -> float:
        rows = [
            StreamLoad(port, rate, 64, (StreamPart(0, 1 - port, 0.5), StreamPart(1, 1 - port, 0.5))) for port in (0, 1)
        ]
        return sum(row.pps * fate.forwarded for row, fate in zip(rows, forward(router, rows).fates, strict=True))

    assert total(pps * more) >= total(pps) * (1 - 1e-6)


CASES = [model(), model("linux"), model("cx5_dpdk", None, "gowin_n305"), model("igb_generic", None, "freebsd_apu2")]


def offered(router: RouterModel, pps: float) -> tuple[Forwarding, Delay]:
    """One queue after a long time at *pps*: its ring is full where frames are lost."""
    loads = [StreamLoad(0, pps, 64, (StreamPart(0, 1, 1.0),))]
    found = forward(router, loads)
    return found, delay_of(router, found, loads, 0, {(0, 0): router.ring} if found.loss else {})


def capacity(router: RouterModel) -> float:
    """Frames/s of one queue that are forwarded without loss."""
    low, high = 0.0, router.link_bps / 672
    while high - low > 1:
        middle = (low + high) / 2
        low, high = (middle, high) if offered(router, middle)[0].loss == 0 else (low, middle)
    return low


@pytest.mark.parametrize("router", CASES)
def test_latency_rises_with_the_load_and_most_near_capacity(router: RouterModel) -> None:
    top = capacity(router)
    rows = [offered(router, share * top) for share in (0.01, 0.3, 0.6, 0.9, 0.97, 0.99, 1.05)]
    assert [found.loss > 0 for found, _ in rows] == [False] * 6 + [True]
    means = [delay.least + delay.wait for _, delay in rows]
    assert means == sorted(means)
    assert means[-1] > 3 * means[2]
    for mean, (_, delay) in zip(means, rows, strict=True):
        assert delay.least <= mean <= delay.most
    # a full ring before a server: nothing waits less
    assert means[-1] == pytest.approx(rows[-1][1].most)
