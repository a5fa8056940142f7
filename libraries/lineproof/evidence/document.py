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
from itertools import zip_longest
from typing import Any, Literal, Self

from ..visible import one_line, shortened, visible

Mark = Literal["", "good", "bad", "unsure", "faint"]
"""How a cell or row looks. It says nothing that its words do not say too."""

SIMULATED = "SIMULATED – not a measurement"

WIDTH = 100
"""Columns of the text."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table: ``text`` for people; ``value`` for CSV and JSON (None: the text)."""

    text: str
    value: object = None
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its unit ("": none), and whether its cells begin at one place (numbers end at one).

    ``key``: its name in CSV and JSON ("": the name). ``only``: who sees it, if not everybody: ``page`` all but a
    terminal; ``people`` all but CSV and JSON; ``data`` CSV and JSON, where a cell without a value is empty.
    """

    name: str
    unit: str = ""
    left: bool = False
    key: str = ""
    only: Literal["", "page", "people", "data"] = ""


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a table's line, and how all of them look."""

    cells: Sequence[Cell | str]
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below their columns. In a terminal the first column takes the width that is left.

    ``key``: the name under which JSON has the rows of all tables with this key ("": in its section).
    """

    columns: Sequence[Column]
    rows: Sequence[Row]
    key: str = ""

    @classmethod
    def of(cls, rows: Sequence[Mapping[Column, Cell | str]], key: str = "") -> Self:
        """Return a table of *rows*, each a cell by its column. A row may lack columns of another."""
        columns = tuple(dict.fromkeys(column for row in rows for column in row))
        return cls(columns, [Row([row.get(column, "") for column in columns]) for row in rows], key)


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and what they are, one in each line."""

    rows: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Items:
    """Sentences, each in a line of its own."""

    texts: Sequence[str]


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

    @classmethod
    def of(cls, message: str, *more: str) -> Self:
        """Return the first line of *message*, with its other lines and *more* below it."""
        title, *lines = message.splitlines() or [""]
        items = [line.strip() for line in (*lines, *more) if line]
        return cls(title, [Items(items)] if items else [])


Part = Table | Facts | Items | Note | Code | Figure | Folded


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


_VERDICTS: Mapping[str, Mark] = {"PASS": "good", "FAIL": "bad", "INCONCLUSIVE": "unsure"}


def verdict_cell(verdict: str) -> Cell:
    """Return *verdict* as a cell that looks like it."""
    return Cell(verdict, mark=_VERDICTS.get(verdict, ""))


def data_cells(values: Mapping[str, object]) -> dict[Column, Cell]:
    """Return *values* by their names as cells that only CSV and JSON have."""
    return {Column(name, only="data"): Cell("", value) for name, value in values.items()}


# -- text --------------------------------------------------------------------------------------------------------------


def as_text(document: Document, width: int = WIDTH) -> str:
    """Return *document* for a terminal of *width* columns. Only what is copied, and one word, may be longer."""
    lines = _wrapped(document.title, width) if document.title else []
    lines += [SIMULATED] if document.simulated else []
    for section in document.sections:
        lines += ["", *(_wrapped(section.title, width) if section.title else [])]
        lines += _text_of_parts(section.parts, width)
    return "\n".join(lines).strip("\n") + "\n"


def _text_of_parts(parts: Sequence[Part], width: int) -> list[str]:
    lines: list[str] = []
    was_table = False
    for part in parts:
        if shown := _text_of(part, width):
            is_table = isinstance(part, Table)
            lines += ["", *shown] if lines and (is_table or was_table) else shown
            was_table = is_table
    return lines


def _text_of(part: Part, width: int) -> list[str]:
    match part:
        case Note(text):
            return _wrapped(text, width)
        case Items(texts):
            return [line for text in texts for line in _wrapped(text, width, "- ")]
        case Facts(rows):
            longest = max((len(one_line(name)) for name in rows), default=0)
            shown = ((f"{one_line(name):<{longest}}  ", words) for name, words in rows.items())
            return [line for name, words in shown for line in _wrapped(words, width, name)]
        case Code(text):
            return visible(text).rstrip("\n").split("\n")
        case Figure(_, alt):
            return [f"[{one_line(alt)}]"]
        case Folded(title, parts):
            return [*_wrapped(title, width), *(f"  {line}" for line in _text_of_parts(parts, width - 2))]
        case Table():
            return _text_table(part, width)


_LEAST_FIRST, _MOST_CELL, _LEAST_CELL, _GAP = 28, 24, 4, "  "
"""Columns: of the first cell at least, of any other at most and at least; between two."""


