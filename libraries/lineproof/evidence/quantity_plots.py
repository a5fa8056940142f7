"""The picture of a sentence shows what the sentence is about: its own quantity, trial by trial, beside its limit.

A quantity says which picture: of rates, the histogram of the probe frames, or the ranges of its figure; where the
counts of a changing load are known, the frames that were lost later and later. Trials that are set aside are hatched
and have no part in the scale. The same trials give the same SVG text.

Each bar of rates is a trial: frames forwarded, then lost, then unsent; its full height is the load. If a sentence
counts its directions in total, they are stacked; else they are side by side. What is lost, unsent or set aside differs
by its hatch: no reader needs the colours.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..core.bounds import Bounds
from ..core.latency import LOST, LatencyCount
from ..core.quantity import Promise, Requirement
from ..core.step_down import StepDown
from ..core.trial import Trial
from ..core.units import RATE_UNITS
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
    across,
    series_colour,
    ticks,
)
from .rates import DirectionRow, TrafficFigures, direction_rows, is_set_aside, percent, trial_name
from .records import RequirementRecord
from .svg import Hatch


def plot_name(requirement: Requirement) -> str:
    """Return what the picture of a sentence shows."""
    quantity = requirement.quantity
    if quantity.chart == "rates":
        return "Offered and forwarded rate"
    if quantity.chart == "histogram":
        return "Latency of the probe frames"
    return f"{quantity.title or quantity.name} of each trial"


def sentence_plot(
    record: RequirementRecord,
    trials: Sequence[Trial],
    traffic: TrafficFigures,
    link_bps: float,
    title: str,
    simulated: bool = False,
    step_downs: Mapping[int, StepDown] | None = None,
) -> str:
    """The picture of the sentence of *record* as SVG. *link_bps*: link speed of one direction in L1 bit/s.

    *step_downs*: the counts of trials whose load changed, by their number.
    """
    demanded, promise = record.requirement, record.promise
    chart = promise.quantity.chart
    if chart == "rates" or not any(trial.number for trial in trials):
        line = None
        if demanded.threshold.unit in RATE_UNITS:
            line = ThresholdLine(demanded.threshold_pps(record.link_bps), f"≥ {demanded.text()}")
        return trials_plot(trials, traffic, link_bps, title, simulated, line, demanded.in_total)
    frame = PlotFrame(title, simulated)
    judged = [trial for trial in trials if trial.number]
    known = step_downs or {}
    counted = [trial for trial in judged if not is_set_aside(trial)]
    repeated = [trial for trial in counted if trial.number in known and promise.quantity.charted(promise, trial)]
    if chart == "histogram":
        _draw_histogram(frame, demanded, promise, judged)
    elif repeated:
        draw_recovery(frame, demanded, promise, repeated, known, len(judged) - len(counted))
    else:
        _draw_figures(frame, demanded, promise, judged)
    return frame.finished()


def _draw_figures(frame: PlotFrame, demanded: Requirement, promise: Promise, trials: Sequence[Trial]) -> None:
    """The figures of each trial as marks; a line between the ends of what is known."""
    quantity = promise.quantity
    found = [{} if is_set_aside(trial) else quantity.charted(promise, trial) for trial in trials]
    names = list(dict.fromkeys(name for figures in found for name in figures))
    bounds = [figure for figures in found for figure in figures.values()]
    ends = [end for figure in bounds for end in (figure.low, figure.high) if math.isfinite(end)]
    highest = 1.15 * max([*ends, demanded.threshold.number]) or 1.0
    marks = ((value / highest, words) for value, words in ticks(highest))
    frame.scale(marks, f"{quantity.title or quantity.name} [{demanded.threshold.unit.value}]", "trial")
    frame.name_columns([trial_name(trial) for trial in trials])
    for column, (trial, figures) in enumerate(zip(trials, found, strict=True)):
        if is_set_aside(trial):
            frame.set_aside(column, len(trials))
        for name, figure in figures.items():
            place = names.index(name)
            x = frame.x(column + 0.5 * ((place + 0.5) / len(names) - 0.5), len(trials))
            _draw_range(frame, x, figure, highest, place)
    for place, name in enumerate(names):
        frame.series_sign(name, place)
    level = frame.y(demanded.threshold.number / highest)
    frame.limit((LEFT, level), (RIGHT, level), f"{demanded.relation} {demanded.text()}")
    if not ends:
        frame.note("no trial has such a figure")


def _draw_range(frame: PlotFrame, x: float, figure: Bounds, highest: float, place: int) -> None:
    colour, high = series_colour(place), figure.high
    start = frame.y(figure.low / highest) if math.isfinite(figure.low) else frame.top
    end = frame.y(high / highest) if math.isfinite(high) else frame.top
    if not figure.is_exact:
        frame.picture.line((x, start), (x, end), colour, 2)
        for level in (start, end) if math.isfinite(high) else (start,):
            frame.picture.line((x - 6, level), (x + 6, level), colour, 2)
    if math.isfinite(high):
        frame.picture.mark(x, (start + end) / 2, place, colour)
    else:
        frame.picture.mark(x, frame.top + 6, 2, colour)
        frame.picture.text(x + 8, frame.top + 12, "no end seen", LABEL_SIZE, TEXT_COLOUR)


def _draw_histogram(frame: PlotFrame, demanded: Requirement, promise: Promise, trials: Sequence[Trial]) -> None:
    """The probe frames of all trials that count, by latency, on a logarithmic scale; each at the end of its bucket."""
    counted = [trial for trial in trials if not is_set_aside(trial)]
    found: dict[str, Counter[float]] = {}
    for count in (count for trial in counted for count in trial.outcome.latency):
        if spread := count.spread():
            found.setdefault(_direction(count), Counter()).update(spread.worst)
    limit, label = demanded.threshold.number, f"limit {demanded.demand}"
    placed = [key for frames in found.values() for key in frames if key < LOST]
    if promise.statistic is not None and promise.statistic.variation:
        limit, label = limit + min(placed, default=0.0), f"limit: {demanded.text()} later than the fastest frame"
    edges = _edges(min([*placed, limit]), max([*placed, limit]), limit)
    edges += [LOST] * any(frames[LOST] for frames in found.values())
    bars = {name: Counter[int]() for name in found}
    for name, frames in found.items():
        for key, number in frames.items():
            bars[name][bisect_left(edges, key)] += number
    columns, most = len(edges), max((max(frames.values()) for frames in bars.values()), default=1)
    decades = math.ceil(math.log10(most)) + 0.6

    def share(frames: float) -> float:
        return (math.log10(frames) + 0.3) / decades

    marks = ((share(10**power), f"{10**power:,}") for power in range(math.ceil(decades - 0.3)))
    frame.scale(marks, "probe frames", "latency [µs], from each figure up to the next")
    for column, (low, high) in enumerate(zip([0.0, *edges], edges, strict=False)):
        width = 0.84 / max(1, len(found))
        for place, bar in enumerate(bars.values()):
            if not bar[column]:
                continue
            left = frame.x(column - 0.42 + place * width, columns)
            height = share(bar[column]) * AXES_HEIGHT
            box = (left, frame.bottom - height, width * 0.94 / columns * (RIGHT - LEFT), height)
            if low >= limit or high == LOST:
                frame.hatched(box, LOST_COLOUR, Hatch.CROSSED, "later than the limit, or lost")
            else:
                frame.area(box, place)
            if columns * len(found) <= 20:
                middle = left + box[2] / 2, box[1] - 4
                frame.picture.text(*middle, f"{bar[column]:,}", LABEL_SIZE, TEXT_COLOUR, anchor="middle")
        if columns <= 16 or high == LOST or not column or f"{low:g}".strip("0") == "1":
            frame.name_below(frame.x(column, columns), "late, lost" if high == LOST else f"{low:g}")
    for place, name in enumerate(found):
        frame.area_sign(f"probe frames {name}", place)
    x = frame.x(edges.index(limit) + 0.5, columns)
    frame.limit((x, frame.top), (x, frame.bottom), label)
    frame.not_shown(len(trials) - len(counted), len(trials))
    if not found:
        frame.note("no probe frames are known")


def _edges(least: float, most: float, limit: float) -> list[float]:
    """The ends of columns of one digit, from that of *least* µs to that of *most*, and *limit*."""
    found = [1.0 if least < 10 else 10.0]
    while found[-1] < most:
        found.append(found[-1] + 10.0 ** (len(str(int(found[-1]))) - 1))
    return sorted({*found, limit})


def _direction(count: LatencyCount) -> str:
    return f"{count.tx_port} → {count.rx_port}"


_ROW, _ROWS = 0.055, 0.3
"""Share of the axes' height for the time of a last lost frame, and for all of them at most."""

