"""The modelled testbed behind the server's streams: bursts in their time, frames of many lengths, lost ones."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.latency import Resolution
from lineproof_bench.backend import PortDescription
from lineproof_bench.packet_groups import Delay, PacketGroups
from lineproof_bench.server.params import Params
from lineproof_bench.server.sequences import segments_of, traffic_of
from lineproof_bench.server.streams import ServerStream, parse_stream
from support.model_bench import address, configured_model
from support.server_support import MACS, PEERS, stream

PORT = PortDescription(0, MACS[0], PEERS[0], 10e9, "model")


def frame(size: int = 60) -> bytes:
    head = bytes(12) + b"\x08\x00" + bytes.fromhex("4500") + (size - 14).to_bytes(2, "big")
    return (head + bytes.fromhex("0000000040110000") + address("16.0.0.1") + address("48.0.0.1")).ljust(size, b"\0")


def parsed(number: int = 1, **more: Any) -> ServerStream:
    return parse_stream(number, Params(stream(frame=frame(), **more)), PORT)


def started(streams: list[ServerStream], duration: float | None = None) -> Any:
    backend, clock = configured_model()
    legs = segments_of(streams, 1.0, duration)
    backend.start({0: tuple(row for leg in legs for row in traffic_of(leg, MACS[0], PEERS[0]))}, duration)
    return backend, clock


def test_a_burst_waits_for_its_moment() -> None:
    mode = {"type": "single_burst", "total_pkts": 100, "rate": {"type": "pps", "value": 1000}}
    backend, clock = started([parsed(mode=mode, isg=500_000.0)])
    clock.time += 0.4
    assert backend.sending(0) and backend.counters(0).opackets == 0
    clock.time += 0.15
    assert backend.counters(0).opackets == 50
    backend.pause(0)
    clock.time += 10
    backend.resume(0)
    clock.time += 0.06
    assert backend.counters(0).opackets == 100
    assert backend.counters(1).ipackets == 100
    assert not backend.sending(0)


def test_a_pause_before_a_burst_keeps_its_wait() -> None:
    backend, clock = started([parsed(isg=500_000.0, pps=1000)], duration=1.0)
    clock.time += 0.4
    backend.pause(0)
    clock.time += 10
    backend.resume(0)
    clock.time += 0.05
    assert backend.counters(0).opackets == 0
    clock.time += 5
    assert backend.counters(0).opackets == 500, "what was left of the duration"


def test_frames_of_many_lengths_add_up() -> None:
    variable = {"type": "flow_var", "name": "a", "size": 2, "op": "inc", "init_value": 60, "min_value": 60}
    trim = [variable | {"max_value": 96, "step": 1}, {"type": "trim_pkt_size", "name": "a"}]
    given = stream(frame=frame(100), pps=1000, vm={"instructions": trim})
    backend, clock = started([parse_stream(1, Params(given), PORT)], duration=1.003)
    clock.time += 2
    assert backend.counters(0).opackets == 1003


@given(st.floats(0, 3000), st.floats(0, 500), st.integers(1, 20_000))
def test_a_fine_histogram_has_every_frame_where_the_delay_says(least: float, wait: float, frames: int) -> None:
    groups, rule = PacketGroups(), {"enabled": True, "stream_id": 1, "rule_type": "latency"}
    (traffic,) = traffic_of(segments_of([parsed(flow_stats=rule)], 1.0, None)[0], *MACS)
    groups.record(0, traffic, 64, frames, {1: frames}, Delay(least, wait))
    found = groups.latency_counters(1)
    assert sum(found.histogram.values()) == frames and min(found.histogram) <= found.total_max
    assert all(low <= found.total_max and Resolution.THREE_DIGITS.end(low) > least for low in found.histogram)
    ends, below = [Resolution.THREE_DIGITS.end(low) for low in sorted(found.histogram)], 0
    for low, end in zip(sorted(found.histogram), ends[:-1], strict=False):
        below += found.histogram[low]
        assert abs(below - frames * -math.expm1((least - end) / max(wait, 1e-3))) <= 0.51


def test_lost_frames_are_seen_when_the_next_one_arrives() -> None:
    groups, (traffic,) = (
        PacketGroups(),
        traffic_of(
            segments_of([parsed(flow_stats={"enabled": True, "stream_id": 1, "rule_type": "latency"})], 1.0, None)[0],
            *MACS,
        ),
    )
    groups.record(0, traffic, 64, 10, {}, Delay(10, 5))
    assert groups.latency_counters(1).lost == 0
    groups.record(0, traffic, 64, 10, {1: 8}, Delay(10, 5))
    assert groups.latency_counters(1).lost == 12
    assert sum(groups.latency_counters(1).histogram.values()) == 8
