"""Two sentences, a fault in the first: it is INCONCLUSIVE, and the second is judged as without the fault."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from lineproof.core.rule import Ruling
from lineproof.generators.trex.driver import TrexGenerator
from lineproof.session.session import Session
from lineproof.simulation import parse_fault
from support.simulated_session import opened, owed

pytestmark = pytest.mark.slow
SENTENCE = "64b 1-flow unidirectional ≥ 1 Mpps"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with opened(tmp_path) as found:
        yield found


RESTARTED = "was started again meanwhile|no longer answers"
"""By whether a request was on its way when the server ended."""

CASES = [
    ("ports stolen", {"start": 3, "at": 0.3, "for": 1}, "taken by 'somebody'|no longer ours|acquire the port"),
    ("lost reply", {"start": 3, "at": 0.3}, "no longer answers"),
    ("late reply", {"start": 3, "at": 0.3, "hold": 6}, "no longer answers"),
    ("server restart", {"start": 3, "at": 0.3}, RESTARTED),
    ("server restart", {"start": 3, "at": 0.3, "for": 100}, RESTARTED),
]


@pytest.mark.parametrize(("kind", "details", "cause"), CASES)
def test_the_sentence_after_a_lost_generator_is_judged(
    session: Session, kind: str, details: dict[str, float], cause: str
) -> None:
    session.cause_fault(parse_fault(kind, **details))
    first = owed(session, SENTENCE)
    assert first.ruling is Ruling.INCONCLUSIVE and re.search(cause, str(first.reason)), first.message
    assert session.traffic.reconnected == ""
    second = owed(session, SENTENCE)
    assert second.ruling is Ruling.PASS, second.message
    assert session.traffic.reconnected.startswith("the generator was connected again before this sentence: ")
    assert re.search(cause, session.traffic.reconnected)
    third = owed(session, SENTENCE)
    assert third.ruling is Ruling.PASS and session.traffic.reconnected == ""


def test_the_ports_of_a_killed_client_are_claimed_again(session: Session) -> None:
    assert owed(session, SENTENCE).ruling is Ruling.PASS
    driver = session.generator.driver
    assert isinstance(driver, TrexGenerator)
    os.kill(driver._process.pid, signal.SIGKILL)
    first = owed(session, SENTENCE)
    assert first.ruling is Ruling.INCONCLUSIVE and "the TRex client's process ended" in str(first.reason)
    second = owed(session, SENTENCE)
    assert second.ruling is Ruling.PASS, second.message
    assert "the TRex client's process ended" in session.traffic.reconnected


def test_ports_held_by_another_user_stay_that_users_until_released(session: Session) -> None:
    session.cause_fault(parse_fault("ports stolen", start=3, at=0.3))
    for _ in range(3):
        verdict = owed(session, SENTENCE)
        assert verdict.ruling is Ruling.INCONCLUSIVE and "by 'somebody'" in str(verdict.reason), verdict.message
    assert "could not be connected again" in str(verdict.reason)
    session.cause_fault(parse_fault("ports stolen", start=0, **{"for": 0.01}))
    assert owed(session, SENTENCE).ruling is Ruling.PASS


def test_ports_held_by_another_session_of_the_same_user_are_not_taken(session: Session) -> None:
    driver = session.generator.driver
    assert isinstance(driver, TrexGenerator)
    own = driver.settings
    with closing(TrexGenerator(replace(own, force=True))):
        for words in ("", "owned by another session of"):
            verdict = owed(session, SENTENCE)
            assert verdict.ruling is Ruling.INCONCLUSIVE and words in str(verdict.reason), verdict.message
    assert owed(session, SENTENCE).ruling is Ruling.PASS
