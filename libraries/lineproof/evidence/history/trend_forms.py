"""Trends as a document and as a picture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple

from ...core.bounds import Bounds
from ...core.units import Unit, Value
from ...errors import ConfigError
from ...stats import Comparison
from ...stats.change_points import LEAST_NOISE, LEAST_SEGMENT, PENALTY, change_points
from ...units import counted
from ...visible import one_line, shortened
from .. import chart
from ..chart import SIGNS, Axis, Curve, LimitLine, Panel, Sign
from ..document import SIMULATED, Cell, Column, Document, Items, Note, Part, Row, Section, Table
from ..svg import OUTLINED
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
        return SIMULATED if self.key["simulated"] else ""

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


RULE = (
    f"Changes: least squares, penalty {PENALTY:g} x noise² x ln n, at least {LEAST_SEGMENT} runs on each side; the ± is"
    " Welch's at 95 % confidence."
)
"""How changes are found, in a line."""


def trends(found: Sequence[Series]) -> Document:
    """Return a section for each series: its latest figure, its releases, its changes; its points for CSV and JSON.

    Figures are in the series' unit, times in UTC.
    """
    rule = {"penalty": PENALTY, "least_segment": LEAST_SEGMENT, "least_noise": LEAST_NOISE, "confidence": 0.95}
    changes = [_change_data(series, change) for series in found for change in series.changes]
    sections = [Section(f"{series.name}: {series.key['sentence']}", _parts(series)) for series in found]
    sections.append(Section("", [Note(RULE), *map(_points, found)]))
    simulated = all(series.key["simulated"] for series in found)
    return Document("", sections, simulated, {"rule": rule, "changes": changes})


def _parts(series: Series) -> list[Part]:
    first, last = series.points[0], series.points[-1]
    span = day(first.started) if first is last else f"{day(first.started)} to {day(last.started)}"
    told = [f"{counted(len(series.points), 'run')}, {span}; latest {_figure(series, last)}"]
    told += [f"{day(point.started)} new release: {words or 'not known'}" for point, words in series.releases]
    told += [f"{day(change.after.started)} {change_words(series, change)}" for change in series.changes]
    if not series.changes:
        enough = len(series.judged) >= 2 * LEAST_SEGMENT
        told.append("no change found" if enough else f"too few runs for changes: {2 * LEAST_SEGMENT} are needed")
    label = [Note(series.label, strong=True)] if series.label else []
    return [*label, Items(told)]


def change_words(series: Series, change: LevelChange) -> str:
    """``WORSE −3.2 % ± 0.4 %, from 5.1 Mpps to 4.9 Mpps (run …)``."""
    size = change.size
    levels = f"from {series.text(size.reference.mean)} to {series.text(size.candidate.mean)}"
    return f"{'WORSE' if change.worse else 'better'} {change.words}, {levels} (run {change.after.run})"


def _figure(series: Series, point: TrendPoint) -> str:
    if point.value is None:
        words = "no figure"
    elif point.kind == "capacity":
        bounds = [series.text(bound) for bound in (point.value, point.high) if bound is not None]
        words = f"carries {'at least ' if point.high is None else ''}{' to '.join(dict.fromkeys(bounds))}"
    elif point.low is None or point.high is None or point.low == point.high:
        words = f"{'at least ' if point.kind == AT_LEAST else ''}{series.text(point.value)}"
    else:
        words = f"{series.text(point.value)} ({series.text(point.low)} to {series.text(point.high)})"
    return f"{words}, {point.verdict}{'' if point.closed else ', incomplete: the run was never closed'}"


_POINT = (
    *SERIES,
    *("unit", "threshold", "run", "time", "release", "verdict", "kind", "value", "low", "high", "observations"),
    *("change_percent", "change_half_width_percent", "closed"),
)
"""Columns of the points, in order."""


def _points(series: Series) -> Table:
    sizes = {id(change.after): change.size for change in series.changes}
    rows = []
    for point in series.points:
        size = sizes.get(id(point))
        values = (
            *(*(series.key[name] for name in SERIES), series.unit, series.threshold),
            *(point.run, moment(point.started), point.release, point.verdict, point.kind),
            *(point.value, point.low, point.high, point.observations),
            *((size.relative_percent, size.relative_half_width_percent) if size else (None, None)),
            point.closed,
        )
        rows.append(Row([Cell("", value) for value in values]))
    return Table([Column(name, only="data") for name in _POINT], rows, key="points")


def _change_data(series: Series, change: LevelChange) -> dict[str, object]:
    return {
        **{name: series.key[name] for name in SERIES},
        "run": change.after.run,
        "worse": change.worse,
        "before": change.size.reference.mean,
        "after": change.size.candidate.mean,
        "percent": change.size.relative_percent,
        "half_width_percent": change.size.relative_half_width_percent,
    }


MOST_PANELS = 12
"""Series in a picture; more cannot be read."""

_EDGE = 0.04
"""Room at both ends of the level axis, as a share of the time of all runs."""

_DAY = 86400

_SIGNS = {
    "PASS": Sign(0, SIGNS[0].colour),
    "FAIL": Sign(1, chart.LOST_COLOUR),
    "INCONCLUSIVE": Sign(3, chart.FAINT_COLOUR),
}


def trend_svg(found: Sequence[Series]) -> str:
    """The picture. Raises ConfigError for more than MOST_PANELS series, naming what makes them fewer."""
    if len(found) > MOST_PANELS:
        raise ConfigError(
            f"{counted(len(found), 'trend')} are too many for one picture, which has room for {MOST_PANELS}; choose"
            " with --platform, --software, --testbed or --sentence"
        )
    return chart.trend([_panel(series) for series in found])


def _panel(series: Series) -> Panel:
    """Return the figures of a series by time, its releases, and the levels between its changes."""
    points = [(point, point.value) for point in series.points if point.value is not None]
    ends = [series.threshold, *(end for point, value in points for end in (value, point.low, point.high))]
    figures = [end for end in ends if end is not None and math.isfinite(end)]
    low, high = min(figures, default=0.0), max(figures, default=1.0)
    room = 0.25 * (high - low) or 0.05 * abs(high) or 1.0
    promise = f"{'≥' if series.at_least else '≤'} the promise"
    curves = [] if series.threshold is None else [LimitLine(series.threshold, promise).curve()]
    curves += [Curve("level between changes", level, colour=chart.TEXT_COLOUR, width=1.8) for level in _levels(series)]
    # a release in words at its line, from the top, and the changes from the bottom: they do not meet
    for point, words in series.releases:
        shown = one_line(words or "not known")
        curves.append(chart.upright(point.started, "new release", chart.TEXT_COLOUR, "2 3", shown))
    for change in series.changes:
        words = f"{'▼' if change.size.difference < 0 else '▲'} {change.words}{' worse' if change.worse else ''}"
        curves.append(Curve("", [], labels=[((change.after.started, low - 0.9 * room), words)]))
    groups: dict[tuple[str, bool], list[tuple[TrendPoint, float]]] = {}
    for point, value in points:
        groups.setdefault((point.verdict, point.kind == AT_LEAST), []).append((point, value))
    for (verdict, is_least), own in groups.items():
        sign = _SIGNS[verdict]
        sign = Sign(sign.shape + OUTLINED * is_least, sign.colour)
        name = f"{verdict}{', at least this' if is_least else ''}"
        known = [(at.started, *(value if end is None else end for end in (at.low, at.high))) for at, value in own]
        spans = [(started, Bounds(low, high)) for started, low, high in known if high > low]
        marks = [(point.started, value) for point, value in own]
        curves.append(Curve(name, marks, sign, is_joined=False, spans=spans))
    title = one_line(f"{series.key['sentence']} ({series.name})")
    up = chart.scaled("", series.unit, high + room, low - room)
    return Panel(title, _days(series), up, curves, simulated=bool(series.label))


def _levels(series: Series) -> Iterator[list[tuple[float, float]]]:
    """Yield the mean of each segment between two changes, from its first point to its last."""
    if not series.changes:
        return
    starts = [series.judged[0], *(change.after for change in series.changes)]
    ends = [*(change.before for change in series.changes), series.judged[-1]]
    means = [series.changes[0].size.reference.mean, *(change.size.candidate.mean for change in series.changes)]
    for start, end, mean in zip(starts, ends, means, strict=True):
        yield [(start.started, mean), (end.started, mean)]


def _days(series: Series) -> Axis:
    """Return the axis of the times of a series, with about six moments at which a day begins."""
    first, last = series.points[0].started, series.points[-1].started
    step = _DAY * math.ceil((last - first) / (6 * _DAY) or 1)
    begin = math.ceil(first / _DAY) * _DAY
    moments = [float(at) for at in range(begin, int(last) + 1, step)] or [first]
    room = _EDGE * (last - first) or 1.0

    def share(moment: float) -> float:
        return (moment - first + room) / (last - first + 2 * room)

    return Axis("", share, [(moment, day(moment)) for moment in moments])
