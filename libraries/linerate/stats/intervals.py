"""Where the true figure lies: confidence intervals of a mean, of any statistic, and of a probability."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from .summary import Summary, checked, checked_confidence, confidence_text, mean

DOUBT = 0.05
"""A Shapiro-Wilk p value below this rejects that a sample is normally distributed."""

RESAMPLES = 9999
_AT_ONCE = 5_000_000
"""Measurements held at once by the bootstrap: 40 MB."""

SMALL = 20
"""Below so many measurements a bootstrap interval is markedly narrower than it claims to be."""


class IntervalMethod(Enum):
    """How an interval was found."""

    STUDENT_T = "Student's t"
    BCA = "bootstrap, BCa"
    PERCENTILE = "bootstrap, percentile"
    WILSON = "Wilson"
    CLOPPER_PEARSON = "Clopper-Pearson"
    CONSTANT = "all measurements are equal"
    NONE = "none"


@dataclass(frozen=True)
class Interval:
    """A confidence interval about *estimate*, all in the sample's unit.

    *low* and *high* are both None where a single measurement says nothing of its spread. *words* say, in a sentence,
    which way was taken and why.
    """

    estimate: float
    low: float | None
    high: float | None
    confidence: float
    method: IntervalMethod
    words: str

    @property
    def half_width(self) -> float | None:
        """Half the distance from *low* to *high*: the ± of an interval that is symmetrical."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    def contains(self, value: float) -> bool:
        """Whether *value* is inside; an interval that is not known excludes nothing."""
        return self.low is None or self.high is None or self.low <= value <= self.high

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.estimate:.6g} (no interval)"
        return f"{self.estimate:.6g} ({self.low:.6g} to {self.high:.6g}, {confidence_text(self.confidence)} confidence)"


def mean_interval(sample: Sequence[float], confidence: float = 0.95) -> Interval:
    """The mean's interval by Student's t, right where the measurements are normally distributed.

    Raises ValueError for an empty sample, a measurement that is no finite number, or a confidence that is no fraction.
    """
    values, summary = checked(sample), Summary.of(sample)
    plain = _without_spread(values, summary.mean, checked_confidence(confidence))
    if plain is not None or summary.stddev is None:
        return plain or _unknown(summary.mean, confidence)
    half = t_value(confidence, summary.n - 1) * summary.stddev / math.sqrt(summary.n)
    words = f"Student's t with {summary.n - 1} degrees of freedom"
    return Interval(summary.mean, summary.mean - half, summary.mean + half, confidence, IntervalMethod.STUDENT_T, words)


