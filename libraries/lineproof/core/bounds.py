"""The two ends between which a figure certainly lies, and the limit that it is compared with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
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
