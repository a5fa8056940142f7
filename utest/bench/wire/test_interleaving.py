"""Interleaving of streams on one port: ratios, bursts, late starts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof_bench.backend import StreamTraffic
from lineproof_bench.wire.interleaving import locate, phases, weights


def stream(pps: float, count: int | None = None, isg_usec: float = 0.0) -> StreamTraffic:
    return StreamTraffic(1, bytes(60), pps, count=count, isg_usec=isg_usec)


def sequence(traffic: list[StreamTraffic], frames: int) -> list[tuple[int, int]]:
    which, numbers = locate(phases(traffic), np.arange(frames, dtype=np.int64))
    return list(zip(which.tolist(), numbers.tolist(), strict=True))


def test_weights_are_the_smallest_integers_of_the_ratio() -> None:
    assert weights([28.0, 16.0, 4.0]) == (7, 4, 1)
    assert weights([1e6]) == (1,)
    assert weights([0.1 * 3, 0.1]) == (3, 1)


def test_a_mix_is_interleaved_and_not_sent_in_blocks() -> None:
    found = [which for which, _ in sequence([stream(28e3), stream(16e3), stream(4e3)], 1200)]
    assert Counter(found) == {0: 700, 1: 400, 2: 100}
    assert all(len(set(found[at : at + 12])) == 3 for at in range(0, 1200, 12))
    assert all(found[at : at + 4] != [0] * 4 for at in range(1196))


@given(st.lists(st.floats(0.5, 1e7), min_size=1, max_size=5), st.integers(1, 3000))
def test_every_stream_counts_its_frames_without_gaps(rates: list[float], frames: int) -> None:
    found = sequence([stream(pps) for pps in rates], frames)
    for place in range(len(rates)):
        numbers = [number for which, number in found if which == place]
        assert numbers == list(range(len(numbers)))


def test_any_frame_is_found_without_those_before() -> None:
    plan = phases([stream(3.0), stream(2.0)])
    whole = locate(plan, np.arange(1000, dtype=np.int64))
    part = locate(plan, np.arange(900, 1000, dtype=np.int64))
    assert np.array_equal(part[0], whole[0][900:]) and np.array_equal(part[1], whole[1][900:])


def test_a_burst_ends_and_leaves_the_line_to_the_others() -> None:
    plan = phases([stream(100.0, count=10), stream(100.0)])
    assert [phase.pps for phase in plan] == [200.0, 100.0]
    found = sequence([stream(100.0, count=10), stream(100.0)], 100)
    assert Counter(which for which, _ in found) == {0: 10, 1: 90}
    assert [number for which, number in found if which == 1] == list(range(90))


def test_bursts_alone_come_to_an_end() -> None:
    [phase] = phases([stream(100.0, count=7)])
    assert phase.length == 7
    assert phases([stream(100.0, count=0)]) == ()
    assert phases([stream(0.0)]) == ()


def test_a_stream_with_a_gap_joins_later() -> None:
    first, second = phases([stream(100.0), stream(300.0, isg_usec=500_000.0)])
    assert (first.begin, first.length, first.pps) == (0.0, 50, 100.0)
    assert (second.begin, second.first, second.pps) == (0.5, 50, 400.0)


def test_a_port_whose_only_stream_begins_late_is_silent_until_then() -> None:
    [phase] = phases([stream(100.0, isg_usec=1000.0)])
    assert phase.begin == pytest.approx(0.001)
