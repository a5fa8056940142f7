"""Where a router's processors spend their time: the stacks of all of them, sampled by ``perf`` or ``pmcstat``.

All goes through pipes, so that no file is on the router whatever ends, and the sampling ends itself. No module is
loaded and no setting changed for it: what is not there is not read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping

from ..core.under_load import SampledStacks
from ..errors import TestbedError
from ..visible import shortened
from .shell_commands import ShellCommands
from .shell_output import first_line, plain_text

HERTZ = 99
"""Samples per second and processor: not in step with timers of 100 or 1000 Hz."""

EVENT = "unhalted-cycles"
"""pmc(3): an alias that each processor has."""

MOST_BYTES = 8_000_000
"""Bytes of the stacks' text; what is longer is cut."""

DEEPEST, LONGEST_NAME = 127, 120
"""Frames of a stack, as perf's own limit; characters of a frame's name."""

UNKNOWN = "[unknown]"
_FRAME = re.compile(r"\s{1,32}[0-9a-f]{1,16} (.+)")
_SAMPLE = re.compile(r"\s{0,16}(\S.{0,15}?) {1,16}\[(\d{1,5})\] {0,16}(?:[0-9a-f]{1,16} (.+))?")
_NODE = re.compile(r"( {0,127})\d{1,3}\.\d{1,2}% {1,2}\[(\d{1,12})\] +(\S[^@]*)(?: @ .*)?")


def perf_stacks(commands: ShellCommands, seconds: float) -> SampledStacks:
    """*seconds* of a Linux router, by ``perf``. Never raises TestbedError."""
    record = ("perf", "record", "-o", "-", "-a", "-g", "-F", str(HERTZ), "--", "sleep", f"{seconds:g}")
    script = ("perf", "script", "-i", "-", "-F", "comm,cpu,ip,sym")
    return _sampled(commands, seconds, ("perf", "--version"), (record, script), fold_perf)


def pmcstat_stacks(commands: ShellCommands, seconds: float) -> SampledStacks:
    """*seconds* of a FreeBSD router, by ``pmcstat`` if the module hwpmc is there. Never raises TestbedError."""
    record = ("pmcstat", "-S", EVENT, "-O", "-", "sleep", f"{seconds:g}")
    graph = ("pmcstat", "-R", "-", "-z", str(DEEPEST), "-G", "-")
    return _sampled(commands, seconds, ("kldstat", "-q", "-m", "hwpmc"), (record, graph), fold_callgraph)


def _sampled(
    commands: ShellCommands,
    seconds: float,
    check: tuple[str, ...],
    pipe: tuple[tuple[str, ...], ...],
    fold: Callable[[str], tuple[Mapping[str, int], int | None]],
) -> SampledStacks:
    try:
        ((_, status),) = commands.try_all(check).values()
        if status:
            return SampledStacks(seconds, why=f"'{' '.join(check)}' has status {status}: it is not there")
        result = commands.pipe(*pipe, ("head", "-c", str(MOST_BYTES)), seconds=seconds)
    except TestbedError as error:
        return SampledStacks(seconds, why=first_line(str(error)))
    text = plain_text(result.stdout)
    if len(result.stdout.encode()) >= MOST_BYTES:  # the last sample is not whole
        text = text[: text.rfind("\n\n") + 1]
    stacks, cpus = fold(text)
    if not stacks:
        said = shortened(" ".join(result.stderr.split())) or "no output"
        return SampledStacks(seconds, why=f"'{' '.join(pipe[0][:2])}' gave no sample: {said}")
    return SampledStacks(seconds, stacks, cpus)


def fold_perf(text: str) -> tuple[Mapping[str, int], int]:
    """``perf script -F comm,cpu,ip,sym``: samples by stack, below the name of the thread; processors that had any.

    Unknown frames one after the other are one: a program without frame pointers has hundreds, of no meaning.
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
    """``pmcstat -G``: samples by stack. It prints trees from the function that ran to its callers.

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
    """*frames*, the outermost first, with ``;`` between them."""
    return ";".join(frame.strip().replace(";", ":")[:LONGEST_NAME] for frame in frames)
