"""Runs and sessions with real frames through the kernel of this machine, by each generator that it has."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from functools import partial
from ipaddress import ip_network
from pathlib import Path

import pytest

from lineproof.core.rule import Ruling
from lineproof.core.traffic.frame_kinds import reason_not_forwarded
from lineproof.core.traffic.profiles import LABEL, Profile, Traffic
from lineproof.core.trial import Load
from lineproof.errors import TestbedError
from lineproof.session.session import Session
from lineproof.system.children import find_program
from lineproof.system.network_namespace import configure, inside
from support import robot_run
from support.robot_run import RobotRun
from support.simulated_session import judged, kernel_session, run_in_router, started

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


SETUP = "Open Testbed For    linux_router    software=linux    testbed=${TESTBED}    goal=quick\nLibrary    SSHLibrary"
NARROW = (
    "${text}    ${rc} =    Execute Command    uname -s; exit 3    return_rc=True",
    "Should Be Equal    ${text} ${rc}    Linux 3",
    "Run On Router    tc qdisc replace dev ${ROUTER_INTERFACES}[1] root tbf rate 2mbit burst 16kb latency 5ms",
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
    with kernel_session(tmp_path) as session:
        side = session.testbed.facts.sides[1]
        run = partial(run_in_router, session)
        shaper = ("dev", side.interface, "root")
        run("tc", "qdisc", "add", *shaper, "tbf", "rate", "4mbit", "burst", "10kb", "limit", "20kb")
        slow = judged(session, "64b 1-flow unidirectional ≥ 20 kpps")
        run("tc", "qdisc", "del", *shaper)
        # the run's own route stays: the kernel is told to pass over it
        for half in ip_network(side.network).subnets():
            run("ip", "route", "add", "throw", str(half))
        lost = judged(session, "64b 1-flow unidirectional ≥ 5 kpps")
    for verdict, cause in ((slow, f"qdisc drops at {side.interface}"), (lost, "ip InNoRoutes (no route)")):
        assert verdict.ruling is Ruling.FAIL and cause in verdict.message
        (ledger,) = verdict.ledgers
        # the kernel may send a frame of its own meanwhile
        assert ledger.whole.lost > 1000 and abs(ledger.whole.unexplained) <= 5


def test_a_route_of_the_run_to_which_somebody_has_added_words_is_theirs(tmp_path: Path) -> None:
    with kernel_session(tmp_path) as session:
        side = session.testbed.facts.sides[1]
        route = f"ip route replace {side.network} via {side.peer} dev {side.interface}"
        run_in_router(session, *route.split(), "mtu", "1400")
        said = session.router.driver.restore()
    assert said.endswith(f": '{route}' (now: via {side.peer} dev {side.interface} mtu 1400)"), said


def test_a_neighbour_that_goes_in_a_sentence_makes_no_fail(tmp_path: Path) -> None:
    with kernel_session(tmp_path) as session:
        side = session.testbed.facts.sides[1]

        def forget(*_: object) -> None:
            run_in_router(session, "sh", "-c", f"ip neigh del {side.peer} dev {side.interface} || true")

        found = judged(session, "64b unidirectional ≥ 2 kpps", forget)
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
        with pytest.raises(TestbedError, match=rf"no link at the router's {name} and the generator's port 0"):
            session.router.configure(links_moved=True)
        assert time.monotonic() - began > 1.0


def _set_port(session: Session, state: str) -> None:
    configure(session.testbed.facts.namespaces[0], f"link set port0 {state}")


PPS, JUMBO_PPS, SECONDS = 20_000.0, 5_000.0, 0.3
"""Frames/s each way, of frames up to 1518 bytes and of longer ones: what a slow machine carries as well; s."""

WORDS = (
    *("64b", "65b", "512b", "1514b", "1519b", "4096b", "9216b"),
    *("64b 1-flow", "64b var1", "64b 256-networks", "64b 2000-flows", "64b 10k-flows", "64b 1M-flows", "64b tcp"),
    *("imix", "imix-simple", "imix-csit", "genome:aaaaddg", "genome:abcdefghi"),
    *("66b ipv6", "78b ipv6", "9216b ipv6", "imix-66 ipv6", "78b ipv6 10k-flows", "78b ipv6 tcp", "78b ipv6 1-flow"),
    *("64b vlan", "9216b vlan", "imix vlan", "82b vlan ipv6", "64b vlan 10k-flows", "64b vlan tcp"),
    *("64b qinq", "9216b qinq", "86b qinq ipv6", "64b qinq 1-flow"),
    *("64b mpls", "9216b mpls", "imix mpls", "82b mpls ipv6", "64b mpls 10k-flows"),
    *("64b mpls2", "9216b mpls2", "86b mpls2 ipv6"),
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session whose router is configured."""
    with kernel_session(tmp_path_factory.mktemp("runtime")) as opened:
        yield opened


