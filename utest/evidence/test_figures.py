"""A run keeps the stacks of its router."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from lineproof.core.quantity import Requirement
from lineproof.core.under_load import SampledStacks, UnderLoad
from lineproof.evidence.integrity import check_integrity
from lineproof.evidence.recorder import Recorder
from lineproof.evidence.records import EnvironmentRecord, UnderLoadRecord

FOUND = UnderLoad(
    3e6, 3e6, 2e6, unread={"x": "why"}, sampled=SampledStacks(2.0, {"main;a;b": 30, "main;a": 50, "main;c": 20}, 1)
)


def test_a_run_keeps_the_stacks_of_a_flame_graph(tmp_path: Path) -> None:
    run = "20260101T000000Z-abcdef"
    recorder = Recorder(tmp_path, run, EnvironmentRecord(run, True, "simulated", "netgate6100", "vpp", 50.0, 0.0))
    requirement = cast(Requirement, SimpleNamespace(sentence="64b ≥ 3 Mpps"))
    recorder.keep_under_load("under load", requirement, FOUND)
    recorder.keep_under_load("under load that passed", requirement, replace(FOUND, sampled=None))
    recorder.close()
    folder = recorder.folder.path
    records = [UnderLoadRecord.from_json(line) for line in (folder / "results.jsonl").read_bytes().splitlines()]
    assert all(record.report == replace(FOUND, raw={}, sampled=None) for record in records)
    first, *_ = (json.loads(line) for line in (folder / "telemetry.jsonl").read_text().splitlines())
    assert first["texts"]["folded stacks"] == "main;a 50\nmain;a;b 30\nmain;c 20\n"
    assert not check_integrity(folder).altered
