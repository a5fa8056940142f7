"""Statistics of samples: summaries, intervals, comparisons, changes of a level (docs/ci.md).

A sample is a sequence of measurements in one unit; results are in that unit unless they are in per cent. SciPy is
imported on first use, because the import takes about a second and most runs do not need it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal


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


# -- do two samples differ? Welch's t-test, the pooled t-test of ministat(1)

Method = Literal["welch", "pooled"]


@dataclass(frozen=True)
class RelativeChange:
    """A difference as a ratio: -0.02 is 2 % less. ``error``: its standard error, a ratio as well."""

    change: float
    error: float
    degrees_of_freedom: float
    p: float

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return the lower and the upper end."""
        half = t_value(confidence, self.degrees_of_freedom) * self.error if self.error else 0.0
        return self.change - half, self.change + half


@dataclass(frozen=True)
class Comparison:
    """The mean of *candidate* minus that of *reference*, ± *half_width*, in the samples' unit.

    The relative figures are per cent of the reference's mean, None where that is 0. Their ± includes the uncertainty of
    that mean, so it is not *half_width* as a percentage. *standard_error*: of the difference.
    """

    reference: Summary
    candidate: Summary
    confidence: float
    method: Method
    difference: float
    half_width: float
    relative_percent: float | None
    relative_half_width_percent: float | None
    standard_error: float
    degrees_of_freedom: float

    @property
    def significant(self) -> bool:
        """Return whether a difference is proven at this confidence. False does not prove that the means are equal."""
        return abs(self.difference) > self.half_width

    def relative_to(self, scale: float | None = None, allowed: float = 0.0) -> RelativeChange:
        """Return the difference as a ratio of the reference's mean, or of *scale*: a number in the samples' unit.

        ``p``: the probability of at least such a change, if the true one is at most *allowed* (a ratio) either way.
        Raises ZeroDivisionError if there is nothing to relate it to.
        """
        if scale is None and self.relative_percent is not None and self.relative_half_width_percent is not None:
            t = self.half_width / self.standard_error if self.standard_error else math.inf
            change, error = self.relative_percent / 100, self.relative_half_width_percent / 100 / t
        else:
            change, error = self.difference / abs(scale or 0.0), self.standard_error / abs(scale or 0.0)
        p = _chance(abs(change) - allowed, error, self.degrees_of_freedom)
        return RelativeChange(change, error, self.degrees_of_freedom, p)

    def chance(self, allowed: float) -> float:
        """Return the probability of at least such a difference, if the true one is at most *allowed* either way."""
        return _chance(abs(self.difference) - allowed, self.standard_error, self.degrees_of_freedom)


def compare(
    reference: Sequence[float] | Summary,
    candidate: Sequence[float] | Summary,
    confidence: float = 0.95,
    method: Method = "welch",
) -> Comparison:
    """Compare the means of two independent samples, given as measurements or as their figures.

    ``welch`` (Welch 1947, degrees of freedom by Satterthwaite) lets each sample have its own variance. ``pooled``
    assumes one variance and reproduces every digit that ministat(1) prints: ministat takes t from a table (FreeBSD,
    usr.bin/ministat/ministat.c) with three decimals up to 100 degrees of freedom, and the normal distribution's value
    above. Two differences are intended: ministat's column for 99.5 % contains the values of 99.8 %, this is exact; and
    some ministats print ``half_width`` as a percentage on the second line, this includes the reference's own
    uncertainty, as the ministat of the published answers does.

    Raises ValueError for a sample of fewer than two measurements or with one that is not finite.
    """
    old, new = (
        sample if isinstance(sample, Summary) else Summary.of(check_sample(sample, 2))
        for sample in (reference, candidate)
    )
    if old.stddev is None or new.stddev is None:
        raise ValueError("one measurement has no spread; a comparison needs at least two of each sample")
    old_variance, new_variance = old.stddev**2, new.stddev**2
    freedom = float(old.n + new.n - 2)
    old_error, new_error = old_variance / old.n, new_variance / new.n
    if method == "pooled":
        pooled = (1 / old.n + 1 / new.n) / freedom
        old_error, new_error = (old.n - 1) * old_variance * pooled, (new.n - 1) * new_variance * pooled
    elif old_error + new_error:
        freedom = (old_error + new_error) ** 2 / (old_error**2 / (old.n - 1) + new_error**2 / (new.n - 1))
    t = t_value(confidence, freedom) if method == "welch" else _table_t(confidence, freedom)
    difference, standard_error = new.mean - old.mean, math.sqrt(old_error + new_error)
    relative = relative_half_width = None
    if old.mean:
        relative = 100 * difference / old.mean
        # the error of a ratio of two means, to first order (the delta method)
        relative_half_width = 100 * t * math.sqrt(old_error * (new.mean / old.mean) ** 2 + new_error) / abs(old.mean)
    return Comparison(
        *(old, new, confidence, method, difference, t * standard_error),
        *(relative, relative_half_width, standard_error, freedom),
    )


