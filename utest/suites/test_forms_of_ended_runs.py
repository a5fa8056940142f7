"""Runs that end at any moment by kill -9, or on a disk that fills: each form has all that was finished, and no more.

``LINEPROOF_FORMS=50 pytest utest/suites/test_forms_of_ended_runs.py`` tries 50 moments each; the default is a sample.
"""

from __future__ import annotations

import csv
import json
import os
import random
import shlex
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from robot.api import ExecutionResult

from lineproof.evidence.integrity import check_integrity
from support import robot_run
from support.command_line import environment, lineproof
from support.patience import wait_until

pytestmark = pytest.mark.slow

MANY = int(os.environ.get("LINEPROOF_FORMS", "1"))
TESTS = """\
One
    64b 1-flow unidirectional ≥ 1 Mpps
Two
    imix bidirectional ≥ 10% line rate each way
Three
    64b 1-flow unidirectional forwards ≥ 1 Mpps
Four
    1514b unidirectional ≥ 50% line rate
"""
TRIALS = 4 * 5
"""Of a whole run: a warm-up and four trials of each sentence."""

LIMIT = 400.0
"""Seconds for a run on a busy machine: an early end would be the same moment each time."""


@pytest.fixture
def call(tmp_path: Path) -> list[str]:
    """The call of Robot for a run of some seconds."""
    project = robot_run.project(tmp_path)
    testbed = project / "variables" / "testbeds" / "simulated.yaml"
    testbed.write_text(testbed.read_text(encoding="utf-8").replace("clock_speed: 50", "clock_speed: 10"))
    suite = robot_run.write_tests(tmp_path, TESTS, "Open Testbed For    netgate6100    software=vpp    goal=quick")
    return robot_run.command(tmp_path, suite, "-v", f"PROJECT:{project}")


def whole_lines(path: Path) -> bytes:
    """What of *path* ends with a line's end."""
    text = path.read_bytes() if path.exists() else b""
    return text[: text.rfind(b"\n") + 1]


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in whole_lines(path).splitlines()]


@dataclass(frozen=True)
class Left:
    """What is on the disk after the end, read without the product: trials and verdicts by sentence."""

    run: Path
    trials: list[dict[str, Any]]
    verdicts: list[dict[str, Any]]

    @classmethod
    def of(cls, results: Path) -> Left | None:
        """None: the run ended before it was described."""
        runs = [path.parent for path in results.glob("*/environment.json")]
        if not runs:
            return None
        (run,) = runs
        return cls(run, rows(run / "trials.jsonl"), rows(run / "requirements.jsonl"))

    def unfinished(self) -> list[dict[str, Any]]:
        return [row for row in self.trials if row["requirement"] > len(self.verdicts) and row["number"]]


def check_forms(left: Left, folder: Path) -> None:
    """The summary says what is on the disk: every finished sentence with its trials, and nothing else."""
    assert check_integrity(left.run).altered == ()
    for number in {row["requirement"] for row in left.trials}:
        numbers = [row["number"] for row in left.trials if row["requirement"] == number]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), "none is missing, none is there twice"
    for verdict in left.verdicts:
        known = {row["number"] for row in left.trials if row["requirement"] == verdict["number"]}
        # a disk that took no trial any more may have room for the word why
        assert {*verdict["trials"]} <= known and (verdict["trials"] or verdict["verdict"] == "INCONCLUSIVE")
    made = lineproof(folder, "summary", str(left.run), "--output", str(folder / "forms"))
    assert made.returncode == 0 and "Traceback" not in made.stderr, made.stderr
    with (folder / "forms" / "summary.csv").open(encoding="utf-8", newline="") as file:
        named = [row for row in csv.DictReader(file) if row["test"]]  # a run without a sentence has a row, too
    table = [(row["test"].rpartition(".")[2], row["verdict"], row["trials"]) for row in named]
    finished = [(row["test"].rpartition(".")[2], row["verdict"], str(len(row["trials"]))) for row in left.verdicts]
    assert table == finished
    ended = json.loads((left.run / "environment.json").read_bytes())["ended"] is not None
    assert ("incomplete" in made.stdout) is not ended, made.stdout
    if count := len(left.unfinished()):
        assert f"unfinished: {count} trial{'s' * (count > 1)} of" in " ".join(made.stdout.split())


