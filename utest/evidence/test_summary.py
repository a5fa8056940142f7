"""The summary of runs: what it says, and what a killed run has."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lineproof.commands.main import main
from lineproof.commands.summary import FORMATS
from lineproof.core.goal import read_goal
from lineproof.core.trial import Fault, Problem
from lineproof.evidence.document import Table, as_text
from lineproof.evidence.recorder import Recorder
from lineproof.evidence.records import EnvironmentRecord, MarginRecord
from lineproof.evidence.report import report, write_report
from lineproof.evidence.run import RunFolder, read_run
from lineproof.evidence.summary import (
    ExecutionSummary,
    RunSummary,
    SentenceRow,
    execution_summary,
    next_command,
    side_by_side,
    summary,
    summary_of,
)
from support.evidence_builders import ENVIRONMENT, RUN, Elements, requirement_record, trial, trial_record
from support.made_runs import LOAD, Sentence, made_run
from support.paths import ROOT
from support.study_builders import measurements, study_of


def summarise(folder: Path) -> RunSummary:
    return summary_of(read_run(folder))


SENTENCE = "64b unidirectional forwards ≥ 5 Mpps"


def environment(ended: float | None = 9.0, interrupted: str = "") -> EnvironmentRecord:
    named: dict[str, Any] = {
        "suite": "Suite",
        "goal": read_goal(ROOT / "variables" / "goals", "quick"),
        "interrupted": interrupted,
    }
    return EnvironmentRecord(RUN, True, "lab", "mybox", "vpp", 1.0, 1.0, ended, **named)


def left(folder: Path, killed: bool = False, name: str = RUN, interrupted: str = "") -> Path:
    """A run with a sentence that is judged; one that was *killed* has two trials of another."""
    with_end = environment(None if killed else 9.0, interrupted)
    run = RunFolder.create(folder, name)
    run.write_environment(replace(with_end, run=run.run_id, ended=None))
    for number in (0, 1, 2):
        record = trial_record(number=number, pps=6e6, losses=(500_000,))
        run.add(replace(record, run=run.run_id, evidence="misses" if number else ""))
    run.add(requirement_record(run=run.run_id, sentence=SENTENCE))
    for number in (0, 1, 2) if killed else ():
        word = "keeps" if number else ""
        record = trial_record(number=number)
        run.add(replace(record, run=run.run_id, requirement=2, sentence="imix ≥ 1 Mpps", evidence=word))
    for number in (0, 1):  # a search has no verdict
        run.add(replace(trial_record(number=number), run=run.run_id, requirement=3, sentence="a search"))
    if not killed:
        run.close(replace(with_end, run=run.run_id))
    return run.path


def test_a_killed_run_is_shown_up_to_its_last_finished_sentence(tmp_path: Path) -> None:
    run = left(tmp_path, killed=True)
    found = summarise(run)
    assert found.incomplete == ("incomplete: run did not end", "unfinished: 2 trials of 'imix ≥ 1 Mpps', no verdict")
    for form in FORMATS.values():
        shown = form(ExecutionSummary((found,)))
        assert SENTENCE in shown and "incomplete: run did not end" in shown and "2 trials of" in shown


def test_a_run_that_was_ended_in_order_names_the_sentence_it_was_in(tmp_path: Path) -> None:
    assert summarise(left(tmp_path / "a")).incomplete == ()
    found = summarise(left(tmp_path / "b", interrupted="64b ≥ 1 Mpps"))
    assert found.incomplete == ("unfinished: 0 trials of '64b ≥ 1 Mpps', no verdict",)
    assert next_command([found]).startswith(f"robot -v RESUME:{RUN}")
    kept = made_run(tmp_path, "kept", Sentence(LOAD, expected="FAIL"))
    assert next_command([summarise(kept)]) == "remove 'expect=' from T: the promise is kept"


@pytest.mark.parametrize("judged_again", [True, False])
def test_a_sentence_that_was_tried_again_and_judged_then_is_finished(tmp_path: Path, judged_again: bool) -> None:
    run = RunFolder.create(tmp_path, RUN)
    first = requirement_record(run=run.run_id, number=2)
    run.add(replace(trial_record(), run=RUN, test=first.test, sentence=first.sentence, evidence="keeps"))
    if judged_again:
        run.add(first)
    run.close(environment())
    assert bool(summarise(run.path).incomplete) is not judged_again


def test_the_command_gives_a_killed_run_the_page_that_it_lacks(tmp_path: Path, capsys: Any) -> None:
    run = left(tmp_path, killed=True)
    assert main(["summary", str(run)]) == 0
    shown = capsys.readouterr().out
    assert f"Next: robot -v RESUME:{RUN}" in shown
    assert f"RESUME:{RUN}" in (run / "summary.html").read_text()
    assert main(["verify", str(run)]) == 0
    (run / "summary.html").write_text("mine")
    assert main(["summary", str(run)]) == 0
    assert (run / "summary.html").read_text() == "mine"


def test_the_runs_of_an_execution_are_found_by_their_names(tmp_path: Path) -> None:
    runs = [left(tmp_path) for _ in range(3)]
    left(tmp_path, name="20261121T050000Z-abc123")
    (runs[1] / "requirements.jsonl").write_text("no record\n")
    found = execution_summary(runs[0])
    assert [run.run.path for run in found.runs] == [runs[0], runs[2]]
    assert len(found.unread) == 1 and "requirements.jsonl" in found.unread[0]
    write_report(runs[0], found)
    assert "requirements.jsonl" in (runs[0] / "summary.html").read_text()


def test_a_row_has_no_margin_where_nobody_looked_and_no_figure_where_it_has_no_bound() -> None:
    passed = SentenceRow(requirement_record(), (5e6, 5.1e6), 0.0)
    assert (passed.carries, passed.margin_text) == ("≥ 5 Mpps", "not searched")
    search = MarginRecord(RUN, True, 1, "T", "s", 1.08, 1.09, "", 12.0)
    open_end = replace(search, high=None, limit="the generator's limit")
    searched, open_ended = replace(passed, search=search), replace(passed, search=open_end)
    assert (searched.carries, searched.margin_text) == ("5.4 to 5.45 Mpps", "+8 % to +9 %")
    coarse = replace(passed, search=replace(search, low=1.08199, high=1.08201))
    assert coarse.carries == "5.409 to 5.411 Mpps"  # no more than was found
    assert (open_ended.carries, open_ended.margin_text) == ("≥ 5.4 Mpps (the generator's limit)", "at least +8 %")
    near = replace(passed, search=replace(search, low=1.00002, high=1.00003))
    assert (near.carries, near.margin_text) == ("5.0001 to 5.001 Mpps", "+0.002 % to +0.003 %")
    late = "64b unidirectional latency p99 ≤ 50 µs at 1 Mpps"
    endless = SentenceRow(requirement_record(sentence=late, verdict="FAIL"), (20.0, float("inf")), 0.0)
    assert (endless.carries, endless.margin_text) == ("beyond any limit in 1 trial", "–")


def test_of_what_was_not_decided_both_ends_are_shown_if_they_are_known() -> None:
    spoilt = trial(pps=5e6, problems=(Problem(Fault.COUNTERS, "port 1"),))
    for asked, carries, margin in (
        ("forwards ≥ 5 Mpps", "between 0 pps and 5 Mpps", "-100 % to +0 %"),
        ("latency max ≤ 50 µs at 5 Mpps", "–", "–"),
    ):
        record = requirement_record(sentence=f"64b unidirectional {asked}", verdict="INCONCLUSIVE", load_pps=5e6)
        row = SentenceRow(record, (), None, trials=(spoilt,))
        assert (row.carries, row.margin_text) == (carries, margin)


def test_no_interval_goes_below_zero() -> None:
    """An interval of two trials far apart would: nothing is forwarded at less than 0 frames/s."""
    found = SentenceRow(requirement_record(verdict="FAIL"), (0.0, 1e6), 0.0)
    assert found.measured is not None and found.measured.low == 0.0 and found.measured.estimate == 0.5e6
    assert found.margin is not None and found.margin[0] == -1.0


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


@pytest.mark.parametrize(
    ("host", "steal", "verdict", "is_told"),
    [
        ({"load": 8.1, "cpus": 2}, None, "INCONCLUSIVE", True),
        ({"load": 1.9, "cpus": 2}, 2.5, "INCONCLUSIVE", True),
        ({"load": 1.9, "cpus": 2}, 1.0, "INCONCLUSIVE", False),
        ({"load": 8.1, "cpus": 2}, 2.5, "PASS", False),
        ({}, None, "INCONCLUSIVE", False),
    ],
)
def test_a_busy_machine_is_named_where_something_is_not_proven(
    tmp_path: Path, host: dict[str, Any], steal: float | None, verdict: str, is_told: bool
) -> None:
    run = made_run(tmp_path, "run", Sentence(LOAD, verdict=verdict), host=host, cpu_steal_percent=steal)
    shown = as_text(summary(ExecutionSummary((summarise(run),))))
    assert ("this machine was busy" in shown) is is_told


# -- the report


def test_the_report_shows_what_was_not_kept_first_and_asks_nothing_of_a_network(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, RUN)
    for number, verdict in enumerate(("PASS", "INCONCLUSIVE", "FAIL"), 1):
        run.add(replace(trial_record(), run=RUN, requirement=number))
        published = "Published: 5.1 Mpps, by others."
        message = f"{verdict}: {SENTENCE}: because"
        run.add(requirement_record(number=number, verdict=verdict, message=message, documentation=published))
    run.close(environment())
    page = report(ExecutionSummary((summarise(run.path),)))
    table, sections = page.split("<section", 1)
    assert table.index(">FAIL</b>") < table.index(">INCONCLUSIVE</b>") < table.index(">PASS</b>")
    assert table.count("<td>5.1 Mpps</td>") == 3 and sections.count("<svg") == 3
    screen = page.partition("@page")[0]
    assert min(map(float, re.findall(r"font(?:-size)?: ([\d.]+)px", screen))) >= 13
    found = Elements(page)
    assert found.addresses == {"#r0-1", "#r0-2", "#r0-3"} and not found.found & {"script", "link", "img", "iframe"}


def test_sentences_of_several_runs_are_side_by_side(tmp_path: Path) -> None:
    runs = ExecutionSummary(tuple(summarise(left(tmp_path)) for _ in range(2)))
    (shared,) = side_by_side(runs.runs)
    (table,) = shared.parts
    assert isinstance(table, Table)
    assert [column.name for column in table.columns] == ["promised", RUN, f"{RUN}-2"]
    assert "Side by side" in report(runs) and not side_by_side(runs.runs[:1])
