"""The results of a study, from its run's folder alone: figures, beside the baseline and beside the published ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean, median
from typing import TypeVar

from ..errors import ConfigError
from ..evidence.inputs import unpacked_inputs
from ..evidence.records import EnvironmentRecord, MeasurementRecord
from ..evidence.run import RecordedRun, read_run
from ..stats import Comparison, Method, Summary, compare, holm_levels
from ..units import counted
from .study import AT_LEAST, LINE, LINK, TABLE_UNITS, Study, load_study, rate_units, steps_of

REPEATS = "repeats"
"""Key of an environment's extra data: the number of blocks."""

SESSIONS, PCIE = "sessions", "pcie"
"""Key of an environment's extra data: by platform and software, versions and configuration of the router, and of a card
whose bus is modelled its PCIe link."""

UNCHECKED = "unchecked"
"""Key of an environment's extra data: by variant, what of its router could not be checked, and why."""

CONFIDENCE = 0.95

K = TypeVar("K")
V = TypeVar("V")


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the second of *pairs* by their first, in order."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


@dataclass(frozen=True)
class Compared:
    """A variant's sample with the baseline's.

    ``allowance``: so much may the measurements make of no difference, whatever their spread (a ramp's step, a hundredth
    without a spread); the interval has it. ``drift``: a difference of no more than that may be the baseline's own.
    ``limited``: it says nothing, because some values are only what was offered. ``p``: that chance alone makes such a
    difference.
    """

    comparison: Comparison
    p: float
    allowance: float = 0.0
    drift: float = 0.0
    limited: bool = False

    @property
    def half_width(self) -> float:
        """Half the width of the difference's interval: by the spread of both samples, and the allowance."""
        return self.comparison.half_width + self.allowance

    @property
    def half_width_percent(self) -> float | None:
        """The same in per cent of the baseline's mean; None where that is 0."""
        known = self.comparison.relative_half_width_percent
        return None if known is None else known + 100 * self.allowance / abs(self.comparison.reference.mean)

    @property
    def proven(self) -> bool:
        """Return whether a difference is proven at CONFIDENCE beside all others of the row."""
        return not self.limited and abs(self.comparison.difference) > max(self.half_width, self.drift)

    @property
    def most_percent(self) -> float:
        """Return the largest difference that there may be, in per cent of the baseline's mean."""
        most = max(abs(self.comparison.difference) + self.half_width, self.drift)
        return 100 * most / mean if (mean := abs(self.comparison.reference.mean)) else math.inf

    @property
    def absolute(self) -> str:
        """The difference in the sample's unit, with its interval."""
        # two digits of the interval, and no power of ten
        return f"{self.comparison.difference:+.4g} ± {float(f'{self.half_width:.2g}'):g}"

    @property
    def change(self) -> str:
        """The difference as ``-17.1 % ± 0.3 %``, or in the sample's unit where the baseline's mean is 0."""
        known, half_width = self.comparison.relative_percent, self.half_width_percent
        return self.absolute if known is None or half_width is None else f"{known:+.2f} % ± {half_width:.2g} %"

    def __str__(self) -> str:
        if self.limited:
            return "not proven: some values are only what was offered"
        return self.change if self.proven else f"not proven at {100 * CONFIDENCE:g} %; measured {self.change}"


@dataclass(frozen=True)
class StudyCell:
    """One row on one variant, in the row's unit, by its records that have a value: ``known``.

    ``gaps``: why others have none; those of fewer than half of the blocks are none either: what spoilt the others may
    have changed them. ``excused``: of what is not here. ``published``: a figure, or those of several runs; ``allowed``:
    how far ours may be from it; ``published_compared``: ministat's answer.
    """

    row: str
    variant: str
    unit: str
    known: tuple[MeasurementRecord, ...] = ()
    gaps: tuple[str, ...] = ()
    excused: bool = False
    published: tuple[float, ...] = ()
    allowed: float = 0.0
    explanation: str = ""
    compared: Compared | None = None
    published_compared: Compared | None = None

    @cached_property
    def values(self) -> tuple[float, ...]:
        """The values in the order of their measurements."""
        return tuple(record.value for record in self.known if record.value is not None)

    @cached_property
    def summary(self) -> Summary | None:
        """The summary of the values; None without any."""
        return Summary.of(self.values) if self.values else None

    @cached_property
    def published_summary(self) -> Summary | None:
        """The summary of the published figures; None without any."""
        return Summary.of(self.published) if self.published else None

    @cached_property
    def bounds(self) -> int:
        """The number of values that are only what was offered most."""
        return sum(record.figures.get(AT_LEAST) == 1.0 for record in self.known)

    @property
    def at_least(self) -> bool:
        """Return whether the median is only what was offered most, and the router's limit somewhere above."""
        return 0 < len(self.values) <= 2 * self.bounds

    @property
    def sign(self) -> str:
        """The sign before its figures: ``≥ `` where they are only what was offered most, or ""."""
        return "≥ " if self.at_least else ""

    @property
    def inside(self) -> bool | None:
        """Return whether the medians are close enough, which a gap is not; None: nothing is published."""
        if self.published_summary is None:
            return None
        own, published = self.summary, self.published_summary
        return own is not None and abs(own.median - published.median) <= self.allowed * (1 + 1e-9)

    @property
    def visit_means(self) -> tuple[float, ...]:
        """The mean of each visit: of the values that follow each other without another variant between."""
        visits = grouped((record.block + (record.turn == "last"), record.value or 0.0) for record in self.known)
        return tuple(fmean(visits[number]) for number in sorted(visits))


