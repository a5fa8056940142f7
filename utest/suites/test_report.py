"""The report of real runs, made by Allure in Node, and looked at in Chromium."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lineproof.errors import LineproofError
from lineproof.evidence import allure_program
from lineproof.evidence.integrity import check_integrity
from lineproof.evidence.report_page import POLICY
from lineproof.system.node import find_node
from support import robot_run
from support.browser import look_at
from support.command_line import PROGRAM
from support.evidence_builders import killed_run
from support.paths import ROOT

pytestmark = pytest.mark.slow

CHROMIUMS_OWN = re.compile(r"(?:.+\.)?(?:google\.com|googleapis\.com|gvt1\.com|gstatic\.com)")
SUITE = f"""
*** Settings ***
Metadata          SLA    Contract 7, https://sla.example/contract
Resource          {ROOT}/resources/acceptance.resource
Suite Setup       Open Testbed For    netgate6100    software=vpp    goal=quick
Suite Teardown    Close Testbed

*** Test Cases ***
Keeps v1.5 <b>It</b>
    [Documentation]    As in https://sla.example/4.2 and http://picture.example/evil.png
    [Tags]    severity:blocker
    64b 1-flow unidirectional ≥ 5% line rate
Fails
    64b 1-flow unidirectional ≥ 60% line rate
Proves Nothing
    Fail    INCONCLUSIVE: the power failed
Has A Secret
    VAR    ${{port}}    7
    VAR    ${{password}}    hunter2
    Log Many    ${{port}}    ${{password}}