def _text_table(table: Table, width: int) -> list[str]:
    columns, rows = _seen(table, "", "people")
    if not columns:
        return []
    cells = [[_line(column.name) for column in columns], *([_line(cell.text) for cell in row] for _, row in rows)]
    widths = [min(_MOST_CELL, max(1, *map(len, column))) for column in zip(*cells, strict=True)]
    while (rest := width - sum(widths[1:]) - len(_GAP) * (len(widths) - 1)) < _LEAST_FIRST:
        widest = max(range(1, len(widths)), key=lambda at: widths[at], default=0)
        if widths[widest] <= _LEAST_CELL:
            break
        widths[widest] -= 1
    widths[0] = min(max(rest, _LEAST_CELL), max(1, *(len(row[0]) for row in cells)))
    lines = []
    for row in cells:
        wrapped = [textwrap.wrap(cell, most) for cell, most in zip(row, widths, strict=True)]
        for parts in zip_longest(*wrapped, fillvalue="") if any(wrapped) else [[""] * len(row)]:
            lines.append(_GAP.join(part.ljust(most) for part, most in zip(parts, widths, strict=True)).rstrip())
        if row is cells[0]:
            lines.append(_GAP.join("-" * most for most in widths))
    return lines


def _wrapped(words: str, width: int, first: str = "") -> list[str]:
    # a path or an option in two lines could not be copied
    whole = textwrap.TextWrapper(width, first, " " * len(first), break_long_words=False, break_on_hyphens=False)
    return whole.wrap(one_line(words)) or [first]


_LONGEST = 1000
"""Characters of a cell that people are shown."""


def _line(words: object) -> str:
    return shortened(one_line(words), _LONGEST)


def _seen(table: Table, *only: str) -> tuple[list[Column], list[tuple[Mark, list[Cell]]]]:
    """Return the columns that are for one of *only*, and of each row its mark and their cells."""
    places = [place for place, column in enumerate(table.columns) if column.only in only]
    cells = [(row.mark, [row.cells[place] for place in places]) for row in table.rows]
    shown = [(mark, [Cell(cell) if isinstance(cell, str) else cell for cell in row]) for mark, row in cells]
    return [table.columns[place] for place in places], shown


# -- HTML --------------------------------------------------------------------------------------------------------------

STYLE = """
.lineproof { font: 14px/1.45 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; padding: 12px;
             color: #1d2733; background: #fff; white-space: normal; }
.lineproof h1 { font-size: 16px; margin: 0 0 4px; }
.lineproof h2 { font-size: 14.5px; margin: 12px 0 4px; }
.lineproof p { margin: 0 0 10px; color: #5a6673; }
.lineproof p.strong { font-weight: 700; color: #1d2733; }
.lineproof pre { margin: 0 0 10px; overflow-x: auto; }
.lineproof ul { margin: 0 0 10px; padding-left: 20px; }
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


POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'"
"""Content Security Policy of a page: a browser asks nothing of the network, whatever a name contains."""


def as_page(document: Document) -> str:
    """Return *document* as a page of its own."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_html(document.title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<style>body {{ margin: 0; background: #fff; }}</style></head>\n<body>{as_html(document)}</body></html>\n"
    )


def _html_of(part: Part) -> str:
    match part:
        case Note(text, strong):
            return f'<p class="strong">{_html(text)}</p>' if strong else f"<p>{_html(text)}</p>"
        case Items(texts):
            return f"<ul>{''.join(f'<li>{_html(text)}</li>' for text in texts)}</ul>" if texts else ""
        case Facts(rows):
            columns = (Column("", left=True), Column("", left=True))
            return _html_table("", Table(columns, [Row(pair) for pair in rows.items()]))
        case Code(text):
            return f"<pre>{escape(visible(text))}</pre>"
        case Figure(svg, _):
            return svg
        case Folded(title, parts):
            return f"<details><summary>{_html(title)}</summary>{''.join(map(_html_of, parts))}</details>"
        case Table():
            heads = "".join(
                f"<th{_classes('left' * column.left)}>{_html(column.name)}"
                f"{f'<small>{_html(column.unit)}</small>' if column.unit else ''}</th>"
                for column in _seen(part, *_PAGE)[0]
            )
            return _html_table(f"<thead><tr>{heads}</tr></thead>\n", part)


_PAGE = ("", "people", "page")


def _html_table(head: str, table: Table) -> str:
    columns, rows = _seen(table, *_PAGE)
    body = "".join(f"<tr{_classes(mark)}>{''.join(map(_html_cell, cells, columns))}</tr>\n" for mark, cells in rows)
    return f'<div class="wide"><table>{head}<tbody>{body}</tbody></table></div>' if columns and (rows or head) else ""


def _html_cell(cell: Cell, column: Column) -> str:
    return f"<td{_classes('left' * column.left, cell.mark)}>{escape(_line(cell.text))}</td>"


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
        lines += _markdown_of_parts(section.parts)
    return "\n".join(lines).rstrip("\n") + "\n"


