"""The results of a study, from its run's folder alone: figures, beside the baseline and beside the published ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean, median
from typing import TypeVar

from ..errors import ConfigError
from ..evidence.inputs import unpacked_inputs
from ..evidence.records import MeasurementRecord
from ..evidence.run import RecordedRun, read_run
from ..procedures.search import RELATIVE_WIDTH
from ..stats import Comparison, Method, Summary, compare, holm_levels, mean_interval
from ..units import Layer, bits, counted, line_rate_pps
from .measuring import CORE_SHARE, FRAME, LINE, LINK, OFFERED, RECEIVED, STEAL
from .study import AT_LEAST, RAMP_STEPS, TABLE_UNITS, Study, load_study, rate_units, steps_of

REPEATS = "repeats"
"""Key of an environment's extra data: the number of blocks."""

UNCHECKED = "unchecked"
"""Key of an environment's extra data: by variant, what of its router could not be checked, and why."""

MOST_OUTSIDE = 0.05
"""The share of published figures that may be outside of their tolerance."""


@dataclass(frozen=True)
class StudyCell:
    """One row on one variant, in the row's unit. ``gaps``: why measurements have no value.

    ``published``: a figure, or those of several runs; ``allowed``: how far ours may be from it; ``published_compared``:
    ministat's answer. ``excused``: all its gaps are no failures, as of what is not here. ``blocks``: that have a value,
    of those that were ``asked`` for. ``bounds``: how many values are only what was offered most.
    """

    row: str
    variant: str
    unit: str
    values: tuple[float, ...]
    gaps: tuple[str, ...]
    published: tuple[float, ...] = ()
    allowed: float = 0.0
    explanation: str = ""
    compared: Compared | None = None
    published_compared: Compared | None = None
    excused: bool = False
    blocks: int = 1
    asked: int = 1
    bounds: int = 0

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
    def sign(self) -> str:
        """The sign before its figures: ``≥ `` where they are only what was offered most, or ""."""
        return "≥ " if self.at_least else ""

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


@dataclass(frozen=True)
class StudyResults:
    """``cells``: by row and variant, in the study's order. ``drifts``: by row, the baseline first against last.

    ``planned``: how many records there should be. ``machine``: that the run was made on, in words; "" if it is not
    known. ``history``: notes on how the run came about, in sentences. ``unchecked``: by variant, what of its router
    could not be checked, and why.
    """

    study: Study
    records: tuple[MeasurementRecord, ...]
    cells: Mapping[tuple[str, str], StudyCell]
    drifts: Mapping[str, Compared]
    planned: int = 0
    run: str = ""
    folder: Path = Path()
    testbed: str = ""
    machine: str = ""
    history: tuple[str, ...] = ()
    unchecked: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

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
        return list(grouped((cell.row, cell) for cell in self.cells.values()).items())


K = TypeVar("K")
V = TypeVar("V")


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the second of *pairs* by their first, in order."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def in_unit(found: StudyResults, cell: StudyCell, value: float, unit: str) -> float | None:
    """Return *value* of *cell* in a *unit* of :class:`.StudyTable`; None where what that needs is not recorded."""
    if unit in ("", cell.unit):
        return value
    known = [each for each in found.records if each.row == cell.row and each.value is not None]
    own = [each.figures for each in known if each.variant == cell.variant]
    if cell.unit not in TABLE_UNITS:
        forwarded = [each["forwarded_pps"] for each in own if "forwarded_pps" in each]
        return median(forwarded) * (1.0 if unit == "pps" else value / 1e6) if forwarded else None
    # of a gap the published figure is shown by what others of the row were sent
    figures = next((each for each in (*own, *(each.figures for each in known)) if LINE in each), None)
    if figures is None:
        return None
    directions = 2 if "bidirectional" in found.study.traffic_of(cell.row, cell.variant).split() else 1
    pps = rate_units(figures[LINE], figures[LINK], directions)
    return value * pps[cell.unit] / pps[unit]


