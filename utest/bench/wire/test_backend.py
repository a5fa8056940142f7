"""Real frames between network namespaces, and packet groups counted exactly, with latency: needs root."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psutil
import pytest

from lineproof.errors import TestbedError
from lineproof.testbed.netns import MTU, Cable, Topology
from lineproof_bench.backend import CapturedFrame, FieldVariable, StreamGroup, StreamTraffic
from lineproof_bench.wire.backend import WireBackend, WirePort
from support.patience import wait_until

pytestmark = pytest.mark.netns


def stream(
    cable: Cable,
    pps: float,
    group: int | None = None,
    size: int = 60,
    flows: int = 251,
    **more: Any,
) -> StreamTraffic:
    """UDP through the router from this cable's network to the other's, from *flows* addresses.

    *group*: the packet group in which its latency is measured.
    """
    source, target = (0x10000001, 0x30000001) if cable.index == 0 else (0x30000001, 0x10000001)
    ethernet = bytes.fromhex((cable.router_mac + cable.port_mac).replace(":", "") + "0800")
    ip = bytes.fromhex("4500") + (size - 14).to_bytes(2, "big")
    ip += bytes.fromhex("0000000040110000") + source.to_bytes(4, "big") + target.to_bytes(4, "big")
    udp = bytes.fromhex("04010009") + (size - 34).to_bytes(2, "big") + bytes(2)
    counted = None if group is None else StreamGroup(group, "latency")
    variable = FieldVariable(26, 4, source, source + flows - 1, source)
    frame = (ethernet + ip + udp).ljust(size, b"\0")
    made = StreamTraffic(size, frame, pps, (variable,), fix_ipv4_checksum=14, group=counted)
    return replace(made, **more)


def finish(backend: WireBackend) -> None:
    """Wait until both ports have sent their last frame."""
    wait_until(lambda: not any(backend.sending(port) for port in (0, 1)), "the end of sending")


def test_received_frames_were_routed(topology: Topology, backend: WireBackend) -> None:
    first, second = topology.cables
    begin = time.monotonic()
    backend.capture(1, 50)
    backend.start({0: (stream(first, 1000.0, count=50),)}, None)
    finish(backend)
    frames: list[CapturedFrame] = []
    wait_until(lambda: frames.extend(backend.captured(1)) or len(frames) == 50, "all frames")
    for number, frame in enumerate(frames):
        assert frame.data[:12] == bytes.fromhex((second.port_mac + second.router_mac).replace(":", ""))
        assert frame.data[22] == 63
        assert int.from_bytes(frame.data[26:30], "big") == 0x10000001 + number
        assert len(frame.data) == 60 and frame.port == 1
        assert begin <= frame.timestamp <= time.monotonic()
    backend.capture(1, 0)
    assert backend.captured(1) == ()


def test_the_last_frames_are_kept(topology: Topology, backend: WireBackend) -> None:
    backend.capture(1, 200)
    backend.start({0: (stream(topology.cables[0], 20_000.0, count=10_000, flows=1 << 16),)}, None)
    finish(backend)
    wait_until(lambda: backend.counters(1).ipackets == 10_000, "all frames")
    numbers = [int.from_bytes(row.data[28:30], "big") - 1 for row in backend.captured(1)]
    assert numbers == list(range(9800, 10_000))


def test_more_than_the_machine_can_send_is_offered_less_and_ends_in_time(
    topology: Topology, backend: WireBackend
) -> None:
    begin = time.monotonic()
    backend.start({0: (stream(topology.cables[0], 100e6),)}, 0.3)
    finish(backend)
    elapsed, counters = time.monotonic() - begin, backend.counters(0)
    assert 0 < counters.opackets < 0.5 * 30e6
    assert elapsed < 20  # all 30 million frames would take a minute and more
    assert backend.utilisation() > 0


def test_a_frame_larger_than_the_interface_carries_is_refused(topology: Topology, backend: WireBackend) -> None:
    most = MTU + 18
    with pytest.raises(TestbedError, match=rf"{most + 1} bytes without FCS.*'port0' carries 14 to {most}"):
        backend.start({0: (stream(topology.cables[0], 10.0, size=most + 1),)}, 0.1)
    assert not backend.sending(0)


def test_a_missing_interface_or_namespace_is_named(topology: Topology) -> None:
    with pytest.raises(TestbedError, match="no interface 'nosuch' in namespace"):
        WireBackend([WirePort(0, "", "", interface="nosuch", netns=topology.generator)])
    with pytest.raises(TestbedError, match="no network namespace at '/proc/nosuch/ns/net'"):
        WireBackend([WirePort(0, "", "", interface="port0", netns="/proc/nosuch/ns/net")])


@pytest.fixture
def alone(topology: Topology) -> Iterator[tuple[WireBackend, list[psutil.Process]]]:
    """A backend of one port that sends, and the processes that send for it, which end with it."""
    before, cable = psutil.Process().children(recursive=True), topology.cables[0]
    ends = WirePort(0, cable.port_mac, cable.router_mac, interface=cable.port, netns=topology.generator)
    made = WireBackend([ends])
    senders = [process for process in psutil.Process().children(recursive=True) if process not in before]
    made.start({0: (stream(cable, 1000.0),)}, None)
    yield made, senders
    made.close()
    made.close()
    assert senders and psutil.wait_procs(senders, 60)[1] == []


def test_closing_ends_the_senders_even_while_they_send(alone: tuple[WireBackend, list[psutil.Process]]) -> None:
    assert alone[0].sending(0)


def test_a_sender_that_was_killed_is_noticed(
    topology: Topology, alone: tuple[WireBackend, list[psutil.Process]]
) -> None:
    made, senders = alone
    for process in senders:
        process.kill()
    wait_until(lambda: not made.sending(0), "a dead sender counts as sending")
    with pytest.raises(TestbedError, match="has died"):
        made.start({0: (stream(topology.cables[0], 1000.0),)}, 0.1)


def back(backend: WireBackend, *groups: int) -> None:
    """Wait until every frame of *groups* came back."""

    def counts() -> list[tuple[int, int]]:
        counted = [backend.flow_counters(group) for group in groups]
        return [(sum(n for n, _ in one.sent.values()), sum(n for n, _ in one.received.values())) for one in counted]

    wait_until(lambda: all(sent == received for sent, received in counts()), lambda: f"(sent, back) is {counts()}")


def test_latency_of_every_frame_in_both_directions_repeatedly(topology: Topology, backend: WireBackend) -> None:
    first, second = topology.cables
    rows = {
        0: (stream(first, 20_000, count=10_000), stream(first, 1000, 7, count=500)),
        1: (stream(second, 1000, 8, size=300, count=500),),
    }
    for again in (1, 2):
        backend.start(rows, None)
        finish(backend)
        back(backend, 7, 8)
        frames = 500 * again
        assert backend.flow_counters(7).sent == {0: (frames, 64 * frames)}
        assert backend.flow_counters(7).received == {1: (frames, 64 * frames)}
        assert backend.flow_counters(8).received == {0: (frames, 304 * frames)}
        for group in (7, 8):
            latency = backend.latency_counters(group)
            assert sum(latency.histogram.values()) == frames
            assert 0 <= latency.total_min <= latency.average <= latency.total_max
            assert latency.last_max <= latency.total_max
            assert latency.jitter > 0
            assert (latency.lost, latency.out_of_order, latency.duplicates) == (0, 0, 0)
    backend.forget(7)
    assert backend.flow_counters(7).sent == {}
    backend.start(rows, None)
    finish(backend)
    back(backend, 7, 8)
    assert backend.flow_counters(7).sent == {0: (500, 32_000)}
    assert backend.flow_counters(8).sent == {1: (1500, 1500 * 304)}


def test_counts_are_exact_after_new_rates(topology: Topology, backend: WireBackend) -> None:
    cable = topology.cables[0]
    rows = (stream(cable, 3000), stream(cable, 1000, 9))
    backend.start({0: rows}, None)
    wait_until(lambda: backend.counters(0).opackets > 300)
    backend.update(0, (replace(rows[0], pps=30_000), rows[1]))
    wait_until(lambda: backend.counters(0).opackets > 3000)
    backend.update(0, (rows[0], replace(rows[1], pps=2000)))
    wait_until(lambda: backend.counters(0).opackets > 5000)
    backend.stop(0)
    assert not backend.sending(0)
    back(backend, 9)
    latency = backend.latency_counters(9)
    assert (latency.lost, latency.out_of_order, latency.duplicates) == (0, 0, 0)


IPV6 = bytes.fromhex("600000000060113f") + bytes(32) + bytes.fromhex("0401000900600000") + bytes(88)


@pytest.mark.parametrize("head", ["86dd", "88a8000681000005 86dd", "8100000588470006404000065040 00064140"])
def test_behind_tags_and_labels(topology: Topology, head: str) -> None:
    """Over one cable without a router, which might not know all of them."""
    cable = topology.cables[0]
    ends = [
        WirePort(0, cable.port_mac, cable.router_mac, interface=cable.port, netns=topology.generator),
        WirePort(1, cable.router_mac, cable.port_mac, interface=cable.router_interface, netns=topology.router),
    ]
    frame = bytes.fromhex((cable.router_mac + cable.port_mac).replace(":", "") + head) + IPV6
    timed = StreamTraffic(2, frame, 1000, count=100, group=StreamGroup(2, "latency"))
    with contextlib.closing(WireBackend(ends)) as backend:
        backend.start({0: (timed,)}, None)
        finish(backend)
        back(backend, 2)
        counted = backend.flow_counters(2)
        assert counted.sent[0] == counted.received[1] == (100, 100 * (len(frame) + 4))
        assert sum(backend.latency_counters(2).histogram.values()) == 100


def test_groups_that_cannot_be_counted_kept_apart_or_up_with_are_refused(
    topology: Topology, backend: WireBackend
) -> None:
    first, second = topology.cables
    arp = replace(stream(first, 1000, 4), frame=b"\xff" * 12 + b"\x08\x06" + bytes(46))
    for traffic, words in (
        ({0: (stream(first, 12e3, 1),), 1: (stream(second, 1e4, 2),)}, "ask for 22000 frames/s together; expected 20"),
        ({cable.index: (stream(cable, 1000, 3),) for cable in topology.cables}, "port 0 sends already"),
        ({0: (stream(first, 1000), arp)}, "room for 0 bytes"),
        ({0: (stream(first, 1000), stream(first, 1000, 2, size=54))}, "room for 12 bytes"),
    ):
        with pytest.raises(TestbedError, match=words):
            backend.start(traffic, 0.1)
        assert not backend.sending(0)
