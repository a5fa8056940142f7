"""The report: one page of the runs of an execution, from their records alone, without a script or a network.

First the table of promises, what was not kept before what was, then a section for each sentence. The page is in the
folder of the execution's first run.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from ..core.rule import Ruling
from ..core.verdict import where_lost
from ..files import write_whole
from ..visible import one_line, shortened
from .document import POLICY, STYLE, Code, Document, Figure, Folded, Items, Note, Section, as_html
from .forms import ledgers_document, trials_document
from .pictures import sentence_plot
from .records import RequirementRecord
from .run import RecordedRun
from .run_files import PAGE, partial
from .sentence_rows import NOTHING, SentenceRow, figure_heading
from .summary import ExecutionSummary, RunSummary, head, last_section, side_by_side
from .svg import SvgPicture

_MOST_SECTIONS = 100
"""Sentences of a run that have a section: a page of thousands would open in no browser."""

_ORDER = (Ruling.FAIL.value, Ruling.INCONCLUSIVE.value, Ruling.PASS.value)
_COLOURS = {Ruling.FAIL.value: "#b3261e", Ruling.INCONCLUSIVE.value: "#8a6d1a", Ruling.PASS.value: "#1f7a3f"}

_STYLE = """
html { background: #fff; }
body { margin: 0 auto; max-width: 1260px; padding: 8px 12px; }
.head h1 { font-size: 22px; }
section { border-top: 1px solid #b9c3cd; }
svg { max-width: 100%; height: auto; }
.head tbody { display: grid; grid-template-columns: 1fr 1fr; column-gap: 24px; }
.head tr { display: grid; grid-template-columns: 84px 1fr; }
.lineproof .head td { white-space: normal; }
.lineproof .head td:first-child { color: #5a6673; }
.lineproof .promises { width: 100%; font-size: 14px; }
.lineproof .promises td { text-align: left; vertical-align: middle; padding: 4px 8px; }
.lineproof .promises th { text-align: left; vertical-align: bottom; }
.lineproof .promises td:first-child { width: 35%; white-space: normal; }
.lineproof .promises td:nth-child(2) { min-width: 160px; white-space: normal; }
.lineproof .promises small { display: block; font-size: 13px; color: #5a6673; }
.promises a { color: inherit; font-weight: 600; text-decoration: none; }
.promises svg { display: block; }
.promises b { display: inline-block; padding: 1px 8px; border-radius: 4px; color: #fff; }
@media (prefers-color-scheme: dark) { html { filter: invert(.92) hue-rotate(180deg); } }
@page { size: A4; margin: 12mm; }
@media print {
  .head tbody { grid-template-columns: 1fr; }
  .lineproof .promises { font-size: 11px; }
  .lineproof .promises td { white-space: normal; }
  .lineproof .promises td:first-child { width: 35%; white-space: normal; }
.lineproof .promises td:nth-child(2) { min-width: 160px; white-space: normal; }
.lineproof .promises small { font-size: 10px; }
  section, .promises tr { break-inside: avoid; }
  .lineproof .promises td:nth-child(2) { min-width: 0; }
  .promises svg { width: 100px; }
  .promises b { print-color-adjust: exact; }
}
"""


def write_report(folder: Path, found: ExecutionSummary) -> None:
    """Write the report into *folder*. Raises TestbedError."""
    write_whole(folder / PAGE, report(found), fresh=partial(folder / PAGE))


def report(found: ExecutionSummary) -> str:
    """Return the runs as a page."""
    title = "; ".join(one_line(run.title) for run in found.runs)
    beside = side_by_side(found.runs)
    parts = [as_html(Document("", beside))] if beside else []
    for place, run in enumerate(found.runs):
        parts += _run(run, f"r{place}")
    parts.append(as_html(Document("", [last_section(found)])))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><style>{STYLE}{_STYLE}</style></head>\n'
        f"<body>{''.join(part.replace(f'<style>{STYLE}</style>', '', 1) for part in parts)}</body></html>\n"
    )


def _run(run: RunSummary, name: str) -> Iterator[str]:
    """Yield what was tested, the table of promises, and the sections of *run*; *name*: of its links."""
    yield f'<div class="head">{as_html(Document(run.title, [Section("", head(run))], run.simulated))}</div>'
    ordered = sorted(run.rows, key=lambda row: _ORDER.index(row.record.verdict))
    if ordered:
        yield _promises(ordered, name)
    for row in ordered[:_MOST_SECTIONS]:
        document = sentence_document(run.run, row, run.simulated)
        yield f'<section id="{name}-{row.record.number}">{as_html(document)}</section>\n'
    left = len(ordered) - _MOST_SECTIONS
    about = [Note(f"{left} more sentences are in the table and in the records only.")] if left > 0 else []
    yield as_html(Document("", [Section("", [*about, Code(f"{run.tables}Evidence: {run.run.path}")])]))


def sentence_document(run: RecordedRun, row: SentenceRow, simulated: bool) -> Document:
    """Return all about a sentence: why, where its frames went, its picture and its trials."""
    record = row.record
    trials = [one.trial for one in run.trials_by_number.get(record.number, ())]
    title = f"{record.verdict}: {record.sentence}"
    details = [line.strip().removeprefix(f"{title}: ") for line in record.message.splitlines()]
    sections = [
        Section(title, [Note(row.outcome, strong=True), Items(details)]),
        *ledgers_document(record.ledgers, "").sections,
    ]
    if trials:
        picture = Figure(sentence_plot(record, trials, title, simulated), title)
        table = trials_document(record, trials, "").sections[0].parts
        sections.append(Section("", [picture, Folded("Its trials, frame by frame", table)]))
    return Document("", sections)


# -- the table of promises ---------------------------------------------------------------------------------------------


def _promises(rows: Sequence[SentenceRow], name: str) -> str:
    """Return the table of *rows*, without the columns that say nothing."""
    scale = _scale(rows)
    columns = {
        "promised": [_promised(row, name) for row in rows],
        figure_heading(rows): [escape(row.carries.replace(NOTHING, "")) for row in rows],
        "published": [escape(row.published) for row in rows],
        f"margin<small>mark: the promise, edge: ±{100 * scale:g} % or more</small>": [_bar(row, scale) for row in rows],
        "": ["" if row.margin is None else escape(row.margin_text) for row in rows],
        "verdict": [_badge(row.record.verdict) for row in rows],
    }
    shown = {head: cells for head, cells in columns.items() if any(cells)}
    heads = "".join(f"<th>{head}</th>" for head in shown)
    lines = ("".join(f"<td>{cell}</td>" for cell in cells) for cells in zip(*shown.values(), strict=True))
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    table = f'<table class="promises"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="lineproof">{table}</div>\n'


def _promised(row: SentenceRow, name: str) -> str:
    record = row.record
    below = "".join(
        f"<small>{escape(shortened(one_line(words), 300))}</small>" for words in (record.test, *_causes(record))
    )
    return f'<a href="#{name}-{record.number}">{escape(one_line(record.sentence))}</a>{below}'


def _causes(record: RequirementRecord) -> list[str]:
    """Return why a sentence is no PASS: why frames were lost, or where; or why nothing is proven."""
    if record.verdict == Ruling.PASS.value:
        return []
    if record.verdict == Ruling.INCONCLUSIVE.value:
        return [record.breakdown] if record.breakdown else record.message.splitlines()[1:3]
    if record.why and record.why.explanation:
        return [record.why.explanation.words]
    return [where_lost(ledger) for ledger in record.ledgers if ledger.lost][-1:]


def _badge(verdict: str) -> str:
    return f'<b style="background: {_COLOURS[verdict]}">{verdict}</b>'


_WIDE, _HIGH, _NARROW = 180.0, 20.0, 14.0
"""Pixels of a margin's bar: of the picture, and of the bar itself."""


def _scale(rows: Sequence[SentenceRow]) -> float:
    """Return the margin at the edge of all bars, as a ratio: one that half of them fit into, to show a near miss."""
    sizes = [max(abs(end) for end in row.margin if end is not None) for row in rows if row.margin]
    middle = statistics.median_low(sizes) if sizes else 0.0
    return next((scale for scale in (0.05, 0.1, 0.25) if middle <= scale), 0.5)


def _bar(row: SentenceRow, scale: float) -> str:
    """Return the margin as a bar from the mark of the promise; what is not known of it is paler."""
    if row.margin is None:
        return ""
    picture, middle, top = SvgPicture(_WIDE, _HIGH, row.margin_text), _WIDE / 2, (_HIGH - _NARROW) / 2
    ends = [max(-1.0, min(1.0, (scale if end is None else end) / scale)) for end in row.margin]
    sure = 0.0 if ends[0] < 0 < ends[1] else min(ends, key=abs)
    known, unsure = ("#1f7a3f", "#a8d5b7") if ends[0] >= 0 else ("#b3261e", "#ecb4b0")
    picture.rectangle(0, top, _WIDE, _NARROW, "#eef1f4")
    for end, colour in ((ends[0], unsure), (ends[1], unsure), (sure, known)):
        picture.rectangle(middle * min(1, 1 + end), top, middle * abs(end), _NARROW, colour)
    picture.path([(middle, 0), (middle, _HIGH)], "#1d2733", 2)
    return picture.svg()
