"""What the lying router does to frames, without a wire and with one."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Any

import pytest

from lineproof.testbed.namespaces import Topology
from lineproof_bench.model.flows import frame_of, internet_checksum
from lineproof_bench.wire import WireBackend
from support.lying_router import Direction, lldp, taken_over
from support.model_bench import traffic
from support.patience import wait_until
from support.wire_rig import Refused, arrived, finish, stream

ON, BACK = b"\x0a" * 6 + b"\x0b" * 6, b"\x0c" * 6 + b"\x0d" * 6
"""Addresses of frames that go on, and of those that go back."""


def takes_over(test: Any) -> Any:
    """Mark a *test* that has the kernel's forwarding taken over."""
    return pytest.mark.netns(pytest.mark.skipif(shutil.which("nft") is None, reason="this machine has no 'nft'")(test))


def frames_of(words: str, count: int = 100) -> list[bytes]:
    return [frame_of(row, number) for number in range(count) for row in traffic(words, 1.0)][:count]


def forwarded(lie: str, frames: Sequence[bytes], **limits: Any) -> tuple[list[Any], list[Any]]:
    """What leaves on and back for *frames*, which come 1 ms from each other."""
    on, back = list[Any](), list[Any]()
    direction = Direction(0, (ON, on.append), (BACK, back.append), lie, **limits)
    for number, frame in enumerate(frames):
        direction.forward(frame, 100.0 + number / 1000)
    direction.release(1e9)
    return on, back


@pytest.mark.parametrize("words", ["64b", "66b ipv6"])
def test_the_truth_is_one_hop_and_new_addresses(words: str) -> None:
    frames = frames_of(words)
    at = 22 if words == "64b" else 21
    for frame, sent in zip(frames, forwarded("truth", frames)[0], strict=True):
        assert sent[:12] == ON and sent[at] == frame[at] - 1
        assert [place for place in range(12, len(frame)) if sent[place] != frame[place]] in (
            [at],
            [at, 24],
            [at, 24, 25],
        )
        assert words != "64b" or internet_checksum(sent[14:34]) == b"\0\0"


@pytest.mark.parametrize(
    ("lie", "places"),
    [
        ("payload", range(42, 60)),
        ("checksum", [24]),
        ("ttl", [22, 24, 25]),
        ("addresses", [24, 25, 31, 32, 33]),
        ("mac", range(6)),
    ],
)
def test_a_lie_changes_its_own_bytes_only(lie: str, places: Sequence[int]) -> None:
    frames = frames_of("64b")
    for true, false in zip(forwarded("truth", frames)[0], forwarded(lie, frames)[0], strict=True):
        different = {place for place in range(60) if true[place] != false[place]}
        assert different and different <= set(places)
        assert lie == "checksum" or internet_checksum(false[14:34]) == b"\0\0"


def test_other_lies_in_short() -> None:
    frames = frames_of("imix 1-flow")
    true = forwarded("truth", frames)[0]
    assert forwarded("length", frames)[0] == [frame[:60] for frame in true]
    assert forwarded("cached", frames)[0] == true[:1] * 100
    assert forwarded("copies", frames)[0] == [frame for frame in true[::2] for _ in range(2)]
    assert forwarded("lldp", frames)[0] == [lldp(ON[6:]).ljust(len(frame), b"\0") for frame in true]
    assert forwarded("lost", frames) == ([], [])
    assert forwarded("late", frames)[0] == true
    on, back = forwarded("hairpin", frames, every=50)
    assert len(on) == 98 and back == [BACK + true[number][12:] for number in (49, 99)]


def test_one_flow_is_dead_and_another_comes_twice() -> None:
    frames = frames_of("64b", 10)
    true = forwarded("truth", frames)[0]
    assert forwarded("flow", frames + frames)[0] == [*true[:1], *true[2:], *true[:1] * 2, *true[2:]]


@pytest.mark.parametrize(
    ("limits", "left"),
    [
        ({"every": 4}, 75),
        ({"share": 0.0}, 100),
        ({"port": 0}, 0),
        ({"port": 1}, 100),
        ({"size": 594}, 67),
        ({"flow": 7}, 97),
        ({"above": 900.0}, 90),
        ({"above": 1100.0}, 100),
    ],
)
def test_the_limits_of_a_lie(limits: dict[str, Any], left: int) -> None:
    frames = frames_of("imix" if "size" in limits else "64b", 100)
    frames = frames[:33] * 3 + frames[:1] if "flow" in limits else frames
    assert len(forwarded("lost", frames, **limits)[0]) == left


def test_latency_frames_can_be_spared() -> None:
    frame = frames_of("64b", 1)[0]
    marked = frame[:18] + b"\xff\xff" + frame[20:]
    assert len(forwarded("lost", [frame, marked, frame[:15] + b"\x01" + frame[16:]], spare=True)[0]) == 2
    newer = frames_of("66b ipv6", 1)[0]
    assert len(forwarded("lost", [newer, newer[:16] + b"\xff\xff" + newer[18:]], spare=True)[0]) == 1


@takes_over
def test_thousands_each_way_come_back_where_it_tells_the_truth(topology: Topology, backend: WireBackend) -> None:
    with taken_over(topology.router, [cable.router_interface for cable in topology.cables], "truth"):
        refused = Refused(topology)
        backend.start({cable.index: (stream(cable, 5000.0, count=5000),) for cable in topology.cables}, None)
        finish(backend)
        for port in (0, 1):
            arrived(backend, refused, port)
            assert backend.counters(port).ipackets >= 4990


@takes_over
def test_it_lies_until_its_context_ends(topology: Topology, backend: WireBackend) -> None:
    first, second = topology.cables
    with taken_over(topology.router, [first.router_interface, second.router_interface], "hairpin", every=50, port=0):
        backend.start({cable.index: (stream(cable, 2000.0, count=1000),) for cable in topology.cables}, None)
        finish(backend)
        wait_until(lambda: [backend.counters(port).ipackets for port in (0, 1)] == [1020, 980])
    backend.start({0: (stream(first, 2000.0, count=1000),)}, None)
    finish(backend)
    wait_until(lambda: backend.counters(1).ipackets == 1980)
