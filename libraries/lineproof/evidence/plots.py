"""Trials as a picture: offered and forwarded frames. The same trials give the same SVG text.

Each bar is a trial: frames forwarded, then lost, then unsent; its full height is the load. If a sentence counts its
directions in total, they are stacked; else they are side by side. A trial that is set aside is hatched and has no part
in the scale. What is lost, unsent or set aside differs by its hatch: no reader needs the colours.
"""

from __future__ import annotations

import base64
import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

from ..core.trial import Trial
from ..units import line_rate_pps
from .drawing import (
    DIRECTION_COLOURS,
    FAINT_COLOUR,
    GRID_COLOUR,
    LOST_COLOUR,
    SIMULATED_COLOUR,
    TEXT_COLOUR,
    THRESHOLD_COLOUR,
    rate_unit,
)
from .rates import DirectionRow, TrafficFigures, direction_rows, is_set_aside, percent, trial_name
from .svg import Hatch, SvgPicture, text_width
from .tables import SIMULATED

WIDTH, LEFT, RIGHT = 900.0, 72.0, 830.0
"""Pixels: of the picture, and where its axes are."""

AXES_HEIGHT = 270.0
TITLE_SIZE, WORD_SIZE, TICK_SIZE, LEGEND_SIZE, LABEL_SIZE = 16.0, 14.0, 13.0, 12.5, 11.5
"""Sizes of text in pixels."""

DOUBT_COLOUR, DOUBT_SHADE = "#7d6420", "#efe6cf"

SET_ASIDE = "set aside: any number of frames may be the testbed's"

_SOLID = 2
"""Directions whose bars are filled; those of further ones have level lines."""

MOST_NAMES = 20
"""Names of trials below the axis."""


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
    titles = textwrap.wrap(title, 84) or [""]
    plot = _TrialsPlot(
        SvgPicture(WIDTH, 0, title),
        _highest(shown, threshold, in_total) or line,
        max(len(trials), 1),
        top=34 + 1.25 * TITLE_SIZE * len(titles),
    )
    plot.picture.titles(LEFT, 42, titles, TITLE_SIZE, TEXT_COLOUR)
    if simulated:
        plot.picture.text(WIDTH - 5, 17, SIMULATED, LEGEND_SIZE, SIMULATED_COLOUR, anchor="end", bold=True)
    _mark_doubtful(plot, trials)
    _label_axes(plot, trials, line)
    _bars(plot, trials, shown, directions, in_total)
    limit = line * (len(directions) if in_total else 1)
    if limit <= plot.highest * 1.1:
        plot.across(limit, FAINT_COLOUR, 1.3, "1.5 2.5")
    if threshold is not None:
        plot.across(threshold.pps, THRESHOLD_COLOUR, 2.4, "9 4")
        plot.legend[threshold.label] = THRESHOLD_COLOUR
    if simulated:
        middle = (LEFT + RIGHT) / 2, plot.top + AXES_HEIGHT / 2 + 25
        style = {"turned": -18.0, "opacity": 0.16}
        plot.picture.text(*middle, "SIMULATED", 82, FAINT_COLOUR, anchor="middle", bold=True, **style)
    _draw_legend(plot)
    return plot.picture.svg()


def svg_image(name: str, svg: str) -> str:
    """The picture as an ``<img>`` for use inside another page, which its style cannot change."""
    data = base64.b64encode(svg.encode()).decode("ascii")
    return f'<img alt="{escape(name)}" src="data:image/svg+xml;base64,{data}" style="max-width:100%">'


def direction_area(
    picture: SvgPicture, place: tuple[float, float, float, float], direction: int, opacity: float = 1.0
) -> None:
    """An area of *direction* 0, 1 …; further ones have level lines: no more shades look different."""
    colour = DIRECTION_COLOURS[direction % len(DIRECTION_COLOURS)]
    if direction % len(DIRECTION_COLOURS) < _SOLID:
        picture.rectangle(*place, colour, opacity)
    else:
        picture.hatched(*place, colour, Hatch.LEVEL)


