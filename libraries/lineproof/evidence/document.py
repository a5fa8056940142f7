"""A document: what a command, a report or a log shows. Written once; rendered as text, HTML, Markdown, CSV or JSON.

A form is a function from data to a :class:`Document` and holds no markup. Text from elsewhere is made inert here, once.
"""

from __future__ import annotations

import csv
import io
import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

from ..visible import one_line, visible

Mark = Literal["", "good", "bad", "unsure", "faint"]
"""How a cell or row looks. It says nothing that its words do not say too."""

SIMULATED = "SIMULATED – not a measurement"

WIDTH = 100
"""Columns of the text."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table: ``text`` for people; ``value`` for CSV and JSON (None: the text).

    ``mono``: characters that stand below each other, as a bar of them.
    """

    text: str
    value: object = None
    mark: Mark = ""
    mono: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its unit ("": none), and whether its cells begin at one place (numbers end at one).

    ``key``: its name in CSV and JSON ("": the name).
    """

    name: str
    unit: str = ""
    left: bool = False
    key: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a table's line, and how all of them look."""

    cells: Sequence[Cell | str]
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below their columns. In a terminal the first column takes the width that is left."""

    columns: Sequence[Column]
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and what they are, one in each line."""

    rows: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Note:
    """A paragraph; ``strong``: the reader must not miss it."""

    text: str
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Code:
    """Lines that are shown as they are: a command to copy, the output of a router."""

    text: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture as SVG; ``alt`` says what it shows."""

    svg: str
    alt: str


@dataclass(frozen=True, slots=True)
class Folded:
    """Parts that a page shows when their title is clicked."""

    title: str
    parts: Sequence[Part]


Part = Table | Facts | Note | Code | Figure | Folded


@dataclass(frozen=True, slots=True)
class Section:
    """Parts below their title ("": none)."""

    title: str
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class Document:
    """Sections below a title. ``simulated``: each form says that these are no measurements.

    ``data``: figures for programs that no section shows; they are added to the JSON.
    """

    title: str
    sections: Sequence[Section] = ()
    simulated: bool = False
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tables(self) -> Iterator[Table]:
        """The tables in their order."""
        return (part for section in self.sections for part in section.parts if isinstance(part, Table))


# -- text --------------------------------------------------------------------------------------------------------------


def as_text(document: Document, width: int = WIDTH) -> str:
    """Return *document* for a terminal of *width* columns. Only what is copied may be longer."""
    lines = _wrapped(document.title, width) if document.title else []
    lines += [SIMULATED] if document.simulated else []
    for section in document.sections:
        lines += ["", *(_wrapped(section.title, width) if section.title else [])]
        lines += [line for part in section.parts for line in _text_of(part, width)]
    return "\n".join(lines).strip("\n") + "\n"


def _text_of(part: Part, width: int) -> list[str]:
    match part:
        case Note(text):
            return _wrapped(text, width)
        case Facts(rows):
            longest = max(map(len, rows), default=0)
            return [line for name, words in rows.items() for line in _wrapped(words, width, f"{name:<{longest}}  ")]
        case Code(text):
            return visible(text).rstrip("\n").split("\n")
        case Figure(_, alt):
            return [f"[{one_line(alt)}]"]
        case Folded(title, parts):
            return [*_wrapped(title, width), *(f"  {line}" for each in parts for line in _text_of(each, width - 2))]
        case Table():
            return ["", *_text_table(part, width), ""]


_LEAST_FIRST, _MOST_CELL, _LEAST_CELL, _GAP = 28, 24, 4, "  "
"""Columns: of the first cell at least, of any other at most and at least; between two."""


def _text_table(table: Table, width: int) -> list[str]:
    heads = [column.name for column in table.columns]
    cells = [heads, *([one_line(_cell(cell).text) for cell in row.cells] for row in table.rows)]
    mono = [any(_cell(row.cells[at]).mono for row in table.rows) for at in range(len(heads))]
    widths = [max(len(row[at]) for row in cells) for at in range(len(heads))]
    widths = [most if is_mono else min(_MOST_CELL, most) for most, is_mono in zip(widths, mono, strict=True)]
    shrinkable = [at for at in range(1, len(heads)) if not mono[at]]
    while (rest := width - sum(widths[1:]) - len(_GAP) * (len(widths) - 1)) < _LEAST_FIRST:
        widest = max(shrinkable, key=lambda at: widths[at], default=0)
        if widths[widest] <= _LEAST_CELL:
            break
        widths[widest] -= 1
    widths[0] = min(max(rest, _LEAST_CELL), max(len(row[0]) for row in cells))
    lines = []
    for number, row in enumerate(cells):
        wrapped = [textwrap.wrap(cell, most) or [""] for cell, most in zip(row, widths, strict=True)]
        for line in range(max(map(len, wrapped))):
            parts = [column[line] if line < len(column) else "" for column in wrapped]
            lines.append(_GAP.join(part.ljust(most) for part, most in zip(parts, widths, strict=True)).rstrip())
        lines += [_GAP.join("-" * most for most in widths)] if not number else []
    return lines


def _wrapped(words: str, width: int, first: str = "") -> list[str]:
    return textwrap.wrap(one_line(words), width, initial_indent=first, subsequent_indent=" " * len(first)) or [first]


def _cell(cell: Cell | str) -> Cell:
    return Cell(cell) if isinstance(cell, str) else cell


# -- HTML --------------------------------------------------------------------------------------------------------------

STYLE = """
.lineproof { font: 14px/1.45 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; padding: 12px;
             color: #1d2733; background: #fff; white-space: normal; }
.lineproof h1 { font-size: 16px; margin: 0 0 4px; }
.lineproof h2 { font-size: 14.5px; margin: 12px 0 4px; }
.lineproof p { margin: 0 0 10px; color: #5a6673; }
.lineproof p.strong { font-weight: 700; color: #1d2733; }
.lineproof .simulated { display: inline-block; margin: 0 0 8px; padding: 2px 8px; border-radius: 4px; font-weight: 600;
                        color: #8a2b00; background: #ffe9d9; }
.lineproof .wide { overflow-x: auto; }
.lineproof table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; margin: 0 0 10px; }
.lineproof th, .lineproof td { padding: 3px 7px; text-align: right; white-space: nowrap; border: 0;
                               border-bottom: 1px solid #e3e8ed; vertical-align: top; }
.lineproof th { vertical-align: bottom; font-weight: 600; color: #46525f; border-bottom: 2px solid #b9c3cd; }
.lineproof th small { display: block; font-weight: 400; color: #7b8794; }
.lineproof .left { text-align: left; white-space: normal; }
.lineproof tr.faint td, .lineproof td.faint { color: #8b96a1; }
.lineproof tr.unsure td, .lineproof td.unsure { background: #f4f0e6; color: #6b5b2e; }
.lineproof tr.bad td, .lineproof td.bad { color: #b3261e; font-weight: 600; }
.lineproof td.good { color: #1f7a3f; }
"""
"""CSS of every document; it applies to documents only."""


def as_html(document: Document) -> str:
    """Return *document* as HTML for use inside another page, as Robot's log: no script, nothing from elsewhere."""
    parts = [f'<div class="simulated">{SIMULATED}</div>'] if document.simulated else []
    parts += [f"<h1>{_html(document.title)}</h1>"] if document.title else []
    for section in document.sections:
        parts += [f"<h2>{_html(section.title)}</h2>"] if section.title else []
        parts += map(_html_of, section.parts)
    return f'<style>{STYLE}</style><div class="lineproof">{"".join(parts)}</div>'


def as_page(document: Document) -> str:
    """Return *document* as a page of its own."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_html(document.title)}</title>'
        f"<style>body {{ margin: 0; background: #fff; }}</style></head>\n<body>{as_html(document)}</body></html>\n"
    )


def _html_of(part: Part) -> str:
    match part:
        case Note(text, strong):
            return f'<p class="strong">{_html(text)}</p>' if strong else f"<p>{_html(text)}</p>"
        case Facts(rows):
            columns = (Column("", left=True), Column("", left=True))
            return _html_table("", columns, [Row(pair) for pair in rows.items()])
        case Code(text):
            return f"<pre>{escape(visible(text))}</pre>"
        case Figure(svg, _):
            return svg
        case Folded(title, parts):
            return f"<details><summary>{_html(title)}</summary>{''.join(map(_html_of, parts))}</details>"
        case Table(columns, rows):
            heads = "".join(
                f"<th{_classes('left' * column.left)}>{_html(column.name)}"
                f"{f'<small>{_html(column.unit)}</small>' if column.unit else ''}</th>"
                for column in columns
            )
            return _html_table(f"<thead><tr>{heads}</tr></thead>\n", columns, rows)


def _html_table(head: str, columns: Sequence[Column], rows: Sequence[Row]) -> str:
    body = "".join(
        f"<tr{_classes(row.mark)}>"
        + "".join(_html_cell(_cell(cell), column) for cell, column in zip(row.cells, columns, strict=True))
        + "</tr>\n"
        for row in rows
    )
    return f'<div class="wide"><table>{head}<tbody>{body}</tbody></table></div>'


def _html_cell(cell: Cell, column: Column) -> str:
    words = f"<code>{_html(cell.text)}</code>" if cell.mono else _html(cell.text)
    return f"<td{_classes('left' * column.left, cell.mark)}>{words}</td>"


def _classes(*names: str) -> str:
    known = " ".join(filter(None, names))
    return f' class="{known}"' if known else ""


def _html(words: object) -> str:
    return escape(one_line(words))


# -- Markdown ----------------------------------------------------------------------------------------------------------


def as_markdown(document: Document) -> str:
    """Return *document* in GitHub's Markdown, as for the summary of a CI job."""
    lines = [f"## {markdown_text(document.title)}", ""] if document.title else []
    lines += [f"**{SIMULATED}**", ""] if document.simulated else []
    for section in document.sections:
        lines += [f"### {markdown_text(section.title)}", ""] if section.title else []
        lines += [line for part in section.parts for line in (*_markdown_of(part), "")]
    return "\n".join(lines).rstrip("\n") + "\n"


def _markdown_of(part: Part) -> Iterator[str]:
    match part:
        case Note(text, strong):
            yield f"**{markdown_text(text)}**" if strong else markdown_text(text)
        case Facts(rows):
            yield from (f"- {markdown_text(name)}: {markdown_text(words)}" for name, words in rows.items())
        case Code(text):
            yield from (f"    {line}".rstrip() for line in visible(text).rstrip("\n").split("\n"))
        case Figure(_, alt):
            yield f"*{markdown_text(alt)}*"
        case Folded(title, parts):
            yield from (markdown_text(title), "")
            for each in parts:
                yield from _markdown_of(each)
        case Table(columns, rows):
            heads = [markdown_text(f"{column.name}{f' [{column.unit}]' * bool(column.unit)}") for column in columns]
            shown = ([_markdown_cell(_cell(cell)) for cell in row.cells] for row in rows)
            yield from (f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *shown))


def _markdown_cell(cell: Cell) -> str:
    if cell.mono:
        return f"`{one_line(cell.text).replace('`', ' ').replace('|', ' ')}`" if cell.text else ""
    shown = markdown_text(cell.text)
    return f"**{shown}**" if cell.mark in ("bad", "unsure") and shown else shown


_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#~$])")


def markdown_text(words: object) -> str:
    """Return *words* in one line that shows as it is: no markup, link, mention or HTML."""
    # a name that looks like an address or somebody's account would become a link
    shown = _MARKUP.sub(r"\\\1", one_line(words).replace("&", "&amp;"))
    for link, inert in (("@", "&#64;"), ("://", ":&#47;/"), ("www.", "www&#46;")):
        shown = shown.replace(link, inert)
    return shown if shown[:1] not in ("-", "+", "=") else f"\\{shown}"  # would begin a list or a line


# -- CSV and JSON ------------------------------------------------------------------------------------------------------


def as_csv(document: Document) -> str:
    """Return the tables with the columns of the first one as in RFC 4180: values, without units.

    A text that a spreadsheet would take for a formula begins with an apostrophe.
    """
    first = next(document.tables)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([column.key or column.name for column in first.columns])
    for table in document.tables:
        if table.columns == first.columns:
            writer.writerows([_csv_cell(_value(cell)) for cell in row.cells] for row in table.rows)
    return out.getvalue()


_FORMULA = ("=", "+", "-", "@", "\t", "＝", "＋", "－", "＠")


def _csv_cell(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return value
    shown = one_line(value)
    return f"'{shown}" if shown[:1] in _FORMULA else shown


def as_json(document: Document) -> str:
    """Return title, sections and ``data`` for programs: of a table its rows by column, of a picture its words."""
    sections = [{"title": each.title, "parts": [_plain(part) for part in each.parts]} for each in document.sections]
    head = {"title": document.title, "simulated": document.simulated, **document.data}
    return json.dumps({**head, "sections": sections}, indent=2, ensure_ascii=False)


def _plain(part: Part) -> object:
    match part:
        case Table(columns, rows):
            keys = [column.key or column.name for column in columns]
            return [dict(zip(keys, map(_value, row.cells), strict=True)) for row in rows]
        case Facts(rows):
            return dict(rows)
        case Figure(_, alt):
            return alt
        case Folded(title, parts):
            return {"title": title, "parts": [_plain(each) for each in parts]}
        case Note(text) | Code(text):
            return text


def _value(cell: Cell | str) -> object:
    known = _cell(cell)
    return known.text if known.value is None else known.value
