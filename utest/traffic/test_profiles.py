"""Traffic words as profiles, against figures worked out by hand. Refused ones are in the golden messages."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from pathlib import Path

import dpkt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.sentence import parse
from lineproof.core.traffic.catalogue import Catalogue, read_capture
from lineproof.core.traffic.profiles import Profile
from lineproof.errors import ConfigError, SentenceError
from lineproof.units import Layer
from support.paths import VARIABLES

FOLDER = VARIABLES / "profiles"
CATALOGUE = Catalogue.read(FOLDER)
TEN_GIG = 10e9


def profile(words: str) -> Profile:
    return CATALOGUE.profile(words.split())


# Mean size, then frames/s that fill 10 Gbit/s: 1e10 / (8 * (mean + 20)), and L2 Gbit/s at that rate, by hand:
# imix-csit (28*64 + 16*570 + 4*1518) / 48 = 16984/48; imix-66 (28*66 + 16*594 + 4*1518) / 48 = 17424/48;
# aaaaddg (4*64 + 2*512 + 1518) / 7 = 2798/7.
FIGURES = [
    ("64b", 64, 14_880_952.381, 7.619048),
    ("78b ipv6", 78, 12_755_102.041, 7.959184),
    ("256b vlan", 256, 4_528_985.507, 9.275362),
    ("512b qinq", 512, 2_349_624.060, 9.624060),
    ("1024b mpls", 1024, 1_197_318.008, 9.808429),
    ("1514b", 1518, 812_743.823, 9.869961),
    ("9216b mpls2", 9216, 135_339.974, 9.978346),
    ("imix", 361.833333, 3_273_679.616, 9.476211),
    ("imix-csit", 353.833333, 3_343_736.068, 9.465002),
    ("imix-66 ipv6", 363, 3_263_707.572, 9.477807),
    ("genome:aaaaddg", 399.714286, 2_978_216.473, 9.523485),
    ("genome:z 1-flow", 1518, 812_743.823, 9.869961),
]


@pytest.mark.parametrize(("words", "mean", "pps", "gbps_l2"), FIGURES, ids=lambda value: str(value))
def test_mean_size_and_rates_at_line_rate(words: str, mean: float, pps: float, gbps_l2: float) -> None:
    found = profile(words)
    assert found.name == words
    assert found.mean_size == pytest.approx(mean, rel=1e-8)
    rate = found.line_rate_pps(TEN_GIG)
    assert rate == pytest.approx(pps, abs=1e-3)
    assert rate * found.bits(Layer.L2) / 1e9 == pytest.approx(gbps_l2, abs=1e-6)
    assert rate * found.bits(Layer.L1) == pytest.approx(TEN_GIG)


@given(st.text("abcdefghiz", min_size=1, max_size=60))
def test_any_genome_has_the_mean_of_its_letters(letters: str) -> None:
    sizes = dict(zip("abcdefghiz", (64, 128, 256, 512, 1024, 1280, 1518, 2112, 9000, 1518), strict=True))
    found = profile("genome:" + letters)
    assert found.mean_size == pytest.approx(sum(sizes[letter] for letter in letters) / len(letters))
    assert sum(item.weight for item in found.frames) == len(letters)


@pytest.mark.parametrize(
    ("word", "count"),
    [
        ("1-flow", 1),
        ("var1", 251),
        ("256-networks", 256),
        ("2000-flows", 2000),
        ("1M-flows", 1_000_000),
        ("16777216-flows", 1 << 24),
    ],
)
def test_the_number_of_flows_is_exact(word: str, count: int) -> None:
    flows = profile(f"64b {word}").flows
    assert flows.count == flows.reversed().count == count
    if count <= 10_000:
        pairs = [(flows.source.at(number), flows.destination.at(number)) for number in range(2 * count)]
        assert len(set(pairs)) == count and pairs[:count] == pairs[count:]
    for addresses, network in ((flows.source, 16), (flows.destination, 48)):
        assert {addresses.at(0) >> 24, addresses.at(addresses.count - 1) >> 24} == {network}


def test_the_256_networks_are_all_different() -> None:
    flows = profile("64b 256-networks").flows
    assert {flows.destination.at(number) >> 16 for number in range(256)} == set(range(0x3000, 0x3100))
    assert flows.source.count == 1


def test_the_name_begins_with_the_size() -> None:
    assert profile("1-flow vlan 64b").name == "64b 1-flow vlan"
    assert profile("2000-flows genome:ag ").name == "genome:ag 2000-flows"


@given(st.lists(st.sampled_from([*CATALOGUE.words(), "genome:abz", "5k-flows", "900b"]), max_size=5))
def test_any_words_are_a_profile_or_a_sentence_error(words: list[str]) -> None:
    try:
        found = CATALOGUE.profile(words)
    except SentenceError as error:
        assert str(error)
    else:
        assert found.headers.size + 4 <= min(item.size for item in found.frames)


# -- a project's own files ---------------------------------------------------------------------------------------------

Project = Callable[[str], Catalogue]


@pytest.fixture
def own(tmp_path: Path) -> Project:
    for path in FOLDER.glob("*.yaml"):
        (tmp_path / path.name).write_text(path.read_text())

    def read(entry: str) -> Catalogue:
        (tmp_path / "own.yaml").write_text(f"entries:\n  - {{about: ours, {entry}}}\n")
        return Catalogue.read(tmp_path)

    return read


def test_a_genome_may_have_custom_sizes(own: Project) -> None:
    mine = own("kind: mix, name: ours, genome: aaAB, custom: {A: 1020, B: 9216}").profile(["ours"])
    assert mine.mean_size == (2 * 64 + 1020 + 9216) / 4


# -- captures ----------------------------------------------------------------------------------------------------------


def packet(source: str, sport: int, payload: int, ttl: int = 64) -> bytes:
    udp = dpkt.udp.UDP(sport=sport, dport=53, data=b"y" * payload)
    udp.ulen = len(udp)
    addresses = {"src": socket.inet_aton(source), "dst": socket.inet_aton("48.0.0.9")}
    ip = dpkt.ip.IP(**addresses, p=17, ttl=ttl, data=udp)
    ip.len = len(ip)
    return bytes(dpkt.ethernet.Ethernet(src=b"\2" * 6, dst=b"\4" * 6, data=ip))


def write(path: Path, frames: list[bytes], link: int = 1, ng: bool = False) -> None:
    with path.open("wb") as stream:
        writer = dpkt.pcapng.Writer(stream) if ng else dpkt.pcap.Writer(stream, linktype=link)
        for number, frame in enumerate(frames):
            writer.writepkt(frame, ts=number)


@pytest.mark.parametrize("ng", [False, True])
def test_a_capture_keeps_its_frames_in_their_ratio(own: Project, tmp_path: Path, ng: bool) -> None:
    small, large = packet("16.0.0.7", 1000, 4), packet("16.0.0.3", 1000, 958)
    write(tmp_path / "ours.pcap", [small, large, small, small], ng=ng)
    found = own("kind: pcap, name: ours, file: ours.pcap").profile(["ours"])
    # 46 bytes are padded to 60; 14 + 20 + 8 + 958 = 1000; both without FCS
    assert [(item.size, item.weight) for item in found.frames] == [(64, 3), (1004, 1)]
    assert found.mean_size == (3 * 64 + 1004) / 4
    assert found.flows.count == 2 and not found.is_one_flow
    assert (found.flows.source.first, found.flows.source.last) == ("16.0.0.3", "16.0.0.7")
    assert found.frames[1].data == bytes(12) + large[12:]


def test_a_capture_of_one_flow_needs_no_direction(own: Project, tmp_path: Path) -> None:
    write(tmp_path / "ours.pcap", [packet("16.0.0.7", 1000, size) for size in (4, 400)])
    assert not parse("ours ≥ 1 Mpps", own("kind: pcap, name: ours, file: ours.pcap")).bidirectional


@pytest.mark.parametrize("words", ["ours vlan", "ours 2000-flows", "ours 64b"])
def test_a_capture_takes_no_other_headers_or_flows(own: Project, tmp_path: Path, words: str) -> None:
    write(tmp_path / "ours.pcap", [packet("16.0.0.7", 1000, 4)])
    with pytest.raises(SentenceError, match=r"brings its own headers and addresses|both say which frames"):
        own("kind: pcap, name: ours, file: ours.pcap").profile(words.split())


@pytest.mark.parametrize(
    ("frames", "link", "says"),
    [
        ([], 1, "has no frames"),
        ([bytes(12) + b"\x08\x06" + bytes(46)], 1, "frame 1 is not IP"),
        ([packet("16.0.0.1", 1, 4), packet("16.0.0.1", 1, 900)[:500]], 1, "frame 2 was cut: 500 of 942 bytes"),
        ([packet("16.0.0.1", 1, 4, ttl=1)], 1, "no time to live left"),
        ([packet("16.0.0.1", 1, 9200)], 1, "frame 1 has 9242 bytes"),
        ([packet("16.0.0.1", sport, 4) for sport in range(1, 258)], 1, "more than 256 different frames"),
        ([packet("16.0.0.1", 1, 4)], 113, "link type 113"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_capture_that_cannot_be_sent_is_refused(
    own: Project, tmp_path: Path, frames: list[bytes], link: int, says: str
) -> None:
    write(tmp_path / "ours.pcap", frames, link=link)
    with pytest.raises(ConfigError) as caught:
        own("kind: pcap, name: ours, file: ours.pcap").profile(["ours"])
    assert says in str(caught.value) and "ours.pcap" in str(caught.value)


@pytest.mark.parametrize(
    ("words", "length"),
    [("datagram-1500", 1500), ("datagram-1500 2-flows", 1500), ("64b", 0), ("imix", 0), ("datagram-1500 vlan", 0)],
)
def test_two_fragments_are_known_as_a_datagram(words: str, length: int) -> None:
    assert CATALOGUE.profile(words.split()).fragmented_datagram == length


# -- forms of captures


IP = bytes.fromhex("45000020000100004011 0000 10000001 30000001 0401000c000c0000 00000000".replace(" ", ""))
FRAME = bytes(12) + b"\x08\x00" + IP


def pcap(magic: int = 0xA1B2C3D4, order: str = "<", frames: int = 3, snaplen: int = 65535) -> bytes:
    header = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, snaplen, 1)
    return header + frames * (struct.pack(f"{order}IIII", 0, 0, len(FRAME), len(FRAME)) + FRAME)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("magic", [0xA1B2C3D4, 0xA1B23C4D])
def test_microseconds_and_nanoseconds_of_both_byte_orders_are_read(tmp_path: Path, magic: int, order: str):
    (tmp_path / "x.pcap").write_bytes(pcap(magic, order, snaplen=0xFFFFFFFF))
    ((frame, count),) = read_capture(tmp_path / "x.pcap").items()
    assert (frame[: len(FRAME)], count) == (FRAME, 3)


def test_simple_packet_blocks_are_frames_too(tmp_path: Path):
    block = struct.pack("<III", 3, 64, len(FRAME)) + FRAME + bytes(2) + struct.pack("<I", 64)
    write(tmp_path / "x.pcapng", [FRAME], ng=True)
    head = (tmp_path / "x.pcapng").read_bytes()[:48]
    (tmp_path / "x.pcapng").write_bytes(head + block)
    ((frame, count),) = read_capture(tmp_path / "x.pcapng").items()
    assert (frame[: len(FRAME)], count) == (FRAME, 1)


@pytest.mark.parametrize("cut", [1, 15, 17, 40])
def test_a_capture_that_ends_within_a_frame_is_refused(tmp_path: Path, cut: int):
    (tmp_path / "x.pcap").write_bytes(pcap()[:-cut])
    with pytest.raises(ConfigError, match="damaged capture"):
        read_capture(tmp_path / "x.pcap")