def _chance(beyond: float, error: float, freedom: float) -> float:
    """Return the probability, for both signs together, of a deviation *beyond* by Student's t."""
    from scipy import stats  # takes a second

    if not error or beyond <= 0:
        return 0.0 if beyond > 0 else 1.0
    return min(1.0, 2 * float(stats.t.sf(beyond / error, freedom)))


def _table_t(confidence: float, freedom: float) -> float:
    """Return Student's t as in ministat's table, which ends at 100; above it is the normal distribution."""
    normal = statistics.NormalDist().inv_cdf((1 + confidence) / 2)
    return round(t_value(confidence, freedom) if freedom <= 100 else normal, 3)


def holm_levels(p_values: Sequence[float], alpha: float) -> list[float]:
    """Return the level at which each of the hypotheses with these *p_values* is tested (Holm 1979); in their order.

    One is rejected where its p is at most its level. The probability that any true one is rejected is at most *alpha*,
    however the tests depend on each other. An interval of confidence 1 - level says the same as the test.
    """
    levels = [alpha] * len(p_values)
    going, level = True, alpha
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        if going:
            level = alpha / (len(p_values) - rank)
            going = p_values[place] <= level
        levels[place] = level
    return levels


# -- where the level of a series changes: the exact optimum of squared errors plus a penalty for each change
#
# Optimal partitioning (Jackson et al. 2005), which finds what PELT (Killick et al. 2012) and ruptures' Pelt(model="l2")
# find; a test compares them. Series of runs are short, so that the quadratic time does not matter, and ruptures takes
# longer to import than a trend may take to answer.

LEAST_SEGMENT = 3
"""Values between two changes, at least: fewer show no spread worth the name."""

PENALTY = 4.0
"""Times noise variance times ln(number of values), for each change; 2 is the BIC's, more finds fewer.

Of series without a change at most FALSE_ALARMS show one, whatever their length; a step of 2.5 standard deviations in
the middle of 20 values is found in nine of ten.
"""

FALSE_ALARMS = 0.05
"""Share of series without a change in which one is seen, at most: by 2 000 series of each of 6 to 40 normal values.
"""


def change_points(values: Sequence[float]) -> list[tuple[int, Comparison]]:
    """Return where the level changed: the place of the first value after it, and the levels before and after compared.

    Only changes whose 95 % interval (Welch) leaves out 0 are given; beside one that does not, the levels are joined.
    Raises ValueError for a value that is not finite.
    """
    if len(values) < 2 * LEAST_SEGMENT:
        return []
    begins = best_partition(values, penalty_of(values))
    while begins:
        edges = [0, *begins, len(values)]
        parts = [values[start:end] for start, end in pairwise(edges)]
        sizes = [compare(before, after) for before, after in pairwise(parts)]
        doubtful = [place for place, size in enumerate(sizes) if not size.significant]
        if not doubtful:
            return list(zip(begins, sizes, strict=True))
        del begins[min(doubtful, key=lambda place: abs(sizes[place].difference))]
    return []


def penalty_of(values: Sequence[float]) -> float:
    """Return what a change costs: PENALTY x noise² x ln n.

    The noise is the standard deviation about the level, from the differences of neighbours, which changes do not alter.
    """
    median_step = statistics.median(abs(after - before) for before, after in pairwise(values))
    # normal values differ from their neighbours by so many standard deviations; steps below 0.1 % or so are no changes
    noise = max(median_step / (0.6745 * math.sqrt(2)), 0.0005 * abs(statistics.median(values)))
    return PENALTY * noise**2 * math.log(len(values))


def best_partition(values: Sequence[float], penalty: float) -> list[int]:
    """Return where new segments begin, in order. Takes quadratic time. Raises ValueError for what is no sample."""
    given = check_sample(values)
    level = statistics.fmean(given)  # a level much above the noise costs digits
    sums = [0.0, *accumulate(value - level for value in given)]
    # for each place: the least cost of what is before it, less its squares, which all partitions share, and where its
    # last segment begins
    best = [(0.0, 0), *[(math.inf, 0)] * len(given)]
    for end in range(LEAST_SEGMENT, len(given) + 1):
        best[end] = min(
            (best[start][0] - (sums[end] - sums[start]) ** 2 / (end - start) + penalty, start)
            for start in range(end - LEAST_SEGMENT + 1)
        )
    places, end = [], len(given)
    while end := best[end][1]:
        places.append(end)
    return places[::-1]
