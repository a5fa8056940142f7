"""The verdict at each fault of the simulated testbed, and the ledger of a failure, which says where frames went.

Each kind of fault is caused once, under one of the three sentences in turn; ``LINEPROOF_MATRIX=whole`` (``tox -e
matrix``) takes every case under every sentence.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lineproof.core.rule import Ruling
from lineproof.errors import TestbedError
from lineproof.generators.site import GeneratorEndpoint
from lineproof.project import Project
from lineproof.robot.shared import Shared
from lineproof.robot.testbed import FaultKeywords
from lineproof.session.plan import Plan
from lineproof.session.session import Session
from lineproof.testbed.facts import NO_ROUTER, TestbedFacts
from lineproof.testbed.opening import OpenTestbed
from support import faults, robot_run
from support.simulated_session import judged

ROOT = robot_run.ROOT
CASES = {case.name: case for case in faults.CASES}
QUANTITIES = tuple(faults.SENTENCES)
SLOW = ("server restart",)
"""Kinds that a limit of many seconds ends, hence under ``LINEPROOF_MATRIX`` only; test_reconnection.py has the like."""


def cells() -> list[tuple[str, str]]:
    """Quantity and fault: all of them, or the first of each kind."""
    if os.environ.get("LINEPROOF_MATRIX") == "whole":
        return [(quantity, name) for name in CASES for quantity in QUANTITIES]
    firsts = {case.kind: case.name for case in reversed(faults.CASES) if case.kind not in SLOW}
    return [(QUANTITIES[place % 3], name) for place, name in enumerate(firsts.values())]


@pytest.mark.slow
@pytest.mark.parametrize(("quantity", "name"), cells())
def test_what_becomes_of_a_fault(quantity: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    result = faults.run(CASES[name], quantity, Project.find(ROOT))
    assert result.as_expected(CASES[name], quantity), result.text


def test_the_keyword_refuses_a_bench_that_is_not_simulated() -> None:
    plan = Plan.read(Project.find(ROOT), "netgate6100", "vpp", "simulated", "quick")
    testbed = OpenTestbed(
        TestbedFacts(GeneratorEndpoint("", 0, 0), NO_ROUTER, (), 10e9, "for a test")  # no control socket
    )
    session = Session(plan, testbed)
    with pytest.raises(TestbedError, match="'link flap' can be caused on a simulated testbed only"):
        FaultKeywords(Shared(opened=[("", session)])).cause_fault("link flap", at="0.5")


MUCH = "64b 1-flow unidirectional ≥ 9 Mpps"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("platform", "software", "cause"),
    [
        ("netgate6100", "vpp", "rx-miss at TenGigabitEthernet3/0/0"),
        ("netgate6100", "linux", "rx_missed at "),
        ("freebsd_apu2", "igb_tuned", "Idrop at igb0"),
    ],
)
def test_every_kind_of_router_accounts_for_an_overload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str, software: str, cause: str
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    plan = Plan.read(Project.find(ROOT), platform, software, faults.TESTBED, faults.GOAL)
    with faults.opened(plan) as session:
        sentence = MUCH if platform == "netgate6100" else MUCH.replace("9 Mpps", "1.2 Mpps")
        verdict = judged(session, sentence)
    assert verdict.ruling is Ruling.FAIL
    (ledger,) = verdict.ledgers
    assert ledger.lost == verdict.trials[-1].lost > 0
    assert (
        ledger.unexplained,
        ledger.unexplained_before_rx,
        ledger.unexplained_rx_to_tx,
        ledger.unexplained_after_tx,
    ) == (0, 0, 0, 0)
    assert f"{cause}" in verdict.message and "its card's receive queue was full" in verdict.message
    assert "none unexplained" in verdict.message