def study_of(run: RecordedRun) -> Study:
    """Return the study that *run* has kept, with its number of blocks. Raises ConfigError."""
    kept = sorted(unpacked_inputs(run).glob("*/studies/*.yaml"))
    if not kept:
        raise ConfigError("keeps no file of a study in its inputs; expected the folder of a study's run", run.path)
    repeats = run.environment.extra.get(REPEATS)
    study = load_study(kept[0])
    return study.model_copy(update={"repeats": repeats}) if isinstance(repeats, int) else study


def read_results(folder: Path) -> StudyResults:
    """Return what the run in *folder* found, closed or not. Raises ConfigError if it is no study's, or was altered."""
    run = read_run(folder)
    records, environment, study = run.measured, run.environment, study_of(run)
    carried = Counter(record.carried_from for record in records if record.carried_from)
    total, host = counted(len(records), "measurement"), environment.host
    said = (f"{number} of {total} carried over from run {origin}." for origin, number in carried.items())
    machine = (
        host.get("cpu"),
        counted(host.get("cpus") or 0, "CPU"),
        f"kernel {host.get('kernel')}",
        host.get("system"),
    )
    return replace(
        results_of(study, records, len(steps_of(study))),
        run=environment.run,
        folder=folder,
        testbed=environment.testbed,
        machine=", ".join(map(str, machine)) if host else "",
        history=tuple(said),
        unchecked=environment.extra.get(UNCHECKED, {}),
    )


def results_of(study: Study, records: Sequence[MeasurementRecord], planned: int = 0) -> StudyResults:
    """Return what *records* of *study* come to. *planned*: how many there should be."""
    cells: dict[tuple[str, str], StudyCell] = {}
    drifts: dict[str, Compared] = {}
    for row in study.measures:
        mine = [record for record in records if record.row == row]
        names = [name for name in study.variants if row in study.rows_of(name)]
        own = {name: [record for record in mine if record.variant == name] for name in names}
        bare = {name: _cell(study, row, name, of_variant) for name, of_variant in own.items()}
        baselines = {name: study.baseline_of(name) for name in own}
        line = next((record.line for record in mine if record.line is not None), 0.0)
        step, width = _step(study, row, line), RELATIVE_WIDTH if study.measures[row].kind == "throughput" else 0.0
        first, drift = bare.get(study.baseline or ""), None
        # what a generator offers at most would be the generator's drift
        if first is not None and not first.at_least:
            turns = {turn: _values(record for record in mine if record.turn == turn) for turn in ("first", "last")}
            drift = compare_with({"last": "first"}, turns, step=step, width=width).get("last")
        if drift is not None:
            drifts[row] = drift
        means = {name: visit_means(own[name]) for name, cell in bare.items() if cell.measured}
        compared = compare_with(baselines, {name: bare[name].values for name in means}, means, step=step, width=width)
        if len(records) < planned:
            # who looks, and then goes on or ends, finds differences that are none
            compared = {}
        # what the source's own ministat answers
        published = compare_with(baselines, {name: cell.published for name, cell in bare.items()}, method="pooled")
        for name, cell in bare.items():
            difference = compared.get(name)
            if difference is not None and drift is not None and drift.proven:
                difference = replace(difference, drift=abs(drift.comparison.difference))
            if difference is not None and _is_limited(cell, bare[baselines[name] or ""], difference):
                difference = replace(difference, limited=True)
            cells[row, name] = replace(cell, compared=difference, published_compared=published.get(name))
    return StudyResults(study, tuple(records), cells, drifts, planned)


def _values(records: Iterable[MeasurementRecord]) -> tuple[float, ...]:
    return tuple(record.value for record in records if record.value is not None)


