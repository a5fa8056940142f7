"""Whatever the process of a profile answers: streams, or one sentence."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.errors import ConfigError
from lineproof.traffic.stream_schema import MAX_STREAMS, check_answer, read_error
from lineproof.traffic.trex_profile import ProfileSource
from lineproof.traffic.trex_streams import read_trex_profile
from support.fuzz import TIMES

MINE = Path("mine.py")
FRAME = "AAAAAAAAAAAAAAAACABFAAAuAAEAAEARAAAQAAABMAAAAQQBAAwAGgAA" + "A" * 24
RATE = {"rate": {"type": "pps", "value": 1.0}}
ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    2**63,
    2**64,
    10**400,
    1e308,
    math.inf,
    math.nan,
    "",
    "x",
    "\ud800",
    "a\nb",
    "\x1b[",
]
ODD += [[], {}, [[]], {"a": 1}, b"x", 1j, "9" * 20000]


def stream(**more: Any) -> dict[str, Any]:
    return {
        "flags": 0,
        "enabled": True,
        "self_start": True,
        "isg": 0.0,
        "action_count": 0,
        "mode": {
            "type": "multi_burst",
            "rate": {"type": "pps", "value": 1.0},
            "pkts_per_burst": 2,
            "count": 2,
            "ibg": 1,
        },
        "packet": {"binary": FRAME, "meta": ""},
        "vm": {
            "instructions": [
                {"type": "flow_var", "name": "a", "size": 2, "op": "inc", "min_value": 60, "max_value": 60, "step": 1},
                {"type": "write_flow_var", "name": "a", "pkt_offset": 26, "add_value": 0, "is_big_endian": True},
                {"type": "trim_pkt_size", "name": "a"},
            ]
        },
        "flow_stats": {"enabled": False},
        "name": "S1",
        "next": "S2",
        **more,
    }


def answer() -> dict[str, Any]:
    rows = [stream(), stream(name="S2", next=None, self_start=False)]
    return {"client": "ours", "directions": [{"streams": rows}, {"streams": copy.deepcopy(rows)}]}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


PLACES = [place for place in places(answer()) if place]


def read(data: dict[str, Any]) -> str:
    """What is wrong with it, if anything."""
    try:
        read_trex_profile(data, ProfileSource(MINE, "0" * 64, "", ""))
    except ConfigError as error:
        return str(error)
    return ""


def test_streams_are_taken() -> None:
    assert read(answer()) == ""


@settings(max_examples=300 * TIMES, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from([*ODD, "remove"])), min_size=1, max_size=3))
def test_a_changed_answer_is_taken_or_refused_in_one_sentence(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    data = answer()
    for (*way, last), value in changes:
        inner: Any = data
        try:
            for key in way:
                inner = inner[key]
            if value == "remove":
                del inner[last]
            else:
                inner[last] = value
        except (KeyError, IndexError, TypeError):
            continue
    said = read(data)
    assert "\n" not in said and said.isprintable() and len(said) < 2000


def test_levels_without_end_are_refused() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    data = answer()
    data["directions"][0]["streams"][0]["meta"] = deep
    assert "expected at most 12 levels" in read(data)


def test_too_many_streams_are_refused_by_their_number() -> None:
    with pytest.raises(ConfigError, match=f"has {MAX_STREAMS + 1} streams; expected at most {MAX_STREAMS}"):
        check_answer({"directions": [{"streams": [stream()] * (MAX_STREAMS + 1)}, {}]}, MINE)


@pytest.mark.parametrize("given", [*ODD, {"kind": "other", "message": "x", "line": 1}, {"kind": "file"}], ids=repr)
def test_an_error_that_is_none_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match="answers an error that is none"):
        read_error(given, MINE)


def test_an_error_is_shown_as_one_short_line() -> None:
    found = read_error(json.loads('{"kind": "file", "message": "a\\n\\ud800\\u001b[2J' + "b" * 5000 + '"}'), MINE)
    assert found.message.startswith("a ??[2Jbbb") and len(found.message) == 1000 and found.line is None
