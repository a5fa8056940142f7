"""Records can be read back, fit their published schemas, and report what is wrong with bad data."""

import json
import math
import re
from dataclasses import replace

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.core.bounds import Bounds
from lineproof.core.causes import Cause, Role, Stage
from lineproof.core.frame_sizes import FrameSizes, frame_sizes
from lineproof.core.latency import LatencyCount
from lineproof.core.quantity import Scope
from lineproof.core.registry import built_in_quantities
from lineproof.core.step_down import CountSnapshot, StepDown
from lineproof.core.telemetry import InterfaceCounters, NodeRuntime, Telemetry
from lineproof.core.trial import DirectionCount, Fault, Load, Outcome, Problem, Trial
from lineproof.evidence import records
from lineproof.evidence.chain import first_link, sealed
from lineproof.evidence.json_fields import field_data
from lineproof.evidence.records import (
    Demand,
    EnvironmentRecord,
    RateFigures,
    ReadingRecord,
    RequirementRecord,
    TrialRecord,
    why_unfit,
)
from lineproof.evidence.run import parsed_record
from lineproof.evidence.under_load_record import recorded_facts
from lineproof.routers.host_reading import read_host
from lineproof.session.router_watch import Reading
from support.evidence_builders import requirement_record, trial_record, written
from support.trex_host import shell_of

LINK = first_link("20261121T040000Z-abc123")
ID = st.text(min_size=1, max_size=30)
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
PORT = st.integers(0, 8)
PORTS = st.lists(st.tuples(PORT, PORT), max_size=2).map(tuple)
PROBLEM = st.builds(Problem, st.sampled_from(Fault), TEXT, st.none() | POSITIVE, PORTS, POSITIVE)
PROBLEMS = st.lists(PROBLEM, max_size=3).map(tuple)
HISTOGRAMS = st.dictionaries(st.sampled_from((0, 10, 20, 300, 4000)), COUNT, max_size=3)
LATENCIES = st.builds(
    LatencyCount, PORT, PORT, COUNT, COUNT, FLOAT, FLOAT, st.none() | FLOAT, HISTOGRAMS, COUNT, COUNT, COUNT
)
COUNTERS = st.dictionaries(
    st.sampled_from(("before", "ended", "after")),
    st.dictionaries(st.sampled_from(("0.opackets", "1.ibytes")), COUNT, max_size=2),
)
OUTCOMES = st.builds(
    Outcome,
    st.builds(Load, POSITIVE),
    POSITIVE,
    POSITIVE,
    POSITIVE,
    st.lists(st.builds(DirectionCount, PORT, PORT, *[COUNT] * 5, st.none() | COUNT, COUNT), max_size=2).map(tuple),
    PROBLEMS,
    st.dictionaries(TEXT, FLOAT, max_size=3),
    st.lists(LATENCIES, max_size=2).map(tuple),
    COUNTERS,
)
SNAPSHOTS = st.builds(CountSnapshot, st.tuples(COUNT, COUNT), st.tuples(COUNT, COUNT))
SECONDS = st.tuples(POSITIVE, POSITIVE).map(lambda ends: Bounds(min(ends), max(ends)))
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
    st.builds(Trial, st.integers(0, 999), OUTCOMES, PROBLEMS, SECONDS),
    POSITIVE,
    streams=TEXT,
    evidence=st.sampled_from(("", "keeps", "misses", "open")),
    frame_sizes=st.lists(st.builds(FrameSizes, PORT, PORT, FLOAT, FLOAT, st.booleans()), max_size=2).map(tuple),
)
STEP_DOWNS = st.builds(
    lambda second, before, after, samples, sent: (
        lambda outcome: StepDown(outcome, Load(second), before, after, samples, sent)
    ),
    POSITIVE,
    SNAPSHOTS,
    SNAPSHOTS,
    st.lists(SNAPSHOTS, max_size=3).map(tuple),
    st.tuples(FLOAT, FLOAT | st.just(math.inf)),
)
TELEMETRY = st.builds(
    Telemetry,
    FLOAT,
    st.dictionaries(TEXT, st.builds(InterfaceCounters, *[COUNT] * 8), max_size=2),
    st.dictionaries(TEXT, COUNT, max_size=2),
    st.lists(st.builds(NodeRuntime, TEXT, TEXT, TEXT, COUNT, COUNT, COUNT, FLOAT, FLOAT), max_size=2).map(tuple),
    since_clear=FLOAT,
    causes=st.lists(
        st.builds(Cause, st.sampled_from(Stage), TEXT, TEXT, COUNT, st.sampled_from(Role), TEXT), max_size=2
    ).map(tuple),
)
READINGS = st.builds(
    ReadingRecord,
    ID,
    st.booleans(),
    COUNT,
    COUNT,
    st.builds(Reading, TELEMETRY) | st.builds(Reading, st.none(), TEXT, st.booleans()),
)
DEMANDS = st.builds(
    Demand,
    st.sampled_from(sorted(built_in_quantities())),
    number=FLOAT,
    limit=FLOAT,
    judged_pps=POSITIVE,
    scope=st.sampled_from([scope.value for scope in Scope]),
    directions=st.integers(1, 16),
    pps=st.none() | FLOAT,
    load_pps=st.none() | FLOAT,
    window_s=st.none() | FLOAT,
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
    tolerance=MAPPING,
    deviations=st.lists(TEXT, max_size=2).map(tuple),
    breakdown=st.none() | TEXT,
    demand=DEMANDS,
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
    code=MAPPING,
    ports=st.lists(MAPPING, max_size=2).map(tuple),
    interfaces=WORDS,
)


