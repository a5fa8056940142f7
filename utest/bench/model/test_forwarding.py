"""Rates through the model: where queues are placed, what is lost, what must hold for any load; frames on their way."""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.platforms import read_platform
from lineproof_bench.model.backend import ModelBackend, ModelSettings
from lineproof_bench.model.forwarding import StreamLoad, StreamPart, forward, parts_of
from lineproof_bench.model.routing import RouterFeature, flow_of, forwarded_frame
from lineproof_bench.model.schema import RouterModel, router_model
from support.model_bench import PROJECT, HandClock, configuration, platform, traffic


@cache
def model(software: str = "vpp", rx_queues: int | None = None, platform: str = "netgate6100") -> RouterModel:
    return router_model(read_platform(PROJECT.platforms, platform), software, rx_queues)


RATES = st.floats(0, 15e6)
SIZES = st.sampled_from([64, 128, 594, 1518])


@st.composite
def loads(draw: st.DrawFn) -> list[StreamLoad]:
    made = []
    for port in (0, 1):
        queues = draw(st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True))
        parts = tuple(StreamPart(queue, draw(st.sampled_from([1 - port, None])), 1 / len(queues)) for queue in queues)
        made.append(StreamLoad(port, draw(RATES), draw(SIZES), parts))
    return made


@given(loads(), st.sampled_from(["vpp", "linux", "pfsense"]))
def test_fates_are_shares_that_add_up(rows: list[StreamLoad], software: str) -> None:
    router = model(software)
    result = forward(router, rows)
    for fate in result.fates:
        after = (1 - fate.missed) * (1 - fate.no_route) * (1 - fate.tx_dropped)
        assert 0 <= fate.forwarded <= 1 + 1e-9
        assert fate.forwarded == pytest.approx(after, abs=1e-9)
    assert all(0 <= worker.busy <= 1 and worker.vector >= 1 for worker in result.workers)


# -- frames: what their headers say, which way they go, how they look afterwards


SHIM = b"\x88\x47"
UDP = struct.pack("!HHHH", 1025, 12, 8, 0)
IPV4 = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28, 1, 0, 64, 17, 0, bytes([16, 0, 0, 1]), bytes([48, 0, 0, 1])) + UDP
IPV6 = struct.pack("!IHBB16s16s", 6 << 28, 8, 17, 64, bytes(15) + b"\1", bytes(15) + b"\2") + UDP


@given(
    tags=st.lists(st.tuples(st.sampled_from([0x8100, 0x88A8]), st.integers(0, 4095)), max_size=3),
    labels=st.lists(st.integers(16, 2**20 - 1), max_size=4),
    version=st.sampled_from([4, 6]),
)
def test_tags_labels_and_the_packet_behind_them_are_found(
    tags: list[tuple[int, int]], labels: list[int], version: int
) -> None:
    frame = bytes(12) + b"".join(struct.pack("!HH", *tag) for tag in tags)
    if labels:
        stack = [label << 12 | (number == len(labels) - 1) << 8 | 64 for number, label in enumerate(labels)]
        frame += SHIM + struct.pack(f"!{len(stack)}I", *stack)
    else:
        frame += b"\x08\x00" if version == 4 else b"\x86\xdd"
    ip = len(frame)
    frame += IPV4 if version == 4 else IPV6
    flow = flow_of(frame)
    assert flow is not None
    assert flow.tags == tuple(vlan for _, vlan in tags)
    assert (flow.labels, flow.version, flow.ip) == (tuple(labels), version, ip)
    assert flow.hashed == (IPV4[12:24] if version == 4 else IPV6[8:44])
    assert flow.destination == (0x30000001 if version == 4 else 2)
    sent = forwarded_frame(frame, flow, "02:00:00:00:00:01", "02:00:00:00:00:02")
    assert len(sent) == len(frame)
    where = 14 + 4 * len(tags) + 3 if labels else ip + (8 if version == 4 else 7)
    assert sent[where] == 63
    assert (sent[ip:] == frame[ip:]) == bool(labels)


def sent_and_back(words: str, *features: RouterFeature) -> tuple[int, int, int]:
    """Frames sent, come back, and without a way."""
    clock = HandClock()
    backend = ModelBackend(platform(), "vpp", clock, ModelSettings(features=frozenset(features)))
    backend.configure(configuration(backend))
    backend.capture(1, 1)
    backend.start({0: traffic(words, 1e5)}, 1.0)
    clock.time = 2.0
    frames = backend.captured(1)
    assert not frames or len(frames[0].data) == len(traffic(words, 1.0)[0].frame)
    return backend.counters(0).opackets, backend.counters(1).ipackets, backend.state().interfaces[0].no_route


@pytest.mark.parametrize(
    ("words", "needs"), [("66b ipv6", "ipv6"), ("64b vlan", "vlan"), ("64b qinq", "vlan"), ("64b mpls2", "mpls")]
)
def test_a_frame_of_a_router_feature_is_routed_as_the_packet_inside(words: str, needs: RouterFeature) -> None:
    assert sent_and_back(words, needs) == (100_000, 100_000, 0)
    assert sent_and_back(words) == (100_000, 0, 100_000)


def test_only_cards_that_look_behind_labels_spread_them() -> None:
    router = router_model(read_platform(PROJECT.platforms, "gowin_n305"), "cx5_dpdk")
    (labelled,) = traffic("64b mpls", 1.0)
    (plain,) = traffic("64b", 1.0)

    def queues(mpls: str) -> set[int]:
        rss = router.software.rss.model_copy(update={"mpls": mpls})
        model = replace(router, software=router.software.model_copy(update={"rss": rss}))
        return {part.queue for part in parts_of(model, labelled, lambda flow: 1)}

    assert queues("inner") == {part.queue for part in parts_of(router, plain, lambda flow: 1)} == {0, 1, 2}
    assert queues("none") == {0}
