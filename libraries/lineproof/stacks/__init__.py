"""Where a router's processors spend their time: the stacks of all of them, sampled by ``perf`` or ``pmcstat``.

An extension that reads more of a router under load (:class:`~lineproof.session.explaining.Sampler`). All goes through
pipes, so that no file is on the router whatever ends, and the sampling ends itself. No module is loaded and no setting
changed for it: what is not there is not read.
"""

from __future__ import annotations

import re
import textwrap
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from ..core.trial import Load
from ..core.under_load import UnderLoad
from ..documents.chart import SIMULATED_COLOUR, TEXT_COLOUR, SvgPicture, fitted
from ..documents.document import SIMULATED
from ..errors import TestbedError
from ..session.explaining import SampledLoad, Sampler, read_meanwhile, timed
from ..session.session import Session
from ..system.command_line import ShellCommands
from ..system.ssh_shell import first_line, plain_text
from ..units import counted, si
from ..visible import shortened

SECONDS, TRIED_SECONDS = 2.0, 0.5
"""Real seconds that stacks are sampled, and before without traffic, which shows if that works and how long it takes."""

MOST_BYTES = 8_000_000
"""Bytes of the stacks' text; what is longer is cut."""

DEEPEST, LONGEST_NAME = 127, 120
"""Frames of a stack, as perf's own limit; characters of a frame's name."""

UNKNOWN = "[unknown]"
_FRAME = re.compile(r"\s{1,32}[0-9a-f]{1,16} (.+)")
_SAMPLE = re.compile(r"\s{0,16}(\S.{0,15}?) {1,16}\[(\d{1,5})\] {0,16}(?:[0-9a-f]{1,16} (.+))?")
_NODE = re.compile(r"( {0,127})\d{1,3}\.\d{1,2}% {1,2}\[(\d{1,12})\] +(\S[^@]*)(?: @ .*)?")


@dataclass(frozen=True, slots=True)
class SampledStacks:
    """Stacks of the router's processors: names with ``;`` between them, the outermost first -> samples.

    ``cpus``: processors that had samples, None if not read. ``why``: the reason if there are no stacks.
    """

    stacks: Mapping[str, int] = field(default_factory=dict)
    cpus: int | None = None
    why: str = ""


class FlameGraph(Sampler):
    """The stacks while a load is sent once more, as a picture: the other readings are not disturbed."""

    name = "flame graph"

    def sample(self, session: Session, load: Load, reading: UnderLoad, title: str) -> SampledLoad:
        """Send *load*, if stacks can be sampled. Never raises TestbedError."""
        sampled = self._sampled(session, load)
        if sampled.why:
            return SampledLoad(why=sampled.why)
        cpus = len(reading.cpus) or sampled.cpus
        folded = "".join(f"{stack} {samples}\n" for stack, samples in sorted(sampled.stacks.items()))
        picture = flame_graph(sampled.stacks, SECONDS, cpus, reading.load_pps, title, session.simulated)
        return SampledLoad({"folded stacks": folded}, picture)

    def _sampled(self, session: Session, load: Load) -> SampledStacks:
        if (file := session.plan.command_file) and not file.like:
            return SampledStacks(why="it is not known how to sample stacks there")
        facts = session.testbed.facts
        commands = ShellCommands(session.router.shell, sudo=facts.router.sudo)
        tried, spare = timed(session, lambda: sampled_stacks(commands, TRIED_SECONDS))
        if tried.why:
            return tried
        seconds = SECONDS * facts.clock_speed + spare
        try:
            sampled, _, late = read_meanwhile(session, load, seconds, lambda wait: sampled_stacks(commands, SECONDS))
        except TestbedError as error:
            return SampledStacks(why=str(error))
        return SampledStacks(why=late) if sampled is None or (late and not sampled.why) else sampled


STACKS = FlameGraph()


def sampled_stacks(commands: ShellCommands, seconds: float) -> SampledStacks:
    """Return the stacks of *seconds* of a router, by the first tool that is there. Never raises TestbedError."""
    # 99 samples per second and processor: not in step with timers of 100 or 1000 Hz
    record = ("perf", "record", "-o", "-", "-a", "-g", "-F", "99", "--", "sleep", f"{seconds:g}")
    script = ("perf", "script", "-i", "-", "-F", "comm,cpu,ip,sym")
    # an alias that each processor has: pmc(3)
    record_by_pmcstat = ("pmcstat", "-S", "unhalted-cycles", "-O", "-", "sleep", f"{seconds:g}")
    graph = ("pmcstat", "-R", "-", "-z", str(DEEPEST), "-G", "-")
    tools: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], Fold]] = {
        "perf --version": (record, script, fold_perf),
        "kldstat -q -m hwpmc": (record_by_pmcstat, graph, fold_callgraph),
    }
    try:
        status = [commands.answer(tool).status for tool in tools]
        if 0 not in status:
            return SampledStacks(why="neither 'perf --version' nor 'kldstat -q -m hwpmc' succeeds there")
        first, second, fold = list(tools.values())[status.index(0)]
        result = commands.pipe(first, second, ("head", "-c", str(MOST_BYTES)), seconds=seconds)
    except TestbedError as error:
        return SampledStacks(why=first_line(str(error)))
    text = plain_text(result.stdout)
    if len(result.stdout.encode()) >= MOST_BYTES:  # the last sample is not whole
        text = text[: text.rfind("\n\n") + 1]
    stacks, cpus = fold(text)
    if not stacks:
        said = shortened(" ".join(result.stderr.split())) or "no output"
        return SampledStacks(why=f"'{' '.join(first[:2])}' gave no sample: {said}")
    return SampledStacks(stacks, cpus)


