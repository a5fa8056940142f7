"""The run's folder keeps what was measured, also after a crash, a kill or Ctrl-C at any moment; others can read it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lineproof.core.deciding import OPEN
from lineproof.core.router_facts import RouterSetUp
from lineproof.core.trial import Fault, Problem
from lineproof.core.verdict import ENDED_EARLY
from lineproof.errors import ConfigError, TestbedError
from lineproof.evidence.inputs import unpacked_inputs
from lineproof.evidence.records import EnvironmentRecord, KnownAfterwards, TrialRecord
from lineproof.evidence.resume import UNREAD, EarlierRun, earlier_tries, why_apart
from lineproof.evidence.run import RunFolder, read_run
from lineproof.evidence.run_files import check_integrity
from lineproof.evidence.summary import summary_of
from lineproof.generators.base import GeneratorPort
from support.evidence_builders import ENVIRONMENT, RUN, requirement_record, trial_record, written


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder.create(tmp_path / "results", RUN)
    folder.write_environment(ENVIRONMENT)
    return folder


@pytest.mark.parametrize(
    ("simulated", "testbed", "changes"),
    [
        (True, "hardware", {"simulated_because": ("x",)}),
        (True, "hardware", {"clock_speed": 50.0}),
        (True, "hardware", {"versions": {"generator.server": "SIMULATED"}}),
        (True, "simulated", {}),
        (False, "hardware", {"versions": {"generator.server": "v3.08"}}),
    ],
)
def test_one_sign_of_a_simulation_is_enough(folder, simulated, testbed, changes):
    folder.write_environment(replace(ENVIRONMENT, **{"simulated": False, "clock_speed": 1.0} | changes))
    folder.add_input("variables/testbeds/lab.yaml", f"kind: {testbed}\n".encode())
    assert read_run(folder.path).simulated == simulated


def test_a_name_that_is_not_utf_8_is_kept_with_question_marks(folder):
    odd = os.fsdecode(b"\xff\xe9.yaml")
    folder.add_input(f"variables/profiles/{odd}", b"a: 1\n")
    folder.write_environment(replace(ENVIRONMENT, extra={"project": odd}))
    folder.close()
    run = read_run(folder.path)
    assert run.environment.extra == {"project": "??.yaml"} and run.inputs == {"variables/profiles/??.yaml": b"a: 1\n"}


def test_inputs_are_kept_once_and_byte_for_byte(folder):
    for content in (b"\xff\x00\r\n", "ß\r\n\0".encode(), b""):
        folder.add_input("files/word/a.pcap", content)
        assert read_run(folder.path).inputs == {"files/word/a.pcap": b"\xff\x00\r\n"}
    assert folder.add_streams({"0": [{"pps": 1}]}) == folder.add_streams({"0": [{"pps": 1}]})
    assert len((folder.path / "inputs.jsonl").read_bytes().splitlines()) == 2


@pytest.mark.parametrize(
    "name",
    ["../evil", "/etc/evil", "variables/../../evil", "variables/a\0b", "variables/" + "a" * 300, "", "variables/a/b"],
)
def test_no_name_of_an_input_leads_elsewhere(folder, name):
    folder.add_input("variables/a", b"x")
    folder.add_input(name, b"x")
    with pytest.raises(ConfigError, match=r"inputs\.jsonl: has an input '.*' that is no file"):
        unpacked_inputs(read_run(folder.path))


@pytest.mark.parametrize("make", [lambda path: path.write_text(""), lambda path: path.symlink_to("not mounted")])
def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path, make):
    make(tmp_path / "results")
    with pytest.raises(TestbedError, match="cannot be made: "):
        RunFolder.create(tmp_path / "results", RUN)


def check_summary(run: Path) -> None:
    """The summary has each whole verdict that is on the disk, with its trials, and what is not finished."""
    read = read_run(run)
    found, judged = summary_of(read), {record.number for record in read.requirements}
    assert len(found.sentences) == (run / "requirements.jsonl").read_bytes().count(b"\n")
    assert all(len(row.trials) == len(row.record.trials) for row in found.sentences)
    assert ("incomplete: run did not end" in found.incomplete) is (read.environment.ended is None)
    lone = sum(record.requirement not in judged for record in read.trials)
    assert any(text.startswith(f"unfinished: {lone} trial") for text in found.incomplete) is bool(lone)


class Killed(BaseException):
    """No handler of errors sees it, as none sees a SIGKILL."""


def test_a_run_that_is_killed_before_any_step_is_as_it_left_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Killed at each call that changes the disk, and within each line; the summary has each finished sentence."""
    steps = 0

    def killing(real: Any, at: int, torn: bool) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps < at:
                return real(*args, **options)
            if steps == at and torn:
                real(args[0], args[1][: len(args[1]) // 2])
            raise Killed

        return call

    for torn in (False, True):
        for at in range(1, 1000):
            steps, results = 0, tmp_path / f"{at}-{torn}"
            with monkeypatch.context() as patch:
                calls = {"write": os.write, "open": os.open, "replace": os.replace, "mkdir": os.mkdir, "fsync": int}
                calls["truncate"] = os.truncate
                for name in ("write",) if torn else calls:
                    patch.setattr(os, name, killing(calls[name], at, torn))
                try:
                    written(results)
                except Killed:
                    pass
                else:
                    break
            run = results / RUN
            if any(run.glob("*.jsonl")):
                found = check_integrity(run)
                assert found.altered == (), f"killed before step {at}: {found}"
                assert found.manifest is None or not found.notes
            if (run / "environment.json").exists():
                check_summary(run)
            shutil.rmtree(results, ignore_errors=True)
        assert at > (15 if torn else 75)


@pytest.mark.parametrize("moment", range(12))
def test_an_interrupt_at_any_moment_leaves_a_chain_that_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """Ctrl-C raises an exception after any of the calls that change the disk; the run goes on and is closed."""
    folder = RunFolder.create(tmp_path, "run")
    environment = replace(ENVIRONMENT, run=folder.run_id)
    folder.write_environment(environment)
    folder.add_telemetry(1, "before", {"a": "text"})
    done = 0

    def interrupted(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*words: Any, **options: Any) -> Any:
            nonlocal done
            found = call(*words, **options)
            done += 1
            if done == moment + 1:
                raise KeyboardInterrupt
            return found

        return wrapper

    with monkeypatch.context() as patch:
        for name in ("write", "fsync", "close", "replace", "open"):
            patch.setattr(os, name, interrupted(getattr(os, name)))
        with contextlib.suppress(KeyboardInterrupt):
            folder.add_telemetry(1, "hit", {"a": "text"})
            folder.add_telemetry(1, "hit again", {"a": "text"})
    folder.add_telemetry(1, "after", {"a": "text"})
    folder.write_environment(environment)
    folder.close()
    assert check_integrity(folder.path).altered == ()


SUITE = "Some Suite"
QUICK = requirement_record().goal
KNOWN: dict[str, Any] = {
    "suite": SUITE,
    "fingerprints": {"file platforms/a.yaml": "aa", "file testbeds/b.yaml": "bb", "file goals/c.yaml": "cc"},
    "goal": QUICK,
    "host_key": "SHA256:one",
    "router_configuration": RouterSetUp("configure", ("a",), notes=("links were awaited 3 s",)),
    "versions": {"router.vpp": "24.10", "generator.server": "v3.08"},
}
COPIES = Problem(Fault.COPIES, "7 frames", 7.0, ((0, 1),))
A, B, C = (f"64b unidirectional ≥ {number} Mpps" for number in (1, 2, 3))


def environment(**changes: Any) -> EnvironmentRecord:
    base = EnvironmentRecord(RUN, True, "simulated", "netgate6100", "vpp", 50.0, 0.0)
    return replace(base, **KNOWN | changes)


def left(results: Path, *verdicts: tuple[str, Any], ended: float = 0, **changes: Any) -> Path:
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
    left(tmp_path, (A, "PASS"), (B, "INCONCLUSIVE"), (A, "FAIL"), (C, None))
    earlier = EarlierRun.find(tmp_path, RUN, SUITE)
    taken = [earlier.take("T", sentence) for sentence in (A, A, A, B, C)]
    assert [[item.requirement for item in trials] for trials in taken] == [[1, 1], [3, 3], [], [2, 2], [4, 4, 4]]
    assert {item.trial.run for trials in taken for item in trials} == {RUN}
    assert EarlierRun.find(tmp_path, RUN, SUITE).take("another test", A) == []


def test_what_was_known_afterwards_widens_them_again(tmp_path: Path):
    left(tmp_path, (A, "PASS"), (B, None), known_afterwards=(KnownAfterwards((2,), (COPIES,)),))
    earlier = EarlierRun.find(tmp_path, RUN, SUITE)
    assert [item.trial.problems for item in earlier.take("T", A)] == [(), (COPIES,)]
    *whole, cut = earlier.take("T", B)
    assert [item.trial.problems for item in whole] == [(UNREAD,), (UNREAD,)], "nobody read the router"
    assert (cut.trial.number, cut.trial.has_ended, cut.trial.offered, cut.evidence) == (3, False, 0, OPEN)


def test_a_run_that_was_ended_in_its_first_trial_is_known_by_its_warm_up(tmp_path: Path):
    folder = left(tmp_path, (A, None))
    warm_up, *_ = (folder / "trials.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "trials.jsonl").write_bytes(warm_up)
    (cut,) = EarlierRun.find(tmp_path, RUN, SUITE).take("T", A)
    assert (cut.trial.number, cut.trial.has_ended, cut.trial.run) == (1, False, RUN)
    assert TrialRecord.from_json(json.dumps(cut.to_json()).encode()).trial == cut.trial


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, []),
        ({"router_configuration": RouterSetUp("configure", ("a",), there=("a",), afterwards=("b",))}, []),
        ({"router_configuration": RouterSetUp("configure", ("a",), ignored=("a",))}, ["router's ignored has"]),
        ({"goal": QUICK.model_copy(update={"about": "y"})}, []),
        ({"testbed": "lab", "clock_speed": 1.0}, ["testbed was 'simulated' and is 'lab'", "clock_speed was"]),
        ({"goal": QUICK.model_copy(update={"budget": 31})}, ["goal budget was '30' and is '31'"]),
        ({"host_key": "SHA256:two"}, ["host_key was 'SHA256:one' and is 'SHA256:two'"]),
        (
            {"fingerprints": {**KNOWN["fingerprints"], "file testbeds/b.yaml": "x"}},
            ["file testbeds/b.yaml was 'bb' and is 'x'"],
        ),
        ({"router_configuration": RouterSetUp("verify", ("a",))}, ["router's prepare was 'configure' and"]),
        ({"ports": (GeneratorPort(0, "", 25e9, True, "net_ice"),)}, ["generator's port was '' and is 'net_ice at 25"]),
        ({"versions": {**KNOWN["versions"], "router.vpp": "25.02"}}, ["router.vpp was '24.10' and is '25.02'"]),
    ],
)
def test_only_trials_of_the_same_goal_router_and_generator_count_together(changes: dict[str, Any], says: list[str]):
    lines = list(filter(None, why_apart(environment(), environment(**changes)).split("; ")))
    assert len(lines) == len(says) and all(line.startswith(words) for line, words in zip(lines, says, strict=True))


