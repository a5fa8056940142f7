"""Documents: what each of the five forms shows, and that text from elsewhere is inert in all of them."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from lineproof.commands.compare import comparison
from lineproof.commands.rejudge import another_sla, rejudged
from lineproof.commands.verify import verified
from lineproof.core.causes import Stage
from lineproof.core.explanation import Why
from lineproof.core.ledger import DirectionAccount, Drop, Ledger
from lineproof.core.router_facts import RouterFacts
from lineproof.core.rule import Ruling
from lineproof.core.trial import Fault, Load, Problem
from lineproof.core.under_load import CpuLoad, QueueLoad, UnderLoad, WorkerLoad
from lineproof.core.verdict import Try
from lineproof.evidence.compared_runs import ComparedRuns, ComparedSentence, ComparisonRule, RunComparison
from lineproof.evidence.document import (
    Cell,
    Code,
    Column,
    Document,
    Facts,
    Figure,
    Folded,
    Items,
    Note,
    Section,
    Table,
    as_csv,
    as_html,
    as_json,
    as_markdown,
    as_page,
    as_text,
    verdict_cell,
)
from lineproof.evidence.forms import ledgers_document, machine_document, trials_document, under_load_document
from lineproof.evidence.gate import gate_document
from lineproof.evidence.history.trend import trend
from lineproof.evidence.integrity import Alteration, Integrity
from lineproof.evidence.rejudge import AnotherVerdict, AskedSentence, RejudgedRun, RejudgedSentence
from lineproof.evidence.report import WORKERS, report, sentence_document
from lineproof.evidence.run import RecordedRun
from lineproof.evidence.sentence_rows import SentenceRow
from lineproof.evidence.signoff.page import sheet_document
from lineproof.evidence.signoff.sheet import About, Sheet, Waiver
from lineproof.evidence.signoff.signature import Signed
from lineproof.evidence.summary import ExecutionSummary, RunSummary, summary
from lineproof.generators.base import GeneratorPort
from lineproof.methods.scaling import ScalingPoint, ScalingResult
from lineproof.methods.search import CapacityBounds, SearchResult
from lineproof.robot import procedures
from lineproof.studies.forms import document as study_document
from lineproof.studies.page import drawn
from lineproof.studies.results import results_of
from lineproof.studies.study import Study
from lineproof.visible import one_line, visible
from support.evidence_builders import ENVIRONMENT, LINK, Elements, requirement_record, trial, trial_record
from support.paths import ROOT
from support.study_builders import SMALL, measurements

# -- every document, with the same words wherever text is somebody else's


def row_of(words: str, **changes: Any) -> SentenceRow:
    # a sentence that nobody can parse is refused where a record is read
    return SentenceRow(requirement_record(test=words, message=words, **changes), (1.0, 2.0), 0.0)


def run_of(words: str) -> RecordedRun:
    extra = {"suite": words, "goal": {"goal": words}}
    known = replace(ENVIRONMENT, testbed=words, platform=words, software=words, versions={"router.version": words})
    known = replace(known, extra=extra, code={"version": words})
    return RecordedRun(Path(words.replace("\0", "")[:50] or "x"), (), (row_of(words).record,), known, (words,))


def every_part(words: str) -> Document:
    row = {Column(words, words, left=True): Cell(words), Column(words, on_page=True): Cell(words)}
    parts = (Facts({words: words}), Items([words]), Note(words, strong=True), Code(words), Figure("<svg></svg>", words))
    table = Table.of([row, {}])
    sections = [Section(words, [*parts, table, Folded(words, [*parts, table])])]
    return Document(words, sections, data={"rows": [{words: words, "same": words}]})


def an_execution(words: str) -> ExecutionSummary:
    row = row_of(words, verdict="FAIL", ledgers=ledgers(words), extra={"about": {"documentation": words}})
    run = RunSummary(run_of(words), (row, row_of(words)), {"router": words}, (words,))
    study = replace(run, rows=(), tables=words, instead=words)
    return ExecutionSummary((run, replace(run, run=replace(run.run, path=Path("other"))), study), (words,), words)


def test_the_work_of_the_workers_is_shown_of_what_is_no_pass() -> None:
    readings = {"worker_busy.CPU 0": 1.0}
    trial = trial_record().trial
    read = replace(trial, outcome=replace(trial.outcome, readings=readings))
    for verdict, is_shown in {"PASS": False, "FAIL": True, "INCONCLUSIVE": True}.items():
        row = replace(row_of("x", verdict=verdict), trials=(read,))
        *_, last = sentence_document(run_of("x"), row, True).sections
        assert [part.alt for part in last.parts if isinstance(part, Figure)][1:] == [WORKERS] * is_shown
        (folded,) = (part for part in last.parts if isinstance(part, Folded))
        assert any(isinstance(part, Figure) for part in folded.parts) is not is_shown


def test_a_report_has_the_use_of_each_queue_and_of_all_of_an_interface() -> None:
    queues = tuple(QueueLoad("cxl0", queue, f"CPU {queue}", 1e6 + queue) for queue in range(2))
    record = replace(row_of("x", verdict="FAIL").record, why=Why(load=UnderLoad(queues=queues)))
    shown = as_text(sentence_document(run_of("x"), SentenceRow(record, (1.0, 2.0), 0.0), True))
    assert re.search(r"cxl0 1 +CPU 1 +1,000,001", shown) and re.search(r"cxl0 all +2,000,001", shown)


def a_summary(words: str) -> Document:
    return summary(an_execution(words))


def compared_of(words: str) -> RunComparison:
    verdicts = [row_of(words, verdict=verdict) for verdict in ("PASS", "FAIL", "INCONCLUSIVE")]
    rule, couples = ComparisonRule(), [(before, after) for before in (*verdicts, None) for after in verdicts]
    sentences = [ComparedSentence(*couple, rule, suite=words, why_not=words) for couple in couples]
    pair = ComparedRuns(run_of(words), run_of(words), sentences, verdicts[:1])
    return RunComparison([pair], rule, [words], [words])


def a_verification(words: str) -> Document:
    run = Integrity(Path("run"), (Alteration(words, words, 3),), (words,), {}, {}, None)
    return verified([(run, Signed(words, words, False))])


def a_rejudged_run(words: str) -> Document:
    sentence = RejudgedSentence(row_of(words).record, None, words, (words,))
    return rejudged(RejudgedRun(run_of(words), (sentence,), (words,)), {"version": words, "commit": words})


def another_suite(words: str) -> Document:
    asked = AskedSentence(words, words)
    return another_sla(Path("run"), True, [AnotherVerdict(asked, ruling, words, words) for ruling in Ruling])


def a_router(words: str) -> Document:
    facts = RouterFacts(os=words, kernel=words, cpu=words, other={words: words}, unread={words: words})
    return machine_document("The router", replace(facts, differences=(words,)))


def trials_of(words: str) -> Document:
    spoilt = replace(trial(), problems=(Problem(Fault.GENERATOR, words),))
    return trials_document(requirement_record(profile=words), [spoilt], words)


def ledgers(words: str) -> tuple[Ledger, ...]:
    drops = tuple(Drop(stage, words, words, 1, words) for stage in Stage)
    directions = (DirectionAccount(0, 1, words, words, 9, 4, 8, 5, drops),)
    return Ledger(1, 2, directions, drops, drops), Ledger(3, 3, directions, missing=words)


def under_load(words: str) -> Document:
    workers, queues, cpus = (WorkerLoad(words),), (QueueLoad(words, 0, words),), (CpuLoad(0, threads={words: 0.5}),)
    more: dict[str, Any] = {"counters": {words: 1.0}, "condition": {words: words}, "unread": {words: words}}
    return under_load_document(UnderLoad(1.0, 1.0, 1.0, workers, queues, cpus, **more), words)


def procedures_of(words: str) -> Document:
    unknown = ("throughput", "percent", "mean", "spread", "overload", "reduced", "load", "by_loss", "by_time")
    fields: dict[str, Any] = dict.fromkeys((*unknown, "implied_buffer_time", "corrected_buffer_time"))
    fields |= dict.fromkeys(("points", "directions", "bursts", "times", "steps", "trials"), ())
    fields |= {"line_pps": 1.0, "duration": 1.0, "after": 1.0, "lost": 0}
    result: Any = SimpleNamespace(**fields, size=64, unlimited=False, ended=words, kind=words, findings=(words,))
    bounds = CapacityBounds(words, 0.0, Load(1.0), None, None, False)
    goal = requirement_record().promise.goal
    search = SearchResult((bounds,), goal, Load(1.0), Load(2.0), 0.1, 1.0, trials=(), ended=words)
    points = ScalingPoint(1, None, words), ScalingPoint(2, search)
    rfc2544 = (value for value in vars(procedures).values() if isinstance(value, procedures.Procedure))
    parts = [part for procedure in rfc2544 for part in procedure.parts([result])]
    parts += [*procedures.scaling_parts(ScalingResult(words, points)), *procedures.search_parts(search, 64.0, LINK)]
    return Document(words, [Section(words, [*parts, *procedures.ramp_parts(result)])])


def a_trend(words: str) -> Document:
    named = dict.fromkeys(("platform", "software", "testbed", "goal", "sentence", "test", "release", "verdict"), words)
    shared = {**named, "kind": "mean", "unit": "pps", "simulated": True, "closed": False, "at_least": True}
    values = enumerate([5e6, 5e6 + 1] * 3 + [4e6, 4e6 + 1] * 3)
    rows = [{**shared, "run": f"{words}{number}", "started": number, "value": value} for number, value in values]
    points: list[Any] = [SimpleNamespace(**row, _asdict=row.copy) for row in rows]
    return trend(points)


def a_study(words: str) -> Document:
    study = Study.model_validate(yaml.safe_load(SMALL)).model_copy(
        update=dict.fromkeys(("title", "about", "source"), words)
    )
    records = measurements(study, {"vpp": [33.5, 33.6], "linux": [4.3, None]}, reason=words)
    found = replace(results_of(study, records, planned=9), run=words, testbed=words, machine=words)
    return study_document(found, drawn(found))


def a_sheet(words: str) -> Document:
    facts, named = RouterFacts(os=words, firmware=words, other={words: words}), {words: words, "name": words}
    port = GeneratorPort(0, words, LINK, True, words)
    environment = replace(ENVIRONMENT, ports=(port,), interfaces={"0": words}, router_facts=facts, code={words: words})
    made = datetime(2026, 11, 22, tzinfo=UTC)
    unkept = row_of(words, verdict="FAIL", other_tries=(Try(words, words, 1.0, 1.0),))
    record = trial_record(problems=(Problem(Fault.GENERATOR, words),))
    run = replace(run_of(words), trials=(record,), requirements=(unkept.record,), environment=environment)
    waiver = Waiver.model_construct(sentence=unkept.record.sentence, author=words, reason=words, expires=words)
    parties: Any = {"supplier": named}
    about = About.model_construct(parties=parties, facts=named, deviations=(words,), waivers=(waiver,))
    known = RunSummary(run, (unkept,), {"router": words, "goal": words}, (words,))
    return sheet_document(Sheet(run, known, environment, about, words, made, words, (words,), draft=True))


DOCUMENTS: Mapping[str, Callable[[str], Document]] = {
    "every part": every_part,
    "summary": a_summary,
    "comparison": lambda words: comparison(compared_of(words)),
    "gate_document": lambda words: gate_document(compared_of(words), words),
    "verified": a_verification,
    "rejudged": a_rejudged_run,
    "another_sla": another_suite,
    "machine_document": a_router,
    "trials_document": trials_of,
    "ledgers_document": lambda words: ledgers_document(ledgers(words), words),
    "sentence_document": lambda words: sentence_document(run_of(words), an_execution(words).runs[0].rows[0], True),
    "under_load_document": under_load,
    "procedures": procedures_of,
    "document": a_study,
    "trend": a_trend,
    "sheet_document": a_sheet,
}


def test_every_function_that_makes_a_document_is_among_them() -> None:
    nodes = (
        node
        for path in (ROOT / "libraries" / "lineproof").rglob("*.py")
        for node in ast.parse(path.read_text("utf-8")).body
    )
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"))
    made = {one.name for one in functions if one.returns is not None and ast.unparse(one.returns) == "Document"}
    assert made == DOCUMENTS.keys() - {"every part", "procedures"}


HOSTILE = (
    '=HYPERLINK("http://x","y") <script>alert(1)</script> | `x` [a](b) \x1b[2J\r\n# not a title\x00\u202e\u2066',
    "@somebody ![x](http://x) www.example.org &lt; &#60; \\",
    "1. <img src=x onerror=alert(1)>\n- a\n===\n```\n[a](http://x)\n````\n</pre></style><b>",
    "\x9b31m\x85\u2028\ud800\x7f  indented\n    [a](http://x)",
    "-1+cmd|' /C calc'!A0\n\n<!-- ",
    "long" * 1_000,
    "long words " * 1_000,
    "",
)


PICTURES = {"g", "rect", "line", "pattern", "polygon", "polyline", "text"}
ELEMENTS = PICTURES | {
    *("html", "head", "meta", "title", "body", "div", "style", "h1", "h2", "p", "ul", "li", "pre", "svg", "details"),
    *("summary", "table", "thead", "tbody", "tr", "th", "td", "small"),
}


def texts(document: Document) -> Iterator[str]:
    """The five forms, each checked for what its reader's program would obey."""
    text, markdown, page = as_text(document), as_markdown(document), as_page(document)
    yield text
    yield page
    found = Elements(page)
    assert found.found <= ELEMENTS and not found.addresses
    yield markdown
    kinds = {each.type for token in MarkdownIt("gfm-like", {"linkify": False}).parse(markdown) for each in _all(token)}
    assert not [kind for kind in kinds if kind.startswith(("html", "link", "image", "s_", "code_block"))]
    sheet = as_csv(document)
    yield sheet.replace("\r\n", "\n")
    rows = list(csv.reader(io.StringIO(sheet)))
    assert len({len(row) for row in rows}) <= 1
    formulas = [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t"))]
    assert all(map(number, formulas))
    yield as_json(document)


def _all(token: Any) -> Iterator[Any]:
    yield token
    yield from token.children or ()


def number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def check(form: str, words: str) -> None:
    document = DOCUMENTS[form](words)
    for shown in texts(document):
        assert all(each.isprintable() or each in "\n\t" or each.isspace() for each in shown)
        assert not set(shown) & set("\r\x85\u2028\u2029\x1c\x1d\x1e\x0b\x0c")
    assert json.loads(as_json(document))["title"] == visible(document.title)


@pytest.mark.parametrize("words", HOSTILE)
@pytest.mark.parametrize("form", DOCUMENTS)
def test_text_from_elsewhere_is_inert_in_every_form(form: str, words: str) -> None:
    check(form, words)


@pytest.mark.parametrize("words", HOSTILE)
def test_text_from_elsewhere_is_inert_in_the_report(words: str) -> None:
    page = report(an_execution(words))
    found = Elements(page)
    assert found.found <= ELEMENTS | {"a", "b", "section"} and found.addresses == {"#r0-1", "#r1-1"}
    assert all(each.isprintable() or each in "\n" for each in page)


@pytest.mark.parametrize("form", DOCUMENTS)
@settings(max_examples=15, deadline=None)
@given(words=st.text(alphabet=st.one_of(st.sampled_from("|`*_<>[]()#~$&@!-+=\\\n\x1b. w1"), st.characters())))
def test_any_text_is_inert_in_every_form(form: str, words: str) -> None:
    check(form, words)


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=st.one_of(st.sampled_from("|`*_<>[]()#~$&@!-+=\\\n\x1b. w1"), st.characters())))
def test_markdown_shows_any_words_as_they_are(words: str) -> None:
    document = Document("", [Section("", [Note(f"x{words}"), Items([words]), Note(words)])])
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(as_markdown(document))
    shown = [each for token in tokens for each in _all(token) if each.type not in ("inline",)]
    assert not [each for each in shown if each.type not in ("text", "text_special") and each.content]
    text = "".join(each.content for each in shown)
    assert text == one_line(f"x{words}") + 2 * one_line(words)


