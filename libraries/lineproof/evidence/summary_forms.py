"""The forms of a summary and their files: text, HTML, CSV, Markdown; foreign text is escaped.

The files are in the folder of the execution's first run; the records make them again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import count
from pathlib import Path

from ..core.rule import Ruling
from ..errors import LineproofError, in_words
from ..files import write_whole
from ..visible import one_line as _line
from ..visible import visible
from .run_files import PAGE, REQUIREMENTS, partial
from .summary import (
    ExecutionSummary,
    RunSummary,
    confidence_words,
    interval_text,
    margin_text,
    measured_text,
    summarise,
)
from .tables import SIMULATED, STYLE, html_page
from .text_tables import csv_table, markdown_table, markdown_text

WIDTH = 100
"""Columns of the text."""

_LEAST_PROMISE, _MOST_CELL, _GAP = 28, 24, "  "

_STYLE = """
.lr-trials .summary td, .lr-trials .summary th { text-align: left; white-space: normal; vertical-align: top; }
.lr-trials .summary th:first-child { min-width: 20em; }
.lr-trials .summary td.verdict { font-weight: 700; white-space: nowrap; }
.lr-trials .summary td.verdict.FAIL { border: 2px solid #1d2733; }
.lr-trials .summary td.verdict.INCONCLUSIVE { border: 2px dashed #1d2733; }
.lr-trials .incomplete { font-weight: 700; color: #1d2733; }
.lr-trials .facts td { text-align: left; white-space: normal; border: 0; padding: 1px 7px; }
"""


def text(summary: ExecutionSummary) -> str:
    """The summary for a terminal, in lines of WIDTH columns. Only what is copied (folders, commands) may be longer."""
    lines: list[str] = []
    for run in summary.runs:
        lines += _wrapped(f"{run.title}{f' – {SIMULATED}' if run.simulated else ''}")
        lines += [line for words in run.incomplete for line in _wrapped(words)]
        name_width = max(map(len, run.facts), default=0)
        for name, words in run.facts.items():
            lines += _wrapped(words, f"{name:<{name_width}}  ")
        lines += ["", *_table(_heads(run), [_cells(run, row) for row in range(len(run.rows))])] if run.rows else []
        lines += ["", visible(run.study.text).rstrip("\n")] if run.study else []
        lines += ["", f"Evidence: {_line(run.folder)}", ""]
    lines = [*lines[:-1], *(_line(words) for words in summary.unread)]
    lines += [f"Next: {_line(summary.next)}"] if summary.next else []
    lines += [f"Page: {_line(summary.page)}"] if summary.page else []
    return "\n".join(lines).rstrip("\n") + "\n"


def html(summary: ExecutionSummary) -> str:
    """A page of its own, without scripts and external resources."""
    titles = ", ".join(run.suite or run.folder.name for run in summary.runs)
    return html_page(f"Summary: {_line(titles)}", html_fragment(summary))


def html_fragment(summary: ExecutionSummary) -> str:
    """The same for use inside another page, as Robot's log; its style applies to itself only."""
    return f'<style>{STYLE}{_STYLE}</style><div class="lr-trials">{"".join(_html_parts(summary))}</div>'


def _html_parts(summary: ExecutionSummary) -> list[str]:
    parts = []
    for run in summary.runs:
        parts += [f'<div class="simulated">{SIMULATED}</div>'] if run.simulated else []
        parts.append(f"<h1>{_html(run.title)}</h1>")
        parts += [f'<p class="incomplete">{_html(words)}</p>' for words in run.incomplete]
        facts = {**run.facts, "folder": str(run.folder)}
        rows = "".join(f"<tr><td>{_html(name)}</td><td>{_html(words)}</td></tr>" for name, words in facts.items())
        parts.append(f'<table class="facts"><tbody>{rows}</tbody></table>')
        if run.study:
            parts.append(f"<pre>{escape(visible(run.study.text))}</pre>")
            continue
        head = "".join(f"<th>{_html(name)}</th>" for name in ("test", *_heads(run)))
        body = "".join(_html_row(run, row) for row in range(len(run.rows)))
        table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"
        parts.append(f'<div class="wide summary">{table}</div>')
    parts += [f"<p>{_html(words)}</p>" for words in summary.unread]
    return [*parts, f"<p>Next: <code>{_html(summary.next)}</code></p>" if summary.next else ""]


def _html_row(run: RunSummary, row: int) -> str:
    record = run.rows[row].record
    *cells, verdict = (_html(cell) for cell in (record.test, *_cells(run, row)))
    shown = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr>{shown}<td class="verdict {verdict}">{verdict}</td></tr>\n'


def markdown(summary: ExecutionSummary) -> str:
    """Tables of GitHub's Markdown, as for the summary of a CI job."""
    lines = []
    for run in summary.runs:
        lines += [f"### {markdown_text(run.title)}", ""]
        lines += [f"**{SIMULATED}**", ""] if run.simulated else []
        lines += [line for words in run.incomplete for line in (f"**{markdown_text(words)}**", "")]
        facts = {**run.facts, "folder": str(run.folder)}
        lines += [f"- {markdown_text(name)}: {markdown_text(words)}" for name, words in facts.items()]
        if run.study:
            lines += ["", *(f"    {line}".rstrip() for line in visible(run.study.text).rstrip("\n").split("\n")), ""]
            continue
        heads = ["test", *_heads(run)]
        rows = [(run.rows[row].record.test, *_cells(run, row)) for row in range(len(run.rows))]
        lines += ["", *markdown_table(heads, [[markdown_text(cell) for cell in cells] for cells in rows]), ""]
    lines += [line for words in summary.unread for line in (markdown_text(words), "")]
    lines += ["Next:", "", f"    {_line(summary.next)}"] if summary.next else []
    return "\n".join(lines).rstrip("\n") + "\n"


COLUMNS = (
    *("run", "suite", "test", "sentence", "verdict"),
    *("quantity", "statistic", "relation", "promised", "unit", "scope"),
    *("measured", "low", "high", "confidence", "trials", "set_aside", "loss_ratio"),
    *("margin_low_percent", "margin_high_percent"),
    *("testbed", "router", "software", "firmware", "goal", "simulated", "incomplete"),
)


def comma_separated(summary: ExecutionSummary) -> str:
    """RFC 4180, a line for each sentence; figures as numbers in the sentence's unit, without SI prefix.

    A text that a spreadsheet would take for a formula begins with an apostrophe.
    """
    return csv_table(COLUMNS, _csv_rows(summary))


def _csv_rows(summary: ExecutionSummary) -> Iterator[list[object]]:
    for run in summary.runs:
        for row in run.rows:
            record, demanded, found = row.record, row.record.requirement, row.measured
            margin = row.margin or (None, None)
            known = found if found is not None and len(row.sample) else None
            cells: list[object] = [record.run, run.suite, record.test, record.sentence, record.verdict]
            threshold, statistic = demanded.threshold, demanded.statistic and demanded.statistic.name
            cells += [record.quantity, statistic, demanded.relation, threshold.number, threshold.unit.value]
            cells += [demanded.scope.value]
            cells += [known and known.estimate, known and known.low, known and known.high, row.confidence]
            cells += [len(row.sample), row.set_aside, row.lost, *(end if end is None else 100 * end for end in margin)]
            cells += [run.facts.get(name) for name in ("testbed", "router", "software", "firmware")]
            cells += [record.goal, record.simulated, "; ".join(run.incomplete)]
            yield cells
        if not run.rows:
            empty = [""] * (len(COLUMNS) - 4)
            yield [run.folder.name, run.suite, *empty, run.simulated, "; ".join(run.incomplete)]


def _heads(run: RunSummary) -> list[str]:
    return ["promised", "measured", confidence_words(run.rows), "margin", "verdict"]


def _cells(run: RunSummary, row: int) -> list[str]:
    found = run.rows[row]
    shown = measured_text(found), interval_text(found), margin_text(found)
    return [found.record.sentence, *shown, found.record.verdict]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows below *heads*, wrapped: the first column most."""
    cells = [[_line(cell) for cell in row] for row in (heads, *rows)]
    widths = [min(_MOST_CELL, max(len(row[column]) for row in cells)) for column in range(len(heads))]
    rest = WIDTH - sum(widths[1:]) - len(_GAP) * (len(widths) - 1)
    while rest < _LEAST_PROMISE:
        widest = max(range(1, len(widths)), key=lambda column: widths[column])
        widths[widest] -= 1
        rest += 1
    widths[0] = min(rest, max(len(row[0]) for row in cells))
    lines = []
    for number, row in enumerate(cells):
        wrapped = [textwrap.wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
        for line in range(max(map(len, wrapped))):
            parts = [column[line] if line < len(column) else "" for column in wrapped]
            lines.append(_GAP.join(part.ljust(width) for part, width in zip(parts, widths, strict=True)).rstrip())
        lines += [_GAP.join("-" * width for width in widths)] if not number else []
    return lines


def _wrapped(words: str, first: str = "") -> list[str]:
    return textwrap.wrap(_line(words), WIDTH, initial_indent=first, subsequent_indent=" " * len(first)) or [first]


def _html(words: object) -> str:
    return escape(_line(words))


def execution_runs(execution: Path) -> Iterator[Path]:
    """The folders of an execution's runs: *execution*, then ``…-2`` and so on."""
    for number in count(1):
        folder = execution if number == 1 else execution.with_name(f"{execution.name}-{number}")
        if not (folder / REQUIREMENTS).exists():
            return
        yield folder


def execution_summary(execution: Path, known: Mapping[Path, RunSummary]) -> ExecutionSummary:
    """The summary of all runs of *execution*, as far as they can be read. *known*: those that were read before."""
    runs, unread = [], []
    for folder in execution_runs(execution):
        try:
            runs.append(known.get(folder) or summarise(folder))
        except (LineproofError, OSError) as error:
            unread.append(in_words(error))
    page = page_name(execution) if runs else ""
    return ExecutionSummary(tuple(runs), tuple(unread), next_command(runs), page)


def write_page(folder: Path, summary: ExecutionSummary) -> None:
    """Write the page into *folder*. Raises TestbedError."""
    write_whole(folder / PAGE, html(summary), fresh=partial(folder / PAGE))


@contextlib.contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """No two processes are in this block for the same *folder* at once, where its file system knows locks."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def next_command(runs: Sequence[RunSummary]) -> str:
    """Return the command that goes on with the first of *runs* that is incomplete or INCONCLUSIVE; "" if none is."""
    for run in runs:
        if run.incomplete or any(row.record.verdict == Ruling.INCONCLUSIVE.value for row in run.rows):
            suite = run.suite or "that it was"
            return run.resume or f"robot -v RESUME:{run.folder.name}, the options of that run, and the suite {suite}"
    return ""


def page_name(execution: Path) -> str:
    """Return the path of the summary's page of *execution*, from the current folder if it lies below."""
    page, here = execution / PAGE, Path.cwd()
    return str(page.relative_to(here) if page.is_relative_to(here) else page)
