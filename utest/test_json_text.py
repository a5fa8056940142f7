"""JSON that others wrote: a value or a ValueError in plain words, for any bytes."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lineproof.json_text import DEEPEST, JsonError, check_depth, parse_json

LARGEST = 1_000_000

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    # brackets and quotes within strings are no structure
    | st.text('[]{}"\\,:ab', max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
)


@given(values)
def test_what_json_writes_is_read(value: Any) -> None:
    assert parse_json(json.dumps(value).encode(), LARGEST) == value


@given(st.binary(max_size=300) | st.text('[]{}",:\\1eE.-NaInfity', max_size=300).map(str.encode))
@example(b"[" * 900_000)
@example(b'{"a":' * 150_000)
@example(b"[" * 400_000 + b"]" * 400_000)
@example(b'["' + b"\\" * 900_000)
@example(b"1" * 900_000)
@example(b"1e999")
@example(b"[NaN]")
@example(b"\xff\xfe[")
@example(b'"\xed\xa0\x80"')
def test_any_bytes_are_a_value_or_a_value_error(data: bytes) -> None:
    began = time.thread_time()
    with contextlib.suppress(ValueError):
        json.dumps(parse_json(data, LARGEST), allow_nan=False)
    assert time.thread_time() - began < 3


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_the_depth_has_a_limit(opening: str, closing: str) -> None:
    def nested(levels: int) -> bytes:
        # as many shallow neighbours beside it: only the depth counts
        return f"[[{'[],' * 1000}1],{opening * levels}1{closing * levels}]".encode()

    parse_json(nested(DEEPEST - 1), LARGEST)
    with pytest.raises(ValueError, match=f"deeper than {DEEPEST}"):
        parse_json(nested(DEEPEST), LARGEST)
    check_depth(b'["' + b"[" * 1000 + b'"]')


def test_the_length_has_a_limit() -> None:
    with pytest.raises(ValueError, match="3 bytes are too many; at most 2"):
        parse_json(b"123", 2)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "it is empty"),
        (b'{"a": }', "not JSON"),
        (b'{"a":\n1,}', "not JSON .*, line 2, column 3"),
        (b"\xff", "not UTF-8 text"),
        (b"[" * 100_000, "deeper than 64"),
        (b"1" * 5000, "5000 digits"),
        (b"NaN", "NaN is no number"),
        (b"[-Infinity]", "-Infinity is no number"),
        (b"[1e999]", "1e999 is too large"),
        (b"-1e999", "too large"),
        (b'{"a": "\\ud800"}', "half a character"),
        ('"\udcff"', "half a character"),
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' stands twice"),
    ],
)
def test_json_that_is_none_is_said_in_words(text: bytes | str, says: str) -> None:
    with pytest.raises(JsonError, match=says) as caught:
        parse_json(text, LARGEST)
    assert not re.search(r"Traceback|\b[A-Z][a-z]+[A-Za-z]*(Error|Exception)\b|\n", str(caught.value))


def test_a_line_that_is_known_is_said() -> None:
    with pytest.raises(JsonError) as caught:
        parse_json('{"a": 1,\n "b": 2,\n}')
    assert caught.value.line == 3


def test_odd_values_are_read_where_whoever_takes_them_checks() -> None:
    assert parse_json(b'[1e999, {"a": Infinity, "a": 1}]', strict=False) == [math.inf, {"a": 1}]
    with pytest.raises(JsonError, match="digits"):
        parse_json(b"1" * 5000, strict=False)


def test_processes_of_lineproof_name_files_that_are_not_utf_8() -> None:
    name = os.fsdecode(b"/tmp/\xff\xfe")
    assert parse_json(json.dumps(name), own=True) == name


def test_many_keys_take_little_time() -> None:
    keys = ", ".join(f'"{number}": 0' for number in range(60_000))
    began = time.thread_time()
    with pytest.raises(JsonError, match="the key '59999' stands twice"):
        parse_json(f'{{{keys}, "59999": 1}}')
    assert time.thread_time() - began < 3
