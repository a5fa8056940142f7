"""Trials as a picture: offered and forwarded frames. The same trials give the same SVG text.

Each bar is a trial: frames forwarded, then lost, then unsent; its full height is the load. If a sentence counts its
directions in total, they are stacked; else they are side by side.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ..counts.trial import Trial
from ..units import line_rate_pps
from .drawing import DIRECTION_COLOURS, FAINT_COLOUR, GRID_COLOUR, LOST_COLOUR, THRESHOLD_COLOUR, drawing, rate_unit
from .rates import DirectionRow, TrafficFigures, direction_rows, percent, trial_name


@dataclass(frozen=True, slots=True)
class ThresholdLine:
    """The threshold to draw: frames/s (of both directions together if the plot is *in_total*), and its label."""

    pps: float
    label: str = "threshold"


def trials_plot(
    trials: Sequence[Trial],
    traffic: TrafficFigures,
    link_bps: float,
    title: str,
    simulated: bool = False,
    threshold: ThresholdLine | None = None,
    in_total: bool = False,
) -> str:
    """An SVG of about 900 x 420 pixels.

    *link_bps*: link speed of one direction in L1 bit/s; *in_total*: the sentence counts both directions together.
    """
    shown = direction_rows(trials, traffic, link_bps)
    line = line_rate_pps(link_bps, traffic.mean_size)
    highest = _highest(shown, threshold, in_total) or line
    named, factor = rate_unit(highest)
    with drawing(title, simulated) as picture:
        axes = picture.axes
        directions = list(dict.fromkeys(row.direction for row in shown))
        _mark_invalid(axes, trials, highest * 1.12 / factor)
        labels = _bars(axes, trials, shown, directions, factor, in_total)
        labels |= _threshold_line(axes, threshold, factor)
        limit = line * (len(directions) if in_total else 1)
        if limit <= highest * 1.1:
            axes.axhline(limit / factor, color=FAINT_COLOUR, linewidth=1, linestyle=":", zorder=1)
        _label_axes(axes, trials, named, factor, highest, line)
        picture.legend(labels)
    return picture.svg


def svg_image(name: str, svg: str) -> str:
    """The picture as an ``<img>`` for use inside another page, which its style cannot change."""
    data = base64.b64encode(svg.encode()).decode("ascii")
    return f'<img alt="{escape(name)}" src="data:image/svg+xml;base64,{data}" style="max-width:100%">'


def _highest(shown: Sequence[DirectionRow], threshold: ThresholdLine | None, in_total: bool) -> float:
    heights: dict[int, float] = {}
    for row in shown:
        height = max(row.intended.pps, row.offered.pps, row.forwarded.pps)
        key = id(row.trial)
        heights[key] = heights.get(key, 0.0) + height if in_total else max(heights.get(key, 0.0), height)
    return max([*heights.values(), threshold.pps if threshold else 0.0])


def _bars(
    axes: Any,
    trials: Sequence[Trial],
    shown: Sequence[DirectionRow],
    directions: Sequence[str],
    factor: float,
    in_total: bool,
) -> dict[str, Any]:
    """Draw the bars; returns the legend: label -> artist."""
    width = 0.72 if in_total or not directions else 0.76 / len(directions)
    # one trial alone would be a bar as wide as the picture
    width *= min(1.0, max(len(trials), 1) / 4)
    labelled = len(trials if in_total else shown) <= 16
    # more than two labels side by side overlap: then each trial has one, of its worst direction
    single = not in_total and len(directions) > 2
    drawn: dict[str, Any] = {}
    for index, trial in enumerate(trials):
        mine = [row for row in shown if row.trial is trial]
        level = 0.0
        for row in mine:
            direction = directions.index(row.direction)
            x = index if in_total else index + (direction - (len(directions) - 1) / 2) * width
            base = level if in_total else 0.0
            height = min(row.forwarded.pps, row.offered.pps) / factor
            bar = axes.bar(
                x, height, width * 0.94, base, color=DIRECTION_COLOURS[direction % len(DIRECTION_COLOURS)], zorder=3
            )
            if not trial.number:
                # a warm-up is not judged
                bar[0].set_alpha(0.45)
            if trial.number:
                drawn.setdefault(f"forwarded {row.direction}", bar)
            level = base + height
            if not in_total:
                _lost_and_unsent(axes, drawn, x, width, level, [row], factor, labelled and not single)
        if single and labelled and mine:
            worst = max(mine, key=lambda row: row.count.loss_ratio)
            if worst.count.lost:
                top = max(row.intended.pps for row in mine) / factor
                _label(axes, index, top, f"up to −{percent(worst.count.loss_ratio)}")
        if in_total and mine:
            _lost_and_unsent(axes, drawn, index, width, level, mine, factor, labelled)
    return dict(sorted(drawn.items(), key=lambda item: not item[0].startswith("forwarded")))


def _lost_and_unsent(
    axes: Any,
    drawn: dict[str, Any],
    x: float,
    width: float,
    level: float,
    mine: Sequence[DirectionRow],
    factor: float,
    labelled: bool,
) -> None:
    """Draw lost and unsent frames on top of the forwarded ones."""
    lost = sum(max(0.0, row.offered.pps - row.forwarded.pps) for row in mine) / factor
    unsent = sum(max(0.0, row.intended.pps - row.offered.pps) for row in mine) / factor
    if lost > 0:
        drawn.setdefault("lost", axes.bar(x, lost, width * 0.94, level, color=LOST_COLOUR, zorder=3))
        ratio = sum(row.count.lost for row in mine) / sum(row.count.offered for row in mine)
        if labelled:
            _label(axes, x, level + lost + unsent, f"−{percent(ratio)}")
    # less than the width of a line cannot be seen and needs no legend entry
    if unsent > 0.002 * (level + lost + unsent):
        bar = axes.bar(
            x,
            unsent,
            width * 0.94,
            level + lost,
            facecolor="white",
            edgecolor=FAINT_COLOUR,
            hatch="////",
            linewidth=0.8,
            zorder=3,
        )
        drawn.setdefault("never sent by the generator", bar)


def _label(axes: Any, x: float, height: float, text: str) -> None:
    style = {"ha": "center", "fontsize": 8.5, "color": LOST_COLOUR, "zorder": 6}
    axes.annotate(text, (x, height), (0, 3), textcoords="offset points", **style)


def _mark_invalid(axes: Any, trials: Sequence[Trial], top: float) -> None:
    for index, trial in enumerate(trials):
        if not trial.valid:
            axes.axvspan(index - 0.48, index + 0.48, color="#efe6cf", zorder=0, linewidth=0)
            if len(trials) <= 12:
                axes.text(index, top * 0.985, "invalid", ha="center", va="top", fontsize=9, color="#7d6420", zorder=6)


def _threshold_line(axes: Any, threshold: ThresholdLine | None, factor: float) -> dict[str, Any]:
    if threshold is None:
        return {}
    return {
        threshold.label: axes.axhline(
            threshold.pps / factor, color=THRESHOLD_COLOUR, linewidth=1.8, linestyle="--", zorder=4
        )
    }


def _label_axes(axes: Any, trials: Sequence[Trial], named: str, factor: float, highest: float, line: float) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    names = [trial_name(trial) for trial in trials]
    axes.set_xlim(-0.5, max(len(trials), 1) - 0.5)
    axes.set_ylim(0, highest * 1.12 / factor)
    axes.set_xlabel("trial")
    axes.set_ylabel(f"rate [{named}]")
    axes.xaxis.set_major_locator(MaxNLocator(min(20, max(len(trials), 1)), integer=True))
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda x, _: names[round(x)] if 0 <= round(x) < len(names) and abs(x - round(x)) < 1e-6 else "")
    )
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y", color=GRID_COLOUR, linewidth=0.8, zorder=0)
    axes.set_axisbelow(True)
    axes.spines[["top"]].set_visible(False)
    second = axes.secondary_yaxis(
        "right", functions=(lambda y: 100 * y * factor / line, lambda share: share * line / 100 / factor)
    )
    second.set_ylabel("% of one direction's line rate")
    if not trials:
        axes.text(0, highest * 0.56 / factor, "no trial was run", ha="center", color=FAINT_COLOUR)
