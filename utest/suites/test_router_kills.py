"""A run is killed while it configures or restores a router that outlives it: the router is as it was, byte for byte.

Robot, what it started, or its SSH links end; the next start or ``lineproof restore`` follows. The default is a sample.
``LINEPROOF_ROUTER_KILLS=50 pytest utest/suites/test_router_kills.py``: so many on each router.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from support import router_rig
from support.fork_server import ForkedProcess
from support.router_rig import Rig

COUNT = int(os.environ.get("LINEPROOF_ROUTER_KILLS", "2"))
MOMENT = 0.002
"""Seconds between two looks at a journal."""
LIMIT = 240.0
"""Seconds for a run on a busy machine."""
EARLIER = """\
ip addr add 192.0.2.1/24 dev kr0
ip addr add 192.0.2.65/26 dev kr1
ip route add 16.0.0.0/8 via 192.0.2.9 dev kr0
ip route add 48.0.0.0/8 metric 100 nexthop via 192.0.2.70 dev kr1 nexthop via 192.0.2.71 dev kr1
ip neigh add 100.65.1.2 lladdr 02:00:00:00:00:77 nud permanent dev kr0
sysctl -qw net.ipv4.conf.kr0.rp_filter=2
"""
"""The configuration that a router may have already where a run sets something else."""


def longest_journal(rig: Rig) -> int:
    """How many lines the journal of a run that nobody ends comes to."""
    run, lines = rig.start(), 0
    while run.poll() is None:
        lines = max(lines, journal_lines(rig))
        time.sleep(MOMENT)
    assert run.returncode == 0, (rig.folder / "console.txt").read_text()
    assert lines
    return lines


def journal_lines(rig: Rig) -> int:
    with contextlib.suppress(OSError, IndexError):
        return rig.journals[0].read_bytes().count(b"\n")
    return 0


def strike(rig: Rig, run: ForkedProcess, chance: random.Random, longest: int) -> str:
    """Kill *run*, the processes that it started or its SSH links, at a moment of its work on the router.

    Returns what was killed and when; "" where the run was through with the router.
    """
    target = chance.choice(["robot", "children", "ssh"])
    lines, after = chance.randint(1, longest), chance.uniform(0, 0.01)
    while run.poll() is None and journal_lines(rig) < lines:
        time.sleep(MOMENT)
    time.sleep(after)
    found = f"{target} at line {lines}" if rig.journals else ""
    if target == "ssh":
        rig.cut()
    elif target == "children":
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(run.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    child.kill()
    else:
        run.kill()
    return found


def check(rig: Rig, seed: int, seen: dict[str, int]) -> None:
    """COUNT kills that found the router changed; *seen* receives how many of each process."""
    chance, before, longest = random.Random(seed), rig.state(), longest_journal(rig)
    assert rig.state() == before
    for _ in range(4 * COUNT):
        run = rig.start()
        what = strike(rig, run, chance, longest)
        run.wait(LIMIT)
        if rig.state() != before and not seen:
            listed = rig.restore("--dry-run")
            assert listed.returncode == 1 and "left by an earlier run" in listed.stdout, (what, listed)
        if rig.state() != before or rig.journals:
            if chance.random() < 0.25:
                assert rig.start().wait(LIMIT) == 0, (rig.folder / "console.txt").read_text()
            else:
                assert rig.restore().returncode == 0, what
        assert rig.state() == before, what
        assert not rig.journals, what
        if what:
            seen[what.split()[0]] = seen.get(what.split()[0], 0) + 1
        if sum(seen.values()) == COUNT:
            return
    pytest.fail(f"only {sum(seen.values())} of {4 * COUNT} kills came in time")


@pytest.fixture
def seen(record_property: Callable[[str, object], None], request: pytest.FixtureRequest) -> Iterator[dict[str, int]]:
    """How many kills of which process, for the report."""
    found: dict[str, int] = {}
    yield found
    record_property("kills", found)
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"\n{request.node.name}: {found}")


@pytest.mark.netns
def test_a_linux_kernel_that_has_a_configuration_of_its_own(tmp_path: Path, seen: dict[str, int]) -> None:
    with router_rig.kernel(tmp_path, "set_up: [ipv6, vlan, mpls]") as rig:
        rig.run(EARLIER)
        check(rig, 2, seen)


@pytest.mark.slow
@pytest.mark.parametrize("software", ["vpp", "linux", "pfsense"])
def test_a_simulated_router(software: str, tmp_path: Path, seen: dict[str, int]) -> None:
    with router_rig.simulated(tmp_path, software) as rig:
        check(rig, 3, seen)
