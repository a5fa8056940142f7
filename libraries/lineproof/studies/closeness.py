"""How far figures are from published ones, in both scales: per cent of the published one, and points of line rate.

Points alone would flatter slow routers, and per cent fast ones at the line's limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..units import counted

WITHIN = (5.0, 10.0)
"""Per cent of the published figure."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A figure of ours and the published one in one unit. ``line``: one direction's line rate in it; None: no rate."""

    ours: float
    published: float
    line: float | None = None

    @property
    def percent(self) -> float:
        """The error in per cent of the published figure; infinite where that is 0 and ours is not."""
        if not self.published:
            return math.inf if self.ours else 0.0
        return 100 * abs(self.ours / self.published - 1)

    @property
    def points(self) -> float | None:
        """The error in percentage points of line rate."""
        return 100 * abs(self.ours - self.published) / self.line if self.line else None


def closeness_words(pairs: Sequence[Pair]) -> str:
    """A sentence with the median and the 95th percentile of the errors in both scales, and how many are small; ""."""
    if not pairs:
        return ""
    percents = [pair.percent for pair in pairs]
    small = ", ".join(f"{sum(each <= most for each in percents)} within {most:g} %" for most in WITHIN)
    words = f"error of {counted(len(pairs), 'figure')}: {_spread(percents, ' %')}; {small}"
    points = [pair.points for pair in pairs if pair.points is not None]
    return f"{words}; in points of line rate: {_spread(points)}" if points else words


def _spread(errors: Sequence[float], unit: str = "") -> str:
    ordered = sorted(errors)
    middle, high = (ordered[math.ceil(share * len(ordered)) - 1] for share in (0.5, 0.95))
    return f"median {middle:.1f}{unit}, 95th percentile {high:.1f}{unit}"
