"""Trends as text, as CSV, as data for programs and as a picture."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from ...errors import ConfigError
from ...stats.change_points import LEAST_NOISE, LEAST_SEGMENT, PENALTY
from ...units import counted
from ...visible import visible
from ..drawing import (
    DIRECTION_COLOURS,
    FAINT_COLOUR,
    GRID_COLOUR,
    LOST_COLOUR,
    PICTURE_STYLE,
    SIMULATED_COLOUR,
    TEXT_COLOUR,
    THRESHOLD_COLOUR,
    matplotlib_style,
    rate_unit,
)
from ..text_tables import csv_table
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


MOST_PANELS = 12
"""Series in a picture; more cannot be read."""

_MARKS = {
    "PASS": ("o", DIRECTION_COLOURS[0]),
    "FAIL": ("X", LOST_COLOUR),
    "INCONCLUSIVE": ("v", FAINT_COLOUR),
}
"""Verdict -> shape, colour."""


def trend_svg(found: Sequence[Series]) -> str:
    """The picture. Raises ConfigError for more than MOST_PANELS series, naming what makes them fewer."""
    if len(found) > MOST_PANELS:
        raise ConfigError(
            f"{counted(len(found), 'trend')} are too many for one picture, which has room for {MOST_PANELS}; choose"
            " with --platform, --software, --testbed or --sentence"
        )
    with matplotlib_style(PICTURE_STYLE):
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9.4, 0.6 + 3.4 * len(found)), layout="constrained")
        FigureCanvasSVG(figure)
        panels = figure.subplots(len(found), 1, squeeze=False)[:, 0]
        drawn: dict[str, Any] = {}
        for axes, series in zip(panels, found, strict=True):
            _draw(axes, series, drawn)
        figure.legend(
            list(drawn.values()),
            list(drawn),
            loc="outside lower center",
            ncols=min(4, len(drawn)),
            frameon=False,
            fontsize=9,
        )
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": "lineproof", "Title": "lineproof history"})
    return out.getvalue()


def _draw(axes: Any, series: Series, drawn: dict[str, Any]) -> None:
    values = [point.value for point in series.points if point.value is not None]
    unit, size = rate_unit(max(values, default=0.0)) if series.unit == "pps" else (series.unit, 1.0)
    for verdict, (shape, colour) in _MARKS.items():
        for hollow in (False, True):
            shown = [
                point
                for point in series.points
                if point.value is not None and point.verdict == verdict and (point.kind == AT_LEAST) is hollow
            ]
            if shown:
                drawn[f"{verdict}{', at least this' if hollow else ''}"] = axes.errorbar(
                    [_time(point) for point in shown],
                    [(point.value or 0.0) / size for point in shown],
                    yerr=_errors(shown, size),
                    fmt=shape,
                    color=colour,
                    markerfacecolor="white" if hollow else colour,
                    markersize=6,
                    capsize=3,
                    linewidth=1,
                    zorder=4,
                )
    if series.threshold is not None:
        sign = "≥" if series.at_least else "≤"
        drawn[f"{sign} the promise"] = axes.axhline(
            series.threshold / size, color=THRESHOLD_COLOUR, linestyle="--", linewidth=1.3, zorder=2
        )
    _draw_levels(axes, series, size, drawn)
    # a release in words at its line, from the top, and the changes from the bottom: they do not meet
    for point, words in series.releases:
        drawn["new release"] = axes.axvline(_time(point), color=TEXT_COLOUR, linestyle=":", linewidth=1.1, zorder=1)
        _note(axes, point, words or "not known", 0.98, "top")
    axes.set_xlabel("")
    axes.set_ylabel(unit)
    axes.margins(x=0.04, y=0.25)
    axes.grid(axis="y", color=GRID_COLOUR, linewidth=0.8, zorder=0)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="x", labelsize=9)
    title = visible(f"{series.key['sentence']}  ({series.name})").replace("\n", " ")
    axes.set_title(textwrap.fill(title, 92), loc="left", fontsize=10.5, weight="bold", parse_math=False)
    if series.label:
        axes.text(
            *(0.995, 0.02, series.label),
            transform=axes.transAxes,
            ha="right",
            fontsize=9,
            weight="bold",
            color=SIMULATED_COLOUR,
            parse_math=False,
        )


def _draw_levels(axes: Any, series: Series, size: float, drawn: dict[str, Any]) -> None:
    """The mean of each segment between two changes, and what each change is, at its place."""
    if not series.changes:
        return
    starts = [series.judged[0], *(change.after for change in series.changes)]
    ends = [*(change.before for change in series.changes), series.judged[-1]]
    means = [series.changes[0].size.reference.mean, *(change.size.candidate.mean for change in series.changes)]
    for start, end, mean in zip(starts, ends, means, strict=True):
        (drawn["level between changes"],) = axes.plot(
            [_time(start), _time(end)], [mean / size] * 2, color=TEXT_COLOUR, linewidth=1.8, zorder=3
        )
    for change in series.changes:
        arrow = "▼" if change.size.difference < 0 else "▲"
        _note(
            axes, change.after, f"{arrow} {change.words}{' worse' if change.worse else ''}", 0.10, "bottom", bold=True
        )


def _note(axes: Any, point: TrendPoint, words: str, height: float, side: str, bold: bool = False) -> None:
    shown = visible(words).replace("\n", " ")
    axes.text(
        _time(point),
        height,
        f" {shown[:40]}{'…' if len(shown) > 40 else ''}",
        transform=axes.get_xaxis_transform(),
        va=side,
        fontsize=8.5,
        color=TEXT_COLOUR,
        weight="bold" if bold else "normal",
        parse_math=False,
        zorder=6,
    )


def _time(point: TrendPoint) -> Any:
    import numpy as np

    # a date beyond what matplotlib draws is drawn where its dates end
    return np.datetime64(int(min(max(point.started, 0.0), 250e9)), "s")


def _errors(points: Sequence[TrendPoint], size: float) -> list[list[float]]:
    below = [
        max(0.0, (point.value or 0.0) - (point.low if point.low is not None else point.value or 0.0))
        for point in points
    ]
    above = [
        max(0.0, (point.high if point.high is not None else point.value or 0.0) - (point.value or 0.0))
        for point in points
    ]
    return [[item / size for item in side] for side in (below, above)]
