"""A document: what a command, a report or a log shows. Written once; rendered as text, HTML, Markdown, CSV or JSON.

A form is a function from data to a :class:`Document` and holds no markup. Text from elsewhere is made inert here, once.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from ..visible import one_line, visible, visible_data

Mark = Literal["", "good", "bad", "unsure", "faint"]
"""How a cell or row looks. It says nothing that its words do not say too."""

SIMULATED = "SIMULATED – not a measurement"


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table."""

    text: str
    mark: Mark = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class PageCell(Cell):
    """A cell that a page shows after a ``picture`` (SVG), or as a link to ``section``, above the lines ``below``."""

    picture: str = ""
    section: str = ""
    below: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A column. ``left``: its cells begin at one place (numbers end at one). ``on_page``: not for a terminal."""

    name: str
    unit: str = ""
    left: bool = False
    on_page: bool = False


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

    @classmethod
    def of(cls, rows: Sequence[Mapping[Column, Cell | str]]) -> Self:
        """Return a table of *rows*, each a cell by its column. A row may lack columns of another."""
        columns = tuple(dict.fromkeys(column for row in rows for column in row))
        return cls(columns, [Row([row.get(column, "") for column in columns]) for row in rows])


class Facts(NamedTuple):
    """Names and what they are, one in each line."""

    values: Mapping[str, str]


class Items(NamedTuple):
    """Sentences, each in a line of its own."""

    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Note:
    """A paragraph; ``strong``: the reader must not miss it."""

    text: str
    strong: bool = False


class Code(NamedTuple):
    """Lines that are shown as they are: a command to copy, the output of a router."""

    text: str


class Figure(NamedTuple):
    """A picture as SVG; ``alt`` says what it shows."""

    svg: str
    alt: str


@dataclass(frozen=True, slots=True)
class Section:
    """Parts below their title ("": none)."""

    title: str
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class Folded(Section):
    """A section within another one, which a page shows when its title is clicked."""

    @classmethod
    def of(cls, message: str, *more: str) -> Self:
        """Return the first line of *message*, with its other lines and *more* below it."""
        title, *lines = message.splitlines() or [""]
        return cls(title, [Items([line.strip() for line in (*lines, *more) if line])])


Part = Table | Facts | Items | Note | Code | Figure | Folded


@dataclass(frozen=True, slots=True)
class Document:
    """Sections below a title, for people, and the same as ``data`` for programs: CSV and JSON.

    ``simulated``: each form says that these are no measurements.
    """

    title: str
    sections: Sequence[Section] = ()
    simulated: bool = False
    data: Mapping[str, Any] = field(default_factory=dict)


def verdict_cell(verdict: str) -> Cell:
    """Return *verdict* as a cell that looks like it."""
    marks: Mapping[str, Mark] = {"PASS": "good", "FAIL": "bad", "INCONCLUSIVE": "unsure"}
    return Cell(verdict, marks.get(verdict, ""))


# -- text --------------------------------------------------------------------------------------------------------------


def as_text(document: Document, width: int = 0) -> str:
    """Return *document* in *width* columns (0: the terminal's, or 100). What is copied, and one word, may be longer."""
    width = width or shutil.get_terminal_size((100, 24)).columns
    lines = list(filter(None, [*_wrapped(document.title, width), SIMULATED * document.simulated]))
    for section in document.sections:
        lines += ["", *filter(None, _wrapped(section.title, width)), *_text_of_parts(section.parts, width)]
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
        case Note(text) | Figure(_, text):
            return _wrapped(text, width)
        case Items(texts):
            return [line for text in texts for line in _wrapped(text, width, "- ")]
        case Facts(values):
            named = {one_line(name): value for name, value in values.items()}
            longest = max(map(len, named), default=0)
            if longest > width // 2:  # as commands are
                own = ((_wrapped(name, width), _wrapped(value, width, "  ")) for name, value in named.items())
                return [line for name, value in own for line in (*name, *value)]
            return [line for name, value in named.items() for line in _wrapped(value, width, f"{name:<{longest}}  ")]
        case Code(text):
            return _lines(text)
        case Folded(title, parts):
            return [*_wrapped(title, width), *(f"  {line}" for line in _text_of_parts(parts, width - 2))]
        case Table():
            return _text_table(part, width) if part.columns else []


def _text_table(table: Table, width: int) -> list[str]:
    """Return the lines of *table*; of one whose words are too wide to stand beside each other, a fact for each cell."""
    shown = [place for place, column in enumerate(table.columns) if not column.on_page]
    names, *texts = (
        [one_line(row.cells[place]) for place in shown]
        for row in (Row([f"{column.name} {column.unit}".strip() for column in table.columns]), *table.rows)
    )
    columns = list(zip(names, *texts, strict=True))
    first, *others = (max(1, *map(len, column)) for column in columns)
    least, *longest = (max([1, *map(len, " ".join(column).split())]) for column in columns)
    gaps = 2 * len(others)
    if least + sum(longest) + gaps > width:
        facts = (Facts({name: cell for name, cell in zip(names, row, strict=True) if cell}) for row in texts)
        return [line for fact in facts for line in ("", *_text_of(fact, width))][1:]
    others = [max(min(24, other), most) for other, most in zip(others, longest, strict=True)]
    # names of columns are broken before what is below them
    whole = [max(map(len, (*head.split(), *column))) for head, *column in columns[1:]]
    for wanted, fewest in ((first, whole), (max(least, min(28, first)), longest)):
        slack = [wide - few for wide, few in zip(others, fewest, strict=True)]
        while width - sum(others) - gaps < wanted and max(slack, default=0) > 0:
            widest = max(range(len(others)), key=lambda place: (slack[place] > 0, others[place]))
            others[widest] -= 1
            slack[widest] -= 1
    widths = [min(first, width - sum(others) - gaps), *others]
    lines = []
    for row in (names, ["-" * most for most in widths], *texts):
        wrapped = (_wrapped(cell, most) for cell, most in zip(row, widths, strict=True))
        for parts in zip_longest(*wrapped, fillvalue=""):
            lines.append("  ".join(map(str.ljust, parts, widths)).rstrip())
    return lines


def _wrapped(text: str, width: int, first: str = "") -> list[str]:
    # a path or an option in two lines could not be copied
    whole = textwrap.TextWrapper(width, first, " " * len(first), break_long_words=False, break_on_hyphens=False)
    return whole.wrap(one_line(text)) or [first]


def _lines(code: str) -> list[str]:
    return visible(code).rstrip("\n").split("\n")


# -- HTML --------------------------------------------------------------------------------------------------------------

STYLE = Path(__file__).with_suffix(".css").read_text("utf-8")
"""CSS of every document; it applies to documents only."""


def as_html(document: Document) -> str:
    """Return *document* as HTML for use inside another page, as Robot's log: no script, nothing from elsewhere."""
    return f"<style>{STYLE}</style>{body(document)}"


def as_page(document: Document, style: str = "") -> str:
    """Return *document* as a page of its own; *style*: as of :func:`page`."""
    return page(document.title, body(document), style)


def page(title: str, html: str, style: str = "", script: str = "") -> str:
    """Return the page of *html*, which is made of bodies; *style*, *script*: CSS and JavaScript of this page only."""
    # a browser asks nothing of the network, whatever a name contains, and runs no other script
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    own = f"; script-src 'sha256-{digest}'" if script else ""
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'{own}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{_words("title", title)}'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<style>{STYLE}body {{ margin: 0; }}\n{style}</style></head>\n<body>{html}"
        f"{f'<script>{script}</script>' if script else ''}</body></html>\n"
    )


