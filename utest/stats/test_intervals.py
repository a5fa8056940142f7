import math
import random
import statistics
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from lineproof.stats import (
    VITALS_HEAD,
    Summary,
    bootstrap_interval,
    compare,
    interval,
    mean_interval,
    normality,
)
from lineproof.stats.intervals import t_value

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


# --- intervals


def test_a_t_interval_matches_the_textbook():
    # t(4 degrees, 95 %) = 2.776; the standard error of 1..5 is sqrt(2.5 / 5)
    found = mean_interval([1, 2, 3, 4, 5])
    assert (found.low, found.high) == pytest.approx(
        (3 - 2.7764 * math.sqrt(0.5), 3 + 2.7764 * math.sqrt(0.5)), abs=1e-4
    )


@settings(max_examples=10, deadline=None)
@given(st.lists(measurements, min_size=4, max_size=30).filter(lambda sample: len(set(sample)) > 3), st.integers(0, 9))
def test_a_bootstrap_interval_is_inside_the_sample_and_repeatable(sample: list[float], seed: int):
    found = bootstrap_interval(sample, seed=seed)
    # means are rounded
    room = 1e-12 * max(map(abs, sample))
    assert min(sample) - room <= found.low <= found.high <= max(sample) + room
    assert found == bootstrap_interval(sample, seed=seed)


def test_the_percentile_bootstrap_is_used_where_bca_is_not_defined():
    found = bootstrap_interval([1e17, 1e17 + 16, 1e17])
    assert found.low is not None and math.isfinite(found.low)
    assert found.low <= found.estimate <= found.high


# --- which interval


def drawn(kind: str, n: int) -> list[float]:
    draw = random.Random(5)
    return [draw.gauss(1e7, 1e3) if kind == "normal" else draw.lognormvariate(0, 1.5) for _ in range(n)]


def test_a_normal_sample_uses_t():
    sample = drawn("normal", 40)
    assert interval(sample) == mean_interval(sample) and interval(sample).low < 1e7 < interval(sample).high


def test_a_skewed_sample_uses_the_bootstrap():
    found = interval(drawn("skewed", 40))
    assert found == bootstrap_interval(drawn("skewed", 40))
    assert found.high - found.estimate > found.estimate - found.low  # as skewed as the sample


def test_normality_survives_a_small_spread_on_a_large_mean():
    sample = drawn("normal", 30)
    assert normality([value + 1e12 for value in sample]) == pytest.approx(normality(sample), rel=1e-3)


# --- degenerate samples


@pytest.mark.parametrize("method", [mean_interval, bootstrap_interval, interval])
def test_one_measurement_has_no_interval(method):
    found = method([5.0])
    assert (found.estimate, found.low, found.high) == (5, None, None)


@pytest.mark.parametrize("method", [mean_interval, bootstrap_interval, interval])
@pytest.mark.parametrize("n", [2, 3, 10])
def test_equal_measurements_have_an_interval_of_no_width(method, n: int):
    found = method([0.1] * n)
    assert (found.low, found.high) == (0.1, 0.1)
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


# -- Student's t is SciPy's, though SciPy is not imported


# as the logarithm: small ones matter, and there are large ones
freedoms = st.floats(0, 9).map(lambda power: 10**power)
confidences = st.one_of(st.floats(0.01, 0.999), st.floats(3, 10).map(lambda digits: 1 - 10**-digits))


@settings(max_examples=300, deadline=None)
@given(confidences, freedoms)
def test_it_is_scipys(confidence: float, freedom: float) -> None:
    # what lies outside has few digits where the confidence is near 1: SciPy takes the half of it from 1 again
    digits = 1e-9 + 1e-15 / (1 - confidence)
    assert t_value(confidence, freedom) == pytest.approx(special.stdtrit(freedom, (1 + confidence) / 2), rel=digits)


@pytest.mark.slow
def test_a_comparison_imports_neither_scipy_nor_numpy() -> None:
    code = "import sys; from lineproof.stats import compare; compare([1, 2, 3], [2, 3, 5]); print({*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "'lineproof.stats'" in done.stdout and not {"'scipy'", "'numpy'"} & {*done.stdout.split(", ")}
