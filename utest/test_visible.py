"""No control character of a router, a server or a file gets into a message, a terminal, a log or XML."""

from __future__ import annotations

import json
import string
import unicodedata
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.errors import ConfigError, Inconclusive, SentenceError, SlaFailure, TestbedError
from lineproof.generators.trex import client_process
from lineproof.visible import visible, visible_data

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


@pytest.mark.parametrize("character", CONTROL)
def test_a_control_character_is_shown_by_its_number(character: str) -> None:
    found = visible(f"eth{character}0")
    assert found == f"eth{character.encode('unicode_escape').decode()}0" and found.isascii()


@pytest.mark.parametrize(
    "text", ["", "ge-0/0/0 µs ≥ 95 % “lab” 日本 é", "a\tb\n", "\u00a0000\u202f000\u2009s", "\\x1b"]
)
def test_ordinary_text_stays(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize("kind", [ConfigError, SentenceError, TestbedError, Inconclusive, SlaFailure])
def test_no_error_has_control_characters(kind: Any) -> None:
    assert str(kind("eth0\x1b[2J\u202e says \x07")) == r"eth0\x1b[2J\u202e says \x07"


def test_a_file_with_an_odd_name_is_named() -> None:
    assert str(ConfigError("is wrong", "a\x1b]0;x\x07.yaml", 3)) == r"a\x1b]0;x\x07.yaml:3: is wrong"


@given(
    st.recursive(
        TEXTS | st.integers() | st.none(), lambda more: st.lists(more) | st.dictionaries(TEXTS, more), max_leaves=8
    )
)
def test_data_of_a_server_is_shown_at_every_depth(data: Any) -> None:
    text = json.dumps(visible_data(data), ensure_ascii=False)
    assert not any(map(is_control, text))
    assert json.loads(text) == visible_data(json.loads(json.dumps(data)))


@given(
    st.one_of(st.text(), st.text(string.printable), st.sampled_from(["\x1b[1m", "\\u", "a\\r", "\r", "\x7f", '"/\n\t']))
)
def test_an_answer_of_the_client_is_looked_at_text_by_text_where_json_escapes_something(text: str) -> None:
    if not client_process._UNUSUAL.search(json.dumps({text: text}).encode()):
        assert visible(text) == text
