"""The stacks of a router's processors as a flame graph."""

from __future__ import annotations

import textwrap
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..core.under_load import UnderLoad
from ..units import counted, si
from .chart import SIMULATED_COLOUR, TEXT_COLOUR
from .document import SIMULATED
from .svg import SvgPicture, fitted

WIDTH, MARGIN, ROW, GAP = 1200.0, 10.0, 17.0, 0.6
"""Pixels: of the picture, beside it, of a row of boxes, between boxes."""

TITLE_SIZE, WORD_SIZE, NAME_SIZE = 16.0, 13.0, 11.0
LEAST_WIDTH = 0.5
"""Pixels: what is narrower is not drawn; its samples are in the boxes below."""

MOST_ROWS = 60
"""The most rows of boxes; programs that recurse have more, whose samples are in the boxes below too."""

LEAST_LETTERS = 3
COLOURS = ("#f6d5a8", "#f0b27a", "#f7dc6f", "#e59866", "#fad7a0", "#edbb99", "#f5b041", "#f9e79f")
"""Light, so that dark names can be read on them in grey too; boxes are told apart by the gaps."""


@dataclass
class _Box:
    samples: int = 0
    callees: dict[str, _Box] = field(default_factory=dict)


def under_load_flame_graph(load: UnderLoad, title: str, simulated: bool = False) -> str:
    """The picture of the stacks that were sampled at *load*; "" if there are none."""
    sampled = load.sampled
    if sampled is None or not sampled.stacks:
        return ""
    seen, cpus = sum(sampled.stacks.values()), len(load.cpus) or sampled.cpus
    facts = [f"{sampled.seconds:g} s", f"{seen} samples", *([counted(cpus, "CPU")] if cpus else [])]
    return flame_graph(sampled.stacks, title, ", ".join([*facts, f"load {si(load.load_pps, 'pps')}"]), simulated)


def flame_graph(stacks: Mapping[str, int], title: str, caption: str, simulated: bool = False) -> str:
    """*stacks*: names with ``;`` between them, the outermost first -> samples, one at least."""
    root = _tree(stacks)
    boxes = list(_placed(root, (WIDTH - 2 * MARGIN) / root.samples))
    rows = 1 + max(row for row, *_ in boxes)
    titles = textwrap.wrap(title, 110) or [""]
    top = 30 + 1.25 * TITLE_SIZE * len(titles) + 1.5 * WORD_SIZE
    picture = SvgPicture(WIDTH, top + ROW * rows + MARGIN, title)
    picture.titles(MARGIN, 38, titles, TITLE_SIZE, TEXT_COLOUR)
    picture.text(MARGIN, top - 12, caption, WORD_SIZE, TEXT_COLOUR)
    if simulated:
        picture.text(WIDTH - MARGIN, 17, SIMULATED, WORD_SIZE, SIMULATED_COLOUR, anchor="end", bold=True)
    for row, left, width, name, samples in boxes:
        colour = COLOURS[zlib.crc32(name.encode()) % len(COLOURS)]
        y = top + ROW * (rows - 1 - row)
        share = 100 * samples / root.samples
        with picture.tooltip(f"{name}: {samples} samples, {share:.1f} %"):
            picture.rectangle(left, y, width - min(GAP, width / 2), ROW - 1, colour)
            words = fitted(name, width - 4, NAME_SIZE)
            if words == name or len(words) > LEAST_LETTERS:
                picture.text(left + 2, y + ROW - 5, words, NAME_SIZE, TEXT_COLOUR)
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
    """Row from below, left edge, width, name and samples of each box that can be seen; *pixels* per sample."""
    todo = [(0, MARGIN, "all", root)]
    while todo:
        row, left, name, box = todo.pop()
        yield row, left, box.samples * pixels, name, box.samples
        for callee, inner in sorted(box.callees.items()):
            if inner.samples * pixels >= LEAST_WIDTH and row + 1 < MOST_ROWS:
                todo.append((row + 1, left, callee, inner))
            left += inner.samples * pixels
