"""The store's tables and views. docs/history.md explains their columns to people who ask them by SQL."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
)

VERSION = 1
"""Of tables and views together; another one is refused."""

metadata = MetaData()

store = Table("store", metadata, Column("version", Integer, primary_key=True, autoincrement=False))

runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("run", Text, nullable=False, unique=True),
    Column("folder", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("simulated", Boolean, nullable=False),
    Column("closed", Boolean, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("records", BigInteger, nullable=False),
    Column("started", Float),
    Column("ended", Float),
    Column("testbed", Text, nullable=False),
    Column("platform", Text, nullable=False),
    Column("software", Text, nullable=False),
    Column("release", Text, nullable=False),
    Column("versions", Text, nullable=False),
    Column("goal", Text, nullable=False),
    Column("linerate", Text, nullable=False),
    Column("imported", Float, nullable=False),
)

sentences = Table(
    "sentences",
    metadata,
    Column("run_id", ForeignKey("runs.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("test", Text, nullable=False),
    Column("sentence", Text, nullable=False),
    Column("goal", Text, nullable=False),
    Column("quantity", Text, nullable=False),
    Column("traffic", Text, nullable=False),
    Column("statistic", Text),
    Column("at_least", Boolean),
    Column("threshold", Float),
    Column("unit", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("load_pps", Float),
    Column("verdict", Text),
    Column("measured", Float),
    Column("low", Float),
    Column("high", Float),
    Column("observations", Integer, nullable=False),
    Column("set_aside", Integer, nullable=False),
    Column("searched", Boolean, nullable=False),
    Column("margin_low", Float),
    Column("margin_high", Float),
    Column("lost", Float),
    Column("started", Float),
    Column("ended", Float),
    sqlite_with_rowid=False,
)
Index("runs_by_sum", runs.c.sha256)
Index("sentences_by_sentence", sentences.c.sentence)

trials = Table(
    "trials",
    metadata,
    Column("run_id", ForeignKey("runs.id"), primary_key=True),
    Column("line", Integer, primary_key=True, autoincrement=False),
    Column("sentence_number", Integer, nullable=False),
    Column("number", Integer, nullable=False),
    Column("started", Float),
    Column("duration", Float),
    Column("load_pps", Float),
    Column("offered", BigInteger),
    Column("forwarded", BigInteger),
    Column("lost", BigInteger),
    Column("measured", Float),
    Column("counted", Boolean, nullable=False),
    sqlite_with_rowid=False,
)

SERIES = ("origin", "simulated", "platform", "software", "testbed", "goal", "sentence")
"""Columns of the view ``trend``: points that agree in all of them are one series."""

VIEWS = {
    "trend": """
SELECT runs.run, sentences.number, runs.origin, runs.simulated, runs.closed, runs.platform, runs.software,
       runs.testbed, runs.release, sentences.goal, sentences.test, sentences.sentence, sentences.quantity,
       sentences.traffic, sentences.statistic, sentences.at_least, sentences.threshold, sentences.unit, sentences.scope,
       sentences.verdict, COALESCE(sentences.started, runs.started) AS started,
       CASE WHEN sentences.searched THEN 'capacity'
            WHEN sentences.quantity = 'throughput' AND sentences.verdict = 'PASS' THEN 'at least'
            ELSE 'measured' END AS kind,
       CASE WHEN sentences.searched THEN sentences.threshold * (1 + sentences.margin_low)
            ELSE sentences.measured END AS value,
       CASE WHEN sentences.searched THEN sentences.threshold * (1 + sentences.margin_low)
            ELSE sentences.low END AS low,
       CASE WHEN sentences.searched THEN sentences.threshold * (1 + sentences.margin_high)
            ELSE sentences.high END AS high,
       sentences.observations, sentences.margin_low, sentences.margin_high, sentences.lost
FROM sentences JOIN runs ON runs.id = sentences.run_id""",
    "latest": f"""
SELECT * FROM (
    SELECT trend.*, ROW_NUMBER() OVER (PARTITION BY {", ".join(SERIES)}
                                       ORDER BY started DESC, run DESC, number DESC) AS place
    FROM trend) AS ranked
WHERE place = 1""",  # noqa: S608  (names of columns, above)
}
"""Name -> what it selects, in the SQL that SQLite and PostgreSQL share."""
