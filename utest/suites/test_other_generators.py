"""Whole runs with a generator other than TRex: what it can prove is judged, what it cannot is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lineproof.system.children import find_program
from support import robot_run
from support.robot_run import RobotRun

pytestmark = pytest.mark.netns
SETUP = "Open Testbed For    linux_router    software=linux    testbed=${TESTBED}    goal=quick"
NARROW = (
    "${interface} =    Router Interface    1",
    "Run On Router    tc qdisc replace dev ${interface} root tbf rate 2mbit burst 16kb latency 5ms",
    "Run Keyword And Expect Error    FAIL:*    64b 1-flow unidirectional ≥ 10 kpps",
)


def run(folder: Path, kind: str, *steps: str) -> RobotRun:
    if find_program(kind) is None:
        pytest.skip(f"the program {kind} is not installed")
    suite = robot_run.write_suite(folder, *steps, setup=SETUP)
    options = "-v", f"TESTBED:netns-{kind}", *robot_run.short_goal(folder)
    return robot_run.run(folder, suite, *options, limit=400)


@pytest.mark.parametrize(
    ("kind", "words"), [("trafgen", "64b unidirectional"), ("iperf3", "64b 1-flow unidirectional")]
)
def test_what_it_can_prove_is_judged(tmp_path: Path, kind: str, words: str) -> None:
    found = run(tmp_path, kind, f"{words} ≥ 2 kpps", *NARROW)
    assert found.status == 0, found.console
    (folder,) = (tmp_path / "results").iterdir()
    records = [json.loads(line) for line in (folder / "requirements.jsonl").read_text().splitlines()]
    assert [record["verdict"] for record in records] == ["PASS", "FAIL"]
    assert kind in json.loads((folder / "environment.json").read_text())["versions"]["generator.server"]
    assert robot_run.processes_of(tmp_path) == []
