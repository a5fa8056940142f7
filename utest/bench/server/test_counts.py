"""The cards that the embedded server plays, the counts of ports and packet groups, captures' filters, replies."""

from __future__ import annotations

import math
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.latency import Resolution
from lineproof.generators.trex.client import answers
from lineproof.generators.trex.client.addresses import Question
from lineproof.testbed.settings import SimulatedNic
from lineproof_bench.backend import PortCounters
from lineproof_bench.model.latency import Delay, PacketGroups
from lineproof_bench.server.captures import filter_terms, reply_to, words_of
from lineproof_bench.server.ports import FOLDER, ServerCard, ServerPort, read_card
from lineproof_bench.server.rpc import Params, RpcError
from lineproof_bench.server.statistics import FlowStats, Statistics
from lineproof_bench.server.streams import parse_stream
from support.model_bench import traffic
from support.server_support import MACS, PEERS, Client, FakeBackend, stream

CARDS: tuple[str, ...] = get_args(SimulatedNic)

IPV4, IPV6, VLAN, QINQ, MPLS = (
    bytes(12) + bytes.fromhex(f"{tags}{kind}") + bytes(50)
    for tags, kind in (("", "0800"), ("", "86dd"), ("81000001", "0800"), ("88a8000181000002", "0800"), ("", "8847"))
)


def test_each_file_is_a_card_that_a_testbed_may_name() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.yaml")) == sorted(CARDS)


@pytest.mark.parametrize(("card", "up", "down"), [("i40e", 10e9, 0), ("mlx5", 10e9, 10e9), ("virtio", 0, 0)])
def test_the_speed_that_is_read_of_a_port(card: str, up: float, down: float) -> None:
    port = ServerPort(FakeBackend().ports[0], read_card(card))
    for link_up, expected in ((True, up), (False, down)):
        facts = answers.port_facts(port.status(link_up), port.information())
        assert (facts["speed_bps"], facts["link_up"]) == (expected, link_up)


SEEN = PortCounters(opackets=100, ipackets=90, obytes=6400, ibytes=5760, oerrors=3, ierrors=10, pauses_received=5)


def extended(statistics: Statistics, nic: ServerCard) -> dict[str, int]:
    return {name: value for name, value in zip(nic.xstats, statistics.xstats(0), strict=True) if value}


@pytest.mark.parametrize(
    ("card", "received", "missed", "pauses"),
    [
        ("i40e", (90, 10, 5760), {"rx_missed_errors", "rx_dropped_packets"}, {"rx_xoff_packets"}),
        ("ice", (90, 10, 5760), {"rx_missed_errors", "rx_dropped_packets"}, {"rx_xoff_packets"}),
        ("ixgbe", (100, 0, 6000), {"rx_missed_errors"}, {"rx_xoff_packets", "rx_flow_control_xoff_packets"}),
        ("mlx5", (100, 20, 6400), {"rx_missed_errors", "rx_out_of_buffer"}, set()),
        ("virtio", (90, 0, 5760), set(), set()),
    ],
)
def test_missed_frames_and_pauses_are_counted_and_named_as_by_the_cards_driver(
    card: str, received: tuple[int, int, int], missed: set[str], pauses: set[str]
) -> None:
    backend, nic = FakeBackend(), read_card(card)
    backend.counted = SEEN
    shown = Statistics(backend, float, nic).port(0)
    assert (shown["opackets"], shown["obytes"], shown["oerrors"]) == (100, 6400, 3)
    assert (shown["ipackets"], shown["ierrors"], shown["ibytes"]) == received
    more = extended(Statistics(backend, float, nic), nic)
    assert {name for name, value in more.items() if value == SEEN.ierrors} == missed
    assert {name for name, value in more.items() if value == SEEN.pauses_received} == pauses
    assert all("xoff" not in name for name in nic.xstats) is (not pauses)


