"""All runs in one table: a row a sentence, a column a run or a release; then where the level of a sentence changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import Row as StoreRow
from sqlalchemy import select

from ...core.units import Unit, Value
from ...stats import Comparison
from ...stats.change_points import FALSE_ALARMS, LEAST_SEGMENT, change_points
from ...units import counted
from ...visible import shortened
from ..document import SIMULATED, Cell, Column, Document, Items, Note, Part, Row, Section, Table, verdict_cell
from .importing import AT_LEAST, CAPACITY
from .store import HistoryStore, runs, sentences

Point = StoreRow[Any]
"""A sentence in one run: the columns of ``sentences``, and those of its run."""

COLUMNS = 5
"""Runs or releases in a table, the newest ones; more cannot be read beside each other."""

_GROUP = ("simulated", "platform", "software", "testbed", "goal")
"""Figures that differ in one of these are of unlike things."""


def points_of(store: HistoryStore, wanted: Mapping[str, str], part: str = "", since: float = 0.0) -> Sequence[Point]:
    """Return the points of the runs whose columns are as *wanted*, by time. Raises TestbedError.

    *part*: of the sentence, in any case of letters; *since*: Unix time.
    """
    of_run = [runs.c[name] for name in (*_GROUP[:-1], "release", "closed")]
    chosen = select(*of_run, *sentences.c).join_from(sentences, runs).filter_by(**wanted)
    chosen = chosen.where(sentences.c.started >= since, sentences.c.sentence.icontains(part, autoescape=True))
    return store.rows(chosen.order_by(sentences.c.started, sentences.c.run, sentences.c.number))


class LevelChange(NamedTuple):
    """A change of a sentence's level between two of its points; ``size`` is of the levels."""

    before: Point
    after: Point
    size: Comparison

    @property
    def worse(self) -> bool:
        """Return whether the router became worse."""
        return (self.size.difference < 0) is bool(self.after.at_least)

    def __str__(self) -> str:
        size, after = self.size, self.after
        by = f"{size.difference:+.4g} ± {size.half_width:.2g}"
        if size.relative_percent is not None:
            by = f"{size.relative_percent:+.3g} % ± {size.relative_half_width_percent:.2g} %"
        levels = f"from {_text(after, size.reference.mean)} to {_text(after, size.candidate.mean)}"
        release = f", new release: {new}" if (new := new_in_release(self.before.release, after.release)) else ""
        word = "WORSE" if self.worse else "better"
        return f"{word} {by}, {levels}, in run {after.run} of {moment(after.started)}{release}: {after.sentence}"


def level_changes(points: Sequence[Point]) -> list[LevelChange]:
    """Return where the level of a sentence changed, by time. *points*: those of :func:`judged_points`."""
    places = change_points([point.value for point in points])
    return [LevelChange(points[place - 1], points[place], size) for place, size in places]


def judged_points(points: Sequence[Point]) -> list[Point]:
    """Return the points with a figure; where margins were searched, none of a load that only passed."""
    searched = any(point.kind == CAPACITY for point in points)
    return [point for point in points if point.value is not None and not (searched and point.kind == AT_LEAST)]


def trend(points: Sequence[Point], by_release: bool = False) -> Document:
    """Return a table for each platform, software, testbed and goal, and below it the changes; real runs first.

    *by_release*: a column is the newest run of a release.
    """
    simulated = all(point.simulated for point in points)
    sections, changes, counts = [], list[LevelChange](), list[int]()
    for key, group in sorted(_groups(points, *_GROUP).items(), key=lambda named: str(named[0])):
        of_simulated, platform, software, testbed, goal = key
        series = _groups(group, "sentence", "test")
        judged = list(map(judged_points, series.values()))
        own = [change for one in judged for change in level_changes(one)]
        label = [Note(SIMULATED, strong=True)] if of_simulated and not simulated else []
        name = " ".join(filter(None, (platform, software))) or "unknown platform"
        parts: list[Part] = [*label, _table(group, series, by_release), Items(list(map(str, own)))]
        sections.append(Section(f"{name} on {testbed}, goal {goal}", parts))
        changes += own
        counts += map(len, judged)
    enough = sum(count >= 2 * LEAST_SEGMENT for count in counts)
    rule = (
        f"Changes of level were looked for in {enough} of {counted(len(counts), 'sentence')}: in those with figures of"
        f" {2 * LEAST_SEGMENT} runs. Of sentences without a change at most 1 in {1 / FALSE_ALARMS:.0f} shows one by"
        " chance. The ± is Welch's, at 95 % confidence."
    )
    data = {"false_alarms": FALSE_ALARMS, "changes": list(map(_change_data, changes))}
    return Document("", [*sections, Section("", [Note(rule)])], simulated, data)


def _groups(points: Iterable[Point], *names: str) -> dict[tuple[Any, ...], list[Point]]:
    groups: dict[tuple[Any, ...], list[Point]] = {}
    key = attrgetter(*names)
    for point in points:
        groups.setdefault(key(point), []).append(point)
    return groups


def _table(group: Sequence[Point], series: Mapping[tuple[Any, ...], Sequence[Point]], by_release: bool) -> Table:
    """Return the newest runs beside each other."""
    ordered = list({point.run: point for point in reversed(group)}.values())[::-1]
    if by_release:
        ordered = [point for point, after in pairwise(ordered) if point.release != after.release] + ordered[-1:]
    shown = ordered[-COLUMNS:]
    columns = [Column(head, left=True) for head in map(_head, [None, *shown], shown)]
    twice = Counter(sentence for sentence, _ in series)
    rows = []
    for (sentence, test), own in series.items():
        name = sentence if twice[sentence] == 1 else f"{sentence} ({test})"
        by_run = {point.run: point for point in own}
        rows.append(Row([name, *(_cell(by_run.get(point.run)) for point in shown)]))
    return Table([Column("sentence", left=True), *columns], rows)


def _head(before: Point | None, point: Point) -> str:
    """Return when a run was, and what is new in its release."""
    new = point.release.partition(", ")[0] if before is None else new_in_release(before.release, point.release)
    return " ".join(filter(None, (moment(point.started), shortened(new, 40), "" if point.closed else "incomplete")))


def _cell(point: Point | None) -> Cell:
    if point is None:
        return Cell("–")
    value = "no figure" if point.value is None else f"{'≥ ' * (point.kind == AT_LEAST)}{_text(point, point.value)}"
    return replace(verdict_cell(point.verdict), text=f"{value} {point.verdict}")


def _text(point: Point, value: float) -> str:
    return str(Value(float(f"{value:.4g}"), Unit(point.unit)))


def _change_data(change: LevelChange) -> dict[str, object]:
    after, size = change.after, change.size
    return {
        **{name: getattr(after, name) for name in (*_GROUP, "sentence", "test", "run")},
        "worse": change.worse,
        "before": size.reference.mean,
        "after": size.candidate.mean,
        "percent": size.relative_percent,
        "half_width_percent": size.relative_half_width_percent,
    }


def new_in_release(before: str, after: str) -> str:
    """Return the words of *after* that *before* has not; where it has all of them, all; "" for the same release."""
    known = before.split(", ")
    return "" if before == after else ", ".join(part for part in after.split(", ") if part not in known) or after


def moment(unix: float) -> str:
    """Return ``2026-11-22 04:00``, UTC; of what is no time, the number."""
    try:
        return f"{datetime.fromtimestamp(unix, UTC):%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):
        return f"{unix:g}"
