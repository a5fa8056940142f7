"""A router that nobody logs in to: verdicts from the generator's counts, and what they cannot show."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineproof.errors import ConfigError
from lineproof.evidence.run import read_run
from lineproof.project import Project
from lineproof.session.plan import Plan
from support import robot_run
from support.command_line import lineproof
from support.served_bench import served

SOFTWARE = """\
  box:
    shell: none
    version: unknown
    interfaces: [left, right]
"""
TESTBED = """\
testbed: closed
kind: hardware
generator: {{address: 127.0.0.1, sync_port: {sync}, async_port: {events}, client: pypi}}
prepare: {prepare}
"""


def project(folder: Path, sync: int = 4501, events: int = 4500, prepare: str = "none") -> Path:
    home = robot_run.project(folder)
    platform = home / "variables" / "platforms" / "netgate6100.yaml"
    text = platform.read_text(encoding="utf-8").replace("software:\n", f"software:\n{SOFTWARE}", 1)
    platform.write_text(text, encoding="utf-8")
    testbed = TESTBED.format(sync=sync, events=events, prepare=prepare)
    (home / "variables" / "testbeds" / "closed.yaml").write_text(testbed, encoding="utf-8")
    return home


@pytest.mark.slow
def test_a_black_box_is_judged_from_outside(tmp_path: Path) -> None:
    with served(tmp_path, "--clock-speed", "1") as bench:
        home = project(tmp_path, bench.sync, bench.events)
        examined = lineproof(tmp_path, "doctor", "closed", "--platform", "netgate6100", "--software", "box", cwd=home)
        sentences = ("64b 1-flow ≥ 1 Mpps", "64b 1-flow loses ≤ 5% at 5.1 Mpps", "64b 1-flow ≥ 6 Mpps")
        suite = robot_run.write_suite(tmp_path, *sentences, setup="Open Testbed For    netgate6100    software=box")
        options = ("-v", f"PROJECT:{home}", "-v", "TESTBED:closed", "-v", "GOAL:quick")
        found = robot_run.run(tmp_path, suite, *options)
    assert "black box" in examined.stdout and "wrong" not in examined.stdout.replace("0 wrong", ""), examined.stdout
    (left,) = (tmp_path / "results").iterdir()
    records = {record.sentence: record for record in read_run(left).requirements}
    assert [records[name].verdict for name in sentences] == ["PASS", "PASS", "FAIL"], found.console
    forgiven = records[sentences[1]]
    assert "probe frames in a further trial came twice" in forgiven.message
    assert forgiven.extra["figures"]["probe_frames_again"] == 0 < forgiven.extra["figures"]["probe_frames"]
    assert "whose own counts are not read" in records[sentences[2]].message


@pytest.mark.parametrize(
    ("testbed", "message"),
    [("closed", "expected 'prepare: none'"), ("simulated", "expected a testbed of 'kind: hardware'")],
)
def test_a_black_box_needs_a_testbed_that_fits(tmp_path: Path, testbed: str, message: str) -> None:
    home = Project.find(project(tmp_path, prepare="configure"))
    with pytest.raises(ConfigError, match=message):
        Plan.read(home, "netgate6100", "box", testbed, "quick")


def test_another_router_needs_a_login(tmp_path: Path) -> None:
    home = Project.find(project(tmp_path))
    with pytest.raises(ConfigError, match="has no 'router', which says how to log in"):
        Plan.read(home, "netgate6100", "vpp", "closed", "quick")
