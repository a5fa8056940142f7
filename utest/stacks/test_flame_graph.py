"""A flame graph shows the share of each function upon its callers, and a run keeps what was sampled."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.under_load import UnderLoad
from lineproof.evidence.recorder import Recorder
from lineproof.evidence.records import UnderLoadRecord
from lineproof.stacks.flame_graph import MOST_ROWS, flame_graph
from support.evidence_builders import ENVIRONMENT, RUN

SVG = "{http://www.w3.org/2000/svg}"
STACKS = {"main;a;b": 30, "main;a": 50, "main;c": 20}


def drawn(stacks: Mapping[str, int], title: str = "title", cpus: int | None = 2, simulated: bool = False) -> str:
    return flame_graph(stacks, 2.0, cpus, 3e6, title, simulated)


def _boxes(svg: str) -> dict[str, tuple[float, float, float]]:
    """Tooltip -> left edge, top and width."""
    found = {}
    for group in ET.fromstring(svg.encode()).iter(f"{SVG}g"):
        title, box = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        assert title is not None and title.text is not None and box is not None
        found[title.text] = (float(box.get("x", "")), float(box.get("y", "")), float(box.get("width", "")))
    return found


def test_a_box_is_as_wide_as_its_share_upon_its_caller() -> None:
    boxes = _boxes(drawn(STACKS))
    assert list(map(str, sorted(boxes))) == [
        "a: 80 samples, 80.0 %",
        "all: 100 samples, 100.0 %",
        "b: 30 samples, 30.0 %",
        "c: 20 samples, 20.0 %",
        "main: 100 samples, 100.0 %",
    ]
    a, whole, b, c = (boxes[name] for name in sorted(boxes) if not name.startswith("main"))
    assert a[2] == pytest.approx(0.8 * whole[2], abs=1) and c[2] == pytest.approx(0.2 * whole[2], abs=1)
    assert b[0] == a[0] and c[0] == pytest.approx(a[0] + a[2], abs=1)
    assert whole[1] > a[1] > b[1] and c[1] == a[1]


def test_the_caption_says_what_was_sampled() -> None:
    svg = drawn(STACKS, "The router under load: 64b ≥ 3 Mpps", simulated=True)
    assert "2 s, 100 samples, 2 CPUs, load 3 Mpps" in svg
    assert "The router under load: 64b ≥ 3 Mpps" in svg and "SIMULATED" in svg
    unmarked = drawn(STACKS, cpus=None)
    assert "2 s, 100 samples, load" in unmarked and "SIMULATED" not in unmarked


def test_a_recursion_is_cut_at_a_height() -> None:
    boxes = _boxes(drawn({";".join(f"f{depth}" for depth in range(500)): 3}))
    assert len(boxes) == MOST_ROWS


@given(
    st.dictionaries(st.lists(st.text(max_size=8), min_size=1, max_size=6).map(";".join), st.integers(1, 10**12)).filter(
        bool
    ),
    st.text(max_size=200),
)
def test_every_mapping_is_one_picture(stacks: dict[str, int], words: str) -> None:
    boxes = _boxes(drawn(stacks, words, simulated=True))
    assert all(left >= 10 and left + width <= 1191 and width >= 0 for left, _, width in boxes.values())


def test_a_run_keeps_the_stacks_of_a_flame_graph(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, RUN, ENVIRONMENT)
    requirement: Any = SimpleNamespace(sentence="64b ≥ 3 Mpps")
    found = UnderLoad(3e6, 3e6, 2e6, raw={"show runtime": "…"}, unread={"x": "why"})
    recorder.keep_under_load("under load", requirement, found, {"folded stacks": "main;a 50\n"})
    recorder.close()
    folder = recorder.folder.path
    assert UnderLoadRecord.from_json((folder / "results.jsonl").read_bytes()).report == replace(found, raw={})
    assert json.loads((folder / "telemetry.jsonl").read_text())["texts"]["folded stacks"] == "main;a 50\n"
