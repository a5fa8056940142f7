"""Whether two samples differ: Welch's t-test, and the pooled t-test of ministat(1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .intervals import t_value
from .summary import VITALS_HEAD, Moments, Summary, checked, checked_confidence

Method = Literal["welch", "pooled"]

_TABLE_END = 100
"""The last row of ministat's table of t; beyond it the normal distribution stands in."""


@dataclass(frozen=True)
class Comparison:
    """The mean of *candidate* minus that of *reference*, ± *half_width*, in the samples' unit.

    The relative figures are per cent of the reference's mean, None where that is 0. Their ± knows that this mean is
    uncertain too, hence is not *half_width* as a percentage. *standard_error* is that of the difference; *pooled_s* is
    the common standard deviation, which only the pooled test presumes. *note* is empty, or what to know.
    """

    reference: Moments
    candidate: Moments
    confidence: float
    method: Method
    difference: float
    half_width: float
    relative_percent: float | None
    relative_half_width_percent: float | None
    standard_error: float
    pooled_s: float | None
    degrees_of_freedom: float
    note: str = ""

    @property
    def significant(self) -> bool:
        """Whether a difference is proven at this confidence. Not significant does not prove that they are equal."""
        return abs(self.difference) > self.half_width

    def text(self) -> str:
        """What ministat(1) prints below its plot; Welch's test gives its own last line. Notes come last."""
        lines = []
        if isinstance(self.reference, Summary) and isinstance(self.candidate, Summary):
            lines += [VITALS_HEAD, self.reference.vitals("x"), self.candidate.vitals("+")]
        level = f"{100 * self.confidence:.1f}% confidence"
        if self.significant:
            lines += [f"Difference at {level}", f"\t{self.difference:g} +/- {self.half_width:g}"]
            if self.relative_percent is not None:
                lines.append(f"\t{self.relative_percent:g}% +/- {self.relative_half_width_percent:g}%")
            if self.pooled_s is not None:
                lines.append(f"\t(Student's t, pooled s = {self.pooled_s:g})")
            else:
                freedom = f"{self.degrees_of_freedom:.4g} degrees of freedom"
                lines.append(f"\t(Welch's t, standard error = {self.standard_error:g}, {freedom})")
        else:
            lines.append(f"No difference proven at {level}")
        return "\n".join([*lines, self.note] if self.note else lines)


def compare(
    reference: Sequence[float] | Moments,
    candidate: Sequence[float] | Moments,
    confidence: float = 0.95,
    method: Method = "welch",
) -> Comparison:
    """Compare the means of two independent samples, given whole or as what is published of them.

    ``welch`` (Welch 1947, degrees of freedom by Satterthwaite) lets each sample have its own variance. ``pooled``
    presumes one variance and reproduces ministat(1) to the digit it prints: ministat looks t up in a table (FreeBSD,
    usr.bin/ministat/ministat.c) of three decimals that ends at 100 degrees of freedom, with the normal distribution's
    value beyond. SciPy's t rounded to three decimals is that table; SciPy's own t is not enough (98524.4 where 98524.2
    was published). Two things differ knowingly: ministat's column for 99.5 % holds the values of 99.8 %, where this
    uses 99.5 % as asked; and some ministats print ``half_width`` as a percentage on the second line, where this counts
    in the reference's own uncertainty, as the ministat of the published answers does.

    Raises ValueError where a sample has fewer than two measurements or one that is no finite number, or where
    *confidence* or *method* is none.
    """
    checked_confidence(confidence)
    if method not in ("welch", "pooled"):
        raise ValueError(f"there is no comparison by {method!r}; it is 'welch' or 'pooled'.")
    old, old_variance = _moments(reference, "reference")
    new, new_variance = _moments(candidate, "candidate")
    pooled = method == "pooled"
    freedom = float(old.n + new.n - 2) if pooled else _welch(old_variance / old.n, old.n, new_variance / new.n, new.n)
    t = _table_t(confidence, freedom) if pooled else t_value(confidence, freedom)

    def error(ratio: float) -> float:
        """The standard error of candidate - ratio * reference."""
        scaled = old_variance * ratio * ratio
        if pooled:
            common = ((old.n - 1) * scaled + (new.n - 1) * new_variance) / freedom
            return math.sqrt(common * (1 / old.n + 1 / new.n))
        return math.sqrt(scaled / old.n + new_variance / new.n)

    difference, standard_error = new.mean - old.mean, error(1)
    relative = None if old.mean == 0 else 100 * difference / old.mean
    # the error of a ratio of two means, to first order (the delta method)
    relative_half = None if old.mean == 0 else 100 * t * error(new.mean / old.mean) / abs(old.mean)
    common_s = math.sqrt(((old.n - 1) * old_variance + (new.n - 1) * new_variance) / freedom) if pooled else None
    still = [name for name, sample in (("reference", old), ("candidate", new)) if sample.stddev == 0]
    note = f"All measurements of the {' and of the '.join(still)} are equal: no spread was seen." if still else ""
    return Comparison(
        old,
        new,
        confidence,
        method,
        difference,
        t * standard_error,
        relative,
        relative_half,
        standard_error,
        common_s,
        freedom,
        note,
    )


def _moments(sample: Sequence[float] | Moments, what: str) -> tuple[Moments, float]:
    """The sample's figures and its variance."""
    found = sample if isinstance(sample, Moments) else Summary.of(checked(sample, 2, what))
    if found.stddev is None:
        raise ValueError(f"the {what} has 1 measurement, hence no spread; a comparison needs at least 2 measurements.")
    return found, found.stddev**2


def _table_t(confidence: float, freedom: float) -> float:
    """Student's t as it stands in ministat's table."""
    return round(t_value(confidence, freedom if freedom <= _TABLE_END else math.inf), 3)


def _welch(a: float, n_a: int, b: float, n_b: int) -> float:
    """Satterthwaite's degrees of freedom of the sum of two squared standard errors."""
    largest = max(a, b)
    if largest == 0:  # no spread, hence no error whatever the freedom is
        return float(n_a + n_b - 2)
    a, b = a / largest, b / largest
    return (a + b) ** 2 / (a**2 / (n_a - 1) + b**2 / (n_b - 1))
