"""The characterising keywords as a user runs them, and everything they leave."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from lineproof.evidence.integrity import check_integrity
from lineproof.evidence.records import CHARACTERISATION, schema
from lineproof.evidence.run import read_run
from support import robot_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> robot_run.RobotRun:
    folder = tmp_path_factory.mktemp("characterise")
    return robot_run.run(folder, robot_run.ROOT / "tests" / "characterise_netgate6100.robot")


@pytest.fixture(scope="module")
def left(done: robot_run.RobotRun) -> Path:
    (folder,) = (done.folder / "results").iterdir()
    return folder


@pytest.fixture(scope="module")
def results(left: Path) -> dict[str, dict]:
    found = [json.loads(path.read_text()) for path in (left / "characterisation").glob("*.json")]
    return {item["method"]: item for item in found if "method" in item}


def test_it_passes_says_what_was_found_and_leaves_no_process(done: robot_run.RobotRun):
    assert done.status == 0, done.console
    assert all("SIMULATED: " in message for _, message in done.tests.values())
    assert "NDR (without loss)" in done.tests["Capacity Of One Flow"][1]
    assert "Deviations from RFC 2544" in done.tests["Throughput And Latency By RFC 2544"][1]
    assert "6 characterisations, no sentence" in done.console and "0 PASS" not in done.console
    assert "results    search, ramp, RFC 2544 throughput, " in done.console
    assert robot_run.processes_of(done.folder) == []


def test_results_are_as_published_and_name_their_trials(left: Path, results: dict[str, dict]):
    assert set(results) == {
        "search",
        "ramp",
        "RFC 2544 throughput",
        "RFC 2544 latency",
        "RFC 2544 frame loss rate",
        "scaling over flows",
    }
    trials = read_run(left).trials
    for item in results.values():
        jsonschema.validate(item, schema(CHARACTERISATION))
        assert item["simulated"]
        mine = [record for record in trials if item["number"] <= record.requirement <= item["last"]]
        assert mine and {record.test for record in mine} == {item["test"]}
        assert all(record.sentence for record in mine)
    assert check_integrity(left).altered == ()


def test_pictures_and_tables_are_marked(left: Path, results: dict[str, dict]):
    folder = left / "characterisation"
    assert len(list(folder.glob("*.svg"))) == len(results) - 1
    assert len(list(folder.glob("*.html"))) == len(results)
    for path in (*folder.glob("*.svg"), *folder.glob("*.html")):
        assert "SIMULATED" in path.read_text()
    (drawn,) = folder.glob("*-loadtest.json")
    assert json.loads(drawn.read_text())["vars"]["simulated"] is True
    assert len(list((left / "allure").glob("*-attachment.svg"))) >= len(results) - 1


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> robot_run.RobotRun:
    folder = tmp_path_factory.mktemp("broken")
    suite = robot_run.write_suite(
        folder,
        "Cause Fault    link flap    start=6    at=0.2    for=0.2    every=True",
        "Search Throughput Of    64b 1-flow unidirectional",
        setup="Open Testbed For    netgate6100    software=vpp    goal=quick",
    )
    libraries = f"Resource    {robot_run.ROOT}/resources/characterisation.resource\n"
    text = suite.read_text(encoding="utf-8").replace("Suite Setup", f"{libraries}Suite Setup")
    suite.write_text(text, encoding="utf-8")
    return robot_run.run(folder, suite)


def test_a_bench_that_spoils_its_trials_is_inconclusive_and_keeps_what_was_found(broken: robot_run.RobotRun):
    assert broken.message.startswith("INCONCLUSIVE: Search: 64b 1-flow unidirectional: "), broken.console
    assert "a link was down" in broken.message
    (folder,) = (broken.folder / "results").iterdir()
    (kept,) = (folder / "characterisation").glob("*search.json")
    result = json.loads(kept.read_text())["result"]
    assert result["ended"].startswith("inconclusive: ")
    # the first start is the warm-up: four good ones, then one that is spoilt and three repetitions
    assert len(result["trials"]) == 8
    assert all(item["bad"] > 5e6 for item in result["bounds"])
