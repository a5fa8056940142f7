"""The main job as a user runs it, everything it leaves, and what the router reports under load after a FAIL."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lineproof.evidence.integrity import check_integrity
from lineproof.evidence.run import read_run
from lineproof.evidence.verification import schema_problems
from support import robot_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    done = robot_run.run(tmp_path_factory.mktemp("netgate"), robot_run.ROOT / "tests" / "netgate6100.robot")
    assert done.status == 0 and robot_run.processes_of(done.folder) == [], done.console
    (folder,) = (done.folder / "results").iterdir()
    return folder


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


TESTS = """\
Passes
    64b 1-flow unidirectional ≥ 2% line rate

Fails
    64b 1-flow unidirectional ≥ 90% line rate
"""


def test_a_fail_is_followed_by_readings_at_its_load_and_at_one_that_passed(tmp_path: Path) -> None:
    suite = robot_run.write_tests(tmp_path, TESTS, "Open Testbed For    netgate6100    software=vpp    goal=quick")
    found = robot_run.run(tmp_path, suite)
    assert found.tests["Passes"][0] == "PASS", found.console
    assert found.tests["Fails"][1].startswith("FAIL: "), found.console
    (folder,) = (path.parent for path in tmp_path.rglob("environment.json"))
    facts = json.loads((folder / "environment.json").read_text(encoding="utf-8"))["extra"]["router_facts"]
    assert (facts["workers"], facts["differences"], facts["irqbalance"]) == (3, [], None)
    assert {(row["queue"], row["worker"]) for row in facts["placement"]} == {
        (queue, f"vpp_wk_{queue}") for queue in range(3)
    }
    records = {path.name: json.loads(path.read_text()) for path in (folder / "characterisation").glob("*.json")}
    assert set(records) == {"002-under-load.json", "002-under-load-that-passed.json"}
    busy, passed = records["002-under-load.json"], records["002-under-load-that-passed.json"]
    # on a busy machine the readings may come after the traffic, and are no figures then
    if "all" not in busy["unread"]:
        assert (busy["workers"][0]["busy"], busy["workers"][1]["packets_per_s"]) == (1.0, 0.0)
        # a simulated router has no perf
        assert busy["unread"]["flame graph"] == "'perf --version' has status 127: it is not there"
    if "all" not in passed["unread"]:
        assert passed["workers"][0]["busy"] < 1
    assert busy["flame_graph"] == passed["flame_graph"] == ""
    assert busy["forwarded_pps"] < 0.5 * busy["offered_pps"]
    assert passed["forwarded_pps"] == passed["offered_pps"]
    assert passed["load_pps"] * 45 == busy["load_pps"]
    assert list((folder / "telemetry").glob("002-under-load-*show-runtime.txt"))
    log = "".join(path.read_text(encoding="utf-8") for path in tmp_path.rglob("output.xml"))
    assert "The router under load: 64b 1-flow unidirectional" in log and "vpp_wk_2" in log
    # no trial of a verdict
    trials = (folder / "trials.jsonl").read_text(encoding="utf-8").splitlines()
    of_fail = [trial for trial in map(json.loads, trials) if trial["requirement"] == 2]
    assert len(of_fail) <= 2
    integrity = check_integrity(folder)
    assert not integrity.altered and list(schema_problems(integrity)) == []
