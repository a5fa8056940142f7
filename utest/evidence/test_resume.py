"""Going on with an earlier run: which of its trials count, with what was known of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lineproof.core.deciding import OPEN
from lineproof.core.trial import Fault, Problem
from lineproof.core.verdict import ENDED_EARLY
from lineproof.errors import ConfigError
from lineproof.evidence.recorder import HOST_KEY, ROUTER_CONFIGURATION
from lineproof.evidence.records import EnvironmentRecord, KnownAfterwards, TrialRecord
from lineproof.evidence.resume import FINGERPRINTS, UNREAD, EarlierRun, earlier_tries, why_apart
from lineproof.evidence.run import RunFolder
from support.evidence_builders import requirement_record, trial_record

RUN, SUITE = "20260101T000000Z-abcdef", "Some Suite"
EXTRA: dict[str, Any] = {
    "suite": SUITE,
    FINGERPRINTS: {"file platforms/a.yaml": "aa", "file testbeds/b.yaml": "bb", "file goals/c.yaml": "cc"},
    "goal": {"goal": "quick", "budget": 30, "about": "x"},
    HOST_KEY: "SHA256:one",
    ROUTER_CONFIGURATION: {"prepare": "configure", "sides": ["a"], "notes": ["links were awaited 3 s"]},
}
COPIES = Problem(Fault.COPIES, "7 frames", 7.0, ((0, 1),))
A, B, C = (f"64b unidirectional ≥ {number} Mpps" for number in (1, 2, 3))


def environment(**changes: Any) -> EnvironmentRecord:
    base = EnvironmentRecord(RUN, True, "simulated", "netgate6100", "vpp", 50.0, 0.0)
    extra = {**EXTRA, **changes.pop("extra", {})}
    return replace(base, extra=extra, versions={"router.vpp": "24.10", "generator.server": "v3.08"}, **changes)


def written(results: Path, *verdicts: tuple[str, Any], ended: float = 0, **changes: Any) -> Path:
    """A run whose sentences (by name) came to *verdicts* (None: none), each with two trials; never closed."""
    folder = RunFolder.create(results, RUN)
    folder.write_environment(environment(run=folder.run_id))
    for number, (sentence, verdict) in enumerate(verdicts, 1):
        for trial in (0, 1, 2):
            item = replace(trial_record(number=trial), requirement=number, sentence=sentence, test="T")
            folder.add(replace(item, run=folder.run_id, evidence="keeps" if trial else ""))
        if verdict is not None:
            record = replace(requirement_record(), run=folder.run_id, number=number, sentence=sentence, test="T")
            folder.add(replace(record, verdict=verdict, ended=ended, **changes))
    return folder.path


def test_the_trials_of_each_sentence_are_given_out_once_and_in_order(tmp_path: Path):
    written(tmp_path, (A, "PASS"), (B, "INCONCLUSIVE"), (A, "FAIL"), (C, None))
    earlier = EarlierRun.find(tmp_path, RUN, SUITE)
    taken = [earlier.take("T", sentence) for sentence in (A, A, A, B, C)]
    assert [[item.requirement for item in trials] for trials in taken] == [[1, 1], [3, 3], [], [2, 2], [4, 4, 4]]
    assert {item.trial.run for trials in taken for item in trials} == {RUN}
    assert EarlierRun.find(tmp_path, RUN, SUITE).take("another test", A) == []


def test_what_was_known_afterwards_widens_them_again(tmp_path: Path):
    written(tmp_path, (A, "PASS"), (B, None), known_afterwards=(KnownAfterwards((2,), (COPIES,)),))
    earlier = EarlierRun.find(tmp_path, RUN, SUITE)
    assert [item.trial.problems for item in earlier.take("T", A)] == [(), (COPIES,)]
    *whole, cut = earlier.take("T", B)
    assert [item.trial.problems for item in whole] == [(UNREAD,), (UNREAD,)], "nobody read the router"
    assert (cut.trial.number, cut.trial.has_ended, cut.trial.offered, cut.evidence) == (3, False, 0, OPEN)


def test_a_run_that_was_ended_in_its_first_trial_is_known_by_its_warm_up(tmp_path: Path):
    folder = RunFolder.create(tmp_path, RUN)
    folder.write_environment(environment(run=folder.run_id))
    warm_up = replace(trial_record(number=0), requirement=1, sentence=A, test="T", run=folder.run_id, evidence="")
    folder.add(warm_up)
    (cut,) = EarlierRun.find(tmp_path, RUN, SUITE).take("T", A)
    assert (cut.trial.number, cut.trial.has_ended, cut.trial.run) == (1, False, RUN)
    assert TrialRecord.from_json(json.dumps(cut.to_json()).encode()).trial == cut.trial


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, []),
        ({"extra": {ROUTER_CONFIGURATION: {**EXTRA[ROUTER_CONFIGURATION], "notes": []}}}, []),
        ({"extra": {"goal": {**EXTRA["goal"], "about": "y"}}}, []),
        ({"testbed": "lab", "clock_speed": 1.0}, ["testbed was 'simulated' and is 'lab'", "clock_speed was"]),
        ({"extra": {"goal": {**EXTRA["goal"], "goal": "ours"}}}, ["goal was 'quick' and is 'ours'"]),
        ({"extra": {"goal": {**EXTRA["goal"], "budget": 31}}}, ["goal budget was '30' and is '31'"]),
        ({"extra": {HOST_KEY: "SHA256:two"}}, ["host_key was 'SHA256:one' and is 'SHA256:two'"]),
        (
            {"extra": {FINGERPRINTS: {**EXTRA[FINGERPRINTS], "file testbeds/b.yaml": "x"}}},
            ["file testbeds/b.yaml was 'bb' and is 'x'"],
        ),
        (
            {"extra": {ROUTER_CONFIGURATION: {"prepare": "verify", "sides": ["a"]}}},
            ["router's prepare was 'configure' and is 'verify'"],
        ),
    ],
)
def test_only_trials_of_the_same_goal_router_and_generator_count_together(changes: dict[str, Any], says: list[str]):
    lines = why_apart(environment(), environment(**changes))
    assert len(lines) == len(says) and all(line.startswith(words) for line, words in zip(lines, says, strict=True))


def test_another_version_of_the_router_begins_at_1():
    now = replace(environment(), versions={"router.vpp": "25.02", "generator.server": "v3.08"})
    assert why_apart(environment(), now) == ["router.vpp was '24.10' and is '25.02'"]


def test_tries_of_the_same_sentence_are_in_the_results_but_not_those_that_others_went_on_with(tmp_path: Path):
    written(tmp_path, (A, "FAIL"), evidence=(40.0, 20.0), ended=5)
    written(tmp_path, (A, "INCONCLUSIVE"), evidence=(2.0, 20.0), ended=6)
    written(tmp_path, (A, "PASS"), evidence=(30.0, 20.0), runs={f"{RUN}-2": 2}, ended=7)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "environment.json").write_text("{", encoding="utf-8")
    tries = earlier_tries(tmp_path, environment(run="now"))
    assert [(item.run, item.verdict, item.odds) for item in tries[A]] == [
        (RUN, "FAIL", 1 / 40),
        (f"{RUN}-3", "PASS", 30.0),
    ]
    assert earlier_tries(tmp_path, environment(run="now", testbed="lab")) == {}


def test_a_run_that_was_ended_in_the_sentence_is_a_try(tmp_path: Path):
    path = written(tmp_path, (A, "FAIL"), (B, None), ended=5)
    with (path / "trials.jsonl").open("ab") as file:
        file.write(b'{"cut off')
    tries = earlier_tries(tmp_path, environment(run="now"))
    assert {sentence: [item.verdict for item in items] for sentence, items in tries.items()} == {
        A: ["FAIL"],
        B: [ENDED_EARLY],
    }


def test_a_verdict_that_was_edited_is_no_try(tmp_path: Path):
    path = written(tmp_path, (A, "FAIL"), evidence=(40.0, 20.0), ended=5) / "requirements.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace('"FAIL"', '"PASS"'), encoding="utf-8")
    assert earlier_tries(tmp_path, environment(run="now")) == {}


@pytest.mark.parametrize("run_id", ["nothing", "../etc", "", "."])
def test_a_missing_run_is_refused(tmp_path: Path, run_id: str):
    written(tmp_path, (A, "PASS"))
    with pytest.raises(ConfigError):
        EarlierRun.find(tmp_path, run_id, SUITE)


def test_another_suite_is_not_resumed(tmp_path: Path):
    written(tmp_path, (A, "PASS"))
    with pytest.raises(ConfigError, match="has no suite 'Other'"):
        EarlierRun.find(tmp_path, RUN, "Other")


@pytest.mark.parametrize(
    ("name", "old", "new"), [("trials.jsonl", "1000000", "1000001"), ("environment.json", "24.10", "25.02")]
)
def test_what_was_edited_is_no_evidence(tmp_path: Path, name: str, old: str, new: str):
    path = written(tmp_path, (A, "PASS"), (B, "FAIL")) / name
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigError, match="was changed"):
        EarlierRun.find(tmp_path, RUN, SUITE)


def test_what_was_altered_in_another_suites_folder_is_no_hindrance(tmp_path: Path):
    (written(tmp_path, (A, "PASS")) / "extra.txt").write_text("")
    new = RunFolder.create(tmp_path, RUN)
    new.write_environment(environment(run=new.run_id, extra={"suite": "Other"}))
    assert EarlierRun.find(tmp_path, RUN, "Other").environment.run == f"{RUN}-2"
    with pytest.raises(ConfigError, match=r"extra\.txt: was added"):
        EarlierRun.find(tmp_path, RUN, SUITE)
