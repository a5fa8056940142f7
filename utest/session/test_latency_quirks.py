"""Latency through both TRex clients' processes against the embedded server, whose histogram has TRex's quirks."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from lineproof.project import Project
from lineproof.session.plan import Plan
from lineproof.simulation.faults import parse_fault
from lineproof.sla.verdict import Ruling
from support import faults, robot_run
from support.simulated_session import judged

pytestmark = pytest.mark.slow
OFFICIAL = os.environ.get("TREX_HOME", "")
NEEDED = "needs the client that TRex ships: TREX_HOME has to name TRex's scripts folder"

SENTENCE = "64b 1-flow unidirectional latency {} at 100 kpps"
"""At this load the modelled router takes less than 10 µs: many probe frames are in the bucket 0."""


@pytest.fixture(
    params=["pypi", pytest.param(OFFICIAL, id="official", marks=pytest.mark.skipif(not OFFICIAL, reason=NEEDED))]
)
def plan(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    shutil.copytree(robot_run.ROOT / "variables", tmp_path / "variables")
    file = tmp_path / "variables" / "testbeds" / f"{faults.TESTBED}.yaml"
    file.write_text(f"{file.read_text(encoding='utf-8')}client: {request.param}\n", encoding="utf-8")
    return Plan.read(Project.find(tmp_path), faults.PLATFORM, faults.SOFTWARE, faults.TESTBED, faults.GOAL)


def test_fast_frames_pass_and_late_ones_do_not(plan: Plan) -> None:
    with faults.opened(plan) as session:
        passed = judged(session, SENTENCE.format("p99 ≤ 100 µs"))
        assert passed.ruling is Ruling.PASS, passed.message
        (count,) = passed.trials[-1].outcome.latency
        assert count.histogram.get(0, 0) > 0, "the frames are in the bucket in doubt"
        session.cause_fault(parse_fault("late frames", start=1, share=0.05, every=True))
        for statistic in ("p99 ≤ 100 µs", "max ≤ 100 µs", "mean ≤ 1 ms"):
            found = judged(session, SENTENCE.format(statistic))
            (count,) = found.trials[-1].outcome.latency
            assert count.unplaced > 0 and count.maximum == 1.5e6
            # of 5 % late ones; how many exactly depends on how the delays of each trial fell
            assert sum(count.histogram.values()) > 0.98 * count.received, "the bucket 0 of an earlier trial hides them"
            assert found.ruling is Ruling.INCONCLUSIVE, found.message
            assert "later than 1 s" in found.reason


def test_late_frames_fail_where_no_earlier_trial_hides_them(plan: Plan) -> None:
    with faults.opened(plan) as session:
        session.cause_fault(parse_fault("late frames", start=0, share=0.05))
        found = judged(session, SENTENCE.format("p99 ≤ 100 µs"))
        assert found.ruling is Ruling.FAIL, found.message
        assert "p99 at least 1e+06 µs" in found.message
