"""Where the level of a series changes."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.stats.change_points import LEAST_SEGMENT, best_partition, change_points, penalty_of


def steps(*levels: float, count: int = 10, spread: float = 0.002, seed: int = 1) -> list[float]:
    chance = random.Random(seed)
    return [chance.gauss(level, spread * abs(level)) for level in levels for _ in range(count)]


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


def test_two_changes_are_found_with_their_sizes() -> None:
    found = change_points(steps(5.4e6, 5.2e6, 5.5e6))
    assert [place for place, _ in found] == [10, 20]
    assert [round(size.relative_percent or 0, 1) for _, size in found] == pytest.approx([-3.7, 5.8], abs=0.2)


def test_noise_alone_hardly_ever_has_a_change_and_a_step_nearly_always() -> None:
    alarms = [bool(change_points(steps(5e6, count=40, seed=seed))) for seed in range(100)]
    found = [bool(change_points(steps(5e6, 0.993 * 5e6, count=20, seed=seed))) for seed in range(100)]
    assert sum(alarms) <= 3 and sum(found) >= 95


def test_one_bad_run_is_no_change() -> None:
    values = steps(5e6, count=20)
    values[10] = 3e6
    assert change_points(values) == []


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 5, [1.0, 1.0, 2.0, 2.0, 2.0]])
def test_too_few_values_have_no_change(values: list[float]) -> None:
    assert change_points(values) == []


def test_figures_without_noise_change_where_they_step_and_not_by_rounding() -> None:
    assert [place for place, _ in change_points([5e6] * 5 + [4.9e6] * 5)] == [5]
    assert change_points([5e6] * 5 + [5e6 + 1] * 5) == []


def test_an_unknown_figure_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        change_points([1.0] * 9 + [float("nan")])


def test_the_unit_does_not_matter() -> None:
    values = steps(5.4, 5.2)
    assert [place for place, _ in change_points(values)] == [
        place for place, _ in change_points([1e6 * v for v in values])
    ]
    assert penalty_of([1e3 * v for v in values]) == pytest.approx(1e6 * penalty_of(values))
