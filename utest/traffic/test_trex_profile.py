"""Streams in TRex's format are read as data, and those that no load can scale are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lineproof.core.traffic.trex_profile import ProfileSource, TrexProfile, flow_count, read_trex_profile
from lineproof.errors import ConfigError
from support.server_support import counter, rate, write
from support.server_support import stream as sent

SOURCE = ProfileSource(Path("mine.py"), "0" * 64, "", "")
Data = dict[str, Any]


def frame(size: int = 64, source: str = "10000001", sport: int = 1025, ttl: int = 64) -> bytes:
    head = bytes(12) + bytes.fromhex("08004500002e00010000") + bytes([ttl]) + bytes.fromhex("110000")
    return (head + bytes.fromhex(source + "30000001") + sport.to_bytes(2, "big") + bytes(6)).ljust(size - 4, b"\0")


def stream(data: bytes | None = None, instructions: tuple[Data, ...] = (), **more: Any) -> Data:
    return sent(frame=data or frame(), **{"vm": {"instructions": list(instructions)}, **more})


def program(*streams: Data, back: tuple[Data, ...] = ()) -> TrexProfile:
    return read_trex_profile({"directions": [{"streams": list(streams)}, {"streams": list(back)}]}, SOURCE)


def latency(pps: float, size: int = 64) -> Data:
    counted = {"enabled": True, "stream_id": 7, "rule_type": "latency"}
    return stream(frame(size), mode=rate("pps", pps), flow_stats=counted)


@pytest.mark.parametrize(
    ("rates", "shares"),
    [
        ([("pps", 3, 64), ("pps", 1, 1518)], [0.75, 0.25]),
        # 672 and 12304 bits on the wire; 512 and 12144 without gap and preamble
        ([("percentage", 10, 64), ("percentage", 30, 1518)], [1 / (1 + 3 * 672 / 12304), 1 / (1 + 12304 / 672 / 3)]),
        ([("bps_L1", 672e3, 64), ("pps", 3e3, 1518)], [0.25, 0.75]),
        ([("bps_L2", 512e3, 64), ("bps_L2", 12144e3, 1518)], [0.5, 0.5]),
    ],
)
def test_rates_of_any_unit_give_the_shares_of_the_streams(
    rates: list[tuple[str, float, int]], shares: list[float]
) -> None:
    found = program(*(stream(frame(size), mode=rate(kind, value)) for kind, value, size in rates))
    assert [item.share for item in found.directions[0]] == pytest.approx(shares)
    assert dict(found.sizes()) == pytest.approx({64: shares[0], 1518: shares[1]})


def test_latency_streams_have_a_fixed_rate() -> None:
    found = program(stream(mode=rate("pps", 5)), latency(1000, 1518))
    assert [(item.share, item.pps) for item in found.directions[0]] == [(1.0, 0.0), (0.0, 1000.0)]
    assert found.fixed_pps == 1000 and dict(found.sizes()) == {64: 1.0}
    assert found.mean_size(10_000) == pytest.approx(0.9 * 64 + 0.1 * 1518)


def test_streams_that_are_disabled_are_left_out() -> None:
    assert len(program(stream(), stream(enabled=False)).directions[0]) == 1


SRC, PAYLOAD = 26, 50
TUPLE = {"type": "tuple_flow_var", "name": "t", "ip_min": 1, "ip_max": 20, "port_min": 1, "port_max": 5}


def test_flows_are_counted_where_no_field_engine_varies_them() -> None:
    varied, elsewhere = (counter(1, 250), write(SRC)), (counter(1, 250), write(PAYLOAD))
    assert flow_count([(frame(sport=port), elsewhere) for port in (1, 2, 3)]) == 3
    assert flow_count([(frame(), ()), (frame(594), ()), (frame(source="10000002"), ())]) == 2
    for unknown in (varied, (TUPLE, write(SRC, "t.ip")), (write(SRC, "nowhere"),)):
        assert flow_count([(frame(), ()), (frame(), unknown)]) == 0


@pytest.mark.parametrize(
    ("instructions", "first", "last"),
    [
        ((), 0x10000001, 0x10000001),
        ((counter(0x10000001, 0x100000FA), write(SRC)), 0x10000001, 0x100000FA),
        ((counter(0, 255, op="random", size=1), write(SRC + 3)), 0x10000000, 0x100000FF),
        ((counter(0, 9, size=1), write(SRC + 3, add_value=5)), 0x10000005, 0x1000000E),
        ((counter(0, 9, size=1), write(SRC)), 0, 0xFFFFFFFF),
        ((counter(1, 255, size=1), write(SRC + 3, add_value=9)), 0, 0xFFFFFFFF),  # beyond a byte
    ],
)
def test_the_range_of_addresses_includes_what_the_field_engine_writes(
    instructions: tuple[Data, ...], first: int, last: int
) -> None:
    found = program(stream(instructions=instructions))
    assert found.addresses == ((first, last), (0x30000001, 0x30000001))
    assert program(stream(instructions=(write(SRC, "nowhere"),))).addresses == ((0, 0xFFFFFFFF),) * 2


TRIM = {"type": "trim_pkt_size", "name": "a"}


@pytest.mark.parametrize(
    ("variable", "mean"),
    [
        (counter(60, 160, op="random", size=2), 114),
        (counter(60, 160, step=50, size=2), 114),
        # those below 60 bytes are padded
        (counter(40, 80, step=20, size=2), (64 + 64 + 84) / 3),
        (counter(0, 0, size=2, value_list=[60, 60, 120]), (64 + 64 + 124) / 3),
    ],
)
def test_varying_sizes_give_their_mean(variable: Data, mean: float) -> None:
    found = program(stream(frame(204), (variable, TRIM)))
    assert sum(size * part for size, part in found.sizes()) == pytest.approx(mean)


def trimmed(variable: Data) -> Data:
    return stream(frame(164), (variable, TRIM))


def burst(frames: int, pps: float = 1, **more: Any) -> Data:
    return {"mode": {"rate": {"type": "pps", "value": pps}, "type": "single_burst", "total_pkts": frames}, **more}


def bursts(frames: int, count: int, pps: float = 1, ibg: float = 1e6) -> Data:
    times = {"type": "multi_burst", "pkts_per_burst": frames, "count": count, "ibg": ibg}
    return {"mode": {"rate": {"type": "pps", "value": pps}, **times}}


@pytest.mark.parametrize(
    ("streams", "shares"),
    [
        ([burst(17)], [1.0]),
        ([burst(10, next="b"), burst(30, 9, next="c", self_start=False, name="b")], [0.25, 0.75]),
        ([burst(10), bursts(6, 5)], [0.25, 0.75]),
        # without an end: 4 frames in 3/1000 + 17/1000 s, and 200 frames/s
        ([bursts(4, 0, 1000, 17e3), {"mode": rate("pps", 200)}], [0.5, 0.5]),
    ],
)
def test_bursts_and_chains_are_sent_all_the_time_in_the_ratio_of_their_frames(
    streams: list[Data], shares: list[float]
) -> None:
    found = program(*(stream(frame(64 + number), **item) for number, item in enumerate(streams)))
    assert [item.share for item in found.directions[0]] == pytest.approx(shares)
    for item in found.directions[0]:
        sent = json.loads(item.text)
        assert sent["mode"]["type"] == "continuous" and (sent["self_start"], sent["next_stream_id"]) == (True, -1)
    assert not found.steady and "pattern" in found.to_json()


PER_CENT = rate("percentage", 5)


@pytest.mark.parametrize(
    ("streams", "says"),
    [
        (stream(**burst(0), name="S0"), "stream 1 ('S0') is not a stream that TRex accepts (it has no frames)"),
        (stream(mode=PER_CENT | {"type": "single_burst"}), "TRex accepts ('total_pkts' is missing)"),
        (stream(self_start=False), "does not start by itself"),
        (stream(start_paused=True), "does not start by itself"),
        (stream(flags=8), "is a dummy"),
        (stream(isg=5000.0), "starts 5 ms late (isg)"),
        (stream(mode=rate("pps", 0)), "has a rate of 0 pps"),
        (stream(mode=rate("frames", 1)), "has a rate of 1 frames"),
        (stream(packet={"binary": "x", "meta": ""}), "stream 1 is not a stream that TRex accepts"),
        (stream(bytes(60)), "its frame is not IP"),
        (stream(frame(ttl=1)), "has no time to live left"),
        (latency(5) | burst(1), "measures latency in bursts"),
        (latency(5), "has latency streams only"),
        ((stream(), stream(mode=PER_CENT)), "whose ratio depends on the link"),
        ((stream(), stream(**burst(1))), "or on the time"),
        ((stream(), latency(1) | {"mode": PER_CENT}), "measures latency at a rate in per cent"),
        (trimmed(counter(60, 161, size=2)), "are cut to more than the 160 bytes of its packet"),
        (trimmed(counter(60, 100, size=2, next_var="b")), "the sizes of its frames cannot be derived"),
        (trimmed({**TUPLE, "name": "b"}), "the sizes of its frames cannot be derived"),
    ],
)
def test_streams_that_no_load_can_scale_are_refused(streams: Data | tuple[Data, ...], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        program(*(streams if isinstance(streams, tuple) else (streams,)))
    assert says in str(caught.value) and str(caught.value).startswith("mine.py: ")