@dataclass(frozen=True)
class StudyResults:
    """``cells``: by row and variant, in the study's order. ``drifts``: by row, the baseline first against last.

    ``planned``: how many records there should be. ``environment`` of the run, and its ``folder``.
    """

    study: Study
    records: tuple[MeasurementRecord, ...]
    cells: Mapping[tuple[str, str], StudyCell]
    drifts: Mapping[str, Compared]
    environment: EnvironmentRecord
    planned: int = 0
    folder: Path = Path()

    @property
    def simulated(self) -> bool:
        """Return whether any of it is no measurement."""
        return any(record.simulated for record in self.records)

    @property
    def published(self) -> tuple[StudyCell, ...]:
        """Return those with a published figure."""
        return tuple(cell for cell in self.cells.values() if cell.published)

    @property
    def outside(self) -> tuple[StudyCell, ...]:
        """Return those whose published figure is not met."""
        return tuple(cell for cell in self.published if not cell.inside)

    @property
    def gaps(self) -> tuple[StudyCell, ...]:
        """Return those without a value."""
        return tuple(cell for cell in self.cells.values() if not cell.values)

    @property
    def failures(self) -> tuple[StudyCell, ...]:
        """Return those of the gaps that should have a value, and not of what is not here."""
        return tuple(cell for cell in self.gaps if not cell.excused)

    @property
    def complete(self) -> bool:
        """Return whether all that was planned was measured, or is a gap with its reason."""
        return len(self.records) >= self.planned

    @property
    def close_enough(self) -> bool:
        """Return whether no more than 5 % of the published figures are outside."""
        return len(self.outside) <= 0.05 * len(self.published)

    def rows(self) -> list[tuple[str, list[StudyCell]]]:
        """Return the cells of each row."""
        return list(grouped((cell.row, cell) for cell in self.cells.values()).items())

    def in_unit(self, cell: StudyCell, value: float, unit: str) -> float | None:
        """Return *value* of *cell* in a *unit* of :class:`.StudyTable`; None: what that needs is not recorded."""
        if unit in ("", cell.unit):
            return value
        if cell.unit not in TABLE_UNITS:
            forwarded = [record.figures["forwarded_pps"] for record in cell.known if "forwarded_pps" in record.figures]
            return median(forwarded) * (1.0 if unit == "pps" else value / 1e6) if forwarded else None
        # of a gap the published figure is shown by what others of the row were sent
        sent = (*cell.known, *(record for record in self.records if record.row == cell.row))
        units = _units(sent, _directions(self.study.traffic_of(cell.row, cell.variant)))
        return value * units[cell.unit] / units[unit] if units else None


def _directions(traffic: str) -> int:
    return 2 if "bidirectional" in traffic.split() else 1


def _units(records: Iterable[MeasurementRecord], directions: int = 1) -> Mapping[str, float]:
    """Return how many frames/s each unit is of what the first of *records* that has a rate was sent; empty: none."""
    known = (record.figures for record in records if LINE in record.figures)
    return next((rate_units(figures[LINE], figures[LINK], directions) for figures in known), {})


# -- from records to results -------------------------------------------------------------------------------------------


def study_of(run: RecordedRun) -> Study:
    """Return the study that *run* has kept, with its number of blocks. Raises ConfigError."""
    kept = sorted(unpacked_inputs(run).glob("*/studies/*.yaml"))
    if not kept:
        raise ConfigError("keeps no file of a study in its inputs; expected the folder of a study's run", run.path)
    return load_study(kept[0]).model_copy(update={"repeats": run.environment.extra[REPEATS]})


def read_results(folder: Path) -> StudyResults:
    """Return what the run in *folder* measured, closed or not.

    Raises ConfigError if it is no study's, or was altered.
    """
    run = read_run(folder)
    records, study = run.measured, study_of(run)
    return replace(results_of(study, records, run.environment, len(steps_of(study))), folder=folder)