WHOLE = st.builds(
    lambda record, step_down: replace(record, step_down=step_down(record.trial.outcome)), TRIALS, STEP_DOWNS
)


@pytest.mark.parametrize(
    ("kind", "made", "name"),
    [
        (TrialRecord, TRIALS, records.TRIAL),
        (TrialRecord, WHOLE, records.TRIAL),
        (ReadingRecord, READINGS, records.READING),
        (RequirementRecord, REQUIREMENTS, records.REQUIREMENT),
        (EnvironmentRecord, ENVIRONMENTS, records.ENVIRONMENT),
    ],
)
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_record_can_be_read_back_and_fits_its_schema(kind, made, name, data):
    record = data.draw(made)
    sealed_or_not = records.dumps(record.to_json()) if kind is EnvironmentRecord else sealed(record.to_json(), LINK)[0]
    found = json.loads(sealed_or_not)
    jsonschema.validate(found, records.schema(name))
    assert kind.from_json(found) == record


@pytest.mark.parametrize(
    ("lost", "foreign", "explained"), [(0, 0, True), (5, 0, True), (5, 5, False), (50, 1, False), (0, 3, False)]
)
def test_bytes_show_frames_that_were_not_sent(lost, foreign, explained):
    """*foreign* frames of 90 bytes are counted in place of as many lost ones of 64: the bytes tell."""
    came = 1000 - lost + foreign
    count = DirectionCount(0, 1, 1000, 1000, came, 64_000, 64 * (1000 - lost) + 90 * foreign)
    (found,) = frame_sizes([count], 64, 64)
    assert found.explained is explained
    assert explained or "other frames were counted too" in str(found)


@given(st.lists(st.sampled_from((64, 594, 1518)), min_size=2, max_size=30), st.data())
def test_loss_alone_is_always_explained(sizes, data):
    kept = data.draw(st.lists(st.sampled_from(range(len(sizes))), unique=True, min_size=1))
    count = DirectionCount(0, 1, len(sizes), len(sizes), len(kept), sum(sizes), sum(sizes[place] for place in kept))
    (found,) = frame_sizes([count], min(sizes), max(sizes))
    assert found.explained


def test_the_generators_machine_is_recorded_as_a_router_is(tmp_path):
    data = json.loads((written(tmp_path) / "environment.json").read_text())
    host = read_host(shell_of("two nodes"))
    data["extra"]["generator_host"] = json.loads(records.dumps(field_data(host)))
    assert why_unfit(data, records.ENVIRONMENT) == ""
    assert recorded_facts(data["extra"]["generator_host"]) == host
    data["extra"]["generator_host"]["cores"] = "twelve"
    assert "cores" in why_unfit(data, records.ENVIRONMENT)


@pytest.mark.parametrize(
    "name", [records.TRIAL, records.REQUIREMENT, records.ENVIRONMENT, records.READING, records.FILE, records.MANIFEST]
)
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
    data = json.loads(sealed(record.to_json(), LINK)[0])
    jsonschema.validate(data, records.schema(records.TRIAL))
    assert data["readings"] == {"cpu": None, "queue_full": 3}
    assert math.isnan(TrialRecord.from_json(data).trial.outcome.readings["cpu"])


def read(kind, data):
    return parsed_record(kind, sealed(data, LINK)[0])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": "lineproof.trial/4"}, "'schema' is 'lineproof.trial/4'; expected 'lineproof.trial/3'"),
        ({"run": 7}, "run must be string"),
        ({"requirement": True}, "requirement must be integer"),
        ({"load_pps": "fast"}, "load_pps must be number"),
        ({"load_pps": 0}, "load_pps must be bigger than 0"),
        ({"directions": [3]}, r"directions[0] must be object"),
        ({"problems": [{"fault": "GREMLINS", "detail": ""}]}, "problems[0].fault must be one of"),
    ],
)
def test_a_bad_trial_is_refused_with_what_is_expected(change, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        read(TrialRecord, trial_record().to_json() | change)


def test_a_missing_key_is_named():
    data = trial_record().to_json()
    del data["elapsed"]
    with pytest.raises(ValueError, match=r"must contain .*'elapsed'"):
        read(TrialRecord, data)


def test_data_that_is_not_json_is_refused_by_name():
    with pytest.raises(ValueError, match=r"lineproof\.requirement/3"):
        records.dumps(requirement_record(extra={"x": object()}).to_json())
    with pytest.raises(ValueError, match=r"lineproof\.requirement/3"):
        records.dumps(requirement_record(extra={"x": math.inf}).to_json())
