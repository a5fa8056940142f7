"""The store of all runs: a SQLite file, or a PostgreSQL database by URL; and its table of sentences over the runs.

A run is added whole or not at all.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from ...core.units import Unit, Value
from ...documents.document import (
    SIMULATED,
    Cell,
    Column,
    Document,
    Items,
    Note,
    Part,
    Row,
    Section,
    Table,
    verdict_cell,
)
from ...errors import BREAKDOWN_ERRORS, ConfigError, TestbedError, in_words
from ...files import check_writable, is_folder
from ...stats import FALSE_ALARMS, LEAST_SEGMENT, Comparison, change_points
from ...units import counted, moment
from ...visible import shortened, visible
from ..rejudge import confirmed
from ..run import RecordedRun, execution_of, find_runs, recorded_run
from ..run_files import REQUIREMENTS, Integrity, check_integrity
from ..summary import SentenceRow, sentence_rows

metadata = sql.MetaData()

version = sql.Table("lineproof_history_3", metadata, sql.Column("empty", sql.Integer, primary_key=True))
"""An empty table, whose name says which tables a store has. docs/ci.md explains them to people who ask by SQL."""

runs = sql.Table(
    "runs",
    metadata,
    sql.Column("run", sql.Text, primary_key=True),
    *(sql.Column(name, sql.Text, nullable=False) for name in ("folder", "testbed", "platform", "software", "release")),
    *(sql.Column(name, sql.Boolean, nullable=False) for name in ("simulated", "closed")),
    sql.Column("sha256", sql.Text, nullable=False),
    sql.Column("started", sql.Float, nullable=False),
)

sentences = sql.Table(
    "sentences",
    metadata,
    sql.Column("run", sql.ForeignKey("runs.run"), primary_key=True),
    sql.Column("number", sql.Integer, primary_key=True, autoincrement=False),
    *(sql.Column(name, sql.Text, nullable=False) for name in ("test", "sentence", "goal", "verdict", "kind", "unit")),
    sql.Column("at_least", sql.Boolean, nullable=False),
    *(sql.Column(name, sql.Float) for name in ("started", "threshold", "value", "low", "high", "lost")),
    *(sql.Column(name, sql.Integer, nullable=False) for name in ("trials", "set_aside")),
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
        """Open the store; *create*: make its tables if there are none. Raises ConfigError where there is no store."""
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
                reason = "is no store of this version of Lineproof; name another, and import the runs again"
                raise ConfigError(reason, self.shown)

    def add(self, run: Mapping[str, Any], judged: Sequence[Mapping[str, Any]]) -> str:
        """Add a *run* with its sentences, and return what became of it.

        The same one again changes nothing, another state of one that was not closed takes its place. A closed run does
        not change: another one of its name is refused (ConfigError).
        """
        dialect, own, added = sqlite if self._is_file else postgresql, runs.c.run == run["run"], "imported"
        insert = dialect.insert(runs).values(run).on_conflict_do_nothing().returning(runs.c.run)
        with self._connection() as connection:
            # it comes first, so that another writer's makes it wait
            if connection.execute(insert).first() is None:
                known = connection.execute(sql.select(runs).where(own).with_for_update()).one()
                if (known.sha256, known.closed) == (run["sha256"], run["closed"]):
                    return "unchanged"
                if known.closed:
                    message = (
                        f"differs from the run {known.run} that the store has, from {known.folder}, and a closed run"
                    )
                    raise ConfigError(f"{message} does not change; find out which one is right", run["folder"])
                added = "replaced"
                connection.execute(sql.delete(sentences).where(sentences.c.run == run["run"]))
                connection.execute(sql.update(runs).where(own).values(run))
            if judged:
                connection.execute(sql.insert(sentences), [{"run": run["run"], **row} for row in judged])
        return added

    def read(self, statement: sql.Executable) -> Sequence[sql.Row[Any]]:
        """Return the rows of *statement*."""
        with self._connection() as connection:
            return connection.execute(statement).all()

    @contextmanager
    def _connection(self) -> Iterator[sql.Connection]:
        """Connect for one transaction. Errors of the database become a TestbedError."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            reason = shortened(" ".join(str(getattr(error, "orig", None) or error).split()), 300)
            advice = "check its address, that it can be written, and that its server runs"
            raise TestbedError(f"the store {self.shown} does not answer: {reason}; {advice}") from None


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


def import_run(store: HistoryStore, path: Path) -> Imported:
    """Add the run at *path*; why it is refused is said in the result. Raises TestbedError if the store fails."""
    try:
        state = check_integrity(path)
        state.refuse_altered()
        known = sql.select(runs.c.run, runs.c.simulated).where(runs.c.closed, runs.c.sha256 == state.sum_of_records)
        if state.manifest is not None and (same := store.read(known)):
            # the sums are right, so that reading it would give what is there
            return Imported(str(path), same[0].run, "unchanged", simulated=same[0].simulated)
        recorded = confirmed(recorded_run(state))
        run, lines = _run_row(state, recorded), list(map(_sentence_row, sentence_rows(recorded)))
        added = store.add(run, lines)
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


# -- a row a sentence, a column a run or a release; then where the level of a sentence changed -------------------------

Point = sql.Row[Any]
"""A sentence in one run: the columns of ``sentences``, and those of its run."""

COLUMNS = 5
"""Runs or releases in a table, the newest ones; more cannot be read beside each other."""

_GROUP = ("simulated", "platform", "software", "testbed", "goal")
"""Figures that differ in one of these are of unlike things."""


