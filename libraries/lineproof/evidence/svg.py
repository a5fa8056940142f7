"""Shapes and text as SVG, in pixels from the top left corner. The same calls give the same text.

Pictures are drawn while a testbed waits: this takes no time to import, and next to none to draw.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator, Sequence
from enum import Enum
from html import escape

FONT = "'DejaVu Sans', Verdana, Geneva, sans-serif"

CHARACTER_WIDTH = 0.62
"""Width of a character in sizes of its font: about the mean of DejaVu Sans, which is wide."""

_SHAPES = (
    ((-0.8, -0.8), (0.8, -0.8), (0.8, 0.8), (-0.8, 0.8)),
    ((0, -1.1), (1.1, 0), (0, 1.1), (-1.1, 0)),
    ((0, -1), (1, 0.9), (-1, 0.9)),
    ((0, 1), (1, -0.9), (-1, -0.9)),
    ((-1.1, -0.35), (1.1, -0.35), (1.1, 0.35), (-1.1, 0.35)),
    ((-0.35, -1.1), (0.35, -1.1), (0.35, 1.1), (-0.35, 1.1)),
)


class Hatch(Enum):
    """How the lines of a hatched area run; the value: degrees clockwise. ``CROSSED``: two sets of lines."""

    FORWARD = 45.0
    BACK = -45.0
    LEVEL = 90.0
    CROSSED = 44.0


def text_width(words: str, size: float) -> float:
    """About how wide *words* are, in pixels; *size* of the font in pixels."""
    return CHARACTER_WIDTH * size * len(words)


def fitted(words: str, width: float, size: float) -> str:
    """Return *words*, cut where they are wider than *width* pixels."""
    letters = int(width / text_width("x", size))
    return words if len(words) <= letters else f"{words[: max(0, letters - 1)]}…"


def svg_image(name: str, svg: str) -> str:
    """Return the picture as an ``<img>`` for use inside another page, which its style cannot change."""
    data = base64.b64encode(svg.encode()).decode("ascii")
    return f'<img alt="{escape(name)}" src="data:image/svg+xml;base64,{data}" style="max-width:100%">'


class SvgPicture:
    """A picture of *width* x *height* pixels on white. *title*: what a reader without the picture gets."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self.width, self.height = width, height
        self._title = title
        self._shapes: list[str] = []

    def rectangle(self, x: float, y: float, width: float, height: float, fill: str, edge: str = "") -> None:
        """A filled rectangle; *x*, *y*: its top left corner; *edge*: colour of a line around it."""
        style = f" stroke={_quoted(edge)}" if edge else ""
        self._shapes.append(f"<rect {_place(x, y, width, height)} fill={_quoted(fill)}{style}/>")

    def hatched(
        self, x: float, y: float, width: float, height: float, colour: str, hatch: Hatch = Hatch.FORWARD
    ) -> None:
        """A white rectangle with a frame and lines of *colour*, which a printer without colours shows as well."""
        name = f"{hatch.name.lower()}-{colour.lstrip('#')}"
        across = f'<line x1="0" y1="0" x2="7" y2="0" stroke={_quoted(colour)} stroke-width="2"/>'
        pattern = (
            f'<pattern id={_quoted(name)} width="7" height="7" patternUnits="userSpaceOnUse"'
            f' patternTransform="rotate({hatch.value:g})"><rect width="7" height="7" fill="white"/>'
            f'<line x1="0" y1="0" x2="0" y2="7" stroke={_quoted(colour)} stroke-width="1.4"/>'
            f"{across if hatch is Hatch.CROSSED else ''}</pattern>"
        )
        if pattern not in self._shapes:
            self._shapes.append(pattern)
        self._shapes.append(
            f'<rect {_place(x, y, width, height)} fill="url(#{name})" stroke={_quoted(colour)} stroke-width="1"/>'
        )

    def mark(self, x: float, y: float, shape: int, colour: str) -> None:
        """A mark about 11 pixels wide with its middle at *x*, *y*; *shape* 0 to 5: a square, diamond, triangle …"""
        places = " ".join(f"{x + 5.5 * right:.2f},{y + 5.5 * down:.2f}" for right, down in _SHAPES[shape])
        style = f'fill={_quoted(colour)} stroke="white" stroke-width="0.8"'
        self._shapes.append(f'<polygon points="{places}" {style}/>')

    def line(
        self, start: tuple[float, float], end: tuple[float, float], colour: str, width: float = 1.0, dashes: str = ""
    ) -> None:
        """A straight line; *dashes*: lengths of lines and gaps, as ``6 3``."""
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        (x1, y1), (x2, y2) = start, end
        self._shapes.append(
            f'<line x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}" stroke={_quoted(colour)}'
            f' stroke-width="{width:g}"{dashed}/>'
        )

    def path(self, points: Sequence[tuple[float, float]], colour: str, width: float = 1.0, dashes: str = "") -> None:
        """A line through *points*; *dashes* as of :meth:`line`."""
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        places = " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
        self._shapes.append(
            f'<polyline points="{places}" fill="none" stroke={_quoted(colour)} stroke-width="{width:g}"{dashed}/>'
        )

    def text(
        self,
        x: float,
        y: float,
        words: str,
        size: float,
        colour: str,
        *,
        anchor: str = "start",
        bold: bool = False,
        turned: float = 0.0,
        opacity: float = 1.0,
    ) -> None:
        """*words* with their base line at *y*; *anchor* start, middle or end; *turned*: degrees clockwise."""
        if not words:
            return
        style = f' text-anchor="{anchor}"' if anchor != "start" else ""
        style += ' font-weight="bold"' if bold else ""
        style += f' transform="rotate({turned:g} {x:.2f} {y:.2f})"' if turned else ""
        style += f' opacity="{opacity:g}"' if opacity != 1 else ""
        self._shapes.append(
            f'<text x="{x:.2f}" y="{y:.2f}" font-size="{size:g}" fill={_quoted(colour)}{style}>{_plain(words)}</text>'
        )

    def titles(self, x: float, y: float, lines: Sequence[str], size: float, colour: str) -> None:
        """Several lines of bold text; *y*: base line of the first."""
        for number, words in enumerate(lines):
            self.text(x, y + 1.25 * size * number, words, size, colour, bold=True)

    @contextlib.contextmanager
    def tooltip(self, words: str) -> Iterator[None]:
        """Yield what is drawn inside shows *words* when it is pointed at."""
        self._shapes.append(f"<g><title>{_plain(words)}</title>")
        yield
        self._shapes.append("</g>")

    def svg(self) -> str:
        """The whole file."""
        return "\n".join(
            [
                '<?xml version="1.0" encoding="utf-8"?>',
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width:g}" height="{self.height:g}"'
                f' viewBox="0 0 {self.width:g} {self.height:g}" font-family="{FONT}">',
                f"<title>{_plain(self._title)}</title>",
                '<rect width="100%" height="100%" fill="white"/>',
                *self._shapes,
                "</svg>\n",
            ]
        )


def _place(x: float, y: float, width: float, height: float) -> str:
    return f'x="{x:.2f}" y="{y:.2f}" width="{max(width, 0):.2f}" height="{max(height, 0):.2f}"'


def _quoted(value: str) -> str:
    return f'"{escape(value)}"'


def _plain(words: str) -> str:
    """*words* for an XML file, which has no place for control characters."""
    return escape("".join(character if character.isprintable() else " " for character in words), quote=False)
