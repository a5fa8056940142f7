"""pkt-gen over a real sshd, by a program that has its arguments and output, with a switch beside it."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lineproof.counts.trial import HOST_COUNTS, Fault, Load, Outcome, Tolerance, assess_trial
from lineproof.errors import TestbedError
from lineproof.generators.base import directions_of
from lineproof.generators.programs import pktgen
from lineproof.testbed import namespaces
from lineproof.traffic.catalogue import Catalogue
from support.paths import ROOT
from support.snmp_switch import COMMUNITY, SnmpSwitch
from support.two_hosts import TwoHosts, two_hosts

pytestmark = pytest.mark.netns
PROFILE = Catalogue.read(ROOT / "variables" / "profiles").profile(["64b", "1-flow"])
ONE = directions_of((0, 1), bidirectional=False)
STAND_IN = ROOT / "utest" / "support" / "stand_in_pkt_gen.py"


class Lab:
    """Two hosts, the stand-in for pkt-gen on them, and a switch; ``cable``: what the stand-ins share."""

    def __init__(self, hosts: TwoHosts, folder: Path, switch: SnmpSwitch) -> None:
        self.hosts, self.switch, self.cable = hosts, switch, folder / "cable.json"
        (folder / "stand_in.py").write_text(STAND_IN.read_text(encoding="utf-8"), encoding="utf-8")
        self.program = folder / "pkt-gen"
        self.program.write_text(f'#!/bin/sh\nexec {sys.executable} {folder / "stand_in.py"} "$@"\n')
        self.program.chmod(0o755)

    def write(self, **keys: object) -> None:
        """The testbed's file."""
        self.hosts.write("pkt-gen", over_ssh=True, program=str(self.program), link_wait=0, **keys)

    def snmp(self, **keys: object) -> dict[str, object]:
        """The key ``switch``."""
        where = {"kind": "snmp", "address": "127.0.0.1", "port": self.switch.port, "community_from": "COMMUNITY"}
        return {**where, "ports": [1, 2], "settle": 0, **keys}

    def measured(self, **cable: int) -> Outcome:
        """A trial, with the cable as given."""
        self.cable.write_text(json.dumps(cable))
        with contextlib.closing(self.hosts.connect()) as generator:
            generator.prepare(PROFILE, ONE)
            return generator.measure(Load(10_000.0), 0.5)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    if reason := namespaces.reason_against():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("lab")
    switch = SnmpSwitch(folder / "cable.json")
    with two_hosts(tmp_path_factory.mktemp("hosts")) as hosts:
        yield Lab(hosts, folder, switch)
    switch.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMUNITY", COMMUNITY)
    monkeypatch.setattr(pktgen, "DRAIN", 0.1)


def test_the_two_programs_count(lab: Lab) -> None:
    lab.write()
    found = lab.measured(lose=40)
    (row,) = found.directions
    assert (row.intended, row.offered, row.forwarded, row.offered_bytes) == (5000, 5000, 4960, 320_000)
    assert not found.problems and found.readings[HOST_COUNTS] == 1
    assert (found.elapsed, found.readings["elapsed_uncertainty"]) == pytest.approx((0.5, 0.005))
    arguments = json.loads(lab.cable.read_text())["arguments"]
    assert arguments[:2] == ["-i", "port0"]
    for option, value in (("-l", "60"), ("-s", "16.0.0.1:1025"), ("-d", "48.0.0.1:12"), ("-D", "02:6c:72:00:01:01")):
        assert arguments[arguments.index(option) + 1] == value
    assert lab.hosts.running("pkt-gen") == []


def test_a_switch_that_agrees_is_evidence(lab: Lab) -> None:
    lab.write(switch=lab.snmp())
    found = lab.measured(lose=40)
    assert not found.problems and found.readings[HOST_COUNTS] == 0
    grown = {key: count - found.counters["before"][key] for key, count in found.counters["after"].items()}
    assert (grown["switch.0.in"], grown["switch.1.out"], grown["0.opackets"], grown["1.ipackets"]) == (
        5000,
        4960,
        5000,
        4960,
    )


def test_a_switch_that_disagrees_makes_the_trial_inconclusive(lab: Lab) -> None:
    lab.write(switch=lab.snmp(tolerance=0.001))
    found = lab.measured(lose=40, unseen=100)
    assert [problem.fault for problem in found.problems] == [Fault.MISCOUNTED]
    assert "the switch counted 4900 frames sent by port 0, the generator 5000" in str(found.problems[0])
    assert not assess_trial(1, found, Tolerance()).blames_router
    lab.write(switch=lab.snmp(tolerance=0.05))
    assert not lab.measured(lose=40, unseen=100).problems


def test_a_switch_by_its_shell(lab: Lab) -> None:
    port = lab.hosts.remote[0]
    show = f"cat {lab.cable}; :"
    switch = {
        **{"kind": "shell", "address": port["address"], "ssh": port["ssh"], "ports": ["1", "2"], "settle": 0},
        **{"command": f"{show} {{port}}", "received": r'"1\.in": (\d+)', "sent": r'"2\.out": (\d+)'},
    }
    lab.write(switch=switch)
    counts = {"1.in": 7, "2.out": 9}
    lab.cable.write_text(json.dumps(counts))
    with contextlib.closing(lab.hosts.connect()) as generator:
        generator.prepare(PROFILE, ONE)
        found = generator.measure(Load(10_000.0), 0.5)
    assert not found.problems and found.readings[HOST_COUNTS] == 0


def test_a_switch_that_does_not_answer_is_found_before_any_traffic(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMUNITY", "wr0ng")
    monkeypatch.setattr("lineproof.system.snmp.LIMIT", 0.2)
    lab.write(switch=lab.snmp())
    with pytest.raises(TestbedError, match=r"the switch at 127\.0\.0\.1:[0-9]+: No SNMP response") as caught:
        lab.hosts.connect()
    assert "wr0ng" not in str(caught.value)
    monkeypatch.setenv("COMMUNITY", COMMUNITY)
    monkeypatch.setattr("lineproof.system.snmp.LIMIT", 2.0)
    lab.hosts.connect().close()


def test_a_port_that_hears_others_is_known(lab: Lab) -> None:
    lab.write()
    lab.cable.write_text(json.dumps({"waiting": 12}))
    with contextlib.closing(lab.hosts.connect()) as generator:
        heard = generator.idle(0.1)
    assert sorted(one.frames for one in heard.values()) == [0, 12]
