"""Runs and sessions with real frames through the kernel of this machine, by each generator that it has."""

from __future__ import annotations

import json
import shutil
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from lineproof.core.rule import Ruling
from lineproof.errors import TestbedError
from lineproof.session.session import Session
from lineproof.system.children import find_program
from lineproof.system.network_namespace import configure
from support import kernel_router, robot_run
from support.robot_run import RobotRun
from support.simulated_session import judged, started

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


@pytest.mark.skipif(shutil.which("tc") is None, reason="this machine has no 'tc'")
def test_a_kernels_queue_and_its_missing_route_own_up(tmp_path: Path) -> None:
    with kernel_router.configured(tmp_path) as session:
        session.traffic.check_reachability()
        side = session.testbed.facts.sides[1]
        run = partial(kernel_router.run_in_router, session)
        shaper = ("dev", side.interface, "root")
        run("tc", "qdisc", "add", *shaper, "tbf", "rate", "4mbit", "burst", "10kb", "limit", "20kb")
        slow = judged(session, "64b 1-flow unidirectional ≥ 20 kpps")
        run("tc", "qdisc", "del", *shaper)
        run("ip", "route", "del", side.network)
        lost = judged(session, "64b 1-flow unidirectional ≥ 5 kpps")
    for verdict, cause in ((slow, f"qdisc drops at {side.interface}"), (lost, "ip InNoRoutes (no route)")):
        assert verdict.ruling is Ruling.FAIL and cause in verdict.message
        (ledger,) = verdict.ledgers
        # the kernel may send a frame of its own meanwhile
        assert ledger.lost > 1000 and abs(ledger.unexplained) <= 5


def test_a_neighbour_that_goes_in_a_sentence_makes_no_fail(tmp_path: Path) -> None:
    with kernel_router.configured(tmp_path) as session:
        session.traffic.check_reachability()
        side = session.testbed.facts.sides[1]

        def forget(*_: object) -> None:
            kernel_router.run_in_router(session, "sh", "-c", f"ip neigh del {side.peer} dev {side.interface} || true")

        found = judged(session, "64b unidirectional ≥ 2 kpps", on_trial=forget)
    assert found.ruling is Ruling.INCONCLUSIVE, found.message
    assert f"the router has no neighbour entry for {side.peer} on {side.interface}" in found.message, found.message
    fix = f"ip neigh replace {side.peer} lladdr {side.peer_mac} nud permanent dev {side.interface}"
    assert f"'{fix}' on the router sets it" in found.message


def test_an_interface_whose_link_comes_late_is_awaited_and_named(tmp_path: Path) -> None:
    with started(tmp_path, ("linux_router", "linux", "netns")) as session:
        session.generator.connect()
        session.router.connect()
        name = session.testbed.facts.sides[0].interface
        # an end of a veth pair whose other end is down has no carrier
        _set_port(session, "down")
        back = threading.Timer(4.0, lambda: _set_port(session, "up"))
        back.start()
        session.router.configure()
        back.join()
        session.traffic.check_reachability()
        assert f"the router's {name} after " in session.router.links.noted_words
        _set_port(session, "down")
        session.router.links.limit = 1.0
        began = time.monotonic()
        with pytest.raises(TestbedError, match=rf"neither the router's interface {name} nor .* port 0 has a link"):
            session.router.configure(links_moved=True)
        assert time.monotonic() - began > 1.0


def _set_port(session: Session, state: str) -> None:
    configure(session.testbed.facts.namespaces[0], f"link set port0 {state}")
