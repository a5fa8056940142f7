"""The main job as a user runs it, and everything it leaves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lineproof.evidence.integrity import check_integrity
from lineproof.evidence.record_schemas import schema_problems
from lineproof.evidence.run import read_run
from support import robot_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    done = robot_run.run(tmp_path_factory.mktemp("netgate"), robot_run.ROOT / "tests" / "netgate6100.robot")
    assert done.status == 0 and robot_run.processes_of(done.folder) == [], done.console
    (folder,) = (done.folder / "results").iterdir()
    return folder


def test_the_records_are_as_published_and_unchanged(left: Path):
    integrity = check_integrity(left)
    assert integrity.altered == () and list(schema_problems(integrity)) == []


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


def test_what_trex_offered_is_what_the_router_counted(left: Path):
    """The first sentence loses nothing, so VPP's own counters rise by exactly what the generator sent."""
    received = {}
    for moment in ("before", "after"):
        (path,) = (left / "telemetry").glob(f"001-{moment}-*show-interface.txt")
        received[moment] = sum(int(count) for count in re.findall(r"rx packets +(\d+)", path.read_text()))
    offered = sum(item.trial.offered for item in read_run(left).trials if item.requirement == 1 and item.trial.number)
    assert offered > 0
    assert received["after"] - received["before"] == offered
