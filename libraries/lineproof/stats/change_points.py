"""Where the level of a series changes: the exact optimum of squared errors plus a penalty for each change.

Optimal partitioning (Jackson et al. 2005), which finds what PELT (Killick et al. 2012) and ruptures'
``Pelt(model="l2")`` find; a test compares them. Series of runs are short, so that the quadratic time does not matter,
and ruptures takes longer to import than a trend may take to answer.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise

from .comparison import Comparison, compare
from .intervals import check_sample

LEAST_SEGMENT = 3
"""Values between two changes, at least: fewer show no spread worth the name."""

PENALTY = 4.0
"""Times noise variance times ln(number of values), for each change; 2 is the BIC's, more finds fewer.

Of series without a change at most FALSE_ALARMS show one, whatever their length; a step of 2.5 standard deviations in
the middle of 20 values is found in nine of ten.
"""

FALSE_ALARMS = 0.05
"""Share of series without a change in which one is seen, at most: by 2 000 series of each of 6 to 40 normal values.
"""

LEAST_NOISE = 0.0005
"""The noise is taken as this ratio of the median at least: steps below about 0.1 % are no changes."""

_OF_DIFFERENCE = 0.6745 * math.sqrt(2)
"""Median of the absolute differences of neighbours, in standard deviations of normally distributed values."""


def change_points(values: Sequence[float]) -> list[tuple[int, Comparison]]:
    """Return where the level changed: the place of the first value after it, and the levels before and after compared.

    Only changes whose 95 % interval (Welch) leaves out 0 are given; beside one that does not, the levels are joined.
    Raises ValueError for a value that is not finite.
    """
    if len(values) < 2 * LEAST_SEGMENT:
        return []
    begins = best_partition(values, penalty_of(values))
    while begins:
        edges = [0, *begins, len(values)]
        parts = [values[start:end] for start, end in pairwise(edges)]
        sizes = [compare(before, after) for before, after in pairwise(parts)]
        doubtful = [place for place, size in enumerate(sizes) if not size.significant]
        if not doubtful:
            return list(zip(begins, sizes, strict=True))
        del begins[min(doubtful, key=lambda place: abs(sizes[place].difference))]
    return []


def penalty_of(values: Sequence[float]) -> float:
    """Return what a change costs: PENALTY x noise² x ln n.

    The noise is the standard deviation about the level, from the differences of neighbours, which changes do not alter.
    """
    median_step = statistics.median(abs(after - before) for before, after in pairwise(values))
    noise = max(median_step / _OF_DIFFERENCE, LEAST_NOISE * abs(statistics.median(values)))
    return PENALTY * noise**2 * math.log(len(values))


def best_partition(values: Sequence[float], penalty: float) -> list[int]:
    """Return where new segments begin, in order. Takes quadratic time. Raises ValueError for what is no sample."""
    import numpy as np

    given = np.asarray(check_sample(values))
    count = len(given)
    given = given - given.mean()  # a level much above the noise costs digits
    sums = np.concatenate(([0.0], np.cumsum(given)))
    # for each place: the least cost of what is before it, less its squares, which all partitions share
    before = np.full(count + 1, np.inf)
    before[0] = 0.0
    begins = np.zeros(count + 1, dtype=int)
    lengths = np.arange(count, 0, -1)
    for end in range(LEAST_SEGMENT, count + 1):
        starts = end - LEAST_SEGMENT + 1
        costs = before[:starts] - (sums[end] - sums[:starts]) ** 2 / lengths[count - end : count - end + starts]
        begins[end] = place = int(costs.argmin())
        before[end] = costs[place] + penalty
    places, end = [], count
    while end := int(begins[end]):
        places.append(end)
    return places[::-1]
