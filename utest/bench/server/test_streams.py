"""Streams as TRex clients describe them: frames, rates, field variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.traffic.ip_header import ipv4_checksum
from lineproof.units import l1_bits, l2_bits
from lineproof_bench.backend import FieldVariable, PortDescription, StreamTraffic
from lineproof_bench.model.routing import frame_of
from lineproof_bench.server.rpc import Params, RpcError
from lineproof_bench.server.streams import ServerStream, factor_of, load_of, parse_stream
from lineproof_bench.wire.frames import WireStream
from support.server_support import MACS, PEERS, counter, rate, stream, write

PORT = PortDescription(0, MACS[0], PEERS[0], 10e9, "fake")
SPEED = 10e9


def parsed(number: int = 1, **more: Any) -> ServerStream:
    return parse_stream(number, Params(stream(**more)), PORT)


def vm(*instructions: dict[str, Any]) -> dict[str, Any]:
    return {"vm": {"instructions": list(instructions)}}


VARIABLE = counter(5, 9, size=2)


def test_short_frames_are_padded_as_trex_does() -> None:
    short = parsed(frame=b"\x11" * 14)
    assert short.frame == b"\x11" * 14 + b"\0" * 46
    assert short.size == 64


def test_rates_in_every_unit_are_the_same() -> None:
    assert parsed(mode=rate("pps", 1000)).pps == 1000
    assert parsed(mode=rate("bps_L1", 1000 * l1_bits(64))).pps == pytest.approx(1000)
    assert parsed(mode=rate("bps_L2", 1000 * l2_bits(64))).pps == pytest.approx(1000)
    assert parsed(mode=rate("percentage", 100)).pps == pytest.approx(SPEED / 672)


def test_field_engine_is_resolved() -> None:
    resolved = parsed(**vm(VARIABLE, write(30, add_value=10), {"type": "fix_checksum_ipv4", "pkt_offset": 14}))
    (only,) = resolved.variables
    assert (only.offset, only.size, only.minimum, only.maximum, only.initial, only.step) == (30, 2, 15, 19, 15, 1)
    assert resolved.fix_ipv4_checksum == 14


@given(st.integers(0, 250), st.integers(0, 250), st.integers(1, 255), st.sampled_from(["inc", "dec"]))
def test_ranges_are_widened_to_whole_steps_or_refused(low: int, more: int, step: int, operation: str) -> None:
    high = min(255, low + more)
    try:
        (widened,) = parsed(**vm(counter(low, high, operation, 1, step=step), write(30))).variables
    except RpcError as error:
        assert "not a multiple" in str(error)
        return
    assert (widened.maximum - widened.minimum + 1) % step == 0
    assert widened.minimum <= low <= high <= widened.maximum
    assert widened.minimum >= 0 and widened.maximum <= 255


@given(
    st.lists(st.tuples(st.floats(1e-3, 1e6), st.integers(14, 9238)), min_size=1, max_size=4),
    st.sampled_from(["pps", "bps", "bpsl1", "percentage"]),
    st.floats(1e-3, 100),
)
def test_an_absolute_multiplier_reaches_its_rate(rows: list[tuple[float, int]], kind: str, value: float) -> None:
    streams = [
        parse_stream(number, Params(stream(pps=pps, frame=bytes(size))), PORT)
        for number, (pps, size) in enumerate(rows)
    ]
    load = load_of(streams)
    factor = factor_of(Params({"type": kind, "value": value, "op": "abs"}), load, SPEED, force=True)
    reached = load.at(factor)
    assert (reached | {"percentage": 100 * reached["bpsl1"] / SPEED})[kind] == pytest.approx(value)
    assert sum(row.rate(factor) for row in streams) == pytest.approx(reached["pps"])


def factor(kind: str, value: float, force: bool = False) -> float:
    return factor_of(Params({"type": kind, "value": value, "op": "abs"}), load_of([parsed()]), SPEED, force)


def test_more_than_the_line_needs_force() -> None:
    with pytest.raises(RpcError, match="exceeds port line rate: '10 Gbps'"):
        factor("percentage", 101)
    assert factor("percentage", 101, force=True) == pytest.approx(1.01 * SPEED / 672)
    # a rounding above the line is the line itself
    assert factor("percentage", 100.005) == pytest.approx(SPEED / 672)
    with pytest.raises(RpcError, match="positive"):
        factor("raw", 0)


@given(
    st.builds(
        lambda low, more, size, *rest: FieldVariable(26, size, low, min(low + more, 256**size - 1), low, *rest),
        *(st.integers(0, 255), st.sampled_from([0, 100, 250, 2**64]), st.sampled_from([1, 2, 4, 8])),
        *(st.integers(1, 20), st.sampled_from(["inc", "dec", "random"])),
    )
)
def test_model_and_wire_write_the_same(row: FieldVariable) -> None:
    frame = bytes.fromhex("026c72000200026c7200010008004500002e000000004011000010000001300000010401").ljust(60, b"\0")
    traffic = StreamTraffic(1, frame, 1.0, (row,), fix_ipv4_checksum=14)
    numbers = np.arange(0, 200, 7)
    frames = [bytes(sent) for sent in WireStream(traffic).rows(numbers)]
    assert frames == [frame_of(traffic, int(number)) for number in numbers]
    written = [int.from_bytes(data[26 : 26 + row.size], "big") for data in frames]
    assert written == [row.value(int(number)) for number in numbers]
    assert all(
        ipv4_checksum(data[14:34]) == 0 and data[14:24] + data[34:] == frame[14:24] + frame[34:] for data in frames
    )
    period = row.period(4096)
    assert row.minimum <= row.value(3) <= row.maximum
    assert row.operation == "random" or row.value(3) == row.value(3 + period)
