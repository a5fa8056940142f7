"""Two sentences, a fault in the first: it is INCONCLUSIVE, and the second is judged as without the fault."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from lineproof.errors import TestbedError
from lineproof.generators.trex.driver import TrexGenerator, TrexSettings
from lineproof.project import Project
from lineproof.session.judging import Judge
from lineproof.session.plan import Plan
from lineproof.session.session import Session
from lineproof.simulation.faults import parse_fault
from lineproof.sla.verdict import Ruling, Verdict
from support import faults, robot_run

pytestmark = pytest.mark.slow
SENTENCE = "64b 1-flow unidirectional ≥ 1 Mpps"


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    plan = Plan.read(Project.find(robot_run.ROOT), faults.PLATFORM, faults.SOFTWARE, faults.TESTBED, faults.GOAL)
    with faults.opened(plan) as found:
        yield found


def judged(session: Session) -> Verdict:
    """As the keyword `The Router Owes` does it."""
    requirement, judge = session.plan.requirement(SENTENCE), Judge(session)
    try:
        session.traffic.put(requirement.profile, requirement.bidirectional)
        session.traffic.warm_up(requirement)
        return judge.judge(requirement)
    except TestbedError as error:
        return judge.inconclusive(requirement, str(error))


CASES = [
    ("ports stolen", {"start": 3, "at": 0.3, "for": 1}, "taken by 'somebody'|no longer ours"),
    ("lost reply", {"start": 3, "at": 0.3}, "no longer answers"),
    ("late reply", {"start": 3, "at": 0.3, "hold": 6}, "no longer answers"),
    ("server restart", {"start": 3, "at": 0.3}, "'server' ended"),
    ("server restart", {"start": 3, "at": 0.3, "for": 100}, "'server' ended"),
]


@pytest.mark.parametrize(("kind", "details", "cause"), CASES)
def test_the_sentence_after_a_lost_generator_is_judged(
    session: Session, kind: str, details: dict[str, float], cause: str
) -> None:
    session.cause_fault(parse_fault(kind, **details))
    first = judged(session)
    assert first.ruling is Ruling.INCONCLUSIVE and re.search(cause, first.reason), first.reason
    assert session.traffic.reconnection.note == ""
    second = judged(session)
    assert second.ruling is Ruling.PASS, second.reason
    assert session.traffic.reconnection.note.startswith("the generator was connected again before this sentence: ")
    assert re.search(cause, session.traffic.reconnection.note)
    third = judged(session)
    assert third.ruling is Ruling.PASS and session.traffic.reconnection.note == ""


def test_the_ports_of_a_killed_client_are_claimed_again(session: Session) -> None:
    assert judged(session).ruling is Ruling.PASS
    driver = session.generator.driver
    assert isinstance(driver, TrexGenerator)
    os.kill(driver._process.pid, signal.SIGKILL)
    first = judged(session)
    assert first.ruling is Ruling.INCONCLUSIVE and "the TRex client's process ended" in first.reason
    second = judged(session)
    assert second.ruling is Ruling.PASS, second.reason
    assert "the TRex client's process ended" in session.traffic.reconnection.note


def test_ports_held_by_another_user_stay_that_users_until_released(session: Session) -> None:
    session.cause_fault(parse_fault("ports stolen", start=3, at=0.3))
    for _ in range(3):
        verdict = judged(session)
        assert verdict.ruling is Ruling.INCONCLUSIVE and "taken by 'somebody'" in verdict.reason, verdict.reason
    assert "could not be connected again" in verdict.reason
    session.cause_fault(parse_fault("ports stolen", start=0, **{"for": 0.01}))
    assert judged(session).ruling is Ruling.PASS


def test_ports_held_by_another_session_of_the_same_user_are_not_taken(session: Session) -> None:
    access = session.testbed.facts.generator
    driver = session.generator.driver
    assert isinstance(driver, TrexGenerator)
    own = driver.settings
    other = TrexSettings(access.host, access.sync_port, access.async_port, force=True, username=own.username)
    with TrexGenerator(other):
        for words in ("", "owned by another session of"):
            verdict = judged(session)
            assert verdict.ruling is Ruling.INCONCLUSIVE and words in verdict.reason, verdict.reason
    assert judged(session).ruling is Ruling.PASS


def test_a_server_that_stays_down_is_reported_by_every_sentence(session: Session) -> None:
    session.cause_fault(parse_fault("server end", start=3, at=0.3))
    for _ in range(2):
        verdict = judged(session)
        assert verdict.ruling is Ruling.INCONCLUSIVE and "'server' ended" in verdict.reason, verdict.reason
