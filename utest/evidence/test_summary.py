"""Documents of runs that people read: the summary, the report, and the forms of any document."""

from __future__ import annotations

import csv
import io
import json
import math
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from lineproof.commands.main import main
from lineproof.commands.summary import FORMATS
from lineproof.core.ledger import DirectionAccount, Drop, Ledger
from lineproof.core.telemetry import Stage
from lineproof.core.trial import DirectionCount, Fault, Problem, Trial
from lineproof.core.under_load import QueueLoad, UnderLoad, Why
from lineproof.documents.document import (
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
from lineproof.evidence.forms import trials_document
from lineproof.evidence.recorder import Recorder
from lineproof.evidence.report import WORKERS, report, sentence_document, write_report
from lineproof.evidence.run import RecordedRun, RunFolder, read_run
from lineproof.evidence.summary import (
    WITHOUT_VERDICT,
    ExecutionSummary,
    RunSummary,
    SentenceRow,
    execution_summary,
    measured,
    next_command,
    sentence_rows,
    summary,
    summary_of,
)
from lineproof.visible import one_line, visible
from support.evidence_builders import (
    ENVIRONMENT,
    RUN,
    Elements,
    one_trial,
    requirement_record,
    trial,
    trial_record,
)
from support.made_runs import FORWARDS, LOAD, Sentence, made_run
from support.study_builders import measurements, study_of


def summarise(folder: Path) -> RunSummary:
    return summary_of(read_run(folder))


def test_a_killed_run_is_shown_up_to_its_last_finished_sentence(tmp_path: Path, capsys: Any) -> None:
    run = made_run(tmp_path, RUN, Sentence(LOAD), closed=False, unjudged=FORWARDS)
    found = summarise(run)
    assert found.incomplete == ("incomplete: run did not end", f"unfinished: 1 trial of '{FORWARDS}', no verdict")
    for form in FORMATS.values():
        shown = form(ExecutionSummary((found,)))
        assert LOAD in shown and "incomplete: run did not end" in shown and "1 trial of" in shown
    # it gets the page that it lacks, and keeps the one that it has
    assert main(["summary", str(run)]) == 0
    assert re.search(rf"Next: robot --outputdir .* -v RESUME:{RUN} \S+\n", capsys.readouterr().out)
    assert f"RESUME:{RUN}" in (run / "summary.html").read_text()
    assert main(["verify", str(run)]) == 0
    (run / "summary.html").write_text("mine")
    assert main(["summary", str(run)]) == 0
    assert (run / "summary.html").read_text() == "mine"


def test_a_run_that_was_ended_in_order_names_the_sentence_it_was_in(tmp_path: Path) -> None:
    assert summarise(made_run(tmp_path / "a", RUN, Sentence(LOAD))).incomplete == ()
    found = summarise(made_run(tmp_path / "b", RUN, Sentence(LOAD), interrupted="64b ≥ 1 Mpps"))
    assert found.incomplete == ("unfinished: 0 trials of '64b ≥ 1 Mpps', no verdict",)
    assert f" -v RESUME:{RUN} " in next_command([found])
    assert next_command([replace(found, incomplete=(f"{WITHOUT_VERDICT}'A': a wrong sentence",))]) == ""
    kept = made_run(tmp_path, "kept", Sentence(LOAD, expected="FAIL"))
    assert next_command([summarise(kept)]) == "remove 'expect=' from T: the promise is kept"


@pytest.mark.parametrize(("judged", "evidence", "is_whole"), [(2, "keeps", True), (0, "keeps", False), (0, "", True)])
def test_a_sentence_is_unfinished_that_was_to_be_judged_and_never_was(
    tmp_path: Path, judged: int, evidence: str, is_whole: bool
) -> None:
    """One that was tried again, and judged then, is finished; a search has no verdict."""
    run = RunFolder.create(tmp_path, RUN)
    later = requirement_record(number=judged)
    run.add(replace(trial_record(), test=later.test, sentence=later.sentence, evidence=evidence))
    if judged:
        run.add(later)
    run.close(replace(ENVIRONMENT, ended=9.0))
    assert (summarise(run.path).incomplete == ()) is is_whole


def test_the_runs_of_an_execution_are_found_by_their_names(tmp_path: Path) -> None:
    later = "20261121T050000Z-abc123"
    runs = [made_run(tmp_path, name, Sentence(LOAD)) for name in (RUN, f"{RUN}-2", f"{RUN}-3", later)]
    (runs[1] / "requirements.jsonl").write_text("no record\n")
    found = execution_summary(runs[0])
    assert [run.run.path for run in found.runs] == [runs[0], runs[2]]
    assert len(found.unread) == 1 and "requirements.jsonl" in found.unread[0]
    write_report(runs[0], found)
    assert "requirements.jsonl" in (runs[0] / "summary.html").read_text()


def test_of_frames_that_came_back_changed_more_may_have_than_were_looked_at() -> None:
    counts = DirectionCount(0, 1, 5_000_000, 5_000_000, 4_999_000, changed=1000)
    outcome = replace(trial(pps=5e6).outcome, directions=(counts,))
    spoilt = replace(trial(pps=5e6, problems=(Problem(Fault.CHANGED, "", 99_000),)), outcome=outcome)
    row = sentence_row("64b unidirectional ≥ 5 Mpps", spoilt, verdict="FAIL")
    assert row.carries == "≤ 4.999 Mpps, 1,000 frames or more came back changed"
    assert row.margin_text == "-2 % to -0.02 %"
    parts = trials_document(row.record, row.trials, "").sections[0].parts
    (table,) = (part for part in parts if isinstance(part, Table))
    assert table.rows[0].cells[-1] == "1,000"


def test_a_study_names_its_tables_and_has_no_sentences(tmp_path: Path) -> None:
    record = replace(ENVIRONMENT, study="small", suite="study small")
    recorder = Recorder(tmp_path, RUN, record)
    study = study_of(tmp_path)
    for each in measurements(study, {"vpp": [33.6, None, 33.5, 33.4], "linux": [4.3, 4.3]}):
        recorder.folder.add(replace(each, run=RUN))
    recorder.close()
    folder = tmp_path / RUN
    found = ExecutionSummary((summarise(folder),))
    assert found.runs[0].title == "study small: 6 measurements, 1 without a value" and not found.runs[0].incomplete
    assert f"lineproof study report {RUN}" in as_text(summary(found))
    (folder / "study.html").write_text("")
    shown = as_text(summary(ExecutionSummary((summarise(folder),))))
    assert "PASS" not in shown and "study.html" in shown


def test_the_report_shows_what_was_not_kept_first_and_asks_nothing_of_a_network(tmp_path: Path) -> None:
    verdicts = ("PASS", "INCONCLUSIVE", "FAIL")
    found = summarise(made_run(tmp_path, RUN, *(Sentence(LOAD, verdict=verdict) for verdict in verdicts)))
    words = "Published: 5.1 Mpps, by others."
    rows = tuple(replace(row, record=replace(row.record, documentation=words)) for row in found.sentences)
    page = report(ExecutionSummary((replace(found, sentences=rows),)))
    table, sections = page.split("<section", 1)
    assert table.index(">FAIL</b>") < table.index(">INCONCLUSIVE</b>") < table.index(">PASS</b>")
    assert table.count('<td class="left">5.1 Mpps</td>') == 3 and sections.count("<svg") == 3
    screen = page.partition("@page")[0]
    assert min(map(float, re.findall(r"font(?:-size)?: ([\d.]+)px", screen))) >= 13
    elements = Elements(page)
    assert elements.addresses == {"#r0-1", "#r0-2", "#r0-3"}
    assert not elements.found & {"script", "link", "img", "iframe"}


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
    study = replace(run, sentences=(), tables=words, instead=words)
    return ExecutionSummary((run, replace(run, run=replace(run.run, path=Path("other"))), study), (words,), words)


def test_the_work_of_the_workers_is_shown_of_a_fail() -> None:
    readings = {"worker_busy.CPU 0": 1.0}
    trial = trial_record().trial
    read = replace(trial, outcome=replace(trial.outcome, readings=readings))
    for verdict, is_shown in {"PASS": False, "FAIL": True, "INCONCLUSIVE": False}.items():
        row = replace(row_of("x", verdict=verdict), trials=(read, replace(read, number=2)))
        *_, last = sentence_document(row, True).sections
        assert [part.alt for part in last.parts if isinstance(part, Figure)][1:] == [WORKERS] * is_shown
        *_, folded = (part for part in last.parts if isinstance(part, Folded))
        assert any(isinstance(part, Figure) for part in folded.parts) is not is_shown


def test_a_report_has_the_use_of_each_queue_and_of_all_of_an_interface() -> None:
    queues = tuple(QueueLoad("cxl0", queue, f"CPU {queue}", 1e6 + queue) for queue in range(2))
    record = replace(row_of("x", verdict="FAIL").record, why=Why(load=UnderLoad(queues=queues)))
    shown = as_text(sentence_document(SentenceRow(record, (1.0, 2.0), 0.0), True))
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


def test_html_has_the_columns_of_a_page_and_how_cells_look() -> None:
    row = {Column("test", on_page=True): "T", Column("measured", "Mpps"): "5.5"}
    table = Table.of([row | {Column("verdict", left=True): verdict_cell("FAIL")}])
    shown = as_html(Document("Title", [Section("One", [Folded.of("FAIL: it\n  because", "more"), table])]))
    assert "<h1>Title</h1>" in shown and "<th>measured<small>Mpps</small></th>" in shown
    assert '<td class="left bad">FAIL</td>' in shown
    assert "<details><summary>FAIL: it</summary><ul><li>because</li><li>more</li></ul></details>" in shown
    selectors = [line.split("{")[0] for line in shown.partition("</style>")[0].splitlines() if "{" in line]
    assert all(selector.startswith(".lineproof") for selector in selectors)


def a_part(chance: random.Random) -> Any:
    """Return a part of a document, with few or many words, and in a table few or many columns."""

    def text() -> str:
        words = "a", "5", "%", "Mpps,", "unidirectional", "20261121T040000Z-abc123"
        return " ".join(chance.choices(words, k=chance.choice((1, 3, 30))))

    columns = [Column(f"{number} {text()}", text()) for number in range(chance.randrange(1, 12))]
    table = Table.of([{column: text() for column in columns} for _ in range(chance.randrange(1, 3))])
    facts = Facts({text(): text() for _ in range(2)})
    return chance.choice((table, facts, Note(text()), Items([text(), text()]), Folded(text(), [table, facts])))


@pytest.mark.parametrize("seed", range(40))
def test_every_line_fits_the_terminal_and_no_word_is_broken(seed: int) -> None:
    chance = random.Random(seed)
    document, width = Document("", [Section("", [a_part(chance) for _ in range(3)])]), chance.randrange(60, 120)
    text = as_text(document, width)
    assert max(map(len, text.splitlines())) <= width
    assert {word for word in text.split() if set(word) != {"-"}} <= set(as_text(document, 10_000).split())


def test_a_path_is_never_broken() -> None:
    path = f"/{'long-name/' * 20}"
    shown = as_text(Document("", [Section("", [Note(f"It is in {path}"), Items([path]), Facts({"a": path})])]), 80)
    assert shown.count(path) == 3 and "It is in\n" in shown


# -- a run's sentences as rows: demand, figures and margin in the sentence's own unit


LINK = 10e9


def sentence_row(sentence: str, *trials: Trial, verdict: str = "PASS") -> SentenceRow:
    records = tuple(replace(trial_record(), sentence=sentence, trial=each) for each in trials)
    run = RecordedRun(Path("run"), records, (requirement_record(sentence=sentence, verdict=verdict),), ENVIRONMENT)
    (row,) = sentence_rows(run)
    return row


@pytest.mark.parametrize(
    ("sentence", "words", "figure", "of_all"),
    [
        ("64b unidirectional ≥ 50% line rate", "≥ 50% line rate", 100 * 990_000 / (LINK / 672), "≥ 50% line rate"),
        ("64b unidirectional forwards ≥ 500 Mbit/s L2", "≥ 500 Mbit/s L2", 990_000 * 512, "512 Mbit/s L2"),
        ("64b unidirectional costs ≤ 20 µJ/packet at 1 Mpps", "≤ 20 µJ/packet", 1e6 * 19 / 990_000, "–"),
        ("64b unidirectional latency mean ≤ 50 µs at 1 Mpps", "mean ≤ 50 µs", math.inf, "10 to 20 µs"),
        ("64b unidirectional reorders ≤ 1 % at 1 Mpps", "≤ 1%", 1.0916, "0 to 0.03744%"),
    ],
)
def test_a_quantity_has_its_figure_in_the_sentences_unit(sentence: str, words: str, figure: float, of_all: str) -> None:
    record = requirement_record(sentence=sentence)
    # its message has the figure of all trials together
    assert sentence_row(sentence, *map(one_trial, range(1, 9))).carries == of_all
    found = measured(record.promise, one_trial(1, lost=10_000, power_watts=19.0))
    assert record.requirement.demand == words
    assert found == pytest.approx(figure, rel=1e-3)
