"""The store's tables, views and rows; docs/history.md explains them to people who ask by SQL."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Float, ForeignKey, Index, Integer, MetaData, Table, Text
from sqlalchemy.types import TypeEngine

from ...visible import shortened, visible

VERSION = 2
"""Of tables and views together; another one is refused."""

metadata = MetaData()

store = Table("store", metadata, Column("version", Integer, primary_key=True, autoincrement=False))


def _columns(kind: type[TypeEngine[Any]], names: str, needed: bool = False) -> list[Column[Any]]:
    """A column of this kind for each of *names*; *needed*: it is never null."""
    return [Column(name, kind, nullable=not needed) for name in names.split()]


runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("run", Text, nullable=False, unique=True),
    *_columns(Text, "folder", True),
    *_columns(Boolean, "simulated closed", True),
    *_columns(Text, "sha256", True),
    *_columns(BigInteger, "records", True),
    *_columns(Float, "started ended"),
    *_columns(Text, "testbed platform software release versions goal lineproof", True),
    *_columns(Float, "imported", True),
)

sentences = Table(
    "sentences",
    metadata,
    Column("run_id", ForeignKey("runs.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    *_columns(Text, "test sentence goal quantity traffic", True),
    *_columns(Text, "statistic"),
    *_columns(Boolean, "at_least", True),
    *_columns(Float, "threshold"),
    *_columns(Text, "unit scope", True),
    *_columns(Float, "load_pps"),
    *_columns(Text, "verdict", True),
    *_columns(Float, "measured low high"),
    *_columns(Integer, "observations set_aside", True),
    *_columns(Boolean, "searched carried", True),
    *_columns(Float, "margin_low margin_high lost started ended"),
    sqlite_with_rowid=False,
)
Index("runs_by_sum", runs.c.sha256)
Index("sentences_by_sentence", sentences.c.sentence)

trials = Table(
    "trials",
    metadata,
    Column("run_id", ForeignKey("runs.id"), primary_key=True),
    Column("line", Integer, primary_key=True, autoincrement=False),
    *_columns(Integer, "sentence_number number", True),
    *_columns(Float, "started duration load_pps"),
    *_columns(BigInteger, "offered forwarded lost", True),
    *_columns(Float, "measured"),
    *_columns(Boolean, "counted", True),
    sqlite_with_rowid=False,
)

SERIES = ("simulated", "platform", "software", "testbed", "goal", "sentence")
"""Columns of the view ``trend``: points that agree in all of them are one series."""


def _of(table: str, names: str) -> str:
    return ", ".join(f"{table}.{name}" for name in names.split())


def _point(otherwise: str, margin: str) -> str:
    """A figure of the point: what the search found, or else the measured one."""
    return (
        f"CASE WHEN sentences.searched THEN sentences.threshold * (1 + sentences.{margin})"
        f" ELSE sentences.{otherwise} END"
    )


VIEWS = {
    "trend": f"""
SELECT runs.run, sentences.number, {_of("runs", "simulated closed platform software testbed release")},
       {_of("sentences", "goal test sentence quantity traffic statistic at_least threshold unit scope verdict")},
       COALESCE(sentences.started, runs.started) AS started,
       CASE WHEN sentences.searched THEN 'capacity'
            WHEN sentences.carried THEN 'at least'
            ELSE 'measured' END AS kind,
       {_point("measured", "margin_low")} AS value,
       {_point("low", "margin_low")} AS low,
       {_point("high", "margin_high")} AS high,
       {_of("sentences", "observations margin_low margin_high lost")}
FROM sentences JOIN runs ON runs.id = sentences.run_id""",  # noqa: S608  (names of columns, above)
    "latest": f"""
SELECT * FROM (
    SELECT trend.*, ROW_NUMBER() OVER (PARTITION BY {", ".join(SERIES)}
                                       ORDER BY started DESC, run DESC, number DESC) AS place
    FROM trend) AS ranked
WHERE place = 1""",  # noqa: S608  (names of columns, above)
}
"""Name -> what it selects, in the SQL that SQLite and PostgreSQL share."""


LARGEST_COUNT = 2**63 - 1
"""The largest whole number of both databases."""

TrialRow = tuple[int, int, int, float, float, float, int, int, int, float | None, bool]
"""The columns of ``trials`` from ``line`` on."""


@dataclass(frozen=True)
class StoredRun:
    """``run``: the row of ``runs``, without ``id`` and ``imported``; ``sentences`` and ``trials``: without ``run_id``.

    Text has no control characters: PostgreSQL stores no NUL, SQLite no half characters.
    """

    run: Mapping[str, Any]
    sentences: tuple[Mapping[str, Any], ...]
    trials: tuple[TrialRow, ...] = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return what the store knows it by."""
        return str(self.run["run"])

    @property
    def rank(self) -> tuple[bool, int]:
        """The rank of a state of a run: the later of two has the higher one."""
        return bool(self.run["closed"]), int(self.run["records"])


def columns(**found: Any) -> dict[str, Any]:
    """A row: text made visible, mappings as JSON, numbers that are not finite as None."""
    return dict(_rows_of(found))


def _rows_of(found: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in found.items():
        if isinstance(value, str):
            yield name, visible(value)
        elif isinstance(value, Mapping):
            yield name, visible(json.dumps(value, ensure_ascii=True, sort_keys=True))
        elif isinstance(value, float) and not math.isfinite(value):
            yield name, None
        else:
            yield name, value


def release_of(versions: Mapping[str, str]) -> str:
    """The router's versions, in words: ``vpp 24.10, system Debian 12``. Where one changes, there is another release."""
    return ", ".join(
        f"{name.removeprefix('router.')} {versions[name]}" for name in sorted(versions) if name.startswith("router.")
    )


def release_in_short(release: str) -> str:
    """Return the router's own version from :func:`release_of`'s words; where it reports none, their beginning."""
    own = [part.removeprefix("version ") for part in release.split(", ") if part.startswith("version ")]
    return own[0] if own else shortened(release, 60)


def new_in_release(before: str, after: str) -> str:
    """Return the words of *after* that *before* has not; where it has all of them, all."""
    known = before.split(", ")
    return ", ".join(part for part in after.split(", ") if part not in known) or after