@pytest.mark.parametrize("seed", range(1, 1 + MANY))
def test_a_run_that_is_killed_loses_no_finished_trial_and_invents_none(
    call: list[str], tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    wanted, delay = chance.randrange(TRIALS + 2), chance.uniform(0, 0.4)
    results = tmp_path / "results"
    with (tmp_path / "console.txt").open("wb") as console:
        child = subprocess.Popen(call, stdout=console, stderr=console, env=environment(tmp_path), cwd=tmp_path)
        with child:
            until = time.monotonic() + LIMIT
            while child.poll() is None and time.monotonic() < until:
                seen = {path: whole_lines(path) for path in results.glob("*/*.jsonl")}
                if sum(text.count(b"\n") for path, text in seen.items() if path.name == "trials.jsonl") >= wanted:
                    break
                time.sleep(0.005)
            time.sleep(delay)
            before = {path: whole_lines(path) for path in results.glob("*/*.jsonl")}
            child.kill()
    for path, text in before.items():
        assert whole_lines(path).startswith(text), f"{path} lost lines that were whole before the kill"
    left = Left.of(results)
    if left is not None:
        check_forms(left, tmp_path)
    count = (len(left.verdicts), len(left.trials), len(left.unfinished())) if left else (0, 0, 0)
    print(f"seed {seed}: {count[0]} sentences finished, {count[1]} trials, {count[2]} of them of the unfinished one")
    wait_until(lambda: robot_run.processes_of(tmp_path) == [], lambda: robot_run.processes_of(tmp_path))


@pytest.mark.skipif(os.getuid() != 0 or shutil.which("unshare") is None, reason="needs root and unshare: it mounts")
@pytest.mark.parametrize("seed", range(1, 1 + MANY))
def test_a_disk_that_fills_loses_no_finished_trial_and_invents_none(call: list[str], tmp_path: Path, seed: int) -> None:
    """The disk has room for a part of the run, at random; what is on it is looked at elsewhere."""
    results = tmp_path / "results"
    results.mkdir()
    size = random.Random(seed).randrange(300, 1400, 4)
    mount = f"mount -t tmpfs -o size={size}k,mode=0700 none {results}"
    script = f"{mount} && {shlex.join(call)}; cp -r {results} {tmp_path / 'kept'}"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert "Traceback" not in done.stdout and "[Errno" not in done.stdout, done.stdout
    left = Left.of(tmp_path / "kept")
    if left is None:
        assert "-v RESULTS:" in done.stdout and "PASS:" not in done.stdout, done.stdout
    else:
        check_forms(left, tmp_path)
        # a verdict that was shown is on the disk; Robot's own output, which is on another one, says which were
        tests = ExecutionResult(tmp_path / "out" / "output.xml").suite.all_tests
        shown = {test.name: (test.status, test.message) for test in tests}
        passed = {name for name, (status, _) in shown.items() if status == "PASS"}
        assert done.stdout.count("| PASS |\nPASS: ") == len(passed), "the console shows what Robot wrote"
        kept = {row["test"].rpartition(".")[2] for row in left.verdicts if row["verdict"] == "PASS"}
        assert passed <= kept
        # one that was kept may have found no room for what is written after it
        assert all("No space left on device" in shown[name][1] for name in kept - passed), shown
    count = (len(left.verdicts), len(left.trials)) if left else (0, 0)
    print(f"seed {seed}: {size} kB: {count[0]} sentences finished, {count[1]} trials")
