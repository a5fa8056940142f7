"""What is known of the generator's card, through the whole chain as a person sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support import robot_run

pytestmark = pytest.mark.slow

SOURCE = 'source: {title: a page, url: "https://example.org/", says: it says so, seen: "2026-11-21"}'
CARD = f"""\
card: lineproof_model
name: Model
drivers: [lineproof_model]
limits:
  - {{pps_per_card: 27000000, {SOURCE}}}
latency:
  - {{remedy: use another card, {SOURCE}}}
"""

SUITE = f"""\
*** Settings ***
Resource    {robot_run.ROOT}/resources/acceptance.resource
Suite Setup    Open Testbed For    netgate6100    software=vpp    goal=quick
Suite Teardown    Close Testbed

*** Test Cases ***
Above
    64b bidirectional ≥ 96.5% line rate each way
Below
    64b bidirectional ≥ 85% line rate each way
Latency
    1514b unidirectional latency p50 ≤ 100 ms at 10% line rate
Kept
    1514b bidirectional ≥ 90% line rate each way
"""


def test_published_ceilings_in_verdicts_and_refusals_before_traffic(tmp_path: Path):
    root = robot_run.project(tmp_path)
    (root / "variables" / "generators" / "lineproof_model.yaml").write_text(CARD, encoding="utf-8")
    suite = tmp_path / "suite.robot"
    suite.write_text(SUITE, encoding="utf-8")
    found = robot_run.run(tmp_path, suite, "-v", f"PROJECT:{root}")
    said = {name: message for name, (_, message) in found.tests.items()}
    assert said["Above"].startswith(
        "INCONCLUSIVE: 64b bidirectional ≥ 96.5% line rate each way: the generator's card is"
    )
    assert "this card (Model) is known to stop at 27 Mpps per card, 2 ports of it send: 13.5 Mpps from" in said["Above"]
    assert said["Below"].startswith("FAIL: ")
    assert "known not to measure the latency under lineproof" in said["Latency"]
    assert said["Latency"].startswith("INCONCLUSIVE: ")
    assert found.tests["Kept"][0] == "PASS"

    (run,) = (tmp_path / "results").iterdir()
    card = json.loads((run / "environment.json").read_text())["extra"]["generator_card"]
    assert (card["card"], card["file"], len(card["sha256"])) == ("lineproof_model", "lineproof_model.yaml", 64)
    records = [json.loads(line) for line in (run / "requirements.jsonl").read_text().splitlines()]
    applied = {record["test"]: record["extra"].get("generator_ceiling") for record in records}
    assert applied["Above"]["limit"]["pps_per_card"] == 27e6
    assert applied["Below"] is None
