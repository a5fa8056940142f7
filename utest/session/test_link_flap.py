"""A link that is down for a moment loses a Linux router's routes: the testbed's fault, and they are restored."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from lineproof.session.judging import Judge
from lineproof.session.session import Session
from lineproof.sla.verdict import Ruling, Verdict
from support.kernel_router import configured, run_in_router
from support.patience import undisturbed

pytestmark = pytest.mark.netns


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with configured(tmp_path) as found:
        yield found  # afterwards, that a route went with the link is no failure


def test_routes_lost_with_a_link_are_restored(session: Session) -> None:
    run = partial(run_in_router, session)
    name = session.testbed.facts.sides[1].interface
    forwarded = Path("/sys/class/net") / name / "statistics" / "tx_packets"

    def flap() -> None:
        # in the first trial, however long the router takes to be read before it
        until = time.monotonic() + 60
        while int(run("cat", str(forwarded))) < before + 500 and time.monotonic() < until:
            time.sleep(0.02)
        run("ip", "link", "set", "dev", name, "down")
        time.sleep(0.6)  # links are looked at every 0.5 s of a trial
        run("ip", "link", "set", "dev", name, "up")

    requirement = session.plan.requirement("64b unidirectional ≥ 5 kpps")
    before = 0

    def attempt() -> Verdict:
        nonlocal before
        session.traffic.put_for(requirement)
        before = int(run("cat", str(forwarded)))
        flapping = threading.Thread(target=flap)
        flapping.start()
        verdict = Judge(session).judge(requirement)
        flapping.join()
        return verdict

    def lacks(verdict: Verdict) -> str:
        """A look at the links while one was down, or the time to send."""
        problems = [str(problem) for trial in verdict.trials for problem in trial.problems]
        seen = any("a link was down" in problem for problem in problems)
        return "" if seen and verdict.ruling is not Ruling.INCONCLUSIVE else f"{verdict.message} {problems}"

    verdict = undisturbed(attempt, lacks, tries=6)
    invalid = [trial for trial in verdict.trials if not trial.valid]
    assert any("a link was down" in str(problem) for trial in invalid for problem in trial.problems)
    assert verdict.ruling is Ruling.PASS, verdict.message
    assert "48.0.0.0/8" in run("ip", "route")
