"""Streams in TRex's format are read as data, and those that no load can scale are refused."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.core.traffic.counted_flows import flow_count
from lineproof.core.traffic.patterns import Pattern, StreamTiming, make_pattern
from lineproof.core.traffic.trex_profile import ProfileSource, TrexProfile
from lineproof.core.traffic.trex_streams import read_trex_profile
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


SRC, DST, SPORT, PAYLOAD = 26, 30, 34, 50
PORTS = counter(1, 10, size=2, name="b")
TUPLE = {"type": "tuple_flow_var", "name": "t", "ip_min": 1, "ip_max": 20, "port_min": 1, "port_max": 5}


@pytest.mark.parametrize(
    ("instructions", "count"),
    [
        ((), 1),
        ((counter(1, 250), write(SRC)), 250),
        ((counter(1, 250, step=4), write(SRC)), 63),
        ((counter(1, 250), write(PAYLOAD)), 1),
        ((counter(1, 250), write(SRC), write(DST)), 250),
        ((counter(1, 15), PORTS, write(SRC), write(SPORT, "b")), 30),
        ((counter(1, 15, next_var="b"), PORTS, write(SRC), write(SPORT, "b")), 150),
        ((TUPLE, write(SRC, "t.ip"), write(SPORT, "t.port")), 100),
        ((counter(1, 250, value_list=[1, 5, 9]), write(SRC)), 3),
        # not countable
        ((counter(1, 250, op="random"), write(SRC)), 0),
        ((counter(1, 250), write(SRC, type="write_mask_flow_var", pkt_cast_size=4, mask=255)), 0),
        (({**TUPLE, "limit_flows": 30}, write(SRC, "t.ip")), 0),
        ((write(SRC, "nowhere"),), 0),
    ],
)
def test_flows_of_a_stream_are_counted_or_not_known(instructions: tuple[Data, ...], count: int) -> None:
    assert flow_count([(frame(), instructions)]) == count


def test_flows_of_several_streams_are_counted_or_not_known() -> None:
    varied = (counter(0x10000001, 0x100000FA), write(SRC))
    assert flow_count([(frame(), varied), (frame(594), varied), (frame(1518), varied)]) == 250
    assert flow_count([(frame(sport=port), varied) for port in (1, 2, 3)]) == 750
    assert flow_count([(frame(source="10000001"), ()), (frame(source="10000002"), ())]) == 2
    # the constant flow is among those of the other stream
    assert flow_count([(frame(), varied), (frame(source="10000002"), ())]) == 0


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


BURST = {"rate": {"type": "pps", "value": 1}, "type": "single_burst", "total_pkts": 1}
PER_CENT = rate("percentage", 5)
MULTI = {"rate": {"type": "pps", "value": 1}, "type": "multi_burst", "pkts_per_burst": 3, "ibg": 5.0, "count": 0}


@pytest.mark.parametrize(
    ("streams", "says"),
    [
        (stream(mode=BURST, name="S0", next="S1"), "stream 1 ('S0') starts 'S1', and no stream that is sent has that"),
        (stream(mode={**BURST, "total_pkts": 0}), "does not accept (stream 1 has a burst of no frames)"),
        (stream(mode={"rate": BURST["rate"], "type": "single_burst"}), "does not accept ('total_pkts' is missing)"),
        (stream(mode={**MULTI, "ibg": "x"}), "streams that TRex does not accept"),
        (stream(mode={**MULTI, "ibg": float("nan")}), "a time or a count that is negative or no number"),
        (stream(self_start=False), "is never started, by itself or by another"),
        (stream(start_paused=True), "does not start by itself"),
        (stream(flags=8), "is a dummy"),
        (stream(isg=5000.0), "starts 5 ms late (isg)"),
        (stream(mode=rate("pps", 0)), "has a rate of 0 pps"),
        (stream(mode=rate("frames", 1)), "has a rate of 1 frames"),
        (stream(packet={"binary": "x", "meta": ""}), "stream 1 is not a stream that TRex accepts"),
        (stream(bytes(60)), "its frame is not IP"),
        (stream(frame(ttl=1)), "has no time to live left"),
        (stream(bytes(9300)), "its frame has 9300 bytes"),
        (
            stream(mode={**BURST, "total_pkts": 5, "rate": {"type": "percentage", "value": 1}}),
            "has bursts in per cent of a link",
        ),
        (latency(5) | {"mode": BURST}, "measures latency in bursts"),
        (latency(5), "has latency streams only"),
        ((stream(), stream(mode=PER_CENT)), "their ratio depends on the link"),
        ((stream(), latency(1) | {"mode": PER_CENT}), "measures latency at a rate in per cent"),
        (trimmed(counter(60, 161, size=2)), "are cut to 60 to 161 bytes; expected 14 to the 160 of its packet"),
        (trimmed(counter(60, 100, size=2, next_var="b")), "the sizes of its frames cannot be derived"),
        (trimmed({**TUPLE, "name": "b"}), "the sizes of its frames cannot be derived"),
    ],
)
def test_streams_that_no_load_can_scale_are_refused(streams: Data | tuple[Data, ...], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        program(*(streams if isinstance(streams, tuple) else (streams,)))
    assert says in str(caught.value) and str(caught.value).startswith("mine.py: ")


# -- bursts and chains in time, compared with a simulation that sends each frame as TRex's nodes do


FILE = Path("mine.py")


def single(
    frames: int,
    pps: float = 10.0,
    delay: float = 0.0,
    begins: bool = True,
    after: int | None = None,
    bursts: int = 1,
    gap: float = 0.0,
) -> StreamTiming:
    """A stream of bursts of *frames*; one, unless it says more."""
    return StreamTiming(f"stream of {frames}", pps, frames, bursts, gap, delay, begins, after)


def moments(streams: list[StreamTiming], found: Pattern, root: int) -> Iterator[float]:
    """When TRex sends the frames of the chain that starts at *root*, with the delays and followers of *found*."""
    now, place = 0.0, root
    while True:
        stream = streams[place]
        now += found.delays[place]
        for number in itertools.count() if stream.endless else range(stream.bursts):
            if number:
                now += stream.gap
            for frame in range(stream.frames or 1):
                if frame:
                    now += 1 / stream.pps
                yield now
        following = found.after[place]
        assert following is not None
        place = following


def test_endless_bursts_have_a_mean_rate_and_a_higher_peak() -> None:
    found = make_pattern([single(4, 1000, bursts=0, gap=1.0)], FILE)
    assert found.pps == pytest.approx(4 / 1.003) and not found.ends
    assert found.peak_to_mean([512]) == pytest.approx(1000 * 1.003 / 4)
    beside = make_pattern(
        [single(4, 1000, bursts=0, gap=1.0), StreamTiming("all the time", 1000, None, 0, 0.0, 0.0, True, None)], FILE
    )
    assert beside.rate(1) == 1000 and beside.peak_to_mean([512, 512]) == pytest.approx(2000 / (1000 + 4 / 1.003))


def test_single_frames_close_together_count_as_a_burst() -> None:
    close = [StreamTiming(str(n), 1.0, 1, 1, 0.0, 1e-8, n == 0, n + 1 if n < 99 else None) for n in range(100)]
    apart = replace(close[-1], next=100)
    found = make_pattern([*close[:-1], apart, StreamTiming("later", 1.0, 1, 1, 0.0, 1.0, False, 0)], FILE)
    assert found.peak_to_mean([512.0] * 101) > 1e5
    train = make_pattern([StreamTiming("train", 1.0, 1, 100, 1e-8, 0.0, True, None)], FILE)
    assert train.peak_to_mean([512.0]) == pytest.approx((1e8 * (1 + 99e-8)) / 100, rel=0.05)
    at_once = make_pattern([StreamTiming("at once", 1.0, 1, 3, 0.0, 0.0, True, None)], FILE)
    assert at_once.peak_to_mean([512.0]) == math.inf


def test_an_endless_stream_with_a_start_delay_is_due_later() -> None:
    found = make_pattern([single(10, 1e6, 1e-3, bursts=0, gap=1e-5)], FILE)
    assert found.frames(found.pps, 1e-3) == 0
    assert found.frames(found.pps, 1.001) == pytest.approx(found.pps, rel=1e-3)
    assert found.frames(found.pps / 100, 0.2) == pytest.approx(found.pps / 1000, rel=0.01)


WRONG = [
    ([single(1, after=1), single(1, begins=False, after=1)], "starts itself|both start the same stream"),
    ([single(1, after=2), single(1, after=2), single(1, begins=False)], "both start the same stream"),
    ([single(1, after=1), single(2, begins=False, after=2), single(3, begins=False, after=1)], "both start the same"),
    ([single(1), single(2, begins=False)], "stream of 2 is never started"),
    ([single(1, after=1), single(2)], "stream of 2 starts by itself and after another"),
    (
        [single(1, after=1), single(2, begins=False, bursts=0, gap=1.0)],
        "stream of 2 is started by another",
    ),
    ([single(1), single(2, bursts=0, gap=1.0)], "stream of 1 starts a chain that ends, and other streams go on"),
    ([single(1, after=0)], "without any time between"),
]


@pytest.mark.parametrize(("streams", "says"), WRONG, ids=[row[1][:30] for row in WRONG])
def test_streams_that_do_not_repeat_are_refused(streams: list[StreamTiming], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        make_pattern(streams, FILE)
    assert str(caught.value).startswith("mine.py: ") and "expected" in str(caught.value)


frames = st.integers(1, 6)
rates = st.sampled_from([1.0, 7.0, 100.0])
times = st.sampled_from([0.0, 0.001, 0.3, 2.0])


@st.composite
def chains(draw: st.DrawFn) -> tuple[list[StreamTiming], list[int]]:
    """Chains sent at the same time, all with an end or all without; and the first stream of each."""
    loops = draw(st.booleans())
    streams: list[StreamTiming] = []
    roots: list[int] = []
    for _ in range(draw(st.integers(1, 3))):
        length, first = draw(st.integers(1, 3)), len(streams)
        roots.append(first)
        for number in range(length):
            last = number == length - 1
            after = (first if loops else None) if last else first + number + 1
            # a loop always takes some time
            delay = draw(times) + (0.25 if loops and not number else 0.0)
            streams.append(single(draw(frames), draw(rates), delay, not number, after, draw(frames), draw(times)))
    return streams, roots


@given(chain=chains(), faster=st.sampled_from([0.5, 1.0, 10.0]), share=st.floats(0.05, 3.0))
@settings(max_examples=200, deadline=None)
def test_intended_frames_are_those_that_trex_sends(
    chain: tuple[list[StreamTiming], list[int]], faster: float, share: float
) -> None:
    streams, roots = chain
    found = make_pattern(streams, FILE)
    end = share * max(part.period for part in found.parts)
    due = found.frames(found.pps * faster, end / faster)
    sent = [list(itertools.takewhile(lambda at: at < end + 1e-6, moments(streams, found, root))) for root in roots]
    sure = sum(1 for row in sent for at in row if at < end - 1e-6)
    # a frame at the very end may count or not
    assert sure <= due <= sum(map(len, sent)) and found.frames(found.pps, 0.0) == 0
    assert found.pps == pytest.approx(sum(found.rate(place) for place in range(len(streams))))
    assert found.peak_to_mean([512.0] * len(streams)) >= 1 - 1e-9
