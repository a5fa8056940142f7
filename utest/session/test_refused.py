"""Refusals before any start or traffic, beside those of the golden messages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lineproof.core.deciding import TrialConditions, decide
from lineproof.core.rule import Ruling
from lineproof.core.trial import Trial
from lineproof.errors import ConfigError, SentenceError
from lineproof.evidence.resume import UNREAD
from lineproof.project import Project
from lineproof.session.judging import judge
from lineproof.session.plan import PROBE_SHARE, Plan, check_simulable
from lineproof.session.session import Session
from support.made_testbeds import LINE_PPS, down, promised, router, then
from support.paths import ROOT
from support.simulated_session import opened


def plan(goal: str) -> Plan:
    return Plan.read(Project(ROOT), "netgate6100", "vpp", "simulated", goal)


@pytest.mark.parametrize(("goal", "fewest"), [("standard", 8), ("quick", 4), ("rfc2544", 60)])
def test_a_soak_is_as_long_as_a_pass_at_least(goal: str, fewest: int) -> None:
    assert plan(goal).requirement(f"64b unidirectional ≥ 1 Mpps for {fewest} s").duration_sum == fewest


@pytest.mark.parametrize("goal", ["standard", "quick", "rfc2544"])
@pytest.mark.parametrize("words", ["latency p99.9 ≤ 100 µs", "pdv p99 ≤ 100 µs", "reorders ≤ 0.1%"])
def test_a_percentile_needs_room_for_its_probe_frames(goal: str, words: str) -> None:
    found = plan(goal)
    needed = found.probes_needed(found.measurable(f"64b unidirectional {words} at 1 kpps"))
    least = needed / PROBE_SHARE / found.goal.final_trial_duration
    found.requirement(f"64b unidirectional {words} at {1.01 * least:.0f} pps")
    with pytest.raises(SentenceError, match="probe frames that goal"):
        found.requirement(f"64b unidirectional {words} at {0.99 * least:.0f} pps")


def test_probe_frames_of_more_groups_than_trex_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "imix bidirectional latency p99 ≤ 100 µs at 1 Mpps each way"
    monkeypatch.setattr("lineproof.session.plan.MOST_PROBE_GROUPS", 6)
    plan("standard").requirement(words)
    monkeypatch.setattr("lineproof.session.plan.MOST_PROBE_GROUPS", 5)
    with pytest.raises(SentenceError, match="of 3 sizes from 2 ports are 6 packet groups; expected at most 5"):
        plan("standard").requirement(words)


@pytest.mark.parametrize(
    ("model", "lack"), [({}, "no 'model:'"), ({"software": {"vpp": {}}}, "no 'linux' in 'model.software'")]
)
def test_a_software_without_a_model_cannot_be_simulated(model: dict[str, Any], lack: str) -> None:
    box = plan("quick").platform.model_copy(update={"model": model})
    with pytest.raises(ConfigError, match=f"netgate6100.yaml: has {lack}, so testbed 'simulated' cannot"):
        check_simulable(Project(ROOT), box, "linux", "simulated")


# -- a soak that can no longer pass, and has not failed: it ends, or goes on where the run asks for all of it


@pytest.mark.parametrize(("whole", "fewest", "most"), [(False, 1, 10), (True, 120, 120)])
def test_a_soak_that_can_no_longer_pass_goes_on_only_where_the_whole_is_asked_for(
    whole: bool, fewest: int, most: int
) -> None:
    testbed = then((1, router(0.1, problems=(down(),))), (1, router()))
    promise = promised("64b unidirectional ≥ 1 Mpps for 2 min", "quick")
    decision = decide(promise, testbed, TrialConditions(whole_soak=whole), LINE_PPS)
    assert decision.ruling in (None, Ruling.INCONCLUSIVE) and fewest <= len(decision.trials) <= most


# -- trials of an earlier run before those of a session: what they decide, and what must be looked at first


SENTENCE = "64b unidirectional ≥ 1 Mpps"


def earlier(session: Session, *, lost: int) -> list[Trial]:
    """Return two trials of a run that was interrupted; the first lost so many frames."""
    trials = judge(session, session.plan.requirement(SENTENCE)).trials[:2]
    (row,) = trials[0].outcome.directions
    outcome = replace(trials[0].outcome, directions=(replace(row, forwarded=row.forwarded - lost),))
    of_run = (replace(trials[0], outcome=outcome), trials[1])
    return [replace(trial, run="a", problems=(*trial.problems, UNREAD)) for trial in of_run]


@pytest.mark.slow
@pytest.mark.parametrize(("probed", "ruling"), [(True, Ruling.PASS), (False, Ruling.INCONCLUSIVE)])
def test_where_an_interrupted_run_lost_frames_it_needs_probe_frames(
    tmp_path: Path, probed: bool, ruling: Ruling
) -> None:
    with opened(tmp_path) as session:
        before = earlier(session, lost=20)
        if not probed:
            before = [replace(trial, outcome=replace(trial.outcome, latency=())) for trial in before]
        verdict = judge(session, session.plan.requirement(SENTENCE), earlier=before)
        assert verdict.ruling is ruling, verdict.message
        assert verdict.runs == {"a": 2} and all(trial.run == "" for trial in verdict.trials[2:])


def test_a_soak_is_judged_in_one_run() -> None:
    of_two = plan("quick")
    of_two = replace(of_two, goal=of_two.goal.model_copy(update={"runs": 2}))
    with pytest.raises(SentenceError, match="judged in one run"):
        of_two.requirement(f"{SENTENCE} for 20 s")
