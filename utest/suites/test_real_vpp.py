"""A real VPP as the router: configured, measured, read and restored over SSH. Skipped where there is none.

Two tags are not tried: VPP's af_packet input puts back the outer tag that Linux took off as 0x8100, whatever it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from lineproof.core.rule import Ruling
from lineproof.evidence.run import read_run
from lineproof.generators.trex.client.service import NextHop
from lineproof.generators.trex.driver import TrexGenerator
from support import robot_run, vpp_rig
from support.simulated_session import judged, made_ready

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


FRAMES = """\
IPv6
    128b ipv6 bidirectional ≥ 2 kpps each way

One Tag
    128b vlan bidirectional ≥ 2 kpps each way

IPv6 With A Tag
    128b vlan ipv6 bidirectional ≥ 2 kpps each way

A Label
    128b mpls bidirectional ≥ 2 kpps each way

Two Labels
    128b mpls2 bidirectional ≥ 2 kpps each way

A Label Behind A Tag
    128b vlan mpls unidirectional ≥ 2 kpps
"""
FORWARDED = ("IPv6", "One Tag", "IPv6 With A Tag", "A Label", "Two Labels")
SHOWN = ("interface address", "ip table", "ip6 table", "mpls interface", "mpls fib 100", "ip6 interface host-vr0")


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[vpp_rig.Rig]:
    with vpp_rig.rig(tmp_path_factory.mktemp("vpp")) as found:
        variables = found.folder / "project" / "variables"
        testbed, goals = variables / "testbeds" / "vpp-lab.yaml", variables / "goals"
        testbed.write_text(testbed.read_text() + "set_up: [ipv6, vlan, mpls]\n")
        short = (goals / "quick.yaml").read_text().replace("goal: quick", "goal: short")
        (goals / "short.yaml").write_text(short.replace("duration_sum: 10\n", "duration_sum: 2\n"))
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
    """After each FAIL, at the sentence's load."""
    (path,) = folder.rglob("results.jsonl")
    reasons = [record.why for record in read_run(path.parent).requirements]
    reports = [why.load for why in reasons if why and why.load]
    assert len(reports) == 2
    for found in reports:
        (worker,) = found.workers
        assert worker.thread == "vpp_main" and 0 < (worker.busy or 0) <= 1
        assert worker.packets_per_s == pytest.approx(found.offered_pps, rel=0.3)
        assert "af-packet-input" in [node.name for node in worker.nodes]
        assert {queue.worker_or_cpu for queue in found.queues} == {"vpp_main"}
        assert not found.unread


def state(rig: vpp_rig.Rig) -> list[str]:
    neighbours = [line.split()[1:] for line in rig.cli("show", "ip", "neighbors").splitlines()]
    return [*(rig.cli("show", *words.split()) for words in SHOWN), str(sorted(neighbours))]


def test_it_forwards_what_it_is_set_up_for_and_is_left_as_it_was(rig: vpp_rig.Rig, tmp_path: Path) -> None:
    before = state(rig)
    suite = robot_run.write_tests(tmp_path, FRAMES, "Open Testbed For    vpp-box    goal=short")
    found = robot_run.run(tmp_path, suite, *rig.options)
    (folder,) = (tmp_path / "results").iterdir()
    best = dict.fromkeys(FORWARDED, 0.0)
    for record in read_run(folder).trials:
        rows = record.trial.outcome.directions
        if record.test in best and all(row.offered for row in rows):
            best[record.test] = max(best[record.test], min(row.forwarded / row.offered for row in rows))
    # a busy machine may send late, which makes a verdict INCONCLUSIVE; what was sent comes back all the same
    assert all(share > 0.9 for share in best.values()), (best, found.tests)
    message = found.tests["A Label Behind A Tag"][1]
    assert message.startswith("INCONCLUSIVE: ") and "one label table" in message, message
    # VPP makes its label table for good once it has been used
    after = [text.replace("MPLS-VRF:0, fib_index:0 locks:[interface:1, ]", "") for text in state(rig)]
    assert [text.strip() for text in after] == [text.strip() for text in before]


def test_a_neighbour_that_goes_makes_no_fail(rig: vpp_rig.Rig, tmp_path: Path) -> None:
    """VPP v26.10 goes on sending with the entry's old address: nothing is lost, but the next resolution fails."""
    with vpp_rig.opened_session(rig, tmp_path) as session:
        made_ready(session)
        mac = session.generator.ports[1].mac

        def forget(*_: object) -> None:
            rig.cli("set", "ip", "neighbor", "del", "host-vr1", "100.65.2.2", mac)

        found = judged(session, "64b unidirectional ≥ 2 kpps", forget)
        _, gone = session.router.neighbours()
    assert found.ruling is not Ruling.FAIL, found.message
    assert gone.problem == "the router has no neighbour entry for 100.65.2.2 on host-vr1"
    assert gone.fix == f"vppctl set ip neighbor host-vr1 100.65.2.2 {mac} static"


def test_an_ipv6_next_hop_is_asked_of_it_by_neighbour_discovery(rig: vpp_rig.Rig, tmp_path: Path) -> None:
    names = ("host-vr0", "host-vr1")
    hops = {port: NextHop("", f"2001:db8:{port}::1", explicit=True) for port in (0, 1)}
    for port, name in enumerate(names):
        for words in (f"set interface state {name} up", f"set interface ip address {name} 2001:db8:{port}::1/64"):
            rig.cli(*words.split())
    try:
        with vpp_rig.opened_session(rig, tmp_path) as session:
            session.generator.connect()
            expected = [port.destination for port in session.generator.ports]
            access = session.testbed.facts.generator.trex
            assert access is not None
            session.generator.release()
            with closing(TrexGenerator(replace(access, next_hops=hops))) as found:
                found.prepare(session.plan.probe.profile, session.traffic.directions(session.plan.probe))
                assert [port.destination for port in found.ports] == expected
    finally:
        for port, name in enumerate(names):
            rig.cli("set", "interface", "ip", "address", "del", name, f"2001:db8:{port}::1/64")
            rig.cli("set", "interface", "state", name, "down")
