"""Confidence intervals of a mean, and a sample's figures."""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

NORMALITY_THRESHOLD = 0.05
"""A Shapiro-Wilk p value below this rejects that a sample is normally distributed."""

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
    """Return the mean's interval by Student's t, correct for normally distributed measurements.

    Raises ValueError for an empty sample or a measurement that is not finite.
    """
    summary = Summary.of(sample)
    if summary.stddev is None:
        return Interval(summary.mean, None, None, confidence)
    half = t_value(confidence, summary.n - 1) * summary.stddev / math.sqrt(summary.n) if summary.stddev else 0.0
    return Interval(summary.mean, summary.mean - half, summary.mean + half, confidence)


def interval(sample: Sequence[float], confidence: float = 0.95) -> Interval:
    """Return the mean's interval by the method that suits the sample.

    Student's t where normality is not rejected (Shapiro-Wilk), else the bias-corrected and accelerated bootstrap (BCa;
    Efron 1987), which assumes no distribution and gives the same for the same sample. Two measurements cannot be tested
    or usefully resampled, and are presumed normal. Raises ValueError as :func:`mean_interval`.
    """
    student = mean_interval(sample, confidence)
    if len(sample) < 3 or student.low == student.high:
        return student
    import numpy as np
    from scipy import stats

    with warnings.catch_warnings():
        # above 5000 measurements p is approximate, which is enough here; undefined BCa gives nan, which is seen below
        warnings.simplefilter("ignore")
        if float(stats.shapiro(sample).pvalue) >= NORMALITY_THRESHOLD:
            return student
        for method in ("BCa", "percentile"):  # BCa is not defined where measurements differ by rounding only
            ends = stats.bootstrap(
                (np.array(sample, dtype=float),),
                np.mean,
                batch=max(1, _BATCH_VALUES // len(sample)),
                confidence_level=confidence,
                method=method,
                rng=np.random.default_rng(0),
            ).confidence_interval
            if math.isfinite(ends.low) and math.isfinite(ends.high):
                break
    return Interval(student.estimate, float(ends.low), float(ends.high), confidence)


def t_value(confidence: float, freedom: float) -> float:
    """Return Student's t: the distribution lies within ±t with this confidence."""
    from scipy.special import stdtrit  # takes a third of the time that scipy.stats takes to import

    return float(stdtrit(freedom, (1 + confidence) / 2))


def check_sample(sample: Sequence[float], least: int = 1) -> list[float]:
    """Return the *sample* as floats. Raises ValueError for fewer than *least*, or for one that is not finite."""
    values = [float(value) for value in sample]
    if len(values) < least or not all(map(math.isfinite, values)):
        shown = ", ".join(map(str, values[:10])) or "none"
        raise ValueError(f"expected at least {least} finite measurements, not {shown}")
    return values


def confidence_text(confidence: float) -> str:
    """Return ``95 %`` for 0.95."""
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
        """Return the summary of a *sample*. Raises ValueError as :func:`check_sample`."""
        values = check_sample(sample)
        least, most = min(values), max(values)
        return cls(
            n=len(values),
            # rounding would put the mean of 0.1, 0.1, 0.1 outside
            mean=min(max(statistics.fmean(values), least), most),
            stddev=statistics.stdev(values) if len(values) > 1 else None,
            minimum=least,
            median=statistics.median(values),
            maximum=most,
        )
