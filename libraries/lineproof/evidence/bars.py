"""Bars of characters for ranges that share a scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 40
"""Columns of a bar."""


@dataclass(frozen=True)
class Range:
    """``high`` None: open. ``middle`` None: none is known."""

    low: float
    middle: float | None
    high: float | None


def range_bars(ranges: Sequence[Range], width: int = WIDTH) -> list[str]:
    """A bar for each of *ranges*: ``...[---o--]....``; ``o`` is its middle, ``>`` an open end.

    They share a scale from the least figure to the largest, which is no scale from 0. A range without any extent is
    its ``o`` alone.
    """
    ends = [end for item in ranges for end in (item.low, item.middle, item.high) if end is not None]
    least, most = min(ends), max(ends)
    # an open end needs a column of its own
    last = width - 1 - any(item.high is None for item in ranges)

    def column(value: float) -> int:
        return round(last * (value - least) / (most - least)) if most > least else 0

    bars = []
    for item in ranges:
        line = ["."] * width
        start, end = column(item.low), width - 1 if item.high is None else column(item.high)
        line[start : end + 1] = "-" * (end + 1 - start)
        line[start], line[end] = "[", ">" if item.high is None else "]"
        if item.middle is not None:
            line[column(item.middle)] = "o"
        elif start == end:
            line[start] = "o"
        bars.append("".join(line))
    return bars
