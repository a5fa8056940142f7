"""Do two samples differ? Welch's t-test, the pooled t-test of ministat(1), and its picture of both."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from .intervals import VITALS_HEAD, Summary, check_sample, t_value

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
    that mean, so it is not *half_width* as a percentage. *standard_error*: of the difference. *pooled_s*: the common
    standard deviation, which only the pooled test assumes. *note*: a remark, or empty.
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
    pooled_s: float | None
    degrees_of_freedom: float
    note: str = ""

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

    def text(self) -> str:
        """Return what ministat(1) prints below its plot, of a pooled comparison. Then the note."""
        lines = [VITALS_HEAD, self.reference.vitals("x"), self.candidate.vitals("+")]
        level = f"{100 * self.confidence:.1f}% confidence"
        if self.significant:
            lines += [f"Difference at {level}", f"\t{self.difference:g} +/- {self.half_width:g}"]
            if self.relative_percent is not None:
                lines.append(f"\t{self.relative_percent:g}% +/- {self.relative_half_width_percent:g}%")
            lines.append(f"\t(Student's t, pooled s = {self.pooled_s:g})")
        else:
            lines.append(f"No difference proven at {level}")
        return "\n".join([*lines, self.note] if self.note else lines)


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
    constant = [name for name, sample in (("reference", old), ("candidate", new)) if sample.stddev == 0]
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
        standard_error / math.sqrt(1 / old.n + 1 / new.n) if method == "pooled" else None,
        freedom,
        f"All measurements of the {' and of the '.join(constant)} are equal: no spread was seen." if constant else "",
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


WIDTH = 74
"""Columns within the frame; ministat's own where it prints to no terminal."""


def dot_plot(reference: Sequence[float], candidate: Sequence[float]) -> str:
    """Return the samples as ``ministat -s`` draws them: ``x`` is of the *reference*, ``+`` of the other, ``*`` of both.

    Figures of one column are stacked. Below stands a bar for each sample: its mean (``A``) ± one standard deviation and
    its median (``M``; ``A`` covers it). One difference is intended: where the reference's stack is the higher one, some
    ministats leave out what is above the candidate's. Raises ValueError for a sample that is empty or not finite.
    """
    samples = check_sample(reference), check_sample(candidate)
    summaries = [Summary.of(sample) for sample in samples]
    ends = [end for known in summaries for end in (known.minimum, known.maximum, *_spread(known))]
    least = min(ends)
    step = (max(ends) - least) / (WIDTH - 1)
    if step <= 0:
        return "[no plot, span is zero width]"

    def column(value: float) -> int:
        return int((value - least) / step + 0.5)

    stacks = [Counter(column(value) for value in sample) for sample in samples]
    lines = []
    for level in range(max(max(stack.values()) for stack in stacks), 0, -1):
        marks = ((stacks[0][place] >= level, stacks[1][place] >= level) for place in range(WIDTH))
        lines.append("".join(_SYMBOLS[mark] for mark in marks))
    lines += [_bar(known, column) for known in summaries]
    frame = f"+{'-' * WIDTH}+"
    return "\n".join([frame, *(f"|{line}|" for line in lines), frame])


_SYMBOLS = {(False, False): " ", (True, False): "x", (False, True): "+", (True, True): "*"}


def _spread(known: Summary) -> tuple[float, float]:
    deviation = known.stddev or 0.0
    return known.mean - deviation, known.mean + deviation


def _bar(known: Summary, column: Callable[[float], int]) -> str:
    line = [" "] * WIDTH
    low, high = map(column, _spread(known))
    line[low : high + 1] = "_" * (high + 1 - low)
    line[low] = line[high] = "|"
    line[column(known.median)] = "M"
    line[column(known.mean)] = "A"
    return "".join(line)
