"""Text from elsewhere in a CSV file."""

from __future__ import annotations

from ..visible import one_line

_FORMULA = ("=", "+", "-", "@", "\t", "＝", "＋", "－", "＠")


def csv_cell(value: object) -> object:
    """*value* in one line without control characters; a text that a spreadsheet takes for a formula after a ``'``."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return value
    shown = one_line(value)
    return f"'{shown}" if shown[:1] in _FORMULA else shown
