"""The store: runs are added whole or not at all, by several processes at once, and asked by SQL."""

from __future__ import annotations

import contextlib
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, delete, event, insert, inspect, select, text, update
from sqlalchemy.exc import SQLAlchemyError

from ...errors import ConfigError, TestbedError, system_words
from ...visible import shortened
from .address import StoreAddress
from .tables import VERSION, VIEWS, StoredRun, metadata, runs, sentences, store, trials

WAIT = 120.0
"""Seconds that a writer waits for another one."""

_LOCK = 0x6C696E65  # "line"
"""The advisory lock of PostgreSQL under which tables are made."""


class Added(Enum):
    """The fate of a run that was to be added."""

    NEW = "imported"
    SAME = "unchanged"
    REPLACED = "replaced"
    OLDER = "the store has a later state"


class HistoryStore:
    """The open store. Its methods raise TestbedError where the database does not answer."""

    def __init__(self, address: StoreAddress, engine: Engine) -> None:
        self.address, self._engine = address, engine

    @classmethod
    def open(cls, address: StoreAddress, create: bool = False) -> HistoryStore:
        """Open the store; *create*: make its tables if there are none. Raises ConfigError where there is no store."""
        if address.file is not None:
            _prepare_file(address.file, create)
        found = cls(address, _engine(address))
        with found._writing() if create else found._reading() as connection:
            if create and address.file is None:
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            _check_version(connection, address, create)
        return found

    def add(self, found: StoredRun, replace: bool = False) -> Added:
        """Add a run in one transaction; the same one again changes nothing, a later state of it takes its place.

        *replace*: also take it where the store has a closed run of that name with other records, which is refused
        otherwise (ConfigError): a closed run does not change.
        """
        with self._writing() as connection:
            dialect = import_module(f"sqlalchemy.dialects.{'postgresql' if self.address.file is None else 'sqlite'}")
            values = {**found.run, "imported": time.time()}
            adding = dialect.insert(runs).values(values).on_conflict_do_nothing(index_elements=["run"])
            new = connection.execute(adding.returning(runs.c.id)).first()  # another writer's makes it wait, then none
            known = connection.execute(select(runs).where(runs.c.run == found.name).with_for_update()).mappings().one()
            result = Added.NEW if new is not None else self._decide(dict(known), found, replace)
            if result is Added.REPLACED:
                for table in (trials, sentences):
                    connection.execute(delete(table).where(table.c.run_id == known["id"]))
                connection.execute(update(runs).where(runs.c.id == known["id"]).values(values))
            if result in (Added.NEW, Added.REPLACED):
                self._add_rows(connection, known["id"], found)
        return result

    def has(self, records: str) -> Mapping[str, Any] | None:
        """The row of the closed run with this sum of its *records*, which names the run; None: it is not here."""
        found = self.query("SELECT * FROM runs WHERE closed AND sha256 = :records", records=records)
        return found[0] if found else None

    def _decide(self, known: Mapping[str, Any], found: StoredRun, replace: bool) -> Added:
        if known["sha256"] == found.run["sha256"] and known["closed"] == found.run["closed"]:
            return Added.SAME
        if replace:
            return Added.REPLACED
        if known["closed"] and found.run["closed"]:
            raise ConfigError(
                f"differs from the run {known['run']} that the store has (records {known['sha256'][:12]}…, from"
                f" {known['folder']}); a closed run does not change. Find out which one is right; --replace takes this",
                found.run["folder"],
            )
        return Added.REPLACED if found.rank > (known["closed"], known["records"]) else Added.OLDER

    def _add_rows(self, connection: Connection, run: int, found: StoredRun) -> None:
        if found.sentences:
            connection.execute(insert(sentences), [{"run_id": run, **row} for row in found.sentences])
        if not found.trials:
            return
        names = ", ".join(trials.c.keys())
        rows = ((run, *row) for row in found.trials)
        if self.address.file is not None:
            marks = ", ".join("?" for _ in trials.c)
            # the driver's own call: SQLAlchemy's would make a mapping of each of a million rows
            connection.exec_driver_sql(f"INSERT INTO trials ({names}) VALUES ({marks})", list(rows))  # noqa: S608  (names of columns)
            return
        driver: Any = connection.connection.driver_connection
        with driver.cursor() as cursor, cursor.copy(f"COPY trials ({names}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def query(self, statement: str, **values: object) -> list[Mapping[str, Any]]:
        """The rows of *statement*, with ``:name`` for *values*."""
        with self._reading() as connection:
            found = connection.execute(text(statement), values)
            names = tuple(found.keys())  # once: SQLAlchemy's mappings look each name up in each row
            return [dict(zip(names, row, strict=True)) for row in found]

    def close(self) -> None:
        """Close its connections."""
        self._engine.dispose()

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Connection]:
        with database_errors(self.address), self._engine.connect() as connection:
            yield connection.execution_options(reading=True)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Connection]:
        with database_errors(self.address), self._engine.begin() as connection:
            yield connection


