"""Going on with an earlier run: each verdict, its records and its table are of all trials."""

from __future__ import annotations

import os
import shlex
import signal
from pathlib import Path

import pytest

from lineproof.evidence.rejudge import rejudge
from lineproof.evidence.run import RecordedRun, execution_of, read_run
from lineproof.evidence.summary import next_command, summary_of
from support import robot_run
from support.evidence_builders import change_records
from support.patience import wait_until

pytestmark = pytest.mark.slow

SETUP = "Open Testbed For    netgate6100    software=vpp    goal=quick"
TWO = "Kept\n    64b 1-flow unidirectional ≥ 2 Mpps\nMissed\n    64b 1-flow unidirectional ≥ 6 Mpps\n"


def runs_of(folder: Path) -> list[RecordedRun]:
    runs = [read_run(path) for path in (folder / "results").iterdir()]
    return sorted(runs, key=lambda run: run.environment.started if run.environment else 0.0)


def verdicts(found: robot_run.RobotRun) -> dict[str, str]:
    return {name: message.partition(":")[0] for name, (_, message) in found.tests.items()}


def test_two_runs_decide_together_and_then_no_traffic_is_sent(tmp_path: Path) -> None:
    (suites := tmp_path / "suites").mkdir()
    suite = robot_run.write_tests(suites, TWO, SETUP, "b").parent
    robot_run.write_tests(suites, "First\n    64b 1-flow unidirectional ≥ 2 Mpps\n", SETUP, "a")
    options = robot_run.short_goal(tmp_path, "runs: 2\n")
    first = robot_run.run(tmp_path, suite, *options)
    assert set(verdicts(first).values()) == {"INCONCLUSIVE"}
    assert "run 1 of 2, evidence 23.4 to 1" in first.tests["Kept"][1]
    _, one = runs_of(tmp_path)
    # of whichever suite of a folder: it goes on with all of them
    _, *words = shlex.split(next_command([summary_of(one)]))
    second = robot_run.run(tmp_path, Path(words[-1]), *words[:-1], *options)
    assert verdicts(second) == {"First": "PASS", "Kept": "PASS", "Missed": "FAIL"}, second.console
    *_, two = runs_of(tmp_path)
    assert f"8 trials (4 of run {one.path.name}, 4 of this one), evidence 549 to 1" in two.requirements[0].message
    third = robot_run.run(tmp_path, suite, *options, "-v", f"RESUME:{execution_of(two.path.name)}")
    assert verdicts(third) == verdicts(second), third.console
    *_, three = runs_of(tmp_path)
    assert all(trial.trial.run for trial in three.trials), "all of them are of the earlier runs"


def test_doubts_that_somebody_took_from_a_trial_of_an_earlier_run_are_there_again(tmp_path: Path) -> None:
    suite = robot_run.write_tests(tmp_path, TWO[TWO.index("Missed") :], SETUP)
    options = robot_run.short_goal(tmp_path)
    robot_run.run(tmp_path, suite, *options)
    robot_run.run(tmp_path, suite, *options, "-v", f"RESUME:{runs_of(tmp_path)[0].path.name}")
    _, again = runs_of(tmp_path)
    change_records(again.path / "trials.jsonl", lambda rows: [row["trial"].update(problems=[]) for row in rows])
    (sentence,) = rejudge(read_run(again.path)).sentences
    assert sentence.state == "same" and sentence.verdict is not None and sentence.verdict.runs
    judged = [item.trial for item in again.trials if item.trial.number]
    assert [trial.problems for trial in sentence.verdict.trials] == [trial.problems for trial in judged]
    assert all(trial.problems for trial in judged)


def test_what_was_decided_sends_nothing_and_a_soak_that_was_ended_begins_anew(tmp_path: Path) -> None:
    tests = "Decided\n    64b unidirectional ≥ 1 Mpps\nLong\n    64b unidirectional ≥ 2 Mpps for 300 s\n"
    suite = robot_run.write_tests(tmp_path, tests, SETUP)
    options = robot_run.short_goal(tmp_path)
    process = robot_run.start(tmp_path, suite, *options)
    wait_until(lambda: any(p.read_bytes().count(b"for 300 s") > 20 for p in tmp_path.glob("results/*/trials.jsonl")))
    os.kill(process.pid, signal.SIGKILL)
    process.wait(30)
    (killed,) = runs_of(tmp_path)
    found = robot_run.run(tmp_path, suite, *options, "-v", f"RESUME:{killed.path.name}")
    assert set(verdicts(found).values()) == {"PASS"}, found.console
    _, again = runs_of(tmp_path)
    decided, long = ([item.trial for item in again.trials if item.test == name] for name in ("Decided", "Long"))
    assert all(trial.run for trial in decided)
    judged = [trial for trial in long if trial.number]
    assert [trial.number for trial in judged] == list(range(1, 301))
    assert not any(trial.run for trial in judged)
