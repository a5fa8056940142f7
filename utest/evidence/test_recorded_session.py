"""A recorded sentence in place of a testbed: what is judged from the records is what was judged live."""

from __future__ import annotations

from dataclasses import replace

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
from lineproof.evidence.records import ReadingRecord, TrialRecord, dumps
from lineproof.evidence.rejudging import RecordedSentence, RecordMismatch
from lineproof.session.router_watch import Reading, RouterRestarted
from support.evidence_builders import LINK, RUN, requirement_record, trial_record
from support.outcomes import outcome
from support.paths import VARIABLES

QUICK = read_goal(VARIABLES / "goals", "quick")
CATALOGUE = Catalogue.read(VARIABLES / "profiles")
LOADED = Load(5e6)

SHARES = st.sampled_from((0.0, 0.0, 0.0, 1e-4, 0.01, 0.2))
FAULTS = st.sampled_from(((), (), (), (Fault.LINK_DOWN,), (Fault.UNDER_OFFERED,), (Fault.CLOCK, Fault.GENERATOR)))
TRIALS = st.lists(st.tuples(SHARES, st.sampled_from((1.0, 1.0, 0.9)), FAULTS), min_size=60, max_size=60)


def recorded(trials: list[tuple[Trial, Standing]]) -> RecordedSentence:
    """*trials* as they are read back from their records."""
    rows = []
    for trial, standing in trials:
        whole = replace(trial_record(), trial=trial, evidence=standing.last)
        rows.append(TrialRecord.from_json(dumps(whole.to_json()).encode()))
    return RecordedSentence(requirement_record(), rows, ())


@settings(max_examples=60)
@given(TRIALS, st.sampled_from(("64b 1-flow unidirectional ≥ 5 Mpps", "64b unidirectional forwards ≥ 5 Mpps")))
def test_judged_from_the_records_is_judged_live(shares, sentence):
    promise, rows = parse(sentence, CATALOGUE).promise(QUICK, LOADED, LINK), iter(shares)

    def live(load: Load, duration: float) -> Outcome:
        loss, sent, faults = next(rows)
        return outcome(load.pps, duration, loss, sent, faults)

    kept: list[tuple[Trial, Standing]] = []
    judged = decide(promise, live, conditions(lambda *found: kept.append(found)), LINK / 672)
    again = recorded(kept)
    # of another plan, which asks for other loads and times
    found = decide(promise, lambda load, seconds: again.outcome(promise), conditions(again.on_trial), LOADED.pps)
    assert (found.ruling, found.trials) == (judged.ruling, judged.trials)
    assert again.differences == [] and again.asked == again.judged == len(kept)


def conditions(on_trial) -> TrialConditions:
    return TrialConditions(Tolerance(), 1.0, on_trial=on_trial)


def promise_at(sentence="64b unidirectional ≥ 1 Mpps", goal=QUICK):
    requirement = parse(sentence, CATALOGUE)
    return requirement.promise(goal, requirement.threshold_load(LINK), LINK)


def test_one_more_trial_than_recorded_is_a_mismatch_and_a_breakdown_is_repeated():
    row = trial_record()
    sentence = RecordedSentence(requirement_record(), [row], ())
    assert sentence.outcome(promise_at()) == row.trial.outcome
    with pytest.raises(RecordMismatch, match="more than the 1 recorded trials"):
        sentence.outcome(promise_at())
    broken = RecordedSentence(requirement_record(breakdown="the server no longer answers"), [], ())
    with pytest.raises(TestbedError, match=r"^the server no longer answers$"):
        broken.outcome(promise_at())


@pytest.mark.parametrize(("pps", "seconds"), [(2e6, 1.0), (0.98e6, 1.0), (1e6, 0.9)])
def test_trials_of_less_or_much_more_than_is_asked_now_are_a_mismatch(pps, seconds):
    sentence = RecordedSentence(requirement_record(), [trial_record(pps=pps, duration=seconds)], ())
    with pytest.raises(RecordMismatch, match=f"and the recorded one took {seconds:g} s at"):
        sentence.outcome(promise_at())


def test_a_longer_trial_and_a_little_more_load_prove_as_much():
    sentence = RecordedSentence(requirement_record(), [trial_record(pps=1.008e6, duration=3.0)], ())
    assert sentence.outcome(promise_at()).duration == 3.0


def test_readings_come_in_their_order_and_fail_as_they_did():
    rows = [
        ReadingRecord(RUN, True, 1, 0, Reading(Telemetry(1.0, {}))),
        ReadingRecord(RUN, True, 1, 0, Reading(None, "the link dropped")),
        ReadingRecord(RUN, True, 1, 1, Reading(None, "the router restarted", restarted=True)),
        ReadingRecord(RUN, True, 1, 9, Reading(Telemetry(9.0, {}))),
    ]
    sentence = RecordedSentence(requirement_record(), [trial_record()], rows)
    assert sentence.reading(last_will_do=False).uptime == 1.0
    with pytest.raises(TestbedError, match=r"^the link dropped$"):
        sentence.reading(last_will_do=False)
    with pytest.raises(RecordMismatch, match="after 0 trials"):
        sentence.reading(last_will_do=False)
    sentence.judged = 1
    with pytest.raises(RouterRestarted):
        sentence.reading(last_will_do=False)
    # the verdict is reached sooner than it was: the reading after the last trial is all there is
    assert sentence.reading(last_will_do=True).uptime == 9.0
