"""A run is killed while it configures or restores a router that outlives it: the router is as it was, byte for byte.

Robot, what it started, or its SSH links end; the next start or ``lineproof restore`` follows. The default is a sample,
``LINEPROOF_ROUTER_KILLS=50`` tries so many. Every exchange with each kind of router: ``routers/test_every_router.py``.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
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
ip addr add 192.0.2.1/24 dev lr-r0
ip addr add 192.0.2.65/26 dev lr-r1
ip route add 16.0.0.0/8 via 192.0.2.9 dev lr-r0
ip route add 48.0.0.0/8 metric 100 nexthop via 192.0.2.70 dev lr-r1 nexthop via 192.0.2.71 dev lr-r1
ip neigh add 100.65.1.2 lladdr 02:00:00:00:00:77 nud permanent dev lr-r0
sysctl -qw net.ipv4.conf.lr-r0.rp_filter=2
"""
"""The configuration that a router may have already where a run sets something else."""


def journal_writes(rig: Rig, run: ForkedProcess) -> Iterator[int]:
    """Yield how often the journal of *run* was written until now, while it goes on."""
    count, last = 0, 0
    while run.poll() is None:
        with contextlib.suppress(OSError, IndexError):
            written = rig.journals[0].stat().st_mtime_ns
            count, last = count + (written != last), written
        yield count
        time.sleep(MOMENT)


def strike(rig: Rig, run: ForkedProcess, chance: random.Random, longest: int) -> str:
    """Kill *run*, the processes that it started or its SSH links, at a moment of its work on the router.

    Returns what was killed and when; "" where the run was through with the router.
    """
    target = chance.choice(["robot", "children", "ssh"])
    moment, after = chance.randint(1, longest), chance.uniform(0, 0.01)
    next((count for count in journal_writes(rig, run) if count >= moment), None)
    time.sleep(after)
    found = f"{target} at change {moment}" if rig.journals else ""
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


@pytest.mark.netns
def test_a_linux_kernel_that_has_a_configuration_of_its_own(tmp_path: Path) -> None:
    """COUNT kills that find the router changed."""
    with router_rig.kernel(tmp_path) as rig:
        rig.run(EARLIER)
        chance, before, seen = random.Random(2), rig.state(), Counter[str]()
        unkilled = rig.start()
        longest = max(journal_writes(rig, unkilled))
        assert longest and unkilled.wait(LIMIT) == 0, (rig.folder / "console.txt").read_text()
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
            seen.update(what.split()[:1])
            if seen.total() == COUNT:
                return
        pytest.fail(f"of {4 * COUNT} kills came in time only {seen}")
