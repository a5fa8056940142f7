"""pkt-gen over a real sshd, by a program that has its arguments and output, with a switch beside it."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lineproof.core.trial import HOST_COUNTS, Load, Outcome
from lineproof.errors import TestbedError
from lineproof.generators.base import directions_of
from lineproof.generators.programs import pktgen
from lineproof.testbed import namespaces
from support.catalogue import CATALOGUE
from support.paths import ROOT
from support.two_hosts import TwoHosts, two_hosts

pytestmark = pytest.mark.netns
PROFILE = CATALOGUE.profile(["64b", "1-flow"])
ONE = directions_of((0, 1), bidirectional=False)
STAND_IN = ROOT / "utest" / "support" / "stand_in_pkt_gen.py"


class Lab:
    """Two hosts, the stand-in for pkt-gen on them; ``cable``: what the stand-ins share, and a switch counts."""

    def __init__(self, hosts: TwoHosts, folder: Path) -> None:
        self.hosts, self.cable = hosts, folder / "cable.json"
        (folder / "stand_in.py").write_text(STAND_IN.read_text(encoding="utf-8"), encoding="utf-8")
        self.program = folder / "pkt-gen"
        self.program.write_text(f'#!/bin/sh\nexec {sys.executable} {folder / "stand_in.py"} "$@"\n')
        self.program.chmod(0o755)

    def write(self, **keys: object) -> None:
        """The testbed's file."""
        self.hosts.write("pkt-gen", over_ssh=True, program=str(self.program), link_wait=0, **keys)

    def switch(self, **keys: object) -> dict[str, object]:
        """The key ``switch``: a command here that prints JSON."""
        where = {"run": f"cat {self.cable}", "ports": [1, 2], "settle": 0}
        return {**where, "json_paths": {"received": "received_{port}", "sent": "sent_{port}"}, **keys}

    def measured(self, **cable: int) -> Outcome:
        """A trial, with the cable as given."""
        counts = dict.fromkeys(("received_1", "sent_1", "received_2", "sent_2"), 7)
        self.cable.write_text(json.dumps({**counts, **cable}))
        with contextlib.closing(self.hosts.connect()) as generator:
            generator.prepare(PROFILE, ONE)
            return generator.measure(Load(10_000.0), 0.5)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    if reason := namespaces.reason_against():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("lab")
    with two_hosts(tmp_path_factory.mktemp("hosts")) as hosts:
        yield Lab(hosts, folder)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_switch_over_ssh(lab: Lab) -> None:
    port = lab.hosts.remote[0]
    keys = {"address": port["address"], "ssh": port["ssh"], "run": f"cat {lab.cable}; : {{port}}"}
    places = {"received": r'"received_1": (\d+)', "sent": [r'"sent_2": (\d+)', r'"sent_1": (\d+)']}
    lab.write(switch={**keys, "ports": ["1", "2"], "settle": 0, "pattern": places})
    found = lab.measured()
    assert not found.problems and found.readings[HOST_COUNTS] == 0


def test_a_switch_that_does_not_answer_is_found_before_any_traffic(lab: Lab) -> None:
    lab.write(switch=lab.switch(run="echo no such port {port} >&2; exit 1"))
    with pytest.raises(TestbedError, match=r"^the switch: its command failed with status 1: no such port 1$"):
        lab.hosts.connect()


def test_a_port_that_hears_others_is_known(lab: Lab) -> None:
    lab.write()
    lab.cable.write_text(json.dumps({"waiting": 12}))
    with contextlib.closing(lab.hosts.connect()) as generator:
        heard = generator.idle(0.1)
    assert sorted(one.frames for one in heard.values()) == [0, 12]
