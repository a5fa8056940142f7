"""A picture of stacks: each box is a function upon the one that called it, as wide as its share of the samples."""

from __future__ import annotations

import textwrap
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..evidence.chart import SIMULATED_COLOUR, TEXT_COLOUR, SvgPicture, fitted
from ..evidence.document import SIMULATED
from ..units import counted, si

WIDTH, MARGIN, ROW = 1200.0, 10.0, 18.0
"""Pixels: of the picture, beside it, of a row of boxes."""

MOST_ROWS = 60
"""The most rows of boxes; programs that recurse have more, whose samples are in the boxes below too."""

COLOURS = ("#f6d5a8", "#f0b27a", "#f7dc6f", "#e59866", "#fad7a0", "#edbb99", "#f5b041", "#f9e79f")
"""Light, so that dark names can be read on them in grey too; boxes are told apart by the gaps."""


@dataclass
class _Box:
    samples: int = 0
    callees: dict[str, _Box] = field(default_factory=dict)


def flame_graph(
    stacks: Mapping[str, int], seconds: float, cpus: int | None, pps: float, title: str, simulated: bool = False
) -> str:
    """Return the picture (SVG) of *stacks*: samples of some *seconds* of *cpus* processors, at a load in frames/s."""
    root = _tree(stacks)
    facts = [f"{seconds:g} s", f"{root.samples} samples", *([counted(cpus, "CPU")] if cpus else [])]
    boxes = list(_placed(root, (WIDTH - 2 * MARGIN) / root.samples))
    rows = 1 + max(row for row, *_ in boxes)
    titles = textwrap.wrap(title, 110) or [""]
    top = 50 + 20.0 * len(titles)
    picture = SvgPicture(WIDTH, top + ROW * rows + MARGIN, title)
    for number, line in enumerate(titles):
        picture.text(MARGIN, 38 + 20 * number, line, 16, TEXT_COLOUR, font_weight="bold")
    picture.text(MARGIN, top - 12, f"{', '.join(facts)}, load {si(pps, 'pps')}", 13, TEXT_COLOUR)
    if simulated:
        picture.text(WIDTH - MARGIN, 17, SIMULATED, 13, SIMULATED_COLOUR, "end", font_weight="bold")
    for row, left, width, name, samples in boxes:
        y = top + ROW * (rows - 1 - row)
        picture.tooltip(f"{name}: {samples} samples, {100 * samples / root.samples:.1f} %")
        colour = COLOURS[zlib.crc32(name.encode(errors="replace")) % len(COLOURS)]
        picture.rectangle(left, y, width - min(0.6, width / 2), ROW - 1, colour)
        words = fitted(name, width - 4, 13)
        if words == name or len(words) > 3:
            picture.text(left + 2, y + ROW - 5, words, 13, TEXT_COLOUR)
    return picture.svg()


def _tree(stacks: Mapping[str, int]) -> _Box:
    root = _Box()
    for stack, samples in sorted(stacks.items()):
        box = root
        box.samples += samples
        for name in stack.split(";"):
            box = box.callees.setdefault(name, _Box())
            box.samples += samples
    return root


def _placed(root: _Box, pixels: float) -> Iterator[tuple[int, float, float, str, int]]:
    """Yield row from below, left edge, width, name and samples of each box that can be seen; *pixels* per sample."""
    todo = [(0, MARGIN, "all", root)]
    while todo:
        row, left, name, box = todo.pop()
        yield row, left, box.samples * pixels, name, box.samples
        for callee, inner in sorted(box.callees.items()):
            if inner.samples * pixels >= 0.5 and row + 1 < MOST_ROWS:
                todo.append((row + 1, left, callee, inner))
            left += inner.samples * pixels
