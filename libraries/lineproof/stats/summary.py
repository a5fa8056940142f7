"""A sample's figures: number, extremes, median, mean and standard deviation."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

VITALS_HEAD = "    N           Min           Max        Median           Avg        Stddev"
"""The head of the table with rows of :meth:`Summary.vitals`, in the columns of ministat(1)."""


def check_sample(sample: Sequence[float], least: int = 1, what: str = "sample") -> list[float]:
    """The *sample* as floats. Raises ValueError that names *what*, for fewer than *least* or for a value not finite."""
    values = [float(value) for value in sample]
    if len(values) < least:
        needed = "one measurement" if least == 1 else f"{least} measurements"
        raise ValueError(f"the {what} has {len(values) or 'no'} measurement(s); this needs at least {needed}.")
    for number, value in enumerate(values, start=1):
        if not math.isfinite(value):
            raise ValueError(f"measurement {number} of the {what} is {value}; every one must be a finite number.")
    return values


def check_confidence(confidence: float) -> None:
    """Raise ValueError unless 0 < *confidence* < 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence of {confidence} cannot be: it is a fraction between 0 and 1, 0.95 for 95 %.")


def mean(sample: Sequence[float]) -> float:
    """The mean, kept within the *sample*: rounding would put the mean of 0.1, 0.1, 0.1 outside."""
    return min(max(statistics.fmean(sample), min(sample)), max(sample))


def confidence_text(confidence: float) -> str:
    """``95 %`` for 0.95."""
    return f"{100 * confidence:.6g} %"


@dataclass(frozen=True, kw_only=True)
class Summary:
    """All figures of a sample, in its unit. The median of an even number is the mean of the middle two.

    *stddev*: of a sample (divided by n - 1); None for a single measurement.
    """

    n: int
    mean: float
    stddev: float | None
    minimum: float
    median: float
    maximum: float

    @classmethod
    def of(cls, sample: Sequence[float]) -> Summary:
        """The summary of a *sample*. Raises ValueError as :func:`check_sample`."""
        values = check_sample(sample)
        least, most = min(values), max(values)
        return cls(
            n=len(values),
            mean=mean(values),
            stddev=statistics.stdev(values) if len(values) > 1 else None,
            minimum=least,
            median=statistics.median(values),
            maximum=most,
        )

    def vitals(self, symbol: str = "x") -> str:
        """One row as ministat(1) prints it: n, minimum, maximum, median, mean, standard deviation to 8 digits."""
        figures = (self.minimum, self.maximum, self.median, self.mean)
        spread = f"{'-':>13}" if self.stddev is None else f"{self.stddev:13.8g}"
        return f"{symbol} {self.n:3d} " + " ".join(f"{figure:13.8g}" for figure in figures) + f" {spread}"
