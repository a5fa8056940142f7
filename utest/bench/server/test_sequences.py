"""Chains, bursts and field-engine programs laid out in time, and sent by the modelled testbed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof_bench.backend import FieldVariable, PortDescription
from lineproof_bench.model.flows import frame_of, value_of
from lineproof_bench.server.load import load_of
from lineproof_bench.server.params import Params, RpcError
from lineproof_bench.server.sequences import segments_of, traffic_of
from lineproof_bench.server.streams import ServerStream, parse_stream
from lineproof_bench.wire.frames import WireStream
from support.server_support import MACS, PEERS, stream

PORT = PortDescription(0, MACS[0], PEERS[0], 10e9, "fake")


def parsed(number: int = 1, **more: Any) -> ServerStream:
    return parse_stream(number, Params(stream(**more)), PORT)


def single(frames: int, pps: float = 1000) -> dict[str, Any]:
    return {"mode": {"type": "single_burst", "total_pkts": frames, "rate": {"type": "pps", "value": pps}}}


def bursts(count: int) -> dict[str, Any]:
    rate = {"type": "pps", "value": 1000}
    return {"mode": {"type": "multi_burst", "pkts_per_burst": 11, "count": count, "ibg": 990_000, "rate": rate}}


def rows(
    streams: list[ServerStream], factor: float = 1.0, duration: float | None = None
) -> list[tuple[int, float, Any]]:
    return [(leg.stream.stream_id, round(leg.begin, 6), leg.count) for leg in segments_of(streams, factor, duration)]


def test_bursts_of_a_stream() -> None:
    assert rows([parsed(**bursts(3))]) == [(1, 0.0, 11), (1, 1.0, 11), (1, 2.0, 11)]
    endless = parsed(**bursts(0))
    assert rows([endless], duration=2.5) == [(1, 0.0, 11), (1, 1.0, 11), (1, 2.0, 11)]
    (leg,) = segments_of([endless], 1.0, None)
    assert (leg.pps, leg.count) == (pytest.approx(11), None), "too many to be sent one by one: their mean rate"


def test_too_many_bursts_are_sent_evenly_only_if_that_is_the_same_traffic() -> None:
    even = parsed(1, next_stream_id=1, isg=1e4, **single(101))  # at 1000 frames/s, and again 10 ms later
    (leg,) = segments_of([replace(even, isg_usec=1000.0)], 1.0, 200.0)
    assert (leg.pps, leg.count) == (pytest.approx(1000, rel=0.01), None)
    assert len(segments_of([even], 1.0, 20.0)) == 182
    with pytest.raises(RpcError, match=r"comes 1818 times in this time, in 1818 bursts.*a real TRex"):
        segments_of([even], 1.0, 200.0)
    with pytest.raises(RpcError, match="comes 2001 times in this time"):
        segments_of([parsed(**bursts(0))], 1.0, 2000.0)


def test_rates_of_a_chain_are_multiplied_and_its_gaps_are_not() -> None:
    chain = [parsed(1, next_stream_id=2, **single(101)), parsed(2, self_start=False, isg=5000.0, **single(1))]
    # a stream begins its gap after the last frame of the one before
    assert rows(chain) == [(1, 0.0, 101), (2, 0.105, 1)]
    assert rows(chain, factor=10) == [(1, 0.0, 101), (2, 0.015, 1)]


@pytest.mark.parametrize(
    ("streams", "word"),
    [
        ([parsed(1, next_stream_id=5, **single(1))], "non-existent stream 5"),
        ([parsed(1, next_stream_id=1, **single(1))], "more than 2000"),
    ],
)
def test_chains_that_cannot_be_sent(streams: list[ServerStream], word: str) -> None:
    with pytest.raises(RpcError, match=word):
        segments_of(streams, 1.0, None)


def test_the_load_of_a_chain_is_its_highest() -> None:
    chain = [
        parsed(1, next_stream_id=2, **single(1001, pps=500)),
        parsed(2, self_start=False, **single(1001, pps=700)),
        parsed(3, pps=100),
    ]
    load = load_of(chain)
    assert load.pps == pytest.approx(800)
    assert load.duration == -1
    assert load_of(chain[:2]).duration == pytest.approx(1e6 * (2 + 1000 / 700))


def program(*instructions: dict[str, Any]) -> dict[str, Any]:
    return {"vm": {"instructions": list(instructions)}, "frame": b"\xaa" * 200}


def variable(name: str = "a", size: int = 2, low: int = 70, high: int = 79, **more: Any) -> dict[str, Any]:
    given_ = {"type": "flow_var", "name": name, "size": size, "op": "inc", "init_value": low, "min_value": low}
    return given_ | {"max_value": high, "step": 1} | more


def write(name: str = "a", offset: int = 30, add: int = 0) -> dict[str, Any]:
    return {"type": "write_flow_var", "name": name, "pkt_offset": offset, "add_value": add, "is_big_endian": True}


@pytest.mark.parametrize("operation", ["inc", "random"])
def test_lengths_and_what_is_written_of_them_agree(operation: str) -> None:
    trimmed = parsed(**program(variable(op=operation), {"type": "trim_pkt_size", "name": "a"}, write(add=-14)))
    assert trimmed.mean_size == pytest.approx(74.5 + 4)
    (leg,) = segments_of([trimmed], 1.0, None)
    pieces = traffic_of(leg, *MACS)
    assert sorted(len(piece.frame) for piece in pieces) == list(range(70, 80))
    assert sum(piece.pps for piece in pieces) == pytest.approx(leg.pps)
    for piece in pieces:
        for number in range(3):
            assert int.from_bytes(frame_of(piece, number)[30:32], "big") == len(piece.frame) - 14


def test_other_variables_go_on_through_all_lengths() -> None:
    given_ = program(
        variable(high=71),
        {"type": "trim_pkt_size", "name": "a"},
        variable("b", 1, 0, 9, op="dec", init_value=9),
        write("b", 40),
    )
    (leg,) = segments_of([parsed(**given_)], 1.0, None)
    first, second = traffic_of(leg, *MACS)
    seen = [frame_of(piece, number)[40] for number in range(3) for piece in (first, second)]
    assert seen == [9, 8, 7, 6, 5, 4]


def test_a_tuple_is_every_address_then_the_next_port() -> None:
    flows = {"type": "tuple_flow_var", "name": "t", "ip_min": 1, "ip_max": 2, "port_min": 8, "port_max": 9}
    given_ = program(flows | {"limit_flows": 3, "flags": 0}, write("t.ip", 30), write("t.port", 40))
    (leg,) = segments_of([parsed(**given_)], 1.0, None)
    (piece,) = traffic_of(leg, *MACS)
    seen = [(frame_of(piece, number)[33], frame_of(piece, number)[41]) for number in range(5)]
    assert seen == [(1, 8), (2, 8), (1, 9), (1, 8), (2, 8)]


def test_a_dependent_variable_moves_on_when_the_first_wraps() -> None:
    given_ = program(variable("a", 1, 0, 1, next_var="b"), variable("b", 1, 0, 3), write("a", 30), write("b", 31))
    (leg,) = segments_of([parsed(**given_)], 1.0, None)
    (piece,) = traffic_of(leg, *MACS)
    assert [tuple(frame_of(piece, number)[30:32]) for number in range(5)] == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2)]


def test_lists_and_masks() -> None:
    mask = {"type": "write_mask_flow_var", "name": "a", "pkt_offset": 30, "pkt_cast_size": 1, "mask": 0xF0}
    given_ = program(variable(size=1, value_list=[1, 2, 5]), mask | {"shift": 4, "add_value": 1, "is_big_endian": True})
    (leg,) = segments_of([parsed(**given_)], 1.0, None)
    (piece,) = traffic_of(leg, *MACS)
    assert [frame_of(piece, number)[30] for number in range(4)] == [0x2A, 0x3A, 0x6A, 0x2A]


@given(
    st.integers(0, 300),
    st.integers(0, 300),
    st.integers(1, 20),
    st.sampled_from(["inc", "dec"]),
    st.integers(1, 5),
    st.integers(0, 40),
    st.sampled_from([0, 0x0FF0]),
    st.integers(-4, 4),
)
def test_model_and_wire_write_the_same(
    low: int, more: int, step: int, operation: str, every: int, limit: int, mask: int, shift: int
) -> None:
    import numpy as np

    from lineproof_bench.backend import StreamTraffic

    row = FieldVariable(20, 2, low, low + more, low, step, operation, every, limit, mask, shift)
    traffic = StreamTraffic(1, b"\xaa" * 60, 1.0, (row,))
    numbers = np.arange(0, 200, 7)
    sent = WireStream(traffic).rows(numbers)
    assert [bytes(frame) for frame in sent] == [frame_of(traffic, int(number)) for number in numbers]
    period = row.period(4096)
    assert value_of(row, 3) == value_of(row, 3 + period)
