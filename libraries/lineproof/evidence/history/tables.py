"""The store's tables and views. docs/history.md explains their columns to people who ask them by SQL."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Float, ForeignKey, Index, Integer, MetaData, Table, Text
from sqlalchemy.types import TypeEngine

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
