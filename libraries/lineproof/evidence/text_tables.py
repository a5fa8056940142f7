"""Tables in Markdown and CSV, where text from elsewhere is inert, and bars of characters."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..visible import one_line

_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#~$])")


def markdown_text(words: object) -> str:
    """*words* in one line that shows as it is: no markup, link, mention or HTML."""
    line = one_line(words)
    # a name that looks like an address or somebody's account would become a link
    shown = _MARKUP.sub(r"\\\1", line.replace("&", "&amp;"))
    for link, inert in (("@", "&#64;"), ("://", ":&#47;/"), ("www.", "www&#46;")):
        shown = shown.replace(link, inert)
    return shown if shown[:1] not in ("-", "+", "=") else f"\\{shown}"  # would begin a list or a line


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table whose cells are Markdown already."""
    return [f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows)]


_FORMULA = ("=", "+", "-", "@", "\t", "＝", "＋", "－", "＠")


def csv_table(heads: Sequence[str], rows: Iterable[Iterable[object]], end: str = "\r\n") -> str:
    """The table as in RFC 4180, with lines that *end* so. A text that a spreadsheet takes for a formula is marked."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=end)
    writer.writerow(heads)
    writer.writerows(map(csv_cell, row) for row in rows)
    return out.getvalue()


def csv_cell(value: object) -> object:
    """*value* in one line without control characters; a text that a spreadsheet takes for a formula after a ``'``."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return value
    shown = one_line(value)
    return f"'{shown}" if shown[:1] in _FORMULA else shown


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
