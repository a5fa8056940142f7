"""Statistics of samples: summaries, intervals, comparisons. Pure functions; what each is for: docs/methodology.md.

A sample is a sequence of measurements in any one unit, and every answer is in that unit unless it says per cent.
SciPy computes; it is imported on first use, because it takes about a second and most runs need none of it.
"""

from .comparison import Comparison, Method, compare
from .intervals import (
    Interval,
    IntervalMethod,
    bootstrap_interval,
    interval,
    mean_interval,
    normality,
    proportion_interval,
)
from .summary import VITALS_HEAD, Moments, Summary

__all__ = [
    "VITALS_HEAD",
    "Comparison",
    "Interval",
    "IntervalMethod",
    "Method",
    "Moments",
    "Summary",
    "bootstrap_interval",
    "compare",
    "interval",
    "mean_interval",
    "normality",
    "proportion_interval",
]
