"""Shapes and text as SVG, in pixels from the top left corner. The same calls give the same text.

Pictures are drawn while a testbed waits: this takes no time to import, and next to none to draw.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from xml.etree.ElementTree import Element, SubElement, tostring

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


def text_width(words: str, size: float) -> float:
    """About how wide *words* are, in pixels; *size* of the font in pixels."""
    # about the mean of DejaVu Sans, which is wide
    return 0.62 * size * len(words)


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

    def text(self, x: float, y: float, words: str, size: float, colour: str, anchor: str = "", **style: str) -> None:
        """Write *words* with their base line at *y*; *anchor* middle or end; *style*: other attributes."""
        if words:
            _shape(self._into, "text", words, x=x, y=y, font_size=size, fill=colour, text_anchor=anchor, **style)

    def tooltip(self, words: str) -> None:
        """Show *words* when something is pointed at that is drawn from now on."""
        self._into = _shape(self._root, "g")
        _shape(self._into, "title", words)

    def svg(self) -> str:
        """Return the whole file."""
        size = {"width": f"{self.width:g}", "height": f"{self.height:g}"}
        self._root.attrib.update(size, viewBox=f"0 0 {size['width']} {size['height']}")
        return tostring(self._root, encoding="unicode")


def _shape(into: Element, name: str, words: str = "", /, **style: str | float) -> Element:
    """Add an element with what is not empty of *style*: numbers in hundredths of a pixel."""
    texts = {key: value if isinstance(value, str) else f"{value:.2f}" for key, value in style.items()}
    shape = SubElement(into, name, {key.replace("_", "-"): text for key, text in texts.items() if text})
    # XML has no place for control characters
    shape.text = "".join(character if character.isprintable() else " " for character in words) or None
    return shape
