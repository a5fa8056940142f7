"""Do two samples differ? Welch's t-test, the pooled t-test of ministat(1)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .intervals import Summary, check_sample, t_value

Method = Literal["welch", "pooled"]

_LAST_TABLE_ROW = 100
"""The last row of ministat's table of t; above it ministat uses the normal distribution."""


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
    # relative to the larger one, as squares of small ones would vanish
    scale = max(old.stddev, new.stddev) or 1.0
    old_variance, new_variance = (old.stddev / scale) ** 2, (new.stddev / scale) ** 2

    def squared_error(ratio: float) -> float:
        """Return the squared standard error of candidate - ratio * reference."""
        scaled = old_variance * ratio * ratio
        if method == "welch":
            return scaled / old.n + new_variance / new.n
        return ((old.n - 1) * scaled + (new.n - 1) * new_variance) / freedom * (1 / old.n + 1 / new.n)

    freedom = float(old.n + new.n - 2)
    if method == "welch" and max(old_variance, new_variance):
        parts = (old_variance / old.n) ** 2 / (old.n - 1) + (new_variance / new.n) ** 2 / (new.n - 1)
        freedom = squared_error(1) ** 2 / parts
    t = t_value(confidence, freedom) if method == "welch" else _table_t(confidence, freedom)
    difference, standard_error = new.mean - old.mean, scale * math.sqrt(squared_error(1))
    relative = None if old.mean == 0 else 100 * difference / old.mean
    # the error of a ratio of two means, to first order (the delta method)
    ratio_error = None if old.mean == 0 else scale * math.sqrt(squared_error(new.mean / old.mean)) / abs(old.mean)
    return Comparison(
        old,
        new,
        confidence,
        method,
        difference,
        t * standard_error,
        relative,
        None if ratio_error is None else 100 * t * ratio_error,
        standard_error,
        freedom,
    )


def _chance(beyond: float, error: float, freedom: float) -> float:
    """Return the probability, for both signs together, of a deviation *beyond* by Student's t."""
    from scipy import stats  # takes a second

    if not error or beyond <= 0:
        return 0.0 if beyond > 0 else 1.0
    return min(1.0, 2 * float(stats.t.sf(beyond / error, freedom)))


def _table_t(confidence: float, freedom: float) -> float:
    """Return Student's t as in ministat's table."""
    normal = statistics.NormalDist().inv_cdf((1 + confidence) / 2)
    return round(t_value(confidence, freedom) if freedom <= _LAST_TABLE_ROW else normal, 3)


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
