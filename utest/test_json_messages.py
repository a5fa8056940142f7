"""JSON that another process wrote: a value or ValueError, for any bytes."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from linerate.json_messages import DEEPEST, check_depth, read_json

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
    assert read_json(json.dumps(value).encode(), LARGEST) == value


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
        json.dumps(read_json(data, LARGEST), allow_nan=False)
    assert time.thread_time() - began < 3


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_the_depth_has_a_limit(opening: str, closing: str) -> None:
    def nested(levels: int) -> bytes:
        # as many shallow neighbours beside it: only the depth counts
        return f"[[{'[],' * 1000}1],{opening * levels}1{closing * levels}]".encode()

    read_json(nested(DEEPEST - 1), LARGEST)
    with pytest.raises(ValueError, match=f"deeper than {DEEPEST}"):
        read_json(nested(DEEPEST), LARGEST)
    check_depth(b'["' + b"[" * 1000 + b'"]')


def test_the_length_has_a_limit() -> None:
    with pytest.raises(ValueError, match="3 bytes are too many; at most 2"):
        read_json(b"123", 2)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_numbers_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=text):
        read_json(f"[{text}]".encode(), LARGEST)
