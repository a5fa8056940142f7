"""The names that :mod:`.document` and :mod:`.bars` do not give yet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from .bars import WIDTH as WIDTH
from .bars import Range as Range
from .bars import range_bars as range_bars
from .document import csv_cell
from .document import markdown_text as markdown_text


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table whose cells are Markdown already."""
    return [f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows)]


def csv_table(heads: Sequence[str], rows: Iterable[Iterable[object]], end: str = "\r\n") -> str:
    """The table as in RFC 4180, with lines that *end* so. A text that a spreadsheet takes for a formula is marked."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=end)
    writer.writerow(heads)
    writer.writerows(map(csv_cell, row) for row in rows)
    return out.getvalue()
