"""What a histogram of probe frames proves: bounds of statistics, with TRex's quirks and lost frames."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lineproof.core.binomial import at_most, ranks
from lineproof.core.bounds import UNKNOWN, Bounds
from lineproof.core.latency import LatencyCount, Statistic, bucket_end, pooled
from lineproof.errors import SentenceError

SECONDS = 1.0
NAMES = ["p1", "p50", "p90", "p99", "p99.9", "min", "max", "mean"]
Samples = list[float | None]
"""The latencies in µs of frames sent one after the other; None: lost."""

RUNS = st.tuples(st.none() | st.sampled_from([1e6, 1.2e6]) | st.floats(0.5, 2e6), st.integers(1, 60))
SAMPLES: st.SearchStrategy[Samples] = st.lists(RUNS | st.tuples(st.just(5.0), st.integers(1, 200)), min_size=1).map(
    lambda runs: [usec for usec, frames in runs for _ in range(frames)][:1000]
)
STATISTICS = st.builds(Statistic, st.sampled_from(NAMES)) | st.builds(
    Statistic, st.sampled_from([name for name in NAMES if name != "min"]), st.just(True)
)


def bucket(usec: float) -> int:
    """TRex's bucket, computed the plain way."""
    if usec < 10:
        return 0
    unit = 10 ** (len(str(int(usec))) - 1)
    return int(usec // unit) * unit


@dataclass
class Generator:
    """Counts probe frames as TRex does, trial after trial.

    Its bucket 0 only grows, none is later than 1 s, and its maximum leaves out the frames that come before the end of
    a period in which more than ten had come. ``phase``: s from the start of a trial to the end of a period of 0.5 s.
    """

    most_short: int = 0
    phase: float = 0.1

    def count(self, samples: Sequence[float | None], seconds: float = SECONDS) -> LatencyCount:
        gap = seconds / len(samples)
        rows = [(place * gap + usec / 1e6, place, usec) for place, usec in enumerate(samples) if usec is not None]
        arrived, latest, late, maximum = sorted(rows), -1, 0, 0.0
        periods = [math.floor((moment - self.phase) / 0.5) for moment, _, _ in arrived]
        for (_, place, usec), period in zip(arrived, periods, strict=True):
            late += place < latest
            latest = max(latest, place)
            if sum(other < period for other in periods[:12]) > 10:
                maximum = max(maximum, usec)
        histogram = Counter(bucket(usec) for _, _, usec in arrived if usec < 1e6)
        self.most_short = max(self.most_short, histogram[0])
        if histogram[0]:
            histogram[0] = self.most_short
        return LatencyCount(0, 1, len(samples), len(arrived), 0.0, maximum, histogram=+histogram, out_of_order=late)


def bounds(count: LatencyCount, statistic: Statistic | str) -> Bounds | None:
    wanted = Statistic(statistic) if isinstance(statistic, str) else statistic
    spread = count.spread(SECONDS, math.inf)
    return spread.bounds(wanted) if spread else None


def exact(samples: Samples, statistic: Statistic) -> float:
    """The statistic of all frames sent: a lost one is later than any limit."""
    ordered = sorted(math.inf if usec is None else usec for usec in samples)
    if statistic.name == "mean":
        found = math.fsum(ordered) / len(ordered)
    elif statistic.share is None:
        found = ordered[0 if statistic.name == "min" else -1]
    else:
        found = ordered[max(1, math.ceil(statistic.share * len(ordered) - 1e-9)) - 1]
    return found - ordered[0] if statistic.variation else found


@settings(max_examples=500)
@given(SAMPLES, st.integers(0, 1000), st.floats(0, 0.5), STATISTICS)
def test_true_statistic_lies_within_the_bounds(samples: Samples, earlier: int, phase: float, statistic: Statistic):
    found = bounds(Generator(earlier, phase).count(samples), statistic)
    if found is None:
        assert not any(samples)
        return
    true = exact(samples, statistic)
    if math.isnan(true):  # no frame came, from which others could vary
        assert found == UNKNOWN
        return
    assert found.low - 1e-6 <= true and true <= found.high + 1e-6


@given(st.lists(st.floats(0.5, 9e5), min_size=1, max_size=200), st.sampled_from(["min", "max", "mean"]))
def test_bounds_are_one_bucket_where_all_is_known(samples: list[float], name: str):
    slow: Samples = [max(10.0, item) for item in samples]
    found = bounds(Generator(500).count(slow), name)
    assert found is not None and found.high <= 2 * found.low + 1e-6


@given(st.floats(0, 999_999))
def test_bucket_ends_where_the_next_begins(usec: float):
    key = bucket(usec)
    assert key <= usec < bucket_end(key)
    assert bucket(bucket_end(key)) == bucket_end(key)


@pytest.mark.parametrize("word", ["p0", "p100", "p101", "median", "p", "99", "p99,9", "jitter"])
def test_unknown_statistic_is_refused(word: str):
    with pytest.raises(SentenceError, match="is no statistic here"):
        Statistic.read(word)


def test_the_least_delay_variation_is_no_statistic():
    with pytest.raises(SentenceError, match=r"is no statistic here; expected p50, .*, mean or max"):
        Statistic.read("min", ("mean", "max"), variation=True)


@pytest.mark.parametrize(
    ("word", "frames"), [("p50", 100), ("p90", 100), ("p99", 1000), ("p99.9", 10_000), ("max", 100), ("mean", 100)]
)
def test_percentile_needs_ten_frames_beyond_it(word: str, frames: int):
    assert Statistic.read(word).frames_wanted == frames


@given(SAMPLES, st.integers(0, 1000), st.floats(0, 0.5), st.floats(0.2, 5))
@example([1e6, *[None] * 599, *[8.0] * 399, 60e3], 1000, 0.05, 1.0)  # overtaken before the maximum counts
@example([max(8.0, 1.1e6 - 2999.0 * place) for place in range(1000)], 1000, 0.15, 3.0)  # held up, then sent at once
@example([1e6, *[None] * 349, *[8.0] * 650], 1000, 0.15, 3.0)  # not followed by any for 1 s
def test_late_frames_are_never_more_than_may_be_late(samples: Samples, earlier: int, phase: float, seconds: float):
    late = sum(usec is not None and usec >= 1e6 for usec in samples)
    assert Generator(earlier, phase).count(samples, seconds).most_late(seconds) >= late


SHORT: Samples = [8.0] * 1000
SOME_LATE: Samples = [1.5e6 if place % 10 == 5 else 8.0 for place in range(1000)]


def of(histogram: dict[int, int], received: int = 1000, maximum: float = 50.0, **more: int) -> LatencyCount:
    """A thousand probe frames, of which so many came back."""
    return LatencyCount(0, 1, 1000, received, 50.0, maximum, histogram=histogram, **more)


VARIED = of({50: 900, 400: 100}, maximum=500.0)
EXACT = [
    (Generator().count(SHORT), "max", Bounds(0, 10)),
    (Generator(most_short=5000).count(SHORT), "max", Bounds(0, 10)),
    # so many out of order may be late
    (replace(Generator().count(SHORT), out_of_order=10), "p98", Bounds(0, 10)),
    (replace(Generator().count(SHORT), out_of_order=10), "max", Bounds(0, math.inf)),
    # the bucket 0 is of an earlier trial
    (Generator(1000).count([8.0] * 300 + [50.0] * 700), "max", Bounds(50, 60)),
    (Generator(1000).count([8.0] * 300 + [50.0] * 700), "p50", Bounds(50, 60)),
    (Generator(1000).count([8.0] * 300 + [50.0] * 700), "p10", Bounds(0, 10)),
    # frames missing in the histogram prove nothing alone
    (of({10: 990}, maximum=8.0), "max", Bounds(10, math.inf)),
    (of({10: 990}, maximum=8.0), "p98", Bounds(10, 20)),
    # the maximum is of an earlier trial
    (of({50: 1000}, maximum=3e6), "max", Bounds(50, 60)),
    (of({900_000: 1000}, maximum=1.0), "max", Bounds(900_000, 1_000_000)),
    # more frames in the histogram than were received are a contradiction
    (of({50: 1001}), "p50", None),
    (VARIED, Statistic("p99", variation=True), Bounds(340, 450)),
    (VARIED, Statistic("p50", variation=True), Bounds(0, 10)),
]


@pytest.mark.parametrize(("count", "statistic", "expected"), EXACT)
def test_the_bounds_are_these(count: LatencyCount, statistic: Statistic | str, expected: Bounds | None):
    assert bounds(count, statistic) == expected


def test_frames_later_than_1_s_are_late_though_no_bucket_has_them():
    found = Generator().count(SOME_LATE)
    assert (found.unexplained, found.maximum) == (100, 1.5e6)
    assert bounds(found, "max") == Bounds(1e6, math.inf)
    assert bounds(found, "p95") == Bounds(1e6, math.inf)


def test_a_sum_that_fits_by_chance_hides_no_late_frame():
    generator = Generator()
    generator.count(SHORT)
    found = generator.count(SOME_LATE)
    assert sum(found.histogram.values()) == found.received
    for maximum in (found.maximum, 8.0):
        known = bounds(replace(found, maximum=maximum), "max")
        assert known is not None and math.isinf(known.high)


def test_frames_at_another_port_are_in_the_histogram_too():
    count = of({50: 990, 5000: 10}, 990, elsewhere=10)
    spread = count.spread(SECONDS, 0)
    assert spread is not None
    assert sum(spread.best.values()) == sum(spread.worst.values()) == 1000
    assert spread.bounds(Statistic("p98")) == Bounds(50, 6000)


def test_a_frame_that_came_twice_does_not_replace_a_lost_one():
    count = of({50: 1000}, duplicates=5)
    assert count.lost == 5
    found = bounds(count, "max")
    assert found is not None and math.isinf(found.low)
    assert replace(count, duplicates=0, received=1005, histogram={50: 1005}).lost == 0


def test_lost_frames_are_beyond_any_limit_only_where_the_router_lost_them():
    count = of({50: 900}, 900)
    certain, unknown = count.spread(SECONDS, 100), count.spread(SECONDS, 0)
    assert certain is not None and unknown is not None
    assert certain.bounds(Statistic("p95")) == Bounds(math.inf, math.inf)
    assert unknown.bounds(Statistic("p95")) == Bounds(50, math.inf)
    assert certain.bounds(Statistic("p50")) == unknown.bounds(Statistic("p85")) == Bounds(50, 60)


@given(SAMPLES, SAMPLES)
def test_all_trials_together_have_all_their_frames(first: Samples, second: Samples):
    spreads = [Generator().count(samples).spread(SECONDS) for samples in (first, second) if any(samples)]
    if not spreads:
        return
    found = pooled([spread for spread in spreads if spread])
    for rows in (found.best, found.worst):
        assert sum(rows.values()) == sum(len(samples) for samples in (first, second) if any(samples))


CHANGES = st.lists(st.tuples(st.sampled_from([None, 1000.0, 1.2e6]), st.integers(0, 999)), min_size=1, max_size=30)


@given(SAMPLES, CHANGES, st.integers(0, 1000), st.floats(0, 0.5), st.sampled_from(NAMES))
def test_lost_and_later_frames_never_look_earlier(
    samples: Samples, changes: list[tuple[float | None, int]], earlier: int, phase: float, name: str
):
    """However many frames are lost or later: the bounds still reach as far as the statistic was before."""
    worse = list(samples)
    for more, place in changes:
        was = worse[place % len(worse)]
        worse[place % len(worse)] = None if was is None or more is None else was + more
    found = bounds(Generator(earlier, phase).count(worse), name)
    assert found is None or found.high >= exact(samples, Statistic(name)) - 1e-6


@given(st.lists(st.floats(10, 9e5), min_size=10, max_size=100), CHANGES, st.sampled_from(NAMES))
def test_what_is_certainly_late_stays_so(samples: list[float], changes: list[tuple[float | None, int]], name: str):
    """Frames that a bucket places are lost, or move to a later bucket."""
    before: Samples = list(samples)
    after = list(before)
    for more, place in changes:
        was = after[place % len(after)]
        after[place % len(after)] = None if was is None or more is None else min(9e5, was + more)
    first, second = (bounds(Generator().count(rows), name) for rows in (before, after))
    assert first is not None and (second is None or second.low >= first.low)


@pytest.mark.parametrize("name", ["p50", "p99", "max", "mean"])
def test_perfect_frames_mend_a_delay_variation(name: str) -> None:
    spread = of({80: 1000}, maximum=90.0).spread(SECONDS)
    assert spread is not None
    for perfect in (0, 1, 59):
        assert pooled([spread], perfect).bounds(Statistic(name, variation=True)) == Bounds(0, 10)


def test_ranks_bound_a_percentile_as_seldom_wrong_as_asked() -> None:
    low, high = ranks(1000, 0.99, 0.05, 0.05)
    assert at_most(low - 1, 1000, 0.99) <= 0.05 < at_most(low, 1000, 0.99)
    assert 1 - at_most(high - 1, 1000, 0.99) <= 0.05 < 1 - at_most(high - 2, 1000, 0.99)
    assert ranks(10, 0.99, 0.05, 0.05)[1] == 11
