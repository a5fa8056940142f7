"""A real VPP as the router: configured, measured, read and restored over SSH. Skipped where there is none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lineproof.evidence.records import UnderLoadRecord
from support import robot_run, vpp_rig

REASON = vpp_rig.missing()

pytestmark = [pytest.mark.netns, pytest.mark.skipif(REASON != "", reason=REASON)]

TESTS = """\
Both Ways
    64b bidirectional ≥ 5 kpps each way

A Packet Costs Something
    64b 1-flow unidirectional costs ≤ 10000000 cycles/packet at 5 kpps

But Not Nothing
    64b 1-flow unidirectional costs ≤ 1 cycles/packet at 5 kpps

Half Of The Networks
    64b 256-networks unidirectional ≥ 5 kpps
"""


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[vpp_rig.Rig]:
    with vpp_rig.rig(tmp_path_factory.mktemp("vpp")) as found:
        yield found


def test_it_is_judged_and_left_as_it_was_twice(rig: vpp_rig.Rig, tmp_path: Path) -> None:
    before = rig.cli("show", "interface", "address")
    rig.cli("ip", "route", "add", "48.128.0.0/9", "via", "drop")
    for attempt in ("first", "second"):  # the first leaves the interfaces down, and the generator without links
        folder = tmp_path / attempt
        folder.mkdir()
        suite = robot_run.write_tests(folder, TESTS, "Open Testbed For    vpp-box    goal=quick")
        found = robot_run.run(folder, suite, *rig.options)
        assert found.tests["Both Ways"][0] == "PASS", found.console
        assert found.tests["A Packet Costs Something"][0] == "PASS", found.tests
        assert found.tests["But Not Nothing"][1].startswith("FAIL: "), found.tests
        message = found.tests["Half Of The Networks"][1]
        # VPP's own counter says where they went
        assert message.startswith("FAIL: ") and "drops at host-vr0" in message, message
        assert rig.cli("show", "interface", "address") == before
        assert robot_run.processes_of(folder) == []
        _check_facts(folder)
        _check_under_load(folder)


def _check_facts(folder: Path) -> None:
    (path,) = folder.rglob("environment.json")
    facts = json.loads(path.read_text(encoding="utf-8"))["router_facts"]
    assert facts["version"].startswith("v") and facts["workers"] == 1 and facts["differences"] == []
    assert [nic["model"] for nic in facts["nics"]] == ["Linux PACKET socket interface v3"] * 2
    assert {row["worker"] for row in facts["placement"]} == {"vpp_main"}
    assert facts["kernel"] and facts["cpu"]
    assert not [command for command in facts["unread"] if command.startswith("vppctl")], facts["unread"]


def _check_under_load(folder: Path) -> None:
    """After each FAIL, at the sentence's load; a share of the loads is known to have passed."""
    (path,) = folder.rglob("results.jsonl")
    reports = [UnderLoadRecord.from_json(line).report for line in path.read_bytes().splitlines()]
    assert len(reports) == 2
    for found in reports:
        (worker,) = found.workers
        assert worker.thread == "vpp_main" and 0 < (worker.busy or 0) <= 1
        assert worker.packets_per_s == pytest.approx(found.offered_pps, rel=0.3)
        assert "af-packet-input" in [node.name for node in worker.nodes]
        assert {queue.worker_or_cpu for queue in found.queues} == {"vpp_main"}
        assert not found.unread