def test_reading_the_extended_counters_of_a_82599_while_it_sends_takes_frames_from_trexs() -> None:
    backend, nic = FakeBackend(), read_card("ixgbe")
    statistics = Statistics(backend, float, nic)
    backend.counted = PortCounters(opackets=100, obytes=6400, ipackets=100, ibytes=6400)
    assert statistics.port(0)["opackets"] == 100
    assert "tx_good_packets" not in extended(statistics, nic), "TRex has read these"
    assert statistics.port(0)["opackets"] == 100, "nothing was sent meanwhile"
    backend.counted = PortCounters(opackets=130, obytes=8320, ipackets=120, ibytes=7680)
    assert extended(statistics, nic)["tx_good_packets"] == 30
    shown = statistics.port(0)
    assert (shown["opackets"], shown["obytes"], shown["ipackets"]) == (100, 6400, 120)


def group(number: int, frame: bytes, rule: str = "latency") -> Any:
    stats = {"enabled": True, "stream_id": number, "rule_type": rule}
    return parse_stream(number, Params(stream(frame=frame, flow_stats=stats)), FakeBackend().ports[0])


@pytest.mark.parametrize(
    ("card", "refused", "unseen"),
    [
        ("i40e", {QINQ, MPLS}, set()),
        ("ice", {QINQ, MPLS}, set()),
        ("ixgbe", {VLAN, QINQ, MPLS}, {IPV6}),
        ("mlx5", {QINQ, MPLS}, set()),
        ("virtio", set(), set()),
    ],
)
def test_groups_of_frames_that_a_card_cannot_count(card: str, refused: set[bytes], unseen: set[bytes]) -> None:
    flows = FlowStats(FakeBackend(), read_card(card))
    for number, frame in enumerate((IPV4, IPV6, VLAN, QINQ, MPLS)):
        if frame in refused:
            with pytest.raises(RpcError, match=r"Failed parsing given packet for flow stat\.  NIC does not support"):
                flows.add(0, group(number, frame))
            continue
        flows.add(0, group(number, frame))
        answer = flows.values([number])
        counts = answer["flow_stats"][str(number)]
        assert (counts["tp"]["0"], counts["rp"]["1"]) == (10, 0 if frame in unseen else 10)
        assert bool(answer["latency"][str(number)]["lat"]["average"]) is (frame not in unseen)


@pytest.mark.parametrize(("card", "size"), [("i40e", 0), ("ice", 640), ("virtio", 640)])
def test_an_x710_counts_no_bytes_of_a_stream(card: str, size: int) -> None:
    flows = FlowStats(FakeBackend(), read_card(card))
    flows.add(0, group(7, IPV4, "stats"))
    flows.add(0, group(8, IPV4))
    counts = flows.values([7, 8])["flow_stats"]
    assert (counts["7"]["rb"]["1"], counts["8"]["rb"]["1"], counts["7"]["tb"]["0"]) == (size, 640, 640)


def test_the_load_of_each_second_is_reported_and_the_smooth_one_follows_by_a_quarter() -> None:
    backend, clock = FakeBackend(), [0.0]
    statistics = Statistics(backend, lambda: clock[0], ServerCard())
    for moment, percent in ((0.5, 99.0), (1.0, 80.0), (1.9, 99.0), (2.0, 80.0)):
        clock[0], backend.load = moment, percent
        statistics.sample_cpu()
    (core,) = statistics.utilisation()["cpu"]
    assert core["history"] == [80, 80] + [0] * 18
    shown = statistics.overall()[0]
    assert (shown["m_cpu_util_raw"], shown["m_cpu_util"]) == (80.0, 35.0)
    assert statistics.port(0)["m_cpu_util"] == 35.0


ARP, TAGGED_ARP = (bytes(12) + bytes.fromhex(f"{tags}0806") + bytes(50) for tags in ("", "81000001"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {ARP, TAGGED_ARP, IPV4, IPV6, VLAN}),
        *((text, {ARP, TAGGED_ARP}) for text in ("arp or (vlan and arp)", "arp or(vlan and arp) or(vlan and arp)")),
        ("arp or ip6 or vlan", {ARP, TAGGED_ARP, IPV6, VLAN}),
        ("vlan and ip", {VLAN}),
        *(
            (text, None)
            for text in ("udp", "not arp", "(arp or ip) and vlan", "ip or vlan and arp", "arp or", "ip arp", " ")
        ),
    ],
)
def test_a_filter_of_either_client_is_understood_and_any_other_refused(text: str, expected: set[bytes] | None) -> None:
    if expected is None:
        with pytest.raises(RpcError, match="is not on this server; expected arp, ip, ip6, vlan, and, or"):
            filter_terms(text)
        return
    terms = filter_terms(text)
    assert {f for f in (ARP, TAGGED_ARP, IPV4, IPV6, VLAN) if any(t <= words_of(f) for t in terms)} == expected


