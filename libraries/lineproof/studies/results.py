"""The results of a study, from its records alone: figures, beside the baseline and beside the published ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean

from ..evidence.records import MeasurementRecord
from ..methods.search import RELATIVE_WIDTH
from ..stats import Comparison, Method, Summary, compare, holm_levels
from ..units import counted
from .study import AT_LEAST, DIFFERENCES, RAMP_STEPS, RATES, Study

MOST_OUTSIDE = 0.05
"""The share of published figures that may be outside of their tolerance."""


@dataclass(frozen=True)
class StudyCell:
    """One row on one variant, in the row's unit. ``gaps``: why measurements have no value. ``line``: the line rate.

    ``published``: a figure, or those of several runs; ``allowed``: how far ours may be from it; ``published_compared``:
    ministat's answer. ``excused``: all its gaps are no failures, as of what is not here. ``blocks``: that have a value,
    of those that were ``asked`` for. ``bounds``: how many values are only what was offered most; ``least_bound``:
    whether the least is; ``unlimited``: these, or the baseline's, make it incomparable.
    """

    row: str
    variant: str
    unit: str
    values: tuple[float, ...]
    gaps: tuple[str, ...]
    line: float | None
    published: tuple[float, ...] = ()
    allowed: float = 0.0
    explanation: str = ""
    compared: Compared | None = None
    published_compared: Compared | None = None
    excused: bool = False
    blocks: int = 1
    asked: int = 1
    bounds: int = 0
    least_bound: bool = False
    unlimited: bool = False

    @cached_property
    def summary(self) -> Summary | None:
        """The summary of the values; None without any."""
        return Summary.of(self.values) if self.values else None

    @cached_property
    def published_summary(self) -> Summary | None:
        """The summary of the published figures; None without any."""
        return Summary.of(self.published) if self.published else None

    @property
    def measured(self) -> bool:
        """Return whether its values are enough for a figure: half of the blocks, and two where more were asked for.

        What spoilt the others may have changed those that are left.
        """
        return self.blocks >= max(1, min(2, self.asked), self.asked / 2)

    @property
    def at_least(self) -> bool:
        """Return whether the median is only what was offered most, and the router's limit somewhere above."""
        return 0 < len(self.values) <= 2 * self.bounds

    @property
    def bound_signs(self) -> tuple[str, str, str]:
        """Before the least, the median and the largest value: ``≥ `` where it is only what was offered most, or ""."""
        least, median, most = ("≥ " if bound else "" for bound in (self.least_bound, self.at_least, self.bounds > 0))
        return least, median, most

    @property
    def few(self) -> str:
        """Return that it has values and too few of them; ""."""
        known = bool(self.values) and not self.measured
        return f"values of {self.blocks} of {counted(self.asked, 'block')} are too few" if known else ""

    @property
    def inside(self) -> bool | None:
        """Return whether the medians are close enough; a gap or too few values are not. None: nothing is published."""
        if self.published_summary is None:
            return None
        if self.summary is None or not self.measured:
            return False
        return abs(self.summary.median - self.published_summary.median) <= self.allowed * (1 + 1e-9)

    @property
    def outside_words(self) -> str:
        """Why it is outside, as the study says it; "" if it is not."""
        if self.inside is not False:
            return ""
        return f"outside{f': {self.explanation}' if self.explanation else ', not explained'}"


