"""Runs into the store: what a path holds, and each run's folder as rows of the tables.

The folder's integrity is checked, and its records are read as everywhere else.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import BREAKDOWN_ERRORS, ConfigError, TestbedError, in_words
from ...stats.intervals import Interval, mean_interval
from ..integrity import Integrity, check_integrity
from ..records import TrialRecord
from ..run import RecordedRun, recorded_run
from ..run_files import ENVIRONMENT_FILE, MANIFEST_FILE, REQUIREMENTS, TRIALS
from ..sentence_rows import SentenceRow, sentence_rows
from .address import StoreAddress
from .store import Added, HistoryStore
from .tables import LARGEST_COUNT, StoredRun, TrialRow, columns, release_of


@dataclass(frozen=True)
class Imported:
    """The fate of the run at ``path``; ``refused``: why it was not taken, or ""."""

    path: str
    run: str = ""
    added: str = ""
    trials: int = 0
    simulated: bool = False
    notes: tuple[str, ...] = ()
    refused: str = ""


def find_runs(path: Path) -> list[Path]:
    """The folders of runs in *path*: itself, or those below it, in order. No link is followed.

    Raises ConfigError if there is none.
    """
    if not path.is_dir():
        raise ConfigError("is no folder; expected that of a run, as results/<run id>, or one with runs in it", path)
    found = []
    for folder, inside, files in os.walk(path):
        names = {*inside, *files}
        if {TRIALS, REQUIREMENTS} & names and {ENVIRONMENT_FILE, MANIFEST_FILE, TRIALS} & names:
            found.append(Path(folder))
            inside.clear()
        inside[:] = sorted(name for name in inside if not name.startswith("."))
    if not found:
        raise ConfigError("holds no run; expected the folder of a run, as results/<run id>, or one with runs", path)
    return sorted(found)


def import_one(store: HistoryStore, path: Path, replace: bool) -> Imported:
    """Add the run at *path*; what is wrong with it is said in the result. Raises TestbedError if the store fails."""
    try:
        with _no_collection():
            found = check_integrity(path)
            found.refuse_altered()
            if found.manifest is not None and (known := store.has(found.sum_of_records)):
                same = Added.SAME.value  # the sums are right, so that reading it would give what is there
                return Imported(str(path), known["run"], same, simulated=bool(known["simulated"]))
            run = stored_run(found)
            added = store.add(run, replace)
    except ConfigError as error:
        return Imported(str(path), refused=str(error))
    except TestbedError:
        raise
    except BREAKDOWN_ERRORS as error:
        return Imported(str(path), refused=f"{path}: {in_words(error)}")
    return Imported(
        str(path),
        run.name,
        added.value,
        len(run.trials) if added in (Added.NEW, Added.REPLACED) else 0,
        bool(run.run["simulated"]),
        run.notes,
    )


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Millions of small objects without a cycle: looking for cycles among them takes a third of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def import_all(
    address: StoreAddress,
    paths: Sequence[Path],
    replace: bool = False,
    done: Callable[[Imported], None] = lambda _: None,
) -> list[Imported]:
    """Add the runs in the folders *paths*; *done* is called after each. Raises TestbedError if the store fails."""
    results: list[Imported] = []
    with contextlib.closing(HistoryStore.open(address, create=True)) as store:
        for path in paths:
            results.append(import_one(store, path, replace))
            done(results[-1])
    return results


def stored_run(found: Integrity) -> StoredRun:
    """The run that was *found*, closed or not. Raises ConfigError naming what was altered since, or is wrong."""
    folder, run = found.path, recorded_run(found)
    rows = sentence_rows(run, _interval)
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
        sha256=found.sum_of_records,
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


def _sentence_row(row: SentenceRow) -> dict[str, Any]:
    record, demanded, measured = row.record, row.record.requirement, row.measured
    named = demanded.named_load(record.link_bps)
    margin = row.margin or (None, None)
    return columns(
        number=record.number,
        test=record.test,
        sentence=record.sentence,
        goal=record.goal,
        quantity=record.quantity,
        traffic=demanded.traffic,
        statistic=demanded.statistic and demanded.statistic.name,
        at_least=demanded.at_least,
        threshold=demanded.threshold.number,
        unit=demanded.threshold.unit.value,
        scope=demanded.scope.value,
        load_pps=named and named.pps,
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
