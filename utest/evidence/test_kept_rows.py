"""The rows that a run keeps while it is measured are those that its folder gives afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lineproof.core.trial import Fault, Problem
from lineproof.errors import TestbedError
from lineproof.evidence.kept_rows import KeptRows
from lineproof.evidence.margin import MarginRecord
from lineproof.evidence.recorder import Recorder
from lineproof.evidence.records import EnvironmentRecord, TrialRecord
from lineproof.evidence.run import read_margins, read_run
from lineproof.evidence.sentence_rows import sentence_rows
from lineproof.evidence.summary import summarise, summary_of_kept
from support.evidence_builders import RUN, requirement_record, trial_record

FLAP = (Problem(Fault.LINK_DOWN, "port 1"),)
ENVIRONMENT = EnvironmentRecord(RUN, True, "lab", "mybox", "vpp", 1.0, 1.0, extra={"suite": "Suite"})


def judge(recorder: Recorder, margin: bool = False) -> None:
    """Write a verdict with a warm-up, a trial that is set aside, and two that count."""
    recorder.begin("T")
    for number in range(4):
        item = trial_record(number=number, losses=(number,), problems=FLAP if number == 1 else ())
        keep(recorder, replace(item, evidence="keeps" if number else ""))
    record = replace(requirement_record(), number=recorder.number)
    recorder._write(recorder.folder.add_requirement, recorder._rows.add_requirement, record)
    if margin:
        found = MarginRecord(RUN, True, recorder.number, "T", "64b", 1.1, 1.11, True, "", 9.0)
        recorder._keep_margin(found, recorder.number)


def keep(recorder: Recorder, item: TrialRecord) -> None:
    """Write a trial of the current sentence."""
    recorder._write(recorder.folder.add_trial, recorder._rows.add_trial, replace(item, requirement=recorder.number))


def measured(folder: Path, unfinished: int = 0) -> Recorder:
    """A run with two verdicts, and what is not judged before, between and after them."""
    recorder = Recorder(folder, RUN, ENVIRONMENT)

    def search(count: int, evidence: str = "") -> None:
        recorder.begin("T")
        for number in range(count):
            keep(recorder, replace(trial_record(number=number), evidence=evidence))

    search(2)
    judge(recorder, margin=True)
    search(3)
    judge(recorder)
    if unfinished:
        search(unfinished, "keeps")
    return recorder


@pytest.mark.parametrize("unfinished", [0, 3])
def test_the_summary_of_a_run_that_ended_is_that_of_its_folder(tmp_path: Path, unfinished: int):
    recorder = measured(tmp_path, unfinished)
    recorder.close()
    assert recorder.rows is not None
    run = read_run(recorder.folder.path)
    kept = summary_of_kept(recorder.folder.path, recorder.environment, recorder.rows)
    assert kept == summarise(recorder.folder.path)
    assert recorder.rows.rows == sentence_rows(run, read_margins(recorder.folder.path))
    first, second = recorder.rows.rows
    assert first.search is not None and second.search is None
    assert (first.set_aside, len(first.sample), first.aside) == (1, 2, (3,))
    assert bool(kept.incomplete) == bool(unfinished)


def test_the_end_of_a_run_reads_no_record_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    recorder = measured(tmp_path)

    def parse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a record was read")

    for module in ("run", "integrity"):
        monkeypatch.setattr(f"lineproof.evidence.{module}.parse_json", parse)
    recorder.close()
    assert recorder.rows is not None
    assert len(summary_of_kept(recorder.folder.path, recorder.environment, recorder.rows).rows) == 2


def test_trials_are_let_go_with_their_sentence():
    kept = KeptRows()
    for number in (1, 2):
        kept.add_trial(replace(trial_record(), requirement=number))
    assert len(kept._trials) == 1
    kept.add_requirement(requirement_record(number=2))
    assert not kept._trials and kept.unfinished(ENVIRONMENT) == {}


def test_after_a_write_that_failed_only_the_folder_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    recorder = measured(tmp_path)

    def full(*_: Any) -> None:
        raise TestbedError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(recorder.folder, "add_trial", full)
        with pytest.raises(TestbedError):
            judge(recorder)
    judge(recorder)
    assert recorder.rows is None


@pytest.mark.parametrize("judged_again", [True, False])
def test_a_sentence_that_was_tried_again_and_judged_then_is_finished(tmp_path: Path, judged_again: bool) -> None:
    recorder = Recorder(tmp_path, RUN, ENVIRONMENT)
    first = requirement_record()
    recorder.begin(first.test)
    for number in range(3):
        item = replace(trial_record(number=number), test=first.test, sentence=first.sentence, evidence="keeps")
        keep(recorder, item)
    if judged_again:
        judge(recorder)
    recorder.close()
    assert recorder.rows is not None
    run = read_run(recorder.folder.path)
    kept = summary_of_kept(recorder.folder.path, recorder.environment, recorder.rows)
    assert kept.incomplete == summarise(recorder.folder.path).incomplete
    assert bool(kept.incomplete) is not judged_again and len(sentence_rows(run, read_margins(run.path))) == judged_again
