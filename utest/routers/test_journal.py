"""Whatever moment a run is killed at, its changes are found and undone within one limit; or it says what stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from lineproof.errors import TestbedError
from lineproof.project import Project
from lineproof.routers import changes as routers_changes
from lineproof.routers.changes import RESTORE_LIMIT, Changes
from lineproof.routers.description import RouterDescription
from lineproof.routers.journal import Change, ChangeJournal, look
from lineproof.session import router
from lineproof.session.plan import Plan
from lineproof.session.session import Session
from lineproof.system.command_line import ShellCommands
from lineproof.system.ssh_shell import CLOSE_LIMIT, Result, RouterUnreachable
from support.paths import ROOT
from support.simulated_router import CHANGE, KEY, ROUTER, full_disk, left, occasion, undone, untouched

pytestmark = pytest.mark.usefixtures("state")


def test_a_router_in_use_is_refused_at_any_address() -> None:
    with closing(ChangeJournal.claim(occasion(), KEY)) as held:
        held.add(CHANGE)
        with pytest.raises(TestbedError, match=rf"lab-router:22 is in use as {ROUTER} by process {os.getpid()}, since"):
            ChangeJournal.claim(replace(occasion(), router="lab-router:22"), KEY)
        found = look(KEY)
        assert found is not None and found.in_use
        ChangeJournal.claim(replace(occasion(), router="lab-router:22"), "SHA256:other/key").close()
        held.drop(CHANGE)
    held.close()  # harmless when repeated
    assert look(KEY) is None


@pytest.mark.parametrize("first", [KEY, "SHA256:ed/25519"])
def test_a_router_of_several_host_keys_has_one_journal(first: str) -> None:
    """Whoever knows only one of them has found the first by logging in, and finds the journal without, later."""
    keys = "SHA256:rsa", first
    with closing(ChangeJournal.claim(occasion(), *keys)) as held:
        held.add(CHANGE)
        for other in (keys, (first, first), ("SHA256:ecdsa", first)):
            with pytest.raises(TestbedError, match="is in use"):
                ChangeJournal.claim(occasion(), *other)
    assert {look(key).changes for key in (*keys, "SHA256:ecdsa")} == {(CHANGE,)}
    with closing(ChangeJournal.claim(occasion(), first, first)) as held:
        held.drop(CHANGE)
    assert not any(map(look, keys))


def test_what_was_left_under_a_key_is_found_although_the_router_has_got_another_one_before_it() -> None:
    left(CHANGE)
    for _ in range(2):
        with closing(ChangeJournal.claim(occasion(), KEY, "SHA256:ed25519")) as held:
            assert look(KEY) is None or held.pending == (CHANGE,)
            held.drop(CHANGE)
    assert held.path.name == "SHA256:ed25519"


@pytest.mark.slow
def test_a_router_is_free_again_when_its_run_is_killed() -> None:
    text = (
        "from lineproof.routers.journal import ChangeJournal, Occasion\n"
        f"journal = ChangeJournal.claim(Occasion({ROUTER!r}, 'linux'), {KEY!r})\nprint('held', flush=True)\ninput()"
    )
    run = [sys.executable, "-c", text]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "held\n"
        with pytest.raises(TestbedError, match=f"{ROUTER} is in use by another process of this machine"):
            ChangeJournal.claim(occasion(), KEY)
        child.kill()
    ChangeJournal.claim(occasion(), KEY).close()
    assert look(KEY) is None


def test_an_undo_that_fails_is_listed_kept_and_tried_again() -> None:
    path = left(CHANGE, Change(("pfctl -d",), ("pfctl -e",)))
    answer = Result("", "pfctl: no\n", 1, 0.0)
    with pytest.raises(TestbedError, match=rf"'pfctl -e', 'ip link set dev eth1 down' \(status 1: pfctl: no\).*{path}"):
        undone(lambda command, limit: answer)
    found = look(KEY)
    assert found is not None and len(found.changes) == 2
    ran: list[str] = []
    undone(lambda command, limit: ran.append(command) or Result("", "", 0, 0.0), sudo=True)
    assert ran == ["sudo -n pfctl -e", "sudo -n ip link set dev eth1 down"] and not path.exists()


@pytest.mark.parametrize("damage", [b"", b"{}", b"\0" * 4096, b'"undo":3,"x":', b'"pid":"x"', b'"since":null'])
def test_a_damaged_journal_is_named_and_not_thrown_away(damage: bytes) -> None:
    path = left(CHANGE, Change(("pfctl -d",), ("pfctl -e",)))
    key = damage.partition(b":")[0]
    damaged = path.read_bytes().replace(key + b":", damage, 1) if b":" in damage else damage
    path.write_bytes(damaged)
    with pytest.raises(TestbedError, match=f"{path}, the journal of what was changed on the router, .* damaged"):
        ChangeJournal.claim(occasion(), KEY)
    assert path.read_bytes() == damaged


# -- what is written ---------------------------------------------------------------------------------------------------


def test_a_change_that_cannot_be_noted_is_not_made_and_an_undo_is() -> None:
    with closing(ChangeJournal.claim(occasion(), KEY)) as journal:
        with (
            full_disk(),
            pytest.raises(TestbedError, match=r"the router is not changed any further, .* cannot be written: No space"),
        ):
            journal.add(CHANGE)
        assert journal.pending == ()
        journal.add(CHANGE)
        with full_disk():
            journal.drop(CHANGE)
        assert journal.pending == ()


def test_a_change_that_is_made_again_is_undone_once() -> None:
    left(CHANGE)
    journal = ChangeJournal.claim(occasion(), KEY)
    journal.add(CHANGE)
    assert journal.pending == (CHANGE,)
    journal.drop(CHANGE)
    journal.close()
    assert look(KEY) is None


@pytest.mark.parametrize("kind", ["freebsd", "vpp"])
def test_what_was_changed_as_one_kind_of_router_is_not_undone_as_another(kind: str) -> None:
    path = left(CHANGE)
    for asked in (False, True):
        with pytest.raises(TestbedError, match=rf"'shell: linux' by .* now is 'shell: {kind}'; .* remove {path}"):
            undone(untouched, occasion(kind=kind), asked=asked)
    assert path.exists()


GONE = Result("", "clib_socket_init: connect: Connection refused\n", 1, 0.01)
DONE = Result("", "", 0, 0.01)


class Shell:
    """Keeps what it runs, and gives ``answer`` to every command; *before* may raise."""

    def __init__(self, answer: Result = DONE) -> None:
        self.ran, self.answer = list[str](), answer
        self.before: Callable[[str, float], None] = lambda command, limit: None

    def __call__(self, command: str, limit: float) -> Result:
        self.ran.append(command)
        self.before(command, limit)
        return self.answer


def described(**keys: str | None) -> RouterDescription:
    return RouterDescription.model_validate({"shell": "x", "channel": "posix", **keys})


def changed(names: str = "abcdefgh", prints: str | None = None) -> tuple[Shell, Changes]:
    shell = Shell()
    commands = Changes(ShellCommands(shell, line=described(prints=prints)))
    for name in names:
        commands.make(Change((f"set {name}",), (f"unset {name}",)))
    shell.ran.clear()
    return shell, commands


@pytest.mark.parametrize(
    ("status", "output", "gone"),
    [
        (2, "RTNETLINK answers: No such process", True),
        (2, "RTNETLINK answers: Cannot assign requested address", True),
        (2, "Error: ipv4: Address not found.", True),
        (1, 'Cannot find device "lr0.100"', True),
        (1, "ifconfig: ioctl (SIOCDIFADDR): Can't assign requested address", True),
        (1, "pfctl: pf already enabled", True),
        # after a restart FreeBSD has one table again
        (1, "setfib: 1: invalid FIB (max 0)", True),
        (1, "route: route has not been found", True),
        (1, "arp: delete: cannot locate 100.65.1.2", True),
        (0, "set interface ip address: 100.65.1.1/24 not found for interface host-vr0", True),
        (127, "sh: 1: ip: not found", False),
        (1, "sudo: ip: command not found", False),
        (1, "pfctl: /dev/pf: No such file or directory", False),
        (2, "RTNETLINK answers: Operation not permitted", False),
    ],
)
def test_an_undo_may_find_its_change_gone_but_not_its_program(status: int, output: str, gone: bool) -> None:
    shell, commands = changed("a", prints="x")
    shell.answer = Result("", f"{output}\n", status, 0.01) if status else Result(f"{output}\n", "", 0, 0.01)
    if gone:
        commands.restore()
    else:
        with pytest.raises(TestbedError, match="could not be restored"):
            commands.restore()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (GONE, r"'sudo -n vppctl show clock': VPP does not answer: .*check that it runs"),
        (
            Result("", "sudo: a password is required\n", 1, 0.01),
            r"the router refused 'sudo -n vppctl show clock' .*check the user's rights",
        ),
    ],
)
def test_a_stopped_vpp_is_told_from_missing_rights(answer: Result, says: str) -> None:
    with pytest.raises(TestbedError, match=says):
        ShellCommands(Shell(answer), True, described(description="VPP"), "vppctl").show("vppctl show clock")


def test_an_undo_whose_answer_is_cut_is_reported() -> None:
    shell = Shell()
    commands = ShellCommands(shell)
    made = Changes(commands)
    made.make(Change(("sysctl -w net.a=1",), ("sysctl -w net.a=0",)))
    shell.answer = Result("net.a =", "", 0, 0.01)
    with pytest.raises(TestbedError, match=r"'sysctl -w net\.a=0' \(the router's answer to .* is not complete: "):
        made.restore()
    with pytest.raises(TestbedError, match=r"answer to 'sysctl -n net\.a' is not complete: 'net\.a ='; run again"):
        commands.show("sysctl -n net.a")


def listed(names: str) -> str:
    return ", ".join(f"'unset {name}'" for name in names)


def test_all_undos_share_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    shell, commands = changed()
    now = [0.0]
    monkeypatch.setattr("lineproof.routers.changes.time.monotonic", lambda: now[0])

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


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_an_interrupt_loses_no_undo(interrupt: type[BaseException]) -> None:
    shell, commands = changed()

    def stop(command: str, limit: float) -> None:
        if command in ("unset e", "set i"):
            raise interrupt

    shell.before = stop
    with pytest.raises(interrupt):
        commands.make(Change(("set i",), ("unset i",)))
    with pytest.raises(interrupt):
        commands.restore()
    shell.before = lambda command, limit: None
    shell.ran.clear()
    commands.restore()
    assert shell.ran == [f"unset {name}" for name in "edcba"]


@pytest.mark.slow
def test_a_router_whose_ssh_server_stands_still_is_left_in_time(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = float(os.environ.get("LINEPROOF_RESTORE_LIMIT", "1.5"))
    monkeypatch.setattr(routers_changes, "RESTORE_LIMIT", limit)
    monkeypatch.setattr(router, "RESTORE_LIMIT", limit)
    session = Session.start(Plan.read(Project(ROOT), "netgate6100", "vpp", "simulated", "quick"))
    (bench,) = session.testbed.belongings.programs
    try:
        session.generator.connect()
        session.router.connect()
        session.router.configure()
        os.kill(bench.pid, signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(TestbedError) as caught:
            session.router.restore()
        assert time.monotonic() - began < limit + 2 * CLOSE_LIMIT
    finally:
        os.kill(bench.pid, signal.SIGCONT)
        session.close()
    undos = ("ip route del 48.", "ip route del 16.", "set interface ip address del", "set interface state")
    assert all(f"'sudo -n vppctl {words}" in str(caught.value) for words in undos), str(caught.value)
