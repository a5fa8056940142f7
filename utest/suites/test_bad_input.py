"""What a person sees when something is wrong: one paragraph, before any traffic, with file, line and remedy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lineproof.generators.trex.driver import TrexGenerator, TrexSettings
from lineproof.platforms import read_platform
from lineproof.testbed.files import read_testbed
from lineproof.testbed.opening import OpenTestbed, open_testbed
from support import robot_run

pytestmark = pytest.mark.slow

VARIABLES = robot_run.ROOT / "variables"


def refused(found: robot_run.RobotRun, *says: str) -> None:
    """The run failed in its set-up with *says*, as one paragraph, without a traceback, and left nothing running."""
    assert found.status == 1, found.console
    message = found.message
    # Robot's own frame around a message of suite setup or teardown
    paragraphs = [part for part in message.split("\n\n") if part.strip()]
    assert len(paragraphs) == 1, message
    assert message.startswith("Parent suite setup failed:\n"), message
    for part in says:
        assert part in message, message
    assert "Traceback" not in found.console and "Traceback" not in message
    assert not list((found.folder / "results").rglob("trials.jsonl")) or not any(
        path.read_text() for path in (found.folder / "results").rglob("trials.jsonl")
    )
    assert robot_run.processes_of(found.folder) == []


def test_a_sentence_that_cannot_be(tmp_path: Path):
    suite = robot_run.write_suite(tmp_path, "No Operation", "64b unidirectional ≥ 101% line rate")
    refused(robot_run.run(tmp_path, suite), f"{suite}:9: ", "more than the ports can carry")


@pytest.fixture(scope="module")
def lab() -> Iterator[OpenTestbed]:
    """The simulated testbed, which the tests reach as if it were hardware."""
    testbed = read_testbed(VARIABLES / "testbeds", "simulated")
    platform = read_platform(VARIABLES / "platforms", "netgate6100")
    file = VARIABLES / "platforms" / "netgate6100.yaml"
    with open_testbed(testbed, platform, "vpp", platform_file=file) as opened:
        yield opened


def as_hardware(folder: Path, lab: OpenTestbed, known_hosts: Path | None = None) -> list[str]:
    """Options for a hardware testbed file that points at *lab*."""
    facts = lab.facts
    path = robot_run.project(folder) / "variables" / "testbeds" / "lab.yaml"
    path.write_text(
        f"""\
testbed: lab
kind: hardware
generator:
  type: trex
  address: 127.0.0.1
  sync_port: {facts.generator.sync_port}
  async_port: {facts.generator.async_port}
router:
  address: 127.0.0.1
  port: {facts.router.port}
  user: {facts.router.user}
  key: {facts.router.key_path}
  known_hosts: {known_hosts or facts.router.known_hosts_path}
""",
        encoding="utf-8",
    )
    return ["-v", f"PROJECT:{folder / 'project'}", "-v", "TESTBED:lab", "-v", "GOAL:quick"]


def test_an_unknown_host_key(tmp_path: Path, lab: OpenTestbed):
    empty = tmp_path / "known_hosts"
    empty.write_text("")
    suite = robot_run.write_suite(tmp_path, "64b 1-flow ≥ 1 Mpps")
    found = robot_run.run(tmp_path, suite, *as_hardware(tmp_path, lab, known_hosts=empty))
    refused(found, f"is not in '{empty}'", "ssh-keygen")


def test_as_hardware_it_works_when_nothing_is_wrong(tmp_path: Path, lab: OpenTestbed):
    """Shows that the refusals above come from what each test spoils."""
    suite = robot_run.write_suite(tmp_path, "64b 1-flow ≥ 1 Mpps")
    found = robot_run.run(tmp_path, suite, *as_hardware(tmp_path, lab))
    assert found.status == 0, found.console + found.message


def test_another_user_holds_a_port(tmp_path: Path, lab: OpenTestbed):
    suite = robot_run.write_suite(tmp_path, "64b 1-flow ≥ 1 Mpps")
    options = as_hardware(tmp_path, lab)
    facts = lab.facts.generator
    settings = TrexSettings(facts.host, facts.sync_port, facts.async_port, username="alice", clock_speed=50)
    with TrexGenerator(settings):
        found = robot_run.run(tmp_path, suite, *options)
    refused(found, "is taken", "alice", "'force: true'")


def test_a_router_that_cannot_be_read_is_inconclusive_and_recorded(tmp_path: Path):
    """The testbed breaks down in the middle of a sentence: the test says so, and the record is there."""
    suite = robot_run.write_suite(
        tmp_path,
        "64b 1-flow ≥ 1 Mpps",
        "${lineproof} =    Get Library Instance    Lineproof",
        "Evaluate    $lineproof.session.testbed.close()",
        "64b 1-flow ≥ 1 Mpps",
    )
    found = robot_run.run(tmp_path, suite, "-v", "GOAL:quick")
    assert found.status == 1
    assert "INCONCLUSIVE: 64b 1-flow ≥ 1 Mpps: " in found.message
    (path,) = (tmp_path / "results").glob("*/requirements.jsonl")
    verdicts = [json.loads(line)["verdict"] for line in path.read_text().splitlines()]
    assert verdicts == ["PASS", "INCONCLUSIVE"]
    assert robot_run.processes_of(tmp_path) == []
