"""A failure on the simulated testbed: its ledger balances, and says where frames went; in a session and in Robot."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineproof.core.rule import Ruling
from lineproof.project import Project
from lineproof.session.plan import Plan
from lineproof.simulation.faults import parse_fault
from support import faults, robot_run
from support.simulated_session import judged

pytestmark = pytest.mark.slow

MUCH = "64b 1-flow unidirectional ≥ 9 Mpps"


def opened_plan(folder: Path, patch: pytest.MonkeyPatch, platform: str, software: str) -> Plan:
    patch.setenv("XDG_RUNTIME_DIR", str(folder))
    return Plan.read(Project.find(robot_run.ROOT), platform, software, faults.TESTBED, faults.GOAL)


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
    with faults.opened(opened_plan(tmp_path, monkeypatch, platform, software)) as session:
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


def test_a_router_that_cannot_be_read_costs_the_ledger_and_not_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = opened_plan(tmp_path, monkeypatch, "netgate6100", "vpp")
    with faults.opened(plan) as session:
        # a reading, and the one that follows a new login
        for _ in range(2):
            session.cause_fault(parse_fault("ssh freeze"))
        # 1.5 % are lost: two trials decide, and the reading after the second one succeeds
        verdict = judged(session, "64b 1-flow unidirectional ≥ 5.1 Mpps")
    assert verdict.ruling is Ruling.FAIL
    assert len(verdict.ledgers) == 2 and "could not be read after trial 1" in verdict.ledgers[0].missing
