"""Recovery and reset on a modelled router whose counts are read while traffic runs."""

import pytest

from linerate.errors import BenchError
from linerate.methods.rfc2544.live import Interval, Sample
from linerate.methods.rfc2544.recovery import recovery
from linerate.methods.rfc2544.reset import reset
from linerate.trial import Load

LINE = 14_880_952.0


class LiveRouter:
    """Forwards *capacity* frames/s; goes on losing a tenth for *lag* s after an overload; silent in *outage*."""

    def __init__(self, capacity=5e6, lag=0.0, outage=None, breaks_at=None):
        self.capacity, self.lag, self.outage, self.breaks_at = capacity, lag, outage, breaks_at
        self.time = self.offered = self.forwarded = 0.0
        self.load = 0.0
        self.overloaded_until = None
        self.loads, self.stopped = [], 0
        self.reset_at = None

    def start(self, load):
        self.load = load.pps
        self.loads.append(load.pps)
        return self.sample()

    def change(self, load):
        if self.load > self.capacity:
            self.overloaded_until = self.time + self.lag
        self.load = load.pps
        self.loads.append(load.pps)
        return self.sample()

    def sample(self):
        if self.breaks_at is not None and self.time >= self.breaks_at:
            raise BenchError("the generator went away")
        return Sample(self.time, int(self.offered), int(self.forwarded))

    def wait(self, seconds):
        # in small steps, so that what happens within an interval is seen as such
        for _ in range(100):
            step = seconds / 100
            rate = min(self.load, self.capacity)
            if self.overloaded_until is not None and self.time < self.overloaded_until:
                rate *= 0.9
            if self.reset_at is not None and self.outage:
                first, last = self.outage
                if first <= self.time - self.reset_at < last:
                    rate = 0.0
            self.offered += self.load * step
            self.forwarded += rate * step
            self.time += step

    def stop(self):
        self.load = 0.0
        self.stopped += 1

    def cause(self):
        self.reset_at = self.time


def test_a_router_that_recovers_at_once_takes_no_time():
    live = LiveRouter()
    result = recovery(live, 64, Load(5e6), LINE, overload_for=60)
    assert result.times == (0, 0, 0) and result.mean == 0
    assert live.loads == pytest.approx([5.5e6, 2.75e6] * 3)
    assert live.stopped == 3


def test_the_overload_is_no_more_than_the_line():
    live = LiveRouter(LINE)
    result = recovery(live, 64, Load(LINE * 0.95), LINE, repeats=1, overload_for=1)
    assert result.overload.pps == LINE and result.reduced.pps == LINE / 2
    assert "trials of 1 s" in str(result)


@pytest.mark.parametrize("lag", [0.05, 0.3, 1.7])
def test_recovery_time_is_known_to_the_interval(lag):
    result = recovery(LiveRouter(lag=lag), 64, Load(5e6), LINE, repeats=2, overload_for=60)
    assert all(lag - 0.002 <= time <= lag + 0.102 for time in result.times)


def test_a_router_that_does_not_recover_is_told_as_such():
    result = recovery(LiveRouter(lag=1e9), 64, Load(5e6), LINE, repeats=1, limit=10)
    assert result.times == (None,) and result.mean is None
    assert "not within the time given" in str(result)


def test_traffic_stops_when_the_bench_breaks_down():
    live = LiveRouter(breaks_at=61.0)
    result = recovery(live, 64, Load(5e6), LINE)
    assert result.ended.startswith("inconclusive: ") and live.stopped == 1 and result.times == ()
    live = LiveRouter(breaks_at=3.0)
    assert "went away" in str(reset(live, live.cause, "power", 64, Load(5e6)))
    assert live.stopped == 1


@pytest.mark.parametrize("outage", [(0.0, 0.02), (0.5, 3.5), (0.0, 47.0)])
def test_reset_time_by_loss_is_exact_and_by_time_to_the_interval(outage):
    live = LiveRouter(outage=outage)
    result = reset(live, live.cause, "software", 64, Load(4e6))
    length = outage[1] - outage[0]
    assert result.recovered
    assert result.by_loss == pytest.approx(length, abs=0.003)
    if length > 0.1:
        assert result.by_time == pytest.approx(length, abs=0.21)
    else:
        assert result.by_time is None and "too short" in str(result)


def test_a_router_that_stays_down_or_was_never_reset():
    live = LiveRouter(outage=(0.0, 1e9))
    result = reset(live, live.cause, "power", 64, Load(4e6), limit=20)
    assert not result.recovered and result.by_loss is None
    assert "did not forward again" in str(result)
    live = LiveRouter()
    result = reset(live, live.cause, "power", 64, Load(4e6), limit=20)
    assert "the reset had no effect" in str(result)


def test_a_draining_buffer_is_no_loss():
    assert not Interval(Sample(0, 0, 0), Sample(1, 100, 150)).loses(0.0)
    with pytest.raises(ValueError, match="not negative"):
        Sample(0, -1, 0)
