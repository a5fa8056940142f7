"""JSON that others wrote: a value or a ValueError in plain words, for any bytes."""

from __future__ import annotations

import contextlib
import json
import math
import time
import unicodedata
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lineproof.errors import ConfigError, Inconclusive, SentenceError, SlaFailure, TestbedError
from lineproof.json_text import DEEPEST, JsonError, parse_json
from lineproof.visible import visible, visible_data

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
    parse_json(b'["' + b"[" * 1000 + b'"]')


def test_odd_values_are_read_where_whoever_takes_them_checks() -> None:
    assert parse_json(b'[1e999, {"a": Infinity, "a": 1}]', strict=False) == [math.inf, {"a": 1}]
    for text, says in ((b"1" * 5000, "5000 digits"), (b" " * (LARGEST + 1), "bytes are too many"), (b"\xff", "UTF-8")):
        with pytest.raises(JsonError, match=says):
            parse_json(text, LARGEST, strict=False)


# -- no control character of a router, a server or a file gets into a message, a terminal, a log or XML


CONTROL = "\x00\x07\x08\x1b\x7f\x85\x9b\r\u200b\u200f\u2028\u2029\u202e\u2066\ufeff\ufffe\uffff\ud800\U000e0001"
TEXTS = st.text(st.characters(codec=None) | st.sampled_from(CONTROL + "\t\n"), max_size=40)


def is_control(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") and character not in "\t\n"


@given(TEXTS)
def test_nothing_that_controls_is_left_and_nothing_else_changes(text: str) -> None:
    found = visible(text)
    assert not any(map(is_control, found))
    assert visible(found) == found
    if not any(map(is_control, text)):
        assert found == text
    found.encode("utf-8")
    ET.fromstring(f"<a>{found.replace('&', '').replace('<', '').replace(']]>', '')}</a>")


@pytest.mark.parametrize("kind", [ConfigError, SentenceError, TestbedError, Inconclusive, SlaFailure])
def test_no_error_has_control_characters(kind: Any) -> None:
    assert str(kind("eth0\x1b[2J\u202e says \x07")) == r"eth0\x1b[2J\u202e says \x07"


@given(
    st.recursive(
        TEXTS | st.integers() | st.none(), lambda more: st.lists(more) | st.dictionaries(TEXTS, more), max_leaves=8
    )
)
def test_data_of_a_server_is_shown_at_every_depth(data: Any) -> None:
    text = json.dumps(visible_data(data), ensure_ascii=False)
    assert not any(map(is_control, text))
    assert json.loads(text) == visible_data(json.loads(json.dumps(data)))
