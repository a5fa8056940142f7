"""Frames of the model: what their headers say, which way they go, how they look afterwards."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.platforms import read_platform
from lineproof_bench.model.backend import ModelBackend
from lineproof_bench.model.flows import flow_of, forwarded_frame
from lineproof_bench.model.forwarding import header_cycles, parts_of
from lineproof_bench.model.routing import Fib, RouterFeature
from lineproof_bench.model.schema import router_model
from lineproof_bench.state import RouterConfiguration
from support.model_bench import PROJECT, HandClock, configuration, platform, traffic

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
    sent = forwarded_frame(frame, "02:00:00:00:00:01", "02:00:00:00:00:02")
    assert len(sent) == len(frame)
    where = 14 + 4 * len(tags) + 3 if labels else ip + (8 if version == 4 else 7)
    assert sent[where] == 63
    assert (sent[ip:] == frame[ip:]) == bool(labels)


@given(st.binary(max_size=80))
def test_any_bytes_are_accepted_as_a_frame(frame: bytes) -> None:
    flow = flow_of(frame)
    assert flow is None or flow.version in (4, 6)


def sent_and_back(words: str, *features: RouterFeature) -> tuple[int, int, int]:
    """Frames sent, come back, and without a way."""
    clock = HandClock()
    backend = ModelBackend(platform(), "vpp", clock, features=frozenset(features))
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


def test_ipv6_routes_of_the_configuration_need_no_feature() -> None:
    fib = Fib(
        RouterConfiguration(
            up=("a", "b"),
            addresses=(("a", "100.65.1.1/24"), ("b", "fd00:2::1/64")),
            neighbours=(("b", "fd00:2::2", "02:00:00:00:00:02"),),
            routes=(("2001:2::3000:0/104", "fd00:2::2"), ("2001:2::/48", "fd00:9::1")),
        )
    )
    exit_ = fib.lookup(0x20010002_00000000_00000000_30000001, 6)
    assert exit_ is not None
    assert (exit_.interface, exit_.mac) == ("b", "02:00:00:00:00:02")
    assert fib.lookup(0x20010002_00000000_00000000_10000001, 6) is None
    assert fib.lookup(0x30000001) is None


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


def test_tags_and_ipv6_cost_what_the_file_says() -> None:
    router = router_model(read_platform(PROJECT.platforms, "freebsd_hp_dl360p"), "cxgbe_tuned")
    cost = router.software.cost
    found = {
        words: header_cycles(router, flow_of(traffic(words, 1.0)[0].frame))
        for words in ("64b", "64b vlan", "64b qinq", "66b ipv6", "64b mpls")
    }
    assert found == pytest.approx(
        {
            "64b": 0,
            "64b vlan": cost.layer,
            "64b qinq": 2 * cost.layer,
            "66b ipv6": cost.ipv6 * cost.packet,
            "64b mpls": 0,
        }
    )