@dataclass(frozen=True)
class StudyResults:
    """``cells``: by row and variant, in the study's order. ``drifts``: by row, the baseline first against last."""

    study: Study
    run: str
    folder: Path
    simulated: bool
    testbed: str
    records: tuple[MeasurementRecord, ...]
    cells: Mapping[tuple[str, str], StudyCell]
    drifts: Mapping[str, Compared]
    planned: int
    machine: str = ""
    """That the run was made on, in words; "" if it is not known."""
    history: tuple[str, ...] = ()
    """What must be known of how the run came about, in sentences."""

    @property
    def published(self) -> tuple[StudyCell, ...]:
        """Return those with a published figure."""
        return tuple(cell for cell in self.cells.values() if cell.published)

    @property
    def outside(self) -> tuple[StudyCell, ...]:
        """Return those whose published figure is not met."""
        return tuple(cell for cell in self.published if not cell.inside)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Ours beside the published ones, of those that have both."""
        return tuple(
            Pair(cell.summary.median, cell.published_summary.median, cell.line if self._is_rate(cell) else None)
            for cell in self.published
            if cell.measured and cell.summary is not None and cell.published_summary is not None
        )

    def _is_rate(self, cell: StudyCell) -> bool:
        return self.study.measures[cell.row].kind in RATES

    @property
    def gaps(self) -> tuple[StudyCell, ...]:
        """Return those without any value, or with too few."""
        return tuple(cell for cell in self.cells.values() if not cell.measured)

    @property
    def failures(self) -> tuple[StudyCell, ...]:
        """Return those of the gaps that should have a value."""
        return tuple(cell for cell in self.gaps if not cell.excused)

    @property
    def complete(self) -> bool:
        """Return whether all that was planned was measured, or is a gap with its reason."""
        return len(self.records) >= self.planned

    @property
    def close_enough(self) -> bool:
        """Return whether no more than MOST_OUTSIDE of the published figures are outside."""
        return len(self.outside) <= MOST_OUTSIDE * len(self.published)

    def rows(self) -> list[tuple[str, list[StudyCell]]]:
        """The cells of each row."""
        found: dict[str, list[StudyCell]] = {}
        for (row, _), cell in self.cells.items():
            found.setdefault(row, []).append(cell)
        return list(found.items())


def results_of(
    study: Study,
    records: Sequence[MeasurementRecord],
    *,
    run: str = "",
    folder: Path = Path(),
    testbed: str = "",
    planned: int = 0,
    machine: str = "",
) -> StudyResults:
    """Return what *records* of *study* come to. *planned*: how many there should be. *machine*: see StudyResults."""
    cells: dict[tuple[str, str], StudyCell] = {}
    drifts: dict[str, Compared] = {}
    for row in study.measures:
        mine = [record for record in records if record.row == row]
        own = {name: [record for record in mine if record.variant == name] for name in study.variants_of(row)}
        bare = {name: _cell(study, row, name, found) for name, found in own.items()}
        baselines = {name: study.baseline_of(name) for name in own}
        enough = [name for name, cell in bare.items() if cell.measured]
        step = _step(study, row, next((record.line for record in mine if record.line is not None), 0.0))
        width = RELATIVE_WIDTH if study.measures[row].kind == "throughput" else 0.0
        compared = compare_with(
            baselines,
            {name: bare[name].values for name in enough},
            {name: visit_means(own[name]) for name in enough},
            step=step,
            width=width,
        )
        # what the source's own ministat answers
        runs = {name: cell.published for name, cell in bare.items()}
        published_compared = compare_with(baselines, runs, method="pooled")
        turns = {
            turn: tuple(record.value for record in mine if record.turn == turn and record.value is not None)
            for turn in ("first", "last")
        }
        first = bare.get(study.baseline) if study.baseline else None
        # of what the generator offers it would be the generator's
        drifting = first is not None and not first.at_least
        if found := compare_with({"last": "first"} if drifting else {}, turns, step=step, width=width):
            drifts[row] = found["last"]
        drift = drifts[row] if row in drifts and drifts[row].proven else None
        for name, cell in bare.items():
            beyond = _beyond(compared.get(name), drift)
            base = bare.get(baselines[name] or "")
            unlimited = _unlimited(cell, base, beyond)
            cells[row, name] = replace(
                cell,
                compared=None if unlimited or beyond is None else replace(beyond, bound=_bound(cell, base, beyond)),
                unlimited=unlimited,
                published_compared=published_compared.get(name),
            )
    simulated = any(record.simulated for record in records)
    return StudyResults(study, run, folder, simulated, testbed, tuple(records), cells, drifts, planned, machine)


def _cell(study: Study, row: str, name: str, own: Sequence[MeasurementRecord]) -> StudyCell:
    """Return what the records of one row and variant come to by themselves."""
    line = next((record.line for record in own if record.line is not None), None)
    gaps = [record for record in own if record.value is None]
    published = _runs(study.published_figure(row, name))
    known = [(record.value, record.figures.get(AT_LEAST) == 1.0) for record in own if record.value is not None]
    return StudyCell(
        row,
        name,
        study.unit_of(row),
        tuple(value for value, _ in known),
        tuple(record.reason for record in gaps),
        line,
        published,
        _allowed(study, row, published, line),
        study.explanation(row, name),
        excused=bool(gaps) and all(record.excused for record in gaps),
        blocks=len({record.block for record in own if record.value is not None}),
        asked=study.repeats_of(row),
        bounds=sum(bound for _, bound in known),
        least_bound=min(known, default=(0.0, False))[1],
    )


def _unlimited(cell: StudyCell, base: StudyCell | None, found: Compared | None) -> bool:
    """Return whether *found* says nothing, because a router's limit is somewhere above some of its values.

    Such values are too small. They can hide a difference, and make one; they cannot make one of the other sign.
    """
    if base is None or found is None or not (cell.bounds or base.bounds):
        return False
    return not found.proven or bool((cell if found.comparison.difference < 0 else base).bounds)


def _bound(cell: StudyCell, base: StudyCell | None, found: Compared) -> str:
    """Which sign stands before a difference that can but grow; "": it is what it is."""
    if not (cell.bounds or (base is not None and base.bounds)):
        return ""
    return "≤ " if found.comparison.difference < 0 else "≥ "


def _beyond(found: Compared | None, drift: Compared | None) -> Compared | None:
    return found if found is None or drift is None else replace(found, drift=abs(drift.comparison.difference))


def _step(study: Study, row: str, line: float) -> float:
    """The load by which two steps of a ramp differ, in the row's unit; 0 of other rows."""
    measure = study.measures[row]
    directions = 2 if "bidirectional" in measure.traffic.split() else 1
    return directions * line / (measure.steps or RAMP_STEPS) if measure.kind == "ramp" else 0.0


