"""Runs into the store: the runs that a path holds, each read and checked as everywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import select

from ...errors import BREAKDOWN_ERRORS, ConfigError, TestbedError, in_words
from ...stats import mean_interval
from ...visible import visible
from ..integrity import Integrity, check_integrity
from ..run import RecordedRun, recorded_run
from ..run_files import REQUIREMENTS, TRIALS
from ..sentence_rows import SentenceRow, sentence_rows
from .store import Added, HistoryStore, runs

MEASURED, CAPACITY, AT_LEAST = "measured", "capacity", "at least"
"""Kinds of a value: the mean of the trials, the highest load carried, a load that passed without a search for more."""


@dataclass(frozen=True)
class Imported:
    """The fate of the run at ``path``; ``refused``: why it was not taken, or ""."""

    path: str
    run: str = ""
    added: str = ""
    sentences: int = 0
    simulated: bool = False
    notes: tuple[str, ...] = ()
    refused: str = ""


def find_runs(path: Path) -> list[Path]:
    """Return the folders of runs in *path*: itself, or those below it, in order. Raises ConfigError without one."""
    folders = sorted({file.parent for name in (TRIALS, REQUIREMENTS) for file in path.rglob(name)})
    if not folders:
        raise ConfigError("holds no run; expected the folder of a run, as results/<run id>, or one with runs", path)
    return folders


def import_run(store: HistoryStore, path: Path, replace: bool = False) -> Imported:
    """Add the run at *path*; why it is refused is said in the result. Raises TestbedError if the store fails."""
    try:
        found = check_integrity(path)
        found.refuse_altered()
        known = select(runs.c.run, runs.c.simulated).where(runs.c.closed, runs.c.sha256 == found.sum_of_records)
        if found.manifest is not None and (same := store.rows(known)):
            # the sums are right, so that reading it would give what is there
            return Imported(str(path), same[0].run, Added.SAME, simulated=same[0].simulated)
        recorded = recorded_run(found)
        run, sentences = _run_row(found, recorded), list(map(_sentence_row, sentence_rows(recorded, mean_interval)))
        added = store.add(run, sentences, replace)
    except TestbedError:
        raise
    except BREAKDOWN_ERRORS as error:
        where = "" if isinstance(error, ConfigError) else f"{path}: "
        return Imported(str(path), refused=f"{where}{in_words(error)}")
    return Imported(str(path), run["run"], added, len(sentences), run["simulated"], recorded.notes)


def _run_row(found: Integrity, run: RecordedRun) -> dict[str, Any]:
    known = run.environment
    return _stored(
        run=known.run if known else found.path.resolve().name,
        folder=str(found.path.resolve()),
        simulated=run.simulated,
        closed=found.manifest is not None,
        sha256=found.sum_of_records,
        records=found.records,
        started=known.started if known else min((item.started for item in run.requirements), default=None),
        testbed=known.testbed if known else "",
        platform=known.platform if known else "",
        software=known.software if known else "",
        release=release_of(known.versions) if known else "",
    )


def _sentence_row(row: SentenceRow) -> dict[str, Any]:
    record, demanded, measured, search = row.record, row.record.requirement, row.measured, row.search
    kind = AT_LEAST if row.is_carried else MEASURED
    value, low, high = (measured.estimate, measured.low, measured.high) if measured else (None, None, None)
    if search is not None:
        kind, value = CAPACITY, demanded.threshold.number * search.low
        low, high = value, search.high and demanded.threshold.number * search.high
    return _stored(
        **{name: getattr(record, name) for name in ("number", "test", "sentence", "goal", "verdict", "started")},
        kind=kind,
        at_least=demanded.at_least,
        unit=demanded.threshold.unit.value,
        threshold=demanded.threshold.number,
        value=value,
        low=low,
        high=high,
        lost=row.lost,
        trials=len(row.sample),
        set_aside=row.set_aside,
    )


def _stored(**values: Any) -> dict[str, Any]:
    """Return a row. PostgreSQL stores no NUL, SQLite no half characters: text is made visible."""
    return {name: visible(value) if isinstance(value, str) else value for name, value in values.items()}


def release_of(versions: Mapping[str, str]) -> str:
    """Return the router's versions in words, its own first. Where one changes, there is another release."""
    own = {name.removeprefix("router."): value for name, value in versions.items() if name.startswith("router.")}
    return ", ".join(f"{name} {own[name]}" for name in sorted(own, key=lambda name: (name != "version", name)))
