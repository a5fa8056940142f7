"""Testbeds that are lent: suites that pabot runs side by side share a pool, and labgrid has places."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from unittest.mock import create_autospec

import pytest
from robot.api import ExecutionResult

from lineproof.errors import TestbedError
from lineproof.evidence.run import read_run
from lineproof.project import Project
from lineproof.studies.runner import StudyRun
from lineproof.testbed.lab import LabPlace
from support import robot_run
from support.command_line import lineproof
from support.lab_rig import lab
from support.study_builders import SMALL, study_project

pytestmark = pytest.mark.slow


def pabot(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """``pabot WORDS`` in *folder*, whose pool lends what ``pool.ini`` says."""
    ports = ["--resourcefile", "pool.ini", "--pabotlibport", "0", "-v", "MARGIN:off"]
    command = [sys.executable, "-m", "pabot.pabot", *ports, "--outputdir", "out", "-v", "GOAL:quick", *words, "tests"]
    env = robot_run.environment(folder)
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)


def test_suites_have_the_only_testbed_of_a_pool_one_after_the_other(tmp_path: Path) -> None:
    home = robot_run.project(tmp_path, "bench1")
    (tmp_path / "pool.ini").write_text("[one]\ntestbed=bench1\n", encoding="utf-8")
    (tmp_path / "tests").mkdir()
    for name in ("first", "second"):
        robot_run.write_tests(tmp_path / "tests", "Kept\n    64b 1-flow ≥ 1 Mpps\n", name=name)
    done = pabot(tmp_path, "--processes", "2", "-v", f"PROJECT:{home}", "-v", "TESTBED:pool")
    assert done.returncode == 0, done.stdout
    runs = [read_run(path.parent) for path in tmp_path.glob("out/*/environment.json")]
    assert [run.environment.testbed for run in runs if run.environment and run.environment.ended] == ["bench1"] * 2
    assert [record.verdict for run in runs for record in run.requirements] == ["PASS"] * 2
    waits = "waiting for a testbed of pool 'pool', at most 2 h: other suites have all that pabot lends"
    assert any(
        waits in robot_run.unwrapped(path.read_text(errors="replace")) for path in (tmp_path / "out").rglob("*stdout*")
    )
    assert (tmp_path / "out" / "log.html").exists()
    # one summary over all
    (first,) = tmp_path.rglob("allure")
    assert (first.parent / "summary.html").read_text(encoding="utf-8").count("Evidence: ") == 2
    # pabot shows nothing of what its processes print
    assert "Evidence: " not in done.stdout
    shown = lineproof(tmp_path, "summary", "out")
    assert shown.returncode == 0 and shown.stdout.count("Evidence: ") == 2


WRONG_SETS = """\
[one]
tags=nameless
name=bench1
[two]
tags=unknown
testbed=bench9
[three]
tags=pool
testbed=pool
"""
WRONG = {
    "nameless": "pabot's value set 'one' names no testbed",
    "unknown": "no testbed for pabot's value set 'two' 'bench9' here",
    "pool": "is a pool of testbeds, of which a suite gets one",
    "10g": "No value set matching given tags exists",
}
"""A pool's tag, and what is said of it."""


def test_a_wrong_value_set_is_named(tmp_path: Path) -> None:
    home = robot_run.project(tmp_path, "bench1")
    (tmp_path / "pool.ini").write_text(WRONG_SETS, encoding="utf-8")
    testbeds = home / "variables" / "testbeds"
    pool = (testbeds / "pool.yaml").read_text(encoding="utf-8")
    text = f"*** Settings ***\nResource    {robot_run.ROOT}/resources/acceptance.resource\n"
    text += "Test Teardown    Close Testbed\n*** Test Cases ***\n"
    for tag in WRONG:
        named = pool.replace("testbed: pool\n", f"testbed: {tag}-pool\n") + f"tags: [{tag}]\n"
        (testbeds / f"{tag}-pool.yaml").write_text(named, encoding="utf-8")
        text += f"{tag}\n    Read Plan    netgate6100    vpp    {tag}-pool    quick\n"
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "suite.robot").write_text(text, encoding="utf-8")
    done = pabot(tmp_path, "-v", f"PROJECT:{home}")
    found = {test.name: test.message for test in ExecutionResult(tmp_path / "out" / "output.xml").suite.all_tests}
    assert found.keys() == WRONG.keys(), done.stdout
    for tag, words in WRONG.items():
        assert words in found[tag]


def test_without_pabot_a_pool_says_how_to_run_it_and_check_reads_its_suites(tmp_path: Path) -> None:
    suite = robot_run.write_suite(tmp_path, "64b 1-flow ≥ 1 Mpsp")
    found = robot_run.run(tmp_path, suite, "-v", "TESTBED:pool")
    assert "are lent by pabot; expected 'pabot --resourcefile FILE -v TESTBED:pool …'" in found.message
    assert "Mpsp" in robot_run.run(tmp_path, suite, "--dryrun", "-v", "TESTBED:pool").message


ROW = "  ramp: {ramp: 64b 1-flow unidirectional, steps: 5, repeats: 1}\n"
POOL = """\
testbed: benches
kind: pool
lab: {{coordinator: "{address}", tags: {{kind: bench}}, wait: 5 min}}
"""


def test_a_suite_gets_a_testbed_of_a_pool_and_gives_it_back(tmp_path: Path) -> None:
    home = robot_run.project(tmp_path, "bench1")
    with lab(tmp_path / "lab", ["bench1"]) as rig:
        (home / "variables" / "testbeds" / "benches.yaml").write_text(POOL.format(address=rig.address), "utf-8")
        suite = robot_run.write_suite(tmp_path, "64b 1-flow ≥ 1 Mpps")
        options = ("-v", f"PROJECT:{home}", "-v", "GOAL:quick", "-v", "TESTBED:benches")
        run = robot_run.start(tmp_path, suite, *options)
        assert run.wait(240) == 0, (tmp_path / "console.txt").read_text(encoding="utf-8")
        assert rig.holders() == {}
    (path,) = tmp_path.rglob("environment.json")
    environment = read_run(path.parent).environment
    assert environment is not None
    assert (environment.testbed, environment.extra["labgrid"]["place"]) == ("bench1", "bench1")


@pytest.mark.parametrize("problem", ["", "labgrid's place 'bench1' was taken from this run"])
def test_a_study_has_one_place_for_all_its_variants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    place = create_autospec(LabPlace, instance=True)
    place.record.return_value, place.problems.return_value = {"place": "bench1"}, (problem,) * bool(problem)
    places = [place]
    monkeypatch.setattr("lineproof.testbed.opening.LabPlace", lambda *_: places.pop())
    home = robot_run.project(tmp_path, "bench1", more="lab: {coordinator: '127.0.0.1:1'}")
    study_project(home, SMALL.replace(ROW, ""))
    run = StudyRun(Project(home), "small", "bench1", "quick", 1)
    if problem:
        with pytest.raises(TestbedError, match="was taken from this run"):
            run.run(tmp_path / "results")
    else:
        environment = json.loads((run.run(tmp_path / "results") / "environment.json").read_text(encoding="utf-8"))
        assert environment["extra"]["labgrid"] == {"place": "bench1"}
    assert place.close.called and not places
