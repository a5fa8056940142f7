"""Undoing a router's configuration: one limit for all of it, one login that fails, no undo lost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lineproof.errors import TestbedError
from lineproof.project import Project
from lineproof.routers import changing_commands
from lineproof.routers.base import RESTORE_LIMIT, Result, RouterUnreachable
from lineproof.routers.changing_commands import ChangingCommands
from lineproof.routers.ssh_shell import CLOSE_LIMIT
from lineproof.session import router
from lineproof.session.plan import Plan
from lineproof.session.session import Session
from lineproof.testbed.leases import Lease
from support.paths import ROOT

DONE = Result("", "", 0, 0.01)
NAMES = ("a", "b", "c", "d", "e", "f", "g", "h")


class Shell:
    """Keeps what it runs; *before* may raise."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.before: Callable[[str, float], None] = lambda command, limit: None

    def __call__(self, command: str, limit: float) -> Result:
        self.ran.append(command)
        self.before(command, limit)
        return DONE


def changed() -> tuple[Shell, ChangingCommands]:
    shell = Shell()
    commands = ChangingCommands(shell, 10.0)
    for name in NAMES:
        commands.change(("set", name), ("unset", name))
    shell.ran.clear()
    return shell, commands


def listed(names: str) -> str:
    return ", ".join(f"'unset {name}'" for name in names)


def test_all_undos_share_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    shell, commands = changed()
    now = [0.0]
    monkeypatch.setattr("lineproof.routers.changing_commands.time.monotonic", lambda: now[0])

    def hang(command: str, limit: float) -> None:
        now[0] += limit
        raise TestbedError("it did not answer")

    shell.before = hang
    with pytest.raises(TestbedError) as caught:
        commands.restore()
    assert now[0] == RESTORE_LIMIT == 30.0
    assert str(caught.value) == (
        "the router's former configuration could not be restored in full; what is left there is undone by these"
        f" commands on the router, in this order: {listed('hgf')} (it did not answer); {listed('edcba')} (not within"
        " the 30 s for all of them)"
    )


def test_the_first_login_that_fails_ends_it() -> None:
    shell, commands = changed()

    def refuse(command: str, limit: float) -> None:
        if command == "unset g":
            raise RouterUnreachable("no SSH login to the router at 192.0.2.20:22")

    shell.before = refuse
    with pytest.raises(TestbedError, match=f"in this order: {listed('gfedcba')} .no SSH login"):
        commands.restore()
    assert shell.ran == ["unset h", "unset g"]
    commands.restore()  # may be repeated
    assert len(shell.ran) == 2


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_an_interrupt_loses_no_undo(interrupt: type[BaseException]) -> None:
    shell, commands = changed()

    def stop(command: str, limit: float) -> None:
        if command in ("unset e", "set i"):
            raise interrupt

    shell.before = stop
    with pytest.raises(interrupt):
        commands.change(("set", "i"), ("unset", "i"))
    with pytest.raises(interrupt):
        commands.restore()
    shell.before = lambda command, limit: None
    shell.ran.clear()
    commands.restore()
    assert shell.ran == [f"unset {name}" for name in "edcba"]


@pytest.mark.slow
def test_a_router_whose_ssh_server_stands_still_is_left_in_time(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = float(os.environ.get("LINEPROOF_RESTORE_LIMIT", "1.5"))
    monkeypatch.setattr(changing_commands, "RESTORE_LIMIT", limit)
    monkeypatch.setattr(router, "RESTORE_LIMIT", limit)
    session = Session.start(Plan.read(Project(ROOT), "netgate6100", "vpp", "simulated", "quick"))
    lease = Lease.read(next(runtime.glob("*.lease")))
    shells = lease.processes[1].pid
    try:
        session.generator.connect()
        session.router.connect()
        session.router.configure()
        os.kill(shells, signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(TestbedError) as caught:
            session.router.restore()
        assert time.monotonic() - began < limit + 2 * CLOSE_LIMIT
    finally:
        os.kill(shells, signal.SIGCONT)
        session.close()
    undos = ("ip route del 48.", "ip route del 16.", "set interface ip address del", "set interface state")
    assert all(f"'sudo -n vppctl {words}" in str(caught.value) for words in undos), str(caught.value)
