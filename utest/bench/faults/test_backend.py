"""Faults as data, their schedule, and what the wrapped model then shows. No process, no wall clock."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import pytest

from lineproof.core.traffic.ip_header import ipv4_checksum
from lineproof.errors import ConfigError
from lineproof.simulation import FAULT_DEFAULTS, InjectedFault, parse_fault
from lineproof_bench.backend import StreamGroup, StreamTraffic
from lineproof_bench.faults.model import FaultyModel
from support.model_bench import HandClock, configuration, faulty_model, platform, traffic


def send(backend: FaultyModel, clock: HandClock) -> tuple[int, int]:
    """One second of traffic from port 0 to 1: what was offered, what came back."""
    before = backend.counters(0).opackets, backend.counters(1).ipackets
    backend.start({0: traffic("64b", 1e6)}, 1.0)
    clock.time += 2.0
    return backend.counters(0).opackets - before[0], backend.counters(1).ipackets - before[1]


LIMITS = (0, 1, -1, math.nan, math.inf, 1e30, "text", True, None)


@pytest.mark.parametrize("kind", FAULT_DEFAULTS)
def test_a_value_at_a_limit_is_modelled_or_refused_with_key_value_and_what_is_expected(kind: str) -> None:
    for key, value in itertools.product(("start", "at", "every", *FAULT_DEFAULTS[kind]), LIMITS):
        try:
            fault = parse_fault(kind, **{"start": 0, key: value})
        except ConfigError as error:
            shown = "empty" if value is None else str(value).lower()
            assert all(words in str(error).lower() for words in (key, shown, "expected")), error
            continue
        # what is handed to the bench is the same fault there
        assert InjectedFault.model_validate(fault.model_dump(by_alias=True, exclude_none=True)) == fault
        backend, clock = faulty_model(fault)
        for _ in range(2):
            backend.start({0: (grouped(),), 1: traffic("64b", 1e6, swapped=True)}, 1.0)
            clock.time += 2.0
            backend.counters(1), backend.flow_counters(7), backend.latency_counters(7), backend.state()


@pytest.mark.parametrize(
    ("kind", "more", "offered", "forwarded"),
    [
        ("unsent frames", {}, 0, 0),
        ("pause frames", {}, 0, 0),
        *(("one-way loss", {"of": of}, 1_000_000, 0) for of in ("router", "cable", "damaged cable")),
        ("duplicated frames", {}, 1_000_000, 2_000_000),
        ("changed frames", {"what": "lost"}, 1_000_000, 0),
    ],
)
def test_a_share_of_1_is_all_frames(kind: str, more: dict[str, Any], offered: int, forwarded: int) -> None:
    backend, clock = faulty_model(parse_fault(kind, share=1, **more))
    assert send(backend, clock) == (offered, forwarded)


def test_frames_that_nobody_sent_are_counted_by_time_and_copies_by_what_arrived() -> None:
    backend, clock = faulty_model(
        parse_fault("foreign frames", start=0, frames=3, port=1),
        parse_fault("pause frames", start=0, port=0),
        parse_fault("duplicated frames", start=1, share=0.5),
    )
    clock.time = 10.0
    backend.start({0: (replace(grouped(), pps=1000),)}, 1.0)
    clock.time = 20.0
    first, second, router = *map(backend.counters, (0, 1)), backend.state().interfaces[0]
    assert (first.multicasts, second.multicasts, second.ipackets) == (0, 30, 30 + 800 + 400)
    assert (first.pauses_received, second.pauses_received, router.pauses_sent) == (2000, 0, 2000)
    assert (backend.flow_counters(7).received[1][0], backend.latency_counters(7).duplicates) == (1200, 400)


def test_without_faults_it_is_the_model() -> None:
    backend, clock = faulty_model()
    assert send(backend, clock) == (1_000_000, 1_000_000)
    assert backend.server_actions() == () and backend.ssh_fault() == {} and backend.reply_delay() == 0


def grouped() -> StreamTraffic:
    (stream,) = traffic("64b", 1e6)
    return replace(stream, group=StreamGroup(7, "latency"))


def test_frames_that_are_held_come_later_and_are_none_of_a_group_that_began_meanwhile() -> None:
    backend, clock = faulty_model(parse_fault("changed frames", what="late", share=0.1, hold=3.0))
    backend.start({0: (replace(grouped(), pps=1000),)}, 1.0)
    came = []
    for clock.time in (1.0, 2.9, 3.5, 3.75):
        came.append((backend.counters(1).ipackets, backend.flow_counters(7).received[1][0]))
    assert came == [(900, 900), (900, 900), (950, 950), (975, 975)]
    backend.forget(7)
    clock.time = 4.0
    assert (backend.counters(1).ipackets, backend.flow_counters(7).received) == (1000, {})


def test_the_router_outlives_the_server_and_so_do_faults_to_come() -> None:
    coming = (parse_fault("ssh cut", start=4), parse_fault("link flap", start=0, at=60))
    backend, clock = faulty_model(parse_fault("server restart", start=2, at=1.5), *coming)
    send(backend, clock)
    send(backend, clock)
    (action,) = backend.server_actions()
    assert action.what == "restart" and action.after == FAULT_DEFAULTS["server restart"]["for"]
    faults = action.faults
    assert [(fault.kind, fault.start) for fault in faults] == [("ssh cut", 2), ("link flap", 0)]
    assert faults[1].at == pytest.approx(60 - 3.5)
    before, again = backend.state(), HandClock()
    heir = FaultyModel(platform(), "vpp", again)
    heir.take_over(before)
    heir.cause(faults)
    after = heir.state()
    assert after.interfaces == before.interfaces and after.configuration == before.configuration
    assert after.uptime >= before.uptime - 1
    assert send(heir, again) == (1_000_000, 1_000_000)
    assert heir.state().interfaces[0].rx_packets == 3_000_000


class RunningClock(HandClock):
    """Goes on by a millisecond with each look."""

    def now(self) -> float:
        self.time += 1e-3
        return self.time


@pytest.mark.parametrize("early", [-0.002, 0.0, 0.0004, 0.001])
def test_a_reading_at_the_edge_of_a_fault_does_not_move_it(early: float) -> None:
    def forwarded(*readings: float) -> int:
        clock, flap = RunningClock(), parse_fault("link flap", start=1, at=0.5, port=0, **{"for": 0.2})
        backend = FaultyModel(platform(), "vpp", clock)
        backend.cause([flap])
        backend.configure(configuration(backend))
        clock.time = 10.0
        backend.start({0: traffic("64b", 1e6)}, 2.0)
        for moment in readings:
            clock.time = moment
            backend.state()
        clock.time = 20.0
        return backend.counters(1).ipackets

    assert forwarded(10.501 - early) == forwarded() == pytest.approx(1_800_000, abs=2)


# -- a modelled router that lies: what the verdict is, is in session/test_simulation_signs


@pytest.mark.parametrize(
    ("what", "different"),
    [
        ("payload", set(range(42, 60))),
        ("checksum", {24}),
        ("ttl", {22, 24, 25}),
        ("addresses", {24, 25, 31, 32, 33}),
        ("mac", set(range(6))),
        ("lldp", set(range(60)) - set(range(6, 12))),
        ("flow", set()),
    ],
)
def test_captured_frames_differ_in_the_bytes_of_the_lie_only(what: str, different: set[int]) -> None:
    seen = []
    for share in (None, 1e-9):
        backend, clock = faulty_model(parse_fault("changed frames", start=0, what=what, share=share))
        backend.capture(1, 50)
        backend.start({0: traffic("64b 1-flow", 1200)}, 1.0)
        clock.time += 2
        seen.append([row.data for row in backend.captured(1)])
    assert len(seen[0]) == len(seen[1]) == 50
    for false, true in zip(*seen, strict=True):
        places = {at for at in range(60) if false[at] != true[at]}
        assert places <= different and bool(places) == bool(different)
        assert what in ("checksum", "lldp") or ipv4_checksum(false[14:34]) == 0