_BOUNDS = "last lost frame: earliest to latest"


def draw_recovery(
    frame: PlotFrame,
    demanded: Requirement,
    promise: Promise,
    trials: Sequence[Trial],
    step_downs: Mapping[int, StepDown],
    aside: int,
) -> None:
    """The curves of the repetitions *trials*; *step_downs*: their counts, by trial. *aside*: how many are not shown.

    A curve is of the direction that lost most later. Frames that were still under way are not lost.
    """
    curves = [_curve(step_downs[trial.number]) for trial in trials]
    limit = demanded.threshold.number
    last = 1.05 * max([limit, *(curve[-1][0] for curve in curves)]) or 1.0
    most = 1.1 * max(later for curve in curves for _, later in curve) or 1.0
    row = min(_ROW, _ROWS / len(curves))
    floor = row * (len(curves) + 0.5)

    def x(seconds: float) -> float:
        return across(seconds / last)

    def height(later: float) -> float:
        return floor + (1 - floor) * later / most

    unit, words = (1e6, " [million]") if most >= 1e6 else (1e3, " [thousand]") if most >= 1e4 else (1.0, "")
    whole = (value for value, _ in ticks(most / unit) if unit * value == round(unit * value))
    levels = ((height(unit * value), f"{value:g}") for value in whole)
    frame.scale(levels, f"frames lost later{words}", "seconds after the overload")
    frame.mark_across(last)
    for series, (trial, curve) in enumerate(zip(trials, curves, strict=True)):
        points = [(x(seconds), frame.y(height(later))) for seconds, later in curve]
        frame.curve(points, series, f"trial {trial.number}")
        ends = promise.quantity.shown(promise, [trial])
        level, high = frame.y(row * (len(curves) - series - 0.25)), ends.high
        start, end = x(ends.low), x(min(high, last))
        frame.span(min(start, end), end, level, series)
        if math.isinf(high):
            frame.picture.text(end + 8, level + 4, "no end", LABEL_SIZE, TEXT_COLOUR)
    if not any(later for curve in curves for _, later in curve):
        frame.note("no frame was seen to be lost later")
    frame.legend[_BOUNDS] = lambda x, y: frame.span(x, x + 24, y - 4.5, 0)
    frame.limit((x(limit), frame.top), (x(limit), frame.bottom), f"{demanded.relation} {demanded.text()}")
    frame.not_shown(aside, aside + len(trials))


def _curve(found: StepDown) -> list[tuple[float, float]]:
    """Seconds since the change and frames lost later than that, of the direction that lost most."""
    curves = (found.lost_later(direction) for direction in range(len(found.after.offered)))
    return max(curves, key=lambda curve: sum(later for _, later in curve))


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
