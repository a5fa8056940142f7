"""The report: what is in it, made of records and of what Allure's listener left, and how Allure's page is mended."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lineproof.commands.main import main
from lineproof.errors import ConfigError, TestbedError
from lineproof.evidence.environment import executor_facts
from lineproof.evidence.listener_leavings import LARGEST_ATTACHMENT
from lineproof.evidence.recorder import SLA
from lineproof.evidence.report import newest, read_executions
from lineproof.evidence.report_page import POLICY, mend_page
from lineproof.evidence.report_results import write_results
from lineproof.evidence.reported_run import ReportedRun, history_point
from lineproof.evidence.run import RunFolder
from support.evidence_builders import RUN, killed_run, requirement_record

TEST = requirement_record().test
PAGE = """<!DOCTYPE html><html><head>
    <meta charset="utf-8">
    <script>window.allureReportOptions = {}</script></head><body>
    <script   src="data:text/javascript;base64,cHJvZ3JhbQ=="></script>
    <script async src="https://www.googletagmanager.com/gtag/js?id=G-1"></script>
    <script>window.dataLayer = window.dataLayer || []; function gtag(){dataLayer.push(arguments);}</script>
    <script async>function d(name, value){ window.allureReportData[name] = value; }</script>
    <script defer>Promise.allSettled([d("widgets/quality-gate.json","e30="),d("b.json","e30=")])</script>
