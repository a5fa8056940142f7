"""A small study on the simulated testbed: killed and gone on with, altered, and refused."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from lineproof.evidence.run import read_measurements, read_run
from support.command_line import PROGRAM, environment, lineproof
from support.patience import wait_until
from support.study_builders import SMALL

pytestmark = pytest.mark.slow

EVERY = {
    *((block, turn, "vpp", "one flow") for block in (1, 2) for turn in ("first", "last")),
    *((block, "", "linux", "one flow") for block in (1, 2)),
    *((1, turn, variant, "ramp") for turn, variant in (("first", "vpp"), ("", "linux"))),
}


def project(folder: Path, text: str = SMALL) -> Path:
    (folder / "variables" / "studies").mkdir(parents=True, exist_ok=True)
    (folder / "variables" / "studies" / "small.yaml").write_text(text, encoding="utf-8")
    return folder


def runs(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "results").iterdir() if path.name[0] == "2")


def measured(run: Path) -> Counter[tuple[int, str, str, str]]:
    return Counter((found.block, found.turn, found.variant, found.row) for found in read_measurements(run))


def test_a_study_is_killed_and_gone_on_with(tmp_path: Path) -> None:
    """No measurement is made twice, none is lost, and the run that went on is whole by itself."""
    project(tmp_path)
    with (tmp_path / "console.txt").open("wb") as console:
        words = [*PROGRAM, "study", "run", "small", "--goal", "quick"]
        process = subprocess.Popen(words, stdout=console, cwd=tmp_path, env=environment(tmp_path))
        try:
            shown = (tmp_path / "console.txt").read_bytes
            wait_until(lambda: b"block 1: linux" in shown() or process.poll() is not None)
            assert process.poll() is None
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(10)
    (first,) = runs(tmp_path)
    before = measured(first)
    assert before[1, "first", "vpp", "one flow"] == 1 and set(before) < EVERY

    ran = lineproof(tmp_path, "study", "run", "small", "--goal", "quick", "--resume", first.name)
    assert f"run {first.name} measured {len(before)} measurements: carried over" in ran.stdout, ran.stderr
    _, second = runs(tmp_path)
    after = measured(second)
    assert set(after) == EVERY and set(after.values()) == {1}
    records = read_measurements(second)
    assert Counter(record.carried_from for record in records) == {first.name: len(before), "": len(EVERY) - len(before)}
    # each has its own trials, those of the first run too
    trials = Counter(trial.requirement for trial in read_run(second).trials)
    assert all(trials[record.requirement] for record in records)
    assert len({record.requirement for record in records}) == len(records)
    assert lineproof(tmp_path, "verify", str(first)).returncode == 0
    assert lineproof(tmp_path, "verify", str(second)).returncode == 0
    assert all(record.simulated for record in records)
    # the coarse ramp is nobody's published figure, so that all are met
    assert ran.returncode == 0 and "2 of 2 published figures inside" in ran.stdout
    assert {"study.txt", "study.html", "study.csv", "study.md"} <= {path.name for path in second.iterdir()}

    # a report needs nothing but the folder, and says the same
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(second, elsewhere / second.name, ignore=shutil.ignore_patterns("study.*"))
    again = lineproof(tmp_path, "study", "report", str(elsewhere / second.name))
    assert again.returncode == 0
    assert (elsewhere / second.name / "study.csv").read_text() == (second / "study.csv").read_text()


def test_a_folder_of_results_that_cannot_be_made_is_answered_with_the_commands_option(tmp_path: Path) -> None:
    project(tmp_path)
    ran = lineproof(tmp_path, "study", "run", "small", "--goal", "quick", "--results", "/proc/x")
    assert ran.returncode == 2
    assert "cannot be made: " in ran.stderr and "; keep results elsewhere: --results /another/folder" in ran.stderr
    assert "RESULTS:" not in ran.stderr + ran.stdout
