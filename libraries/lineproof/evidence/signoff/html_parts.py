"""Pieces of the sheet's HTML: text from elsewhere is escaped in each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape

from ...visible import one_line
from ..plots import svg_image

BLANK = '<span class="blank"></span>'
"""To fill in by hand."""


def facts_table(pairs: Iterable[tuple[str, object]]) -> str:
    """Names and what is known of each."""
    return table([(text(name), f'<span class="mono">{text(words)}</span>') for name, words in pairs])


def table(
    rows: Sequence[Sequence[str]],
    heads: Sequence[str] = (),
    widths: Sequence[int] = (40,),
    fixed: str = "",
    kind: str = "",
) -> str:
    """Cells of HTML. *widths* of the first columns in mm; *fixed*: rows that are made already. *kind*: its class."""
    columns = "".join(f'<col style="width: {width}mm">' if width else "<col>" for width in widths)
    head = f"<thead><tr>{''.join(f'<th>{name}</th>' for name in heads)}</tr></thead>" if heads else ""
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in rows)
    named = f' class="{kind}"' if kind else ""
    return f"<table{named}><colgroup>{columns}</colgroup>{head}<tbody>{body}{fixed}</tbody></table>\n"


def picture(name: str, svg: str) -> str:
    """An SVG picture within the page."""
    return svg_image(one_line(name), svg)


def text(words: object) -> str:
    """Text from elsewhere as a line of HTML."""
    return escape(one_line(words))


def text_or_none(words: str | None) -> str | None:
    """None stays None."""
    return None if words is None else text(words)


def or_blank(words: str | None) -> str:
    """*words*, or a place to write them by hand."""
    return BLANK if words is None else text(words)


def moment(seconds: float) -> str:
    """Unix time as UTC."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return "unknown"
