"""Recovery and a restart of the router on the simulated testbed."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from lineproof.core.rule import Ruling
from lineproof.errors import SentenceError, TestbedError
from lineproof.procedures.procedure import ProcedureRun
from lineproof.procedures.rfc2544.overload import RESET
from lineproof.session.session import Session
from lineproof.simulation import parse_fault
from lineproof.system.ssh_shell import SshShell
from support import simulated_session
from support.simulated_session import judged

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """With a clock that lets a busy machine read the counts often enough after a change of load."""
    with simulated_session.opened(tmp_path_factory.mktemp("slower"), clock_speed=10) as found:
        yield found


def test_a_router_without_faults_recovers_at_once(slower: Session) -> None:
    found = judged(slower, "64b 1-flow recovers in ≤ 5 s at 5.5 Mpps")
    assert found.ruling is Ruling.PASS, found.message
    assert found.figures["recovery_low_s"] == 0 and 0.05 < found.figures["overload_loss_ratio"] < 0.12
    assert found.trials[0].outcome.readings["second_load_pps"] == 2.75e6


def test_a_router_that_keeps_losing_frames_does_not_recover(slower: Session) -> None:
    # from before the change until 5 s after it
    loss = {"at": 9.0, "for": 6.0, "share": 0.2, "port": 0}
    slower.cause_fault(parse_fault("one-way loss", start=1, every=True, **loss))
    found = judged(slower, "64b 1-flow recovers in ≤ 2 s at 5.5 Mpps")
    # a busy machine may read the counts too late to know when
    assert found.ruling is not Ruling.PASS, found.message
    assert found.ruling is Ruling.INCONCLUSIVE or 2 < found.figures["recovery_low_s"] < 6


def test_a_router_that_cannot_be_reset_is_reported(slower: Session) -> None:
    with pytest.raises(SentenceError, match="a reset is measured at a throughput, and none was found"):
        RESET.measure(ProcedureRun(slower), "unidirectional", [])
    with pytest.raises(TestbedError, match="ended with status"):
        slower.router.reset("no-such-command")


def test_a_login_that_a_restart_interrupts_is_repeated(slower: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = SshShell(slower.testbed.facts.router)
    with monkeypatch.context() as patch:
        patch.setattr(socket, "TCP_NODELAY", 0x7FFFFFFF)  # as the kernel answers for a socket that is closed
        with pytest.raises(TestbedError, match=r"no SSH login to .*: Protocol not available; check"):
            shell.open()
    shell.open()
    assert shell("vppctl show version", 10.0).status == 0
    shell.close()
