"""Confidence intervals of a mean, and a sample's figures."""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

NORMALITY_THRESHOLD = 0.05
"""A Shapiro-Wilk p value below this rejects that a sample is normally distributed."""

RESAMPLES = 9999
_BATCH_VALUES = 5_000_000
"""Measurements in memory at once in the bootstrap: 40 MB."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval about *estimate*, all in the sample's unit.

    *low* and *high* are both None for a single measurement, whose spread is unknown. Of equal measurements they are
    equal, which is no proof that there is no spread.
    """

    estimate: float
    low: float | None
    high: float | None
    confidence: float


def mean_interval(sample: Sequence[float], confidence: float = 0.95) -> Interval:
    """The mean's interval by Student's t, correct for normally distributed measurements.

    Raises ValueError for an empty sample, a measurement that is not finite, or a confidence outside 0 … 1.
    """
    found = Summary.of(sample)
    check_confidence(confidence)
    if found.stddev is None:
        return Interval(found.mean, None, None, confidence)
    half = t_value(confidence, found.n - 1) * found.stddev / math.sqrt(found.n)
    return Interval(found.mean, found.mean - half, found.mean + half, confidence)


def bootstrap_interval(sample: Sequence[float], confidence: float = 0.95, seed: int = 0) -> Interval:
    """The mean's interval by the bias-corrected and accelerated bootstrap (BCa; Efron 1987).

    It assumes no distribution. The same sample and *seed* give the same interval. Where BCa is not defined (for example
    where measurements differ by rounding only) the percentile bootstrap is used. Raises ValueError as
    :func:`mean_interval`.
    """
    student = mean_interval(sample, confidence)
    if student.low == student.high:
        return student
    import numpy as np
    from scipy import stats

    low = high = math.nan
    for method in ("BCa", "percentile"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # undefined BCa warns and gives nan, which is handled below
            found = stats.bootstrap(
                (np.array(sample, dtype=float),),
                np.mean,
                n_resamples=RESAMPLES,
                batch=max(1, _BATCH_VALUES // len(sample)),
                confidence_level=confidence,
                method=method,
                rng=np.random.default_rng(seed),
            ).confidence_interval
        low, high = float(found.low), float(found.high)
        if math.isfinite(low) and math.isfinite(high):
            break
    return Interval(student.estimate, low, high, confidence)


def normality(sample: Sequence[float]) -> float | None:
    """The p value of the Shapiro-Wilk test: the probability of a sample at least as unlike a normal distribution.

    None where the test is not defined: fewer than three measurements, or all equal. With few measurements a high p
    proves little. Raises ValueError as :func:`mean_interval`.
    """
    values = check_sample(sample)
    summary = Summary.of(values)
    if summary.n < 3 or not summary.stddev or summary.minimum == summary.maximum:
        return None
    from scipy import stats

    # the result does not depend on the unit; scaled, because a mean much larger than the spread costs digits
    scaled = [(value - summary.mean) / summary.stddev for value in values]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # above 5000 measurements p is approximate, which is enough here
        return float(stats.shapiro(scaled).pvalue)


def interval(sample: Sequence[float], confidence: float = 0.95) -> Interval:
    """The mean's interval by the method that suits the sample.

    Student's t where normality is not rejected (Shapiro-Wilk, p at least 0.05), else the BCa bootstrap. Two
    measurements cannot be tested or usefully resampled, and are presumed normal. Raises ValueError as
    :func:`mean_interval`.
    """
    p = normality(sample)
    if p is None or p >= NORMALITY_THRESHOLD:
        return mean_interval(sample, confidence)
    return bootstrap_interval(sample, confidence)


_MANY = 1000.0
"""Degrees of freedom from which four terms of an expansion about the normal distribution give nine digits."""


@lru_cache(1024)
def t_value(confidence: float, freedom: float) -> float:
    """Student's t: the distribution lies within ±t with this confidence. Infinite *freedom*: normal distribution.

    SciPy has it too, but its import takes three times as long as a trend over a million trials. To nine digits at
    least; a test compares it with SciPy's. By Newton's method: from the normal distribution's value, which is too
    small, it comes nearer from below, because what lies outside of ±t is a convex function of t.
    """
    found = z = NormalDist().inv_cdf((1 + confidence) / 2)
    if freedom >= _MANY:  # Abramowitz and Stegun 26.7.5
        terms = (
            z * (z**2 + 1) / 4,
            z * (5 * z**4 + 16 * z**2 + 3) / 96,
            z * (3 * z**6 + 19 * z**4 + 17 * z**2 - 15) / 384,
            z * (79 * z**8 + 776 * z**6 + 1482 * z**4 - 1920 * z**2 - 945) / 92160,
        )
        return z + sum(term / freedom**power for power, term in enumerate(terms, 1))
    constant = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    for _ in range(100):
        density = constant * (1 + found * found / freedom) ** (-(freedom + 1) / 2)
        step = (_outside(found, freedom, density) - (1 - confidence)) / (2 * density)
        found += step
        if step <= 1e-13 * found:
            break
    return found


def _outside(t: float, freedom: float, density: float) -> float:
    """The probability of more than ±t: the incomplete beta function I(a, b, x). *density*: of the distribution at t."""
    a, b, x = freedom / 2, 0.5, freedom / (freedom + t * t)
    if x < (a + 1) / (a + b + 2):
        return density * t * _fraction(a, b, x) / a
    return 1 - density * t * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    ratio = d = 1 / (1 - (a + b) * x / (a + 1))
    c = 1.0
    for m in range(1, 1000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / (1 + term * d)
            c = 1 + term / c
            ratio *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return ratio


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
