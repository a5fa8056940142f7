"""The report: one page of the runs of an execution, from their records alone, without a network.

First the table of promises, what was not kept before what was, then a section for each sentence. The page is in the
folder of the execution's first run.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path

from ..core.ledger import Ledger
from ..core.phrases import percent
from ..core.rule import Ruling
from ..core.trial import Trial, loss_ratio
from ..core.verdict import where_lost, widened_by
from ..documents.chart import SvgPicture, svg_image
from ..documents.document import (
    Cell,
    Column,
    Document,
    Figure,
    Folded,
    Items,
    Note,
    PageCell,
    Part,
    Section,
    Table,
    body,
    page,
)
from ..files import write_whole
from ..units import counted, si
from ..visible import one_line, shortened
from .forms import ledgers_document, trials_document, under_load_document
from .pictures import by_load, sentence_plot, workers_plot
from .records import CharacterisationRecord, RequirementRecord
from .run_files import PAGE, partial
from .summary import (
    NOTHING,
    ExecutionSummary,
    RunSummary,
    SentenceRow,
    evidence,
    figure_heading,
    head,
    last_section,
    side_by_side,
    table_of_sentences,
)

WORKERS = "The router's workers in each trial"
"""Title of the picture of their work."""

_LONGEST_TABLE = 20
"""Rows that a table may have that is seen at once."""


def write_report(folder: Path, execution: ExecutionSummary) -> None:
    """Write the report into *folder*. Raises TestbedError."""
    write_whole(folder / PAGE, report(execution), fresh=partial(folder / PAGE))


def report(execution: ExecutionSummary) -> str:
    """Return the runs as a page."""
    beside = side_by_side(execution.runs)
    parts = [body(Document("", beside))] if beside else []
    for place, run in enumerate(sorted(execution.runs, key=_first_to_read)):
        parts += _run(run, f"r{place}")
    parts.append(body(Document("", [last_section(replace(execution, page=""))])))
    html = "".join(parts)
    # the seconds of a ramp are those that trex-loadtest-viz draws
    script = Path(__file__).with_name("ramp.js").read_text("utf-8") if "data-ramp=" in html else ""
    style = Path(__file__).with_suffix(".css").read_text("utf-8")
    return page("; ".join(run.title for run in execution.runs), html, style, script)


def _first_to_read(run: RunSummary) -> tuple[str, bool]:
    """Return the place of *run* on the page: in the alphabet, too, what was not kept comes first."""
    return min((row.record.counts_as for row in run.sentences), default="PASS"), not run.incomplete


def _run(run: RunSummary, name: str) -> Iterator[str]:
    """Yield what was tested, the table of promises, and the sections of *run*; *name*: of its links."""
    simulated = run.run.simulated
    yield f'<div class="head">{body(Document(run.title, [Section("", head(run))], simulated))}</div>'
    ordered = sorted(run.sentences, key=lambda row: row.record.counts_as)
    if ordered:
        yield _promises(ordered, name)
    for row in ordered:
        document = sentence_document(row, simulated)
        yield f'<section id="{name}-{row.record.number}">{body(document)}</section>\n'
    for record in run.run.results:
        if isinstance(record, CharacterisationRecord):
            seconds = escape(json.dumps(record.loadtest["stats"])) if record.loadtest else ""
            ramp = f'<div class="lineproof" data-ramp="{seconds}"></div>' if seconds else ""
            yield f"<section>{body(Document('', [_characterisation(record)]))}{ramp}</section>\n"
    yield body(Document("", [Section("", evidence(run))]))


def _characterisation(record: CharacterisationRecord) -> Section:
    """Return what was measured without a promise, as the log shows it; a long table is folded."""
    picture = [Figure(svg_image(record.method, record.picture), record.method)] if record.picture else []
    parts: list[Part] = [
        Folded(f"Table of {counted(len(part.rows), 'row')}", [part])
        if isinstance(part, Table) and len(part.rows) > _LONGEST_TABLE
        else part
        for part in record.shown
    ]
    return Section(f"{record.test}: {record.method} of {record.sentence}", [*picture, *parts])


def sentence_document(row: SentenceRow, simulated: bool) -> Document:
    """Return all about a sentence: why, its picture, where its frames went, and its trials."""
    record = row.record
    title, outcome = f"{record.verdict}: {record.sentence}", row.outcome
    details = [line.strip().removeprefix(f"{title}: ") for line in record.message.splitlines()]
    # the ledger that the message tells of comes first, and says it itself, as the outcome says what is carried
    ledgers = sorted(record.ledgers, key=lambda ledger: not any(line.endswith(where_lost(ledger)) for line in details))
    told = tuple(map(where_lost, ledgers))
    details = [line for line in details if not line.endswith(told) and not (outcome and line.startswith("carries "))]
    notes = [Note(record.documentation)] if record.documentation else []
    parts: list[Part] = [Note(outcome, strong=True), *notes, Items(details), *_load_read(record), *_tried(row)]
    is_fail = record.verdict == Ruling.FAIL.value
    work = workers_plot(row.trials, WORKERS, simulated)
    workers = [Figure(work, WORKERS)] if work else []
    if row.trials:
        shown = f"{title}: {outcome}" if row.search else title
        plot = sentence_plot(record, row.trials, shown, simulated, row.searched)
        parts += [Figure(plot, title), *(workers if is_fail else [])]
    accounts = [section.parts for section in ledgers_document(ledgers, "").sections]
    if is_fail and accounts:
        parts += accounts.pop(0)
    if accounts:
        named = counted(len(accounts), "other trial" if is_fail else "trial")
        parts.append(Folded(f"Where frames went in {named}", [part for account in accounts for part in account]))
    if row.trials:
        table = trials_document(record, row.trials, "").sections[0].parts
        parts.append(Folded("Its trials, frame by frame", [*([] if is_fail else workers), *table]))
    if record.deviations:
        parts.append(Folded("What was done otherwise than the methods ask for", [Items(record.deviations)]))
    return Document("", [Section(title, parts)])


def _load_read(record: RequirementRecord) -> list[Part]:
    """Return how busy the router was at the load of which a cause of loss was found."""
    load = record.why.load if record.why else None
    if load is None:
        return []
    busy = [(row.thread, row.busy) for row in load.workers] or [(f"CPU {cpu.cpu}", cpu.busy) for cpu in load.cpus]
    shares = ", ".join(f"{name} {share:.0%}" for name, share in busy if share is not None)
    title = f"The router while {si(load.offered_pps, 'pps')} were offered once more, busy: {shares or 'not read'}"
    return [Folded(title, [part for section in under_load_document(load, "").sections for part in section.parts])]


def _tried(row: SentenceRow) -> list[Part]:
    """Return the loads at which the margin was searched for, in their order, and what was lost there."""
    loads = by_load(row.searched)
    tried = (
        f"{load}pps{_less_sent(own)} in {counted(len(own), 'trial')}, lost {percent(loss_ratio(own, in_total=True))}"
        for load, own in loads.items()
    )
    return [Note(f"Tried for the margin, into each port: {'; '.join(tried)}")] if loads else []


def _less_sent(trials: Sequence[Trial]) -> str:
    """Return what the generator sent into the port that got least, where *trials* asked for at least 1 % more."""
    asked, seconds = trials[0].outcome.load.pps, sum(trial.seconds.high for trial in trials)
    sent = sum(min(row.offered for row in trial.outcome.directions) for trial in trials) / seconds
    return f" (sent {si(sent, 'pps')})" if sent < 0.99 * asked else ""


# -- the table of promises ---------------------------------------------------------------------------------------------


def _promises(sentences: Sequence[SentenceRow], name: str) -> str:
    """Return the table of *sentences*, which lead to their sections; *name*: of the run's links."""
    scale = _scale(sentences)
    bar = Column("margin", f"+ is better, pale: not known, arrow: beyond {100 * scale:g} %", left=True)
    cells = [
        {
            Column("promised", left=True): PageCell(
                row.record.sentence,
                section=f"{name}-{row.record.number}",
                below=[shortened(one_line(text), 300) for text in (row.record.test, *_causes(row))],
            ),
            Column(figure_heading(sentences), left=True): Cell(row.carries.replace(NOTHING, "not known")),
            Column("published", left=True): Cell(row.published),
            bar: PageCell("" if row.margin is None else row.margin_text, picture=_bar(row, scale)),
            Column("verdict", left=True): PageCell(str(row.verdict), row.verdict.mark),
        }
        for row in sentences
    ]
    return f'<div class="promises">{body(Document("", [Section("", [table_of_sentences(cells)])]))}</div>\n'


