"""Whole suites driven through the client that TRex ships, where there is one: simulated, and with real frames."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from support import robot_run

HOME = os.environ.get("TREX_HOME", "")
NEEDED = "needs the client that TRex ships: TREX_HOME has to name TRex's scripts folder"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not HOME, reason=NEEDED)]


@pytest.mark.parametrize(
    ("testbed", "suite", "tests"),
    [
        ("simulated", "examplebox", ["*"]),
        pytest.param("netns", "linux_router", ["Small Frames*", "Internet Mix*"], marks=pytest.mark.netns),
    ],
)
def test_a_suite_passes_with_that_client(tmp_path: Path, testbed: str, suite: str, tests: list[str]) -> None:
    shutil.copytree(robot_run.ROOT / "variables", tmp_path / "variables")
    file = tmp_path / "variables" / "testbeds" / f"{testbed}.yaml"
    file.write_text(f"{file.read_text(encoding='utf-8')}client: {HOME}\n", encoding="utf-8")
    chosen = ["-v", f"PROJECT:{tmp_path}", "-v", f"TESTBED:{testbed}", "-v", "GOAL:quick"]
    chosen += [word for name in tests for word in ("-t", name)]
    ran = robot_run.run(tmp_path, robot_run.ROOT / "tests" / f"{suite}.robot", *chosen, limit=300)
    assert ran.status == 0, ran.console
    assert {status for status, _ in ran.tests.values()} == {"PASS"}
    (log,) = tmp_path.rglob("environment.json")
    assert "TRex's own, of " in log.read_text(encoding="utf-8")
