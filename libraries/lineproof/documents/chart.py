"""A picture of two axes with bars, ranges, curves and a promise. The same calls give the same SVG text.

Nothing differs by its colour alone. A figure beyond an axis is drawn at its end, so that none is too large.
"""

from __future__ import annotations

import base64
import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

from ..core.bounds import Bounds
from .document import SIMULATED

TEXT_COLOUR, FAINT_COLOUR, GRID_COLOUR = "#2b3540", "#8a95a0", "#dde3e8"
LOST_COLOUR, LIMIT_COLOUR, SIMULATED_COLOUR = "#d1382c", "#0d7a4f", "#9a3a06"

_WIDTH, _LEFT, _HEIGHT, _ROW = 900.0, 80.0, 270.0, 26.0
"""Pixels: of a picture, beside and along the upright axis, and of a bar that lies."""

_TITLE_SIZE, _WORD_SIZE, _LABEL_SIZE = 16.0, 14.0, 13.0
_HALO = {"paint-order": "stroke", "stroke": "white", "stroke-width": "5"}
"""Around words that lie upon something."""


class Axis(NamedTuple):
    """An edge of a picture. ``share``: the place of a figure, from 0 to 1; ``marks``: figures and their words."""

    name: str
    share: Callable[[float], float]
    marks: Sequence[tuple[float, str]]


class Sign(NamedTuple):
    """A mark of a shape in a colour."""

    shape: int
    colour: str


class Fill(NamedTuple):
    """How an area looks: of one colour, hatched by lines at an angle in degrees, or white with an edge."""

    colour: str
    hatch: float | None = None
    is_outline: bool = False


class Part(NamedTuple):
    """A part of a bar, upon the one before. ``name``: in the legend."""

    size: float
    name: str
    fill: Fill


SIGNS = tuple(map(Sign, range(6), ("#2c6fa6", "#b5651d", "#3d3d3d", "#7a68a6", "#59a3c9", FAINT_COLOUR)))
AREAS = (Fill("#2c6fa6"), Fill("#59a3c9"), Fill("#7a68a6", 90), Fill("#a996c9", 90))
"""The colours of series beside each other; those that come after them begin with the first again."""

_UP, _RIGHT = 2, 6
"""Shapes of arrows."""

LOST, ALLOWED = Fill(LOST_COLOUR, 45), Fill("#b9c2ca", is_outline=True)
CHANGED = Fill("#8a6d1a", -45)
UNSENT, ASIDE, WORSE = Fill(FAINT_COLOUR, 0), Fill(FAINT_COLOUR, -45), Fill("#fbecea")


# -- axes --------------------------------------------------------------------------------------------------------------


def linear(name: str, end: float, start: float = 0.0, size: float = 1.0) -> Axis:
    """Return an axis from *start* to *end*, marked at round numbers of units; *size*: of a unit."""
    marks = [(value * size, label) for value, label in ticks(end / size, start / size)]
    return Axis(name, lambda value: (value - start) / (end - start), marks)


def scaled(name: str, unit: str, end: float, start: float = 0.0) -> Axis:
    """Return an axis of figures in *unit*; rates have a prefix."""
    sizes = {"pps": {"M": 1e6, "k": 1e3}, "bit/s": {"G": 1e9, "M": 1e6, "k": 1e3}}.get(unit.split(" ")[0], {})
    prefix, size = next(((prefix, size) for prefix, size in sizes.items() if end >= size), ("", 1.0))
    return linear(f"{name} [{prefix}{unit}]", end, start, size)


def valued(name: str, values: Sequence[float], is_logarithmic: bool) -> Axis:
    """Return an axis that is marked at each of *values*; a logarithmic one has a place for 0."""
    marks = [(value, f"{value:,.12g}") for value in sorted(set(values))]
    if not is_logarithmic:
        return Axis(name, lambda value: value / (1.05 * max([*values, 1e-9])), marks)
    least = min(value for value in [*values, 1.0] if value > 0)
    room = math.log(max(*values, least * 1.01) / least) + 1.2
    return Axis(name, lambda value: 0.02 if value <= 0 else 0.96 * (math.log(value / least) + 1.0) / room, marks)