def _cell(study: Study, row: str, name: str, own: Sequence[MeasurementRecord]) -> StudyCell:
    """Return what the records of one row and variant come to by themselves."""
    line = next((record.line for record in own if record.line is not None), None)
    gaps = [record for record in own if record.value is None]
    known = [record for record in own if record.value is not None]
    published, allowed = study.published_figures(row, name), 0.0
    if published and math.isfinite(middle := Summary.of(published).median):
        measure = study.measures[row]
        allowed = study.tolerance_of(row).allowed(middle, line if measure.is_rate else None, measure.is_difference)
    return StudyCell(
        row,
        name,
        study.unit_of(row),
        _values(known),
        tuple(record.reason for record in gaps),
        published,
        allowed,
        study.explanation(row, name),
        excused=bool(gaps) and all(record.excused for record in gaps),
        blocks=len({record.block for record in known}),
        asked=study.repeats_of(row),
        bounds=sum(record.figures.get(AT_LEAST) == 1.0 for record in known),
    )


def _is_limited(cell: StudyCell, base: StudyCell, difference: Compared) -> bool:
    """Return whether a *difference* says nothing, because a router's limit is somewhere above some of its values.

    Such values are too small. They can hide a difference, and make one; they cannot make one of the other sign.
    """
    if not (cell.bounds or base.bounds):
        return False
    return not difference.proven or bool((cell if difference.comparison.difference < 0 else base).bounds)


def _step(study: Study, row: str, line: float) -> float:
    """The load by which two steps of a ramp differ, in the row's unit; 0 of other rows."""
    measure = study.measures[row]
    directions = 2 if "bidirectional" in measure.traffic.split() else 1
    return directions * line / (measure.steps or RAMP_STEPS) if measure.kind == "ramp" else 0.0


CONFIDENCE = 0.95

NO_SPREAD = 1e-5
"""The share of the baseline's mean up to which a sample has no spread: less than what two clocks differ by."""

RESOLUTION = 0.01
"""The share of the baseline's mean beyond which samples without a spread differ: twice the width of a search, where
each figure falls on the same bound, and far more than a frame at the end of a trial. A ramp's is at least its step."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A variant's sample with the baseline's. ``p``: that chance alone makes such a difference.

    ``allowance``: so much may the measurements make of no difference, whatever their spread (a ramp's step, a search's
    width, RESOLUTION without a spread); the interval has it. ``drift``: a difference of no more than that may be the
    baseline's own. ``limited``: it says nothing, because some values are only what was offered.
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
        most, mean = abs(self.comparison.difference) + self.half_width, abs(self.comparison.reference.mean)
        most = max(most, self.drift)
        return 100 * most / mean if mean else math.inf

    @property
    def absolute(self) -> str:
        """The difference in the sample's unit, with its interval."""
        # two digits of the interval, and no power of ten
        return f"{self.comparison.difference:+.4g} ± {float(f'{self.half_width:.2g}'):g}"

    @property
    def change(self) -> str:
        """``-17.1 % ± 0.3 %``, or in the sample's unit where the baseline's mean is 0."""
        known, half_width = self.comparison.relative_percent, self.half_width_percent
        return self.absolute if known is None or half_width is None else f"{known:+.2f} % ± {half_width:.2g} %"

    def __str__(self) -> str:
        if self.limited:
            return "not proven: some values are only what was offered"
        return self.change if self.proven else f"not proven at {100 * CONFIDENCE:g} %; measured {self.change}"