@dataclass
class _TrialsPlot:
    """The axes: *trials* columns side by side, rates from 0 to a little above *highest* (frames/s).

    *legend*: label -> colour; ``unsent`` frames have no colour but a pattern.
    """

    picture: SvgPicture
    highest: float
    trials: int
    top: float
    legend: dict[str, str] = field(default_factory=dict)

    @property
    def bottom(self) -> float:
        return self.top + AXES_HEIGHT

    def x(self, column: float) -> float:
        return LEFT + (column + 0.5) / self.trials * (RIGHT - LEFT)

    def y(self, pps: float) -> float:
        return self.bottom - pps / (1.12 * self.highest) * AXES_HEIGHT

    def box(self, column: float, width: float, low: float, pps: float) -> tuple[float, float, float, float]:
        """Place and size of a bar of *pps* frames/s that begins at *low*; *width* in columns."""
        left = self.x(column - width / 2)
        return left, self.y(low + pps), self.x(column + width / 2) - left, self.y(low) - self.y(low + pps)

    def across(self, pps: float, colour: str, width: float, dashes: str) -> None:
        """A level line."""
        self.picture.line((LEFT, self.y(pps)), (RIGHT, self.y(pps)), colour, width, dashes)

    def label(self, column: float, pps: float, words: str) -> None:
        """A small label of lost frames above a bar."""
        self.picture.text(self.x(column), self.y(pps) - 4, words, LABEL_SIZE, LOST_COLOUR, anchor="middle")


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
    colours = {name: DIRECTION_COLOURS[at % len(DIRECTION_COLOURS)] for at, name in enumerate(directions)}
    plot.legend.update({f"forwarded {name}": colours[name] for name in directions if name in judged})
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
            place = plot.box(x, width * 0.94, base, forwarded)
            direction_area(plot.picture, place, directions.index(row.direction), opacity)
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
        plot.legend["lost"] = LOST_COLOUR
        plot.picture.hatched(*plot.box(x, width * 0.94, level, lost), LOST_COLOUR, Hatch.CROSSED)
        ratio = sum(row.count.lost for row in mine) / sum(row.count.offered for row in mine)
        if labelled:
            plot.label(x, level + lost + unsent, f"−{percent(ratio)}")
    # less than the width of a line cannot be seen and needs no legend entry
    if unsent > 0.002 * (level + lost + unsent):
        plot.legend["never sent by the generator"] = ""
        plot.picture.hatched(*plot.box(x, width * 0.94, level + lost, unsent), FAINT_COLOUR)


def _set_aside(plot: _TrialsPlot, index: int, width: float, mine: Sequence[DirectionRow], in_total: bool) -> None:
    """A hatched bar as high as what was forwarded, cut off where the scale of the others ends."""
    rates = [row.forwarded.pps for row in mine]
    height = min(math.fsum(rates) if in_total else max(rates, default=0.0), 1.12 * plot.highest)
    plot.legend[SET_ASIDE] = ""
    plot.picture.hatched(
        *plot.box(index, width * (1 if in_total else max(1, len(mine))), 0, height), FAINT_COLOUR, Hatch.BACK
    )


def _mark_doubtful(plot: _TrialsPlot, trials: Sequence[Trial]) -> None:
    for index, trial in enumerate(trials):
        if not trial.is_clean and not is_set_aside(trial):
            plot.picture.rectangle(*plot.box(index, 0.96, 0, 1.12 * plot.highest), DOUBT_SHADE)
            if len(trials) <= 12:
                plot.picture.text(plot.x(index), plot.top + 15, "doubtful", 12, DOUBT_COLOUR, anchor="middle")


