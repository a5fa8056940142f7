"""Tables in Markdown (GitHub's and GitLab's) and CSV, with text from elsewhere made inert in them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

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
