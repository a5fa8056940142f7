"""Title, axes, limit and legend of a picture, in which nothing differs by its colour alone."""

from __future__ import annotations

import base64
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

from .drawing import DIRECTION_COLOURS, FAINT_COLOUR, GRID_COLOUR, SIMULATED_COLOUR, TEXT_COLOUR, THRESHOLD_COLOUR
from .svg import Hatch, SvgPicture, text_width
from .tables import SIMULATED

WIDTH, LEFT, RIGHT = 900.0, 72.0, 830.0
"""Pixels: of the picture, and where its axes are."""

AXES_HEIGHT = 270.0
TITLE_SIZE, WORD_SIZE, TICK_SIZE, LEGEND_SIZE, LABEL_SIZE = 16.0, 14.0, 13.0, 12.5, 11.5
"""Sizes of text in pixels."""

SET_ASIDE = "set aside: any number of frames may be the testbed's"

SERIES_COLOURS = (DIRECTION_COLOURS[0], "#b5651d", "#3d3d3d", "#7a68a6", "#59a3c9", "#8a95a0")
"""Of series that have marks of their own too: none is told apart by its colour alone."""

MOST_NAMES = 20
"""Names of columns below the axes."""

_SOLID = 2
"""Directions whose areas are filled; those of further ones have level lines."""

_MARKS = 6
"""Of a curve, at most."""

Point = tuple[float, float]
Area = tuple[float, float, float, float]
"""Left edge, top, width and height in pixels."""


