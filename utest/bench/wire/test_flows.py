"""Packet groups on the wire, between network namespaces: counted exactly, with latency; needs root."""

from __future__ import annotations

import contextlib
import subprocess
from dataclasses import replace
from typing import Any

import pytest

from lineproof.core.traffic.ip_header import ipv4_checksum
from lineproof.errors import TestbedError
from lineproof.system.network_namespace import inside
from lineproof.testbed.namespaces import Cable, Topology
from lineproof_bench.backend import FieldVariable, StreamTraffic
from lineproof_bench.wire import WireBackend, WirePort
from support.patience import wait_until
from support.wire_rig import finish, stream

pytestmark = pytest.mark.netns


def back(backend: WireBackend, *groups: int) -> None:
    """Wait until every frame of *groups* came back."""

    def counts() -> list[tuple[int, int]]:
        found = [backend.flow_counters(group) for group in groups]
        return [(sum(n for n, _ in one.sent.values()), sum(n for n, _ in one.received.values())) for one in found]

    wait_until(lambda: all(sent == received for sent, received in counts()), lambda: f"(sent, back) is {counts()}")


def test_groups_are_counted_exactly_at_any_rate(topology: Topology, backend: WireBackend) -> None:
    cable = topology.cables[0]
    rows = (
        stream(cable, 100e6, 1),
        stream(cable, 50e6, 2, size=124),
        stream(cable, 50e6, 2, size=60),
        # looks like group 1's, but is of none
        stream(cable, 50e6, number=0xFC00),
    )
    backend.start({0: rows}, 0.5)
    finish(backend)
    back(backend, 1, 2)
    one, two = backend.flow_counters(1), backend.flow_counters(2)
    ports = backend.counters(0)
    assert one.sent == {0: (one.received[1][0], 64 * one.received[1][0])}
    assert one.received == {0: (0, 0), 1: one.sent[0]}
    assert two.received[1] == two.sent[0]
    assert two.sent[0][0] == pytest.approx(one.sent[0][0], abs=2)
    assert two.sent[0][1] == pytest.approx(96 * two.sent[0][0], abs=200)
    other = ports.opackets - one.sent[0][0] - two.sent[0][0]
    assert other == pytest.approx(one.sent[0][0] / 2, abs=2)


def test_both_directions_repeatedly(topology: Topology, backend: WireBackend) -> None:
    rows = {cable.index: (stream(cable, 5000, 10 + cable.index, count=1000),) for cable in topology.cables}
    for again in (1, 2):
        backend.start(rows, None)
        finish(backend)
        back(backend, 10, 11)
        for port in (0, 1):
            frames = 1000 * again
            assert backend.flow_counters(10 + port).sent == {port: (frames, 64 * frames)}
            assert backend.flow_counters(10 + port).received == {port: (0, 0), 1 - port: (frames, 64 * frames)}
    backend.forget(10)
    assert backend.flow_counters(10).sent == {}
    backend.start(rows, None)
    finish(backend)
    back(backend, 10)
    assert backend.flow_counters(10).sent == {0: (1000, 64000)}
    assert backend.flow_counters(11).sent == {1: (3000, 3 * 64000)}


def test_counts_are_exact_after_new_rates(topology: Topology, backend: WireBackend) -> None:
    cable = topology.cables[0]
    rows = (stream(cable, 3000, 1), stream(cable, 1000, 2, size=124), stream(cable, 1000, 9, "latency"))
    backend.start({0: rows}, None)
    wait_until(lambda: backend.counters(0).opackets > 300)
    backend.update(0, (replace(rows[0], pps=30_000), *rows[1:]))
    wait_until(lambda: backend.counters(0).opackets > 3000)
    backend.stop(0)
    assert not backend.sending(0)
    groups = [1, 2, 9]
    assert sum(backend.flow_counters(group).sent[0][0] for group in groups) == backend.counters(0).opackets
    back(backend, *groups)
    for group in groups:
        assert backend.flow_counters(group).received[1] == backend.flow_counters(group).sent[0]
    found = backend.latency_counters(9)
    assert (found.lost, found.out_of_order, found.duplicates) == (0, 0, 0)


def test_latency_of_every_frame(topology: Topology, backend: WireBackend) -> None:
    first, second = topology.cables
    whole: dict[str, Any] = {"size": 300, "fix_ipv4_checksum": None, "variables": (), "frame": summed(second)}
    rows = {
        0: (stream(first, 20_000, 1, count=10_000), stream(first, 1000, 7, "latency", count=500)),
        1: (stream(second, 1000, 8, "latency", count=500, **whole),),
    }
    backend.start(rows, None)
    finish(backend)
    back(backend, 1, 7, 8)
    assert backend.flow_counters(1).sent == {0: (10_000, 640_000)}
    assert backend.flow_counters(7).sent == {0: (500, 32_000)}
    assert backend.flow_counters(7).received == {1: (500, 32_000)}
    assert backend.flow_counters(8).received == {0: (500, 304 * 500)}
    for group in (7, 8):
        found = backend.latency_counters(group)
        assert sum(found.histogram.values()) == 500
        assert 0 <= found.total_min <= found.average <= found.total_max
        assert found.last_max <= found.total_max
        assert found.jitter > 0
        assert (found.lost, found.out_of_order, found.duplicates) == (0, 0, 0)


