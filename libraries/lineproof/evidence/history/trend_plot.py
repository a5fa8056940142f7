"""Trends as SVG: a panel for each series. Shapes and line styles say what colours say, for black-and-white printers."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import Any

from ...errors import ConfigError
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
from .trends import AT_LEAST, Series, TrendPoint

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