def test_tries_of_the_same_sentence_are_in_the_results_but_not_those_that_others_went_on_with(tmp_path: Path):
    left(tmp_path, (A, "FAIL"), evidence=(40.0, 20.0), ended=5)
    left(tmp_path, (A, "INCONCLUSIVE"), evidence=(2.0, 20.0), ended=6)
    ended_early = left(tmp_path, (A, "PASS"), (B, None), evidence=(30.0, 20.0), runs={f"{RUN}-2": 2}, ended=7)
    with (ended_early / "trials.jsonl").open("ab") as file:
        file.write(b'{"cut off')
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "environment.json").write_text("{", encoding="utf-8")
    tries = {sentence: own for (_, sentence), own in earlier_tries(tmp_path, environment(run="now")).items()}
    assert [(one.run, one.verdict, one.odds) for one in tries[A]] == [
        (RUN, "FAIL", 1 / 40),
        (f"{RUN}-3", "PASS", 30.0),
    ]
    assert [one.verdict for one in tries[B]] == [ENDED_EARLY]
    assert earlier_tries(tmp_path, environment(run="now", testbed="lab")) == {}
    updated = environment(run="now", versions={**KNOWN["versions"], "router.vpp": "25.02"})
    assert not any(one.apart for one in tries[A])
    assert {one.apart[:10] for own in earlier_tries(tmp_path, updated).values() for one in own} == {"router.vpp"}


@pytest.mark.parametrize(
    ("run_id", "suite"), [*((name, SUITE) for name in ("nothing", "../etc", "", ".")), (RUN, "Other")]
)
def test_a_missing_run_and_another_suite_are_refused(tmp_path: Path, run_id: str, suite: str):
    left(tmp_path, (A, "PASS"))
    with pytest.raises(ConfigError):
        EarlierRun.find(tmp_path, run_id, suite)


def test_what_was_altered_in_another_suites_folder_is_no_hindrance(tmp_path: Path):
    (left(tmp_path, (A, "PASS")) / "extra.txt").write_text("")
    new = RunFolder.create(tmp_path, RUN)
    new.write_environment(environment(run=new.run_id, suite="Other"))
    assert EarlierRun.find(tmp_path, RUN, "Other").environment.run == f"{RUN}-2"
    with pytest.raises(ConfigError, match=r"extra\.txt: was added"):
        EarlierRun.find(tmp_path, RUN, SUITE)