"""


class Reported(NamedTuple):
    """The newest run, its report, and the tests in it by name."""

    run: Path
    page: Path
    tests: dict[str, dict[str, Any]]


def data_of(page: Path, pattern: str) -> list[Any]:
    found = re.findall(rf'd\("({pattern})","([^"]*)"\)', page.read_text(encoding="utf-8"))
    return [json.loads(base64.b64decode(text)) for _, text in found]


def parsed(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def report(folder: Path, *words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, **environment}
    return subprocess.run(
        [*PROGRAM, "report", *map(str, words)],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def allure() -> None:
    """Allure in the cache of this user: fetched once, else these tests are skipped."""
    try:
        if not allure_program.is_fetched():
            allure_program.fetch_allure(find_node())
    except LineproofError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory, allure: None) -> Reported:
    folder = tmp_path_factory.mktemp("report")
    (folder / "suite.robot").write_text(SUITE, encoding="utf-8")
    robot_run.run(folder, folder / "suite.robot", "--test", "Keeps*", "--test", "Fails")
    (older,) = folder.glob("results/*/requirements.jsonl")
    time.sleep(1)  # ids have seconds
    robot_run.run(folder, folder / "suite.robot")
    newer = next(path.parent for path in folder.glob("results/*/requirements.jsonl") if path != older)
    began = time.monotonic()
    done = report(folder, newer, older.parent)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 60, "20 s, on a busy machine"
    page = newer / "report.html"
    assert page.stat().st_size < 10e6 and str(page) in done.stdout and check_integrity(newer).altered == ()
    return Reported(newer, page, {test["name"]: test for test in data_of(page, 'data/test-results/[^"]+')})


def test_verdicts_and_categories_are_those_of_the_run(reported: Reported) -> None:
    found = {
        name: (test["status"], [item["name"] for item in test["categories"]]) for name, test in reported.tests.items()
    }
    assert found == {
        "Keeps v1.5 <b>It</b>": ("passed", []),
        "Fails": ("failed", ["The router does not keep the SLA"]),
        "Proves Nothing": ("broken", ["Inconclusive: the testbed proved nothing"]),
        "Has A Secret": ("passed", []),
    }
    ((gate,),) = (list(found.values()) for found in data_of(reported.page, "widgets/quality-gate.json"))
    assert {item["rule"]: item["success"] for item in gate} == {
        "no test fails": False,
        "no test is inconclusive or broken": False,
        "every run ended": True,
    }
    assert gate[0]["testResults"] == [reported.tests["Fails"]["id"]]


def test_each_test_has_its_figures_its_place_its_links_and_its_history(reported: Reported) -> None:
    test = reported.tests["Fails"]
    figures = {item["name"]: item["value"] for item in test["parameters"]}
    assert figures["sentence"] == "64b 1-flow unidirectional ≥ 60% line rate" and figures["verdict"] == "FAIL"
    assert figures["threshold"] == "≥ 60% line rate" and "line rate" in figures["measured"]
    assert figures["margin"].startswith("-") and "interval (95 %)" in figures
    labels = {label["name"]: label["value"] for label in test["labels"]}
    assert [labels[name] for name in ("parentSuite", "suite", "subSuite")] == ["netgate6100", "vpp", "Suite"]
    assert labels["severity"] == "normal"
    assert [link["url"] for link in test["links"]] == ["https://sla.example/contract"]
    assert [item["status"] for item in test["history"]] == ["failed"]
    keeps = reported.tests["Keeps v1.5 <b>It</b>"]
    assert ("severity", "blocker") in [(label["name"], label["value"]) for label in keeps["labels"]]
    assert [link["url"] for link in keeps["links"]][:2] == ["https://sla.example/contract", "https://sla.example/4.2"]
    (setup,) = test["setup"]
    assert setup["duration"] > 100, "ms"


def test_arguments_are_resolved_but_secrets_are_not(reported: Reported) -> None:
    assert {"7", "${password}"} <= set(arguments(reported.tests["Has A Secret"]["steps"]))
    found = set(arguments(reported.tests["Fails"]["steps"]))
    assert "64b 1-flow unidirectional ≥ 60% line rate" in found and "${sentence}" not in found


def arguments(steps: list[dict[str, Any]]) -> list[str]:
    """The arguments of all *steps*, and of those below them."""
    own = [item["value"] for step in steps for item in step.get("parameters", ())]
    return own + [value for step in steps for value in arguments(step.get("steps", []))]


def test_a_reader_sees_the_verdicts_and_nothing_is_asked_of_the_network(reported: Reported, tmp_path: Path) -> None:
    seen = look_at(reported.page, tmp_path)
    assert "SIMULATED" in seen.text and "netgate6100" in seen.text and re.search(r"Failed\s+1", seen.text), seen.text
    assert not {host for host in seen.hosts if not CHROMIUMS_OWN.fullmatch(host)}


def test_a_reader_sees_the_plot_and_no_picture_is_fetched(reported: Reported, tmp_path: Path) -> None:
    place = reported.tests["Keeps v1.5 <b>It</b>"]["id"]
    seen = look_at(reported.page, tmp_path, place)
    assert "Keeps v1.5 <b>It</b>" in seen.text and "Blocker" in seen.text
    assert any(name == "Offered and forwarded rate" and width > 500 for name, width in seen.images), seen.images
    assert "https://sla.example/4.2" in seen.addresses
    assert not {host for host in seen.hosts if not CHROMIUMS_OWN.fullmatch(host)}
    # the same page without its policy: what this test would have found
    (tmp_path / "open").mkdir()
    (tmp_path / "open.html").write_text(
        reported.page.read_text(encoding="utf-8").replace(POLICY, "", 1), encoding="utf-8"
    )
    assert "picture.example" in look_at(tmp_path / "open.html", tmp_path / "open", place).hosts


def test_a_killed_run_has_a_report_up_to_where_it_ended(tmp_path: Path, allure: None) -> None:
    run = killed_run(tmp_path)
    done = report(tmp_path, run, "--output", "killed.html")
    assert done.returncode == 0, done.stderr
    (test,) = data_of(tmp_path / "killed.html", 'data/test-results/[^"]+')
    assert test["status"] == "broken" and "the run ended after 2 trials of 'imix ≥ 1 Mpps'" in test["error"]["message"]
    seen = look_at(tmp_path / "killed.html", tmp_path, test["id"])
    assert any(name == "Offered and forwarded rate" and width > 500 for name, width in seen.images), seen.images
    assert "INCOMPLETE" in (tmp_path / "killed.html").read_text(encoding="utf-8")


def test_a_later_attempt_that_somebody_put_beside_a_failure_hides_nothing(reported: Reported, tmp_path: Path) -> None:
    run = tmp_path / reported.run.name
    shutil.copytree(reported.run, run)
    allure = run / "allure"
    (own,) = (
        found for path in allure.glob("*-result.json") if (found := json.loads(path.read_text()))["name"] == "Fails"
    )
    later = {"status": "passed", "statusDetails": {}, "start": own["start"] + 60_000, "stop": own["stop"] + 60_000}
    (allure / "planted-result.json").write_text(json.dumps({**own, **later, "uuid": "planted"}))
    (allure / "odd-result.json").write_text(json.dumps({**own, "status": 7, "steps": [{"parameters": 7}]}))
    (allure / "odd-container.json").write_text(json.dumps({"uuid": "c", "children": [own["uuid"]], "befores": [7]}))
    (allure / "categories.json").write_text("[]")
    # as of a run whose results have no sums
    (run / "derived.sha256").unlink()
    done = report(tmp_path, run, "--output", "planted.html")
    assert done.returncode == 0, done.stderr
    (counts,) = data_of(tmp_path / "planted.html", "widgets/statistic.json")
    assert {key: counts.get(key, 0) for key in ("total", "passed", "failed", "broken", "retries")} == {
        **{"total": 4, "passed": 2, "failed": 1, "broken": 1, "retries": 0}
    }
    tests = {test["name"]: test for test in data_of(tmp_path / "planted.html", 'data/test-results/[^"]+')}
    assert [item["name"] for item in tests["Fails"]["categories"]] == ["The router does not keep the SLA"]
