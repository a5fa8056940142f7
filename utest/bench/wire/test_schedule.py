"""The rate schedule against a clock made of numbers: exact totals, bounded bursts, nothing after the end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lineproof_bench.backend import StreamTraffic
from lineproof_bench.wire.interleaving import phases
from lineproof_bench.wire.schedule import BURST, CATCH_UP, Pace, SendSchedule


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
def test_no_batch_is_larger_than_a_burst_however_late_the_sender_is(pps: float, steps: list[float]) -> None:
    pace = Pace(schedule(pps, 0.3))
    sent = drive(pace, steps, 3.0)
    assert max(frames for _, frames in sent) <= BURST
    assert pace.sent <= round(pps * 0.3)


def test_a_late_sender_catches_up_within_the_limit() -> None:
    pps, pace = 400_000.0, Pace(schedule(400_000.0, 1.0))
    sent = drive(pace, [0.0005] * 100 + [0.05], 2.0)
    assert pace.sent == 400_000
    after = [(now, frames) for now, frames in sent if 0.11 < now < 0.15]
    assert sum(frames for _, frames in after) <= CATCH_UP * pps * 0.04 + BURST


def test_never_ahead_of_the_clock() -> None:
    pace, total = Pace(schedule(100_000.0, 0.5)), 0
    for now, frames in drive(pace, [0.003, 0.02, 0.0001] * 10, 1.0):
        total += frames
        assert total <= 100_000.0 * min(now, 0.5) + 1


def test_frames_that_cannot_be_sent_in_time_stay_unsent() -> None:
    """A sender that takes a millisecond for a burst sends 512 000 frames/s, not the million asked for."""
    pace, now = Pace(schedule(1e6, 0.5)), 0.0
    while not pace.finished(now):
        frames = pace.allowance(now)
        pace.took(frames)
        now += max(0.0001, 0.001 * frames / BURST)
    assert 0.4 * 500_000 < pace.sent < 0.6 * 500_000
    assert now < 0.51


def test_frames_not_taken_are_offered_again() -> None:
    pace = Pace(schedule(1000.0, 0.1))
    assert pace.allowance(0.05) == 50
    pace.took(20)
    assert pace.allowance(0.05) == 30


def test_without_a_duration_only_bursts_end_it() -> None:
    assert schedule(1000.0, None).frames is None
    pace = Pace(schedule(1000.0, None, count=25))
    drive(pace, [], 1.0)
    assert pace.sent == 25 and pace.finished(0.1)
    assert not Pace(schedule(1000.0, None)).finished(1e6)


def test_a_burst_shorter_than_the_duration_still_lasts_as_long() -> None:
    pace = Pace(schedule(1000.0, 0.5, count=10))
    pace.took(10)
    assert not pace.finished(0.4) and pace.finished(0.5)


def test_it_sleeps_when_nothing_is_due_and_not_when_much_is() -> None:
    pace = Pace(schedule(100_000.0, 1.0))
    assert pace.rest(0.5, 0.0005) == 0.0
    pace.took(50_000)
    assert pace.rest(0.5, 0.0005) >= 0.0005
    assert Pace(schedule(10.0, 1.0)).rest(0.0, 0.0005) >= 0.05
