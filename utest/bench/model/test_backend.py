"""The model as a backend: whole counts, in balance, the same at any speed; frames as a router sends them on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.platforms import read_platform
from lineproof.units import l1_bits
from lineproof_bench.model.backend import ModelBackend
from lineproof_bench.shells.vpp import errors
from support import published
from support.model_bench import PROJECT, HandClock, configuration, configured_model, platform, traffic

COUNTS = ("rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "rx_missed", "no_route", "tx_dropped")
"""Counters of an interface."""


def balance(backend: ModelBackend, waiting: int = 0) -> None:
    """Every frame has one fate, but for those *waiting* at the most in the rings."""
    interfaces = backend.state().interfaces
    for port, interface in enumerate(interfaces):
        assert backend.counters(port).opackets == interface.rx_packets + interface.rx_missed
    lost = sum(interface.no_route + interface.tx_dropped for interface in interfaces)
    came, left = sum(one.rx_packets for one in interfaces), sum(one.tx_packets for one in interfaces)
    assert 0 <= came - left - lost <= waiting


@pytest.mark.parametrize(
    ("ceiling", "share", "busy"), [(1.0, 0.5, 40), (1.0, 1.0, 80), (0.5, 0.25, 40), (0.5, 0.6, 100)]
)
def test_generator_cpu_follows_the_share_of_the_ceiling_since_the_last_reading(
    ceiling: float, share: float, busy: float
) -> None:
    slower = platform().model_copy(update={"model": {**(platform().model or {}), "generator_ceiling": ceiling}})
    clock = HandClock()
    backend = ModelBackend(slower, "vpp", clock)
    clock.time = 5
    assert backend.utilisation() == 0
    backend.start({0: traffic("64b 1-flow", share * backend.model.speeds[0] / l1_bits(64))}, 2.0)
    clock.time = 6
    assert backend.utilisation() == pytest.approx(busy, rel=1e-3)
    clock.time = 8
    # half of this time nothing was sent; what is asked for too much of is known while it is
    after = 100 if share > ceiling else 40 * share / ceiling
    assert backend.utilisation() == pytest.approx(after, rel=1e-3)
    clock.time = 9
    assert backend.utilisation() == 0


@given(
    rates=st.tuples(st.floats(1, 15e6), st.floats(1, 15e6)),
    software=st.sampled_from(["vpp", "linux", "pfsense"]),
    words=st.sampled_from(["64b", "imix", "64b 1-flow"]),
    looks=st.lists(st.floats(0, 2), max_size=4),
    routed=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_every_frame_has_one_fate_and_no_counter_falls(
    rates: tuple[float, float], software: str, words: str, looks: list[float], routed: bool
) -> None:
    backend, clock = configured_model(software)
    if not routed:
        backend.configure(replace(configuration(backend), routes=(("48.0.0.0/9", "100.65.2.2"),)))
    backend.start({port: traffic(words, rate, swapped=port == 1) for port, rate in enumerate(rates)}, 1.0)
    before = [0] * 2 * len(COUNTS)
    for look in sorted(looks):
        clock.time = look
        now = [getattr(interface, name) for interface in backend.state().interfaces for name in COUNTS]
        assert all(earlier <= later for earlier, later in zip(before, now, strict=True)), "a counter fell"
        before = now
        balance(backend, waiting=8 * 1024)
    clock.time = 3.0
    balance(backend)
    assert backend.counters(1).ipackets <= backend.counters(0).opackets


def test_configuring_while_traffic_runs_takes_effect_from_then_on() -> None:
    backend, clock = configured_model()
    right = configuration(backend)
    backend.configure(replace(right, routes=()))
    backend.start({0: traffic("64b", 1000)}, 2.0)
    clock.time = 1.0
    backend.configure(right)
    clock.time = 3.0
    assert backend.counters(1).ipackets == backend.state().interfaces[0].no_route == 1000
    with pytest.raises(ValueError, match="no interface 'eth7'"):
        backend.configure(replace(right, up=("eth7",)))


def test_cycles_of_vpp_threads_add_up_to_the_clock() -> None:
    backend, clock = configured_model(rx_queues=1)
    backend.start({0: traffic("64b 1-flow", 14e6)}, 3.0)
    clock.time = 1.0
    backend.clear()
    clock.time = 2.0
    state = backend.state()
    worker = state.threads[0]
    assert worker.queues == ((state.interfaces[0].name, 0),)
    assert sum(node.clocks for node in worker.nodes) == pytest.approx(state.clock_hz * state.since_clear, rel=1e-6)
    assert worker.idle_seconds == pytest.approx(0, abs=1e-9)
    for node in worker.nodes:
        assert node.vectors / node.calls == pytest.approx(256, rel=1e-3)
    assert state.threads[1].busy_seconds == 0


def test_frames_beyond_the_cards_sending_limit_are_tx_drops() -> None:
    clock = HandClock()
    gowin = read_platform(PROJECT.platforms, "gowin_n305")
    backend = ModelBackend(gowin, "cx5_rdma_tuned", clock)
    backend.configure(configuration(backend))
    backend.start({0: traffic("64b 1-flow", 30e6)}, 1.0)
    clock.time = 1.5
    balance(backend)
    state = backend.state()
    dropped = sum(interface.tx_dropped for interface in state.interfaces)
    assert 0.15 < dropped / (dropped + backend.counters(1).ipackets) < 0.35
    assert f"{dropped} " in errors(state)
    assert "no free tx slots" in errors(state)
    nodes = {node.name: node for thread in state.threads for node in thread.nodes if node.vectors}
    assert nodes["rdma-input"].state == "polling"
    assert nodes["xxv1-tx"].vectors + dropped == pytest.approx(nodes["xxv1-output"].vectors, rel=1e-6)
    assert nodes["xxv1-tx"].calls == nodes["xxv1-output"].calls


@cache
def rows_by_study() -> Mapping[str, list[published.PublishedRow]]:
    return published.published_rows(PROJECT)


def rows_of(study: str) -> list[published.PublishedRow]:
    """Return the published rows of the studies whose name begins with *study*."""
    return [row for name, rows in rows_by_study().items() if name.startswith(study) for row in rows]


@pytest.mark.parametrize(
    ("of", "least"),
    [
        *(("", 0.95), ("netgate6100", 0.95), ("freebsd_", 0.945)),
        *(("freebsd_firewalls", 0.95), ("freebsd_rules", 0.9), ("freebsd_tables", 1.0)),
    ],
)
def test_enough_rows_are_inside(of: str, least: float) -> None:
    published_rows = rows_of(of)
    assert len(published_rows) >= {"": 600, "freebsd_": 540}.get(of, 20)
    outside = [row for row in published_rows if not row.inside]
    assert len(outside) <= (1 - least) * len(published_rows), outside


def test_slow_rows_are_close_by_their_own_rate() -> None:
    """Points of line rate alone would let rows pass that are off by half of what they forward."""
    slow = [row for row in rows_of("") if row.rate and 0 < row.published < 30 and row.inside]
    assert len(slow) > 200
    assert [row.name for row in slow if row.error_percent > 10 and "dropped" not in row.name] == []


def test_every_row_outside_is_explained_in_its_study_and_no_other() -> None:
    assert [row.name for row in rows_of("freebsd_") if row.inside == bool(row.explained)] == []


def numbers(data: Any) -> list[float]:
    if isinstance(data, dict):
        return [number for value in data.values() for number in numbers(value)]
    if isinstance(data, list | tuple):
        return [number for value in data for number in numbers(value)]
    return [float(data)] if isinstance(data, int | float) and not isinstance(data, bool) else []


def test_no_published_value_is_a_parameter() -> None:
    modules = list((PROJECT.root / "libraries" / "lineproof_bench" / "model").glob("*.py"))
    assert modules
    for path in modules:
        assert "studies" not in path.read_text(encoding="utf-8")
    figures = {
        number
        for study in published.published_studies(PROJECT)
        for value in numbers(study.published.model_dump()["rows"])
        for number in (value, value / 1e6)
        if number not in (0.0, 1.0, 256.0) and number < 1000
    }
    rates = 0
    for name in ("netgate6100", "gowin_n305", *(path.stem for path in PROJECT.platforms.glob("freebsd_*.yaml"))):
        model = yaml.safe_load((PROJECT.platforms / f"{name}.yaml").read_text(encoding="utf-8"))["model"]
        for section in model["software"].values():
            given = {key: value for key, value in section.get("nic", {}).items() if key.endswith("_mpps")}
            rates += len(given)
            assert not figures & set(given.values()), f"{name}: {given}"
    assert 0 < rates <= 10
