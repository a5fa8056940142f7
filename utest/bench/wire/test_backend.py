"""Real frames between network namespaces: needs root."""

from __future__ import annotations

import time
from collections.abc import Iterator

import psutil
import pytest

from lineproof.errors import TestbedError
from lineproof.testbed.netns import MTU, Topology
from lineproof_bench.backend import CapturedFrame
from lineproof_bench.wire.backend import WireBackend, WirePort
from support.patience import wait_until
from support.wire_rig import finish, stream

pytestmark = pytest.mark.netns


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
