"""The RFC 2544 reset test, with a modelled router whose counts are read while traffic runs."""

import pytest

from lineproof.counts.live_traffic import Sample
from lineproof.counts.trial import Load
from lineproof.errors import TestbedError
from lineproof.methods.rfc2544.reset import SampleInterval, reset


class LiveRouter:
    """Forwards 5 Mpps; silent in *outage*."""

    def __init__(self, outage=None, breaks_at=None):
        self.capacity, self.outage, self.breaks_at = 5e6, outage, breaks_at
        self.time = self.offered = self.forwarded = 0.0
        self.load = 0.0
        self.loads, self.stopped = [], 0
        self.reset_at = None

    def start(self, load):
        self.load = load.pps
        self.loads.append(load.pps)
        return self.sample()

    def sample(self):
        if self.breaks_at is not None and self.time >= self.breaks_at:
            raise TestbedError("the generator went away")
        return Sample(self.time, int(self.offered), int(self.forwarded))

    def wait(self, seconds):
        # in small steps, so that what happens within an interval is seen as such
        for _ in range(100):
            step = seconds / 100
            rate = min(self.load, self.capacity)
            if self.reset_at is not None and self.outage:
                first, last = self.outage
                if first <= self.time - self.reset_at < last:
                    rate = 0.0
            self.offered += self.load * step
            self.forwarded += rate * step
            self.time += step

    def change(self, load):
        raise NotImplementedError

    def stop(self):
        self.load = 0.0
        self.stopped += 1

    def cause(self):
        self.reset_at = self.time


def test_traffic_stops_when_the_generator_breaks_down():
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


def test_router_that_stays_down_or_never_resets_has_no_time():
    live = LiveRouter(outage=(0.0, 1e9))
    result = reset(live, live.cause, "power", 64, Load(4e6), limit=20)
    assert not result.recovered and result.by_loss is None
    assert "did not forward again" in str(result)
    live = LiveRouter()
    result = reset(live, live.cause, "power", 64, Load(4e6), limit=20)
    assert "the reset had no effect" in str(result)


def test_draining_buffer_is_no_loss():
    assert not SampleInterval(Sample(0, 0, 0), Sample(1, 100, 150)).loses(0.0)
    with pytest.raises(ValueError, match="not negative"):
        Sample(0, -1, 0)
