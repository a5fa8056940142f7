"""Streams as TRex clients describe them, read into frames, rates and field variables; multipliers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.units import l1_bits, l2_bits
from lineproof_bench.backend import PortDescription
from lineproof_bench.server.load import factor_of, load_of
from lineproof_bench.server.params import Params, RpcError
from lineproof_bench.server.streams import ServerStream, parse_stream
from support.server_support import MACS, PEERS, stream

PORT = PortDescription(0, MACS[0], PEERS[0], 10e9, "fake")
SPEED = 10e9


def parsed(**more: Any) -> ServerStream:
    return parse_stream(1, Params(stream(**more)), PORT)


def vm(*instructions: dict[str, Any]) -> dict[str, Any]:
    return {"vm": {"instructions": list(instructions)}}


def variable(**more: Any) -> dict[str, Any]:
    found = {"type": "flow_var", "name": "a", "size": 2, "op": "inc", "init_value": 5, "min_value": 5, "max_value": 9}
    return found | {"step": 1} | more


def write(**more: Any) -> dict[str, Any]:
    return {"type": "write_flow_var", "name": "a", "pkt_offset": 30, "add_value": 0, "is_big_endian": True} | more


def refusal(**more: Any) -> str:
    with pytest.raises(RpcError) as caught:
        parsed(**more)
    return str(caught.value)


def rate(kind: str, value: float) -> dict[str, Any]:
    return {"mode": {"type": "continuous", "rate": {"type": kind, "value": value}}}


def test_short_frames_are_padded_as_trex_does() -> None:
    found = parsed(frame=b"\x11" * 14)
    assert found.frame == b"\x11" * 14 + b"\0" * 46
    assert found.mean_size == 64


@pytest.mark.parametrize("length", [13, 9239])
def test_sizes_outside_what_trex_takes(length: int) -> None:
    assert f"Bad packet size provided: {length}" in refusal(frame=b"x" * length)


def test_rates_in_every_unit_are_the_same() -> None:
    assert parsed(**rate("pps", 1000)).pps == 1000
    assert parsed(**rate("bps_L1", 1000 * l1_bits(64))).pps == pytest.approx(1000)
    assert parsed(**rate("bps_L2", 1000 * l2_bits(64))).pps == pytest.approx(1000)
    assert parsed(**rate("percentage", 100)).pps == pytest.approx(SPEED / 672)


@pytest.mark.parametrize(
    ("flags", "source", "destination"),
    [(0, MACS[0], PEERS[0]), (1, None, PEERS[0]), (2, MACS[0], None), (3, None, None), (4, MACS[0], PEERS[0])],
)
def test_macs_come_from_the_port_unless_the_flags_say_packet(flags: int, source: str, destination: str) -> None:
    frame = parsed(flags=flags).addressed(MACS[0], PEERS[0])

    def expected(mac: str | None) -> bytes:
        return bytes.fromhex(mac.replace(":", "")) if mac else b"\xaa" * 6

    assert frame[0:6] == expected(destination)
    assert frame[6:12] == expected(source)


def test_field_engine_is_resolved() -> None:
    found = parsed(**vm(variable(), write(add_value=10), {"type": "fix_checksum_ipv4", "pkt_offset": 14}))
    (only,) = found.program.variables
    assert (only.offset, only.size, only.minimum, only.maximum, only.initial, only.step) == (30, 2, 15, 19, 15, 1)
    assert found.program.fix_ipv4_checksum == 14


@given(st.integers(0, 250), st.integers(0, 250), st.integers(1, 255), st.sampled_from(["inc", "dec"]))
def test_ranges_are_widened_to_whole_steps_or_refused(low: int, more: int, step: int, operation: str) -> None:
    high = min(255, low + more)
    given_ = variable(size=1, op=operation, init_value=low, min_value=low, max_value=high, step=step)
    try:
        (found,) = parsed(**vm(given_, write())).program.variables
    except RpcError as error:
        assert "not a multiple" in str(error)
        return
    assert (found.maximum - found.minimum + 1) % step == 0
    assert found.minimum <= low <= high <= found.maximum
    assert found.minimum >= 0 and found.maximum <= 255


@pytest.mark.parametrize(
    ("instructions", "word"),
    [
        ([{"type": "fix_checksum_icmpv6", "l2_len": 14, "l3_len": 40}], "fix_checksum_icmpv6"),
        ([{"type": "fix_checksum_hw", "l2_len": 14, "l3_len": 20, "l4_type": 3}], "l4_type 3"),
        ([variable(max_value=70, min_value=61, init_value=61), {"type": "trim_pkt_size", "name": "a"}], "61 to 70"),
        ([write()], "declares"),
        ([variable(), write(pkt_offset=59)], "beyond"),
        ([variable(size=3)], "size 3"),
        ([variable(init_value=4)], "init_value"),
        ([variable(max_value=70000)], "max_value"),
        ([variable(value_list=[1, 70000])], "value_list"),
        ([variable(next_var="b"), variable(name="c")], "expected that one"),
        ([variable(next_var="b")], "next_var"),
        ([variable(), write(is_big_endian=False)], "little-endian"),
        ([variable(op="random"), write(), write(pkt_offset=40)], "twice"),
        ([{"type": "fix_checksum_ipv4", "pkt_offset": 50}], "offset 50"),
    ],
)
def test_what_the_field_engine_cannot_do_is_refused_in_a_sentence(instructions: list[Any], word: str) -> None:
    assert word in refusal(**vm(*instructions))


def test_streams_that_would_not_be_sent_as_asked_are_refused() -> None:
    assert "cannot point" in refusal(next_stream_id=2)
    assert "bad stream type" in refusal(kind="other")
    assert "base64" in refusal(packet={"binary": "§", "meta": ""})
    no_frames = rate("pps", 10)["mode"] | {"type": "single_burst", "total_pkts": 0}
    assert "total_pkts" in refusal(mode=no_frames)
    counted = {"enabled": True, "stream_id": 5, "rule_type": "stats"}
    assert "tpg" in refusal(flow_stats=counted | {"rule_type": "tpg"})
    for more in ({"flags": 8}, {"enabled": False}, {"action_count": 2}):
        assert "not on this server" in refusal(**more)


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
    reached = {
        "pps": factor * load.pps,
        "bps": load.at(factor).l2_bps,
        "bpsl1": load.at(factor).l1_bps,
        "percentage": 100 * load.at(factor).l1_bps / SPEED,
    }
    assert reached[kind] == pytest.approx(value)
    assert sum(row.rate(factor) for row in streams) == pytest.approx(factor * load.pps)


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
