"""A modelled router that lies: what ports and packet groups count, and what is captured. No process, no wall clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lineproof.simulation.faults import parse_fault
from lineproof_bench.backend import StreamTraffic
from lineproof_bench.faults.backend import FaultyBackend
from lineproof_bench.model.flows import internet_checksum
from support.model_bench import HandClock, faulty_model, traffic

FRAMES, PROBES = 1200, 100
"""Frames/s; of the internet mix 700, 400 and 100."""


def lying(what: str, **limits: Any) -> tuple[FaultyBackend, HandClock]:
    return faulty_model(parse_fault("changed frames", start=0, what=what, **limits))


def probed(words: str, pps: float = FRAMES, swapped: bool = False) -> tuple[StreamTraffic, ...]:
    """Frames, and probe frames of the last size among them, whose group is 7."""
    rows = traffic(words, pps, swapped)
    probe = {"stream_id": 7, "rule_type": "latency"}
    return (*rows, replace(rows[-1], stream_id=99, pps=float(PROBES), flow_stats=probe))


def missing_probes(backend: FaultyBackend, clock: HandClock, words: str = "imix") -> int:
    """How many probes of a second of traffic from port 0 are missing."""
    backend.forget(7)
    backend.start({0: probed(words)}, 1.0)
    clock.time += 2.0
    found = backend.flow_counters(7)
    return found.sent[0][0] - found.received.get(1, (0, 0))[0]


@pytest.mark.parametrize(
    "what", ["payload", "checksum", "ttl", "addresses", "mac", "lldp", "length", "cached", "copies"]
)
def test_ports_count_as_many_frames_and_bytes_as_without_a_lie(what: str) -> None:
    backend, clock = lying(what)
    missing = missing_probes(backend, clock)
    counted, sent = backend.counters(1), backend.counters(0)
    shortened = what in ("length", "cached")
    assert (counted.ipackets, counted.ibytes) == (sent.opackets, 64 * sent.opackets if shortened else sent.obytes)
    assert missing == (PROBES if shortened or what in ("payload", "lldp") else 0)
    assert counted.multicasts == (FRAMES + PROBES if what == "lldp" else 0)


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
        backend, clock = lying(what, share=share)
        backend.capture(1, 50)
        backend.start({0: traffic("64b 1-flow", FRAMES)}, 1.0)
        clock.time += 2
        seen.append([row.data for row in backend.captured(1)])
    assert len(seen[0]) == len(seen[1]) == 50
    for false, true in zip(*seen, strict=True):
        places = {at for at in range(60) if false[at] != true[at]}
        assert places <= different and bool(places) == bool(different)
        assert what in ("checksum", "lldp") or internet_checksum(false[14:34]) == b"\0\0"


def test_frames_that_go_back_come_elsewhere() -> None:
    backend, clock = lying("hairpin", share=0.02)
    backend.capture(0, 2000)
    backend.start({0: probed("64b"), 1: traffic("64b", FRAMES + PROBES, swapped=True)}, 1.0)
    clock.time += 2
    assert [backend.counters(port).ipackets for port in (0, 1)] == [FRAMES + PROBES] * 2
    assert backend.flow_counters(7).received == {0: (2, 128), 1: (98, 98 * 64)}
    back = [row.data for row in backend.captured(0) if row.data[26] == 16]
    assert len(back) == 26 and all(data[:6].hex(":") == backend.ports[0].mac and data[22] == 63 for data in back)
    # two of them are numbered probe frames
    assert sum(data[-16] == 0xAB for data in back) == 2
    assert [row.tx_packets for row in backend.state().interfaces] == [FRAMES + PROBES] * 2


def test_late_frames_are_under_way_and_latency_frames_may_be_spared() -> None:
    for spare in (True, False):
        backend, clock = lying("late", hold=0.05, spare=spare)
        backend.start({0: probed("64b", 10_000)}, 1.0)
        clock.time += 0.5
        under_way = backend.counters(0).opackets - backend.counters(1).ipackets
        assert under_way == pytest.approx(500 if spare else 505, abs=2)
        clock.time += 1
        assert backend.counters(1).ipackets == 10_000 + PROBES and backend.latency_counters(7).lost == 0
        assert (backend.latency_counters(7).average < 1000) == spare
    backend, clock = lying("lost", share=0.5, spare=True)
    assert missing_probes(backend, clock, "64b") == 0 and backend.counters(1).ipackets == FRAMES // 2 + PROBES


@pytest.mark.parametrize(
    ("limits", "damaged"),
    [
        ({"size": 1518}, PROBES),
        ({"size": 64}, 0),
        ({"port": 1}, 0),
        ({"share": 0.25}, PROBES // 4),
        ({"above": 2 * FRAMES}, 0),
        ({"above": FRAMES}, PROBES),
        ({"spare": True}, 0),
    ],
)
def test_a_lie_is_limited(limits: dict[str, Any], damaged: int) -> None:
    backend, clock = lying("payload", **limits)
    assert missing_probes(backend, clock) == damaged


def test_a_lie_ends() -> None:
    backend, clock = lying("payload", **{"for": 1})
    assert [missing_probes(backend, clock) for _ in range(2)] == [PROBES, 0]