def columns(name: str, names: Sequence[str]) -> Axis:
    """Return an axis with a column for each of *names*, at 0, 1, 2 …"""
    return Axis(name, lambda value: (value + 0.5) / max(1, len(names)), list(enumerate(names)))


def ticks(end: float, start: float = 0.0) -> Iterator[tuple[float, str]]:
    """Yield round numbers from *start* to *end*, about six of them, and each as text."""
    power = 10.0 ** math.floor(math.log10((end - start) / 5))
    step = next(factor * power for factor in (1, 2, 5, 10) if (end - start) / (factor * power) <= 7)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    for number in range(math.ceil(start / step), math.floor(end / step) + 1):
        yield number * step, f"{number * step:.{digits}f}"


# -- the picture -------------------------------------------------------------------------------------------------------


class Chart:
    """Title, two axes, what is drawn on them, a legend, and a mark where it is simulated.

    *is_level*: the axis *across* runs down, with a row for each of its marks, and *up* runs to the right.
    """

    def __init__(self, title: str, across: Axis, up: Axis, simulated: bool, is_level: bool = False) -> None:
        self._across, self._up, self._simulated, self._is_level = across, up, simulated, is_level
        self._picture = SvgPicture(_WIDTH, 0, title)
        self._legend: dict[str, Callable[[float, float], None]] = {}
        upright = across if is_level else up
        names = max((text_width(label, _LABEL_SIZE) for _, label in upright.marks), default=0.0)
        self._left, self._right = max(_LEFT, 24 + min(names, 0.3 * _WIDTH)), _WIDTH - (70 if is_level else 24)
        lines = textwrap.wrap(title, int((_WIDTH - 30) / text_width("x", _TITLE_SIZE))) or [""]
        self._top = 46 + 1.25 * _TITLE_SIZE * len(lines)
        self._bottom = self._top + (_ROW * len(across.marks) if is_level else _HEIGHT)
        self._middle = (self._left + self._right) / 2, (self._top + self._bottom) / 2
        for number, line in enumerate(lines):
            y = 42 + 1.25 * _TITLE_SIZE * number
            self._picture.text(16, y, line, _TITLE_SIZE, TEXT_COLOUR, font_weight="bold")
        self._axes()

    def area(self, across: Point, up: Point, fill: Fill, name: str) -> None:
        """Fill what is between two figures of each axis."""
        (x1, y1), (x2, y2) = self._at(across[0], up[0]), self._at(across[1], up[1])
        self._fill((min(x1, x2), min(y1, y2), abs(x2 - x1), abs(y2 - y1)), fill)
        if name:
            self._legend[name] = lambda x, y: self._fill((x + 4, y - 10, 16, 11), fill)

    def bar(self, place: float, parts: Sequence[Part], of: int = 1) -> None:
        """Draw parts upon each other from 0, as one bar of several in a column."""
        half, start, end = 0.46 * self._pitch(of), -math.inf, 0.0
        for part in parts:
            end += part.size
            self.area((place - half, place + half), (start, end), part.fill, part.name)
            start = end

    def label(self, place: float, end: float, text: str, of: int = 1) -> None:
        """Write *text* beyond the end of a bar, one of several in a column, if there is room up to the next bar."""
        x, y = self._at(place, end)
        room = (self._right - self._left) / len(self._across.marks) * (self._pitch(of) if of > 1 else 1)
        if self._is_level:
            self._picture.text(x + 9, y + 4.5, text, _LABEL_SIZE, TEXT_COLOUR)
        elif text_width(text, _LABEL_SIZE) <= room:
            self._picture.text(x, y - 9, text, _LABEL_SIZE, TEXT_COLOUR, "middle", **_HALO)

    def beside(self, column: float, number: int, of: int) -> float:
        """Return the place of *number* of several in a column."""
        return column + (number - (of - 1) / 2) * self._pitch(of)

    def range(self, place: float, bounds: Bounds, sign: Sign, name: str = "", middle: float | None = None) -> None:
        """Draw a line between two figures with a sign half way, or at *middle*; an arrow: the higher was not seen."""
        low, high = bounds.low, bounds.high
        end = self._at(place, high)
        if low < high:
            right, down = (0, 5) if self._is_level else (5, 0)
            self._picture.path([self._at(place, low), end], sign.colour, 1.6)
            for x, y in (self._at(place, low), end):
                self._picture.path([(x - right, y - down), (x + right, y + down)], sign.colour, 1.6)
        if math.isinf(high):
            arrow = Sign(_RIGHT if self._is_level else _UP, sign.colour)
            self._picture.mark(*((end[0] - 6, end[1]) if self._is_level else (end[0], end[1] + 6)), *arrow)
            self._name_sign(arrow, "no end seen")
        else:
            self._picture.mark(*self._at(place, (low + high) / 2 if middle is None else middle), *sign)
        self._name_sign(sign, name)

    def curve(
        self, points: Sequence[Point], name: str, sign: Sign | None = None, colour: str = "", dashes: str = ""
    ) -> None:
        """Draw a line through *points*, with marks of *sign*, or without any in *colour*."""
        shown, style = [self._at(*point) for point in points], (sign.colour if sign else colour or FAINT_COLOUR, 1.6)
        self._picture.path(shown, *style, dashes)
        if sign:
            # about six marks; those of curves that lie upon each other are not at the same points
            step = max(1, len(shown) // 6)
            for x, y in shown[sign.shape % 6 * step // 6 :: step]:
                self._picture.mark(x, y, *sign)
            self._name_sign(sign, name)
        elif name:
            self._legend[name] = lambda x, y: self._picture.path([(x, y - 4.5), (x + 24, y - 4.5)], *style, dashes)

    def caption(self, place: Point, text: str, colour: str = TEXT_COLOUR, **style: str) -> None:
        """Write *text* above a place, to the side where there is more room."""
        x, y = self._at(*place)
        left, right = x - self._left, self._right - x
        room, shift, anchor = (left, -5, "end") if left > right else (right, 5, "")
        self._picture.text(x + shift, y - 6, fitted(text, room, _LABEL_SIZE), _LABEL_SIZE, colour, anchor, **style)

    def limit(self, value: float, promise: str, is_upright: bool = False) -> None:
        """Draw the promise, a figure of the axis *up*, or where it *is_upright* of the one *across*."""
        ends = [(value, -math.inf), (value, math.inf)] if is_upright else [(-math.inf, value), (math.inf, value)]
        self._picture.path([self._at(*end) for end in ends], LIMIT_COLOUR, 2.4, "9 4")
        # above all that is drawn: at its line it would lie upon the labels of what just keeps it, or just misses it
        top = (value, math.inf) if is_upright or self._is_level else (math.inf, math.inf)
        self.caption(top, f"promised {promise}", LIMIT_COLOUR, font_weight="bold", **_HALO)

    def svg(self) -> str:
        """Return the picture with its labels and its legend."""
        if not self._legend:
            self._picture.text(*self._middle, "nothing was measured", _WORD_SIZE, TEXT_COLOUR, "middle")
        if self._simulated:
            self._picture.text(_WIDTH - 5, 17, SIMULATED, _LABEL_SIZE, SIMULATED_COLOUR, "end", font_weight="bold")
        x, y = 16.0, self._bottom + 62
        for name, sign in self._legend.items():
            width = 31 + text_width(name, _LABEL_SIZE)
            if x > 16 and x + width > _WIDTH - 10:
                x, y = 16, y + 20
            sign(x, y)
            self._picture.text(x + 31, y, name, _LABEL_SIZE, TEXT_COLOUR)
            x += width + 22
        self._picture.height = y + 14
        return self._picture.svg()

    # -- parts of it ---------------------------------------------------------------------------------------------------

    def _at(self, across: float, up: float) -> Point:
        """Return the pixels of a place."""
        shares = (self._across, across), (self._up, up)
        along, over = (min(max(end if math.isinf(end) else axis.share(end), 0.0), 1.0) for axis, end in shares)
        if self._is_level:
            return self._left + over * (self._right - self._left), self._top + along * (self._bottom - self._top)
        return self._left + along * (self._right - self._left), self._bottom - over * (self._bottom - self._top)

    def _pitch(self, of: int) -> float:
        # the bar of a single column would be as wide as the picture
        return min(0.76, 1 if self._is_level else 0.19 * of * len(self._across.marks)) / of

    def _axes(self) -> None:
        for axis, is_upright in ((self._across, self._is_level), (self._up, not self._is_level)):
            step = 1 if is_upright else math.ceil(len(axis.marks) / 20) or 1
            for figure, label in axis.marks[::step]:
                x, y = self._at(figure, -math.inf) if axis is self._across else self._at(-math.inf, figure)
                if axis is self._up:
                    self._picture.path([(x, y), self._at(math.inf, figure)], GRID_COLOUR)
                if is_upright:
                    shown = fitted(label, self._left - 24, _LABEL_SIZE)
                    self._picture.text(x - 7, y + 4.5, shown, _LABEL_SIZE, TEXT_COLOUR, "end")
                else:
                    self._picture.text(x, self._bottom + 18, label, _LABEL_SIZE, TEXT_COLOUR, "middle")
            x, y = (18.0, self._middle[1]) if is_upright else (self._middle[0], self._bottom + 38)
            turned = f"rotate(-90 {x:.2f} {y:.2f})" if is_upright else ""
            self._picture.text(x, y, axis.name, _WORD_SIZE, TEXT_COLOUR, "middle", transform=turned)
        ends = (self._left, self._top), (self._left, self._bottom), (self._right, self._bottom)
        self._picture.path(ends, FAINT_COLOUR)

    def _fill(self, area: tuple[float, float, float, float], fill: Fill) -> None:
        if fill.hatch is not None:
            self._picture.hatched(*area, fill.colour, fill.hatch)
        else:
            self._picture.rectangle(*area, *(("white", fill.colour) if fill.is_outline else (fill.colour,)))

    def _name_sign(self, sign: Sign, name: str) -> None:
        if name:
            self._legend[name] = lambda x, y: self._picture.mark(x + 12, y - 4.5, *sign)


# -- shapes and text as SVG --------------------------------------------------------------------------------------------


FONT = "'DejaVu Sans', Verdana, Geneva, sans-serif"

_SHAPES = (
    ((-0.8, -0.8), (0.8, -0.8), (0.8, 0.8), (-0.8, 0.8)),
    ((0, -1.1), (1.1, 0), (0, 1.1), (-1.1, 0)),
    ((0, -1), (1, 0.9), (-1, 0.9)),
    ((0, 1), (1, -0.9), (-1, -0.9)),
    ((-1.1, -0.35), (1.1, -0.35), (1.1, 0.35), (-1.1, 0.35)),
    ((-0.35, -1.1), (0.35, -1.1), (0.35, 1.1), (-0.35, 1.1)),
    ((-0.9, -1), (1, 0), (-0.9, 1)),
)

Point = tuple[float, float]


def text_width(text: str, size: float) -> float:
    """Return about how wide *text* is, in pixels; *size* of the font in pixels."""
    # about the mean of DejaVu Sans, which is wide
    return 0.62 * size * len(text)


def fitted(text: str, width: float, size: float) -> str:
    """Return *text*, cut where it is wider than *width* pixels."""
    letters = int(width / text_width("x", size))
    return text if len(text) <= letters else f"{text[: max(0, letters - 1)]}…"


def svg_image(name: str, svg: str) -> str:
    """Return the picture as an ``<img>`` for use inside another page, which its style cannot change."""
    data = base64.b64encode(svg.encode()).decode("ascii")
    return f'<img alt="{escape(name)}" src="data:image/svg+xml;base64,{data}" style="max-width:100%">'


class SvgPicture:
    """A picture of *width* x *height* pixels on white. *title*: what a reader without the picture gets."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self.width, self.height = width, height
        self._root = self._into = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "font-family": FONT})
        self._patterns: set[str] = set()
        _shape(self._root, "title", title)
        _shape(self._root, "rect", width="100%", height="100%", fill="white")

    def rectangle(self, x: float, y: float, width: float, height: float, fill: str, edge: str = "") -> None:
        """Draw a filled rectangle; *x*, *y*: its top left corner; *edge*: colour of a line around it."""
        _shape(self._into, "rect", x=x, y=y, width=max(width, 0.0), height=max(height, 0.0), fill=fill, stroke=edge)

    def hatched(self, x: float, y: float, width: float, height: float, colour: str, degrees: float) -> None:
        """Draw a white rectangle with a frame and slanted lines, which a printer without colours shows as well."""
        name = f"hatch{degrees:g}-{colour.lstrip('#')}"
        if name not in self._patterns:
            self._patterns.add(name)
            turned = {"patternUnits": "userSpaceOnUse", "patternTransform": f"rotate({degrees:g})"}
            pattern = _shape(self._root, "pattern", id=name, width=7, height=7, **turned)
            _shape(pattern, "rect", width=7, height=7, fill="white")
            _shape(pattern, "rect", width=2, height=7, fill=colour)
        self.rectangle(x, y, width, height, f"url(#{name})", colour)

    def mark(self, x: float, y: float, shape: int, colour: str) -> None:
        """Draw a mark about 11 pixels wide with its middle at *x*, *y*; *shape* 0 to 6: square, diamond, triangle …"""
        places = " ".join(f"{x + 5.5 * right:.2f},{y + 5.5 * down:.2f}" for right, down in _SHAPES[shape])
        _shape(self._into, "polygon", points=places, fill=colour, stroke="white")

    def path(self, points: Sequence[Point], colour: str, width: float = 1.0, dashes: str = "") -> None:
        """Draw a line through *points*; *dashes*: lengths of lines and gaps, as ``6 3``."""
        places = " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
        style = {"stroke": colour, "stroke_width": f"{width:g}", "stroke_dasharray": dashes}
        _shape(self._into, "polyline", points=places, fill="none", **style)

    def text(self, x: float, y: float, text: str, size: float, colour: str, anchor: str = "", **style: str) -> None:
        """Write *text* with its base line at *y*; *anchor* middle or end; *style*: other attributes."""
        if text:
            _shape(self._into, "text", text, x=x, y=y, font_size=size, fill=colour, text_anchor=anchor, **style)

    def tooltip(self, text: str) -> None:
        """Show *text* when something is pointed at that is drawn from now on."""
        self._into = _shape(self._root, "g")
        _shape(self._into, "title", text)

    def svg(self) -> str:
        """Return the whole file."""
        size = {"width": f"{self.width:g}", "height": f"{self.height:g}"}
        self._root.attrib.update(size, viewBox=f"0 0 {size['width']} {size['height']}")
        return tostring(self._root, encoding="unicode")


def _shape(into: Element, name: str, text: str = "", /, **style: str | float) -> Element:
    """Add an element with what is not empty of *style*: numbers in hundredths of a pixel."""
    texts = {key: value if isinstance(value, str) else f"{value:.2f}" for key, value in style.items()}
    shape = SubElement(into, name, {key.replace("_", "-"): text for key, text in texts.items() if text})
    # XML has no place for control characters
    shape.text = "".join(character if character.isprintable() else " " for character in text) or None
    return shape