def bootstrap_interval(
    sample: Sequence[float],
    statistic: Callable[[Sequence[float]], float] = mean,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval:
    """The interval of any *statistic* by the bias-corrected and accelerated bootstrap (BCa; Efron 1987).

    It presumes no distribution. The same sample and *seed* give the same interval. Where BCa is not defined (the median
    of few measurements, say) the plain percentile bootstrap stands in, and the words say so.
    Raises ValueError as :func:`mean_interval`, and where the statistic is no finite number for it or its resamples.
    """
    values = checked(sample)
    checked_confidence(confidence)
    estimate = checked([statistic(values)], what="statistic")[0]
    plain = _without_spread(values, estimate, confidence)
    if plain is not None:
        return plain
    import numpy as np
    from scipy import stats

    for way in (IntervalMethod.BCA, IntervalMethod.PERCENTILE):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # BCa that is not defined warns, and gives no number: seen below
            found = stats.bootstrap(
                (np.array(values),),
                np.mean if statistic is mean else statistic,
                vectorized=statistic is mean,
                n_resamples=RESAMPLES,
                batch=max(1, _AT_ONCE // len(values)),
                confidence_level=confidence,
                method="BCa" if way is IntervalMethod.BCA else "percentile",
                rng=np.random.default_rng(seed),
            ).confidence_interval
        low, high = float(found.low), float(found.high)
        if math.isfinite(low) and math.isfinite(high):
            break
    else:
        raise ValueError(
            "the statistic is no finite number for some resamples; it needs to be one for any such sample."
        )
    words = f"{way.value}, {RESAMPLES} resamples, seed {seed}"
    if way is IntervalMethod.PERCENTILE:
        words += "; BCa is not defined for this sample"
    if len(values) < SMALL:
        words += f"; from {len(values)} measurements it is narrower than {confidence_text(confidence)} calls for"
    return Interval(estimate, low, high, confidence, way, words)


def normality(sample: Sequence[float]) -> float | None:
    """The p value of the Shapiro-Wilk test: how likely a normal distribution gives a sample at least so unlike it.

    None where the test is not defined: fewer than three measurements, or all of them equal. Of few measurements a high
    p says little, because the test can hardly reject. Raises ValueError as :func:`mean_interval`.
    """
    values = checked(sample)
    summary = Summary.of(values)
    if summary.n < 3 or not summary.stddev or summary.minimum == summary.maximum:
        return None
    from scipy import stats

    # the test knows no unit; its arithmetic loses digits where the mean is much larger than the spread
    scaled = [(value - summary.mean) / summary.stddev for value in values]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # above 5000 measurements p is approximate: more than enough here
        return float(stats.shapiro(scaled).pvalue)


def interval(sample: Sequence[float], confidence: float = 0.95, seed: int = 0) -> Interval:
    """The mean's interval by the way that suits the sample; its words say which and why.

    Student's t where normality is not rejected (Shapiro-Wilk, p at least 0.05), else the BCa bootstrap. Two
    measurements cannot be tested, nor resampled to any use: t, and the words say that normality is presumed.
    Raises ValueError as :func:`mean_interval`.
    """
    values = checked(sample)
    student = mean_interval(values, confidence)
    if student.method is not IntervalMethod.STUDENT_T:
        return student
    p = normality(values)
    if p is None:
        reason = f"normality is presumed: {len(values)} measurements cannot show it"
    elif p >= DOUBT:
        reason = f"normality is not rejected (Shapiro-Wilk p = {p:.2g})"
        if len(values) < SMALL:
            reason += f", though {len(values)} measurements would hardly show otherwise"
    else:
        found = bootstrap_interval(values, confidence=confidence, seed=seed)
        return _with_words(found, f"{found.words}; taken because normality is rejected (Shapiro-Wilk p = {p:.2g})")
    return _with_words(student, f"{student.words}; {reason}")


def proportion_interval(
    k: int,
    n: int,
    confidence: float = 0.95,
    method: Literal[IntervalMethod.WILSON, IntervalMethod.CLOPPER_PEARSON] = IntervalMethod.WILSON,
) -> Interval:
    """The interval of a probability, as a fraction, from *k* successes in *n* independent trials.

    Wilson's score interval covers what it claims on average over probabilities; Clopper and Pearson's is never narrower
    than it claims, and so the one to promise by. Raises ValueError unless 0 ≤ k ≤ n and n ≥ 1.
    """
    checked_confidence(confidence)
    if n < 1 or not 0 <= k <= n:
        raise ValueError(f"{k} successes of {n} trials cannot be: there is at least one trial, and 0 ≤ k ≤ n.")
    from scipy import stats

    name: Literal["wilson", "exact"] = "wilson" if method is IntervalMethod.WILSON else "exact"
    found = stats.binomtest(k, n).proportion_ci(confidence_level=confidence, method=name)
    # rounding leaves Wilson's bound a hair beside 0 or 1 where none, or all, succeeded
    low, high = min(float(found.low), k / n), max(float(found.high), k / n)
    return Interval(k / n, low, high, confidence, method, f"{method.value} of {k} successes in {n} trials")


def t_value(confidence: float, freedom: float) -> float:
    """Student's t that so much of the distribution lies within, both sides of 0; infinite *freedom* is the normal."""
    from scipy import stats

    quantile = (1 + confidence) / 2
    return float(stats.norm.ppf(quantile) if math.isinf(freedom) else stats.t.ppf(quantile, freedom))


def _without_spread(values: list[float], estimate: float, confidence: float) -> Interval | None:
    if len(values) == 1:
        return _unknown(estimate, confidence)
    if min(values) < max(values):
        return None
    words = f"all {len(values)} measurements are equal: they show no spread, which is no proof that there is none"
    return Interval(estimate, estimate, estimate, confidence, IntervalMethod.CONSTANT, words)


def _unknown(estimate: float, confidence: float) -> Interval:
    return Interval(
        estimate, None, None, confidence, IntervalMethod.NONE, "one measurement says nothing of its own spread"
    )


def _with_words(found: Interval, words: str) -> Interval:
    return Interval(found.estimate, found.low, found.high, found.confidence, found.method, words)