@contextlib.contextmanager
def database_errors(address: StoreAddress) -> Iterator[None]:
    """Errors of the database as TestbedError, with the store's name and without its password."""
    kinds: tuple[type[Exception], ...] = (SQLAlchemyError, sqlite3.Error, *_driver_errors())
    try:
        yield
    except kinds as error:
        cause = getattr(error, "orig", None) or error
        words = shortened(address.masked(" ".join(str(cause).split())), 300)
        if "not a database" in words:
            raise ConfigError("is no store: the file is no SQLite database; name another one", address.shown) from None
        advice = (
            "check that it can be written and that its disk is not full"
            if address.file is not None
            else "check its host, database and user, and that the server runs"
        )
        raise TestbedError(f"the store {address.shown} does not answer: {words}; {advice}") from None


def _driver_errors() -> tuple[type[Exception], ...]:
    """Return what psycopg raises where it is called without SQLAlchemy; nothing where it was not needed."""
    driver = sys.modules.get("psycopg")
    return () if driver is None else (driver.Error,)


def _prepare_file(path: Path, create: bool) -> None:
    if create:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TestbedError(f"the store {path} cannot be made: {system_words(error, path.parent)}") from None
    if path.is_dir():
        raise ConfigError("is a folder; expected the file of a store, as results/history.db", path)
    if not create and not path.exists():
        raise ConfigError("there is no store yet; 'lineproof history import RUN' makes it", path)


def _engine(address: StoreAddress) -> Engine:
    if address.file is None:
        return create_engine(address.url, pool_size=1, connect_args={"connect_timeout": 10})
    engine = create_engine(address.url, connect_args={"timeout": WAIT}, pool_size=1)

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # transactions are begun below, not by Python's driver
        _write_ahead(connection)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        reading = connection.get_execution_options().get("reading", False)
        # a writer that begins as a reader would fail when another one wrote meanwhile
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

    return engine


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Let readers read while one writes. The change itself does not wait for others, so it is tried again."""
    until = time.monotonic() + WAIT
    while True:
        try:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.02)


def _check_version(connection: Connection, address: StoreAddress, create: bool) -> None:
    """Raise ConfigError unless the store is of this version; *create*: make it where there is nothing."""
    present = set(inspect(connection).get_table_names())
    if store.name not in present:
        if others := sorted(present & set(metadata.tables)):
            words = f"has a table '{others[0]}' of something else; name a file or database for the history alone"
            raise ConfigError(words, address.shown)
        if not create:
            raise ConfigError("is no store yet; 'lineproof history import RUN' makes it", address.shown)
        metadata.create_all(connection)
        for name, definition in VIEWS.items():
            connection.execute(text(f"CREATE VIEW {name} AS {definition}"))
        connection.execute(insert(store).values(version=VERSION))
    versions: Sequence[int] = connection.execute(select(store.c.version)).scalars().all()
    if list(versions) != [VERSION]:
        raise ConfigError(
            f"is a store of version {', '.join(map(str, versions))}; this Lineproof has {VERSION}: name another store"
            " and import the runs again",
            address.shown,
        )
