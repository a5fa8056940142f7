"""Habits of people with any suite: they read the last lines, count tags, run failed tests again.

Suites side by side are those of ``test_pool.py``.
"""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path

import pytest
from robot.api import ExecutionResult

from lineproof.evidence.run_files import check_integrity
from lineproof.evidence.signoff.signature import verify
from support import robot_run
from support.paths import ROOT

pytestmark = pytest.mark.slow

SUITE = f"""\
*** Settings ***
Resource    {ROOT}/resources/acceptance.resource
Library    lineproof.robot.Faults
Suite Setup    Open Testbed For    netgate6100    software=vpp    goal=quick
Suite Teardown    Close Testbed
*** Variables ***
${{LEAST}}    9
*** Test Cases ***
Passes
    64b 1-flow unidirectional ≥ 1 Mpps
Fails Unless Less Is Asked
    64b 1-flow unidirectional ≥ ${{LEAST}} Mpps
Cannot Be Decided
    Cause Fault    link flap    start=2    at=0.5    for=0.2    every=True
    64b 1-flow unidirectional ≥ 1 Mpps
"""


def robot(folder: Path, *words: str) -> tuple[int, str]:
    """Exit status and output of ``robot WORDS`` in *folder*."""
    options = ["robot", "--outputdir", "out", "-v", "MARGIN:off", *words]
    done = robot_run.programs().run(options, robot_run.environment(folder), folder, limit=200)
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a run with each verdict, and what was on its console."""
    folder = tmp_path_factory.mktemp("failed")
    (folder / "suite.robot").write_text(SUITE, encoding="utf-8")
    status, printed = robot(folder, "suite.robot")
    assert status == 2, printed
    return folder, printed


def test_the_console_ends_with_counts_the_folder_and_the_page_and_verdicts_are_tags(failed: tuple[Path, str]) -> None:
    folder, console = failed
    (run,) = (path.parent for path in folder.glob("out/*/requirements.jsonl"))
    end = console[console.index("\nPage:") + 1 :]
    # a machine that is busy is named before the rest
    page, title, simulated, *others = filter(None, end.splitlines())
    following = " ".join(others[others.index(f"Evidence: {run}") + 1 :])
    assert title == "Suite: 1 PASS, 1 FAIL, 1 INCONCLUSIVE"
    assert simulated.startswith("SIMULATED") and "\x1b" not in end
    assert following == "Next: lineproof calibrate simulated --platform netgate6100"
    assert page.split() == ["Page:", f"{run.relative_to(folder)}/summary.html"] and (run / "summary.html").is_file()
    log = html.unescape((folder / "out" / "output.xml").read_text(encoding="utf-8"))
    assert "Suite: 1 PASS, 1 FAIL, 1 INCONCLUSIVE</h1>" in log
    assert verify(run)[0].altered == check_integrity(run).altered == ()
    statistics = {item.name: item.failed for item in ExecutionResult(folder / "out" / "output.xml").statistics.tags}
    assert statistics == {"verdict:fail": 1, "verdict:inconclusive": 1}


def test_failed_tests_run_again_and_merged_name_the_evidence_of_both_runs(failed: tuple[Path, str]) -> None:
    folder, _ = failed
    words = ["--rerunfailed", "out/output.xml", "--output", "again.xml", "--log", "NONE", "--report", "NONE"]
    status, printed = robot(folder, *words, "-v", "LEAST:1", "suite.robot")
    assert status == 1, printed
    merge = [sys.executable, "-m", "robot.rebot", "--merge", "--output", "merged.xml", "--outputdir", "."]
    merged = subprocess.run(
        [*merge, "out/output.xml", "out/again.xml"], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert merged.returncode == 1, merged.stdout + merged.stderr
    evidence = set(re.findall(r'<meta name="Evidence [^"]*">([^<]*)<', (folder / "merged.xml").read_text("utf-8")))
    assert evidence == {str(path.parent) for path in folder.glob("out/*/requirements.jsonl")} and len(evidence) == 2
    states = {test.name: (test.status, *test.tags) for test in ExecutionResult(folder / "merged.xml").suite.all_tests}
    assert states == {
        "Passes": ("PASS",),
        "Fails Unless Less Is Asked": ("PASS",),
        "Cannot Be Decided": ("FAIL", "verdict:inconclusive"),
    }
