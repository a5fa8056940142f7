"""Going on with a run: the printed command, ``-v RESUME:`` and ``runs: N``; trials of earlier runs count first."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lineproof.evidence.integrity import check_integrity
from lineproof.evidence.rejudging import rejudge
from lineproof.evidence.run import RecordedRun, read_run
from lineproof.evidence.started_as import StartedAs
from support import robot_run
from support.patience import wait_until
from support.resealed import change_records

TESTS = """\
Small Frames
    64b unidirectional ≥ 1 Mpps
Large Frames
    1514b unidirectional ≥ 100 kpps
Other Frames
    512b unidirectional ≥ 100 kpps
Not Selected
    [Tags]    no
    64b bidirectional ≥ 1 Mpps
"""


def environment(folder: Path) -> dict[str, str]:
    """With ``robot`` and ``lineproof`` of this Python."""
    found = robot_run.environment(folder)
    return {**found, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{found['PATH']}"}


@pytest.mark.slow
def test_the_printed_command_goes_on_with_a_killed_suite_of_a_folder(tmp_path: Path) -> None:
    home = robot_run.project(tmp_path, "metered")
    (home / "tests").mkdir()
    for name in ("one", "two"):
        robot_run.write_tests(home / "tests", TESTS, name=name)
    # "robot" of the tests' Python, started as people do
    words = ["robot", "-d", "results/k", "-v", "TESTBED:metered", "-v", "GOAL:quick", "-v", "PASSWORD:abc", "-e", "no"]
    process = subprocess.Popen(
        [*words, "tests"],
        cwd=home,
        env=environment(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_until(lambda: decided(home) or process.poll() is not None, limit=120)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    (killed,) = (home / "results" / "k").glob("*-2")
    assert check_integrity(killed).altered == ()
    found = called("lineproof", "summary", str(killed), folder=tmp_path, home=tmp_path)
    command = re.search(r"^Next: (.*)$", found.stdout, re.MULTILINE)
    assert command is not None, found
    variables = "-v TESTBED:metered -v GOAL:quick -e no -v PASSWORD:… -s Tests.Two"
    assert shlex.split(command[1]) == shlex.split(
        f"cd {shlex.quote(str(home))} && robot -d results/k -v RESUME:{killed.name} {variables} tests"
    )
    resumed = called("bash", "-c", command[1], folder=tmp_path, home=tmp_path)
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert f"goes on with run {killed.name}: evidence begins with its trials" in resumed.stdout
    (new,) = (path for path in (home / "results" / "k").glob("2*Z-??????") if not killed.name.startswith(path.name))
    again = read_run(new)
    assert len(again.requirements) == 3
    assert all(item.trial.run == killed.name for item in again.trials if item.requirement == 1), "nothing was sent"
    refused = called("bash", "-c", command[1].replace("-d results/k", ""), folder=tmp_path, home=tmp_path)
    assert f"there is no run '{killed.name}' to resume" in " ".join(refused.stdout.split()), refused.stdout


def decided(home: Path) -> bool:
    """Return whether the second suite has a verdict."""
    return any(path.read_bytes().count(b"\n") for path in home.glob("results/k/*-2/requirements.jsonl"))


def called(*words: str, folder: Path, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=home, env=environment(folder), capture_output=True, text=True, check=False, timeout=300
    )


def test_the_command_has_the_folder_that_the_run_is_in_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "re sults" / "20260101T000000Z-abcdef"
    for option, shown in (("-d", "-d 're sults' "), ("-v RESULTS:", "-v 'RESULTS:re sults' "), ("", "")):
        found = StartedAs(("robot", "-v", "GOAL:quick", "a.robot"), tmp_path, option)
        assert found.going_on(run) == f"robot {shown}-v RESUME:{run.name} -v GOAL:quick a.robot"
        assert StartedAs.of({"started_as": found.record()}) == found
    study = StartedAs(("lineproof", "study", "run", "mine", "--goal", "quick"), Path("/else where"), "--results")
    words = f"cd '/else where' && lineproof study run mine --goal quick --results '{tmp_path}/re sults'"
    assert study.going_on(run) == f"{words} --resume {run.name}"


@pytest.mark.parametrize("found", [None, {}, {"command": [], "folder": "/", "results": ""}, {"command": "robot"}, []])
def test_a_run_that_does_not_say_it_has_no_command(found: object) -> None:
    assert StartedAs.of({"started_as": found}) is None


SETUP = "Open Testbed For    netgate6100    software=vpp    goal=quick"
TWO = "Kept\n    64b 1-flow unidirectional ≥ 2 Mpps\nMissed\n    64b 1-flow unidirectional ≥ 6 Mpps\n"


def runs_of(folder: Path) -> list[RecordedRun]:
    """Return the runs in *folder*, in their order."""
    runs = [read_run(path) for path in (folder / "results").iterdir()]
    return sorted(runs, key=lambda run: run.environment.started if run.environment else 0.0)


def verdicts(found: robot_run.RobotRun) -> dict[str, str]:
    return {name: message.partition(":")[0] for name, (_, message) in found.tests.items()}


@pytest.mark.slow
def test_two_runs_decide_together_and_then_no_traffic_is_sent(tmp_path: Path) -> None:
    suite = robot_run.write_tests(tmp_path, TWO, SETUP)
    options = robot_run.short_goal(tmp_path, "runs: 2\n")
    first = robot_run.run(tmp_path, suite, *options)
    assert set(verdicts(first).values()) == {"INCONCLUSIVE"}
    assert "run 1 of 2, evidence 23.4 to 1" in first.tests["Kept"][1]
    (one,) = runs_of(tmp_path)
    second = robot_run.run(tmp_path, suite, *options, "-v", f"RESUME:{one.path.name}")
    assert verdicts(second) == {"Kept": "PASS", "Missed": "FAIL"}, second.console
    assert f"8 trials (4 of run {one.path.name}, 4 of this one), evidence 549 to 1" in second.tests["Kept"][1]
    _, two = runs_of(tmp_path)
    third = robot_run.run(tmp_path, suite, *options, "-v", f"RESUME:{two.path.name}")
    assert verdicts(third) == verdicts(second), third.console
    *_, three = runs_of(tmp_path)
    assert all(trial.trial.run for trial in three.trials), "all of them are of the earlier runs"


@pytest.mark.slow
def test_doubts_that_somebody_took_from_a_trial_of_an_earlier_run_are_there_again(tmp_path: Path) -> None:
    suite = robot_run.write_tests(tmp_path, TWO[TWO.index("Missed") :], SETUP)
    options = robot_run.short_goal(tmp_path)
    robot_run.run(tmp_path, suite, *options)
    robot_run.run(tmp_path, suite, *options, "-v", f"RESUME:{runs_of(tmp_path)[0].path.name}")
    _, again = runs_of(tmp_path)
    change_records(again.path / "trials.jsonl", lambda rows: [row["trial"].update(problems=[]) for row in rows])
    (sentence,) = rejudge(again.path).sentences
    assert sentence.same and sentence.verdict is not None and sentence.verdict.runs
    judged = [item.trial for item in again.trials if item.trial.number]
    assert [trial.problems for trial in sentence.verdict.trials] == [trial.problems for trial in judged]
    assert all(trial.problems for trial in judged)


@pytest.mark.slow
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
