"""Latency frames of a packet group: what their order and their time tell."""

from __future__ import annotations

import mmap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof_bench.wire.flows import LatencyTracker
from lineproof_bench.wire.protocol import KEPT_DELAYS, STATUS_BYTES, SentProbes


def test_missing_late_and_repeated_frames_are_counted() -> None:
    tracker = LatencyTracker()
    tracker.begin(1)
    for number in (0, 1, 1, 2, 6, 4, 4, 7, 9):
        tracker.add(1, number, 20.0, 0.0)
    found = tracker.counters()
    # 3, 5 and 8 are missing; 4 came late, then again
    assert (found.lost, found.out_of_order, found.duplicates) == (3, 1, 2)
    tracker.begin(2)
    tracker.add(1, 8, 20.0, 0.0)
    tracker.add(2, 0, 20.0, 0.0)
    assert (tracker.counters().lost, tracker.counters().duplicates) == (3, 2), "an older start has no order any more"
    assert tracker.counters().histogram == {20: 11}


@given(st.permutations(range(40)), st.lists(st.integers(0, 39), max_size=10), st.integers(0, 2**32 - 1))
def test_no_frame_is_lost_whatever_the_order(order: list[int], again: list[int], first: int) -> None:
    tracker = LatencyTracker()
    tracker.begin(1, first)
    for number in [*order, *again]:
        tracker.add(1, (first + number) % 2**32, 1.0, 0.0)
    found = tracker.counters()
    assert (found.lost, found.duplicates) == (0, len(again))


def test_latency_figures() -> None:
    tracker = LatencyTracker()
    tracker.begin(1)
    for number, usec in enumerate((5.0, 12.0, 19.0, 250.0, -3.0)):
        tracker.add(1, number, usec, 100.0 + number)
    found = tracker.counters()
    assert found.histogram == {0: 1, 5: 1, 12: 1, 19: 1, 250: 1}
    assert (found.total_min, found.total_max, found.last_max) == (0.0, 250.0, 0.0)
    assert found.average == pytest.approx(286 / 5)
    jitter = 0.0
    for change in (7.0, 7.0, 231.0, 250.0):
        jitter += (change - jitter) / 16
    assert found.jitter == pytest.approx(jitter)


def test_send_delays_are_kept_for_a_while_beside_the_counts() -> None:
    probes = SentProbes(mmap.mmap(-1, STATUS_BYTES))
    assert probes.delay(0, 1, 0) is None
    for group in range(128):
        probes.keep(group, 255, 2**32 - 1, 1000 + group)
    assert [probes.delay(group, 255, 2**32 - 1) for group in range(128)] == list(range(1000, 1128))
    assert probes.delay(3, 254, 2**32 - 1) is probes.delay(3, 255, 5) is None
    probes.keep(3, 1, 7, 10**12)
    assert probes.delay(3, 1, 7) == 2**24 - 1, "what is out of all proportion"
    probes.keep(3, 1, 7 + KEPT_DELAYS, 5)
    assert probes.delay(3, 1, 7) is None
    assert not any(probes.counted(group) != (0, 0) for group in range(128)), "counts are elsewhere"
    probes.count(127, 64)
    assert probes.counted(127) == (1, 64)
