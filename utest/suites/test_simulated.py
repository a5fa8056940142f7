"""The main job as a user runs it, and everything it leaves."""

from __future__ import annotations

import json
import re
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


def test_what_trex_offered_is_what_the_router_counted(left: Path):
    """The first sentence loses nothing, so VPP's own counters rise by exactly what the generator sent."""
    received = {}
    for moment in ("before", "after"):
        (path,) = (left / "telemetry").glob(f"001-{moment}-*show-interface.txt")
        received[moment] = sum(int(count) for count in re.findall(r"rx packets +(\d+)", path.read_text()))
    offered = sum(item.trial.offered for item in read_run(left).trials if item.requirement == 1 and item.trial.number)
    assert offered > 0
    assert received["after"] - received["before"] == offered
