"""Title, axes, limit and legend of a sentence's picture."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from .drawing import DIRECTION_COLOURS, FAINT_COLOUR, GRID_COLOUR, SIMULATED_COLOUR, TEXT_COLOUR, THRESHOLD_COLOUR
from .plots import AXES_HEIGHT, LEFT, LEGEND_SIZE, RIGHT, SET_ASIDE, TICK_SIZE, TITLE_SIZE, WIDTH, WORD_SIZE
from .svg import Hatch, SvgPicture, text_width
from .tables import SIMULATED

SERIES_COLOURS = (DIRECTION_COLOURS[0], "#b5651d", "#3d3d3d", "#7a68a6", "#59a3c9", "#8a95a0")
"""Of series that have marks of their own too: none is told apart by its colour alone."""

_MARKS = 6
"""Of a curve, at most."""


@dataclass
class PlotFrame:
    """Title, axes from LEFT to RIGHT, and a legend: label -> what draws its sign at a place."""

    title: str
    simulated: bool
    legend: dict[str, Callable[[float, float], None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.picture = SvgPicture(WIDTH, 0, self.title)
        titles = textwrap.wrap(self.title, 84) or [""]
        self.top = 34 + 1.25 * TITLE_SIZE * len(titles)
        self.bottom = self.top + AXES_HEIGHT
        self.picture.titles(LEFT, 42, titles, TITLE_SIZE, TEXT_COLOUR)
        if self.simulated:
            self.picture.text(WIDTH - 5, 17, SIMULATED, LEGEND_SIZE, SIMULATED_COLOUR, anchor="end", bold=True)
            style = {"turned": -18.0, "opacity": 0.16}
            middle = (LEFT + RIGHT) / 2, self.top + AXES_HEIGHT / 2 + 25
            self.picture.text(*middle, "SIMULATED", 82, FAINT_COLOUR, anchor="middle", bold=True, **style)

    def y(self, share: float) -> float:
        """Of a *share* of the height of the axes."""
        return self.bottom - share * AXES_HEIGHT

    def x(self, column: float, columns: int) -> float:
        """Of the middle of *column* 0, 1 …"""
        return LEFT + (column + 0.5) / columns * (RIGHT - LEFT)

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

    def limit(self, start: tuple[float, float], end: tuple[float, float], label: str) -> None:
        """The line of the limit."""
        style = (THRESHOLD_COLOUR, 2.4, "9 4")
        self.picture.line(start, end, *style)
        self.legend[label] = lambda x, y: self.picture.line((x, y - 4.5), (x + 24, y - 4.5), *style)

    def series_sign(self, label: str, series: int) -> None:
        """The mark of a *series* in the legend."""
        self.legend[label] = lambda x, y: self.picture.mark(x + 12, y - 4.5, series, series_colour(series))

    def curve(self, points: Sequence[tuple[float, float]], series: int, label: str) -> None:
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

    def hatched_sign(self, label: str, colour: str, hatch: Hatch) -> None:
        """A hatched area in the legend."""
        self.legend[label] = lambda x, y: self.picture.hatched(x + 4, y - 10, 16, 11, colour, hatch)

    def set_aside(self, column: int, columns: int) -> None:
        """The column of a trial that says nothing of the router."""
        left, width = self.x(column - 0.4, columns), 0.8 / columns * (RIGHT - LEFT)
        self.picture.hatched(left, self.top, width, AXES_HEIGHT, FAINT_COLOUR, Hatch.BACK)
        self.hatched_sign(SET_ASIDE, FAINT_COLOUR, Hatch.BACK)

    def finished(self) -> str:
        """The picture with its legend, as SVG."""
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

    def note(self, words: str) -> None:
        """*words* in the middle of the axes, where there is nothing to draw."""
        middle = (LEFT + RIGHT) / 2, self.top + AXES_HEIGHT / 2
        self.picture.text(*middle, words, WORD_SIZE, TEXT_COLOUR, anchor="middle")

    def not_shown(self, aside: int, trials: int) -> None:
        """In the legend, that *aside* of *trials* are set aside; nothing of 0."""
        if aside:
            self.hatched_sign(f"{aside} of {trials} trials not shown, {SET_ASIDE}", FAINT_COLOUR, Hatch.BACK)


def series_colour(series: int) -> str:
    """Return that of *series* 0, 1 …"""
    return SERIES_COLOURS[series % len(SERIES_COLOURS)]
