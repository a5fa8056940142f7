import math
import random
import statistics
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.stats import Summary, interval, mean_interval

# as rates and latencies are: a spread that arithmetic on floats can see
measurements = st.integers(-(10**9), 10**9).map(lambda number: number / 1000)


@settings(max_examples=50, deadline=None)
@given(st.lists(measurements, min_size=1, max_size=30))
def test_a_summary_is_ordered_and_right(sample: list[float]):
    found = Summary.of(sample)
    assert found.minimum <= found.median <= found.maximum
    assert found.minimum <= found.mean <= found.maximum
    assert found.n == len(sample) and found.median == statistics.median(sample)
    assert (found.stddev is None) is (len(sample) == 1)


def test_a_t_interval_matches_the_textbook():
    # t(4 degrees, 95 %) = 2.776; the standard error of 1..5 is sqrt(2.5 / 5)
    found = mean_interval([1, 2, 3, 4, 5])
    half = 2.7764 * math.sqrt(0.5)
    assert (found.low, found.high) == pytest.approx((3 - half, 3 + half), abs=1e-4)


def drawn(kind: str, n: int) -> list[float]:
    draw = random.Random(5)
    return [draw.gauss(1e7, 1e3) if kind == "normal" else draw.lognormvariate(0, 1.5) for _ in range(n)]


@pytest.mark.parametrize("mean", [0, 1e12])
def test_a_normal_sample_uses_t_also_where_its_spread_is_small(mean: float):
    sample = [value + mean for value in drawn("normal", 40)]
    assert interval(sample) == mean_interval(sample) and interval(sample).low < 1e7 + mean < interval(sample).high


def test_a_skewed_sample_uses_the_bootstrap_which_is_as_skewed_and_repeatable():
    sample = drawn("skewed", 40)
    found = interval(sample)
    assert found == interval(sample) != mean_interval(sample)
    assert min(sample) <= found.low <= found.high <= max(sample)
    assert found.high - found.estimate > found.estimate - found.low


def test_the_percentile_bootstrap_is_used_where_bca_is_not_defined():
    found = interval([1e17, 1e17 + 16, 1e17, 1e17, 1e17, 1e17])
    assert found.low is not None and math.isfinite(found.low)
    assert found.low <= found.estimate <= found.high


@pytest.mark.parametrize("method", [mean_interval, interval])
def test_one_measurement_has_no_interval_and_equal_ones_one_of_no_width(method, monkeypatch):
    for name in ("scipy", "scipy.special"):  # take half a second to import
        monkeypatch.setitem(sys.modules, name, None)
    found = method([5.0])
    assert (found.estimate, found.low, found.high) == (5, None, None)
    for n in (2, 3, 10):
        found = method([0.1] * n)
        assert (found.low, found.high) == (0.1, 0.1)


@pytest.mark.parametrize("sample", [[], [1, math.nan], [math.inf, 1]])
def test_samples_without_a_result_are_refused(sample: list[float]):
    with pytest.raises(ValueError, match="finite measurements"):
        interval(sample)
