"""Runs into the store: the runs that a path holds, each read and checked as everywhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import select

from ...errors import BREAKDOWN_ERRORS, ConfigError, TestbedError, in_words
from ...files import is_folder
from ...stats import mean_interval
from ...visible import visible
from ..integrity import Integrity, check_integrity
from ..run import RecordedRun, find_runs, recorded_run
from ..run_files import REQUIREMENTS
from ..summary import SentenceRow, sentence_rows
from .store import HistoryStore, runs

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


def runs_named(name: str) -> Sequence[Path]:
    """Return the folders of runs that *name* is: itself, all below it, or as :func:`.find_runs`. Raises ConfigError."""
    path = Path(name)
    if not is_folder(path):
        return find_runs(name)
    if folders := sorted(file.parent for file in path.rglob(REQUIREMENTS)):
        return folders
    raise ConfigError("holds no run; expected the folder of a run, as results/<run id>, or one with runs", path)


def import_run(store: HistoryStore, path: Path, replace: bool = False) -> Imported:
    """Add the run at *path*; why it is refused is said in the result. Raises TestbedError if the store fails."""
    try:
        state = check_integrity(path)
        state.refuse_altered()
        known = select(runs.c.run, runs.c.simulated).where(runs.c.closed, runs.c.sha256 == state.sum_of_records)
        if state.manifest is not None and (same := store.rows(known)):
            # the sums are right, so that reading it would give what is there
            return Imported(str(path), same[0].run, "unchanged", simulated=same[0].simulated)
        recorded = recorded_run(state)
        run, lines = _run_row(state, recorded), list(map(_sentence_row, sentence_rows(recorded)))
        added = store.add(run, lines, replace)
    except TestbedError:
        raise
    except BREAKDOWN_ERRORS as error:
        where = "" if isinstance(error, ConfigError) else f"{path}: "
        return Imported(str(path), refused=f"{where}{in_words(error)}")
    return Imported(str(path), run["run"], added, len(lines), run["simulated"], recorded.notes)


def _run_row(state: Integrity, recorded: RecordedRun) -> dict[str, Any]:
    environment = recorded.environment
    names = ("run", "simulated", "started", "testbed", "platform", "software")
    return _stored(
        **{name: getattr(environment, name) for name in names},
        folder=str(state.path.resolve()),
        closed=state.manifest is not None,
        sha256=state.sum_of_records,
        records=state.records,
        release=release_of(environment.versions),
    )


def _sentence_row(row: SentenceRow) -> dict[str, Any]:
    record, threshold, search = row.record, row.record.requirement.threshold, row.search
    # thousands of runs: the interval that needs no SciPy
    measured = replace(row, method=mean_interval).measured
    kind = AT_LEAST if row.is_carried else MEASURED
    value, low, high = (measured.estimate, measured.low, measured.high) if measured else (None, None, None)
    if search is not None:
        kind, value = CAPACITY, threshold.number * search.low
        low, high = value, search.high and threshold.number * search.high
    return _stored(
        **{name: getattr(record, name) for name in ("number", "test", "sentence", "verdict", "started")},
        goal=record.goal.goal,
        **{"kind": kind, "value": value, "low": low, "high": high, "lost": row.lost},
        at_least=record.requirement.at_least,
        unit=threshold.unit.value,
        threshold=threshold.number,
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
