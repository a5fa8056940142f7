"""Profiles as stream data, compared with bytes calculated by hand."""

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.traffic.ip_header import ipv4_checksum
from lineproof.core.traffic.profiles import OWN_ADDRESSES, AddressRange, Flows, FrameClass, Profile
from lineproof.generators.base import Direction, Probe
from lineproof.generators.streams import Stream, burst_streams, frame_bytes, probe_groups, profile_streams
from support.catalogue import CATALOGUE

AHEAD, BACK = Direction(0, 1), Direction(1, 0, swapped=True)

# 60 bytes without FCS: 16.0.0.1:1025 -> 48.0.0.1:12, UDP without checksum, 18 bytes of 'x'. The header's
# checksum by hand: 4500 + 002e + 0001 + 0000 + 4011 + 1000 + 0001 + 3000 + 0001 = c542, whose complement is
# 3abd.
ONE_FLOW = (
    "000000000000 000000000000 0800 45 00 002e 0001 0000 40 11 3abd 10000001 30000001 0401 000c 001a 0000" + "78" * 18
)


def probes_of(words: str, pps: float = 1200.0) -> list[Stream]:
    found = profile_streams(CATALOGUE.profile(words.split()), BACK, Probe(pps))
    return [item for item in found if item.group is not None]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("64b", [(64, 1200)]),
        ("imix", [(64, 700), (594, 400), (1518, 100)]),
        ("imix-66 ipv6", [(82, 700), (594, 400), (1518, 100)]),  # 66 bytes have no room
        ("82b ipv6", [(82, 1200)]),
    ],
)
def test_probe_frames_are_of_each_size_in_the_mixs_ratio(words: str, expected: list[tuple[int, int]]) -> None:
    probes = probes_of(words)
    assert [(len(item.frame) // 2 + 4, round(item.pps)) for item in probes] == expected
    assert all(item.share == 0 and item.variables == probes[0].variables for item in probes)
    assert [item.group for item in probes] == probe_groups(CATALOGUE.profile(words.split()), BACK)


def test_probe_frames_of_the_sizes_are_spread_over_the_trial() -> None:
    probes = probes_of("imix")
    # none begins so late that a trial has fewer of its frames
    assert all(item.gap < 1e6 / item.pps for item in probes)
    moments = sorted(item.gap + number * 1e6 / item.pps for item in probes for number in range(round(item.pps)))
    assert min(later - earlier for earlier, later in pairwise(moments)) > 100


def test_a_frame_too_small_for_its_headers_is_refused() -> None:
    with pytest.raises(ValueError, match="45 bytes"):
        frame_bytes(45, Flows(AddressRange("1.0.0.1", "1.0.0.1"), AddressRange("2.0.0.1", "2.0.0.1")))


addresses = st.ip_addresses(v=4).map(str)


@given(st.integers(46, 9216), addresses, addresses, st.integers(1, 65535), st.integers(1, 65535))
def test_lengths_and_checksum_of_every_frame_are_consistent(
    size: int, source: str, destination: str, sport: int, dport: int
) -> None:
    flows = Flows(AddressRange(source, source), AddressRange(destination, destination), sport, dport)
    frame = frame_bytes(size, flows)
    assert len(frame) == size - 4
    assert ipv4_checksum(frame[14:34]) == 0
    total, udp = struct.unpack("!H", frame[16:18])[0], struct.unpack("!H", frame[38:40])[0]
    assert total == len(frame) - 14 and udp == len(frame) - 34


@given(st.sampled_from(["64b", "imix", "imix-csit", "imix-66"]), st.integers(1, 10**9))
def test_a_burst_has_the_exact_number_of_frames_in_the_shares_of_the_mix(word: str, frames: int) -> None:
    profile = CATALOGUE.profile([word])
    found = burst_streams(profile, AHEAD, frames)
    assert sum(item.burst or 0 for item in found) == frames
    assert all(abs((item.burst or 0) - item.share * frames) <= 1 + 1e-6 * frames for item in found)


# IPv6's 66 bytes: no payload. The checksum by hand: 2001 + 0002 + 1000 + 0001 + 2001 + 0002 + 3000 + 0001 of the
# addresses, 0008 + 0011 of the rest of the pseudo-header, 0401 + 000c + 0008 of UDP = 8436, whose complement is 7bc9.
IPV6 = (
    "000000000000 000000000000 86dd 6 00 00000 0008 11 40 2001000200000000 0000000010000001"
    "2001000200000000 0000000030000001 0401 000c 0008 7bc9"
)
# The bytes between MAC addresses and IP header.
WRAPPED = {
    "64b vlan 1-flow": "8100 0064 0800",
    "64b qinq 1-flow": "88a8 00c8 8100 0064 0800",
    "64b mpls 1-flow": "8847 00064 1 40",
    "64b mpls2 1-flow": "8847 00064 0 40 00065 1 40",
    "128b vlan mpls 1-flow": "8100 0064 8847 00064 1 40",
    "128b qinq ipv6 1-flow": "88a8 00c8 8100 0064 86dd",
}


def digits(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


def of(words: str, direction: Direction = AHEAD) -> tuple[Stream, ...]:
    return profile_streams(CATALOGUE.profile(words.split()), direction)


@pytest.mark.parametrize(("words", "expected"), [("64b 1-flow", ONE_FLOW), ("66b ipv6 1-flow", IPV6)])
def test_bytes_of_the_smallest_frames(words: str, expected: str) -> None:
    [stream] = of(words)
    assert bytes.fromhex(stream.frame) == digits(expected)
    assert stream.variables == () and stream.fix_ipv4 is None and stream.share == 1


@pytest.mark.parametrize("words", WRAPPED)
def test_bytes_of_tags_and_labels(words: str) -> None:
    [stream] = of(words)
    frame, inserted = bytes.fromhex(stream.frame), digits(WRAPPED[words])
    assert frame[12 : 12 + len(inserted)] == inserted
    assert len(frame) == int(words.split("b")[0]) - 4
    plain = bytes.fromhex(of("64b 1-flow")[0].frame)
    if "ipv6" not in words:
        # the addresses and ports follow the header, the payload is shorter
        ip = frame[12 + len(inserted) :]
        assert ip[12:24] == plain[26:38] and ipv4_checksum(ip[:20]) == 0
        assert struct.unpack("!H", ip[2:4])[0] == len(ip)


def test_bytes_and_checksum_of_a_tcp_frame() -> None:
    [stream] = of("64b tcp 1-flow")
    frame = bytes.fromhex(stream.frame)
    assert frame[23] == 6 and frame[34:38] == digits("0401 000c")
    pseudo = frame[26:34] + struct.pack("!HH", 6, len(frame) - 34)
    assert ipv4_checksum(pseudo + frame[34:]) == 0
    assert frame[46:48] == digits("5010") and frame[54:] == b"x" * 6


def test_captured_frames_are_sent_unchanged_and_with_swapped_addresses_back() -> None:
    plain, labelled = (bytes.fromhex(of(words)[0].frame) for words in ("64b 1-flow", "128b mpls ipv6 1-flow"))
    captured = Profile("ours", (FrameClass(64, 3, plain), FrameClass(128, 1, labelled)), OWN_ADDRESSES)
    assert [(item.frame, item.share) for item in profile_streams(captured, AHEAD)] == [
        (plain.hex(), 0.75),
        (labelled.hex(), 0.25),
    ]
    back = [bytes.fromhex(item.frame) for item in profile_streams(captured, BACK)]
    assert back[0] == plain[:26] + plain[30:34] + plain[26:30] + plain[34:]
    assert ipv4_checksum(back[0][14:34]) == 0
    assert back[1][26:42] == labelled[42:58] and back[1][42:58] == labelled[26:42]
    assert not any(item.variables for item in profile_streams(captured, BACK))