def results_of(
    study: Study, records: Sequence[MeasurementRecord], environment: EnvironmentRecord, planned: int = 0
) -> StudyResults:
    """Return what *records* of *study* come to. *planned*: how many there should be."""
    of_cell = grouped(((record.row, record.variant), record) for record in records)
    is_complete = len(records) >= planned
    cells: dict[tuple[str, str], StudyCell] = {}
    drifts: dict[str, Compared] = {}
    for row in study.measures:
        names = [name for name in study.variants if row in study.rows_of(name)]
        own = {name: _cell(study, row, name, of_cell.get((row, name), [])) for name in names}
        step = _ramp_step(study, row, records)
        base = own.get(study.baseline or "")
        # what a generator offers at most would be the generator's drift
        if base is not None and not base.at_least:
            turns = grouped((record.turn, record.value or 0.0) for record in base.known)
            drifts |= compared_pairs({row: (turns.get("first", []), turns.get("last", []))}, step)
        based = {name: own[known] for name in names if (known := study.baseline_of(name) or "") in own}
        # who looks before all is measured, and then goes on or ends, finds differences that are none
        pairs = {name: (base.visit_means, own[name].values) for name, base in based.items() if is_complete}
        differences = compared_pairs(pairs, step)
        # what the source's own ministat answers
        answers = compared_pairs({name: (base.published, own[name].published) for name, base in based.items()}, None)
        for name, cell in own.items():
            compared = differences.get(name)
            if compared is not None:
                compared = _limited(compared, based[name], cell, drifts.get(row))
            cells[row, name] = replace(cell, compared=compared, published_compared=answers.get(name))
    return StudyResults(study, tuple(records), cells, drifts, environment, planned)


def _cell(study: Study, row: str, variant: str, records: Sequence[MeasurementRecord]) -> StudyCell:
    """Return what the *records* of one row and variant come to by themselves."""
    measure, unit, asked = study.measures[row], study.unit_of(row), study.repeats_of(row)
    known = tuple(record for record in records if record.value is not None)
    gaps = [record.reason for record in records if record.value is None]
    if known and 2 * (blocks := len({record.block for record in known})) < asked:
        known, gaps = (), [f"values of {blocks} of {counted(asked, 'block')} are too few", *gaps]
    published, allowed = study.published_figures(row, variant), 0.0
    if published and math.isfinite(middle := Summary.of(published).median):
        line = _line(records, unit) if measure.is_rate else None
        allowed = study.tolerance_of(row).allowed(middle, line, measure.is_difference)
    explanation, excused = study.explanation(row, variant), any(record.excused for record in records)
    return StudyCell(row, variant, unit, known, tuple(gaps), excused, published, allowed, explanation)


def _line(records: Iterable[MeasurementRecord], unit: str) -> float | None:
    """Return one direction's line rate in *unit*; None where no record has it."""
    units = _units(records)
    return 100 * units["percent of line"] / units[unit] if units else None


# -- comparisons


Pair = tuple[Sequence[float], Sequence[float]]
"""The baseline's sample, and a variant's."""


def _ramp_step(study: Study, row: str, records: Sequence[MeasurementRecord]) -> float:
    """Return how far apart figures of one router may be, in the row's unit: a ramp's step; 0: it has none."""
    measure = study.measures[row]
    if measure.kind != "ramp":
        return 0.0
    line = _line((record for record in records if record.row == row), study.unit_of(row)) or 0.0
    return _directions(measure.traffic) * line / measure.steps


def _limited(compared: Compared, base: StudyCell, cell: StudyCell, drift: Compared | None) -> Compared:
    """Return *compared*, of *cell* with *base*, with what *drift* and values that are only what was offered make of it.

    Those are too small: they can hide a difference, and make one; they cannot make one of the other sign.
    """
    drifted = abs(drift.comparison.difference) if drift is not None and drift.proven else 0.0
    known = replace(compared, drift=drifted)
    smaller = cell if known.comparison.difference < 0 else base
    return replace(known, limited=bool(smaller.bounds) if known.proven else bool(cell.bounds or base.bounds))


def compared_pairs(pairs: Mapping[str, Pair], step: float | None) -> dict[str, Compared]:
    """Compare each of *pairs*, all as a family (Holm); those of fewer than two values are left out.

    *step*: by how much figures of one router may differ, as a ramp's; None: by one variance, as ministat does, also
    where there is no spread.
    """
    method: Method = "welch" if step is not None else "pooled"
    pairs = {name: pair for name, pair in pairs.items() if min(map(len, pair)) > 1}
    allowances = [0.0 if step is None else _allowance(*pair, step) for pair in pairs.values()]
    chances = [
        compare(*pair, CONFIDENCE, method).chance(allowance)
        for pair, allowance in zip(pairs.values(), allowances, strict=True)
    ]
    families = zip(pairs.items(), chances, holm_levels(chances, 1 - CONFIDENCE), allowances, strict=True)
    return {
        name: Compared(compare(*pair, 1 - level, method), p, allowance)
        for (name, pair), p, level, allowance in families
    }


def _allowance(reference: Sequence[float], sample: Sequence[float], step: float) -> float:
    """Return the difference that measurements of one router may have."""
    # less than what two clocks differ by is no spread
    mean = abs(fmean(reference))
    unseen = 1e-5 * mean
    if any(max(values) - min(values) > unseen for values in (reference, sample)):
        return step
    # Far more than a frame at the end of a trial. Two figures a step apart may be so much farther from each other.
    return max(0.01 * mean, step + 2 * unseen if step else 0.0)
