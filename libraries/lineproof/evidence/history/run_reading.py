"""A run's folder as rows of the store.

The folder's integrity is checked, and requirements, environment and margins are read as everywhere else. Of trials,
which are the bulk, only what the rows need is read: its types are checked while it is parsed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ...core.bounds import Bounds
from ...core.trial import DirectionCount, Load, Outcome, Trial
from ...errors import ConfigError
from ...stats.intervals import Interval, mean_interval
from ..integrity import Integrity
from ..outcome_json import read_latency, read_problems
from ..records import TRIAL, TrialRecord
from ..run import RecordedRun, read_margins, recorded_run
from ..run_files import RECORDS
from ..sentence_rows import SentenceRow, sentence_rows
from .stored_run import LARGEST_COUNT, StoredRun, TrialRow, columns, release_of


def stored_run(found: Integrity) -> StoredRun:
    """The run that was *found*, closed or not. Raises ConfigError naming what was altered since, or is wrong."""
    folder, run = found.path, recorded_run(found, _needed_of_trials)
    rows = sentence_rows(run, read_margins(folder), _interval)
    figures = {place: figure for row in rows for place, figure in row.figures.items()}
    return StoredRun(
        _run_row(found, run),
        tuple(map(_sentence_row, rows)),
        tuple(_trial_row(folder, place, item, figures) for place, item in enumerate(run.trials)),
        run.notes,
    )


def _interval(sample: Sequence[float], confidence: float) -> Interval:
    """Student's t for every sample: a bootstrap takes longer than reading its trials by two orders of magnitude."""
    return mean_interval(sample, confidence)


def _run_row(found: Integrity, run: RecordedRun) -> dict[str, Any]:
    known = run.environment
    moments = [item.started for item in run.requirements] + [item.trial.outcome.started for item in run.trials[:1]]
    ends = [item.ended for item in run.requirements]
    code = {} if known is None else known.code
    commit = str(code.get("commit") or "")[:12]
    name = known.run if known else next((item.run for item in run.requirements), found.path.resolve().name)
    return columns(
        run=name,
        folder=str(found.path.resolve()),
        simulated=run.simulated,
        closed=found.manifest is not None,
        sha256=found.manifest or _sum_of_records(found),
        records=sum(map(len, found.lines.values())),
        started=known.started if known else min(moments, default=None),
        ended=known.ended if known and known.ended is not None else max(ends, default=None),
        testbed=known.testbed if known else "",
        platform=known.platform if known else "",
        software=known.software if known else "",
        release=release_of(known.versions) if known else "",
        versions=dict(known.versions) if known else {},
        goal=next((item.goal for item in run.requirements), ""),
        lineproof=f"{code.get('version', '')} {commit}".strip(),
    )


def _sum_of_records(found: Integrity) -> str:
    """Of a run without a manifest: of all records, by the chain that ends in the last line of each file."""
    ends = (lines[-1] if (lines := found.lines[name]) else b"" for name in RECORDS)
    return hashlib.sha256(b"\n".join(ends)).hexdigest()


def _sentence_row(row: SentenceRow) -> dict[str, Any]:
    record, demand, measured = row.record, row.record.demand, row.measured
    margin = row.margin or (None, None)
    return columns(
        number=record.number,
        test=record.test,
        sentence=record.sentence,
        goal=record.goal,
        quantity=demand.quantity,
        traffic=demand.traffic,
        statistic=demand.statistic,
        at_least=demand.at_least,
        threshold=demand.number,
        unit=demand.unit,
        scope=demand.scope,
        load_pps=demand.load_pps,
        verdict=record.verdict,
        measured=measured and measured.estimate,
        low=measured and measured.low,
        high=measured and measured.high,
        observations=len(row.sample),
        set_aside=row.set_aside,
        searched=row.search is not None,
        carried=row.is_carried,
        margin_low=margin[0],
        margin_high=margin[1],
        lost=row.lost,
        started=record.started,
        ended=record.ended,
    )


def _trial_row(folder: Path, place: int, record: TrialRecord, figures: Mapping[int, float | None]) -> TrialRow:
    trial = record.trial
    counts = trial.offered, trial.forwarded, trial.lost
    if max(counts) > LARGEST_COUNT:
        raise ConfigError(f"trials.jsonl:{place + 1} counts more frames than any counter of 64 bits", folder)
    figure = figures.get(place)
    measured = figure if figure is not None and math.isfinite(figure) else None
    outcome = trial.outcome
    known = place in figures
    loads = (outcome.started, outcome.duration, outcome.load.pps)
    return (place + 1, record.requirement, trial.number, *loads, *counts, measured, known)


@dataclass(frozen=True, slots=True)
class _NeededOfTrial:
    """The keys of a trial's record that the rows need."""

    schema: str
    run: str
    simulated: bool
    requirement: int
    number: int
    test: str
    sentence: str
    profile: str
    mean_size: float
    link_bps: float
    clock_speed: float
    load_pps: float
    duration: float
    elapsed: float | None
    started: float
    sent_for: float
    sent_for_at_most: float
    directions: list[DirectionCount]
    problems: list[dict[str, Any]]
    readings: dict[str, float | None]
    latency: list[dict[str, Any]]


@cache
def _adapter() -> TypeAdapter[_NeededOfTrial]:
    return TypeAdapter(_NeededOfTrial)


def _needed_of_trials(lines: Sequence[bytes]) -> tuple[TrialRecord, ...]:
    """The trials, without what no row needs: raw counters, streams, samples of a recovery. Raises ValueError."""
    parse = _adapter().validate_json
    try:
        return tuple(_record(parse(line, strict=True)) for line in lines)
    except ValidationError as error:
        raise ValueError(str(error)) from None


def _record(found: _NeededOfTrial) -> TrialRecord:
    if found.schema != TRIAL:
        raise ValueError(f"'schema' is {found.schema}")
    outcome = Outcome(
        Load(found.load_pps),
        found.duration,
        math.nan if found.elapsed is None else found.elapsed,
        found.started,
        tuple(found.directions),
        (),
        {name: math.nan if value is None else value for name, value in found.readings.items()},
        tuple(map(read_latency, found.latency)),
    )
    problems, seconds = read_problems(found.problems), Bounds(found.sent_for, found.sent_for_at_most)
    return TrialRecord(
        found.run,
        found.simulated,
        found.requirement,
        found.test,
        found.sentence,
        found.profile,
        found.mean_size,
        found.link_bps,
        Trial(found.number, outcome, problems, seconds),
        found.clock_speed,
    )
