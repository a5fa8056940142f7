"""Lineproof as installed, in a folder of its own, and beside another distribution that adds a quantity."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support import robot_run
from support.command_line import PROGRAM, environment
from support.paths import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which the wheel's content is what Python finds."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=60)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return {**os.environ, "PYTHONPATH": str(folder / "site"), "XDG_RUNTIME_DIR": str(folder)}


def run(folder: Path, environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_new_project_runs_at_once(tmp_path: Path, installed: dict[str, str]) -> None:
    made = run(tmp_path, installed, "lineproof", "init", "mybox")
    assert made.returncode == 0, made.stderr
    ran = run(tmp_path, installed, "robot", "-v", "GOAL:quick", "-v", "MARGIN:off", "tests")
    assert ran.returncode == 0, ran.stdout
    assert "4 tests, 4 passed" in ran.stdout and "SIMULATED" in ran.stdout
    # without --outputdir evidence goes to results/ of the project
    assert len(list(tmp_path.glob("results/*/requirements.jsonl"))) == 1


DUPLICATES = '''
"""``duplicates ≤ 0.01% at 1 Mpps``: the share of frames that came twice (RFC 5560)."""

from lineproof.core.doubts import AT_THE_EXACT_LOAD
from lineproof.core.latency import LatencyCount
from lineproof.core.probe_share import ShareOfProbes


class Duplicates(ShareOfProbes):
    name = word = "duplicates"
    example = "duplicates ≤ 0.01% at 1 Mpps"
    happened = "came twice"
    doubts = AT_THE_EXACT_LOAD

    def count(self, probes: LatencyCount) -> int:
        return probes.duplicates


DUPLICATES = Duplicates()
'''
SENTENCE = "64b unidirectional duplicates ≤ 1% at 1 Mpps"


def test_one_file_of_another_distribution_adds_a_quantity(tmp_path: Path) -> None:
    site = tmp_path / "site"
    info = site / "lineproof_duplicates-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "lineproof_duplicates.py").write_text(DUPLICATES, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lineproof_duplicates\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[lineproof.quantities]\nduplicates = lineproof_duplicates:DUPLICATES\n")
    known = {
        **environment(tmp_path),
        "COLUMNS": "200",
        "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]),
    }

    def run_program(*words: str) -> str:
        done = subprocess.run(words, env=known, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    suite = robot_run.write_suite(tmp_path, SENTENCE)
    console = run_program(*robot_run.command(tmp_path, suite, "-v", "GOAL:quick"))
    assert f"PASS: {SENTENCE}: at most" in " ".join(console.split())
    (folder,) = (path.parent for path in tmp_path.glob("results/*/requirements.jsonl"))
    record = json.loads((folder / "requirements.jsonl").read_text(encoding="utf-8"))
    assert (record["verdict"], record["quantity"]) == ("PASS", "duplicates")
    assert any("duplicates" in path.read_text(encoding="utf-8", errors="replace") for path in folder.rglob("*.svg"))
    assert SENTENCE in run_program(*PROGRAM, "summary", str(folder))
    assert "same" in run_program(*PROGRAM, "rejudge", str(folder))
    assert run_program(*PROGRAM, "gate", str(folder))
