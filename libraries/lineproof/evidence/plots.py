"""Trials as a picture: offered and forwarded frames. The same trials give the same SVG text.

Each bar is a trial: frames forwarded, then lost, then unsent; its full height is the load. If a sentence counts its
directions in total, they are stacked; else they are side by side. A trial that is set aside is hatched and has no part
in the scale. What is lost, unsent or set aside differs by its hatch: no reader needs the colours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..core.trial import Trial
from ..units import line_rate_pps
from .drawing import FAINT_COLOUR, LOST_COLOUR, TEXT_COLOUR, rate_unit
from .plot_frame import (
    AXES_HEIGHT,
    LABEL_SIZE,
    LEFT,
    RIGHT,
    SET_ASIDE,
    TICK_SIZE,
    WIDTH,
    WORD_SIZE,
    Area,
    PlotFrame,
    ticks,
)
from .rates import DirectionRow, TrafficFigures, direction_rows, is_set_aside, percent, trial_name
from .svg import Hatch

DOUBT_COLOUR, DOUBT_SHADE = "#7d6420", "#efe6cf"


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
    """An SVG of about 900 x 430 pixels.

    *link_bps*: link speed of one direction in L1 bit/s; *in_total*: the sentence counts both directions together.
    """
    shown = direction_rows(trials, traffic, link_bps)
    line = line_rate_pps(link_bps, traffic.mean_size)
    directions = list(dict.fromkeys(row.direction for row in shown))
    highest = _highest(shown, threshold, in_total) or line
    plot = _TrialsPlot(PlotFrame(title, simulated), highest, max(len(trials), 1))
    _mark_doubtful(plot, trials)
    _label_axes(plot, trials, line)
    _bars(plot, trials, shown, directions, in_total)
    limit = line * (len(directions) if in_total else 1)
    if limit <= plot.highest * 1.1:
        plot.frame.line((LEFT, plot.y(limit)), (RIGHT, plot.y(limit)), FAINT_COLOUR, 1.3, "1.5 2.5")
    if threshold is not None:
        level = plot.y(threshold.pps)
        plot.frame.limit((LEFT, level), (RIGHT, level), threshold.label)
    return plot.frame.finished()


@dataclass
class _TrialsPlot:
    """Axes of *trials* columns side by side, with rates from 0 to a little above *highest* (frames/s)."""

    frame: PlotFrame
    highest: float
    trials: int

    def x(self, column: float) -> float:
        return self.frame.x(column, self.trials)

    def y(self, pps: float) -> float:
        return self.frame.y(pps / (1.12 * self.highest))

    def box(self, column: float, width: float, low: float, pps: float) -> Area:
        """Place and size of a bar of *pps* frames/s that begins at *low*; *width* in columns."""
        left = self.x(column - width / 2)
        return left, self.y(low + pps), self.x(column + width / 2) - left, self.y(low) - self.y(low + pps)

    def label(self, column: float, pps: float, words: str) -> None:
        """A small label of lost frames above a bar."""
        self.frame.picture.text(self.x(column), self.y(pps) - 4, words, LABEL_SIZE, LOST_COLOUR, anchor="middle")


def _highest(shown: Sequence[DirectionRow], threshold: ThresholdLine | None, in_total: bool) -> float:
    heights: dict[int, float] = {}
    counted = [row for row in shown if not is_set_aside(row.trial)] or shown
    for row in counted:
        height = max(row.intended.pps, row.offered.pps, row.forwarded.pps)
        key = id(row.trial)
        heights[key] = heights.get(key, 0.0) + height if in_total else max(heights.get(key, 0.0), height)
    return max([*heights.values(), threshold.pps if threshold else 0.0])


def _bars(
    plot: _TrialsPlot, trials: Sequence[Trial], shown: Sequence[DirectionRow], directions: Sequence[str], in_total: bool
) -> None:
    width = 0.72 if in_total or not directions else 0.76 / len(directions)
    # one trial alone would be a bar as wide as the picture
    width *= min(1.0, max(len(trials), 1) / 4)
    labelled = len(trials if in_total else shown) <= 16
    # more than two labels side by side overlap: then each trial has one, of its worst direction
    single = not in_total and len(directions) > 2
    judged = {row.direction for row in shown if row.trial.number}
    for place, name in enumerate(directions):
        if name in judged:
            plot.frame.area_sign(f"forwarded {name}", place)
    for index, trial in enumerate(trials):
        mine = [row for row in shown if row.trial is trial]
        level = 0.0
        if is_set_aside(trial):
            _set_aside(plot, index, width, mine, in_total)
            continue
        for row in mine:
            x = index if in_total else index + (directions.index(row.direction) - (len(directions) - 1) / 2) * width
            base = level if in_total else 0.0
            forwarded = min(row.forwarded.pps, row.offered.pps)
            # a warm-up is not judged
            opacity = 1.0 if trial.number else 0.45
            plot.frame.area(plot.box(x, width * 0.94, base, forwarded), directions.index(row.direction), opacity)
            level = base + forwarded
            if not in_total:
                _lost_and_unsent(plot, x, width, level, [row], labelled and not single)
        if single and labelled and mine:
            worst = max(mine, key=lambda row: row.count.loss_ratio)
            if worst.count.lost:
                top = max(row.intended.pps for row in mine)
                plot.label(index, top, f"up to −{percent(worst.count.loss_ratio)}")
        if in_total and mine:
            _lost_and_unsent(plot, index, width, level, mine, labelled)


def _lost_and_unsent(
    plot: _TrialsPlot, x: float, width: float, level: float, mine: Sequence[DirectionRow], labelled: bool
) -> None:
    """Draw lost and unsent frames on top of the forwarded ones."""
    lost = sum(max(0.0, row.offered.pps - row.forwarded.pps) for row in mine)
    unsent = sum(max(0.0, row.intended.pps - row.offered.pps) for row in mine)
    if lost > 0:
        plot.frame.hatched(plot.box(x, width * 0.94, level, lost), LOST_COLOUR, Hatch.CROSSED, "lost")
        ratio = sum(row.count.lost for row in mine) / sum(row.count.offered for row in mine)
        if labelled:
            plot.label(x, level + lost + unsent, f"−{percent(ratio)}")
    # less than the width of a line cannot be seen and needs no legend entry
    if unsent > 0.002 * (level + lost + unsent):
        box = plot.box(x, width * 0.94, level + lost, unsent)
        plot.frame.hatched(box, FAINT_COLOUR, Hatch.FORWARD, "never sent by the generator")


def _set_aside(plot: _TrialsPlot, index: int, width: float, mine: Sequence[DirectionRow], in_total: bool) -> None:
    """A hatched bar as high as what was forwarded, cut off where the scale of the others ends."""
    rates = [row.forwarded.pps for row in mine]
    height = min(math.fsum(rates) if in_total else max(rates, default=0.0), 1.12 * plot.highest)
    box = plot.box(index, width * (1 if in_total else max(1, len(mine))), 0, height)
    plot.frame.hatched(box, FAINT_COLOUR, Hatch.BACK, SET_ASIDE)


def _mark_doubtful(plot: _TrialsPlot, trials: Sequence[Trial]) -> None:
    picture = plot.frame.picture
    for index, trial in enumerate(trials):
        if not trial.is_clean and not is_set_aside(trial):
            picture.rectangle(*plot.box(index, 0.96, 0, 1.12 * plot.highest), DOUBT_SHADE)
            if len(trials) <= 12:
                picture.text(plot.x(index), plot.frame.top + 15, "doubtful", 12, DOUBT_COLOUR, anchor="middle")


def _label_axes(plot: _TrialsPlot, trials: Sequence[Trial], line: float) -> None:
    """Grid, both upright axes (rate; per cent of one direction's *line* rate) and the trials' names."""
    frame, picture, (unit, factor) = plot.frame, plot.frame.picture, rate_unit(plot.highest)
    end = 1.12 * plot.highest
    frame.scale(((value * factor / end, words) for value, words in ticks(end / factor)), f"rate [{unit}]", "trial")
    for value, words in ticks(100 * end / line):
        y = plot.y(value * line / 100)
        picture.line((RIGHT, y), (RIGHT + 4, y), FAINT_COLOUR)
        picture.text(RIGHT + 8, y + 4.5, words, TICK_SIZE, TEXT_COLOUR)
    picture.line((RIGHT, frame.top), (RIGHT, frame.bottom), FAINT_COLOUR)
    middle, share = frame.top + AXES_HEIGHT / 2, "% of one direction's line rate"
    picture.text(WIDTH - 10, middle, share, WORD_SIZE, TEXT_COLOUR, anchor="middle", turned=-90)
    frame.name_columns([trial_name(trial) for trial in trials])
    if not trials:
        frame.note("no trial was run")
