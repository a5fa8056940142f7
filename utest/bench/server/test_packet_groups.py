"""Packet groups of the server: who may use which, and their counts under TRex's names; captures' filters; replies."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.latency import Resolution
from lineproof.generators.trex.outcomes import fine_histogram
from lineproof_bench.backend import PortDescription, StreamTraffic
from lineproof_bench.model.latency import Delay, PacketGroups
from lineproof_bench.server.captures import filter_of
from lineproof_bench.server.rpc import Params
from lineproof_bench.server.streams import ServerStream, parse_stream
from support.model_bench import traffic
from support.server_support import MACS, PEERS, Client, stream

OWN, ROUTER = bytes.fromhex(MACS[0].replace(":", "")), bytes.fromhex(PEERS[0].replace(":", ""))


def grouped(number: int, rule: str = "stats", **more: Any) -> dict[str, Any]:
    return stream(flow_stats={"enabled": True, "stream_id": number, "rule_type": rule}, **more)


ARP = b"\xff" * 6 + OWN + bytes.fromhex("08060001080006040001") + OWN + bytes([100, 65, 1, 2, *[0] * 6, 100, 65, 1, 1])
UDP = ROUTER + OWN + b"\x08\x00\x45" + bytes(45)


@pytest.mark.slow
def test_groups_begin_with_their_first_stream_and_end_with_their_last(client: Client) -> None:
    client.acquire(0)
    client.acquire(1)
    assert client.on(0, "add_stream", stream_id=1, stream=grouped(7)) == {}
    assert client.on(1, "add_stream", stream_id=1, stream=grouped(7)) == {}, "several streams may share one"
    assert client.on(0, "add_stream", stream_id=2, stream=grouped(9, "latency")) == {}
    refused = client.on(1, "add_stream", stream_id=2, stream=grouped(9, "latency"))
    assert "same pg_id" in refused["specific_err"]
    assert client.call("get_active_pgids") == {"ids": {"flow_stats": [7], "latency": [9]}}
    first = client.call("get_pgid_stats", pgids=[7])["ver_id"]
    client.on(0, "remove_all_streams")
    assert client.call("get_active_pgids") == {"ids": {"flow_stats": [7], "latency": []}}
    client.on(1, "remove_all_streams")
    assert client.call("get_pgid_stats", pgids=[7]) == {"ver_id": None, "flow_stats": None, "latency": {"g": None}}
    client.on(1, "add_stream", stream_id=1, stream=grouped(7))
    assert client.call("get_pgid_stats", pgids=[7])["ver_id"] != first, "clients forget what they took as zero"


@pytest.mark.slow
def test_counts_of_a_group(client: Client) -> None:
    client.acquire(0)
    client.on(0, "add_stream", stream_id=1, stream=grouped(9, "latency"))
    found = client.call("get_pgid_stats", pgids=[9, 10])
    assert found["flow_stats"]["9"]["tp"] == {"0": 10, "1": 0}
    assert found["flow_stats"]["9"]["rb"] == {"0": 0, "1": 640}
    assert found["latency"]["9"]["er"] == {"drp": 2, "sth": 2}
    assert found["latency"]["9"]["lat"]["histogram"] == {"10": 10, "90": 1}
    assert fine_histogram(found["latency"]["9"]["lat"]["hdrh"]) == {10: 10, 90: 1}
    assert found["latency"]["g"] == {"old_flow": 0, "bad_hdr": 0}
    assert "too many" in client.call("get_pgid_stats", pgids=list(range(2000)))["specific_err"]


@pytest.mark.slow
def test_latency_streams_keep_their_rate(client: Client) -> None:
    client.acquire(0)
    client.on(0, "add_stream", stream_id=1, stream=grouped(9, "latency", pps=1000))
    client.on(0, "add_stream", stream_id=2, stream=stream(pps=548))
    # the figures of a real server
    assert client.start(0, value=20_000, duration=-1)["multiplier"] == pytest.approx(34.67153284671533)
    assert client.on(0, "validate")["rate"]["min_pps"] == 1000
    assert (
        "minimum rate" in client.on(0, "update_traffic", mul={"type": "pps", "value": 999, "op": "abs"})["specific_err"]
    )


@pytest.mark.parametrize(
    ("text", "fits_arp", "fits_udp"),
    [
        ("", True, True),
        ("arp or (vlan and arp) or (vlan and arp)", True, False),
        ("arp or ip6 or vlan", True, False),
        ("ip", False, True),
        ("vlan and arp", False, False),
    ],
)
def test_filters(text: str, fits_arp: bool, fits_udp: bool) -> None:
    fits = filter_of(text)
    assert (fits(ARP), fits(UDP)) == (fits_arp, fits_udp)


# -- the modelled testbed behind the server's streams: bursts in their time, frames of many lengths, lost ones


PORT = PortDescription(0, MACS[0], PEERS[0], 10e9, "model")


def parsed(number: int = 1, **more: Any) -> ServerStream:
    return parse_stream(number, Params(stream(frame=traffic("64b 1-flow", 1.0)[0].frame, **more)), PORT)


def latency_traffic() -> StreamTraffic:
    (traffic,) = parsed(flow_stats=grouped(1, "latency")["flow_stats"]).traffic(1.0, *MACS)
    return traffic


@given(st.floats(0, 3000), st.floats(0, 500), st.integers(1, 20_000))
def test_a_fine_histogram_has_every_frame_where_the_delay_says(least: float, wait: float, frames: int) -> None:
    groups, traffic = PacketGroups(), latency_traffic()
    groups.record(0, traffic, 64, frames, {1: frames}, Delay(least, wait))
    found = groups.latency_counters(1)
    assert sum(found.histogram.values()) == frames and min(found.histogram) <= found.total_max
    assert all(low <= found.total_max and Resolution.THREE_DIGITS.end(low) > least for low in found.histogram)
    ends, below = [Resolution.THREE_DIGITS.end(low) for low in sorted(found.histogram)], 0
    for low, end in zip(sorted(found.histogram), ends[:-1], strict=False):
        below += found.histogram[low]
        assert abs(below - frames * -math.expm1((least - end) / max(wait, 1e-3))) <= 0.51


def test_lost_frames_are_seen_when_the_next_one_arrives() -> None:
    groups, traffic = PacketGroups(), latency_traffic()
    groups.record(0, traffic, 64, 10, {}, Delay(10, 5))
    assert groups.latency_counters(1).lost == 0
    groups.record(0, traffic, 64, 10, {1: 8}, Delay(10, 5))
    assert groups.latency_counters(1).lost == 12
    assert sum(groups.latency_counters(1).histogram.values()) == 8
