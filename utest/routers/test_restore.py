"""Routers that refuse commands at restore, and routers that restarted."""

from __future__ import annotations

from typing import Any

import pytest

from linerate.counts.telemetry import Telemetry
from linerate.errors import TestbedError
from linerate.routers.base import Result
from linerate.routers.shell_commands import ShellCommands
from linerate.session.router_watch import RouterRestarted, RouterWatch

GONE = Result("", "clib_socket_init: connect: Connection refused\n", 1, 0.01)
DONE = Result("", "", 0, 0.01)


class Shell:
    """Gives the same answer to every command."""

    def __init__(self) -> None:
        self.answer = DONE

    def __call__(self, command: str, limit: float) -> Result:
        return self.answer


def changed(*names: str) -> tuple[Shell, ShellCommands]:
    shell = Shell()
    commands = ShellCommands(shell, 5.0, False)
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


def test_a_stopped_vpp_is_reported_as_not_answering():
    shell = Shell()
    shell.answer = GONE
    with pytest.raises(TestbedError, match=r"'sudo -n vppctl show clock': VPP does not answer: .*check that it runs"):
        ShellCommands(shell, 5.0, True).run("vppctl", "show", "clock")


def test_a_sudo_password_prompt_is_reported_as_missing_rights():
    shell = Shell()
    shell.answer = Result("", "sudo: a password is required\n", 1, 0.01)
    with pytest.raises(TestbedError, match=r"the router refused 'sudo -n vppctl show clock' .*check the user's rights"):
        ShellCommands(shell, 5.0, True).run("vppctl", "show", "clock")


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
