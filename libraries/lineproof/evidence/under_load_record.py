"""The router's reports under load as table and flame graph."""

from __future__ import annotations

import textwrap
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape

from ..core.under_load import UnderLoad
from ..units import si
from .drawing import SIMULATED_COLOUR, TEXT_COLOUR
from .svg import SvgPicture, text_width
from .tables import SIMULATED, html_fragment, html_table

_MOST_NODES, _MOST_THREADS = 6, 4
_STYLE = ".lr-trials td.fact, .lr-trials th.fact { text-align: left; white-space: normal; }"


def under_load_fragment(found: UnderLoad, title: str, simulated: bool = False) -> str:
    """The readings as an HTML table for Robot's log; all text is escaped."""
    seconds = "" if found.seconds is None else f", read over {found.seconds:.2f} s"
    rates = f"offered {si(found.offered_pps, 'pps')}, forwarded {si(found.forwarded_pps, 'pps')}{seconds}"
    parts = [
        _table(
            ("worker", "busy", "frames/s", "vectors/call", "cycles/packet", "nodes by share of the core"),
            [
                (
                    worker.thread,
                    _percent(worker.busy),
                    _rate(worker.packets_per_s),
                    _number(worker.vectors_per_call),
                    _number(worker.cycles_per_packet),
                    ", ".join(
                        f"{node.name} {_percent(node.share)} ({_number(node.clocks)} clocks)"
                        for node in worker.nodes[:_MOST_NODES]
                    ),
                )
                for worker in found.workers
            ],
        ),
        _table(
            ("processor", "busy", "in interrupts", "steal", "frames/s", "threads"),
            [
                (
                    f"CPU {cpu.cpu}",
                    _percent(cpu.busy),
                    _percent(cpu.on_packets),
                    _percent(cpu.steal),
                    _rate(cpu.packets_per_s),
                    ", ".join(f"{name} {_percent(share)}" for name, share in list(cpu.threads.items())[:_MOST_THREADS]),
                )
                for cpu in found.cpus
            ],
        ),
        _table(
            ("receive queue", "served by", "frames/s", "drops/s"),
            [
                (
                    f"{queue.interface} {queue.queue}",
                    queue.worker_or_cpu or "not read",
                    _rate(queue.packets_per_s),
                    _rate(queue.drops_per_s),
                )
                for queue in found.queues
            ],
        ),
        _table(("condition", "reading"), list(found.condition.items())),
        _table(("counter that rose", "per second"), [(name, _rate(rate)) for name, rate in found.counters.items()]),
        _table(("not read", "why"), list(found.unread.items())),
    ]
    return html_fragment(title, f"<p>{escape(rates)}</p>{''.join(parts)}", simulated, _STYLE)


def _table(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    head = "".join(f'<th class="fact">{escape(title)}</th>' for title in titles)
    cells = ("".join(f'<td class="fact">{escape(cell)}</td>' for cell in row) for row in rows)
    return html_table(head, "\n".join(f"<tr>{row}</tr>" for row in cells))


def _percent(share: float | None) -> str:
    return "not read" if share is None else f"{100 * share:.1f} %"


def _rate(rate: float | None) -> str:
    return "not read" if rate is None else f"{rate:,.0f}"


def _number(value: float | None) -> str:
    return "not read" if value is None else f"{value:.4g}"


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


def under_load_flame_graph(found: UnderLoad, title: str, simulated: bool = False) -> str:
    """The picture of *found*'s stacks; "" if it has no stacks."""
    sampled = found.sampled
    if sampled is None or not sampled.stacks:
        return ""
    facts = [f"{sampled.seconds:g} s", f"{sum(sampled.stacks.values())} samples"]
    if cpus := len(found.cpus) or sampled.cpus:
        facts.append(f"{cpus} CPU{'s' * (cpus > 1)}")
    facts.append(f"load {si(found.load_pps, 'pps')}")
    return flame_graph(sampled.stacks, title, ", ".join(facts), simulated)


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
            if words := _fitting(name, width - 4):
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


def _fitting(name: str, width: float) -> str:
    """*name*, cut to *width* pixels; "" where too few letters fit."""
    letters = int(width / text_width("x", NAME_SIZE))
    if len(name) <= letters:
        return name
    return f"{name[: letters - 1]}…" if letters > LEAST_LETTERS else ""
