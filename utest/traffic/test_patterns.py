"""Bursts and chains in time, compared with a simulation that sends each frame as TRex's nodes do."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.core.traffic.patterns import Pattern, StreamTiming, make_pattern
from lineproof.errors import ConfigError

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
