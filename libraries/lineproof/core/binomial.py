"""Exact binomial bounds (Clopper and Pearson, 1934). SciPy has them too, and takes half a second to import."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from functools import lru_cache


def at_most(k: int, n: int, p: float) -> float:
    """Return the probability of at most *k* of *n*, each with probability *p*."""
    if k < 0 or p >= 1:
        return 0.0 if k < n else 1.0
    if k >= n or p <= 0:
        return 1.0
    if k > n * p + 1:
        return 1.0 - at_most(n - k - 1, n, 1 - p)  # sum the shorter tail
    term = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(p) + (n - k) * math.log1p(-p)
    total = part = math.exp(term)
    for i in range(k, 0, -1):
        part *= i / (n - i + 1) * (1 - p) / p
        total += part
        if part < total * 1e-15:
            break
    return min(1.0, total)


@lru_cache(maxsize=4096)
def highest_share(k: int, n: int, error: float = 0.05) -> float:
    """Return the highest share of which *k* of *n* may be a sample, wrong with probability *error*."""
    if k >= n:
        return 1.0
    low, high = k / n, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if at_most(k, n, middle) > error else (low, middle)
    return high


@lru_cache(maxsize=4096)
def ranks(n: int, share: float, low_error: float, high_error: float) -> tuple[int, int]:
    """Return the ranks (1 to *n*; n + 1: none) of the sorted samples that bound the quantile *share*.

    The quantile is below the first with probability *low_error* at most, above the second with *high_error*.
    """
    spread = 8 * math.sqrt(n * share * (1 - share)) + 8
    first, last = max(0, int(n * share - spread)), min(n, int(n * share + spread)) + 1
    # at_most grows with the rank
    low = bisect_right(range(first, last), low_error, key=lambda rank: at_most(rank - 1, n, share)) + first - 1
    high = bisect_left(range(first, last), 1 - high_error, key=lambda rank: at_most(rank - 1, n, share)) + first
    return max(0, low), high if high < last else n + 1
