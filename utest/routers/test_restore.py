"""Routers that refuse commands at restore, and routers that restarted."""

from __future__ import annotations

from typing import Any

import pytest

from lineproof.counts.telemetry import Telemetry
from lineproof.errors import TestbedError
from lineproof.routers.base import Result
from lineproof.routers.changing_commands import ChangingCommands
from lineproof.session.router_watch import RouterRestarted, RouterWatch

GONE = Result("", "clib_socket_init: connect: Connection refused\n", 1, 0.01)
DONE = Result("", "", 0, 0.01)


class Shell:
    """Gives the same answer to every command."""

    def __init__(self) -> None:
        self.answer = DONE

    def __call__(self, command: str, limit: float) -> Result:
        return self.answer


def changed(*names: str) -> tuple[Shell, ChangingCommands]:
    shell = Shell()
    commands = ChangingCommands(shell, 5.0, False)
    for name in names:
        commands.change(("vppctl", "set", name), ("vppctl", "unset", name), silent=True)
    return shell, commands


def test_failed_undos_with_the_same_cause_are_reported_together():
    shell, commands = changed("a", "b")
    shell.answer = GONE
    with pytest.raises(TestbedError) as caught:
        commands.restore()
    assert str(caught.value) == (
        "the router's former configuration could not be restored in full; what is left there is undone by these"
        " commands on the router, in this order: 'vppctl unset b', 'vppctl unset a' (VPP does not answer:"
        " clib_socket_init: connect: Connection refused)"
    )
    commands.restore()  # may be repeated


@pytest.mark.parametrize(
    ("status", "output", "gone"),
    [
        (2, "RTNETLINK answers: No such process", True),
        (2, "RTNETLINK answers: Cannot assign requested address", True),
        (2, "Error: ipv4: Address not found.", True),
        (1, 'Cannot find device "lr0.100"', True),
        (1, "ifconfig: ioctl (SIOCDIFADDR): Can't assign requested address", True),
        (1, "pfctl: pf already enabled", True),
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
    shell = Shell()
    commands = ChangingCommands(shell)
    commands.change(("set", "a"), ("unset", "a"), silent=status == 0)
    shell.answer = Result("", f"{output}\n", status, 0.01) if status else Result(f"{output}\n", "", 0, 0.01)
    if gone:
        commands.restore()
    else:
        with pytest.raises(TestbedError, match="could not be restored"):
            commands.restore()


def test_a_stopped_vpp_is_reported_as_not_answering():
    shell = Shell()
    shell.answer = GONE
    with pytest.raises(TestbedError, match=r"'sudo -n vppctl show clock': VPP does not answer: .*check that it runs"):
        ChangingCommands(shell, 5.0, True).run("vppctl", "show", "clock")


def test_a_sudo_password_prompt_is_reported_as_missing_rights():
    shell = Shell()
    shell.answer = Result("", "sudo: a password is required\n", 1, 0.01)
    with pytest.raises(TestbedError, match=r"the router refused 'sudo -n vppctl show clock' .*check the user's rights"):
        ChangingCommands(shell, 5.0, True).run("vppctl", "show", "clock")


def test_a_restart_is_remembered_until_the_router_is_configured_again():
    uptimes = iter((1000.0, 1000.1, 3.0))

    class Rebooting:
        def read(self) -> Telemetry:
            return Telemetry(next(uptimes), {})

    router: Any = Rebooting()
    watch = RouterWatch(router, 1.0, tuple)
    watch.read()
    watch.read()
    assert not watch.restarted
    with pytest.raises(RouterRestarted):
        watch.read()
    assert watch.restarted
    watch.configured()
    assert not watch.restarted


def test_an_undo_whose_answer_is_cut_is_reported() -> None:
    shell = Shell()
    commands = ChangingCommands(shell, 5.0, False)
    commands.change(("sysctl", "-w", "net.a=1"), ("sysctl", "-w", "net.a=0"))
    shell.answer = Result("net.a =", "", 0, 0.01)
    with pytest.raises(TestbedError, match=r"'sysctl -w net\.a=0' \(the router's answer to .* is not complete: "):
        commands.restore()
    with pytest.raises(TestbedError, match=r"answer to 'sysctl -n net\.a' is not complete: 'net\.a ='; run again"):
        commands.run("sysctl", "-n", "net.a")
