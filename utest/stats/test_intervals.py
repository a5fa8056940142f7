import math
import random
import statistics
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.stats import (
    VITALS_HEAD,
    IntervalMethod,
    Moments,
    Summary,
    bootstrap_interval,
    compare,
    interval,
    mean_interval,
    normality,
)

# as rates and latencies are: a spread that arithmetic on floats can see
measurements = st.integers(-(10**9), 10**9).map(lambda number: number / 1000)


# --- summaries


@settings(max_examples=50, deadline=None)
@given(st.lists(measurements, min_size=1, max_size=30))
def test_a_summary_is_ordered_and_right(sample: list[float]):
    found = Summary.of(sample)
    assert found.minimum <= found.median <= found.maximum
    assert found.minimum <= found.mean <= found.maximum
    assert found.n == len(sample) and found.median == statistics.median(sample)
    assert (found.stddev is None) is (len(sample) == 1)
    assert len(found.vitals()) >= len(VITALS_HEAD)


@pytest.mark.parametrize(
    "figures",
    [
        {"n": 0, "mean": 1.0, "stddev": None},
        {"n": 1, "mean": 1.0, "stddev": 0.5},
        {"n": 3, "mean": 1.0, "stddev": None},
        {"n": 3, "mean": 1.0, "stddev": -1.0},
        {"n": 3, "mean": math.nan, "stddev": 1.0},
        {"n": 3, "mean": 1.0, "stddev": math.inf},
    ],
)
def test_impossible_moments_are_refused(figures: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"sample.*\.$"):
        Moments(**figures)


# --- intervals


def test_a_t_interval_matches_the_textbook():
    # t(4 degrees, 95 %) = 2.776; the standard error of 1..5 is sqrt(2.5 / 5)
    found = mean_interval([1, 2, 3, 4, 5])
    assert (found.low, found.high) == pytest.approx(
        (3 - 2.7764 * math.sqrt(0.5), 3 + 2.7764 * math.sqrt(0.5)), abs=1e-4
    )
    assert str(found) == "3 (1.03676 to 4.96324, 95 % confidence)" and found.half_width == pytest.approx(
        1.96324, abs=1e-5
    )


@settings(max_examples=10, deadline=None)
@given(st.lists(measurements, min_size=4, max_size=30).filter(lambda sample: len(set(sample)) > 3), st.integers(0, 9))
def test_a_bootstrap_interval_is_inside_the_sample_and_repeatable(sample: list[float], seed: int):
    found = bootstrap_interval(sample, seed=seed)
    # means are rounded
    room = 1e-12 * max(map(abs, sample))
    assert min(sample) - room <= found.low <= found.high <= max(sample) + room
    assert found == bootstrap_interval(sample, seed=seed)
    assert f"seed {seed}" in found.explanation


def test_the_percentile_bootstrap_is_used_where_bca_is_not_defined():
    found = bootstrap_interval([1e17, 1e17 + 16, 1e17])
    assert found.low is not None and math.isfinite(found.low)
    assert found.method is IntervalMethod.PERCENTILE and "BCa is not defined" in found.explanation


# --- which interval


def drawn(kind: str, n: int) -> list[float]:
    draw = random.Random(5)
    return [draw.gauss(1e7, 1e3) if kind == "normal" else draw.lognormvariate(0, 1.5) for _ in range(n)]


def test_a_normal_sample_uses_t_and_says_so():
    found = interval(drawn("normal", 40))
    assert found.method is IntervalMethod.STUDENT_T
    assert "normality is not rejected (Shapiro-Wilk p = " in found.explanation
    assert found.low < 1e7 < found.high


def test_a_skewed_sample_uses_the_bootstrap_and_says_so():
    found = interval(drawn("skewed", 40))
    assert found.method is IntervalMethod.BCA and "normality is rejected" in found.explanation
    assert found.high - found.estimate > found.estimate - found.low  # as skewed as the sample


def test_few_measurements_are_not_called_normal():
    assert "would hardly show otherwise" in interval([1, 2, 3.5]).explanation
    assert "normality is presumed" in interval([1, 2]).explanation


def test_normality_survives_a_small_spread_on_a_large_mean():
    sample = drawn("normal", 30)
    assert normality([value + 1e12 for value in sample]) == pytest.approx(normality(sample), rel=1e-3)


# --- degenerate samples


@pytest.mark.parametrize("method", [mean_interval, bootstrap_interval, interval])
def test_one_measurement_has_no_interval(method):
    found = method([5.0])
    assert (found.estimate, found.low, found.high, found.half_width, found.method) == (
        5,
        None,
        None,
        None,
        IntervalMethod.NONE,
    )
    assert "one measurement" in found.explanation and str(found) == "5 (no interval)"


@pytest.mark.parametrize("method", [mean_interval, bootstrap_interval, interval])
@pytest.mark.parametrize("n", [2, 3, 10])
def test_equal_measurements_have_an_interval_of_no_width(method, n: int):
    found = method([0.1] * n)
    assert (found.low, found.high, found.half_width, found.method) == (0.1, 0.1, 0, IntervalMethod.CONSTANT)
    assert f"all {n} measurements are equal" in found.explanation
    assert normality([0.1] * n) is None


@pytest.mark.parametrize("function", [Summary.of, mean_interval, bootstrap_interval, interval, normality])
@pytest.mark.parametrize(
    ("sample", "words"),
    [([], "has no measurement"), ([1, math.nan], "measurement 2"), ([math.inf, 1], "measurement 1")],
)
def test_samples_without_a_result_are_refused(function, sample: list[float], words: str):
    with pytest.raises(ValueError, match=words + r".*\.$"):
        function(sample)


@pytest.mark.parametrize("confidence", [0, 1, 95, -0.5, math.nan])
def test_a_confidence_is_a_fraction(confidence: float):
    for wrong in (mean_interval, bootstrap_interval, interval):
        with pytest.raises(ValueError, match=r"0\.95 for 95 %"):
            wrong([1, 2, 3], confidence=confidence)
    with pytest.raises(ValueError, match=r"0\.95 for 95 %"):
        compare([1, 2], [1, 2], confidence)
