"""Two samples on one scale in characters, as the picture of ministat(1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from .summary import Summary, check_sample

WIDTH = 74
"""Columns within the frame; ministat's own where it prints to no terminal."""


def dot_plot(reference: Sequence[float], candidate: Sequence[float]) -> str:
    """The samples as ``ministat -s`` draws them: ``x`` is of the *reference*, ``+`` of the *candidate*, ``*`` of both.

    Figures of one column are stacked. Below stands a bar for each sample: its mean (``A``) ± one standard deviation and
    its median (``M``; ``A`` covers it). One difference is intended: where the reference's stack is the higher one, some
    ministats leave out what is above the candidate's. Raises ValueError for a sample that is empty or not finite.
    """
    samples = (check_sample(reference, what="reference"), check_sample(candidate, what="candidate"))
    sums = [Summary.of(sample) for sample in samples]
    ends = [end for found in sums for end in (found.minimum, found.maximum, *_spread(found))]
    least = min(ends)
    step = (max(ends) - least) / (WIDTH - 1)
    if step <= 0:
        return "[no plot, span is zero width]"

    def column(value: float) -> int:
        return int((value - least) / step + 0.5)

    stacks = [Counter(column(value) for value in sample) for sample in samples]
    lines = []
    for level in range(max(max(stack.values()) for stack in stacks), 0, -1):
        marks = ((stacks[0][place] >= level, stacks[1][place] >= level) for place in range(WIDTH))
        lines.append("".join(_SYMBOLS[mark] for mark in marks))
    lines += [_bar(found, column, WIDTH) for found in sums]
    frame = f"+{'-' * WIDTH}+"
    return "\n".join([frame, *(f"|{line}|" for line in lines), frame])


_SYMBOLS = {(False, False): " ", (True, False): "x", (False, True): "+", (True, True): "*"}


def _spread(found: Summary) -> tuple[float, float]:
    deviation = found.stddev or 0.0
    return found.mean - deviation, found.mean + deviation


def _bar(found: Summary, column: Callable[[float], int], width: int) -> str:
    line = [" "] * width
    low, high = (column(end) for end in _spread(found))
    line[low : high + 1] = "_" * (high + 1 - low)
    line[low] = line[high] = "|"
    line[column(found.median)] = "M"
    line[column(found.mean)] = "A"
    return "".join(line)
