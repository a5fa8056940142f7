"""A link that is down for a moment takes a Linux router's routes with it: that is the testbed's, and it is fixed."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from linerate.session.judging import Judge
from linerate.session.session import Session
from linerate.sla.verdict import Ruling
from linerate.testbed import namespaces
from support.kernel_router import configured

REASON = namespaces.available()

pytestmark = [pytest.mark.netns, pytest.mark.skipif(REASON is not None, reason=str(REASON))]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with configured(tmp_path) as found:
        yield found  # afterwards, that a route went with the link is no failure


def test_the_routes_that_went_with_a_link_are_put_back(session: Session) -> None:
    facts = session.testbed.facts
    assert facts.runtime is not None
    router = f"lr-{facts.runtime.name}-dut"

    def link(state: str) -> None:
        name = facts.sides[1].interface
        subprocess.run(["ip", "-n", router, "link", "set", "dev", name, state], check=True, timeout=10)

    def flap() -> None:
        link("down")
        time.sleep(0.3)
        link("up")

    requirement = session.plan.requirement("64b unidirectional ≥ 5 kpps")
    session.traffic.put_for(requirement)
    flapping = threading.Timer(1.5, flap)
    flapping.start()
    verdict = Judge(session).judge(requirement)
    flapping.join()
    spoilt = [trial for trial in verdict.trials if not trial.valid]
    assert any("a link was down" in str(problem) for trial in spoilt for problem in trial.problems)
    assert verdict.outcome is Ruling.PASS, verdict.message
    routes = subprocess.run(
        ["ip", "-n", router, "route"], capture_output=True, text=True, check=True, timeout=10
    ).stdout
    assert "48.0.0.0/8" in routes
