"""Whether a variant differs from its baseline: Welch's t, with Holm's correction for all variants of a row.

Those of a row are one family: the correction keeps the risk of one false difference in it at 1 - CONFIDENCE. Each
sample has its own variance, because variants may scatter more than the baseline. The baseline's last measurement of a
block and the first of the next one follow each other, mostly in one session, and share what that one has of its own:
they are one value of its sample, their mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ..evidence.records import MeasurementRecord
from ..stats import Comparison, Method, compare, holm_levels

CONFIDENCE = 0.95

NO_SPREAD = 1e-5
"""The share of the baseline's mean up to which a sample has no spread: less than what two clocks differ by."""

RESOLUTION = 0.01
"""The share of the baseline's mean beyond which samples without a spread differ: twice the width of a search, where
each figure falls on the same bound, and far more than a frame at the end of a trial. A ramp's is at least its step."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A variant's sample with the baseline's. ``p``: that chance alone makes such a difference; ``level``: by Holm.

    ``drift``: a difference of no more than that may be the baseline's own. ``step``: so much may the measurements make
    of none, whatever their spread; the interval has it. ``resolution``: neither sample has a spread, and a difference
    of no more than that proves nothing; None: they have one. ``bound``: ``≥ `` or ``≤ ``, where the difference is at
    least so large, because a router's own limit is somewhere above its figure; "": it is what it is.
    """

    comparison: Comparison
    p: float
    level: float
    drift: float = 0.0
    step: float = 0.0
    resolution: float | None = None
    bound: str = ""

    @property
    def half_width(self) -> float:
        """Of the difference's interval: by the spread of both samples, and the step."""
        return self.comparison.half_width + self.step

    @property
    def half_width_percent(self) -> float | None:
        """The same in per cent of the baseline's mean; None where that is 0."""
        found = self.comparison.relative_half_width_percent
        return None if found is None else found + 100 * self.step / abs(self.comparison.reference.mean)

    @property
    def proven(self) -> bool:
        """Whether a difference is proven at CONFIDENCE, with all others of the row, and is no drift of the baseline."""
        return abs(self.comparison.difference) > max(self.half_width, self.resolution or 0.0, self.drift)

    @property
    def most_percent(self) -> float:
        """Return the largest difference that there may be, in per cent of the baseline's mean."""
        half_width = self.half_width if self.resolution is None else 0.0
        most = max(abs(self.comparison.difference) + half_width, self.drift, self.resolution or 0.0)
        mean = abs(self.comparison.reference.mean)
        return 100 * most / mean if mean else math.inf

    @property
    def absolute(self) -> str:
        """The difference in the sample's unit, with its interval, if it has one."""
        if self.resolution is not None:
            return f"{self.bound}{self.comparison.difference:+.4g}"
        # two digits of the interval, and no power of ten
        return f"{self.bound}{self.comparison.difference:+.4g} ± {float(f'{self.half_width:.2g}'):g}"

    @property
    def change(self) -> str:
        """``-17.1 % ± 0.3 %``, or in the sample's unit where the baseline's mean is 0."""
        found = self.comparison
        if found.relative_percent is None or self.half_width_percent is None:
            return self.absolute
        if self.resolution is not None:
            return f"{self.bound}{found.relative_percent:+.2f} %"
        return f"{self.bound}{found.relative_percent:+.2f} % ± {self.half_width_percent:.2g} %"

    def __str__(self) -> str:
        if self.proven:
            return self.change
        return f"no difference proven at {100 * CONFIDENCE:g} %; measured {self.change}"


def visit_means(records: Sequence[MeasurementRecord]) -> tuple[float, ...]:
    """The values of one row and variant, those that follow each other without another variant between as their mean."""
    visits: dict[int, list[float]] = {}
    for record in records:
        if record.value is not None:
            visits.setdefault(record.block + (record.turn == "last"), []).append(record.value)
    return tuple(fmean(visits[number]) for number in sorted(visits))


def compare_with(
    baselines: Mapping[str, str | None],
    samples: Mapping[str, Sequence[float]],
    references: Mapping[str, Sequence[float]] | None = None,
    method: Method = "welch",
    step: float = 0.0,
    width: float = 0.0,
) -> dict[str, Compared]:
    """Each of *samples* with that of its baseline in *references*, all as a family.

    Those of fewer than two values are left out. *references*: None for *samples*. *method*: ``pooled`` is ministat's,
    also where there is no spread. *step*: by how much figures of one router may differ, as a ramp's; *width*: the same
    as a share of them, as a search's.
    """
    known = samples if references is None else references
    pairs = {
        name: (known.get(base, ()), samples.get(name, ()))
        for name, base in baselines.items()
        if base is not None and base != name
    }
    pairs = {name: pair for name, pair in pairs.items() if min(map(len, pair)) > 1}
    steps = {name: max(step, width * max(map(_size, pair))) for name, pair in pairs.items()}
    resolutions = {name: _resolution(*pair, steps[name]) if method == "welch" else None for name, pair in pairs.items()}
    chances = [
        _chance(compare(*pair, CONFIDENCE, method), steps[name], resolutions[name]) for name, pair in pairs.items()
    ]
    levels = holm_levels(chances, 1 - CONFIDENCE) if pairs else []
    return {
        name: Compared(compare(*pair, 1 - level, method), p, level, 0.0, steps[name], resolutions[name])
        for (name, pair), p, level in zip(pairs.items(), chances, levels, strict=True)
    }


def _size(sample: Sequence[float]) -> float:
    return abs(fmean(sample))


def _resolution(reference: Sequence[float], sample: Sequence[float], step: float) -> float | None:
    mean = _size(reference)
    unseen = NO_SPREAD * mean
    if max(max(each) - min(each) for each in (reference, sample)) > unseen:
        return None
    # two figures a step apart may be so much farther from each other
    return max(RESOLUTION * mean, step + 2 * unseen if step else 0.0)


def _chance(found: Comparison, step: float, resolution: float | None) -> float:
    """The probability of at least such a difference, if there is none but for the *step*."""
    if resolution is not None:
        return 0.0 if abs(found.difference) > resolution else 1.0
    from scipy import stats  # takes a second

    beyond = abs(found.difference) - step
    if not found.standard_error or beyond <= 0:
        return 0.0 if beyond > 0 else 1.0
    return min(1.0, 2 * float(stats.t.sf(beyond / found.standard_error, found.degrees_of_freedom)))
