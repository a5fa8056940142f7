"""Rates show counts with their units, and a run keeps the stacks of its router."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from lineproof.core.quantity import Requirement
from lineproof.core.under_load import UnderLoad
from lineproof.evidence.integrity import check_integrity
from lineproof.evidence.rates import direction_rows, percent
from lineproof.evidence.recorded_sentence import sent_profile
from lineproof.evidence.recorder import Recorder
from lineproof.evidence.records import EnvironmentRecord, UnderLoadRecord
from support.evidence_builders import LINK, trial

SMALL = sent_profile("64b", 64.0)


def test_rates_of_a_late_trial_are_over_the_elapsed_time():
    (row,) = direction_rows([trial(pps=1e6, duration=1.0, elapsed=4.0)], SMALL.mean_size, LINK)
    assert row.offered.pps == pytest.approx(250_000)
    assert row.intended.pps == pytest.approx(1e6)


@pytest.mark.parametrize(
    ("ratio", "words"), [(0, "0 %"), (0.142, "14.20 %"), (1, "100.00 %"), (1e-5, "0.001 %"), (1e-9, "1.0e-07 %")]
)
def test_small_losses_keep_their_digits(ratio, words):
    assert percent(ratio) == words


def test_a_run_keeps_the_stacks_of_a_flame_graph(tmp_path: Path) -> None:
    run = "20260101T000000Z-abcdef"
    recorder = Recorder(tmp_path, run, EnvironmentRecord(run, True, "simulated", "netgate6100", "vpp", 50.0, 0.0))
    requirement = cast(Requirement, SimpleNamespace(sentence="64b ≥ 3 Mpps"))
    found = UnderLoad(3e6, 3e6, 2e6, raw={"show runtime": "…"}, unread={"x": "why"})
    recorder.keep_under_load("under load", requirement, found, {"folded stacks": "main;a 50\n"})
    recorder.close()
    folder = recorder.folder.path
    assert UnderLoadRecord.from_json((folder / "results.jsonl").read_bytes()).report == replace(found, raw={})
    assert json.loads((folder / "telemetry.jsonl").read_text())["texts"]["folded stacks"] == "main;a 50\n"
    assert not check_integrity(folder).altered
