"""The store of all runs: a SQLite file, or a PostgreSQL database by URL. A run is added whole or not at all."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy import Boolean, Column, Connection, Float, Integer, MetaData, Table, Text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from ...errors import ConfigError, TestbedError
from ...files import check_writable
from ...visible import shortened

metadata = MetaData()

version = Table("lineproof_history_3", metadata, Column("empty", Integer, primary_key=True))
"""An empty table, whose name says which tables a store has. docs/history.md explains them to people who ask by SQL."""

runs = Table(
    "runs",
    metadata,
    Column("run", Text, primary_key=True),
    *(Column(name, Text, nullable=False) for name in ("folder", "testbed", "platform", "software", "release")),
    *(Column(name, Boolean, nullable=False) for name in ("simulated", "closed")),
    Column("sha256", Text, nullable=False, index=True),
    Column("records", sql.BigInteger, nullable=False),
    Column("started", Float),
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


class Added(StrEnum):
    """The fate of a run that was to be added."""

    NEW = "imported"
    SAME = "unchanged"
    REPLACED = "replaced"
    OLDER = "the store has a later state"


def store_url(given: str | None, results: Path) -> sql.URL:
    """Return the store that *given* names, else LINEPROOF_HISTORY, else a file in *results*. Raises ConfigError."""
    name = given or os.environ.get("LINEPROOF_HISTORY") or str(results / "history.db")
    if "://" not in name:
        return sql.URL.create("sqlite", database=name)
    scheme = name.partition("://")[0]
    with contextlib.suppress(ArgumentError, ValueError):
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
        self._file = Path(url.database or "") if url.drivername == "sqlite" else None
        plain = url.set(drivername="postgresql", password=None).difference_update_query(["password", "sslpassword"])
        self.shown = plain.render_as_string() if self._file is None else str(self._file)
        if self._file is not None and create:
            check_writable(self._file.parent)
        elif self._file is not None and not self._file.exists():
            raise ConfigError("there is no store yet; 'lineproof history import RUN' makes it", self._file)
        self._engine = _engine(url)
        with self._connection(create) as connection:
            if create and self._file is None:
                connection.execute(sql.text("SELECT pg_advisory_xact_lock(1818848869)"))  # as others may make them too
            present = sql.inspect(connection).get_table_names()
            if create and not present:
                metadata.create_all(connection)
            elif version.name not in present:
                words = "is no store of this version of Lineproof; name another, and import the runs again"
                raise ConfigError(words, self.shown)

    def add(self, run: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], replace: bool = False) -> Added:
        """Add a *run* with its sentences; the same one again changes nothing, a later state of it takes its place.

        *replace*: also take it where the store has a closed run of that name with other records, which is refused
        otherwise (ConfigError): a closed run does not change.
        """
        dialect = postgresql if self._file is None else sqlite
        adding = dialect.insert(runs).values(run).on_conflict_do_nothing().returning(runs.c.run)
        own = runs.c.run == run["run"]
        with self._connection(True) as connection:
            result = Added.NEW
            if connection.execute(adding).first() is None:  # another writer's makes it wait
                known = connection.execute(sql.select(runs).where(own).with_for_update()).mappings().one()
                result = self._compared(dict(known), run, replace)
            if result is Added.REPLACED:
                connection.execute(sql.delete(sentences).where(sentences.c.run == run["run"]))
                connection.execute(sql.update(runs).where(own).values(run))
            if rows and result in (Added.NEW, Added.REPLACED):
                connection.execute(sql.insert(sentences), [{"run": run["run"], **row} for row in rows])
        return result

    def _compared(self, known: Mapping[str, Any], run: Mapping[str, Any], replace: bool) -> Added:
        if (known["sha256"], known["closed"]) == (run["sha256"], run["closed"]):
            return Added.SAME
        if known["closed"] and run["closed"] and not replace:
            raise ConfigError(
                f"differs from the run {known['run']} that the store has (records {known['sha256'][:12]}…, from"
                f" {known['folder']}); a closed run does not change. Find out which one is right; --replace takes this",
                run["folder"],
            )
        is_later = (run["closed"], run["records"]) > (known["closed"], known["records"])
        return Added.REPLACED if replace or is_later else Added.OLDER

    def rows(self, statement: sql.Executable) -> Sequence[sql.Row[Any]]:
        """Return the rows of *statement*."""
        with self._connection(False) as connection:
            return connection.execute(statement).all()

    @contextlib.contextmanager
    def _connection(self, writing: bool) -> Iterator[Connection]:
        """Connect for one transaction. Errors of the database become a TestbedError."""
        try:
            with self._engine.connect().execution_options(writing=writing) as connection, connection.begin():
                yield connection
        except SQLAlchemyError as error:
            words = shortened(" ".join(str(getattr(error, "orig", None) or error).split()), 300)
            if "not a database" in words:
                raise ConfigError("is no store: the file is no SQLite database; name another", self.shown) from None
            advice = "host, database and user, and that the server runs"
            advice = advice if self._file is None else "that it can be written and that its disk is not full"
            raise TestbedError(f"the store {self.shown} does not answer: {words}; check {advice}") from None


def _engine(url: sql.URL) -> sql.Engine:
    if url.drivername != "sqlite":
        return sql.create_engine(url, connect_args={"connect_timeout": 10})
    engine = sql.create_engine(url, connect_args={"timeout": 120})  # s that a writer waits for another one

    @sql.event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # transactions are begun below, not by Python's driver

    @sql.event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writing = connection.get_execution_options().get("writing", False)
        # a writer that begins as a reader would fail when another one wrote meanwhile
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine
