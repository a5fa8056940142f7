"""The command that a summary prints for an interrupted run goes on with it, as it stands."""

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
from lineproof.evidence.run import read_run
from lineproof.evidence.started_as import StartedAs
from support import robot_run
from support.patience import wait_until

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
    home = robot_run.project(tmp_path)
    testbeds = home / "variables" / "testbeds"
    text = (testbeds / "simulated.yaml").read_text(encoding="utf-8")
    (testbeds / "metered.yaml").write_text(text.replace("testbed: simulated", "testbed: metered"), encoding="utf-8")
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