def _causes(row: SentenceRow) -> list[str]:
    """Return why a sentence is no PASS: where most frames were lost, and why; or what keeps it from being proven."""
    record, (_, *details) = row.record, row.record.message.splitlines() or [""]
    if record.verdict == Ruling.PASS.value:
        return []
    if record.verdict == Ruling.INCONCLUSIVE.value:
        judged = [trial for trial in row.trials if trial.number]
        doubt, *_ = [*widened_by(record.promise, judged, Ruling.INCONCLUSIVE), ""]
        problems = (problem for trial in judged for problem in trial.problems)
        causes = [str(next(problem for problem in problems if problem.fault.value in doubt))] if doubt else details[1:2]
        undecided = [line for line in details[:1] if not (doubt and "better ends" in line)]
        return [record.breakdown] if record.breakdown else [*undecided, *causes]
    places = [_place(ledger) for ledger in record.ledgers if ledger.whole.lost][-1:]
    return [*places, *([record.why.explanation.words] if record.why and record.why.explanation else [])]


def _place(ledger: Ledger) -> str:
    """Return by which counter of the router most of the lost frames of *ledger* went, and what it means."""
    most = next(iter(ledger.drops), None)
    if (
        most is None
        or ledger.missing
        or most.began_anew
        or most.frames < ledger.whole.lost / 2 / len(ledger.directions)
    ):
        return where_lost(ledger)
    return f"{most.label}: {most.meaning}" if most.meaning else most.label


