"""The store of all runs: a SQLite file, or a PostgreSQL database by URL. A run is added whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy import Boolean, Column, Connection, Float, Integer, MetaData, Table, Text, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from ...errors import BREAKDOWN_ERRORS, ConfigError, TestbedError, in_words
from ...files import check_writable, is_folder
from ...visible import shortened, visible
from ..integrity import Integrity, check_integrity
from ..run import RecordedRun, find_runs, recorded_run
from ..run_files import REQUIREMENTS
from ..summary import SentenceRow, sentence_rows

metadata = MetaData()

version = Table("lineproof_history_3", metadata, Column("empty", Integer, primary_key=True))
"""An empty table, whose name says which tables a store has. docs/ci.md explains them to people who ask by SQL."""

runs = Table(
    "runs",
    metadata,
    Column("run", Text, primary_key=True),
    *(Column(name, Text, nullable=False) for name in ("folder", "testbed", "platform", "software", "release")),
    *(Column(name, Boolean, nullable=False) for name in ("simulated", "closed")),
    Column("sha256", Text, nullable=False),
    Column("records", sql.BigInteger, nullable=False),
    Column("started", Float, nullable=False),
)

sentences = Table(
    "sentences",
    metadata,
    Column("run", sql.ForeignKey("runs.run"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    *(Column(name, Text, nullable=False) for name in ("test", "sentence", "goal", "verdict", "kind", "unit")),
    Column("at_least", Boolean, nullable=False),
    *(Column(name, Float) for name in ("started", "threshold", "value", "low", "high", "lost")),
    *(Column(name, Integer, nullable=False) for name in ("trials", "set_aside")),
    sqlite_with_rowid=False,
)


def store_url(given: str | None, results: Path) -> sql.URL:
    """Return the store that *given* names, else LINEPROOF_HISTORY, else a file in *results*. Raises ConfigError."""
    name = given or os.environ.get("LINEPROOF_HISTORY") or str(results / "history.db")
    scheme, is_url, _ = name.partition("://")
    if not is_url:
        return sql.URL.create("sqlite", database=name)
    with suppress(ArgumentError, ValueError):
        url = sql.make_url(name)
        if scheme in ("postgresql", "postgres"):
            return url.set(drivername="postgresql+psycopg")
        if scheme == "sqlite" and url.database:
            return url
    expected = "expected a file, as results/history.db, or postgresql://USER@HOST/DATABASE"
    raise ConfigError(f"the store '{shortened(scheme)}://…' is no address of one; {expected}")


class HistoryStore:
    """An open store. Its methods raise TestbedError where the database does not answer; no message has a password."""

    def __init__(self, url: sql.URL, create: bool = False) -> None:
        """Open it; *create*: make its tables if there are none. Raises ConfigError where there is no store."""
        self._is_file = url.drivername == "sqlite"
        file, wait = Path(url.database or ""), {"timeout": 120} if self._is_file else {"connect_timeout": 10}  # s
        plain = url.set(drivername="postgresql", password=None).difference_update_query(["password", "sslpassword"])
        self.shown = str(file) if self._is_file else plain.render_as_string()
        if self._is_file and create:
            check_writable(file.parent)
        elif self._is_file and not file.exists():
            raise ConfigError("there is no store yet; 'lineproof history import RUN' makes it", file)
        self._engine = sql.create_engine(url, connect_args=wait)
        with self._connection() as connection:
            if create and not self._is_file:
                connection.execute(sql.text("SELECT pg_advisory_xact_lock(1818848869)"))  # as others may make them too
            present = sql.inspect(connection).get_table_names()
            if create and (not present or version.name in present):  # in SQLite, another may have made a part of them
                for table in metadata.sorted_tables:
                    connection.execute(sql.schema.CreateTable(table, if_not_exists=True))
            elif version.name not in present:
                words = "is no store of this version of Lineproof; name another, and import the runs again"
                raise ConfigError(words, self.shown)

    def add(self, run: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], replace: bool = False) -> str:
        """Add a *run* with its sentences, and return what became of it.

        The same one again changes nothing, a later state of it takes its place. A closed run does not change: another
        one of its name is refused (ConfigError), unless it is to *replace* it.
        """
        dialect, own, added = sqlite if self._is_file else postgresql, runs.c.run == run["run"], "imported"
        insert = dialect.insert(runs).values(run).on_conflict_do_nothing().returning(runs.c.run)
        with self._connection() as connection:
            # it comes first, so that another writer's makes it wait
            if connection.execute(insert).first() is None:
                known = connection.execute(sql.select(runs).where(own).with_for_update()).one()
                if (known.sha256, known.closed) == (run["sha256"], run["closed"]):
                    return "unchanged"
                if known.closed and run["closed"] and not replace:
                    raise ConfigError(
                        f"differs from the run {known.run} that the store has, from {known.folder}; a closed run does"
                        " not change. Find out which one is right; --replace takes this",
                        run["folder"],
                    )
                if not replace and (run["closed"], run["records"]) <= (known.closed, known.records):
                    return "the store has a later state"
                added = "replaced"
                connection.execute(sql.delete(sentences).where(sentences.c.run == run["run"]))
                connection.execute(sql.update(runs).where(own).values(run))
            if rows:
                connection.execute(sql.insert(sentences), [{"run": run["run"], **row} for row in rows])
        return added

    def rows(self, statement: sql.Executable) -> Sequence[sql.Row[Any]]:
        """Return the rows of *statement*."""
        with self._connection() as connection:
            return connection.execute(statement).all()

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """Connect for one transaction. Errors of the database become a TestbedError."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            words = shortened(" ".join(str(getattr(error, "orig", None) or error).split()), 300)
            advice = "check its address, that it can be written, and that its server runs"
            raise TestbedError(f"the store {self.shown} does not answer: {words}; {advice}") from None


# -- runs into the store -----------------------------------------------------------------------------------------------


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
    kind = AT_LEAST if row.is_carried else MEASURED
    value, low, high = (mean.estimate, mean.low, mean.high) if (mean := row.measured) else (None, None, None)
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
