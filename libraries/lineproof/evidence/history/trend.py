"""All runs in one table: a row a sentence, a column a run or a release; then where the level of a sentence changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter
from typing import Any

from sqlalchemy import Row as StoreRow
from sqlalchemy import select

from ...core.units import Unit, Value
from ...stats import FALSE_ALARMS, LEAST_SEGMENT, Comparison, change_points
from ...units import counted, moment
from ...visible import shortened
from ..document import SIMULATED, Cell, Column, Document, Items, Note, Part, Row, Section, Table, verdict_cell
from .store import AT_LEAST, CAPACITY, HistoryStore, runs, sentences

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
                words, data = _change(own[place - 1], own[place], size)
                parts.append(Items([words]))
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
    words = (
        f"{'WORSE' if is_worse else 'better'} {by}, from {_text(after, levels[0])} to {_text(after, levels[1])},"
        f" in run {after.run} of {moment(after.started)}{f', new release: {new}' if new else ''}: {after.sentence}"
    )
    return words, {**after._asdict(), "levels": levels, "percent": size.relative_percent, "worse": is_worse}


def _groups(points: Sequence[Point], *names: str) -> dict[tuple[Any, ...], list[Point]]:
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
        by_run = {point.run: _cell(point) for point in own}
        name = sentence if twice[sentence] == 1 else f"{sentence} ({test})"
        rows.append(Row([name, *(by_run.get(point.run, "–") for point in shown)]))
    return Table([Column("sentence", left=True), *columns], rows)


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