# -- what the forms show


TABLE = Table.of(
    [
        {
            Column("test", left=True, on_page=True): "T",
            Column("sentence", left=True): "64b ≥ 5 Mpps",
            Column("measured", "Mpps"): "5.5",
            Column("verdict", left=True): verdict_cell("FAIL"),
        }
    ]
)
PARTS = (Note("Read me.", strong=True), Facts({"a": "b"}), Code("x  y"), Folded.of("FAIL: it\n  because", "more"))
DATA = {"answer": "FAIL", "sentences": [{"sentence": "64b ≥ 5 Mpps", "measured": 5.5, "low": None, "high": True}]}
DOCUMENT = Document("Title", [Section("One", [*PARTS, TABLE, Items(["last"])])], True, DATA)


def test_text_has_what_fits_a_terminal() -> None:
    assert as_text(DOCUMENT) == (
        "Title\nSIMULATED – not a measurement\n\nOne\nRead me.\na  b\nx  y\nFAIL: it\n  - because\n  - more\n\n"
        "sentence      measured  verdict\n------------  --------  -------\n"
        "64b ≥ 5 Mpps  5.5       FAIL\n\n- last\n"
    )


def test_markdown_has_the_columns_of_a_page() -> None:
    assert as_markdown(DOCUMENT) == (
        "## Title\n\n**SIMULATED – not a measurement**\n\n### One\n\n**Read me.**\n\n- a: b\n\n```\nx  y\n```\n\n"
        "**FAIL: it**\n\n- because\n- more\n\n"
        "| test | sentence | measured \\[Mpps\\] | verdict |\n| --- | --- | --- | --- |\n"
        "| T | 64b ≥ 5 Mpps | 5.5 | **FAIL** |\n\n- last\n"
    )


