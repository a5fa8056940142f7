"""Traffic words as profiles, against figures worked out by hand. Refused ones are in the golden messages."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpkt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.traffic.catalogue import Catalogue, read_capture
from lineproof.core.traffic.profiles import Profile
from lineproof.core.traffic.trex_profile import ProfileSource, TrexProfile, read_trex_profile
from lineproof.errors import ConfigError, SentenceError
from lineproof.units import Layer
from support.paths import VARIABLES
from support.server_support import counter, rate
from support.server_support import stream as sent

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


@given(st.lists(st.sampled_from([*CATALOGUE.words(), "genome:abz", "5k-flows", "900b"]), max_size=5))
def test_any_words_are_a_profile_or_a_sentence_error(words: list[str]) -> None:
    try:
        found = CATALOGUE.profile(words)
    except SentenceError as error:
        assert str(error)
    else:
        assert found.headers.size + 4 <= min(item.size for item in found.frames)


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


def packet(source: str, sport: int, payload: int, ttl: int = 64) -> bytes:
    udp = dpkt.udp.UDP(sport=sport, dport=53, data=b"y" * payload)
    udp.ulen = len(udp)
    addresses = {"src": socket.inet_aton(source), "dst": socket.inet_aton("48.0.0.9")}
    ip = dpkt.ip.IP(**addresses, p=17, ttl=ttl, data=udp)
    ip.len = len(ip)
    return bytes(dpkt.ethernet.Ethernet(src=b"\2" * 6, dst=b"\4" * 6, data=ip))


def write_frames(path: Path, frames: list[bytes], link: int = 1, ng: bool = False) -> None:
    with path.open("wb") as stream:
        writer = dpkt.pcapng.Writer(stream) if ng else dpkt.pcap.Writer(stream, linktype=link)
        for number, frame in enumerate(frames):
            writer.writepkt(frame, ts=number)


@pytest.mark.parametrize("ng", [False, True])
def test_a_capture_keeps_its_frames_in_their_ratio(own: Project, tmp_path: Path, ng: bool) -> None:
    small, large = packet("16.0.0.7", 1000, 4), packet("16.0.0.3", 1000, 958)
    write_frames(tmp_path / "ours.pcap", [small, large, small, small], ng=ng)
    found = own("kind: pcap, name: ours, file: ours.pcap").profile(["ours"])
    # 46 bytes are padded to 60; 14 + 20 + 8 + 958 = 1000; both without FCS
    assert [(item.size, item.weight) for item in found.frames] == [(64, 3), (1004, 1)]
    assert found.mean_size == (3 * 64 + 1004) / 4
    assert found.has_own_addresses and not found.is_one_flow
    assert found.frames[1].data == bytes(12) + large[12:]


@pytest.mark.parametrize("words", ["ours vlan", "ours 2000-flows", "ours 64b"])
def test_a_capture_takes_no_other_headers_or_flows(own: Project, tmp_path: Path, words: str) -> None:
    write_frames(tmp_path / "ours.pcap", [packet("16.0.0.7", 1000, 4)])
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
    write_frames(tmp_path / "ours.pcap", frames, link=link)
    with pytest.raises(ConfigError) as caught:
        own("kind: pcap, name: ours, file: ours.pcap").profile(["ours"])
    assert says in str(caught.value) and "ours.pcap" in str(caught.value)


@pytest.mark.parametrize("cut", [1, 15, 17, 40])
def test_a_capture_that_ends_within_a_frame_is_refused(tmp_path: Path, cut: int):
    write_frames(tmp_path / "x.pcap", [packet("16.0.0.1", 1, 4)] * 3)
    (tmp_path / "x.pcap").write_bytes((tmp_path / "x.pcap").read_bytes()[:-cut])
    with pytest.raises(ConfigError, match="damaged capture"):
        read_capture(tmp_path / "x.pcap")


SOURCE = ProfileSource(Path("mine.py"), "0" * 64, "", "")
Data = dict[str, Any]


def frame(size: int = 64, source: str = "10000001", sport: int = 1025, ttl: int = 64) -> bytes:
    head = bytes(12) + bytes.fromhex("08004500002e00010000") + bytes([ttl]) + bytes.fromhex("110000")
    return (head + bytes.fromhex(source + "30000001") + sport.to_bytes(2, "big") + bytes(6)).ljust(size - 4, b"\0")


def stream(data: bytes | None = None, instructions: tuple[Data, ...] = (), **more: Any) -> Data:
    return sent(frame=data or frame(), **{"vm": {"instructions": list(instructions)}, **more})


def program(*streams: Data, back: tuple[Data, ...] = ()) -> TrexProfile:
    return read_trex_profile({"directions": [{"streams": list(streams)}, {"streams": list(back)}]}, SOURCE)


LATENCY = {"enabled": True, "stream_id": 7, "rule_type": "latency"}


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


TUPLE = {"type": "tuple_flow_var", "name": "t", "ip_min": 1, "ip_max": 20, "port_min": 1, "port_max": 5}
TRIM = {"type": "trim_pkt_size", "name": "a"}


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
        (stream(flow_stats=LATENCY), "has no streams beside those that measure latency"),
        ((stream(), stream(mode=PER_CENT)), "whose ratio depends on the link"),
        ((stream(), stream(**burst(1))), "or on the time"),
        (trimmed(counter(60, 161, size=2)), "are cut to more than the 160 bytes of its packet"),
        (trimmed(counter(60, 100, size=2, next_var="b")), "the sizes of its frames cannot be derived"),
        (trimmed({**TUPLE, "name": "b"}), "the sizes of its frames cannot be derived"),
    ],
)
def test_streams_that_no_load_can_scale_are_refused(streams: Data | tuple[Data, ...], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        program(*(streams if isinstance(streams, tuple) else (streams,)))
    assert says in str(caught.value) and str(caught.value).startswith("mine.py: ")
