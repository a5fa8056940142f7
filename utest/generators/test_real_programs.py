"""trafgen and iperf3 for real, between network namespaces: counts, and what a killed run leaves."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lineproof.core.trial import HOST_COUNTS, Load
from lineproof.errors import TestbedError
from lineproof.generators.base import Generator, directions_of
from lineproof.system import children
from support.catalogue import CATALOGUE
from support.paths import ROOT
from support.patience import wait_until
from support.two_hosts import TwoHosts, no_namespaces, two_hosts

pytestmark = pytest.mark.netns
BOTH, ONE = directions_of((0, 1), bidirectional=True), directions_of((0, 1), bidirectional=False)
RATE, SECONDS = 5000.0, 0.5
LIMIT = 240.0
"""Seconds for a run to begin or to end, on a busy machine."""


def need(program: str) -> None:
    if children.find_program(program) is None:
        pytest.skip(f"the program {program} is not installed")


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoHosts]:
    if reason := no_namespaces():
        pytest.skip(reason)
    with two_hosts(tmp_path_factory.mktemp("hosts")) as found:
        yield found


@contextlib.contextmanager
def connected(hosts: TwoHosts, kind: str, **keys: Any) -> Iterator[Generator]:
    need(kind)
    hosts.write(kind, **keys)
    with contextlib.closing(hosts.connect()) as generator:
        yield generator


@pytest.mark.parametrize(("kind", "words"), [("trafgen", "imix"), ("trafgen", "1514b vlan"), ("iperf3", "512b 1-flow")])
@pytest.mark.parametrize("over_ssh", [False, True])
def test_every_frame_is_counted_on_both_sides(hosts: TwoHosts, kind: str, words: str, over_ssh: bool) -> None:
    profile = CATALOGUE.profile(words.split())
    with connected(hosts, kind, over_ssh=over_ssh) as generator:
        assert kind in generator.versions["server"] and all(port.link_up for port in generator.ports)
        generator.prepare(profile, BOTH)
        found = generator.measure(Load(RATE), SECONDS)
    frames = round(RATE * SECONDS)
    assert [(row.intended, row.offered, row.forwarded) for row in found.directions] == [(frames, frames, frames)] * 2
    assert found.directions[0].offered_bytes == pytest.approx(profile.mean_size * frames, rel=0.01)
    # a busy machine takes longer, none less
    assert found.elapsed > 0.97 * SECONDS
    assert not found.problems and found.readings[HOST_COUNTS] == 1
    assert hosts.running(kind) == []


@pytest.mark.parametrize("words", ["512b 3-flows", "datagram-1500 1-flow", "datagram-1500 2-flows"])
def test_iperf3_sends_a_few_flows_and_fragments(hosts: TwoHosts, words: str) -> None:
    """Each flow by a client on a core of its own; a datagram longer than the MTU is two frames, as the profile says."""
    profile = CATALOGUE.profile(words.split())
    with connected(hosts, "iperf3") as generator:
        generator.prepare(profile, BOTH)
        found = generator.measure(Load(RATE), SECONDS)
        assert hosts.running("iperf3") == []
        # the port has its own MTU again for what does not need fragments
        generator.prepare(CATALOGUE.profile(["9000b", "1-flow"]), ONE)
        whole = generator.measure(Load(100.0), SECONDS)
    frames = round(RATE * SECONDS)
    for row in found.directions:
        assert row.intended - 1 <= row.offered == row.forwarded <= row.intended == frames
        assert row.offered_bytes == pytest.approx(profile.mean_size * row.offered, rel=0.001)
    assert found.elapsed > 0.97 * SECONDS and not found.problems
    assert found.readings["sender_cores"] == 2 * min(profile.flows.count, len(os.sched_getaffinity(0)))
    assert whole.directions[0].forwarded == 50 and "mtu 9216" in hosts.shown("ip", "link", "show", "port0")


def test_what_is_done_meanwhile_is_done_while_frames_flow(hosts: TwoHosts) -> None:
    seen: list[list[str]] = []
    with connected(hosts, "trafgen") as generator:
        generator.prepare(CATALOGUE.profile(["64b"]), ONE)
        found = generator.measure(Load(RATE), 4.0, lambda wait: seen.append(hosts.running("trafgen")))
    assert seen[0] and found.readings["during_ended"] > 0


@pytest.mark.parametrize(("kind", "flows"), [("trafgen", "1-flow"), ("iperf3", "1-flow"), ("iperf3", "3-flows")])
def test_a_load_beyond_the_program_is_offered_only_in_part(hosts: TwoHosts, kind: str, flows: str) -> None:
    """A stopped program reports what it has sent, each of several streams, too."""
    with connected(hosts, kind) as generator:
        generator.prepare(CATALOGUE.profile(["64b", flows]), ONE)
        # more than any processor sends before it is stopped
        (row,) = generator.measure(Load(5e7), 0.2).directions
    assert 0 < row.offered < row.intended and row.lost == 0


@pytest.mark.parametrize("over_ssh", [False, True])
def test_two_runs_cannot_have_the_same_port(hosts: TwoHosts, over_ssh: bool) -> None:
    with (
        connected(hosts, "trafgen", over_ssh=over_ssh),
        pytest.raises(TestbedError, match=rf"another run uses it \(.*process {os.getpid()}, since"),
    ):
        hosts.connect()
    hosts.connect().close()


LONG = """
import sys
sys.path[:0] = sys.argv[1].split(":")
from pathlib import Path
from lineproof.core.trial import Load
from lineproof.generators.base import directions_of
from support.two_hosts import TwoHosts
from support.catalogue import CATALOGUE
generator = TwoHosts(Path(sys.argv[2]), ("", ""), [], []).connect()
generator.prepare(CATALOGUE.profile(["64b", "1-flow"]), directions_of((0, 1), True))
generator.measure(Load(2000.0), 60.0)
"""


@pytest.mark.parametrize(
    ("kind", "over_ssh", "number"),
    [
        ("trafgen", False, signal.SIGTERM),
        ("trafgen", False, signal.SIGKILL),
        ("iperf3", False, signal.SIGKILL),
        ("trafgen", True, signal.SIGKILL),
    ],
)
def test_a_killed_run_leaves_no_program(
    hosts: TwoHosts, tmp_path: Path, kind: str, over_ssh: bool, number: signal.Signals
) -> None:
    need(kind)
    hosts.write(kind, over_ssh=over_ssh)
    folders = f"{ROOT / 'libraries'}:{ROOT / 'utest'}"
    log = tmp_path / "log"
    with log.open("wb") as output:
        argv = [sys.executable, "-c", LONG, folders, str(hosts.folder)]
        process = subprocess.Popen(argv, stdout=output, stderr=output)
    try:
        wait_until(lambda: len(hosts.running(kind)) >= 2 or process.poll() is not None, f"two of {kind}", LIMIT)
        assert process.poll() is None, log.read_text()
        process.send_signal(number)
        process.wait(LIMIT)
        wait_until(lambda: not hosts.running(kind), lambda: hosts.running(kind), LIMIT)
    finally:
        process.kill()
        process.wait(LIMIT)
    wait_until(lambda: "tbf" not in hosts.shown("tc", "qdisc", "show", "dev", "port0"), "tbf")
    wait_until(lambda: "16.0.0.1" not in hosts.shown("ip", "addr"), "the address")
    wait_until(lambda: "7773" not in hosts.shown("ip", "rule"), "the rule")

    def free() -> bool:
        with contextlib.suppress(TestbedError):
            hosts.connect().close()
            return True
        return False

    wait_until(free, "the ports are free")
