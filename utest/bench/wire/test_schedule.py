"""When the frames of each sender and stream are sent, and what the order of latency frames tells."""

from __future__ import annotations

import itertools
import mmap
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof_bench.backend import StreamTraffic
from lineproof_bench.wire.backend import LatencyTracker
from lineproof_bench.wire.frames import BURST, Pace, SendSchedule, locate, phases
from lineproof_bench.wire.protocol import KEPT_DELAYS, STATUS_BYTES, SentProbes
from lineproof_bench.wire.sender import LARGEST_RING, PAGE, slots_for, stride_for


def schedule(pps: float, duration: float | None, count: int | None = None) -> SendSchedule:
    return SendSchedule(phases([StreamTraffic(1, bytes(60), pps, count=count)]), duration)


def drive(pace: Pace, steps: list[float], end: float) -> list[tuple[float, int]]:
    """Walk the clock by *steps*, then until the pace is finished; what was sent when."""
    now, sent, ticks = 0.0, [], iter(steps)
    while not pace.finished(now) and now < end:
        frames = pace.allowance(now)
        pace.took(frames)
        sent.append((now, frames))
        now += next(ticks, 0.0005)
    return sent


@given(st.floats(1, 4e5), st.floats(0.01, 0.5), st.integers(1, 4))
def test_the_shares_of_all_senders_are_the_rate_times_the_duration(pps: float, duration: float, shares: int) -> None:
    paces = [Pace(schedule(pps, duration), share, shares) for share in range(shares)]
    for pace in paces:
        drive(pace, [], duration + 0.1)
    assert sum(pace.sent for pace in paces) == round(pps * duration)


@given(st.floats(1e3, 1e7), st.lists(st.floats(1e-5, 0.05), max_size=40))
def test_a_sender_is_never_ahead_and_no_batch_larger_than_a_burst_however_late_it_is(
    pps: float, steps: list[float]
) -> None:
    pace = Pace(schedule(pps, 0.3))
    sent = drive(pace, steps, 3.0)
    assert max(frames for _, frames in sent) <= BURST
    assert pace.sent <= round(pps * 0.3)
    for (now, _), total in zip(sent, itertools.accumulate(frames for _, frames in sent), strict=True):
        assert total <= pps * min(now, 0.3) + 1


def test_frames_that_cannot_be_sent_in_time_stay_unsent() -> None:
    """A sender that takes a millisecond for a burst sends 512 000 frames/s, not the million asked for."""
    pace, now = Pace(schedule(1e6, 0.5)), 0.0
    while not pace.finished(now):
        frames = pace.allowance(now)
        pace.took(frames)
        now += max(0.0001, 0.001 * frames / BURST)
    assert 0.4 * 500_000 < pace.sent < 0.6 * 500_000
    assert now < 0.51


def test_without_a_duration_only_bursts_end_it() -> None:
    assert schedule(1000.0, None).frames is None
    pace = Pace(schedule(1000.0, None, count=25))
    drive(pace, [], 1.0)
    assert pace.sent == 25 and pace.finished(0.1)
    assert not Pace(schedule(1000.0, None)).finished(1e6)


def test_it_sleeps_when_nothing_is_due_and_not_when_much_is() -> None:
    pace = Pace(schedule(100_000.0, 1.0))
    assert pace.rest(0.5, 0.0005) == 0.0
    pace.took(50_000)
    assert pace.rest(0.5, 0.0005) >= 0.0005
    assert Pace(schedule(10.0, 1.0)).rest(0.0, 0.0005) >= 0.05


def test_when_a_frame_is_due() -> None:
    plan = phases([StreamTraffic(1, bytes(60), 10.0, (), 5), StreamTraffic(2, bytes(60), 20.0, (), 4)])
    schedule = SendSchedule(plan, None)
    for number in range(1, 10):
        moment = schedule.moment(number)
        assert schedule.due(moment + 1e-9) >= number > schedule.due(moment - 1e-6)
    assert schedule.moment(10) == float("inf")


def stream(pps: float, count: int | None = None) -> StreamTraffic:
    return StreamTraffic(1, bytes(60), pps, count=count)


def sequence(traffic: list[StreamTraffic], frames: int) -> list[tuple[int, int]]:
    """Return stream and number of the first *frames*, of which a part is found without those before it."""
    plan, places = phases(traffic), list[tuple[int, int]]()
    for part in np.array_split(np.arange(frames, dtype=np.int64), 3):
        which, numbers = locate(plan, part)
        places += zip(which.tolist(), numbers.tolist(), strict=True)
    return places


def test_a_mix_is_interleaved_and_not_sent_in_blocks() -> None:
    order = [which for which, _ in sequence([stream(28e3), stream(16e3), stream(4e3)], 1200)]
    assert Counter(order) == {0: 700, 1: 400, 2: 100}
    assert all(len(set(order[at : at + 12])) == 3 for at in range(0, 1200, 12))
    assert all(order[at : at + 4] != [0] * 4 for at in range(1196))


@given(st.lists(st.floats(0.5, 1e7), min_size=1, max_size=5), st.integers(1, 3000))
def test_every_stream_counts_its_frames_without_gaps(rates: list[float], frames: int) -> None:
    order = sequence([stream(pps, 70 if pps < 3 else None) for pps in rates] + [stream(1.0)], frames)
    for place in range(len(rates)):
        numbers = [number for which, number in order if which == place]
        assert numbers == list(range(len(numbers)))


@given(st.integers(1, 100_000), st.integers(14, 9018))
def test_a_ring_holds_whole_periods_in_whole_pages(period: int, longest: int) -> None:
    stride, slots = stride_for(longest), slots_for(period, longest)
    assert stride >= longest + 42 and stride & (stride - 1) == 0
    if slots is not None:
        assert slots % period == 0 and slots * stride % PAGE == 0 and 1024 <= slots <= LARGEST_RING // stride


@given(st.permutations(range(40)), st.lists(st.integers(0, 39), max_size=10), st.integers(0, 2**32 - 1))
def test_no_frame_is_lost_whatever_the_order(order: list[int], again: list[int], first: int) -> None:
    tracker = LatencyTracker()
    tracker.begin(1, first)
    for number in [*order, *again]:
        tracker.add((first + number) % 2**32, 1.0, 0.0)
    counted = tracker.counters()
    assert (counted.lost, counted.duplicates) == (0, len(again))


def test_latency_figures() -> None:
    tracker = LatencyTracker()
    tracker.begin(1)
    for number, usec in enumerate((5.0, 12.0, 19.0, 250.0, -3.0)):
        tracker.add(number, usec, 100.0 + number)
    counted = tracker.counters()
    assert counted.histogram == {0: 1, 5: 1, 12: 1, 19: 1, 250: 1}
    assert (counted.total_min, counted.total_max, counted.last_max) == (0.0, 250.0, 0.0)
    assert counted.average == pytest.approx(286 / 5)
    jitter = 0.0
    for change in (7.0, 7.0, 231.0, 250.0):
        jitter += (change - jitter) / 16
    assert counted.jitter == pytest.approx(jitter)


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
