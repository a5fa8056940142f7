"""Trends as text, as CSV and as data for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...stats.change_points import LEAST_NOISE, LEAST_SEGMENT, PENALTY
from ...units import counted
from ...visible import visible
from ..csv_text import csv_table
from .tables import SERIES
from .trends import AT_LEAST, LevelChange, Series, TrendPoint, day, moment

RULE = (
    f"Changes: least squares, penalty {PENALTY:g} x noise² x ln n, at least {LEAST_SEGMENT} runs on each side; the ± is"
    " Welch's at 95 % confidence."
)
"""How changes are found, in a line."""

COLUMNS = (
    *SERIES,
    *("unit", "threshold", "run", "time", "release", "verdict", "kind", "value", "low", "high", "observations"),
    *("change_percent", "change_half_width_percent", "closed"),
)
"""Of the CSV, in order."""


def text(found: Sequence[Series]) -> str:
    """A block for each series: its latest figure, its releases, its changes."""
    lines: list[str] = []
    for series in found:
        lines += _block(series)
    return "\n".join([*lines, RULE])


def _block(series: Series) -> list[str]:
    first, last = series.points[0], series.points[-1]
    title = f"{series.name}: {series.key['sentence']}"
    span = day(first.started) if first is last else f"{day(first.started)} to {day(last.started)}"
    known = [f"  {counted(len(series.points), 'run')}, {span}; latest {_figure(series, last)}"]
    known += [f"  {day(point.started)}  new release: {words or 'not known'}" for point, words in series.releases]
    known += [f"  {day(change.after.started)}  {change_words(series, change)}" for change in series.changes]
    if not series.changes:
        enough = len(series.judged) >= 2 * LEAST_SEGMENT
        known.append("  no change found" if enough else f"  too few runs for changes: {2 * LEAST_SEGMENT} are needed")
    label = [f"  {series.label}"] if series.label else []
    return [visible(line) for line in (title, *label, *known)] + [""]


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


def comma_separated(found: Sequence[Series]) -> str:
    """RFC 4180, a line for each run of each series; figures in the column ``unit``, times in UTC.

    A text that a spreadsheet would take for a formula begins with an apostrophe.
    """
    return csv_table(COLUMNS, ([row.get(name) for name in COLUMNS] for row in _csv_rows(found)))


def _csv_rows(found: Sequence[Series]) -> Iterator[dict[str, Any]]:
    for series in found:
        changes = {id(change.after): change for change in series.changes}
        for point in series.points:
            row = {**_point_data(point), **series.key, "unit": series.unit, "threshold": series.threshold}
            if change := changes.get(id(point)):
                row |= {
                    "change_percent": change.size.relative_percent,
                    "change_half_width_percent": change.size.relative_half_width_percent,
                }
            yield row


def _point_data(point: TrendPoint) -> dict[str, Any]:
    names = ("run", "release", "verdict", "kind", "value", "low", "high", "observations", "closed")
    return {"time": moment(point.started), **{name: getattr(point, name) for name in names}}


def document(found: Sequence[Series]) -> dict[str, Any]:
    """The trends as data for ``--json``."""
    return {
        "rule": {"penalty": PENALTY, "least_segment": LEAST_SEGMENT, "least_noise": LEAST_NOISE, "confidence": 0.95},
        "series": [
            {
                **{name: series.key[name] for name in SERIES},
                "unit": series.unit,
                "threshold": series.threshold,
                "points": [_point_data(point) for point in series.points],
                "releases": [{"run": point.run, "release": point.release} for point, _ in series.releases],
                "changes": [
                    {
                        "run": change.after.run,
                        "worse": change.worse,
                        "before": change.size.reference.mean,
                        "after": change.size.candidate.mean,
                        "percent": change.size.relative_percent,
                        "half_width_percent": change.size.relative_half_width_percent,
                    }
                    for change in series.changes
                ],
            }
            for series in found
        ],
    }