def profile_of(session: Session, words: str) -> Profile:
    """The profile; skips the test where the kernel lacks what it needs."""
    profile = session.plan.catalogue.profile(words.split())
    if reason := reason_not_forwarded(profile, session.router.not_forwarded):
        pytest.skip(reason)
    return profile


@pytest.mark.parametrize("words", WORDS)
def test_nothing_is_lost_and_every_frame_is_counted(session: Session, words: str) -> None:
    profile = profile_of(session, words)
    session.traffic.put(Traffic(profile, True))
    pps = PPS if max(frame.size for frame in profile.frames) <= 1518 else JUMBO_PPS
    offered: list[int] = []
    # a busy machine may keep the sender from its CPU; what it did send must be counted in any case
    for _ in range(5):
        directions = session.traffic.measure(Load(pps), SECONDS).directions
        assert len(directions) == 2
        assert [direction.forwarded for direction in directions] == [direction.offered for direction in directions]
        offered += [direction.offered for direction in directions]
        if offered[-2:] == [pps * SECONDS] * 2:
            return
    pytest.fail(f"{pps * SECONDS:g} were to be sent each way, were {offered}")


@pytest.mark.parametrize(
    "words", ["64b", "9216b ipv6", "64b vlan", "82b vlan ipv6", "9216b qinq", "64b mpls", "64b mpls2", "82b mpls ipv6"]
)
def test_tags_labels_and_sizes_come_back_as_they_were_sent(session: Session, words: str) -> None:
    profile = profile_of(session, words)
    seen = session.traffic.capture(Traffic(profile, True), Load(1000.0), 20)
    for direction in session.traffic.directions(session.plan.probe):
        headers = profile.headers.reversed() if direction.swapped else profile.headers
        assert len(seen[direction.rx_port]) == 20
        for frame in seen[direction.rx_port]:
            assert len(frame) + 4 == profile.frames[0].size
            at = 12
            for kind, vlan in headers.tags:
                assert struct.unpack_from("!HH", frame, at) == (kind, vlan)
                at += 4
            payload = {4: 0x0800, 6: 0x86DD}[headers.version]
            assert struct.unpack_from("!H", frame, at)[0] == (0x8847 if headers.labels else payload)
            for number, label in enumerate(headers.labels):
                entry = struct.unpack_from("!I", frame, at + 2 + LABEL * number)[0]
                assert entry >> 12 == label
                # 3.10 of RFC 3443: the outermost label's time to live is one less
                assert entry & 0xFF == (63 if number == 0 else 64)
            hops = frame[headers.ip + (8 if headers.version == 4 else 7)]
            assert hops == (64 if headers.labels else 63)


def test_an_idle_router_is_silent(session: Session) -> None:
    counters = [f"/sys/class/net/{port}/statistics/rx_packets" for port in ("port0", "port1")]
    command = (*inside(session.testbed.facts.namespaces[0]), "cat", *counters)
    before = subprocess.check_output(command, timeout=60)
    time.sleep(3)
    assert subprocess.check_output(command, timeout=60) == before


def test_what_has_no_way_is_refused_before_it_is_sent(session: Session) -> None:
    for words, kind in (("64b vlan", "vlan"), ("64b mpls", "mpls"), ("68b vlan mpls", None)):
        profile = session.plan.catalogue.profile(words.split())
        if kind is None or any(needs == {kind} for needs in session.router.not_forwarded):
            with pytest.raises(TestbedError, match=r"was not sent: .*(its module|without the tags)"):
                session.traffic.put(Traffic(profile, False))


LIES = {
    "a payload at full load": ("64b unidirectional", "limit rate over 1500/second @th,64,32 set 0xeeeeeeee", "payload"),
    "the payload of one flow": ("64b unidirectional", "ip saddr 16.0.0.9 @th,64,32 set 0xeeeeeeee", "payload"),
    "the payload of one size": ("imix unidirectional", "ip length 1500 @th,64,32 set 0xeeeeeeee", "payload"),
    "a header": ("64b unidirectional", "numgen inc mod 50 == 0 ip dscp set ef", "IP header"),
    "a loss that spares probes": ("64b unidirectional", "ip id != 0xffff numgen inc mod 50 == 0 drop", "lost 2 %"),
}
"""Traffic, what the kernel does to frames that leave the router, and what is named. Others: session/test_came_back."""


@pytest.mark.skipif(shutil.which("nft") is None, reason="this machine has no 'nft'")
@pytest.mark.parametrize("lie", LIES)
def test_a_router_that_lies_does_not_pass(session: Session, lie: str) -> None:
    traffic, rule, named = LIES[lie]
    hook = f"type filter hook egress device {session.testbed.facts.sides[1].interface} priority 0"
    run = partial(run_in_router, session)
    run("nft", f"table netdev lies {{ chain leaving {{ {hook}; {rule}; }}; }}")
    try:
        verdict = judged(session, f"{traffic} ≥ 2 kpps")
    finally:
        run("nft", "delete table netdev lies")
    assert verdict.ruling is not Ruling.PASS and named in verdict.message, verdict.message
