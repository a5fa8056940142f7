"""Tables as CSV, with text from elsewhere in them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from ..visible import one_line

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
