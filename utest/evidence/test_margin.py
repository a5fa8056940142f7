"""A margin in words and among the records."""

from __future__ import annotations

from dataclasses import replace

import jsonschema
import pytest

from lineproof.evidence.margin import MarginRecord
from lineproof.evidence.records import MARGIN, schema

RUN = "20260101T000000Z-abcdef"
SEARCH = MarginRecord(RUN, False, 1, "T", "64b unidirectional ≥ 5 Mpps", 1.08, 1.09, True, "", 12.0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "carries 108 % to 109 % of it"),
        ({"low": 1.0819, "high": 1.08501}, "carries 108.1 % to 108.6 % of it"),
        ({"low": 1.0, "high": 1.005}, "carries 100 % to 100.5 % of it"),
        ({"low": 1.0, "high": 1.00001}, "carries 100 % to 100.1 % of it"),
        ({"low": 1.02, "high": 1.02}, "carries 102 % of it"),
        ({"low": 2.99, "high": None}, "carries at least 299 % of it: all that the ports can send"),
        (
            {"low": 1.0, "high": None, "finished": False, "reason": "deadline: 0 of 9 s"},
            "carries at least 100 % of it; the search is unfinished: deadline: 0 of 9 s",
        ),
        (
            {"low": 1.0, "high": 1.2, "finished": False, "reason": "a link was down"},
            "carries 100 % to 120 % of it; the search is unfinished: a link was down",
        ),
    ],
)
def test_words_never_promise_more_than_was_found(changes: dict[str, object], words: str) -> None:
    record = replace(SEARCH, **changes)  # type: ignore[arg-type]
    assert str(record) == words
    jsonschema.validate(record.to_json(), schema(MARGIN))
    assert MarginRecord.from_json(record.to_json()) == record