Fold = Callable[[str], tuple[Mapping[str, int], int | None]]
"""Output of a tool -> samples by stack, and the processors that had any, where it shows them."""


def fold_perf(text: str) -> tuple[Mapping[str, int], int]:
    """Return the samples by stack of ``perf script -F comm,cpu,ip,sym``, and how many processors had any.

    A stack begins with the name of its thread. Unknown frames one after the other are one: a program without frame
    pointers has hundreds, of no meaning.
    """
    samples: list[list[str]] = []
    cpus = set()
    for line in text.splitlines():
        if sample := _SAMPLE.fullmatch(line):
            cpus.add(int(sample[2]))
            samples.append([sample[1], *filter(None, [sample[3]])])
        elif (frame := _FRAME.fullmatch(line)) and samples and len(samples[-1]) <= DEEPEST:
            samples[-1] += [] if frame[1] == samples[-1][-1] == UNKNOWN else [frame[1]]
    return Counter(_folded([thread, *reversed(frames)]) for thread, *frames in samples), len(cpus)


def fold_callgraph(text: str) -> tuple[Mapping[str, int], None]:
    """Return the samples by stack of ``pmcstat -G``, which prints trees from the function that ran to its callers.

    The samples of a node that none of its callers has are of stacks that begin there.
    """
    stacks: Counter[str] = Counter()
    path: list[str] = []
    left: list[int] = []

    def close(depth: int) -> None:
        while len(path) > depth:
            if left[-1] > 0:
                stacks[_folded(path[::-1])] += left[-1]
            path.pop()
            left.pop()

    for line in text.splitlines():
        node = _NODE.fullmatch(line)
        if node and len(node[1]) <= len(path):
            close(len(node[1]))
            if left:
                left[-1] -= int(node[2])
            path.append(node[3])
            left.append(int(node[2]))
    close(0)
    return stacks, None


def _folded(frames: list[str]) -> str:
    """Return *frames*, the outermost first, with ``;`` between them."""
    return ";".join(frame.strip().replace(";", ":")[:LONGEST_NAME] for frame in frames)


# -- the picture: each box is a function upon the one that called it, as wide as its share of the samples

WIDTH, MARGIN, ROW = 1200.0, 10.0, 18.0
"""Pixels: of the picture, beside it, of a row of boxes."""

MOST_ROWS = 60
"""The most rows of boxes; programs that recurse have more, whose samples are in the boxes below too."""

COLOURS = ("#f6d5a8", "#f0b27a", "#f7dc6f", "#e59866", "#fad7a0", "#edbb99", "#f5b041", "#f9e79f")
"""Light, so that dark names can be read on them in grey too; boxes are told apart by the gaps."""


Box = tuple[int, float, float, str, int]
"""Row from below, left edge and width in pixels, name, samples."""


def flame_graph(
    stacks: Mapping[str, int], seconds: float, cpus: int | None, pps: float, title: str, simulated: bool = False
) -> str:
    """Return the picture (SVG) of *stacks*: samples of some *seconds* of *cpus* processors, at a load in frames/s."""
    total = sum(stacks.values())
    facts = [f"{seconds:g} s", f"{total} samples", *([counted(cpus, "CPU")] if cpus else [])]
    by_frames = sorted((tuple(stack.split(";")), samples) for stack, samples in stacks.items())
    boxes = list(_boxes(by_frames, (WIDTH - 2 * MARGIN) / total))
    height = 1 + max(row for row, *_ in boxes)
    titles = textwrap.wrap(title, 110) or [""]
    top = 50 + 20.0 * len(titles)
    picture = SvgPicture(WIDTH, top + ROW * height + MARGIN, title)
    for number, line in enumerate(titles):
        picture.text(MARGIN, 38 + 20 * number, line, 16, TEXT_COLOUR, font_weight="bold")
    picture.text(MARGIN, top - 12, f"{', '.join(facts)}, load {si(pps, 'pps')}", 13, TEXT_COLOUR)
    if simulated:
        picture.text(WIDTH - MARGIN, 17, SIMULATED, 13, SIMULATED_COLOUR, "end", font_weight="bold")
    for row, left, width, name, samples in boxes:
        y = top + ROW * (height - 1 - row)
        picture.tooltip(f"{name}: {samples} samples, {100 * samples / total:.1f} %")
        colour = COLOURS[zlib.crc32(name.encode(errors="replace")) % len(COLOURS)]
        picture.rectangle(left, y, width - min(0.6, width / 2), ROW - 1, colour)
        label = fitted(name, width - 4, 13)
        if label == name or len(label) > 3:
            picture.text(left + 2, y + ROW - 5, label, 13, TEXT_COLOUR)
    return picture.svg()


Stack = tuple[tuple[str, ...], int]
"""Frames, the outermost first, and their samples."""


def _boxes(
    stacks: Sequence[Stack], pixels: float, row: int = 0, left: float = MARGIN, name: str = "all"
) -> Iterator[Box]:
    """Yield the box of sorted *stacks* and those upon it that can be seen; *pixels* per sample."""
    samples = sum(number for _, number in stacks)
    yield row, left, samples * pixels, name, samples
    for callee, group in groupby((stack for stack in stacks if stack[0]), lambda stack: stack[0][0]):
        inner = [(frames[1:], number) for frames, number in group]
        width = pixels * sum(number for _, number in inner)
        if width >= 0.5 and row + 1 < MOST_ROWS:
            yield from _boxes(inner, pixels, row + 1, left, callee)
        left += width
