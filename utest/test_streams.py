"""Profiles as stream data, against bytes worked out by hand."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linerate.generators.base import Way
from linerate.generators.streams import frame_bytes, ipv4_checksum, streams
from linerate.profiles import AddressRange, Catalogue, Flows, FrameClass, Profile

CATALOGUE = Catalogue.read(Path(__file__).resolve().parents[1] / "variables" / "profiles")
AHEAD, BACK = Way(0, 1), Way(1, 0, swapped=True)

# 60 bytes without FCS: 16.0.0.1:1025 -> 48.0.0.1:12, UDP without checksum, 18 bytes of 'x'. The header's
# checksum by hand: 4500 + 002e + 0001 + 0000 + 4011 + 1000 + 0001 + 3000 + 0001 = c542, whose complement is
# 3abd.
ONE_FLOW = " ".join(
    (
        "000000000000 000000000000 0800",
        "45 00 002e 0001 0000 40 11 3abd 10000001 30000001",
        "0401 000c 001a 0000",
        "78" * 18,
    )
)


def test_the_smallest_frame_of_one_flow_byte_by_byte() -> None:
    [stream] = streams(CATALOGUE.profile(["64b", "1-flow"]), AHEAD)
    assert bytes.fromhex(stream.frame) == bytes.fromhex(ONE_FLOW)
    assert stream.variables == () and stream.fix_ipv4 is None and stream.share == 1


def test_the_way_back_swaps_addresses_but_not_ports() -> None:
    [stream] = streams(CATALOGUE.profile(["64b", "1-flow"]), BACK)
    frame = bytes.fromhex(stream.frame)
    assert frame[26:30].hex() == "30000001" and frame[30:34].hex() == "10000001"
    assert struct.unpack("!HH", frame[34:38]) == (1025, 12)


def test_both_addresses_step_through_their_ranges() -> None:
    [stream] = streams(CATALOGUE.profile(["64b", "var2"]), BACK)
    assert [(item.offset, item.minimum, item.maximum, item.size, item.step) for item in stream.variables] == [
        (26, 0x30000004, 0x300000FE, 4, 1),
        (30, 0x10000004, 0x100000FE, 4, 1),
    ]
    assert stream.fix_ipv4 == 14
    assert bytes.fromhex(stream.frame)[26:34].hex() == "3000000410000004"


def test_an_address_that_does_not_vary_is_no_variable() -> None:
    [stream] = streams(CATALOGUE.profile(["64b", "var1"]), AHEAD)
    assert [item.name for item in stream.variables] == ["src"]


def test_a_mix_has_a_stream_per_size_whose_shares_make_one() -> None:
    mixed = streams(CATALOGUE.profile(["imix"]), AHEAD)
    assert [len(item.frame) // 2 for item in mixed] == [60, 590, 1514]
    assert [item.share for item in mixed] == pytest.approx([28 / 48, 16 / 48, 4 / 48])
    assert sum(item.share for item in mixed) == pytest.approx(1)
    assert [item.gap for item in mixed] == [0, 0.1, 0.2]


def test_a_frame_too_small_for_its_headers_is_refused() -> None:
    with pytest.raises(ValueError, match="45 bytes"):
        frame_bytes(45, Flows(AddressRange("1.0.0.1", "1.0.0.1"), AddressRange("2.0.0.1", "2.0.0.1")))


addresses = st.ip_addresses(v=4).map(str)


@given(st.integers(46, 9216), addresses, addresses, st.integers(1, 65535), st.integers(1, 65535))
def test_every_frame_agrees_with_itself(size: int, source: str, destination: str, sport: int, dport: int) -> None:
    flows = Flows(AddressRange(source, source), AddressRange(destination, destination), sport, dport)
    frame = frame_bytes(size, flows)
    assert len(frame) == size - 4
    assert ipv4_checksum(frame[14:34]) == 0
    total, udp = struct.unpack("!H", frame[16:18])[0], struct.unpack("!H", frame[38:40])[0]
    assert total == len(frame) - 14 and udp == len(frame) - 34


@given(st.lists(st.integers(1, 100), min_size=1, max_size=6))
def test_shares_always_make_one(weights: list[int]) -> None:
    flows = Flows(AddressRange("1.0.0.1", "1.0.0.1"), AddressRange("2.0.0.1", "2.0.0.1"))
    frames = tuple(FrameClass(64 + index, weight) for index, weight in enumerate(weights))
    found = streams(Profile("made up", frames, flows), AHEAD)
    assert sum(item.share for item in found) == pytest.approx(1)


def test_stream_data_is_plain() -> None:
    [stream] = streams(CATALOGUE.profile(["64b"]), AHEAD)
    data = stream.to_json()
    assert data["variables"][0]["name"] == "src" and isinstance(data["frame"], str)
