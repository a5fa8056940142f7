"""Sentences of every quantity on the simulated testbed, as a user runs them, and what is said before and after them."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from lineproof.evidence.records import TRIAL, schema
from lineproof.evidence.run import read_run
from support import robot_run

pytestmark = pytest.mark.slow

SUITE = f"""\
*** Settings ***
Resource          {robot_run.ROOT}/resources/acceptance.resource
Suite Setup       Open Testbed For    netgate6100    software=vpp    goal=quick
Suite Teardown    Close Testbed

*** Test Cases ***
Soon Enough
    64b 1-flow unidirectional latency p99 ≤ 200 µs at 1 Mpps

Never So Soon
    64b 1-flow unidirectional latency max ≤ 1 us at 1 Mpps

Both Ways
    imix bidirectional latency mean <= 1 ms at 20% line rate each way

Hardly Any Variation
    64b unidirectional pdv p99 ≤ 500 µs at 1 Mpps

A Soak
    1514b unidirectional ≥ 10% line rate for 1 min

Too Much For One Core
    64b 1-flow unidirectional ≥ 6 Mpps

Nothing To Search For
    64b 1-flow unidirectional costs ≤ 1 cycles/packet
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> robot_run.RobotRun:
    folder = tmp_path_factory.mktemp("sentences")
    suite = folder / "suite.robot"
    suite.write_text(SUITE, encoding="utf-8")
    return robot_run.run(folder, suite, "-v", "CHARACTERISE:on failure", "-v", "SEARCH_DEADLINE:200")


def test_latency_is_judged_by_bounds(done: robot_run.RobotRun):
    status, message = done.tests["Soon Enough"]
    assert status == "PASS", message
    assert "probe frames at 1 Mpps offered; a modelled latency" in message
    status, message = done.tests["Never So Soon"]
    assert status == "FAIL"
    assert message.startswith("FAIL: 64b 1-flow unidirectional latency max ≤ 1 us at 1 Mpps: max ")
    assert done.tests["Both Ways"][0] == done.tests["Hardly Any Variation"][0] == "PASS"


def test_latency_is_in_the_records(done: robot_run.RobotRun):
    (folder,) = (done.folder / "results").iterdir()
    rows = [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]
    for row in rows:
        jsonschema.validate(row, schema(TRIAL))
    both = [row for row in rows if row["sentence"].startswith("imix bidirectional") and row["number"]]
    assert both
    for row in both:
        assert [(item["tx_port"], item["rx_port"]) for item in row["latency"]] == [(0, 1), (1, 0)]
        for item in row["latency"]:
            short = item["histogram_us"].get("0", 0)  # may be of an earlier trial, as TRex's
            assert 0 <= sum(item["histogram_us"].values()) - item["received"] <= short


def test_a_soak_takes_the_time_it_says(done: robot_run.RobotRun):
    status, message = done.tests["A Soak"]
    assert status == "PASS"
    assert message.endswith("goal 'quick'")
    (folder,) = (done.folder / "results").iterdir()
    (soak,) = (item for item in read_run(folder).requirements if item.sentence in message)
    assert soak.goal_terms["duration_sum"] == 60


def test_a_failure_is_followed_by_the_capacity_where_that_is_asked_for(done: robot_run.RobotRun):
    status, message = done.tests["Too Much For One Core"]
    assert status == "FAIL"
    assert "; capacity: NDR (without loss): " in message
    assert "capacity" not in done.tests["Nothing To Search For"][1]
    assert "capacity" not in done.tests["A Soak"][1]


def test_the_budget_is_said_before_anything_starts(done: robot_run.RobotRun):
    assert "7 sentences, goal 'quick': " in done.console
    assert done.console.count("trials of 1 s, loss ratio 0") == 2  # what the goal asks: at the start and at the end
    assert done.console.index("of traffic if every one passes") < done.console.index("Soon Enough")


def test_another_wish_is_refused(tmp_path: Path):
    suite = tmp_path / "suite.robot"
    suite.write_text(SUITE, encoding="utf-8")
    run = robot_run.run(tmp_path, suite, "-t", "A Soak", "-v", "CHARACTERISE:sometimes")
    assert "'-v CHARACTERISE:sometimes': expected never, on failure or always" in run.message
