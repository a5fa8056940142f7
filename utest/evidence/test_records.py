"""Records can be read back, fit their published schemas, and report what is wrong with bad data."""

import json
import math

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linerate.counts.trial import DirectionCount, Fault, Load, Outcome, Problem, Trial
from linerate.evidence import records
from linerate.evidence.records import EnvironmentRecord, RateFigures, RequirementRecord, TrialRecord
from linerate.units import Rate
from support.evidence_builders import requirement_record, trial_record

COUNT = st.integers(0, 2**63)
FLOAT = st.floats(allow_nan=False, allow_infinity=False)
POSITIVE = st.floats(1e-6, 1e12)
TEXT = st.text(max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | FLOAT | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
MAPPING = st.dictionaries(TEXT, JSON, max_size=3)
WORDS = st.dictionaries(TEXT, TEXT, max_size=3)
PROBLEMS = st.lists(st.builds(Problem, st.sampled_from(Fault), TEXT), max_size=3).map(tuple)
OUTCOMES = st.builds(
    Outcome,
    st.builds(Load, POSITIVE),
    POSITIVE,
    POSITIVE,
    POSITIVE,
    st.lists(
        st.builds(DirectionCount, st.integers(0, 8), st.integers(0, 8), COUNT, COUNT, COUNT, COUNT, COUNT), max_size=2
    ).map(tuple),
    PROBLEMS,
    st.dictionaries(TEXT, FLOAT, max_size=3),
)
ID = st.text(min_size=1, max_size=30)
TRIALS = st.builds(
    TrialRecord,
    ID,
    st.booleans(),
    st.integers(0, 999),
    TEXT,
    TEXT,
    TEXT,
    POSITIVE,
    POSITIVE,
    st.builds(Trial, st.integers(0, 999), OUTCOMES, PROBLEMS),
    POSITIVE,
)
REQUIREMENTS = st.builds(
    RequirementRecord,
    run=ID,
    simulated=st.booleans(),
    number=st.integers(0, 999),
    test=TEXT,
    sentence=TEXT,
    verdict=st.sampled_from(records.VERDICTS),
    message=TEXT,
    goal=TEXT,
    goal_terms=MAPPING,
    profile=TEXT,
    mean_size=POSITIVE,
    link_bps=POSITIVE,
    threshold=TEXT,
    measured=st.none() | st.builds(RateFigures, FLOAT, FLOAT, FLOAT, FLOAT),
    trials=st.lists(st.integers(0, 999), max_size=4).map(tuple),
    started=FLOAT,
    ended=FLOAT,
    extra=MAPPING,
)
ENVIRONMENTS = st.builds(
    EnvironmentRecord,
    run=ID,
    simulated=st.booleans(),
    testbed=TEXT,
    platform=TEXT,
    software=TEXT,
    clock_speed=POSITIVE,
    started=FLOAT,
    ended=st.none() | FLOAT,
    host=MAPPING,
    packages=WORDS,
    versions=WORDS,
    cpu_steal_percent=st.none() | FLOAT,
    extra=MAPPING,
)


@settings(max_examples=40, deadline=None)
@given(TRIALS)
def test_a_trial_can_be_read_back_and_fits_its_schema(record):
    data = json.loads(records.dumps(record.to_json()))
    jsonschema.validate(data, records.schema(records.TRIAL))
    assert TrialRecord.from_json(data) == record


@settings(max_examples=40, deadline=None)
@given(REQUIREMENTS)
def test_a_requirement_can_be_read_back_and_fits_its_schema(record):
    data = json.loads(records.dumps(record.to_json()))
    jsonschema.validate(data, records.schema(records.REQUIREMENT))
    assert RequirementRecord.from_json(data) == record


@settings(max_examples=40, deadline=None)
@given(ENVIRONMENTS)
def test_an_environment_can_be_read_back_and_fits_its_schema(record):
    data = json.loads(records.dumps(record.to_json()))
    jsonschema.validate(data, records.schema(records.ENVIRONMENT))
    assert EnvironmentRecord.from_json(data) == record


@pytest.mark.parametrize("name", [records.TRIAL, records.REQUIREMENT, records.ENVIRONMENT, records.MANIFEST])
def test_each_schema_is_valid_and_has_its_version(name):
    schema = records.schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"].endswith("2020-12/schema")
    assert schema["properties"]["schema"] == {"const": name}


def test_the_schema_knows_every_fault():
    listed = records.schema(records.TRIAL)["$defs"]["problem"]["properties"]["fault"]["enum"]
    assert set(listed) == set(Fault.__members__)


def test_a_number_that_is_not_finite_is_written_as_null():
    record = trial_record(readings={"cpu": math.nan, "queue_full": 3})
    data = json.loads(records.dumps(record.to_json()))
    jsonschema.validate(data, records.schema(records.TRIAL))
    assert data["readings"] == {"cpu": None, "queue_full": 3}
    assert math.isnan(TrialRecord.from_json(data).trial.outcome.readings["cpu"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"schema": "linerate.trial/2"},
            "'schema' is 'linerate.trial/2'; expected 'linerate.trial/1'",
        ),
        ({"run": 7}, "'run' is 7; expected str"),
        ({"requirement": True}, "'requirement' is True; expected int"),
        ({"load_pps": "fast"}, "'load_pps' is 'fast'; expected a number"),
        ({"load_pps": 0}, "positive number of frames"),
        ({"directions": [3]}, "expected a mapping"),
        ({"problems": [{"fault": "GREMLINS", "detail": ""}]}, "'fault' is 'GREMLINS'; known: UNDER_OFFERED"),
    ],
)
def test_a_bad_trial_is_refused_with_what_is_expected(change, words):
    data = trial_record().to_json() | change
    with pytest.raises(ValueError, match="^.*" + words.replace("(", r"\(")):
        TrialRecord.from_json(data)


def test_a_missing_key_is_named():
    data = trial_record().to_json()
    del data["elapsed"]
    with pytest.raises(ValueError, match="'elapsed' is missing"):
        TrialRecord.from_json(data)


def test_an_unknown_verdict_is_refused():
    with pytest.raises(ValueError, match="PASS, FAIL, INCONCLUSIVE"):
        RequirementRecord.from_json(requirement_record().to_json() | {"verdict": "PROBABLY"})


def test_data_that_is_not_json_is_refused_by_name():
    with pytest.raises(ValueError, match=r"linerate\.requirement/1"):
        records.dumps(requirement_record(extra={"x": object()}).to_json())
    with pytest.raises(ValueError, match=r"linerate\.requirement/1"):
        records.dumps(requirement_record(extra={"x": math.inf}).to_json())


def test_a_rate_in_every_unit():
    figures = RateFigures.of(Rate(14880952.38, 64, 10e9))
    assert figures.percent == pytest.approx(100)
    assert figures.l1_bps == pytest.approx(10e9)
    assert figures.l2_bps == pytest.approx(10e9 * 64 / 84)