def _scale(sentences: Sequence[SentenceRow]) -> float:
    """Return the margin at the edge of all bars, as a ratio: one that half of them fit into, to show a near miss."""
    sizes = [max(filter(math.isfinite, map(abs, row.margin))) for row in sentences if row.margin and not row.ends]
    middle = statistics.median_low(sizes) if sizes else 0.0
    return next((scale for scale in (0.05, 0.1, 0.25) if middle <= scale), 0.5)


def _bar(row: SentenceRow, scale: float) -> str:
    """Return the margin as a bar from the mark of the promise; what is not known of it is paler.

    Of a sentence that is not decided only the two ends are drawn. An arrow is where there is more than can be shown.
    """
    if row.margin is None:
        return ""
    wide, high, top = 180.0, 20.0, 3.0
    picture, middle, thick = SvgPicture(wide, high, row.margin_text), wide / 2, high - 2 * top
    ends = [max(-1.0, min(1.0, end / scale)) for end in row.margin]
    sure = 0.0 if row.ends or ends[0] < 0 < ends[1] else min(ends, key=abs)
    known, unsure = ("#1f7a3f", "#93c9a5") if ends[0] >= 0 else ("#b3261e", "#e29a95")
    known, unsure = ("#8a6d1a", "#dcc272") if row.ends else (known, unsure)
    picture.rectangle(0, top, wide, thick, "#eef1f4")
    start = ends[0] if row.ends else 0.0
    for begin, end, colour in ((start, ends[0], unsure), (start, ends[1], unsure), (0.0, sure, known)):
        picture.rectangle(middle * (1 + min(begin, end)), top, middle * abs(end - begin), thick, colour)
    picture.path([(middle, 0), (middle, high)], "#1d2733", 2)
    for end, place in zip(row.margin, ends, strict=True):
        x, back = middle * (1 + place), math.copysign(4, place)
        if abs(end) > scale:
            arrow = [(x - 2 * back, top + 2), (x - back, high / 2), (x - 2 * back, high - top - 2)]
            picture.path(arrow, "#ffffff" if abs(sure) == 1 else known, 2)
        elif row.ends:
            picture.path([(x, top), (x, high - top)], known, 2)
    return picture.svg()
