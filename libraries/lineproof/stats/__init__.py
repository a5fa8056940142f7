"""Statistics of samples: summaries, intervals, comparisons. Their use: docs/ci.md.

A sample is a sequence of measurements in one unit; results are in that unit unless they are in per cent. SciPy is
imported on first use, because the import takes about a second and most runs do not need it.
"""

from .comparison import Comparison, Method, RelativeChange, compare, holm_levels
from .intervals import Interval, Summary, interval, mean_interval

__all__ = [
    "Comparison",
    "Interval",
    "Method",
    "RelativeChange",
    "Summary",
    "compare",
    "holm_levels",
    "interval",
    "mean_interval",
]
