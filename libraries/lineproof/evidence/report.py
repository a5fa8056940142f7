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
from .document import Document, Figure, Folded, Items, Note, Section, body, page
from .forms import ledgers_document, trials_document
from .pictures import sentence_plot
from .records import RequirementRecord
from .run import RecordedRun
from .run_files import PAGE, partial
from .sentence_rows import NOTHING, SentenceRow, figure_heading
from .summary import ExecutionSummary, RunSummary, evidence, head, last_section, side_by_side
from .svg import SvgPicture
from .under_load import under_load_document
from .worker_picture import workers_plot

WORKERS = "The router's workers in each trial"
"""Title of the picture of their work."""

_STYLE = Path(__file__).with_suffix(".css").read_text("utf-8")
"""CSS of the page, beside that of every document."""


def write_report(folder: Path, found: ExecutionSummary) -> None:
    """Write the report into *folder*. Raises TestbedError."""
    write_whole(folder / PAGE, report(found), fresh=partial(folder / PAGE))


def report(found: ExecutionSummary) -> str:
    """Return the runs as a page."""
    beside = side_by_side(found.runs)
    parts = [body(Document("", beside))] if beside else []
    for place, run in enumerate(found.runs):
        parts += _run(run, f"r{place}")
    parts.append(body(Document("", [last_section(found)])))
    return page("; ".join(run.title for run in found.runs), "".join(parts), _STYLE)


def _run(run: RunSummary, name: str) -> Iterator[str]:
    """Yield what was tested, the table of promises, and the sections of *run*; *name*: of its links."""
    simulated = run.run.simulated
    yield f'<div class="head">{body(Document(run.title, [Section("", head(run))], simulated))}</div>'
    # in the alphabet, too, what was not kept comes first
    ordered = sorted(run.rows, key=lambda row: row.record.counts_as)
    if ordered:
        yield _promises(ordered, name)
    for row in ordered:
        document = sentence_document(run.run, row, simulated)
        yield f'<section id="{name}-{row.record.number}">{body(document)}</section>\n'
    yield body(Document("", [Section("", [evidence(run)])]))


def sentence_document(run: RecordedRun, row: SentenceRow, simulated: bool) -> Document:
    """Return all about a sentence: why, where its frames went, its picture and its trials."""
    record = row.record
    trials = [one.trial for one in run.trials_by_number.get(record.number, ())]
    title = f"{record.verdict}: {record.sentence}"
    margin = "" if row.margin is None else f", margin {row.margin_text}"
    outcome = "" if row.carries == NOTHING else f"{figure_heading([row])} {row.carries}{margin}"
    details = [line.strip().removeprefix(f"{title}: ") for line in record.message.splitlines()]
    ledgers = ledgers_document(record.ledgers, "").sections
    sections = [Section(title, [Note(outcome, strong=True), Items(details)]), *ledgers]
    if trials:
        picture = Figure(sentence_plot(record, trials, title, simulated), title)
        table = trials_document(record, trials, "").sections[0].parts
        work = workers_plot(trials, WORKERS, simulated)
        workers = [Figure(work, WORKERS)] if work else []
        shown, folded = ([], workers) if record.verdict == Ruling.PASS.value else (workers, [])
        sections.append(Section("", [picture, *shown, Folded("Its trials, frame by frame", [*folded, *table])]))
    if record.why and record.why.load:
        read = under_load_document(record.why.load, "").sections[0].parts
        sections.append(Section("", [Folded("The router's workers, processors and queues at this load", read)]))
    return Document("", sections)


# -- the table of promises ---------------------------------------------------------------------------------------------


def _promises(rows: Sequence[SentenceRow], name: str) -> str:
    """Return the table of *rows*, without the columns that say nothing."""
    scale = _scale(rows)
    columns = {
        "promised": [_promised(row, name) for row in rows],
        figure_heading(rows): [escape(row.carries.replace(NOTHING, "")) for row in rows],
        "published": [escape(row.published) for row in rows],
        f"margin<small>+ is better, pale: not known, edge: ±{100 * scale:g} %</small>": [
            _bar(row, scale) for row in rows
        ],
        "": ["" if row.margin is None else escape(row.margin_text) for row in rows],
        "verdict": [f'<b class="{row.verdict.mark}">{row.verdict}</b>' for row in rows],
    }
    shown = {head: cells for head, cells in columns.items() if any(cells)}
    heads = "".join(f"<th>{head}</th>" for head in shown)
    lines = ("".join(f"<td>{cell}</td>" for cell in cells) for cells in zip(*shown.values(), strict=True))
    filled = "".join(f"<tr>{line}</tr>\n" for line in lines)
    table = f'<table class="promises"><thead><tr>{heads}</tr></thead><tbody>{filled}</tbody></table>'
    return f'<div class="lineproof">{table}</div>\n'


def _promised(row: SentenceRow, name: str) -> str:
    record = row.record
    texts = (shortened(one_line(text), 300) for text in (record.test, *_causes(record)))
    below = "".join(f"<small>{escape(text)}</small>" for text in texts)
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


def _scale(rows: Sequence[SentenceRow]) -> float:
    """Return the margin at the edge of all bars, as a ratio: one that half of them fit into, to show a near miss."""
    sizes = [max(abs(end) for end in row.margin if end is not None) for row in rows if row.margin]
    middle = statistics.median_low(sizes) if sizes else 0.0
    return next((scale for scale in (0.05, 0.1, 0.25) if middle <= scale), 0.5)


def _bar(row: SentenceRow, scale: float) -> str:
    """Return the margin as a bar from the mark of the promise; what is not known of it is paler."""
    if row.margin is None:
        return ""
    wide, high, top = 180.0, 20.0, 3.0
    picture, middle, thick = SvgPicture(wide, high, row.margin_text), wide / 2, high - 2 * top
    ends = [max(-1.0, min(1.0, (scale if end is None else end) / scale)) for end in row.margin]
    sure = 0.0 if ends[0] < 0 < ends[1] else min(ends, key=abs)
    known, unsure = ("#1f7a3f", "#a8d5b7") if ends[0] >= 0 else ("#b3261e", "#ecb4b0")
    picture.rectangle(0, top, wide, thick, "#eef1f4")
    for end, colour in ((ends[0], unsure), (ends[1], unsure), (sure, known)):
        picture.rectangle(middle * min(1, 1 + end), top, middle * abs(end), thick, colour)
    picture.path([(middle, 0), (middle, high)], "#1d2733", 2)
    return picture.svg()