# -- a router behind the embedded server answers for its own addresses; habits: generators/trex/test_addresses.py


LINK_LOCAL = "fe80::ff:fe00:101"
OWN = ("100.65.1.1", "2001:db8::1")


@pytest.mark.slow  # Scapy, which reads the question, opens a socket once
@pytest.mark.parametrize("tags", [(), (7,), (7, 8)])
@pytest.mark.parametrize("address", [*OWN, LINK_LOCAL, "100.65.1.9", "2001:db8::9", "fe80::9"])
def test_a_router_answers_whoever_asks_for_its_addresses_and_for_no_others(address: str, tags: tuple[int, ...]) -> None:
    question = Question(0, MACS[0], "100.65.1.2", address, tags)
    reply = reply_to(question.frame, PEERS[0], OWN.__contains__)
    assert (reply and question.answer(reply)) == (PEERS[0] if address in (*OWN, LINK_LOCAL) else None)


def test_groups_begin_with_their_first_stream_and_end_with_their_last() -> None:
    flows = FlowStats(FakeBackend(), ServerCard())
    shared, timed = group(7, IPV4, "stats"), group(9, IPV4)
    for port in (0, 1):
        flows.add(port, shared)  # several streams may share one
    flows.add(0, timed)
    with pytest.raises(RpcError, match="same pg_id"):
        flows.add(1, timed)
    assert flows.active() == {"ids": {"flow_stats": [7], "latency": [9]}}
    first = flows.values([7])["ver_id"]
    flows.remove(0, shared)
    flows.remove(0, timed)
    assert flows.active() == {"ids": {"flow_stats": [7], "latency": []}}
    flows.remove(1, shared)
    assert flows.values([7]) == {"ver_id": None, "flow_stats": None, "latency": {"g": None}}
    flows.add(1, shared)
    assert flows.values([7])["ver_id"] != first, "clients forget what they took as zero"


@pytest.mark.slow
def test_latency_streams_keep_their_rate(client: Client) -> None:
    client.acquire(0)
    timed = stream(pps=1000, flow_stats={"enabled": True, "stream_id": 9, "rule_type": "latency"})
    client.on(0, "add_stream", stream_id=1, stream=timed)
    client.on(0, "add_stream", stream_id=2, stream=stream(pps=548))
    # the figures of a real server
    assert client.start(0, value=20_000, duration=-1)["multiplier"] == pytest.approx(34.67153284671533)
    assert client.on(0, "validate")["rate"]["min_pps"] == 1000
    assert (
        "minimum rate" in client.on(0, "update_traffic", mul={"type": "pps", "value": 999, "op": "abs"})["specific_err"]
    )


# -- the modelled testbed behind the server's streams: bursts in their time, frames of many lengths, lost ones


@given(st.floats(0, 3000), st.floats(0, 500), st.integers(1, 20_000))
def test_a_fine_histogram_has_every_frame_where_the_delay_says(least: float, wait: float, frames: int) -> None:
    groups, sent = PacketGroups(), group(1, traffic("64b 1-flow", 1.0)[0].frame).traffic(1.0, *MACS)
    groups.record(0, sent, 64, frames, {1: frames}, Delay(least, wait))
    counted = groups.latency_counters(1)
    assert sum(counted.histogram.values()) == frames and min(counted.histogram) <= counted.total_max
    assert all(low <= counted.total_max and Resolution.THREE_DIGITS.end(low) > least for low in counted.histogram)
    ends, below = [Resolution.THREE_DIGITS.end(low) for low in sorted(counted.histogram)], 0
    for low, end in zip(sorted(counted.histogram), ends[:-1], strict=False):
        below += counted.histogram[low]
        assert abs(below - frames * -math.expm1((least - end) / max(wait, 1e-3))) <= 0.51
