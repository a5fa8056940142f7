"""Documents: what each of the five forms shows, and that text from elsewhere is inert in all of them."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from lineproof.core.ledger import DirectionAccount, Drop, Ledger
from lineproof.core.telemetry import Stage
from lineproof.core.trial import Fault, Problem
from lineproof.core.under_load import QueueLoad, UnderLoad, Why
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
from lineproof.evidence.report import WORKERS, report, sentence_document
from lineproof.evidence.run import RecordedRun
from lineproof.evidence.summary import ExecutionSummary, RunSummary, SentenceRow
from lineproof.visible import one_line, visible
from support.evidence_builders import ENVIRONMENT, SENTENCE, Elements, requirement_record, trial_record

# -- the same words wherever text is somebody else's: in every part of which documents are made, and in the report


QUICK = requirement_record().goal


def row_of(words: str, **changes: Any) -> SentenceRow:
    # a sentence that nobody can parse is refused where a record is read
    return SentenceRow(requirement_record(test=words, message=words, **changes), (1.0, 2.0), 0.0)


def run_of(words: str) -> RecordedRun:
    known = replace(ENVIRONMENT, testbed=words, platform=words, software=words, versions={"router.version": words})
    known = replace(known, suite=words, goal=QUICK.model_copy(update={"goal": words}), code={"version": words})
    return RecordedRun(Path(words.replace("\0", "")[:50] or "x"), (), (row_of(words).record,), known, (words,))


def every_part(words: str) -> Document:
    row = {Column(words, words, left=True): Cell(words), Column(words, on_page=True): Cell(words)}
    parts = (Facts({words: words}), Items([words]), Note(words, strong=True), Code(words), Figure("<svg></svg>", words))
    table = Table.of([row, {}])
    sections = [Section(words, [*parts, table, Folded(words, [*parts, table])])]
    return Document(words, sections, data={"rows": [{words: words, "same": words}]})


def an_execution(words: str) -> ExecutionSummary:
    row = row_of(words, verdict="FAIL", ledgers=ledgers(words), documentation=words)
    run = RunSummary(run_of(words), (row, row_of(words)), {"router": words}, (words,))
    study = replace(run, rows=(), tables=words, instead=words)
    return ExecutionSummary((run, replace(run, run=replace(run.run, path=Path("other"))), study), (words,), words)


def test_the_work_of_the_workers_is_shown_of_a_fail() -> None:
    readings = {"worker_busy.CPU 0": 1.0}
    trial = trial_record().trial
    read = replace(trial, outcome=replace(trial.outcome, readings=readings))
    for verdict, is_shown in {"PASS": False, "FAIL": True, "INCONCLUSIVE": False}.items():
        row = replace(row_of("x", verdict=verdict), trials=(read, replace(read, number=2)))
        *_, last = sentence_document(run_of("x"), row, True).sections
        assert [part.alt for part in last.parts if isinstance(part, Figure)][1:] == [WORKERS] * is_shown
        *_, folded = (part for part in last.parts if isinstance(part, Folded))
        assert any(isinstance(part, Figure) for part in folded.parts) is not is_shown


@pytest.mark.parametrize(
    ("verdict", "second_line", "told", "untold"),
    [
        ("FAIL", "more", "<small>no-buffer at eth0: no buffer was free</small>", "lost frames"),
        ("INCONCLUSIVE", "PASS at the better ends of its figures", "a link was down: port 1", "better ends"),
        ("INCONCLUSIVE", "ended early", "<small>ended early</small><small>a link was down: port 1", "better ends"),
    ],
)
def test_the_first_table_has_cause_and_place_of_what_is_no_pass(
    verdict: str, second_line: str, told: str, untold: str
) -> None:
    spoilt = replace(trial_record(losses=(5,)).trial, problems=(Problem(Fault.LINK_DOWN, "port 1"),))
    message = f"{verdict}: {SENTENCE}: summary\n  {second_line}"
    drop = Drop(Stage.ARRIVING, "no-buffer", "eth0", 5, "no buffer was free")
    ledger = Ledger(1, 1, (DirectionAccount(0, 1, "eth0", "eth1", 100, 95, 95, 95, (drop,)),))
    record = requirement_record(verdict=verdict, message=message, ledgers=(ledger,))
    run = RunSummary(run_of("x"), (SentenceRow(record, (1.0, 2.0), 0.0, trials=(spoilt,)),), {})
    table, _ = report(ExecutionSummary((run,))).split("<section", 1)
    assert told in table and untold not in table


def test_a_report_has_the_use_of_each_queue_and_of_all_of_an_interface() -> None:
    queues = tuple(QueueLoad("cxl0", queue, f"CPU {queue}", 1e6 + queue) for queue in range(2))
    record = replace(row_of("x", verdict="FAIL").record, why=Why(load=UnderLoad(queues=queues)))
    shown = as_text(sentence_document(run_of("x"), SentenceRow(record, (1.0, 2.0), 0.0), True))
    assert re.search(r"cxl0 1 +CPU 1 +1,000,001", shown) and re.search(r"cxl0 all +2,000,001", shown)


def ledgers(words: str) -> tuple[Ledger, ...]:
    drops = tuple(Drop(stage, words, words, 1, words) for stage in Stage)
    directions = (DirectionAccount(0, 1, words, words, 9, 4, 8, 5, drops),)
    return Ledger(1, 2, directions, drops, drops), Ledger(3, 3, directions, missing=words)


HOSTILE = (
    '=HYPERLINK("http://x","y") <script>alert(1)</script> | `x` [a](b) \x1b[2J\r\n# not a title\x00\u202e\u2066',
    "@somebody ![x](http://x) www.example.org &lt; &#60; \\",
    "1. <img src=x onerror=alert(1)>\n- a\n===\n```\n[a](http://x)\n````\n</pre></style><b>",
    "\x9b31m\x85\u2028\ud800\x7f  indented\n    [a](http://x)",
    "-1+cmd|' /C calc'!A0\n\n<!-- ",
    "long" * 1_000,
    "long words " * 100,
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


def check(words: str) -> None:
    document = every_part(words)
    for shown in texts(document):
        assert all(each.isprintable() or each in "\n\t" or each.isspace() for each in shown)
        assert not set(shown) & set("\r\x85\u2028\u2029\x1c\x1d\x1e\x0b\x0c")
    assert json.loads(as_json(document))["title"] == visible(document.title)


@pytest.mark.parametrize("words", HOSTILE)
def test_text_from_elsewhere_is_inert_in_every_form_and_in_the_report(words: str) -> None:
    check(words)
    page = report(an_execution(words))
    found = Elements(page)
    assert found.found <= ELEMENTS | {"a", "b", "section"} and found.addresses == {"#r0-1", "#r1-1"}
    assert all(each.isprintable() or each in "\n" for each in page)


@settings(max_examples=100, deadline=None)
@given(words=st.text(alphabet=st.one_of(st.sampled_from("|`*_<>[]()#~$&@!-+=\\\n\x1b. w1"), st.characters())))
def test_any_text_is_inert_in_every_form(words: str) -> None:
    check(words)


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


def test_html_has_the_columns_of_a_page_and_how_cells_look() -> None:
    row = {Column("test", on_page=True): "T", Column("measured", "Mpps"): "5.5"}
    table = Table.of([row | {Column("verdict", left=True): verdict_cell("FAIL")}])
    shown = as_html(Document("Title", [Section("One", [Folded.of("FAIL: it\n  because", "more"), table])]))
    assert "<h1>Title</h1>" in shown and "<th>measured<small>Mpps</small></th>" in shown
    assert '<td class="left bad">FAIL</td>' in shown
    assert "<details><summary>FAIL: it</summary><ul><li>because</li><li>more</li></ul></details>" in shown
    selectors = [line.split("{")[0] for line in shown.partition("</style>")[0].splitlines() if "{" in line]
    assert all(selector.startswith(".lineproof") for selector in selectors)


def test_a_wide_table_keeps_to_the_width_and_its_first_column_is_the_widest() -> None:
    columns = [Column("name"), *(Column(f"column {number}") for number in range(4))]
    lines = as_text(Document("", [Section("", [Table.of([dict.fromkeys(columns, "word " * 20)])])]), 80).splitlines()
    assert max(map(len, lines)) <= 80 and len(lines[1].split()[0]) >= 28


def test_a_path_is_never_broken() -> None:
    path = f"/{'long-name/' * 20}"
    assert path in as_text(Document("", [Section("", [Note(f"It is in {path}"), Items([path]), Facts({"a": path})])]))
