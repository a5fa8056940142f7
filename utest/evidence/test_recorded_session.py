"""A recorded sentence in place of a testbed: what is judged from the records is what was judged live."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.core.goal import read_goal
from lineproof.core.sentence import parse
from lineproof.core.telemetry import Telemetry
from lineproof.core.trial import Fault, Load, Outcome, Tolerance, Trial
from lineproof.core.verdict import Tally, Verdict
from lineproof.errors import TestbedError
from lineproof.evidence.readings import ReadingRecord
from lineproof.evidence.recorded_session import RecordedSentence, RecordMismatch
from lineproof.evidence.records import TrialRecord, dumps
from lineproof.methods.saturate import saturate
from lineproof.methods.sequential import TrialConditions
from lineproof.methods.verify import verify
from lineproof.session.router_watch import Reading, RouterRestarted
from lineproof.traffic.catalogue import Catalogue
from support.evidence_builders import LINK, RUN, requirement_record, trial_record
from support.outcomes import outcome
from support.paths import VARIABLES

QUICK = read_goal(VARIABLES / "goals", "quick")
CATALOGUE = Catalogue.read(VARIABLES / "profiles")
LOADED = Load(5e6)

SHARES = st.sampled_from((0.0, 0.0, 0.0, 1e-4, 0.01, 0.2))
FAULTS = st.sampled_from(((), (), (), (Fault.LINK_DOWN,), (Fault.UNDER_OFFERED,), (Fault.CLOCK, Fault.GENERATOR)))
TRIALS = st.lists(st.tuples(SHARES, st.sampled_from((1.0, 1.0, 0.9)), FAULTS), min_size=60, max_size=60)


def recorded(trials: list[tuple[Trial, Tally]]) -> RecordedSentence:
    """*trials* as they are read back from their records."""
    rows = []
    for trial, tally in trials:
        evidence = tally.last.value if tally.last else ""
        whole = replace(trial_record(), trial=trial, evidence=evidence)
        rows.append(TrialRecord.from_json(json.loads(dumps(whole.to_json()))))
    return RecordedSentence(requirement_record(), rows, ())


@settings(max_examples=60)
@given(TRIALS, st.sampled_from(("64b 1-flow unidirectional ≥ 5 Mpps", "64b unidirectional forwards ≥ 5 Mpps")))
def test_judged_from_the_records_is_judged_live(shares, sentence):
    requirement, method = parse(sentence, CATALOGUE), saturate if "forwards" in sentence else verify
    rows = iter(shares)

    def live(load: Load, duration: float) -> Outcome:
        loss, sent, faults = next(rows)
        return outcome(load.pps, duration, loss, sent, faults)

    kept: list[tuple[Trial, Tally]] = []
    judged = method(requirement, LOADED, QUICK, live, LINK, conditions(lambda *found: kept.append(found)))
    again = recorded(kept)
    found: Verdict = method(requirement, LOADED, QUICK, again.measure, LINK, conditions(again.on_trial))
    assert found == judged
    assert again.differences == [] and again.asked == again.judged == len(kept)


def conditions(on_trial) -> TrialConditions:
    return TrialConditions(Tolerance(), 1.0, on_trial)


def test_one_more_trial_than_recorded_is_a_mismatch_and_a_breakdown_is_repeated():
    row = trial_record()
    load, duration = row.trial.outcome.load, row.trial.outcome.duration
    sentence = RecordedSentence(requirement_record(), [row], ())
    assert sentence.measure(load, duration) == row.trial.outcome
    with pytest.raises(RecordMismatch, match="more than the 1 recorded trials"):
        sentence.measure(load, duration)
    broken = RecordedSentence(requirement_record(breakdown="the server no longer answers"), [], ())
    with pytest.raises(TestbedError, match=r"^the server no longer answers$"):
        broken.measure(load, duration)


@pytest.mark.parametrize(("load", "duration"), [(2e6, 1.0), (1e6, 2.0)])
def test_another_load_or_duration_is_a_mismatch(load, duration):
    sentence = RecordedSentence(requirement_record(), [trial_record()], ())
    with pytest.raises(RecordMismatch, match="and the recorded one took 1 s at 1 Mpps"):
        sentence.measure(Load(load), duration)


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
