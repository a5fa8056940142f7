"""Shapes and text as SVG, in pixels from the top left corner. The same calls give the same text.

For pictures that are drawn while a testbed waits: matplotlib takes a second to import and a fifth of one to draw.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from html import escape

FONT = "'DejaVu Sans', Verdana, Geneva, sans-serif"

CHARACTER_WIDTH = 0.62
"""Width of a character in sizes of its font: about the mean of DejaVu Sans, which is wide."""

_HATCH = "hatch"


def text_width(words: str, size: float) -> float:
    """About how wide *words* are, in pixels; *size* of the font in pixels."""
    return CHARACTER_WIDTH * size * len(words)


class SvgPicture:
    """A picture of *width* x *height* pixels on white. *title*: what a reader without the picture gets."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self.width, self.height = width, height
        self._title = title
        self._shapes: list[str] = []

    def rectangle(self, x: float, y: float, width: float, height: float, fill: str, opacity: float = 1.0) -> None:
        """A filled rectangle; *x*, *y*: its top left corner."""
        faint = "" if opacity == 1 else f' opacity="{opacity:g}"'
        self._shapes.append(f"<rect {_place(x, y, width, height)} fill={_quoted(fill)}{faint}/>")

    def hatched(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """A white rectangle with a frame and diagonal lines of *colour*; a picture has one colour of them."""
        pattern = (
            f'<pattern id="{_HATCH}" width="7" height="7" patternUnits="userSpaceOnUse"'
            f' patternTransform="rotate(45)"><rect width="7" height="7" fill="white"/>'
            f'<line x1="0" y1="0" x2="0" y2="7" stroke={_quoted(colour)} stroke-width="1.4"/></pattern>'
        )
        if pattern not in self._shapes:
            self._shapes.append(pattern)
        self._shapes.append(
            f'<rect {_place(x, y, width, height)} fill="url(#{_HATCH})" stroke={_quoted(colour)} stroke-width="1"/>'
        )

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
        style = f' text-anchor="{anchor}"' if anchor != "start" else ""
        style += ' font-weight="bold"' if bold else ""
        style += f' transform="rotate({turned:g} {x:.2f} {y:.2f})"' if turned else ""
        style += f' opacity="{opacity:g}"' if opacity != 1 else ""
        self._shapes.append(
            f'<text x="{x:.2f}" y="{y:.2f}" font-size="{size:g}" fill={_quoted(colour)}{style}>{_plain(words)}</text>'
        )

    def texts(self, x: float, y: float, lines: Sequence[str], size: float, colour: str, *, bold: bool = False) -> None:
        """Several lines of text; *y*: base line of the first."""
        for number, words in enumerate(lines):
            self.text(x, y + 1.25 * size * number, words, size, colour, bold=bold)

    @contextlib.contextmanager
    def tooltip(self, words: str) -> Iterator[None]:
        """What is drawn inside shows *words* when it is pointed at."""
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
