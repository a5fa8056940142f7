"""Files that somebody put into ``allure/``: what the report says of a recorded test stays what its records say."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lineproof.errors import TestbedError
from lineproof.evidence.derived import seal_derived
from lineproof.evidence.report import newest, read_executions
from lineproof.evidence.report_page import check_counts
from lineproof.evidence.report_results import NO_TESTBED, write_results
from lineproof.evidence.reported_run import md5_of
from lineproof.evidence.run import RunFolder
from support.evidence_builders import ENVIRONMENT, requirement_record

TEST = requirement_record().test
START, STOP = (round(1000 * time) for time in (requirement_record().started, requirement_record().ended))
OWN = {"uuid": "u1", "fullName": f"S.{TEST}", "name": TEST, "titlePath": ["S"], "start": START - 5, "stop": STOP + 5}
MESSAGE = "FAIL: lost 58 %"
ID = "20261123T040000Z-abc123"


def run_of(folder: Path, run_id: str = ID, verdict: str = "FAIL", later: float = 0.0, suite: str = "S") -> Path:
    """A closed run with one test; *later*: s after the others."""
    run = RunFolder.create(folder, run_id)
    about = {"suite": suite}
    environment = replace(ENVIRONMENT, run=run.run_id, started=ENVIRONMENT.started + later, extra=about)
    run.write_environment(environment)
    record = requirement_record(run=run.run_id, verdict=verdict, message=f"{verdict}: lost 58 %")
    run.add_requirement(replace(record, started=record.started + later, ended=record.ended + later))
    run.close(replace(environment, ended=ENVIRONMENT.started + later + 60))
    return run.path


def leave(run: Path, file: str = "", **fields: Any) -> None:
    (run / "allure").mkdir(exist_ok=True)
    data = {**OWN, "status": "failed", "statusDetails": {"message": MESSAGE}, **fields}
    (run / "allure" / f"{file or data['uuid']}-result.json").write_text(json.dumps(data), encoding="utf-8")


def shown(out: Path, *folders: Path) -> tuple[list[dict[str, Any]], dict[str, list[str]], list[str]]:
    """The results of the report of *folders*, in order of name and time, its ids by status, and its notes."""
    executions = read_executions(folders)
    runs = newest(executions)
    out.mkdir()
    others = [run for several in executions for run in several if all(run is not each for each in runs)]
    ids, notes = write_results(runs, out, others)
    results = [json.loads(path.read_text(encoding="utf-8")) for path in out.glob("*-result.json")]
    for key in ("uuid", "historyId", "testCaseId"):
        assert len({result[key] for result in results}) == len(results), "no test is another one's retry"
    assert {md5_of(result["uuid"]) for result in results} == {each for several in ids.values() for each in several}
    return sorted(results, key=lambda result: (str(result.get("name")), result.get("start", 0))), ids, notes


CASE = md5_of(json.dumps(["netgate6100", "vpp", "S", TEST]))
PLANTED: dict[str, dict[str, Any]] = {
    "a later attempt": {"uuid": "u2", "status": "passed", "start": STOP + 60_000, "stop": STOP + 70_000},
    "an earlier attempt": {"uuid": "u2", "status": "passed", "start": 1, "stop": 2},
    "the same attempt": {"uuid": "u2", "status": "passed"},
    "a skipped attempt": {"uuid": "u2", "status": "skipped", "start": START - 6},
    "another result of the same uuid": {"file": "z", "status": "passed", "statusDetails": {"message": "PASS"}},
    "the uuid of it for another test": {"file": "z", "fullName": "S.Another", "name": "Another", "status": "passed"},
    "another message": {"file": "z", "statusDetails": {"message": "INCONCLUSIVE: the power failed"}},
    "a failure that is known": {"file": "z", "statusDetails": {"known": True, "muted": True, "flaky": True}},
    "an identity of Allure's own": {"file": "z", "labels": [{"name": "ALLURE_ID", "value": "7"}]},
    "the identity of the recorded": {
        **{"uuid": "u2", "fullName": "S.x", "name": "x", "status": "passed", "titlePath": []},
        **{"testCaseId": CASE, "historyId": CASE, "labels": [{"name": "AS_ID", "value": "7"}]},
    },
    "its name in its suite": {"uuid": "u2", "fullName": "S.x", "status": "passed"},
    "steps that are none": {"file": "z", "steps": "x", "attachments": 5, "parameters": [None, {"name": 1}]},
    "a step that is none": {"file": "z", "steps": [None, {"parameters": 5, "status": 7, "attachments": [None]}]},
    "a status that is none": {"file": "z", "status": 7, "labels": 7, "links": "x", "start": "x", "stop": 1e300},
    "attachments that are none": {
        **{
            "file": "z",
            "attachments": [{"name": "a"}, {"name": "b", "source": "x" * 5000}, {"name": "c", "source": 7}],
        },
        **{"steps": [{"name": "s", "attachments": [{"name": "s", "source": "\x00-attachment.txt"}]}]},
    },
    "a path that is none": {"uuid": "u2", "titlePath": 5, "fullName": 5, "name": 5},
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_planted_result_changes_nothing_of_a_recorded_test(tmp_path: Path, what: str) -> None:
    run = run_of(tmp_path)
    leave(run)
    leave(run, **PLANTED[what])
    results, ids, _ = shown(tmp_path / "out", run)
    (mine,) = (result for result in results if result["historyId"] == CASE)
    assert (mine["status"], mine["name"], mine["fullName"]) == ("failed", TEST, OWN["fullName"])
    assert mine["statusDetails"]["message"].startswith(MESSAGE) and set(mine["statusDetails"]) <= {"message", "trace"}
    assert md5_of(mine["uuid"]) in ids["failed"] and "INCONCLUSIVE" not in mine["statusDetails"]["message"][:20]
    for other in results:
        assert all(label["name"] not in ("ALLURE_ID", "AS_ID") for label in other["labels"])
        assert other is mine or other["parameters"][0]["value"] == "nothing: no sentence was judged"
        assert all(isinstance(step["parameters"], list) for step in other.get("steps", ()))


def test_a_pass_on_record_is_neither_skipped_nor_unknown(tmp_path: Path) -> None:
    run = run_of(tmp_path, verdict="PASS")
    leave(run, status="skipped")
    ((mine,), *_) = shown(tmp_path / "out", run)
    assert mine["status"] == "passed"


def test_executions_share_no_identity_and_no_attachment(tmp_path: Path) -> None:
    names = ("one", "two")
    runs = [run_of(tmp_path / name, f"20261123T04000{place}Z-abc123", suite=name) for place, name in enumerate(names)]
    for run, name in zip(runs, names, strict=True):
        leave(run, fullName=f"{name}.{TEST}", attachments=[{"name": "a", "source": "a-attachment.txt", "type": "t"}])
        (run / "allure" / "a-attachment.txt").write_text(name)
        fixture = {"uuid": "c", "children": ["u1"], "befores": [{"name": f"before {name}"}], "afters": 7}
        (run / "allure" / "c-container.json").write_text(json.dumps(fixture))
    results, *_ = shown(tmp_path / "out", *runs)
    for result in results:
        (item,) = result["attachments"]
        own = result["fullName"].partition(".")[0]
        assert (tmp_path / "out" / item["source"]).read_text() == own
        containers = [json.loads(path.read_text()) for path in (tmp_path / "out").glob("*-container.json")]
        (mine,) = (container for container in containers if result["uuid"] in container["children"])
        assert [each["name"] for each in mine["befores"]] == [f"before {own}"] and mine["afters"] == []


def test_of_several_runs_of_an_execution_each_test_has_its_own_steps(tmp_path: Path) -> None:
    first, second = run_of(tmp_path), run_of(tmp_path, later=100.0)
    leave(first, steps=[{"name": "then"}])
    leave(first, uuid="u2", steps=[{"name": "now"}], start=START + 100_000, stop=STOP + 100_000)
    results, ids, _ = shown(tmp_path / "out", first, second)
    assert [[step["name"] for step in result["steps"]] for result in results] == [["now"]]
    assert sum(map(len, ids.values())) == 1, "a repeated suite is not counted twice"


def test_a_recorded_test_of_a_run_that_is_not_shown_is_no_unrecorded_one(tmp_path: Path) -> None:
    first = run_of(tmp_path, suite="S")
    run_of(tmp_path, suite="T", later=1.0)
    leave(first, start=START - 5)
    leave(first, uuid="u2", fullName=f"T.{TEST}", titlePath=["T"], start=START + 1000, stop=STOP + 1000)
    leave(first, uuid="u3", fullName="S.Log", name="Log", status="passed")
    leave(first, uuid="u4", fullName="U.Log", name="Other", titlePath=["U"], status="broken")
    later = run_of(tmp_path, "20261123T050000Z-abc123", suite="S", later=3600.0)
    results, *_ = shown(tmp_path / "out", first, later)
    assert [result["fullName"] for result in results] == [f"T.{TEST}", f"S.{TEST}", "U.Log"]
    assert {"name": "parentSuite", "value": NO_TESTBED} in results[-1]["labels"]


def test_what_the_execution_did_not_sum_is_left_out_and_named(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    leave(run, attachments=[{"name": "a", "source": "a-attachment.txt", "type": "t"}])
    (run / "allure" / "a-attachment.txt").write_text("as the run left it")
    seal_derived(run)
    leave(run, uuid="u2", fullName="S.x", name="x", status="passed")
    (run / "allure" / "a-attachment.txt").write_text("changed")
    (run / "allure" / "c-container.json").write_text(json.dumps({"uuid": "c", "children": ["u1"], "befores": [{}]}))
    (mine,), _, (note,) = shown(tmp_path / "out", run)
    assert mine["fullName"] == OWN["fullName"]
    assert [path.name.endswith("-result.json") for path in (tmp_path / "out").iterdir()] == [True]
    assert note == f"3 files of {ID}/allure left out: not as derived.sha256 has them"


def test_a_page_that_counts_otherwise_is_refused() -> None:
    def page(**counts: int) -> str:
        text = base64.b64encode(json.dumps(counts).encode()).decode()
        return f'd("widgets/statistic.json","{text}")'

    check_counts(page(total=2, failed=1, passed=1, new=2), {"failed": ["a"], "passed": ["b"], "broken": []})
    for counts in ({"passed": 1, "retries": 1}, {"failed": 1}, {}, {"failed": 1, "passed": 1, "retries": 1}):
        with pytest.raises(TestbedError, match="Allure's page counts"):
            check_counts(page(**counts), {"failed": ["a"], "passed": ["b"]})
