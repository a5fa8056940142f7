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

Of series of 20 values that have no change about one in twenty shows one, of longer ones fewer; a step of 2.5 standard
deviations in their middle is found in nine of ten.
"""

LEAST_NOISE = 0.0005
"""The noise is taken as this ratio of the median at least: steps below about 0.1 % are no changes."""

_OF_DIFFERENCE = 0.6745 * math.sqrt(2)
"""Median of the absolute differences of neighbours, in standard deviations of normally distributed values."""


def noise(values: Sequence[float]) -> float:
    """The standard deviation about the level, from the differences of neighbours, which a few changes do not alter."""
    steps = [abs(after - before) for before, after in pairwise(values)]
    found = statistics.median(steps) / _OF_DIFFERENCE if steps else 0.0
    return max(found, LEAST_NOISE * abs(statistics.median(values)))


def penalty_of(values: Sequence[float]) -> float:
    """Return what a change costs in :func:`best_partition`: PENALTY x noise² x ln n."""
    return PENALTY * noise(values) ** 2 * math.log(len(values))


def best_partition(values: Sequence[float], penalty: float) -> list[int]:
    """Where new segments begin, in order. Takes quadratic time. Raises ValueError for what is no sample."""
    import numpy as np

    given = np.asarray(check_sample(values))
    count = len(given)
    given = given - given.mean()  # a level much above the noise costs digits
    sums = np.concatenate(([0.0], np.cumsum(given)))
    # for each place: the least cost of what is before it, less its squares, which all partitions share
    before = np.full(count + 1, np.inf)
    before[0] = 0.0
    begins = np.zeros(count + 1, dtype=int)
    parts = 1.0 / np.arange(count, 0, -1)  # of the lengths
    for end in range(LEAST_SEGMENT, count + 1):
        starts = end - LEAST_SEGMENT + 1
        costs = sums[end] - sums[:starts]
        costs *= costs
        costs *= parts[count - end : count - end + starts]
        np.subtract(before[:starts], costs, out=costs)
        begins[end] = place = int(costs.argmin())
        before[end] = costs[place] + penalty
    found, end = [], count if count >= LEAST_SEGMENT else 0
    while end := int(begins[end]):
        found.append(end)
    return found[::-1]


def change_points(values: Sequence[float]) -> list[tuple[int, Comparison]]:
    """Where the level changed: the place of the first value after it, and the segments before and after compared.

    Only changes whose 95 % interval (Welch) leaves out 0 are given; beside one that does not, the segments are
    joined. Raises ValueError for a value that is not finite.
    """
    if len(values) < 2 * LEAST_SEGMENT:
        return []
    begins = best_partition(values, penalty_of(values))
    while begins:
        edges = [0, *begins, len(values)]
        found = [
            compare(values[one:two], values[two:three])
            for one, two, three in zip(edges, edges[1:], edges[2:], strict=False)
        ]
        doubtful = [place for place, item in enumerate(found) if not item.significant]
        if not doubtful:
            return list(zip(begins, found, strict=True))
        del begins[min(doubtful, key=lambda place: abs(found[place].difference))]
    return []
