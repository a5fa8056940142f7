"""The whole chain with real frames: Robot, TRex client, ZeroMQ, server, AF_PACKET, kernel router, sshd."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support import robot_run

pytestmark = pytest.mark.netns


def test_the_linux_router_suite(tmp_path: Path):
    suite = robot_run.ROOT / "tests" / "linux_router.robot"
    found = robot_run.run(tmp_path, suite, "-v", "TESTBED:netns", *robot_run.short_goal(tmp_path), limit=300)
    assert found.status == 0, found.console
    (folder,) = (path for path in (tmp_path / "results").iterdir())
    verdicts = [json.loads(line)["verdict"] for line in (folder / "requirements.jsonl").read_text().splitlines()]
    skipped = [message for status, message in found.tests.values() if status == "SKIP"]
    assert all("its module 8021q is missing" in reason or "its module mpls_router is" in reason for reason in skipped)
    assert verdicts.count("PASS") + len(skipped) == 10
    assert "FAIL" in verdicts
    assert "INCONCLUSIVE" in verdicts
    assert json.loads((folder / "environment.json").read_text())["simulated"] is False
    assert "SIMULATED" not in found.console
    assert robot_run.processes_of(tmp_path) == []
