"""Latency in the records of a run, and the capacity that follows a failure."""

from __future__ import annotations

import json

import jsonschema
import pytest

from lineproof.evidence.records import TRIAL, schema
from support import robot_run

pytestmark = pytest.mark.slow

TESTS = """\
Both Ways
    imix bidirectional latency mean <= 1 ms at 20% line rate each way

Too Much For One Core
    64b 1-flow unidirectional ≥ 6 Mpps

Nothing To Search For
    64b 1-flow unidirectional costs ≤ 1 cycles/packet
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> robot_run.RobotRun:
    folder = tmp_path_factory.mktemp("sentences")
    suite = robot_run.write_tests(folder, TESTS, "Open Testbed For    netgate6100    software=vpp    goal=quick")
    return robot_run.run(folder, suite, "-v", "CHARACTERISE:on failure", "-v", "SEARCH_DEADLINE:200")


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


def test_a_failure_is_followed_by_the_capacity_where_that_is_asked_for(done: robot_run.RobotRun):
    status, message = done.tests["Too Much For One Core"]
    assert status == "FAIL"
    assert "\n  capacity: NDR (without loss): " in message
    assert "capacity" not in done.tests["Nothing To Search For"][1]