def summed(cable: Cable) -> bytes:
    """A frame of 300 bytes whose checksum is right as it is, and has to stay so without a field engine."""
    found = bytearray(stream(cable, 1, size=300).frame)
    found[24:26] = ipv4_checksum(bytes(found[14:34])).to_bytes(2, "big")
    return bytes(found)


def test_a_start_without_groups_removes_the_counters(topology: Topology, backend: WireBackend) -> None:
    cable = topology.cables[0]

    def listening() -> int:
        found = subprocess.run(
            (*inside(topology.generator), "cat", "/proc/net/packet"), capture_output=True, timeout=10
        )
        rows = [line.split() for line in found.stdout.splitlines()[1:]]
        return sum(row[3] == b"0003" for row in rows)

    backend.start({0: (stream(cable, 1000, 1, count=100), stream(cable, 1000, 2, "latency", count=100))}, None)
    assert listening() > 0
    finish(backend)
    back(backend, 1, 2)
    backend.start({0: (stream(cable, 1000, count=100),)}, None)
    finish(backend)
    wait_until(lambda: listening() == 0)
    assert backend.flow_counters(1).received[1] == backend.flow_counters(2).received[1] == (100, 6400)


def headed(cable: Cable, head: str, version: int) -> bytes:
    """A frame to the other end of the cable with these bytes, as hexadecimal digits, behind its addresses."""
    if version == 4:
        packet = summed(cable)[14:]
    else:
        packet = bytes.fromhex("600000000060113f") + bytes(32) + bytes.fromhex("0401000900600000") + bytes(88)
    return bytes.fromhex((cable.router_mac + cable.port_mac).replace(":", "") + head) + packet


@pytest.mark.parametrize(
    ("head", "version"),
    [
        ("86dd", 6),
        ("810000050800", 4),
        ("88a8000681000005 86dd", 6),
        ("884700064140", 4),
        ("8100000588470006404000065040 00064140", 6),
    ],
)
def test_behind_tags_and_labels(topology: Topology, head: str, version: int) -> None:
    """Over one cable without a router, which might not know all of them."""
    cable = topology.cables[0]
    ends = [
        WirePort(0, cable.port, topology.generator, cable.port_mac, cable.router_mac),
        WirePort(1, cable.router_interface, topology.router, cable.router_mac, cable.port_mac),
    ]
    frame = headed(cable, head, version)
    plain = StreamTraffic(1, frame, 20_000, count=2000, flow_stats={"stream_id": 1, "rule_type": "stats"})
    timed = StreamTraffic(2, frame, 1000, count=100, flow_stats={"stream_id": 2, "rule_type": "latency"})
    with contextlib.closing(WireBackend(ends)) as backend:
        backend.start({0: (plain, timed)}, None)
        finish(backend)
        back(backend, 1, 2)
        size = len(frame) + 4
        for group, frames in ((1, 2000), (2, 100)):
            found = backend.flow_counters(group)
            assert found.sent[0] == found.received[1] == (frames, frames * size)
        assert sum(backend.latency_counters(2).histogram.values()) == 100


def test_latency_groups_that_cannot_be_kept_apart_or_up_with_are_refused(
    topology: Topology, backend: WireBackend
) -> None:
    first, second = topology.cables
    with pytest.raises(TestbedError, match="ask for 22000 frames/s together; expected 20000"):
        backend.start({0: (stream(first, 12e3, 1, "latency"),), 1: (stream(second, 1e4, 2, "latency"),)}, 0.1)
    with pytest.raises(TestbedError, match="port 0 sends already"):
        backend.start({cable.index: (stream(cable, 1000, 3, "latency"),) for cable in topology.cables}, 0.1)


def test_streams_that_cannot_be_counted_are_refused(topology: Topology, backend: WireBackend) -> None:
    cable = topology.cables[0]
    good = stream(cable, 1000, 1)
    over = FieldVariable(18, 2, 0, 9, 0)
    for bad, words in (
        (replace(good, frame=b"\xff" * 12 + b"\x08\x06" + bytes(46)), "neither an IPv4 nor an IPv6"),
        (replace(good, variables=(over,)), "writes the IPv4 identification"),
        (stream(cable, 1000, 2, "latency", size=54), "room for 12 bytes"),
        (stream(cable, 1000, 1, "latency"), "has the rule 'stats'"),
    ):
        with pytest.raises(TestbedError, match=words):
            backend.start({0: (good, bad)}, 0.1)
        assert not backend.sending(0)
    backend.start({0: (replace(good, count=100),)}, None)
    finish(backend)
    back(backend, 1)
    assert backend.flow_counters(1).received[1][0] == 100
