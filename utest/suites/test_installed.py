"""Lineproof as installed, in a folder of its own: nothing of the clone is in reach."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

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
    assert "3 tests, 3 passed" in ran.stdout and "SIMULATED" in ran.stdout
    # without --outputdir evidence goes to results/ of the project
    assert len(list(tmp_path.glob("results/*/requirements.jsonl"))) == 1