</body></html>"""


def executed(*folders: Path) -> list[list[ReportedRun]]:
    return read_executions(folders)


def results_of(folder: Path, runs: list[ReportedRun]) -> list[dict[str, Any]]:
    folder.mkdir()
    write_results(runs, folder)
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*-result.json"))]


def leave(run: Path, **fields: Any) -> None:
    """What Allure's listener leaves of the run's test."""
    (run / "allure").mkdir(exist_ok=True)
    data = {"uuid": "u1", "fullName": f"S.{TEST}", "name": TEST, "status": "passed", **fields}
    (run / "allure" / f"{data['uuid']}-result.json").write_text(json.dumps(data), encoding="utf-8")


def test_the_page_has_its_program_last_a_policy_and_no_script_of_others() -> None:
    page = mend_page(PAGE, {"widgets/quality-gate.json": {"default": []}})
    assert page.index("allureReportData[") < page.index('d("b.json"') < page.index("data:text/javascript")
    assert POLICY in page and page.index(POLICY) < page.index("<script")
    assert "googletagmanager" not in page and "gtag" not in page and '"e30=")])' in page
    assert "default-src 'none'" in POLICY and "http" not in POLICY


@pytest.mark.parametrize(
    ("part", "instead"),
    [
        ('<script   src="data:', '<script src="main.js'),
        ("allureReportData[name]", "otherwise"),
        ("</body>", ""),
        ("widgets/quality-gate.json", "else.json"),
        ("<head>", '<head><link rel="stylesheet" href="https://fonts.example/x.css">'),
        ("<head>", '<head><link rel="stylesheet" href="styles.css">'),
    ],
)
def test_a_page_that_is_not_as_expected_is_refused(part: str, instead: str) -> None:
    with pytest.raises(TestbedError, match="Allure's page"):
        mend_page(PAGE.replace(part, instead), {"widgets/quality-gate.json": {}})


def test_a_run_without_results_of_the_listener_is_made_of_its_records(tmp_path: Path) -> None:
    run = killed_run(tmp_path, **{SLA: "Contract 7 (https://sla.example/7)", "suite": "All.S"})
    ((found,),) = executed(run)
    (result,) = results_of(tmp_path / "out", [found])
    assert result["status"] == "broken" and result["fullName"] == f"All.S.{TEST}"
    assert result["titlePath"] == ["mybox", "vpp", "S"] and "data:image/svg+xml" in result["descriptionHtml"]
    assert {item["name"] for item in result["attachments"]} == {"Trials", "Offered and forwarded rate", "Verdict"}
    assert all((tmp_path / "out" / item["source"]).is_file() for item in result["attachments"])
    assert result["links"] == [{"type": "link", "name": "Contract 7", "url": "https://sla.example/7"}]
    figures = {item["name"]: item["value"] for item in result["parameters"]}
    assert figures["sentence"] == "64b unidirectional ≥ 5 Mpps" and figures["measured"].startswith("5.5 Mpps")
    assert all(item["excluded"] for item in result["parameters"])


def test_steps_are_the_listeners_and_the_verdict_is_the_records(tmp_path: Path) -> None:
    run = killed_run(tmp_path)
    leave(run, steps=[{"name": "Step"}], labels=[{"name": "tag", "value": "severity:critical"}])
    (result,) = results_of(tmp_path / "out", executed(run)[0])
    assert result["status"] == "broken", "its second sentence has no verdict, whatever the listener says"
    assert [step["name"] for step in result["steps"]] == ["Step"]
    assert {"name": "severity", "value": "critical"} in result["labels"]


def test_a_failure_outside_of_the_sentences_stays(tmp_path: Path) -> None:
    run = killed_run(tmp_path)
    leave(run, status="failed", statusDetails={"message": "FAIL: by hand"})
    (result,) = results_of(tmp_path / "out", executed(run)[0])
    assert result["status"] == "failed"
    assert re.fullmatch("INCONCLUSIVE: the run ended .*\nFAIL: by hand", result["statusDetails"]["message"])


def test_nothing_but_the_executions_own_attachments_is_taken(tmp_path: Path) -> None:
    run = killed_run(tmp_path)
    (tmp_path / "secret.txt").write_text("secret")
    allure = run / "allure"
    allure.mkdir()
    (allure / "link-attachment.txt").symlink_to(tmp_path / "secret.txt")
    (allure / "big-attachment.html").write_bytes(bytes(LARGEST_ATTACHMENT + 1))
    (allure / "good-attachment.txt").write_text("good")
    names = [
        "../../secret.txt",
        "big-attachment.html",
        *(f"{name}-attachment.txt" for name in ("link", "good", "none")),
    ]
    leave(run, attachments=[{"name": name, "source": name, "type": "text/plain"} for name in names])
    (allure / "half-result.json").write_text('{"uuid": "x", "fullNa')
    (allure / "odd-result.json").write_text("[1]")
    (allure / "linked-result.json").symlink_to(allure / "u1-result.json")
    os.mkfifo(allure / "pipe-result.json")
    (result,) = results_of(tmp_path / "out", executed(run)[0])
    copied = {path.name: path.read_text() for path in (tmp_path / "out").iterdir() if "attachment" in path.name}
    named = {item["name"]: copied.get(item["source"]) for item in result["attachments"]}
    assert len(copied) == 2 and result["name"] == TEST
    assert named.pop("good-attachment.txt") == "good"
    assert "left out of the report" in (named.pop("big-attachment.html") or "")
    assert set(named.values()) == {None}


def test_the_newest_run_of_a_suite_is_shown_and_the_others_are_its_history(tmp_path: Path) -> None:
    (tmp_path / "then").mkdir()
    older = killed_run(tmp_path / "then")
    later = RunFolder.create(tmp_path, "20261123T040000Z-abc123")
    environment = executed(older)[0][0].run.environment
    assert environment is not None
    later.write_environment(replace(environment, run=later.run_id, started=2e9))
    fails = requirement_record(run=later.run_id, verdict="FAIL", message="FAIL: lost", started=2e9, ended=2e9)
    later.add_requirement(fails)
    later.close(replace(environment, run=later.run_id, started=2e9, ended=2e9 + 1))
    executions = executed(later.path, older)
    (shown,) = newest(executions)
    assert shown.run.path == later.path
    (point,) = (history_point(runs) for runs in executions if shown not in runs)
    (test,) = shown.tests
    assert point["testResults"][test.history_id]["status"] == "broken" and test.status == "failed"


def test_a_further_run_of_an_execution_stands_for_all_of_it(tmp_path: Path) -> None:
    first, second = killed_run(tmp_path), killed_run(tmp_path)
    assert second.name == f"{RUN}-2"
    ((one, two),) = executed(second, first)
    assert (one.run.path, two.run.path, two.execution) == (first, second, first)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"type": "local"}),
        ({"CI": "true"}, {"type": "ci", "name": "CI"}),
        (
            {
                "GITLAB_CI": "true",
                "CI": "true",
                "CI_JOB_NAME": "sla",
                "CI_PIPELINE_ID": "7",
                "CI_JOB_URL": "https://ci.example/7",
            },
            {"type": "gitlab", "buildName": "sla #7", "buildUrl": "https://ci.example/7"},
        ),
    ],
)
def test_what_started_the_run_is_read_from_the_environment(given: dict[str, str], expected: dict[str, str]) -> None:
    assert expected.items() <= executor_facts(given).items()


def test_a_folder_without_a_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        main(["report", str(tmp_path)])
