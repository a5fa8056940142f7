"""A recorded sentence in place of a testbed: what is judged from the records is what was judged live."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.core.deciding import Standing, TrialConditions, decide
from lineproof.core.goal import read_goal
from lineproof.core.sentence import parse
from lineproof.core.telemetry import Telemetry
from lineproof.core.traffic.catalogue import Catalogue
from lineproof.core.trial import Fault, Load, Outcome, Tolerance, Trial
from lineproof.errors import TestbedError
from lineproof.evidence.records import ReadingRecord, TrialRecord
from lineproof.evidence.rejudge import RecordedBench, RecordMismatch
from lineproof.evidence.run import RecordedRun
from lineproof.project import Project
from lineproof.session.bench import AFTER, BEFORE, SET_UP, EndedTrial, Reading, nobody
from lineproof.session.plan import Plan
from lineproof.session.router_watch import RouterRestarted
from support.evidence_builders import ENVIRONMENT, LINK, RUN, requirement_record, trial_record
from support.made_testbeds import fault, router
from support.paths import ROOT, VARIABLES

QUICK = read_goal(VARIABLES / "goals", "quick")
CATALOGUE = Catalogue.read(VARIABLES / "profiles")
LOADED = Load(5e6)
PLAN = Plan.read(Project(ROOT), "netgate6100", "vpp", "simulated", "quick")

SHARES = st.sampled_from((0.0, 0.0, 0.0, 1e-4, 0.01, 0.2))
FAULTS = st.sampled_from(((), (), (), (Fault.LINK_DOWN,), (Fault.UNDER_OFFERED,), (Fault.CLOCK, Fault.GENERATOR)))
TRIALS = st.lists(st.tuples(SHARES, st.sampled_from((1.0, 1.0, 0.9)), FAULTS), min_size=60, max_size=60)


def bench(*trials: TrialRecord, readings: Sequence[Reading] = (), **changes: Any) -> RecordedBench:
    """A bench that knows nothing but the records of a sentence."""
    record = requirement_record(**changes)
    named = [replace(trial, requirement=record.number) for trial in trials]
    read = [ReadingRecord(RUN, True, record.number, reading) for reading in readings]
    run = RecordedRun(Path("run"), tuple(named), (record,), ENVIRONMENT, readings=tuple(read))
    return RecordedBench(run, PLAN, record)


def recorded(trials: list[tuple[Trial, Standing]]) -> RecordedBench:
    """*trials* as they are read back from their records."""
    rows = []
    for trial, standing in trials:
        whole = replace(trial_record(), trial=trial, evidence=standing.last)
        rows.append(TrialRecord.from_json(json.dumps(whole.to_json()).encode()))
    return bench(*rows)


@settings(max_examples=60)
@given(TRIALS, st.sampled_from(("64b 1-flow unidirectional ≥ 5 Mpps", "64b unidirectional forwards ≥ 5 Mpps")))
def test_judged_from_the_records_is_judged_live(shares, sentence):
    promise, rows = parse(sentence, CATALOGUE).promise(QUICK, LOADED, LINK), iter(shares)

    def live(load: Load, duration: float) -> Outcome:
        loss, sent, faults = next(rows)
        return router(loss, sent=sent, problems=tuple(map(fault, faults)))(load, duration)

    kept: list[tuple[Trial, Standing]] = []
    judged = decide(promise, live, conditions(lambda *found: kept.append(found)), LINK / 672)
    again = recorded(kept)
    # of another plan, which asks for other loads and times
    found = decide(
        promise,
        again.measure_of(promise, nobody),
        conditions(lambda *found: again.compare(EndedTrial(*found))),
        LOADED.pps,
    )
    assert (found.ruling, found.trials) == (judged.ruling, judged.trials)
    assert again.differences == [] and again.judged == len(kept)


def conditions(on_trial) -> TrialConditions:
    return TrialConditions(Tolerance(), 1.0, on_trial=on_trial)


def next_outcome(bench: RecordedBench) -> Outcome:
    """Return what a trial of 1 s at 1 Mpps comes to."""
    requirement = parse("64b unidirectional ≥ 1 Mpps", CATALOGUE)
    promise = requirement.promise(QUICK, requirement.threshold_load(LINK), LINK)
    return bench.measure_of(promise, nobody)(LOADED, 1.0)


def test_one_more_trial_than_recorded_is_a_mismatch_and_a_breakdown_is_repeated():
    row = trial_record()
    sentence = bench(row)
    assert next_outcome(sentence) == row.trial.outcome
    with pytest.raises(RecordMismatch, match="more than the 1 recorded trials"):
        next_outcome(sentence)
    with pytest.raises(TestbedError, match=r"^the server no longer answers$"):
        next_outcome(bench(breakdown="the server no longer answers"))


@pytest.mark.parametrize(("pps", "seconds"), [(2e6, 1.0), (0.98e6, 1.0), (1e6, 0.9)])
def test_trials_of_less_or_much_more_than_is_asked_now_are_a_mismatch(pps, seconds):
    with pytest.raises(RecordMismatch, match=f"and the recorded one took {seconds:g} s at"):
        next_outcome(bench(trial_record(pps=pps, duration=seconds)))


def test_a_longer_trial_and_a_little_more_load_prove_as_much():
    assert next_outcome(bench(trial_record(pps=1.008e6, duration=3.0))).duration == 3.0


def test_readings_are_those_of_their_moment_and_fail_as_they_did():
    readings = [
        Reading(BEFORE, Telemetry(1.0, {})),
        Reading("under load", Telemetry(2.0, {})),
        Reading("trial 1", None, "the link dropped"),
        Reading("trial 3", None, "the router restarted", restarted=True),
        Reading(AFTER, Telemetry(9.0, {})),
    ]
    sentence = bench(readings=readings)
    with pytest.raises(TestbedError, match=r"^the link dropped$"):
        sentence.read("trial 1")
    assert sentence.read(BEFORE).uptime == 1.0
    with pytest.raises(TestbedError, match="no reading of the router was recorded: trial 2"):
        sentence.read("trial 2")
    with pytest.raises(RouterRestarted):
        sentence.read("trial 3")
    assert sentence.read(AFTER).uptime == 9.0
    # it is recorded only where it shows a change
    assert sentence.read(SET_UP) == Telemetry(None, {})
    with pytest.raises(TestbedError, match="no reading of the router was recorded: after"):
        sentence.read(AFTER)
    with pytest.raises(RecordMismatch, match="no reading of the router was recorded: before"):
        bench().read(BEFORE)
