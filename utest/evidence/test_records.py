"""Records can be read back and fit their schemas. What is wrong with bad data is in the golden messages."""

import json
import math
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lineproof.core.bounds import Bounds
from lineproof.core.goal import Goal
from lineproof.core.json_types import Count, Figure, Moment, Names, NotNegative, OpenEnd, Positive
from lineproof.evidence.records import Base64, Digest, Id, Record, RequirementRecord
from lineproof.evidence.run_files import KINDS, first_link, sealed
from support.evidence_builders import requirement_record

LINK = first_link("20261121T040000Z-abc123")
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(max_size=10)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
VALUES: Mapping[Any, st.SearchStrategy[Any]] = {
    Any: JSON,
    object: JSON,
    NoneType: st.none(),
    bool: st.booleans(),
    int: st.integers(-(2**63), 2**63),
    float: FLOATS,
    str: TEXT,
    Count: st.integers(0, 2**63 - 1),
    Moment: st.floats(0, 253_402_300_799),
    NotNegative: st.floats(0, 1e12),
    Positive: st.floats(1e-6, 1e12),
    OpenEnd: st.floats(0) | st.just(math.inf),
    Figure: FLOATS | st.just(math.nan),
    Names: st.frozensets(TEXT, max_size=1),
    Id: st.text(min_size=1, max_size=10),
    Digest: st.just(LINK),
    Base64: st.binary(max_size=10).map(lambda content: b64encode(content).decode()),
    Goal: st.just(requirement_record().goal),
    Bounds: st.tuples(FLOATS, FLOATS | st.just(math.inf)).map(lambda ends: Bounds(min(ends), max(ends))),
}


PARSED = ("sentence", "quantity", "profile", "mean_size")
"""Fields of a requirement that belong together."""


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Return values of a field's type, those that JSON does not have among them."""
    if kind in VALUES:
        return VALUES[kind]
    if isinstance(kind, type) and is_dataclass(kind):
        return st.deferred(lambda: st.builds(kind, **field_values(kind)))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(kind)
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return st.one_of(*map(values, args))
    if origin is Literal:
        return st.sampled_from(args)
    if origin is tuple:
        few = values(args[0])
        return st.lists(few, max_size=2).map(tuple) if args[1] is ... else st.tuples(*map(values, args))
    if origin is Sequence:
        return st.lists(values(args[0]), max_size=2)
    if origin is Mapping:
        return st.dictionaries(values(args[0]), values(args[1]), max_size=2)
    (info,) = kind.__metadata__
    least = next((item.ge for item in info.metadata if hasattr(item, "ge")), None)
    if least is not None:
        return st.integers(least, 99)
    return st.sampled_from(("", "keeps", "misses", "open"))


def field_values(kind: Any) -> dict[str, st.SearchStrategy[Any]]:
    """Return values of each field of a dataclass that is in its record."""
    types = get_type_hints(kind, include_extras=True)
    return {item.name: values(types[item.name]) for item in fields(kind) if not is_left_out(types[item.name])}


def is_left_out(kind: Any) -> bool:
    return get_origin(kind) is Annotated and any(getattr(item, "exclude", False) for item in kind.__metadata__)


RECORDS = {kind: values(kind) for kind in KINDS} | {
    RequirementRecord: st.builds(
        requirement_record,
        **{name: made for name, made in field_values(RequirementRecord).items() if name not in PARSED},
    )
}


Checked = tuple[type[Record], jsonschema.Draft202012Validator]


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.__name__)
def checked(request: pytest.FixtureRequest) -> Checked:
    """Provide each kind of record and its schema."""
    schema = request.param.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return request.param, jsonschema.Draft202012Validator(schema)


def read_again(record: Record, write: Callable[[Mapping[str, Any]], bytes]) -> Record:
    return type(record).from_json(write(record.to_json()))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_a_record_can_be_read_back_and_fits_its_schema(checked: Checked, data: st.DataObject) -> None:
    kind, schema = checked
    record = data.draw(RECORDS[kind])
    assert repr(read_again(record, lambda found: sealed(found, LINK)[0])) == repr(record)
    assert repr(read_again(record, lambda found: json.dumps(found, indent=2).encode())) == repr(record)
    schema.validate(json.loads(sealed(record.to_json(), LINK)[0]))


def test_data_that_is_not_json_is_refused() -> None:
    with pytest.raises(ValueError, match=r"JSON|serialize"):
        sealed(requirement_record(started=math.inf).to_json(), LINK)


def test_a_sentence_of_a_quantity_that_is_not_installed_can_be_read() -> None:
    record = requirement_record(quantity="teleports", sentence="64b unidirectional teleports p9 ≤ 5 µs at 1 Mpps")
    read_back = RequirementRecord.from_json(sealed(record.to_json(), LINK)[0])
    assert (read_back.requirement.quantity.name, read_back.requirement.demand) == ("teleports", "≤ 5 µs")