@dataclass
class PlotFrame:
    """Title, axes from LEFT to RIGHT, and a legend: label -> what draws its sign at a place.

    *above*: the frame of the same picture below which this one is; they share the legend.
    """

    title: str
    simulated: bool
    above: PlotFrame | None = None
    legend: dict[str, Callable[[float, float], None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        start, self.picture = 0.0, SvgPicture(WIDTH, 0, self.title)
        if self.above is not None:
            self.above.mark_simulated()
            start, self.picture, self.legend = self.above.bottom + 46, self.above.picture, self.above.legend
        titles = textwrap.wrap(self.title, 84) or [""]
        self.top = start + 34 + 1.25 * TITLE_SIZE * len(titles)
        self.bottom: float = self.top + AXES_HEIGHT
        self.picture.titles(LEFT, start + 42, titles, TITLE_SIZE, TEXT_COLOUR)
        if self.simulated:
            self.picture.text(WIDTH - 5, start + 17, SIMULATED, LEGEND_SIZE, SIMULATED_COLOUR, anchor="end", bold=True)

    def mark_simulated(self) -> None:
        """Write over all that was drawn that it is no measurement, if that is so."""
        if self.simulated:
            style = {"turned": -18.0, "opacity": 0.16}
            middle = (LEFT + RIGHT) / 2, self.top + AXES_HEIGHT / 2 + 25
            self.picture.text(*middle, "SIMULATED", 82, FAINT_COLOUR, anchor="middle", bold=True, **style)

    def finished(self) -> str:
        """The picture with its legend, as SVG."""
        self.mark_simulated()
        x, y = LEFT, self.bottom + 62
        for label, sign in self.legend.items():
            width = 31 + text_width(label, LEGEND_SIZE)
            if x > LEFT and x + width > WIDTH - 10:
                x, y = LEFT, y + 20
            sign(x, y)
            self.picture.text(x + 31, y, label, LEGEND_SIZE, TEXT_COLOUR)
            x += width + 22
        self.picture.height = y + 14
        return self.picture.svg()

    # -- axes --------------------------------------------------------------------------------------------------------

    def y(self, share: float) -> float:
        """Of a *share* of the height of the axes."""
        return self.bottom - share * AXES_HEIGHT

    def x(self, column: float, columns: int) -> float:
        """Of the middle of *column* 0, 1 …"""
        return across((column + 0.5) / columns)

    def axes(self, x_end: float, y_end: float, below: str, beside: str) -> Callable[[float, float], Point]:
        """Draw both axes from 0, with their figures and names; return what gives the place of a point."""
        self.scale(((value / y_end, words) for value, words in ticks(y_end)), beside, below)
        self.mark_across(x_end)
        return lambda x, y: (across(x / x_end), self.y(y / y_end))

    def scale(self, marks: Iterable[tuple[float, str]], name: str, below: str) -> None:
        """The upright axis with *marks* (share of its height, words), and both axes' names."""
        for share, words in marks:
            self.picture.line((LEFT, self.y(share)), (RIGHT, self.y(share)), GRID_COLOUR)
            self.picture.text(LEFT - 7, self.y(share) + 4.5, words, TICK_SIZE, TEXT_COLOUR, anchor="end")
        for start, end in (((LEFT, self.top), (LEFT, self.bottom)), ((LEFT, self.bottom), (RIGHT, self.bottom))):
            self.picture.line(start, end, FAINT_COLOUR)
        middle = self.top + AXES_HEIGHT / 2
        self.picture.text(18, middle, name, WORD_SIZE, TEXT_COLOUR, anchor="middle", turned=-90)
        self.picture.text((LEFT + RIGHT) / 2, self.bottom + 38, below, WORD_SIZE, TEXT_COLOUR, anchor="middle")

    def mark_across(self, end: float) -> None:
        """Round numbers from 0 to *end* at the level axis."""
        for value, words in ticks(end):
            self.mark_below(value / end, words)

    def mark_below(self, share: float, words: str) -> None:
        """Mark a *share* of the level axis, with *words* below."""
        x = across(share)
        self.picture.line((x, self.bottom), (x, self.bottom + 4), FAINT_COLOUR)
        self.name_below(x, words)

    def name_below(self, x: float, words: str) -> None:
        """*words* below the level axis, with their middle at *x*."""
        self.picture.text(x, self.bottom + 18, words, TICK_SIZE, TEXT_COLOUR, anchor="middle")

    def name_columns(self, names: Sequence[str]) -> None:
        """The *names* of columns, MOST_NAMES of them at most."""
        for column in range(0, len(names), math.ceil(len(names) / MOST_NAMES) or 1):
            self.name_below(self.x(column, len(names)), names[column])

    # -- what is drawn, and its sign in the legend -------------------------------------------------------------------

    def line(self, start: Point, end: Point, colour: str, width: float, dashes: str = "", label: str = "") -> None:
        """A straight line; *label*: in the legend, if it is there."""
        self.picture.line(start, end, colour, width, dashes)
        if label:
            self.line_sign(label, colour, width, dashes)

    def limit(self, start: Point, end: Point, label: str) -> None:
        """The line of the limit."""
        self.line(start, end, THRESHOLD_COLOUR, 2.4, "9 4", label)

    def line_sign(self, label: str, colour: str, width: float, dashes: str = "") -> None:
        """A line in the legend."""
        self.legend[label] = lambda x, y: self.picture.line((x, y - 4.5), (x + 24, y - 4.5), colour, width, dashes)

    def upright(self, x: float, low: float, high: float, colour: str) -> None:
        """An upright line from one level to another, with strokes at its ends."""
        self.picture.line((x, low), (x, high), colour, 1.4)
        for level in (low, high):
            self.picture.line((x - 5, level), (x + 5, level), colour, 1.4)

    def mark(self, place: Point, shape: int, colour: str, label: str) -> None:
        """A mark, as of :meth:`.svg.SvgPicture.mark`."""
        self.picture.mark(*place, shape, colour)
        self.legend[label] = lambda x, y: self.picture.mark(x + 12, y - 4.5, shape, colour)

    def series_sign(self, label: str, series: int) -> None:
        """The mark of a *series* in the legend."""
        self.legend[label] = lambda x, y: self.picture.mark(x + 12, y - 4.5, series, series_colour(series))

    def curve(self, points: Sequence[Point], series: int, label: str) -> None:
        """A line through *points*, with the marks of its *series*."""
        self.picture.path(points, series_colour(series), 1.8)
        step = max(1, len(points) // _MARKS)
        for x, y in points[series * step // _MARKS :: step]:
            self.picture.mark(x, y, series, series_colour(series))
        self.series_sign(label, series)

    def span(self, start: float, end: float, y: float, series: int) -> None:
        """A level line between two ends, with the mark of its *series* in the middle."""
        colour = series_colour(series)
        self.picture.line((start, y), (end, y), colour, 2)
        for x in (start, end):
            self.picture.line((x, y - 4), (x, y + 4), colour, 2)
        self.picture.mark((start + end) / 2, y, series, colour)

    def area(self, area: Area, direction: int, opacity: float = 1.0) -> None:
        """An area of *direction* 0, 1 …; further ones have level lines: no more shades look different."""
        colour = DIRECTION_COLOURS[direction % len(DIRECTION_COLOURS)]
        if direction % len(DIRECTION_COLOURS) < _SOLID:
            self.picture.rectangle(*area, colour, opacity)
        else:
            self.picture.hatched(*area, colour, Hatch.LEVEL)

    def area_sign(self, label: str, direction: int) -> None:
        """The area of a *direction* in the legend."""
        self.legend[label] = lambda x, y: self.area((x + 4, y - 10, 16, 11), direction)

    def hatched(self, area: Area, colour: str, hatch: Hatch, label: str) -> None:
        """A hatched area."""
        self.picture.hatched(*area, colour, hatch)
        self.hatched_sign(label, colour, hatch)

    def hatched_sign(self, label: str, colour: str, hatch: Hatch) -> None:
        """A hatched area in the legend."""
        self.legend[label] = lambda x, y: self.picture.hatched(x + 4, y - 10, 16, 11, colour, hatch)

    def set_aside(self, column: int, columns: int) -> None:
        """The column of a trial that says nothing of the router."""
        left, width = self.x(column - 0.4, columns), 0.8 / columns * (RIGHT - LEFT)
        self.hatched((left, self.top, width, AXES_HEIGHT), FAINT_COLOUR, Hatch.BACK, SET_ASIDE)

    def not_shown(self, aside: int, trials: int) -> None:
        """In the legend, that *aside* of *trials* are set aside; nothing of 0."""
        if aside:
            self.hatched_sign(f"{aside} of {trials} trials not shown, {SET_ASIDE}", FAINT_COLOUR, Hatch.BACK)

    def note(self, words: str) -> None:
        """*words* in the middle of the axes, where there is nothing to draw."""
        middle = (LEFT + RIGHT) / 2, self.top + AXES_HEIGHT / 2
        self.picture.text(*middle, words, WORD_SIZE, TEXT_COLOUR, anchor="middle")


def across(share: float) -> float:
    """Return the pixel at a *share* of the level axis."""
    return LEFT + share * (RIGHT - LEFT)


def value_share(values: Sequence[float], logarithmic: bool) -> Callable[[float], float]:
    """Return what gives the share of the level axis at which each of *values* is."""
    if not logarithmic:
        return lambda value: value / (1.05 * max([*values, 1e-9]))
    # zero has a place of its own, left of the smallest other one
    least = min(each for each in [*values, 1.0] if each > 0)
    span = math.log(max(*values, least * 1.01) / least) + 1.2
    return lambda value: 0.02 if value <= 0 else 0.96 * (math.log(value / least) + 1.0) / span


def ticks(end: float, start: float = 0.0) -> Iterator[tuple[float, str]]:
    """Round numbers from *start* to *end*, about six of them, and each as text."""
    power = 10.0 ** math.floor(math.log10((end - start) / 5))
    step = next(factor * power for factor in (1, 2, 5, 10) if (end - start) / (factor * power) <= 7)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    for number in range(math.ceil(start / step), math.floor(end / step) + 1):
        yield number * step, f"{number * step:.{digits}f}"


def series_colour(series: int) -> str:
    """Return that of *series* 0, 1 …"""
    return SERIES_COLOURS[series % len(SERIES_COLOURS)]


def svg_image(name: str, svg: str) -> str:
    """The picture as an ``<img>`` for use inside another page, which its style cannot change."""
    data = base64.b64encode(svg.encode()).decode("ascii")
    return f'<img alt="{escape(name)}" src="data:image/svg+xml;base64,{data}" style="max-width:100%">'