def _markdown_of_parts(parts: Sequence[Part]) -> list[str]:
    return [line for part in parts if (shown := list(_markdown_of(part))) for line in (*shown, "")]


def _markdown_of(part: Part) -> Iterator[str]:
    match part:
        case Note(text, strong):
            yield f"**{markdown_text(text)}**" if strong else markdown_text(text)
        case Items(texts):
            yield from (f"- {markdown_text(text)}" for text in texts)
        case Facts(rows):
            yield from (f"- {markdown_text(name)}: {markdown_text(words)}" for name, words in rows.items())
        case Code(text):
            # longer than any in the text; lines that are indented would belong to a list before them
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            yield from (fence, *visible(text).rstrip("\n").split("\n"), fence)
        case Figure(_, alt):
            yield f"*{markdown_text(alt)}*"
        case Folded(title, parts):
            yield from (f"**{markdown_text(title)}**", "", *_markdown_of_parts(parts)[:-1])
        case Table():
            columns, shown = _seen(part, *_PAGE)
            heads = [markdown_text(f"{column.name}{f' [{column.unit}]' * bool(column.unit)}") for column in columns]
            lines = (heads, ["---"] * len(heads), *(map(_markdown_cell, cells) for _, cells in shown))
            yield from (f"| {' | '.join(cells)} |" for cells in lines if columns)


def _markdown_cell(cell: Cell) -> str:
    shown = markdown_text(_line(cell.text))
    return f"**{shown}**" if cell.mark in ("bad", "unsure") and shown else shown


_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#~$])")
_BLOCK = re.compile(r"^(\d+(?=[.)](?: |$))|(?=[-+=]))")
"""Before what would begin a list, or underline a title."""


def markdown_text(words: object) -> str:
    """Return *words* in one line that shows as it is: no markup, link, mention or HTML."""
    # a name that looks like an address or somebody's account would become a link
    shown = _MARKUP.sub(r"\\\1", one_line(words).replace("&", "&amp;"))
    for link, inert in (("@", "&#64;"), ("://", ":&#47;/"), ("www.", "www&#46;")):
        shown = shown.replace(link, inert)
    return _BLOCK.sub(r"\1\\", shown)


# -- CSV and JSON ------------------------------------------------------------------------------------------------------


def as_csv(document: Document) -> str:
    """Return the tables with the columns of the first one as in RFC 4180: values, without units.

    A text that a spreadsheet would take for a formula begins with an apostrophe.
    """
    tables = [(_keys(table), table) for table in document.tables]
    out = io.StringIO()
    writer = csv.writer(out)
    for number, (keys, table) in enumerate(tables):
        if not number:
            writer.writerow(map(csv_cell, keys))
        if keys == tables[0][0]:
            writer.writerows(map(csv_cell, row) for row in _values(table))
    return out.getvalue()


_FORMULA = ("=", "+", "-", "@", "\t", "＝", "＋", "－", "＠")


def csv_cell(value: object) -> object:
    """Return *value* in one line; a text that a spreadsheet would take for a formula begins with an apostrophe."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return value
    shown = one_line(value)
    return f"'{shown}" if shown[:1] in _FORMULA else shown


def as_json(document: Document) -> str:
    """Return title, ``data``, the rows of tables by their key, and sections, for programs: of a picture its words.

    A table without a key is in its section: its rows, by column.
    """
    rows: dict[str, list[object]] = {}
    for table in document.tables:
        if table.key:
            rows.setdefault(table.key, []).extend(_rows(table))
    sections = [
        {"title": each.title, "parts": [_plain(part) for part in each.parts if not getattr(part, "key", "")]}
        for each in document.sections
    ]
    head = {"title": document.title, "simulated": document.simulated, **document.data, **rows}
    shown = json.dumps({**head, "sections": sections}, indent=2, ensure_ascii=False)
    # outside of its texts JSON has printable characters only
    return re.sub("[^\n -~]", lambda found: found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1], shown)


def _plain(part: Part) -> object:
    match part:
        case Table():
            return _rows(part)
        case Facts(rows):
            return dict(rows)
        case Items(texts):
            return list(texts)
        case Figure(_, alt):
            return alt
        case Folded(title, parts):
            return {"title": title, "parts": [_plain(each) for each in parts]}
        case Note(text) | Code(text):
            return text


_DATA = ("", "page", "data")


def _rows(table: Table) -> list[dict[str, object]]:
    return [dict(zip(_keys(table), row, strict=True)) for row in _values(table)]


def _keys(table: Table) -> list[str]:
    return [column.key or column.name for column in _seen(table, *_DATA)[0]]


def _values(table: Table) -> list[list[object]]:
    columns, rows = _seen(table, *_DATA)
    return [
        [
            cell.text if cell.value is None and column.only != "data" else cell.value
            for column, cell in zip(columns, cells, strict=True)
        ]
        for _, cells in rows
    ]
