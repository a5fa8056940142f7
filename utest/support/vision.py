"""A picture as others see it: what in an SVG file differs by its colour alone, and how much of that a reader sees.

Colour blindness is simulated after Machado, Oliveira and Fernandes (2009), severity 1; a black-and-white printer by the
lightness of CIE L*a*b*.
"""

from __future__ import annotations

import itertools
import math
import re
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Iterator, Mapping

Colour = tuple[float, float, float]
Form = tuple[str, ...]

VISIONS: Mapping[str, tuple[Colour, Colour, Colour]] = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}

LEAST_LIGHTNESS = 12.0
"""Of L* (0 to 100) between two greys that a reader can tell apart, beside each other or in a legend."""

LEAST_DIFFERENCE = 15.0
"""Of CIE 1976 colour difference; 2.3 is just noticeable."""

PAPER = {"#ffffff", "white", "none"}
AREAS = {*PAPER, "#eef2f5"}
"""Fills that are no data: paper, and a phase of a ramp, which has no legend."""


def lab(colour: str, vision: str = "") -> Colour:
    """L*, a*, b* of ``#rrggbb`` as somebody with *vision* sees it."""
    linear = [_linear(int(colour[at : at + 2], 16) / 255) for at in (1, 3, 5)]
    if vision:
        linear = [sum(map(float.__mul__, row, linear)) for row in VISIONS[vision]]
    red, green, blue = (min(1.0, max(0.0, value)) for value in linear)
    x = _root((0.4124564 * red + 0.3575761 * green + 0.1804375 * blue) / 0.95047)
    y = _root(0.2126729 * red + 0.7151522 * green + 0.0721750 * blue)
    z = _root((0.0193339 * red + 0.1191920 * green + 0.9503041 * blue) / 1.08883)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def _root(value: float) -> float:
    return value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116


def confused(svg: str) -> list[str]:
    """What somebody cannot tell apart in the picture, in words: pairs of one form whose colours look alike."""
    forms = _forms(svg)
    marks: dict[str, set[Form]] = defaultdict(set)
    for form, colours in forms.items():
        if form[0] == "mark":
            for colour in colours:
                marks[colour].add(form)
    found = []
    for form, colours in forms.items():
        for one, other in itertools.combinations(sorted(colours), 2):
            # each has marks that the other has not
            if form[0] in ("line", "mark") and marks[one] - marks[other] and marks[other] - marks[one]:
                continue
            found += [f"{' '.join(form)}: {one} and {other} with {how}" for how in _alike(one, other)]
    return found


def _alike(one: str, other: str) -> Iterator[str]:
    if abs(lab(one)[0] - lab(other)[0]) < LEAST_LIGHTNESS:
        yield "a black-and-white printer"
    for vision in VISIONS:
        if math.dist(lab(one, vision), lab(other, vision)) < LEAST_DIFFERENCE:
            yield vision


def faint(svg: str) -> list[str]:
    """Colours of data that are hardly seen on white paper: with a contrast below 2 to 1."""
    return sorted({colour for colours in _forms(svg).values() for colour in colours if contrast(colour) < 2})


def contrast(colour: str) -> float:
    """With white, as WCAG 2 computes it: 1 to 21."""
    red, green, blue = (_linear(int(colour[at : at + 2], 16) / 255) for at in (1, 3, 5))
    return 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05)


def _forms(svg: str) -> dict[Form, set[str]]:
    """Form of what is drawn (mark with its shape, line with its dashes, area, hatch with its lines) -> its colours.

    Thin solid lines are axes, grids and error bars.
    """
    root = ElementTree.fromstring(svg)
    shapes = {node.get("id"): node.get("d", "") for node in root.iter() if node.get("id") and _tag(node) == "path"}
    found: dict[Form, set[str]] = defaultdict(set)
    for node in _drawn(root):
        style = _style(node)
        fill, stroke = style.get("fill", "none"), style.get("stroke", "none")
        width = float(style.get("stroke-width", "1"))
        if _tag(node) == "use":
            shape = shapes.get(_link(node), "")
            _add(found, ("mark", _rounded(shape), str(fill in PAPER)), stroke if fill in PAPER else fill)
        elif _tag(node) == "polygon":
            _add(found, ("mark", _moved(node.get("points", "")), str(fill in PAPER)), stroke if fill in PAPER else fill)
        elif fill.startswith("url("):
            name = fill[5:-1]
            kind, _, colour = name.rpartition("-")
            _add(found, ("hatch", kind or name), f"#{colour}" if kind else stroke)
        elif fill not in AREAS:
            _add(found, ("area",), fill)
        elif stroke not in PAPER and (width > 1.3 or style.get("stroke-dasharray")):
            _add(found, ("line", style.get("stroke-dasharray", "")), stroke)
    return found


def _add(found: dict[Form, set[str]], form: Form, colour: str) -> None:
    if colour not in PAPER:
        found[form].add(colour.lower())


def _drawn(node: ElementTree.Element) -> Iterator[ElementTree.Element]:
    for child in node:
        if _tag(child) in ("defs", "clipPath", "pattern", "text", "title", "metadata"):
            continue
        if _tag(child) in ("use", "polygon", "polyline", "line", "rect", "path"):
            yield child
        yield from _drawn(child)


def _style(node: ElementTree.Element) -> dict[str, str]:
    pairs = re.findall(r"([a-z-]+): ([^;]+)", node.get("style", ""))
    return {**{name: value for name, value in node.attrib.items() if isinstance(name, str)}, **dict(pairs)}


def _tag(node: ElementTree.Element) -> str:
    return node.tag.rpartition("}")[2]


def _link(node: ElementTree.Element) -> str:
    return next((value[1:] for name, value in node.attrib.items() if name.endswith("href")), "")


def _rounded(path: str) -> str:
    return re.sub(r"-?\d+\.?\d*", lambda match: f"{float(match[0]):.0f}", path).replace("-0", "0")


def _moved(points: str) -> str:
    """*points* from their middle."""
    places = [tuple(map(float, pair.split(","))) for pair in points.split()]
    x, y = (sum(side) / len(places) for side in zip(*places, strict=True))
    return " ".join(f"{place[0] - x:.0f},{place[1] - y:.0f}" for place in places).replace("-0", "0")
