"""Trends: the same sentence over the runs of one testbed, where its level changed, and where the release did."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple

from ...core.units import Unit, Value
from ...errors import ConfigError
from ...stats import Comparison
from ...stats.change_points import change_points
from ...visible import shortened
from ..tables import SIMULATED as SIMULATED_WORDS
from .store import HistoryStore
from .tables import SERIES, new_in_release

AT_LEAST = "at least"
"""Of a throughput that passed without a search: the router carries that much, and nobody looked for more."""


@dataclass(frozen=True)
class Selection:
    """Which rows of the view ``trend``. ``sentence``: a part of it, in any case of letters; ``since``: Unix time."""

    platform: str | None = None
    software: str | None = None
    testbed: str | None = None
    sentence: str | None = None
    since: float | None = None

    def rows(self, store: HistoryStore) -> list[Mapping[str, Any]]:
        """Return those rows, by time. Raises TestbedError."""
        where, values = ["started IS NOT NULL"], dict[str, object]()
        for name in ("platform", "software", "testbed"):
            if (wanted := getattr(self, name)) is not None:
                where.append(f"{name} = :{name}")
                values[name] = wanted
        if self.since is not None:
            where.append("started >= :since")
            values["since"] = self.since
        if self.sentence is not None:
            where.append("LOWER(sentence) LIKE :sentence ESCAPE '!'")
            plain = self.sentence.lower()
            for special in "!%_":
                plain = plain.replace(special, f"!{special}")
            values["sentence"] = f"%{plain}%"
        return store.query(f"SELECT * FROM trend WHERE {' AND '.join(where)} ORDER BY started, run, number", **values)  # noqa: S608  (names of columns)


def since_when(text: str) -> float:
    """A date, as ``2026-11-01``, as Unix time; without a time zone it is UTC. Raises ConfigError."""
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise ConfigError(f"'{shortened(text)}' is no date; expected one as 2026-11-01") from None


def moment(unix: float) -> str:
    """``2026-11-22T04:00:00+00:00``; of what is no time, the number."""
    try:
        return datetime.fromtimestamp(unix, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return f"{unix:g}"


def day(unix: float) -> str:
    """``2026-11-22``, UTC."""
    return moment(unix).partition("T")[0]


class TrendPoint(NamedTuple):
    """A sentence in one run. ``value`` with its interval, in the series' unit. ``kind``: as the view says.

    There may be tens of thousands: of frozen dataclasses they take as long as the database.
    """

    run: str
    started: float
    release: str
    verdict: str
    kind: str
    value: float | None
    low: float | None
    high: float | None
    observations: int
    closed: bool


@dataclass(frozen=True)
class LevelChange:
    """Where the level changed: at ``after``, the point before it is ``before``. ``size`` is of the segments' means."""

    before: TrendPoint
    after: TrendPoint
    size: Comparison
    worse: bool

    @property
    def words(self) -> str:
        """``−3.2 % ± 0.4 %``; without a percentage where the mean was 0."""
        if self.size.relative_percent is None or self.size.relative_half_width_percent is None:
            return f"{self.size.difference:+.4g} ± {self.size.half_width:.2g}"
        return f"{self.size.relative_percent:+.3g} % ± {self.size.relative_half_width_percent:.2g} %"


@dataclass(frozen=True)
class Series:
    """The points of one sentence on one testbed under one goal, by time; never real and simulated ones."""

    key: Mapping[str, Any]
    unit: str
    threshold: float | None
    at_least: bool
    points: tuple[TrendPoint, ...]

    @property
    def name(self) -> str:
        """Which platform, software, testbed and goal, in words."""
        known = [str(self.key[name]) for name in ("platform", "software") if self.key[name]]
        where = f" on {self.key['testbed']}" if self.key["testbed"] else ""
        return f"{' '.join(known) or 'unknown platform'}{where}, goal {self.key['goal']}"

    @property
    def label(self) -> str:
        """``SIMULATED …``; empty: measured on a real router."""
        return SIMULATED_WORDS if self.key["simulated"] else ""

    @cached_property
    def judged(self) -> tuple[TrendPoint, ...]:
        """The points that changes are looked for in: where margins were searched, none that is only *at least*."""
        found = tuple(point for point in self.points if point.value is not None and math.isfinite(point.value))
        searched = tuple(point for point in found if point.kind != AT_LEAST)
        return searched if any(point.kind == "capacity" for point in found) else found

    @cached_property
    def changes(self) -> tuple[LevelChange, ...]:
        """Where the level changed, by time."""
        found = change_points([point.value for point in self.judged if point.value is not None])
        return tuple(
            LevelChange(
                self.judged[place - 1],
                self.judged[place],
                size,
                (size.difference < 0) == self.at_least,
            )
            for place, size in found
        )

    @cached_property
    def releases(self) -> tuple[tuple[TrendPoint, str], ...]:
        """Each point whose router has other versions than that of the one before it, and what is new in them."""
        pairs = zip(self.points, self.points[1:], strict=False)
        return tuple(
            (after, new_in_release(before.release, after.release))
            for before, after in pairs
            if after.release != before.release
        )

    def text(self, value: float) -> str:
        """*value* with its unit and SI prefix."""
        try:
            return str(Value(float(f"{value:.4g}"), Unit(self.unit)))
        except ValueError:
            return f"{value:.4g} {self.unit}"


def series_of(rows: Sequence[Mapping[str, Any]]) -> list[Series]:
    """The series that *rows* of the view ``trend`` are of: real ones first, then simulated ones."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((*(row[name] for name in SERIES), row["unit"]), []).append(row)
    ordered = sorted(groups, key=lambda key: (bool(key[0]), *map(str, key[1:])))
    return [_series(groups[key]) for key in ordered]


def _series(rows: Sequence[Mapping[str, Any]]) -> Series:
    last = rows[-1]
    names = ("run", "started", "release", "verdict", "kind", "value", "low", "high", "observations")
    return Series(
        {name: bool(last[name]) if name == "simulated" else last[name] for name in SERIES},
        last["unit"],
        last["threshold"],
        bool(last["at_least"]),
        tuple(TrendPoint(**{name: row[name] for name in names}, closed=bool(row["closed"])) for row in rows),
    )