def points_of(store: HistoryStore, platform: str | None, part: str = "", since: float = 0.0) -> Sequence[Point]:
    """Return the points of the runs of *platform* (None: of all), by time. Raises TestbedError.

    *part*: of the sentence, in any case of letters; *since*: Unix time.
    """
    of_run = [runs.c[name] for name in (*_GROUP[:-1], "release", "closed")]
    chosen = sql.select(*of_run, *sentences.c).join_from(sentences, runs)
    chosen = chosen.where(sentences.c.started >= since, sentences.c.sentence.icontains(part, autoescape=True))
    chosen = chosen.where(runs.c.platform == platform) if platform else chosen
    return store.read(chosen.order_by(sentences.c.started, sentences.c.run, sentences.c.number))


def trend(points: Sequence[Point], by_release: bool = False) -> Document:
    """Return a table for each platform, software, testbed and goal, and below it the changes; real runs first.

    *by_release*: a column is the newest run of a release.
    """
    simulated = all(point.simulated for point in points)
    sections, changes, counts = [], list[dict[str, object]](), list[int]()
    groups = sorted(_groups(points, *_GROUP).items(), key=lambda named: str(named[0]))
    for (of_simulated, *names, testbed, goal), group in groups:
        series = _groups(group, "sentence", "test")
        judged = list(map(_judged, series.values()))
        parts: list[Part] = [Note(SIMULATED, strong=True)] if of_simulated and not simulated else []
        parts.append(_table(group, series, by_release))
        for own in judged:
            for place, size in change_points([point.value for point in own]):
                text, data = _change(own[place - 1], own[place], size)
                parts.append(Items([text]))
                changes.append(data)
        sections.append(Section(f"{' '.join(filter(None, names))} on {testbed}, goal {goal}", parts))
        counts += map(len, judged)
    enough = sum(count >= 2 * LEAST_SEGMENT for count in counts)
    rule = (
        f"Changes of level were looked for in {enough} of {counted(len(counts), 'sentence')}: in those with figures of"
        f" {2 * LEAST_SEGMENT} runs. Of sentences without a change at most 1 in {1 / FALSE_ALARMS:.0f} shows one by"
        " chance. The ± is Welch's, at 95 % confidence."
    )
    data = {"false_alarms": FALSE_ALARMS, "changes": changes}
    return Document("", [*sections, Section("", [Note(rule)])], simulated, data)


def _judged(points: Sequence[Point]) -> list[Point]:
    """Return the points with a figure; where margins were searched, none of a load that only passed."""
    searched = any(point.kind == CAPACITY for point in points)
    return [point for point in points if point.value is not None and not (searched and point.kind == AT_LEAST)]


def _change(before: Point, after: Point, size: Comparison) -> tuple[str, dict[str, object]]:
    """Return a change of a sentence's level between two of its points, in words and for programs."""
    is_worse = (size.difference < 0) is bool(after.at_least)
    by = f"{size.difference:+.4g} ± {size.half_width:.2g}"
    if size.relative_percent is not None:
        by = f"{size.relative_percent:+.3g} % ± {size.relative_half_width_percent:.2g} %"
    levels = size.reference.mean, size.candidate.mean
    new = new_in_release(before.release, after.release)
    message = (
        f"{'WORSE' if is_worse else 'better'} {by}, from {_text(after, levels[0])} to {_text(after, levels[1])},"
        f" in run {after.run} of {moment(after.started)}{f', new release: {new}' if new else ''}: {after.sentence}"
    )
    return message, {**after._asdict(), "levels": levels, "percent": size.relative_percent, "worse": is_worse}


def _groups(points: Sequence[Point], *names: str) -> dict[tuple[Any, ...], list[Point]]:
    groups: dict[tuple[Any, ...], list[Point]] = {}
    key = attrgetter(*names)
    for point in points:
        groups.setdefault(key(point), []).append(point)
    return groups


def _table(group: Sequence[Point], series: Mapping[tuple[Any, ...], Sequence[Point]], by_release: bool) -> Table:
    """Return the newest runs beside each other; those of one execution are one."""
    ordered = list({execution_of(point.run): point for point in reversed(group)}.values())[::-1]
    if by_release:
        ordered = [point for point, after in pairwise(ordered) if point.release != after.release] + ordered[-1:]
    shown = ordered[-COLUMNS:]
    columns = [Column(head, left=True) for head in map(_head, [None, *shown], shown)]
    twice = Counter(sentence for sentence, _ in series)
    lines = []
    for (sentence, test), own in series.items():
        by_run = {execution_of(point.run): _cell(point) for point in own}
        name = sentence if twice[sentence] == 1 else f"{sentence} ({test})"
        lines.append(Row([name, *(by_run.get(execution_of(point.run), "–") for point in shown)]))
    return Table([Column("sentence", left=True), *columns], lines)


def _head(before: Point | None, point: Point) -> str:
    """Return when a run was, and what is new in its release."""
    new = point.release.partition(", ")[0] if before is None else new_in_release(before.release, point.release)
    return " ".join(filter(None, (moment(point.started), shortened(new, 40), "" if point.closed else "incomplete")))


def _cell(point: Point) -> Cell:
    value = "no figure" if point.value is None else f"{'≥ ' * (point.kind == AT_LEAST)}{_text(point, point.value)}"
    return replace(verdict_cell(point.verdict), text=f"{value} {point.verdict}")


def _text(point: Point, value: float) -> str:
    return str(Value(float(f"{value:.4g}"), Unit(point.unit)))


def new_in_release(before: str, after: str) -> str:
    """Return the words of *after* that *before* has not; where it has all of them, all; "" for the same release."""
    known = before.split(", ")
    return "" if before == after else ", ".join(part for part in after.split(", ") if part not in known) or after
