"""A noisy router of known capacity, judged by the whole suite: 1 % above the SLA passes, 1 % below fails."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from support import robot_run

pytestmark = pytest.mark.slow

CAPACITY = 5.024e6
"""Frames/s of one flow through one core of the modelled Netgate 6100, without noise (docs/fidelity.md)."""

NOISE = "noise: {capacity: 0.003, bursts: {packets: 500, every: 50}}"
"""That of docs/methodology/operating-characteristic.md."""


SEEDS = int(os.environ.get("LINEPROOF_NOISY_ROUTERS", "1"))
"""How many routers are judged, each with noise of its own."""


@pytest.mark.parametrize("seed", range(11, 11 + SEEDS))
def test_one_per_cent_is_told_apart(tmp_path: Path, seed: int):
    shutil.copytree(robot_run.ROOT / "variables", tmp_path / "variables")
    testbed = (tmp_path / "variables" / "testbeds" / "simulated.yaml").read_text(encoding="utf-8")
    testbed = testbed.replace("testbed: simulated", "testbed: noisy").replace("seed: 0", f"seed: {seed}\n{NOISE}")
    (tmp_path / "variables" / "testbeds" / "noisy.yaml").write_text(testbed, encoding="utf-8")
    suite = tmp_path / "suite.robot"
    lines = [
        "*** Settings ***",
        f"Resource    {robot_run.ROOT}/resources/acceptance.resource",
        "Suite Setup    Open Testbed For    netgate6100    software=vpp    testbed=noisy",
        "Suite Teardown    Close Testbed",
        "*** Test Cases ***",
    ]
    for percent in (-1, 1):
        sla = CAPACITY / (1 + percent / 100) / 1e6
        lines += [f"Carries {percent:+d}", f"    64b 1-flow unidirectional ≥ {sla:.4f} Mpps"]
        lines += [f"Forwards {percent:+d}", f"    64b 1-flow unidirectional forwards ≥ {sla:.4f} Mpps"]
    suite.write_text("\n".join(lines), encoding="utf-8")
    run = robot_run.run(tmp_path, suite, "-v", f"PROJECT:{tmp_path}")
    assert {name: message.split(":")[0] for name, (_, message) in run.tests.items()} == {
        "Carries -1": "FAIL",
        "Forwards -1": "FAIL",
        "Carries +1": "PASS",
        "Forwards +1": "PASS",
    }