def body(document: Document) -> str:
    """Return *document* as HTML without its style."""
    parts = [_words("div", SIMULATED * document.simulated, "simulated"), _words("h1", document.title)]
    for section in document.sections:
        parts += [_words("h2", section.title), *map(_html_of, section.parts)]
    return _element("div", "".join(parts), "lineproof")


def _html_of(part: Part) -> str:
    match part:
        case Note(text, strong):
            return _words("p", text, "strong" * strong)
        case Items(texts):
            return _element("ul", "".join(_words("li", text) for text in texts)) if texts else ""
        case Facts(values):
            return _html_of(Table([Column("", left=True)] * 2, [Row(pair) for pair in values.items()]))
        case Code(text):
            return _element("pre", escape(visible(text)))
        case Figure(svg, _):
            return svg
        case Folded(title, parts):
            return _element("details", _words("summary", title) + "".join(map(_html_of, parts)))
        case Table():
            return _html_table(part)


def _html_table(table: Table) -> str:
    sides = ["left" * column.left for column in table.columns]
    names = (escape(one_line(column.name)) + _words("small", column.unit) for column in table.columns)
    heads = _element("tr", "".join(map(partial(_element, "th"), names, sides)))
    lines = [_element("thead", heads)] if any(column.name for column in table.columns) else []
    for row in table.rows:
        # a record's row may be of any length
        cells = map(_html_cell, row.cells, sides)
        lines.append(_element("tr", "".join(cells), row.mark))
    return _element("div", _element("table", "\n".join(lines)), "wide") if lines else ""