def _label_axes(plot: _TrialsPlot, trials: Sequence[Trial], line: float) -> None:
    """Grid, both axes (rate; per cent of one direction's *line* rate) and the trials' names."""
    picture, (unit, factor) = plot.picture, rate_unit(plot.highest)
    for value, words in ticks(1.12 * plot.highest / factor):
        y = plot.y(value * factor)
        picture.line((LEFT, y), (RIGHT, y), GRID_COLOUR)
        picture.text(LEFT - 7, y + 4.5, words, TICK_SIZE, TEXT_COLOUR, anchor="end")
    for value, words in ticks(112 * plot.highest / line):
        y = plot.y(value * line / 100)
        picture.line((RIGHT, y), (RIGHT + 4, y), FAINT_COLOUR)
        picture.text(RIGHT + 8, y + 4.5, words, TICK_SIZE, TEXT_COLOUR)
    for x in (LEFT, RIGHT):
        picture.line((x, plot.top), (x, plot.bottom), FAINT_COLOUR)
    picture.line((LEFT, plot.bottom), (RIGHT, plot.bottom), FAINT_COLOUR)
    middle = plot.top + AXES_HEIGHT / 2
    picture.text(18, middle, f"rate [{unit}]", WORD_SIZE, TEXT_COLOUR, anchor="middle", turned=-90)
    share = "% of one direction's line rate"
    picture.text(WIDTH - 10, middle, share, WORD_SIZE, TEXT_COLOUR, anchor="middle", turned=-90)
    for index in range(0, len(trials), math.ceil(len(trials) / MOST_NAMES) or 1):
        name = trial_name(trials[index])
        picture.text(plot.x(index), plot.bottom + 18, name, TICK_SIZE, TEXT_COLOUR, anchor="middle")
    picture.text((LEFT + RIGHT) / 2, plot.bottom + 38, "trial", WORD_SIZE, TEXT_COLOUR, anchor="middle")
    if not trials:
        picture.text((LEFT + RIGHT) / 2, middle, "no trial was run", WORD_SIZE, FAINT_COLOUR, anchor="middle")


def ticks(end: float) -> Iterator[tuple[float, str]]:
    """Round numbers from 0 to *end* (more than 0), about six of them, and each as text."""
    power = 10.0 ** math.floor(math.log10(end / 5))
    step = next(factor * power for factor in (1, 2, 5, 10) if end / (factor * power) <= 7)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    for number in range(math.floor(end / step) + 1):
        yield number * step, f"{number * step:.{digits}f}"


def _draw_legend(plot: _TrialsPlot) -> None:
    """The legend below the axes, in as many rows as it needs; then the picture's height is known."""
    gap, swatch, row_height = 26.0, 16.0, 20.0
    rows: list[list[tuple[str, float]]] = [[]]
    for label in plot.legend:
        width = swatch + 7 + text_width(label, LEGEND_SIZE)
        if rows[-1] and sum(used + gap for _, used in rows[-1]) + width > WIDTH - 20:
            rows.append([])
        rows[-1].append((label, width))
    y = plot.bottom + 62
    for row in rows:
        x = (WIDTH - sum(width for _, width in row) - gap * (len(row) - 1)) / 2
        for label, width in row:
            colour, place = plot.legend[label], (x, y - 10, swatch, 11.0)
            if not colour:
                plot.picture.hatched(*place, FAINT_COLOUR, Hatch.BACK if label == SET_ASIDE else Hatch.FORWARD)
            elif colour == LOST_COLOUR:
                plot.picture.hatched(*place, colour, Hatch.CROSSED)
            elif colour in DIRECTION_COLOURS[_SOLID:]:
                plot.picture.hatched(*place, colour, Hatch.LEVEL)
            elif colour == THRESHOLD_COLOUR:
                plot.picture.line((x, y - 4.5), (x + swatch, y - 4.5), colour, 2.4, "9 4")
            else:
                plot.picture.rectangle(*place, colour)
            plot.picture.text(x + swatch + 7, y, label, LEGEND_SIZE, TEXT_COLOUR)
            x += width + gap
        y += row_height
    plot.picture.height = y - row_height + 14
