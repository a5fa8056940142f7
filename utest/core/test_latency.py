"""Proofs by a histogram of probe frames: bounds of statistics, with lost frames and those of no bucket."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.bounds import Bounds, at_most, ranks
from lineproof.core.latency import LatencyCount, Resolution, Statistic, pooled

FINE = Resolution.THREE_DIGITS


def bounds(count: LatencyCount, statistic: Statistic | str) -> Bounds | None:
    wanted = Statistic(statistic) if isinstance(statistic, str) else statistic
    spread = count.spread(math.inf)
    return spread.bounds(wanted) if spread else None


@pytest.mark.parametrize(("resolution", "widest"), [(Resolution.ONE_DIGIT, 1.0), (FINE, 0.001)])
@given(low=st.integers(0, 900_000))
def test_buckets_follow_each_other_and_are_as_narrow_as_they_say(
    resolution: Resolution, widest: float, low: int
) -> None:
    found = [0.0]
    while found[-1] <= low:
        found.append(resolution.end(found[-1]))
    assert found[-2] <= low < found[-1]
    assert found[-1] - found[-2] <= max(10 if resolution is Resolution.ONE_DIGIT else 1, widest * low)


def test_a_coarse_bucket_of_late_frames_has_no_end() -> None:
    assert [Resolution.ONE_DIGIT.end(low) for low in (0, 90, 100, 900_000, 1_000_000)] == [10, 100, 200, 1e6, math.inf]
    assert [FINE.end(low) for low in (0, 2047, 2048, 4096)] == [1, 2048, 2050, 4100]


@pytest.mark.parametrize(
    ("word", "frames"), [("p50", 100), ("p90", 100), ("p99", 1000), ("p99.9", 10_000), ("max", 100), ("mean", 100)]
)
def test_percentile_needs_ten_frames_beyond_it(word: str, frames: int):
    assert Statistic.read(word).frames_wanted == frames


def of(histogram: dict[int, int], received: int = 1000, duplicates: int = 0, elsewhere: int = 0) -> LatencyCount:
    """A thousand probe frames, of which so many came back."""
    return LatencyCount(0, 1, 1000, received, 50.0, 50.0, None, histogram, 0, duplicates, elsewhere)


VARIED = of({50: 900, 400: 100})
EXACT = [
    (of({50: 1000}), "max", Bounds(50, 60)),
    (of({50: 900, 1_000_000: 100}), "max", Bounds(1e6, math.inf)),
    # frames that the histogram lacks may have any latency
    (of({10: 990}), "max", Bounds(10, math.inf)),
    (of({10: 990}), "p98", Bounds(10, 20)),
    # more frames in the histogram than were received are a contradiction
    (of({50: 1001}), "p50", None),
    (VARIED, Statistic("p99", variation=True), Bounds(340, 450)),
    (VARIED, Statistic("p50", variation=True), Bounds(0, 10)),
    (replace(of({53: 900, 4100: 100}), resolution=FINE), Statistic("p99", variation=True), Bounds(4046, 4051)),
]


@pytest.mark.parametrize(("count", "statistic", "expected"), EXACT)
def test_the_bounds_are_these(count: LatencyCount, statistic: Statistic | str, expected: Bounds | None):
    assert bounds(count, statistic) == expected


@given(st.lists(st.integers(0, 16_000_000), min_size=1, max_size=300), st.sampled_from(["p1", "p50", "p99", "mean"]))
def test_fine_buckets_bound_the_statistic_within_a_thousandth(samples: list[int], name: str) -> None:
    width = {usec: 2 ** max(0, usec.bit_length() - 11) for usec in samples}
    histogram = Counter(usec - usec % width[usec] for usec in samples)
    count = LatencyCount(0, 1, len(samples), len(samples), 0.0, 0.0, histogram=histogram, resolution=FINE)
    spread, ordered = count.spread(), sorted(samples)
    assert spread is not None
    statistic = Statistic(name)
    true = math.fsum(ordered) / len(ordered)
    if statistic.share is not None:
        true = ordered[max(1, math.ceil(statistic.share * len(ordered) - 1e-9)) - 1]
    # the errors of a sample are none of the histogram's
    found = spread.bounds(statistic)
    assert found.low - 1e-6 <= true <= found.high + 1e-6
    if name == "mean":
        assert found.high - found.low <= 1 + true / 1000


def test_groups_of_a_direction_add_up_to_its_probe_frames() -> None:
    small = LatencyCount(0, 1, 900, 890, 10.0, 40.0, 8.0, {10: 890}, 1, 0, 5, FINE)
    large = LatencyCount(0, 1, 100, 102, 99.0, 900.0, None, {50: 60, 10: 42}, 2, 2, 0, FINE, "why")
    found = LatencyCount.of_groups([small, large])
    assert (found.sent, found.received, found.maximum, found.minimum) == (1000, 992, 900.0, 8.0)
    assert (found.out_of_order, found.duplicates, found.elsewhere, found.doubt) == (3, 2, 5, "why")
    assert found.histogram == {10: 932, 50: 60} and found.mean == pytest.approx((8900 + 99 * 102) / 992)
    # a copy of one size does not replace a lost frame of another
    assert found.lost == small.lost + large.lost == 10
    assert LatencyCount.of_groups([large]) is large


def test_frames_at_another_port_are_in_the_histogram_too():
    count = of({50: 990, 5000: 10}, 990, elsewhere=10)
    spread = count.spread(0)
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
    certain, unknown = count.spread(100), count.spread(0)
    assert certain is not None and unknown is not None
    assert certain.bounds(Statistic("p95")) == Bounds(math.inf, math.inf)
    assert unknown.bounds(Statistic("p95")) == Bounds(50, math.inf)
    assert certain.bounds(Statistic("p50")) == unknown.bounds(Statistic("p85")) == Bounds(50, 60)


def test_all_trials_together_have_all_their_frames() -> None:
    spreads = [count.spread() for count in (of({50: 1000}), of({10: 400}, 500))]
    found = pooled([spread for spread in spreads if spread])
    assert found.best == {50: 1000, 10: 400, 0: 100, math.inf: 500}
    assert found.worst == {60: 1000, 20: 400, math.inf: 600}


CHANGES = st.lists(st.tuples(st.sampled_from([None, 1000, 200_000]), st.integers(0, 99)), min_size=1, max_size=30)


@given(st.lists(st.integers(0, 1000), min_size=100, max_size=100), CHANGES, st.sampled_from(["p50", "p99", "max"]))
def test_lost_and_later_frames_never_look_earlier(
    samples: list[int], changes: list[tuple[int | None, int]], name: str
) -> None:
    after: list[int | None] = list(samples)
    for more, place in changes:
        was = after[place]
        after[place] = None if was is None or more is None else min(2000, was + more)
    first, second = (
        bounds(LatencyCount(0, 1, 100, sum(rows.values()), 0.0, 0.0, histogram=rows, resolution=FINE), name)
        for rows in (Counter(samples), Counter(usec for usec in after if usec is not None))
    )
    assert first and second and second.low >= first.low and second.high >= first.high


@pytest.mark.parametrize("name", ["p50", "p99", "max", "mean"])
def test_perfect_frames_mend_a_delay_variation(name: str) -> None:
    spread = of({80: 1000}).spread()
    assert spread is not None
    for perfect in (0, 1, 59):
        assert pooled([spread], perfect).bounds(Statistic(name, variation=True)) == Bounds(0, 10)


def test_ranks_bound_a_percentile_as_seldom_wrong_as_asked() -> None:
    low, high = ranks(1000, 0.99, 0.05, 0.05)
    assert at_most(low - 1, 1000, 0.99) <= 0.05 < at_most(low, 1000, 0.99)
    assert 1 - at_most(high - 1, 1000, 0.99) <= 0.05 < 1 - at_most(high - 2, 1000, 0.99)


@pytest.mark.parametrize(("k", "p"), [(0, 1e-5), (90, 0.001), (50_000, 0.5), (99_950, 0.9995)])
def test_a_sample_too_large_to_be_summed_is_like_one_that_is_not(k: int, p: float) -> None:
    before = at_most(k - 1, 100_000, p), at_most(k, 100_000, p)
    assert at_most(k, 100_001, p) == pytest.approx(p * before[0] + (1 - p) * before[1])
    assert ranks(10, 0.99, 0.05, 0.05)[1] == 11