def _runs(figure: float | tuple[float, ...] | None) -> tuple[float, ...]:
    if figure is None:
        return ()
    return figure if isinstance(figure, tuple) else (figure,)


def _allowed(study: Study, row: str, published: Sequence[float], line: float | None) -> float:
    """How far the row's median may be from the published one."""
    middle = Summary.of(published).median if published else math.nan
    if not math.isfinite(middle):
        return 0.0
    kind = study.measures[row].kind
    return study.tolerance_of(row).allowed(middle, line if kind in RATES else None, kind in DIFFERENCES)


WITHIN = (5.0, 10.0)
"""Per cent of the published figure."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A figure of ours and the published one in one unit. ``line``: one direction's line rate in it; None: no rate."""

    ours: float
    published: float
    line: float | None = None

    @property
    def percent(self) -> float:
        """The error in per cent of the published figure; infinite where that is 0 and ours is not."""
        if not self.published:
            return math.inf if self.ours else 0.0
        return 100 * abs(self.ours / self.published - 1)

    @property
    def points(self) -> float | None:
        """The error in percentage points of line rate."""
        return 100 * abs(self.ours - self.published) / self.line if self.line else None


def closeness_words(pairs: Sequence[Pair]) -> str:
    """A sentence with the median and the 95th percentile of the errors in both scales, and how many are small; ""."""
    if not pairs:
        return ""
    percents = [pair.percent for pair in pairs]
    small = ", ".join(f"{sum(each <= most for each in percents)} within {most:g} %" for most in WITHIN)
    words = f"error of {counted(len(pairs), 'figure')}: {_spread(percents, ' %')}; {small}"
    points = [pair.points for pair in pairs if pair.points is not None]
    return f"{words}; in points of line rate: {_spread(points)}" if points else words


def _spread(errors: Sequence[float], unit: str = "") -> str:
    ordered = sorted(errors)
    middle, high = (ordered[math.ceil(share * len(ordered)) - 1] for share in (0.5, 0.95))
    return f"median {middle:.1f}{unit}, 95th percentile {high:.1f}{unit}"


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
        """Half the width of the difference's interval: by the spread of both samples, and the step."""
        return self.comparison.half_width + self.step

    @property
    def half_width_percent(self) -> float | None:
        """The same in per cent of the baseline's mean; None where that is 0."""
        found = self.comparison.relative_half_width_percent
        return None if found is None else found + 100 * self.step / abs(self.comparison.reference.mean)

    @property
    def proven(self) -> bool:
        """Return whether a difference is proven at CONFIDENCE beside all others of the row, and is no drift."""
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
