"""A real kernel that loses real frames: its counters account for each of them."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from lineproof.core.rule import Ruling
from lineproof.project import Project
from lineproof.session.plan import Plan
from support import faults, robot_run
from support.kernel_router import run_in_router
from support.simulated_session import judged

pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(shutil.which("tc") is None, reason="this machine has no 'tc'"),
]


def test_a_kernels_queue_and_its_missing_route_own_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    plan = Plan.read(Project.find(robot_run.ROOT), "linux_router", "linux", "netns", faults.GOAL)
    with faults.opened(plan) as session:
        side = session.testbed.facts.sides[1]
        run = partial(run_in_router, session)
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
