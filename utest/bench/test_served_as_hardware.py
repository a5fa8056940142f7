"""A simulation behind a testbed file of ``kind: hardware`` is a simulation in every record and report."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from lineproof.evidence.run import read_run
from support import robot_run
from support.command_line import lineproof
from support.served_bench import served

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Done:
    run: robot_run.RobotRun
    left: Path


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    folder = tmp_path_factory.mktemp("served")
    with served(folder) as bench:
        home = bench.project(folder)
        robot_run.shorten(home)
        suite = robot_run.write_suite(folder, "64b 1-flow ≥ 10 kpps")
        found = robot_run.run(folder, suite, "-v", f"PROJECT:{home}", "-v", "TESTBED:lab", "-v", "GOAL:quick")
    (left,) = (folder / "results").iterdir()
    yield Done(found, left)


def test_no_record_passes_for_a_measurement(done: Done):
    assert done.run.tests["The Test"][0] == "PASS", done.run.message
    run = read_run(done.left)
    assert run.environment is not None and run.environment.testbed == "lab"
    assert run.environment.simulated and run.environment.clock_speed == 1
    assert run.trials and all(record.simulated for record in run.trials)
    assert all(record.simulated for record in run.requirements)


def test_the_records_say_what_showed_it(done: Done):
    environment = read_run(done.left).environment
    assert environment is not None
    signs = environment.extra["simulated_because"]
    for who in ("the generator's server", "driver of the generator's port 0", "the router's kernel"):
        assert any(sign.startswith(f"{who}: ") for sign in signs), (who, signs)


def test_every_report_says_it(done: Done):
    assert "SIMULATED: " in done.run.console
    suite = ET.parse(done.run.folder / "out" / "output.xml").getroot().find("suite")
    assert suite is not None and "SIMULATED" in (suite.findtext("meta[@name='Testbed']") or "")
    allure = done.left / "allure"
    assert "SIMULATED" in (allure / "environment.properties").read_text()
    assert "SIMULATED" in json.loads((allure / "allurerc.json").read_text())["name"]
    (result,) = (json.loads(path.read_text()) for path in allure.glob("*-result.json"))
    kinds = {item["type"]: allure / item["source"] for item in result["attachments"]}
    assert "SIMULATED" in kinds["text/html"].read_text()
    assert "SIMULATED" in kinds["image/svg+xml"].read_text()


def test_a_calibration_of_it_is_for_a_simulated_generator_only(tmp_path: Path):
    with served(tmp_path, "--cable") as bench:
        home = bench.project(tmp_path)
        words = ("lab", "--platform", "netgate6100", "--traffic", "64b 1-flow", "--unidirectional", "--duration", "0.2")
        found = lineproof(tmp_path, "calibrate", "--goal", "quick", *words, "--calibrations", str(tmp_path), cwd=home)
    assert "SIMULATED: " in found.stdout, found.stderr
    written = yaml.safe_load((tmp_path / "lab-netgate6100.yaml").read_text(encoding="utf-8"))
    assert (written["kind"], written["simulated"]) == ("hardware", True)
