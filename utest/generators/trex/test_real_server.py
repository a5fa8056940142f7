"""A real TRex server in the generator's namespace. TREX_HOME names its installation; without it this is skipped."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from lineproof.core.latency import Resolution
from lineproof.core.rule import Ruling
from lineproof.core.traffic.profiles import Traffic
from lineproof.core.trial import Fault, Load, read_trial
from lineproof.errors import TestbedError
from lineproof.generators.base import Probe
from lineproof.generators.trex.client.service import NextHop
from lineproof.generators.trex.clients import call_server
from lineproof.generators.trex.driver import TrexGenerator
from lineproof.session.session import Session
from lineproof.system.network_namespace import run_in_namespace
from lineproof.testbed.trex_start import ARGUMENTS
from support import leftovers, robot_run
from support.real_trex import REASON, WORDS, generator
from support.simulated_session import owed, started

pytestmark = [pytest.mark.netns, pytest.mark.skipif(REASON != "", reason=REASON)]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with started(tmp_path, WORDS, bypass=True) as found:
        found.generator.connect(generator)
        yield found
    assert servers(tmp_path) == []


def servers(folder: Path) -> list[psutil.Process]:
    """The servers that a testbed with this runtime folder has started."""
    found = []
    for process in psutil.process_iter(["name"]):
        try:
            if "t-rex-64" in process.name() and str(folder) in process.environ().get("XDG_RUNTIME_DIR", ""):
                found.append(process)
        except psutil.Error:
            continue
    return found


def offered_and_forwarded(session: Session, seconds: float = 1.0) -> tuple[int, int]:
    session.traffic.put(session.plan.probe)
    outcome = session.traffic.measure(Load(2000.0), seconds)
    return sum(direction.offered for direction in outcome.directions), sum(
        direction.forwarded for direction in outcome.directions
    )


@pytest.mark.parametrize("fine", [True, False])
def test_latency_of_each_size_is_counted_as_finely_as_the_server_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fine: bool
) -> None:
    if not fine:
        monkeypatch.setattr(
            "lineproof.testbed.trex_start.ARGUMENTS", tuple(each for each in ARGUMENTS if each != "--hdrh")
        )
    with started(tmp_path, WORDS, bypass=True) as session:
        session.generator.connect(generator)
        driver, profile = session.generator.driver, session.plan.catalogue.profile(["imix"])
        assert isinstance(driver, TrexGenerator) and driver.has_fine_latency(session.plan.probe.profile) is fine
        session.traffic.put(Traffic(profile, True), Probe(600.0))
        for _ in range(2):
            counts = session.traffic.measure(Load(6000.0), 1.0).latency
            assert [(count.tx_port, count.rx_port) for count in counts] == [(0, 1), (1, 0)]
            for count in counts:
                assert count.resolution is (Resolution.THREE_DIGITS if fine else Resolution.ONE_DIGIT)
                assert count.sent == count.received == pytest.approx(600, abs=3) and count.unplaced >= 0
                assert ("'--hdrh'" in count.doubt) is not fine and (not fine or count.unplaced == 0), count


def test_an_overloaded_cpu_is_a_fault_of_this_trial_only(session: Session) -> None:
    session.traffic.put(Traffic(session.plan.probe.profile, False))
    tolerance = session.plan.testbed.tolerances()
    for load in (4e6, 2e6):
        beyond = read_trial(1, session.traffic.measure(Load(load), 1.0), tolerance)
        assert Fault.CPU_BOUND in {problem.fault for problem in beyond.problems}
        assert all(beyond.lost_frames(row).low == 0 for row in beyond.outcome.directions)
    modest = read_trial(2, session.traffic.measure(Load(2000.0), 1.0), tolerance)
    assert Fault.CPU_BOUND not in {problem.fault for problem in modest.problems}


def test_a_suite_runs_on_a_real_server(tmp_path: Path) -> None:
    suite = robot_run.ROOT / "tests" / "linux_router.robot"
    tests = ("-t", "Small Frames*", "-t", "Internet Mix*", "-t", "A Rate Beyond*")
    found = robot_run.run(tmp_path, suite, "-v", "TESTBED:netns-trex", *tests, limit=300)
    assert found.status == 0, found.console
    (folder,) = (tmp_path / "results").iterdir()
    assert "TRex v" in (folder / "telemetry.jsonl").read_text()
    versions = json.loads((folder / "environment.json").read_text())["versions"]
    assert versions["generator.server"].startswith("v")
    assert robot_run.processes_of(tmp_path) == []


def test_after_a_server_was_killed_in_a_trial_sentences_are_inconclusive(session: Session, tmp_path: Path) -> None:
    offered, forwarded = offered_and_forwarded(session)
    assert offered == forwarded > 0
    (server,) = servers(tmp_path)
    killer = threading.Timer(1.0, lambda: os.kill(server.pid, signal.SIGKILL))
    killer.start()
    with pytest.raises(TestbedError):
        offered_and_forwarded(session, 5.0)
    killer.join()
    found = owed(session, "64b unidirectional ≥ 5 kpps")
    assert found.ruling is Ruling.INCONCLUSIVE
    assert "'trex' ended" in str(found.reason)


def test_a_killed_run_leaves_nothing_of_it(runtime: Path) -> None:
    code = (
        "import time\n"
        "import testbed.test_netns as t\n"
        "settings = t.SETTINGS.model_copy(update={'generator': 'trex'})\n"
        "found = t.open_testbed(settings, t.PLATFORM, 'linux', platform_file=t.FILE)\n"
        "print('open', flush=True)\n"
        "time.sleep(60)\n"
    )
    with leftovers.owner(code) as (owner, said):
        assert said == "open"
        processes = psutil.Process(owner.pid).children(recursive=True)
        owner.kill()
    leftovers.await_end(runtime, processes)
    assert list(Path("/var/run/dpdk").glob("lineproof-*")) == []


OWN = ("100.65.1.2", "100.65.2.2")


def asked(session: Session, method: str, **parameters: Any) -> Any:
    access = session.testbed.facts.generator.trex
    assert access is not None
    where = access.server, access.sync_port

    def ask() -> Any:
        handle: Any = call_server(*where, "api_sync_v2", {"name": "STL", "major": 5, "minor": 1})
        return call_server(*where, method, {**handle, **parameters})

    return run_in_namespace(access.namespace, ask)


@pytest.mark.parametrize("kind", ["ARP", "neighbour discovery"])
def test_a_real_router_is_asked(tmp_path: Path, kind: str) -> None:
    with started(tmp_path, WORDS) as session:
        session.generator.connect()
        expected = [port.destination for port in session.generator.ports]
        session.router.connect()
        session.router.configure()
        addresses = ["100.65.1.1", "100.65.2.1"]
        if kind != "ARP":
            addresses = ["2001:db8:1::1", "2001:db8:2::1"]
            for side, address in zip(session.testbed.facts.sides, addresses, strict=True):
                name = side.interface
                ip6 = f"sysctl -qw net.ipv6.conf.{name}.disable_ipv6=0 && ip link set dev {name} multicast on"
                done = session.router.shell(f"{ip6} && ip -6 address add {address}/64 dev {name} nodad", 5)
                assert done.status == 0, done
        session.generator.release()
        hops = {port: NextHop(OWN[port], addresses[port], explicit=True) for port in (0, 1)}
        with closing(generator(session.testbed, next_hops=hops)) as found:
            found.prepare(session.plan.probe.profile, session.traffic.directions(session.plan.probe))
            assert [port.destination for port in found.ports] == expected
            for port in (0, 1):
                assert not asked(session, "get_port_status", port_id=port)["service"]
