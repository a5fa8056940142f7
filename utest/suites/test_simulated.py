"""The main job as a user runs it, and everything it leaves."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from lineproof.evidence.integrity import check_integrity
from lineproof.evidence.records import ENVIRONMENT, REQUIREMENT, TRIAL, schema
from lineproof.evidence.run import read_run
from support import robot_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> robot_run.RobotRun:
    folder = tmp_path_factory.mktemp("netgate")
    return robot_run.run(folder, robot_run.ROOT / "tests" / "netgate6100.robot")


@pytest.fixture(scope="module")
def left(done: robot_run.RobotRun) -> Path:
    (folder,) = (done.folder / "results").iterdir()
    return folder


def test_it_passes_and_leaves_no_process(done: robot_run.RobotRun):
    assert done.status == 0, done.console
    assert len(done.tests) == 9
    assert all(message.startswith("PASS: ") for _, message in done.tests.values())
    assert robot_run.processes_of(done.folder) == []


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_it_says_simulated_wherever_a_person_looks(done: robot_run.RobotRun, left: Path):
    assert "SIMULATED" in done.console
    suite = ET.parse(done.folder / "out" / "output.xml").getroot().find("suite")
    assert suite is not None
    assert "SIMULATED" in (suite.findtext("meta[@name='Testbed']") or "")
    assert "SIMULATED" in (left / "allure" / "environment.properties").read_text()
    run = read_run(left)
    assert run.environment is not None and run.environment.simulated
    assert all(record.simulated for record in run.trials)
    assert all(record.simulated for record in run.requirements)


MINUTE = """\
goal: minute
about: one trial of 60 s without a lost frame
final_trial_duration: 60
duration_sum: 60
loss_ratio: 0
exceed_ratio: 0
warm_up: 0
"""


def test_a_simulated_trial_of_a_minute_is_no_throughput_of_rfc_2544(tmp_path: Path):
    home = robot_run.project(tmp_path)
    (home / "variables" / "goals" / "minute.yaml").write_text(MINUTE, encoding="utf-8")
    suite = robot_run.write_suite(tmp_path, "64b 1-flow unidirectional ≥ 10 kpps")
    found = robot_run.run(tmp_path, suite, "-v", f"PROJECT:{home}", "-v", "GOAL:minute")
    (folder,) = (tmp_path / "results").iterdir()
    (record,) = read_run(folder).requirements
    assert record.verdict == "PASS", found.message
    assert record.goal_terms["final_trial_duration"] == 60
    assert record.simulated and record.extra["rfc2544_throughput"] is False


def test_the_records_are_as_published_and_unchanged(left: Path):
    for name, file in ((TRIAL, "trials.jsonl"), (REQUIREMENT, "requirements.jsonl")):
        validator = jsonschema.Draft202012Validator(schema(name))
        validator.check_schema(schema(name))
        for row in rows(left / file):
            validator.validate(row)
    jsonschema.validate(json.loads((left / "environment.json").read_text()), schema(ENVIRONMENT))
    assert check_integrity(left).altered == ()


def test_each_sentence_has_its_record_its_warm_up_and_its_trials(left: Path):
    run = read_run(left)
    assert len(run.requirements) == 9
    for record in run.requirements:
        numbers = [item.trial.number for item in run.trials if item.requirement == record.number]
        assert numbers == [0, *record.trials]
        assert len(record.trials) >= 7
        assert record.measured is not None and record.measured.pps > 0
    assert run.environment is not None
    versions = run.environment.versions
    assert "generator.client" in versions and "router.version" in versions
    assert "https://ipng.ch/" in run.environment.extra["sla"]
    assert "severity:critical" in run.requirements[1].extra["about"]["tags"]


def test_each_test_has_its_table_and_its_plot_in_allure(left: Path):
    results = [json.loads(path.read_text()) for path in (left / "allure").glob("*-result.json")]
    assert len(results) == 9
    for result in results:
        assert result["status"] == "passed"
        kinds = {item["type"]: left / "allure" / item["source"] for item in result["attachments"]}
        assert "offered" in kinds["text/html"].read_text()
        assert kinds["image/svg+xml"].read_text().count("SIMULATED") >= 1


def test_what_trex_offered_is_what_the_router_counted(left: Path):
    """The first sentence loses nothing, so VPP's own counters rise by exactly what the generator sent."""
    received = {}
    for moment in ("before", "after"):
        (path,) = (left / "telemetry").glob(f"001-{moment}-*show-interface.txt")
        received[moment] = sum(int(count) for count in re.findall(r"rx packets +(\d+)", path.read_text()))
    offered = sum(item.trial.offered for item in read_run(left).trials if item.requirement == 1 and item.trial.number)
    assert offered > 0
    assert received["after"] - received["before"] == offered
