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
from lineproof.simulation.faults import InjectedFault, parse_fault
from support.simulated_session import judged, opened

pytestmark = pytest.mark.slow


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with opened(tmp_path) as found:
        yield found


def problems(verdict: Verdict, fault: Fault) -> list[Problem]:
    """Return the problems of that kind in all trials."""
    return [problem for trial in verdict.trials for problem in trial.problems if problem.fault is fault]


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


LOSS, TWICE = parse_fault("one-way loss", start=1, share=0.2, port=0), {"start": 1, "share": 0.01, "every": True}


@pytest.mark.parametrize(
    ("sentence", "faults"),
    [
        # of 5.1 Mpps the core loses 1.5 %, which 1 % of duplicates would make 0.5 %
        ("64b 1-flow unidirectional loses ≤ 1% at 5.1 Mpps", [parse_fault("duplicated frames", **TWICE)]),
        # 800 000 of 1 000 000 frames come, and a quarter of them twice
        ("64b 1-flow unidirectional ≥ 1 Mpps", [LOSS, parse_fault("duplicated frames", start=1, share=0.25)]),
        # no router that answers says that they are fewer
        (
            "64b 1-flow unidirectional forwards ≥ 5.05 Mpps",
            [parse_fault("duplicated frames", **TWICE), parse_fault("ssh freeze", start=1, every=True)],
        ),
    ],
)
def test_frames_that_come_twice_do_not_hide_lost_ones(
    session: Session, sentence: str, faults: list[InjectedFault]
) -> None:
    for fault in faults:
        session.cause_fault(fault)
    verdict = judged(session, sentence)
    assert verdict.ruling is Ruling.INCONCLUSIVE, verdict.message
    assert problems(verdict, Fault.COPIES)


def test_a_trial_of_a_few_frames_is_refused_before_traffic(session: Session) -> None:
    for sentence in ("64b unidirectional ≥ 0.01 pps", "64b unidirectional ≥ 1 pps"):
        with pytest.raises(SentenceError, match="which prove nothing; expected"):
            session.plan.requirement(sentence)
    assert session.plan.requirement("64b unidirectional ≥ 100 pps").threshold.number == 100
