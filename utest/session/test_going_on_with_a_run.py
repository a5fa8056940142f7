"""Trials of an earlier run before those of a session: what they decide, and what must be looked at first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lineproof.core.rule import Ruling
from lineproof.core.trial import Trial
from lineproof.errors import SentenceError
from lineproof.evidence.resume import UNREAD
from lineproof.session.judging import Judge
from lineproof.session.session import Session
from support.simulated_session import opened

SENTENCE = "64b unidirectional ≥ 1 Mpps"


def earlier(session: Session, *, lost: int) -> list[Trial]:
    """Return two trials of a run that was interrupted; the first lost so many frames."""
    requirement = session.plan.requirement(SENTENCE)
    session.traffic.put_for(requirement)
    trials = Judge(session).judge(requirement).trials[:2]
    (row,) = trials[0].outcome.directions
    outcome = replace(trials[0].outcome, directions=(replace(row, forwarded=row.forwarded - lost),))
    of_run = (replace(trials[0], outcome=outcome), trials[1])
    return [replace(trial, run="a", problems=(*trial.problems, UNREAD)) for trial in of_run]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("copies", "ruling"), [(0, Ruling.PASS), (9, Ruling.INCONCLUSIVE), (None, Ruling.INCONCLUSIVE)]
)
def test_where_an_interrupted_run_lost_frames_its_probe_frames_show_copies(
    tmp_path: Path, copies: int | None, ruling: Ruling
) -> None:
    with opened(tmp_path) as session:
        before = earlier(session, lost=20)
        for place, trial in enumerate(before):
            probes = () if copies is None else tuple(replace(item, duplicates=copies) for item in trial.outcome.latency)
            before[place] = replace(trial, outcome=replace(trial.outcome, latency=probes))
        verdict = Judge(session).judge(session.plan.requirement(SENTENCE), earlier=before)
        assert verdict.ruling is ruling, verdict.message
        assert verdict.runs == {"a": 2} and all(trial.run == "" for trial in verdict.trials[2:])


@pytest.mark.slow
def test_a_soak_begins_anew_and_is_judged_in_one_run(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        judge, before = Judge(session), earlier(session, lost=0)
        soak = session.plan.requirement(f"{SENTENCE} for 20 s")
        assert judge.must_begin_again(soak, before) and not judge.must_begin_again(soak, [])
        assert not judge.must_begin_again(session.plan.requirement(SENTENCE), before)
        plan = replace(session.plan, goal=session.plan.goal.model_copy(update={"runs": 2}))
        with pytest.raises(SentenceError, match="judged in one run"):
            plan.requirement(f"{SENTENCE} for 20 s")
