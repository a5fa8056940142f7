"""Comparisons of samples, and intervals of one."""

import math
import random
import statistics
import sys
from itertools import pairwise

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.stats import (
    LEAST_SEGMENT,
    Summary,
    best_partition,
    change_points,
    compare,
    holm_levels,
    mean_interval,
)
from support.paths import DATA

DATA = DATA / "ministat"
PUBLISHED = yaml.safe_load((DATA / "published.yaml").read_text(encoding="utf-8"))
# as rates and latencies are: a spread that arithmetic on floats can see
measurements = st.integers(-(10**9), 10**9).map(lambda number: number / 1000)
spread = st.lists(measurements, min_size=2, max_size=30).filter(lambda sample: len(set(sample)) > 1)
confidences = st.sampled_from([0.8, 0.9, 0.95, 0.98, 0.99, 0.995])


@pytest.mark.parametrize("name", PUBLISHED)
def test_pooled_comparison_reproduces_published_ministat_output(name: str):
    case = PUBLISHED[name]
    found = compare(Summary(**case["x"]), Summary(**case["y"]), 0.95, "pooled")
    relative = found.relative_percent, found.relative_half_width_percent
    printed = [f"{figure:g}" for figure in (found.difference, found.half_width, *relative)]
    assert (printed if found.significant else []) == case["answer"]


@settings(max_examples=50, deadline=None)
@given(spread, spread, confidences)
def test_welch_agrees_with_scipy(one: list[float], two: list[float], confidence: float):
    from scipy.stats import ttest_ind  # takes a second of every run that collects this file

    found = compare(one, two, confidence)
    theirs = ttest_ind(two, one, equal_var=False).confidence_interval(confidence)
    size = max(map(abs, one + two))
    assert found.difference - found.half_width == pytest.approx(theirs.low, rel=1e-6, abs=1e-6 * size)
    assert found.difference + found.half_width == pytest.approx(theirs.high, rel=1e-6, abs=1e-6 * size)


def test_a_reference_may_be_negative_and_zero_has_no_relative_figures():
    found = compare([-10, -11, -12], [-1, -2, -3])
    assert found.relative_percent < 0 < found.relative_half_width_percent
    found = compare([-1, 0, 1], [99, 100, 101], method="pooled")
    assert found.significant and found.relative_percent is None


def steps(*levels: float, count: int = 10) -> list[float]:
    chance = random.Random(1)
    return [chance.gauss(level, 0.002 * abs(level)) for level in levels for _ in range(count)]


def cost(values: list[float], begins: list[int], penalty: float) -> float:
    edges = [0, *begins, len(values)]
    parts = [values[one:two] for one, two in pairwise(edges)]
    means = [sum(part) / len(part) for part in parts]
    errors = sum((value - mean) ** 2 for part, mean in zip(parts, means, strict=True) for value in part)
    return errors + penalty * len(begins)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-50, 50).map(float), min_size=6, max_size=40), st.floats(1, 500))
def test_the_partition_is_as_good_as_that_of_ruptures(values: list[float], penalty: float) -> None:
    import numpy as np
    import ruptures

    theirs = ruptures.Pelt(model="l2", min_size=LEAST_SEGMENT, jump=1).fit(np.array(values)).predict(pen=penalty)[:-1]
    ours = best_partition(values, penalty)
    # PELT's pruning may miss the optimum where segments have a least length; ours is never worse
    assert cost(values, ours, penalty) <= cost(values, theirs, penalty) + 1e-6
    assert all(two - one >= LEAST_SEGMENT for one, two in zip([0, *ours], [*ours, len(values)], strict=True))


ONE_BAD_RUN = [*steps(5e6, count=20)[:10], 3e6, *steps(5e6, count=20)[11:]]


@pytest.mark.parametrize(
    ("values", "places"),
    [
        (steps(5.4e6, 5.2e6, 5.5e6), [10, 20]),
        (ONE_BAD_RUN, []),
        *((few, []) for few in ([], [1.0], [1.0] * 5, [1.0, 1.0, 2.0, 2.0, 2.0])),
        # without noise: where they step, and not by rounding
        ([5e6] * 5 + [4.9e6] * 5, [5]),
        ([5e6] * 5 + [5e6 + 1] * 5, []),
    ],
)
def test_changes_are_found_where_the_level_changes(values: list[float], places: list[int]) -> None:
    assert [place for place, _ in change_points(values)] == places


def test_holms_levels_are_those_of_his_example():
    # ordered p: 0.005, 0.01, 0.03, 0.04 at 5 %: the first two are rejected
    assert holm_levels([0.01, 0.04, 0.03, 0.005], 0.05) == pytest.approx([0.05 / 3, 0.025, 0.025, 0.0125])
    assert holm_levels([], 0.05) == []


@settings(max_examples=50, deadline=None)
@given(st.lists(measurements, min_size=1, max_size=30))
def test_a_summary_is_ordered_and_right(sample: list[float]):
    found = Summary.of(sample)
    assert found.minimum <= found.median <= found.maximum
    assert found.minimum <= found.mean <= found.maximum
    assert found.n == len(sample) and found.median == statistics.median(sample)
    assert (found.stddev is None) is (len(sample) == 1)


def test_an_interval_matches_the_textbook_and_is_none_of_one_measurement(monkeypatch):
    # t(4 degrees, 95 %) = 2.776; the standard error of 1..5 is sqrt(2.5 / 5)
    found, half = mean_interval([1, 2, 3, 4, 5]), 2.7764 * math.sqrt(0.5)
    assert (found.low, found.high) == pytest.approx((3 - half, 3 + half), abs=1e-4)
    for name in ("scipy", "scipy.special"):  # take half a second to import
        monkeypatch.setitem(sys.modules, name, None)
    found = mean_interval([5.0])
    assert (found.estimate, found.low, found.high) == (5, None, None)
    for n in (2, 3, 10):
        found = mean_interval([0.1] * n)
        assert (found.low, found.high) == (0.1, 0.1)


@pytest.mark.parametrize("sample", [[], [1, math.nan], [math.inf, 1], [1]])
def test_samples_without_a_result_are_refused(sample: list[float]):
    for reference in ([1, 2], Summary.of([1])):
        with pytest.raises(ValueError, match="at least"):
            compare(reference, sample)
    if len(sample) != 1:
        with pytest.raises(ValueError, match="finite measurements"):
            mean_interval(sample)
