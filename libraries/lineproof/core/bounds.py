"""The two ends between which a figure certainly lies, and the limit that it is compared with.

Exact binomial bounds (Clopper and Pearson, 1934) are here, too: SciPy has them, and takes half a second to import. It
is asked for large samples only.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median_high, median_low

from .json_types import OpenEnd


@dataclass(frozen=True, slots=True)
class Bounds:
    """A figure that lies between ``low`` and ``high``; equal ends: it is known exactly. Raises ValueError for NaN."""

    low: float
    high: OpenEnd

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"expected low <= high, got {self.low} and {self.high}")

    @property
    def is_exact(self) -> bool:
        """Return whether both ends are one figure."""
        return self.low == self.high


UNKNOWN = Bounds(0.0, math.inf)
"""The bounds of a figure of which nothing is known."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The promise of a figure: at least, or at most, ``value``."""

    value: float
    at_least: bool = False

    def keeps(self, figure: float) -> bool:
        """Return whether *figure* keeps the promise."""
        return figure >= self.value if self.at_least else figure <= self.value

    def worse_end(self, bounds: Bounds) -> float:
        """Return the end of *bounds* that is worse for the router."""
        return bounds.low if self.at_least else bounds.high

    def better_end(self, bounds: Bounds) -> float:
        """Return the end of *bounds* that is better for the router."""
        return bounds.high if self.at_least else bounds.low

    def median(self, figures: Sequence[Bounds], perfect: int = 0) -> Bounds:
        """Return the median of the *figures* of several trials, and of *perfect* trials more.

        A trial of which nothing is known moves it by one place at most: one of nine costs no verdict. Even numbers of
        trials have two medians, and it lies between them.
        """
        best = [math.inf if self.at_least else 0.0] * perfect
        lows, highs = [item.low for item in figures] + best, [item.high for item in figures] + best
        return Bounds(median_low(lows), median_high(highs))


_MOST_SUMMED = 100_000
"""The largest sample whose terms are summed. A record of 10^18 probe frames would take years."""


def at_most(k: int, n: int, p: float) -> float:
    """Return the probability of at most *k* of *n*, each with probability *p*."""
    if k < 0 or p >= 1:
        return 0.0 if k < n else 1.0
    if k >= n or p <= 0:
        return 1.0
    if k > n * p + 1:
        return 1.0 - at_most(n - k - 1, n, 1 - p)  # sum the shorter tail
    if n > _MOST_SUMMED:
        from scipy.special import betaincc  # of a sample so large only, as it takes long to import

        return float(betaincc(k + 1, n - k, p))
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


def least_mean(shares: Sequence[float], error: float = 0.05) -> float:
    """Return the least mean of a quantity from 0 to 1 of which *shares* are a sample, wrong with about that *error*.

    As often as the *k* largest were seen, it is at least as large as the smallest of these. Other bounds of a mean are
    next to 0 where all of the sample is alike, and small.
    """
    count, falling = len(shares), sorted(shares, reverse=True)
    # of thousands, some ranks are enough
    ranks = range(1, count + 1, 1 + count // 100)
    return max((falling[k - 1] * (1 - highest_share(count - k, count, error)) for k in ranks), default=0.0)


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
