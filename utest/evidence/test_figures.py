"""Rates and flame graphs show counts with their units, and escape all text."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.quantity import Requirement
from lineproof.core.under_load import CpuLoad, SampledStacks, UnderLoad
from lineproof.evidence.flame_graph import MOST_ROWS, flame_graph, under_load_flame_graph
from lineproof.evidence.integrity import check_integrity
from lineproof.evidence.rates import direction_rows, percent
from lineproof.evidence.recorder import Recorder
from lineproof.evidence.records import EnvironmentRecord, UnderLoadRecord
from lineproof.evidence.result_forms import back_to_back_document
from lineproof.methods.rfc2544 import back_to_back
from lineproof.methods.trials import CharacterisationTerms
from support.evidence_builders import LINK, NamedTraffic, trial
from support.pure_router import LINE, PureRouter

SMALL = NamedTraffic("64b", 64.0)


def test_rates_of_a_late_trial_are_over_the_elapsed_time():
    (row,) = direction_rows([trial(pps=1e6, duration=1.0, elapsed=4.0)], SMALL.mean_size, LINK)
    assert row.offered.pps == pytest.approx(250_000)
    assert row.intended.pps == pytest.approx(1e6)


@pytest.mark.parametrize(
    ("ratio", "words"), [(0, "0 %"), (0.142, "14.20 %"), (1, "100.00 %"), (1e-5, "0.001 %"), (1e-9, "1.0e-07 %")]
)
def test_small_losses_keep_their_digits(ratio, words):
    assert percent(ratio) == words


def test_a_burst_that_lost_nothing_is_a_bound():
    router = PureRouter(LINE / 2, buffer=1000)
    results = [
        back_to_back(router.send_burst, 64, LINE, LINE / 2, CharacterisationTerms(), repeats=2),
        back_to_back(PureRouter(LINE).send_burst, 64, LINE, LINE / 2, CharacterisationTerms(), longest=500),
    ]
    (table,) = back_to_back_document(results, "Bursts").tables
    limited, unlimited = (row.cells[1] for row in table.rows)
    assert limited in ("1,999.0", "2,000.0") and unlimited == "≥ 500.0"


SVG = "{http://www.w3.org/2000/svg}"
STACKS = {"main;a;b": 30, "main;a": 50, "main;c": 20}
FOUND = UnderLoad(
    3e6, 3e6, 2e6, cpus=(CpuLoad(0), CpuLoad(1)), unread={"x": "why"}, sampled=SampledStacks(2.0, STACKS, 1)
)


def _boxes(svg: str) -> dict[str, tuple[float, float, float]]:
    """Tooltip -> left edge, top and width."""
    found = {}
    for group in ET.fromstring(svg.encode()).iter(f"{SVG}g"):
        title, box = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        assert title is not None and title.text is not None and box is not None
        found[title.text] = (float(box.get("x", "")), float(box.get("y", "")), float(box.get("width", "")))
    return found


def test_a_box_is_as_wide_as_its_share_upon_its_caller() -> None:
    boxes = _boxes(flame_graph(STACKS, "title", "caption"))
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
    svg = under_load_flame_graph(FOUND, "The router under load: 64b ≥ 3 Mpps", simulated=True)
    assert "2 s, 100 samples, 2 CPUs, load 3 Mpps" in svg
    assert "The router under load: 64b ≥ 3 Mpps" in svg and "SIMULATED" in svg
    unmarked = under_load_flame_graph(replace(FOUND, cpus=()), "t")
    assert "2 s, 100 samples, 1 CPU, load" in unmarked
    assert "SIMULATED" not in unmarked
    assert under_load_flame_graph(replace(FOUND, sampled=None), "t") == ""
    assert under_load_flame_graph(replace(FOUND, sampled=SampledStacks(2.0, why="no perf")), "t") == ""


def test_a_recursion_is_cut_at_a_height() -> None:
    boxes = _boxes(flame_graph({";".join(f"f{depth}" for depth in range(500)): 3}, "t", "c"))
    assert len(boxes) == MOST_ROWS


@given(
    st.dictionaries(st.lists(st.text(max_size=8), min_size=1, max_size=6).map(";".join), st.integers(1, 10**12)).filter(
        bool
    ),
    st.text(max_size=200),
)
def test_every_mapping_is_one_picture(stacks: dict[str, int], words: str) -> None:
    boxes = _boxes(flame_graph(stacks, words, words, simulated=True))
    assert all(left >= 10 and left + width <= 1191 and width >= 0 for left, _, width in boxes.values())


def test_a_run_keeps_the_stacks_of_a_flame_graph(tmp_path: Path) -> None:
    run = "20260101T000000Z-abcdef"
    recorder = Recorder(tmp_path, run, EnvironmentRecord(run, True, "simulated", "netgate6100", "vpp", 50.0, 0.0))
    requirement = cast(Requirement, SimpleNamespace(sentence="64b ≥ 3 Mpps"))
    graph = recorder.keep_under_load("under load", requirement, FOUND)
    assert recorder.keep_under_load("under load that passed", requirement, replace(FOUND, sampled=None)) == ""
    recorder.close()
    folder = recorder.folder.path
    records = [UnderLoadRecord.from_json(line) for line in (folder / "results.jsonl").read_bytes().splitlines()]
    assert all(record.report == replace(FOUND, raw={}, sampled=None) for record in records)
    first, *_ = (json.loads(line) for line in (folder / "telemetry.jsonl").read_text().splitlines())
    assert first["texts"]["folded stacks"] == "main;a 50\nmain;a;b 30\nmain;c 20\n" and "SIMULATED" in graph
    assert not check_integrity(folder).altered