def visit_means(records: Sequence[MeasurementRecord]) -> tuple[float, ...]:
    """The values of one row and variant, those that follow each other without another variant between as their mean."""
    visits = grouped((record.block + (record.turn == "last"), record.value) for record in records)
    known = [[value for value in visits[number] if value is not None] for number in sorted(visits)]
    return tuple(fmean(values) for values in known if values)


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
    as a share of them, a search's.
    """
    known = samples if references is None else references
    pairs = {name: (known.get(base or "", ()), samples.get(name, ())) for name, base in baselines.items()}
    pairs = {name: pair for name, pair in pairs.items() if min(map(len, pair)) > 1}
    allowances = [_allowance(*pair, step, width) if method == "welch" else 0.0 for pair in pairs.values()]
    chances = [
        compare(*pair, CONFIDENCE, method).chance(allowance)
        for pair, allowance in zip(pairs.values(), allowances, strict=True)
    ]
    return {
        name: Compared(compare(*pair, 1 - level, method), p, allowance)
        for (name, pair), p, level, allowance in zip(
            pairs.items(), chances, holm_levels(chances, 1 - CONFIDENCE), allowances, strict=True
        )
    }


def _allowance(reference: Sequence[float], sample: Sequence[float], step: float, width: float) -> float:
    """Return the difference that measurements of one router may have."""
    mean = abs(fmean(reference))
    step, unseen = max(step, width * max(mean, abs(fmean(sample)))), NO_SPREAD * mean
    if any(max(each) - min(each) > unseen for each in (reference, sample)):
        return step
    # two figures a step apart may be so much farther from each other
    return max(RESOLUTION * mean, step + 2 * unseen if step else 0.0)


# -- the fitness of a generator for a line: by the interval of its repeats, and never unfit where others took its CPU

LINES = {"1 Gbit/s": 1e9, "10 Gbit/s": 10e9}
"""The lines that are asked about, bit/s of L1."""

FULL = 0.99
"""The least share of line rate that fills a line: a clock may be a little slow, and a measurement, too."""

ARRIVED = 0.99
"""The least share of the offered frames that is received: what a port only counts as sent fills no line."""

LEAST_REPEATS = 3
"""The least measurements of a verdict: two that are equal by chance have an interval of 0."""

BUSY = 0.85
"""The least share of its cores that a sender takes which nothing keeps from them; iperf3 waits a little."""


FITNESS: Mapping[bool | None, str] = {True: "fit", False: "not fit", None: "not proven"}
"""The verdicts on a generator, a size and a line."""


@dataclass(frozen=True)
class SenderFigures:
    """The frames that a variant sent of one row, of the worse direction. ``medians`` of its *n* figures, by name.

    ``received``: the median share of the offered frames, 0..1. ``fits``: by line, as in FITNESS.
    """

    row: str
    variant: str
    n: int
    medians: Mapping[str, float]
    received: float
    fits: Mapping[str, bool | None]

    def gbps(self, layer: Layer) -> float:
        """Gbit/s at *layer*."""
        return self.medians[OFFERED] * bits(self.medians[FRAME], layer) / 1e9


def senders_of(found: StudyResults) -> list[SenderFigures]:
    """Return what generators sent, in the order of rows and variants; nothing of a study with a router."""
    senders = []
    for (row, variant), cell in found.cells.items() if found.study.bypass else ():
        own = [record for record in found.records if (record.row, record.variant) == (row, variant)]
        if figures := [record.figures for record in own if record.value is not None]:
            names = dict.fromkeys(name for each in figures for name in each)
            medians = {name: median(each[name] for each in figures if name in each) for name in names}
            received = median(each[RECEIVED] / each[OFFERED] if each[OFFERED] else 0.0 for each in figures)
            fits = {name: fit(figures, link) for name, link in LINES.items()}
            senders.append(SenderFigures(row, variant, len(cell.values), medians, received, fits))
    return senders


def fit(figures: Sequence[Mapping[str, float]], link_bps: float) -> bool | None:
    """Return the verdict on the repeats' *figures* for a line of *link_bps*, as in FITNESS."""
    needed = FULL * line_rate_pps(link_bps, figures[0][FRAME])
    offered = mean_interval([each[OFFERED] for each in figures], CONFIDENCE)
    if len(figures) < LEAST_REPEATS or offered.low is None or offered.high is None:
        return None
    if offered.low >= needed:
        return all(each[RECEIVED] >= ARRIVED * each[OFFERED] for each in figures) or None
    might = offered.high >= needed or any(each[LINK] < link_bps or _possible(each) >= needed for each in figures)
    return None if might else False


def _possible(figures: Mapping[str, float]) -> float:
    """Frames/s that the sender might have offered with the CPU that others took from it; infinite if not known."""
    pps = figures[OFFERED] / max(1e-9, 1 - figures.get(STEAL, 0.0) / 100)
    share = figures.get(CORE_SHARE)
    if share is None:
        return math.inf
    return pps if share >= BUSY else pps / share