def test_html_has_the_columns_of_a_page_and_how_cells_look() -> None:
    shown = as_html(DOCUMENT)
    assert "<h1>Title</h1>" in shown and "<th>measured<small>Mpps</small></th>" in shown
    assert '<td class="left bad">FAIL</td>' in shown
    assert "<details><summary>FAIL: it</summary><ul><li>because</li><li>more</li></ul></details>" in shown
    selectors = [line.split("{")[0] for line in shown.partition("</style>")[0].splitlines() if "{" in line]
    assert all(selector.startswith(".lineproof") for selector in selectors)


def test_csv_and_json_have_the_data() -> None:
    assert as_csv(DOCUMENT) == "sentence,measured,low,high\r\n64b ≥ 5 Mpps,5.5,,true\r\n"
    assert as_csv(Document("")) == ""
    assert json.loads(as_json(DOCUMENT)) == {"title": "Title", "simulated": True, **DATA}


def test_a_wide_table_keeps_to_the_width_and_its_first_column_is_the_widest() -> None:
    columns = [Column("name"), *(Column(f"column {number}") for number in range(4))]
    lines = as_text(Document("", [Section("", [Table.of([dict.fromkeys(columns, "word " * 20)])])]), 80).splitlines()
    assert max(map(len, lines)) <= 80 and len(lines[1].split()[0]) >= 28


def test_a_path_is_never_broken() -> None:
    path = f"/{'long-name/' * 20}"
    assert path in as_text(Document("", [Section("", [Note(f"It is in {path}"), Items([path]), Facts({"a": path})])]))