def _html_cell(cell: Cell | str, side: str) -> str:
    html = escape(one_line(cell))
    if isinstance(cell, PageCell):
        html = f'<a href="#{cell.section}">{html}</a>' if cell.section else cell.picture + _words("b", str(cell))
        html += "".join(_words("small", line) for line in cell.below)
    return _element("td", html, side, getattr(cell, "mark", ""))


def _words(name: str, text: str, *classes: str) -> str:
    return _element(name, escape(one_line(text)), *classes) if text else ""


def _element(name: str, html: str, *classes: str) -> str:
    known = " ".join(filter(None, classes))
    return f'<{name} class="{known}">{html}</{name}>' if known else f"<{name}>{html}</{name}>"


# -- Markdown ----------------------------------------------------------------------------------------------------------


def as_markdown(document: Document) -> str:
    """Return *document* in GitHub's Markdown, as for the summary of a CI job."""
    lines = [f"## {_marked(document.title)}", ""] if document.title else []
    lines += [f"**{SIMULATED}**", ""] if document.simulated else []
    for section in document.sections:
        lines += [f"### {_marked(section.title)}", ""] if section.title else []
        lines += _markdown_of_parts(section.parts)
    return "\n".join(lines).rstrip("\n") + "\n"


def _markdown_of_parts(parts: Sequence[Part]) -> list[str]:
    return [line for part in parts if (shown := list(_markdown_of(part))) for line in (*shown, "")]


def _markdown_of(part: Part) -> Iterator[str]:
    match part:
        case Note(text, strong):
            yield _marked(text, strong)
        case Items(texts):
            yield from (f"- {_marked(text)}" for text in texts)
        case Facts(values):
            yield from (f"- {_marked(name)}: {_marked(value)}" for name, value in values.items())
        case Code(text):
            # longer than any in the text; lines that are indented would belong to a list before them
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            yield from (fence, *_lines(text), fence)
        case Figure(_, alt):
            yield f"*{_marked(alt)}*"
        case Folded(title, parts):
            yield from (_marked(title, True), "", *_markdown_of_parts(parts)[:-1])
        case Table() if part.columns:
            heads = [_marked(f"{head.name} [{head.unit}]" if head.unit else head.name) for head in part.columns]
            lines = [heads, ["---"] * len(heads)]
            for row in part.rows:
                lines.append([_marked(cell, getattr(cell, "mark", "") in ("bad", "unsure")) for cell in row.cells])
            yield from (f"| {' | '.join(cells)} |" for cells in lines)


def _marked(text: object, strong: bool = False) -> str:
    """Return *text* in one line that shows as it is: no markup of its own, link, mention or HTML."""
    shown = re.sub(r"([\\`*_{}\[\]<>|#~$])", r"\\\1", one_line(text).replace("&", "&amp;"))
    # a name that looks like an address or somebody's account would become a link
    for link, inert in (("@", "&#64;"), ("://", ":&#47;/"), ("www.", "www&#46;")):
        shown = shown.replace(link, inert)
    # before what would begin a list, or underline a title
    shown = re.sub(r"^(\d+(?=[.)](?: |$))|(?=[-+=]))", r"\1\\", shown)
    return f"**{shown}**" if strong and shown else shown


# -- CSV and JSON ------------------------------------------------------------------------------------------------------


def as_csv(document: Document) -> str:
    """Return the first list of objects in ``data`` as in RFC 4180, in columns by their keys.

    A text that a spreadsheet would take for a formula begins with an apostrophe.
    """
    lists = (value for value in document.data.values() if isinstance(value, list))
    objects = next((value for value in lists if value and isinstance(value[0], dict)), [])
    out = io.StringIO()
    csv.writer(out).writerows(map(_csv_cell, row) for row in (*objects[:1], *(row.values() for row in objects)))
    return out.getvalue()


def _csv_cell(value: object) -> object:
    if not isinstance(value, str):
        return str(value).lower() if isinstance(value, bool) else value
    shown = one_line(value)
    return f"'{shown}" if shown.startswith(("=", "+", "-", "@", "\t", "＝", "＋", "－", "＠")) else shown


def as_json(document: Document) -> str:
    """Return title, whether it is simulated, and ``data``."""
    told = {"title": document.title, "simulated": document.simulated, **document.data}
    return json.dumps(visible_data(told), indent=2, ensure_ascii=False)
