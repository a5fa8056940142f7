"""Traces of a fault: a failure without evidence from the router, and a router that lost its configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lineproof.core.rule import Ruling
from lineproof.core.trial import Fault, Problem
from lineproof.core.verdict import Verdict
from lineproof.errors import SentenceError
from lineproof.session.session import Session
from lineproof.simulation.faults import parse_fault
from support.simulated_session import judged, opened

pytestmark = pytest.mark.slow


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with opened(tmp_path) as found:
        yield found


def problems(verdict: Verdict, fault: Fault) -> list[Problem]:
    """Return the problems of that kind in all trials."""
    return [problem for trial in verdict.trials for problem in trial.problems if problem.fault is fault]


def test_a_fail_needs_a_router_that_still_answers(session: Session) -> None:
    assert judged(session, "64b 1-flow unidirectional ≥ 14 Mpps").ruling is Ruling.FAIL
    # a reading that failed is tried once more, after a login that opens a shell too; one trial decides
    for _ in range(3):
        session.cause_fault(parse_fault("ssh freeze"))
    verdict = judged(session, "64b 1-flow unidirectional ≥ 14 Mpps")
    assert verdict.ruling is Ruling.INCONCLUSIVE and problems(verdict, Fault.ROUTER)


def test_a_router_that_restarted_is_not_judged_until_it_is_configured_again(session: Session) -> None:
    session.cause_fault(parse_fault("router reboot", start=4, at=0.5, **{"for": 0.01}))
    for _ in range(2):
        verdict = judged(session, "64b 1-flow unidirectional ≥ 1 Mpps")
        assert verdict.ruling is Ruling.INCONCLUSIVE and "the router restarted" in verdict.message
    session.router.configure()
    assert judged(session, "64b 1-flow unidirectional ≥ 1 Mpps").ruling is Ruling.PASS


def test_a_restart_between_two_trials_is_not_forgotten(session: Session) -> None:
    """A link was down as well, so that the router is configured again before the next trial."""
    session.cause_fault(parse_fault("router reboot", start=3, at=0.5, **{"for": 0.01}))
    verdict = judged(session, "64b 1-flow unidirectional ≥ 1 Mpps")
    assert verdict.ruling is Ruling.INCONCLUSIVE and problems(verdict, Fault.ROUTER)
    assert judged(session, "64b 1-flow unidirectional ≥ 1 Mpps").ruling is Ruling.PASS


def test_frames_that_come_twice_do_not_hide_lost_ones(session: Session) -> None:
    """The core carries 5.024 Mpps: of 5.1 Mpps 1.5 % are lost, which 1 % of duplicates would make 0.5 %."""
    sentence = "64b 1-flow unidirectional loses ≤ 1% at 5.1 Mpps"
    assert judged(session, sentence).ruling is Ruling.FAIL
    session.cause_fault(parse_fault("duplicated frames", start=1, share=0.01, every=True))
    verdict = judged(session, sentence)
    assert verdict.ruling is Ruling.INCONCLUSIVE and problems(verdict, Fault.COPIES)


def test_frames_that_come_twice_do_not_hide_exactly_as_many_lost_ones(session: Session) -> None:
    """800 000 of 1 000 000 frames come, and a quarter of them twice: the router counts that, probe frames show it."""
    session.cause_fault(parse_fault("one-way loss", start=1, share=0.2, port=0))
    session.cause_fault(parse_fault("duplicated frames", start=1, share=0.25))
    verdict = judged(session, "64b 1-flow unidirectional ≥ 1 Mpps")
    assert not any(trial.lost for trial in verdict.trials)
    assert verdict.ruling is Ruling.INCONCLUSIVE, verdict.message
    assert max(problem.frames or 0 for problem in problems(verdict, Fault.COPIES)) == pytest.approx(800_000, abs=9)


def test_a_moments_pause_does_not_excuse_the_loss_of_half_the_frames(session: Session) -> None:
    """Three pauses of at most 3.4 ms, in which 10 066 of 1 000 000 frames come."""
    session.cause_fault(
        parse_fault("pause frames", start=1, at=0.1, port=1, of="generator", every=True, **{"for": 0.03})
    )
    session.cause_fault(parse_fault("one-way loss", start=1, share=0.5, port=0))
    verdict = judged(session, "64b 1-flow unidirectional ≥ 1 Mpps")
    assert problems(verdict, Fault.PAUSING)
    assert verdict.ruling is Ruling.FAIL, verdict.message


def test_a_rate_needs_proof_that_no_frames_are_duplicates(session: Session) -> None:
    session.cause_fault(parse_fault("duplicated frames", start=1, share=0.01, every=True))
    session.cause_fault(parse_fault("ssh freeze", start=1, every=True))
    verdict = judged(session, "64b 1-flow unidirectional forwards ≥ 5.05 Mpps")
    assert verdict.ruling is Ruling.INCONCLUSIVE and problems(verdict, Fault.COPIES)


def test_a_trial_of_a_few_frames_is_refused_before_traffic(session: Session) -> None:
    for sentence in ("64b unidirectional ≥ 0.01 pps", "64b unidirectional ≥ 1 pps"):
        with pytest.raises(SentenceError, match="which prove nothing; expected"):
            session.plan.requirement(sentence)
    assert session.plan.requirement("64b unidirectional ≥ 100 pps").threshold.number == 100
