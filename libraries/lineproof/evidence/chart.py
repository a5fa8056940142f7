"""Four kinds of picture from plain data: bars, histogram, range and line. The same data give the same SVG text.

Each has a title, axes with units, a legend, and a mark where it is simulated. Nothing differs by its colour alone.
A figure beyond an axis is drawn at its end, so that none is too large for a picture.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..core.bounds import Bounds
from .document import SIMULATED
from .svg import Hatch, SvgPicture, fitted, text_width

TEXT_COLOUR, FAINT_COLOUR, GRID_COLOUR = "#2b3540", "#8a95a0", "#dde3e8"
LOST_COLOUR, LIMIT_COLOUR, SIMULATED_COLOUR = "#d1382c", "#0d7a4f", "#9a3a06"

_WIDTH, _LEFT, _HEIGHT, _ROW = 900.0, 72.0, 270.0, 26.0
"""Pixels: of a picture, beside and along the upright axis, and of a bar that lies."""

_TITLE_SIZE, _WORD_SIZE, _TICK_SIZE, _LABEL_SIZE = 16.0, 14.0, 13.0, 12.0
_MOST_NAMES, _MOST_LABELS, _MOST_MARKS = 20, 18, 6
"""Below the axis, beyond bars, and of a curve."""

Point = tuple[float, float]
Area = tuple[float, float, float, float]
"""Left edge, top, width and height in pixels."""


# -- data --------------------------------------------------------------------------------------------------------------


class Axis(NamedTuple):
    """An edge of a picture. ``share``: the place of a figure, from 0 to 1; ``marks``: figures and their words."""

    name: str
    share: Callable[[float], float]
    marks: Sequence[tuple[float, str]]


class LimitLine(NamedTuple):
    """The promise as a line. ``at_least``: which side of it keeps the promise."""

    value: float
    words: str
    at_least: bool = True

    def curve(self, is_upright: bool = False) -> Curve:
        """Return the line itself; *is_upright*: its figure is one of the level axis."""
        ends = [(-math.inf, self.value), (math.inf, self.value)]
        ends = [(y, x) for x, y in ends] if is_upright else ends
        return Curve(self.words, ends, colour=LIMIT_COLOUR, dashes="9 4", width=2.4)


class Sign(NamedTuple):
    """A mark of a shape in a colour."""

    shape: int
    colour: str


class Fill(NamedTuple):
    """How an area looks: of one colour, hatched, or white with an edge."""

    colour: str
    hatch: Hatch | None = None
    is_outline: bool = False


SIGNS = tuple(map(Sign, range(6), ("#2c6fa6", "#b5651d", "#3d3d3d", "#7a68a6", "#59a3c9", FAINT_COLOUR)))
AREAS = (Fill("#2c6fa6"), Fill("#59a3c9"), Fill("#7a68a6", Hatch.LEVEL), Fill("#a996c9", Hatch.LEVEL))
"""Of series beside each other; those that come after them begin with the first again."""

LOST, ALLOWED = Fill(LOST_COLOUR, Hatch.CROSSED), Fill("#b9c2ca", is_outline=True)
UNSENT, ASIDE = Fill(FAINT_COLOUR, Hatch.FORWARD), Fill(FAINT_COLOUR, Hatch.BACK)
WORSE = Fill("#fbecea")


class Part(NamedTuple):
    """A part of a bar, upon the one before. ``name``: in the legend."""

    size: float
    name: str
    fill: Fill


class Whisker(NamedTuple):
    """A line between two figures, with a sign at ``middle`` (None: half way); an infinite ``high`` was not seen."""

    name: str
    low: float
    high: float
    sign: Sign
    middle: float | None = None


@dataclass(frozen=True, slots=True)
class Bar:
    """Parts upon each other, whiskers over them, and a ``label`` beyond its end."""

    parts: Sequence[Part] = ()
    whiskers: Sequence[Whisker] = ()
    label: str = ""

    @property
    def end(self) -> float:
        """The largest figure that is drawn."""
        return max([math.fsum(part.size for part in self.parts), *(one.high for one in self.whiskers)])


@dataclass(frozen=True, slots=True)
class BarGroup:
    """Bars beside each other below a name, hatched where they are set aside."""

    name: str
    bars: Sequence[Bar]
    is_aside: bool = False


@dataclass(frozen=True, slots=True)
class Curve:
    """Points with a sign, or a line without one. ``spans``: at x, what is known of y; ``labels``: words at a point."""

    name: str
    points: Sequence[Point]
    sign: Sign | None = None
    colour: str = FAINT_COLOUR
    dashes: str = ""
    width: float = 1.6
    is_joined: bool = True
    spans: Sequence[tuple[float, Bounds]] = ()
    labels: Sequence[tuple[Point, str]] = ()


class Panel(NamedTuple):
    """One pair of axes and all that is drawn on it."""

    title: str
    across: Axis
    up: Axis
    curves: Sequence[Curve]
    simulated: bool = False


def upright(at: float, name: str, colour: str, dashes: str, words: str = "") -> Curve:
    """Return an upright line with *words* at its top."""
    ends = [(at, -math.inf), (at, math.inf)]
    return Curve(name, ends, None, colour, dashes, labels=[(ends[1], words)] if words else [])


# -- axes --------------------------------------------------------------------------------------------------------------


def linear(name: str, end: float, start: float = 0.0, size: float = 1.0) -> Axis:
    """Return an axis from *start* to *end*, marked at round numbers of units; *size*: of a unit."""
    marks = [(value * size, words) for value, words in ticks(end / size, start / size)]
    return Axis(name, lambda value: (value - start) / (end - start), marks)


def scaled(name: str, unit: str, end: float, start: float = 0.0) -> Axis:
    """Return an axis of figures in *unit*; rates have a prefix."""
    sizes = {"pps": {"M": 1e6, "k": 1e3}, "bit/s": {"G": 1e9, "M": 1e6, "k": 1e3}}.get(unit.split(" ")[0], {})
    prefix, size = next(((prefix, size) for prefix, size in sizes.items() if end >= size), ("", 1.0))
    return linear(f"{name} [{prefix}{unit}]" if name else f"{prefix}{unit}", end, start, size)


def valued(name: str, values: Sequence[float], is_logarithmic: bool) -> Axis:
    """Return an axis that is marked at each of *values*; a logarithmic one has a place for 0."""
    marks = [(value, f"{value:,g}") for value in sorted(set(values))]
    if not is_logarithmic:
        return Axis(name, lambda value: value / (1.05 * max([*values, 1e-9])), marks)
    least = min(value for value in [*values, 1.0] if value > 0)
    room = math.log(max(*values, least * 1.01) / least) + 1.2
    return Axis(name, lambda value: 0.02 if value <= 0 else 0.96 * (math.log(value / least) + 1.0) / room, marks)


def ticks(end: float, start: float = 0.0) -> Iterator[tuple[float, str]]:
    """Yield round numbers from *start* to *end*, about six of them, and each as text."""
    power = 10.0 ** math.floor(math.log10((end - start) / 5))
    step = next(factor * power for factor in (1, 2, 5, 10) if (end - start) / (factor * power) <= 7)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    for number in range(math.ceil(start / step), math.floor(end / step) + 1):
        yield number * step, f"{number * step:.{digits}f}"


# -- the four kinds ----------------------------------------------------------------------------------------------------


def bars(
    title: str,
    columns: Sequence[BarGroup],
    value: Axis,
    below: str = "",
    *,
    limit: LimitLine | None = None,
    is_level: bool = False,
    simulated: bool = False,
) -> str:
    """Return bars that begin at 0; *is_level*: they lie."""
    frame = _Frame(title, simulated, rows=[column.name for column in columns] if is_level else ())
    frame.columns(columns, value, below, limit)
    return frame.finished()


def histogram(
    title: str,
    counts: Mapping[str, Mapping[float, int]],
    edges: Sequence[float],
    value: str,
    below: str,
    *,
    limit: LimitLine,
    simulated: bool = False,
) -> str:
    """Return how many of each series are in the column up to each of *edges*, on a logarithmic axis.

    The *limit* is one of the edges; what is beyond it is hatched. The edge infinity: late or lost.
    """
    most = max((number for series in counts.values() for number in series.values()), default=1)
    decades = math.ceil(math.log10(most)) + 0.6
    marks = [(10.0**power, f"{10**power:,}") for power in range(math.ceil(decades - 0.3))]
    up = Axis(value, lambda number: (math.log10(number) + 0.3) / decades if number > 0 else 0.0, marks)
    columns = []
    for low, high in zip([0.0, *edges], edges, strict=False):
        bars = []
        for place, (series, numbers) in enumerate(counts.items()):
            words, fill, number = f"{value} {series}", AREAS[place % len(AREAS)], numbers.get(high, 0)
            if low >= limit.value or math.isinf(high):
                words, fill = "later than the limit, or lost", LOST
            bars.append(Bar([Part(number, words, fill)], label=f"{number:,}") if number else Bar())
        is_named = len(edges) <= 16 or f"{low:g}".strip("0") in ("", "1")
        columns.append(BarGroup("late, lost" if math.isinf(high) else f"{low:g}" if is_named else "", bars))
    frame, edge = _Frame(title, simulated), (edges.index(limit.value) + 1) / len(edges)
    frame.columns(columns, up, below)
    frame.curve(limit._replace(value=edge).curve(is_upright=True), frame.at)
    return frame.finished()


def range_chart(
    title: str,
    columns: Sequence[tuple[str, Mapping[str, Bounds] | None]],
    name: str,
    unit: str,
    below: str,
    *,
    limit: LimitLine,
    simulated: bool = False,
) -> str:
    """Return figures beside a limit: of each column those of each series by its name; None: it is set aside."""
    series = dict.fromkeys(name for _, figures in columns for name in figures or ())
    signs = {name: SIGNS[number % len(SIGNS)] for number, name in enumerate(series)}
    shown = []
    for column, figures in columns:
        known = figures or {}
        bars = [
            Bar(whiskers=[Whisker(one, known[one].low, known[one].high, sign)] if one in known else [])
            for one, sign in signs.items()
        ]
        shown.append(BarGroup(column, bars, is_aside=figures is None))
    ends = [end for _, figures in columns for one in (figures or {}).values() for end in (one.low, one.high)]
    low, high = (chosen([limit.value, *filter(math.isfinite, ends)]) for chosen in (min, max))
    room = max(0.35 * (high - low), 0.02 * abs(high)) or 1.0
    value = scaled(name, unit, high + room, low - room if low < 0 else max(0.0, low - room))
    frame = _Frame(title, simulated)
    edge = value.share(limit.value), 0.0 if limit.at_least else 1.0
    frame.area(frame.box(0, 1, *edge), WORSE, "breaks the promise")
    frame.columns(shown, value, below, limit)
    return frame.finished()


def line(panel: Panel) -> str:
    """Return curves over one pair of axes."""
    frame = _Frame(panel.title, panel.simulated)
    frame.panel(panel)
    return frame.finished()


# -- the frame ---------------------------------------------------------------------------------------------------------


class _Frame:
    """Title, axes and legend of a picture. Its places are shares of the axes, from 0 to 1: across, and up.

    *rows*: names of bars that lie: then across runs down, and up to the right.
    """

    def __init__(self, title: str, simulated: bool, rows: Sequence[str] = ()) -> None:
        self.simulated, self.rows = simulated, rows
        self.picture = SvgPicture(_WIDTH, 0, title)
        self.legend: dict[str, Callable[[float, float], None]] = {}
        width, self.margin = self.picture.width, 16.0 if rows else _LEFT
        names = max((text_width(name, _TICK_SIZE) for name in rows), default=0.0)
        self.left, self.right = max(_LEFT, 24 + min(names, 0.3 * width)), width - (70 if rows else 24)
        lines = textwrap.wrap(title, int((width - self.margin) / text_width("x", _TITLE_SIZE))) or [""]
        self.top = 34 + 1.25 * _TITLE_SIZE * len(lines)
        self.height = _ROW * len(rows) if rows else _HEIGHT
        self.bottom = self.top + self.height
        self.picture.titles(self.margin, 42, lines, _TITLE_SIZE, TEXT_COLOUR)
        if simulated:
            self.picture.text(width - 5, 17, SIMULATED, _LABEL_SIZE, SIMULATED_COLOUR, anchor="end", bold=True)

    def finished(self) -> str:
        """Return the picture with its legend, as SVG."""
        if self.simulated and not self.rows:
            x, y = self.at(0.5, 0.5)
            style = {"turned": -18.0, "opacity": 0.16}
            self.picture.text(x, y + 25, "SIMULATED", 82, FAINT_COLOUR, anchor="middle", bold=True, **style)
        x, y = self.margin, self.bottom + 62
        for label, sign in self.legend.items():
            width = 31 + text_width(label, _LABEL_SIZE)
            if x > self.margin and x + width > self.picture.width - 10:
                x, y = self.margin, y + 20
            sign(x, y)
            self.picture.text(x + 31, y, label, _LABEL_SIZE, TEXT_COLOUR)
            x += width + 22
        self.picture.height = y + 14
        return self.picture.svg()

    def at(self, across: float, up: float) -> Point:
        """Return the pixels of a place; what is beyond an axis is at its end."""
        across, up = (min(max(share, 0.0), 1.0) for share in (across, up))
        if self.rows:
            return self.left + up * (self.right - self.left), self.top + across * self.height
        return self.left + across * (self.right - self.left), self.bottom - up * self.height

    def box(self, start: float, end: float, low: float, high: float) -> Area:
        """Return the area between two places."""
        (x1, y1), (x2, y2) = self.at(start, low), self.at(end, high)
        return min(x1, x2), min(y1, y2), abs(x2 - x1), abs(y2 - y1)

    # -- axes ----------------------------------------------------------------------------------------------------------

    def axes(self, value: Axis, other: str) -> None:
        """Draw the axis of figures with a grid, the lines of both axes, and their names; *other*: of the other one."""
        for figure, words in value.marks:
            (x, y), end = self.at(0, value.share(figure)), self.at(1, value.share(figure))
            self.picture.line((x, y), end, GRID_COLOUR)
            place = (x, self.bottom + 18, "middle") if self.rows else (x - 7, y + 4.5, "end")
            self.picture.text(*place[:2], words, _TICK_SIZE, TEXT_COLOUR, anchor=place[2])
        self.picture.line((self.left, self.top), (self.left, self.bottom), FAINT_COLOUR)
        self.picture.line((self.left, self.bottom), (self.right, self.bottom), FAINT_COLOUR)
        upright, level = (other, value.name) if self.rows else (value.name, other)
        middle = (self.top + self.bottom) / 2
        self.picture.text(18, middle, upright, _WORD_SIZE, TEXT_COLOUR, anchor="middle", turned=-90)
        centre = (self.left + self.right) / 2
        self.picture.text(centre, self.bottom + 38, level, _WORD_SIZE, TEXT_COLOUR, anchor="middle")

    # -- what is drawn, and its sign in the legend ---------------------------------------------------------------------

    def area(self, area: Area, fill: Fill, label: str) -> None:
        """Fill an area."""
        if fill.hatch:
            self.picture.hatched(*area, fill.colour, fill.hatch)
        elif fill.is_outline:
            self.picture.rectangle(*area, "white", edge=fill.colour)
        else:
            self.picture.rectangle(*area, fill.colour)
        if label:
            self.legend[label] = lambda x, y: self.area((x + 4, y - 10, 16, 11), fill, "")

    def mark_sign(self, sign: Sign, label: str) -> None:
        """Put a mark into the legend."""
        if label:
            self.legend[label] = lambda x, y: self.picture.mark(x + 12, y - 4.5, *sign)

    def span(self, start: Point, end: Point, colour: str, has_end: bool = True) -> None:
        """Draw a line with strokes at its ends."""
        self.picture.line(start, end, colour, 1.6)
        right, down = (0, 5) if self.rows else (5, 0)
        for x, y in (start, end) if has_end else (start,):
            self.picture.line((x - right, y - down), (x + right, y + down), colour, 1.6)

    def columns(self, columns: Sequence[BarGroup], value: Axis, below: str, limit: LimitLine | None = None) -> None:
        """Draw axes, and columns from the left, or rows from the top; the *limit* over them."""
        self.axes(value, below)
        wide = 1 / max(1, len(columns))
        named = math.ceil(sum(bool(column.name) for column in columns) / _MOST_NAMES) or 1
        is_labelled = sum(bool(bar.label) for column in columns for bar in column.bars) <= _MOST_LABELS
        for place, column in enumerate(columns):
            middle = (place + 0.5) * wide
            x, y = self.at(middle, 0)
            if self.rows:
                name = fitted(column.name, self.left - 24, _TICK_SIZE)
                self.picture.text(x - 7, y + 4.5, name, _TICK_SIZE, TEXT_COLOUR, anchor="end")
            elif place % named == 0:
                self.picture.text(x, y + 18, column.name, _TICK_SIZE, TEXT_COLOUR, anchor="middle")
            if column.is_aside:
                whole = self.box(middle - 0.45 * wide, middle + 0.45 * wide, 0, 1)
                self.area(whole, ASIDE, "set aside: spoilt by the testbed")
            # a single column would be as wide as the picture
            width = wide * min(0.76, 1 if self.rows else 0.19 * len(columns)) / max(1, len(column.bars))
            for number, bar in enumerate(column.bars):
                across = middle + (number - (len(column.bars) - 1) / 2) * width
                self.bar(bar, across, 0.46 * width, value)
                if bar.label and is_labelled:
                    x, y = self.at(across, value.share(bar.end))
                    x, y, anchor = (x + 9, y + 4.5, "start") if self.rows else (x, y - 5, "middle")
                    self.picture.text(x, y, bar.label, _LABEL_SIZE, TEXT_COLOUR, anchor=anchor)
        if not any(bar.parts or bar.whiskers for column in columns for bar in column.bars):
            self.picture.text(*self.at(0.5, 0.5), "nothing was measured", _WORD_SIZE, TEXT_COLOUR, anchor="middle")
        if limit is not None:
            self.curve(limit.curve(), lambda across, figure: self.at(across, value.share(figure)))

    def bar(self, bar: Bar, across: float, half: float, value: Axis) -> None:
        """Draw a bar with *half* of its width on each side of a place."""
        base = 0.0
        for part in bar.parts:
            low, high = value.share(base), value.share(base + part.size)
            self.area(self.box(across - half, across + half, low, high), part.fill, part.name)
            base += part.size
        for name, low, high, sign, middle in bar.whiskers:
            start, end = self.at(across, value.share(low)), self.at(across, value.share(high))
            if low < high:
                self.span(start, end, sign.colour, math.isfinite(high))
            if math.isinf(high):
                self.picture.mark(end[0], end[1] + 6, 2, sign.colour)
                self.picture.text(end[0] + 8, end[1] + 12, "no end seen", _LABEL_SIZE, TEXT_COLOUR)
            else:
                shown = (low + high) / 2 if middle is None else middle
                self.picture.mark(*self.at(across, value.share(shown)), *sign)
            self.mark_sign(sign, name)

    def panel(self, panel: Panel) -> None:
        """Draw all that is on the axes of a panel."""
        across, up = panel.across, panel.up
        self.axes(up, across.name)
        for figure, words in across.marks:
            x, y = self.at(across.share(figure), 0)
            self.picture.line((x, y), (x, y + 4), FAINT_COLOUR)
            self.picture.text(x, y + 18, words, _TICK_SIZE, TEXT_COLOUR, anchor="middle")
        for curve in panel.curves:
            self.curve(curve, lambda x, y: self.at(across.share(x), up.share(y)))

    def curve(self, curve: Curve, at: Callable[[float, float], Point]) -> None:
        """Draw a curve; *at*: the place of two figures."""
        points, sign = [at(*point) for point in curve.points], curve.sign
        colour = sign.colour if sign else curve.colour
        if curve.is_joined and points:
            self.picture.path(points, colour, curve.width, curve.dashes)
        for place, bounds in curve.spans:
            self.span(at(place, bounds.low), at(place, bounds.high), colour)
        for (x, y), words in ((at(*point), words) for point, words in curve.labels):
            is_far = x > (self.left + self.right) / 2
            shown, x = fitted(words, 0.45 * (self.right - self.left), _LABEL_SIZE), x - 5 if is_far else x + 5
            y = max(self.top + 13, y - 7)
            self.picture.text(x, y, shown, _LABEL_SIZE, TEXT_COLOUR, anchor="end" if is_far else "start")
        if sign:
            step = max(1, len(points) // _MOST_MARKS) if curve.is_joined else 1
            # those of curves that lie upon each other are not at the same points
            for x, y in points[sign.shape % _MOST_MARKS * step // _MOST_MARKS :: step]:
                self.picture.mark(x, y, *sign)
            self.mark_sign(sign, curve.name)
        elif curve.name:
            style = (colour, curve.width, curve.dashes)
            self.legend[curve.name] = lambda x, y: self.picture.line((x, y - 4.5), (x + 24, y - 4.5), *style)
