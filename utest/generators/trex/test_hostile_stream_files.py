"""A file of streams in TRex's format with anything in it: read, or refused in one paragraph."""

from __future__ import annotations

import base64
import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.errors import ConfigError
from lineproof.generators.trex.profile_loader import TrexProfileLoader
from lineproof.traffic.profile_schema import TrexFile
from support import hostile

FRAME = bytes(12) + bytes.fromhex("0800" + "45000020000100004011000010000001300000010401000c000c0000" + "00" * 18)
STREAM: dict[str, Any] = {
    "name": "s1",
    "stream": {
        "packet": {"binary": base64.b64encode(FRAME).decode(), "meta": ""},
        "mode": {"type": "continuous", "rate": {"type": "pps", "value": 100}},
        "flow_stats": {"enabled": True, "rule_type": "stats", "stream_id": 1},
        "vm": {
            "instructions": [
                {
                    "type": "flow_var",
                    "name": "a",
                    "size": 4,
                    "op": "inc",
                    "init_value": 1,
                    "min_value": 1,
                    "max_value": 9,
                },
                {"type": "write_flow_var", "name": "a", "pkt_offset": 26, "add_value": 0, "is_big_endian": True},
                {"type": "fix_checksum_ipv4", "pkt_offset": 14},
            ]
        },
        "self_start": True,
        "isg": 0.0,
        "next": None,
    },
}
SCALARS: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 1, 2**31, 2**64, 10**30, 1e300, 0.5, "", "x", "9" * 30, [], {}, [1], {"a": 1}, [[]], "\0", "٣"]
)


def places(data: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [at, *(place for key, value in inner for place in places(value, (*at, key)))]


def refused(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    with hostile.bounded():
        try:
            TrexProfileLoader("")(path, TrexFile(kind="trex", name="x", file=path.name, about="x"))
        except ConfigError as error:
            assert str(error).startswith(str(path)) and str(error).isprintable() and len(str(error)) < 1000
            return str(error)
    return ""


def test_the_streams_are_right_before_they_are_mutated(tmp_path: Path):
    assert not refused(tmp_path / "x.json", json.dumps([STREAM]))
    assert not refused(tmp_path / "x.yaml", json.dumps([STREAM]))


@hostile.of(200)
@given(data=st.data())
def test_mutated_streams_are_read_or_refused(tmp_path: Path, data: st.DataObject):
    streams = json.loads(json.dumps([STREAM, STREAM]))
    for _ in range(data.draw(st.integers(1, 3))):
        *before, last = data.draw(st.sampled_from([place for place in places(streams) if place]))
        owner = streams
        for key in before:
            owner = owner[key]
        if data.draw(st.booleans()):
            owner[last] = copy.deepcopy(data.draw(SCALARS))  # the next mutation must not change the sample
        elif isinstance(owner, dict):
            del owner[last]
    suffix = data.draw(st.sampled_from(("json", "yaml")))
    refused(tmp_path / f"x.{suffix}", json.dumps(streams))


@pytest.mark.parametrize("suffix", ["json", "yaml"])
@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 100_000, "[NaN]", "[1e999]", "{", "", "\ufeff[]", '["\\ud800"]'])
def test_what_is_no_list_of_streams_is_refused(tmp_path: Path, suffix: str, text: str):
    assert refused(tmp_path / f"x.{suffix}", text)
