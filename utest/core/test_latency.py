"""Proofs by a histogram of probe frames: bounds of statistics, with lost frames and those of no bucket."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.bounds import at_most, ranks
from lineproof.core.latency import LatencyCount, Resolution, Statistic

FINE = Resolution.THREE_DIGITS


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


def test_ranks_bound_a_percentile_as_seldom_wrong_as_asked() -> None:
    low, high = ranks(1000, 0.99, 0.05, 0.05)
    assert at_most(low - 1, 1000, 0.99) <= 0.05 < at_most(low, 1000, 0.99)
    assert 1 - at_most(high - 1, 1000, 0.99) <= 0.05 < 1 - at_most(high - 2, 1000, 0.99)
