"""What is said of a router that cannot be told any more, and of one that restarted."""

from __future__ import annotations

import pytest

from linerate.counts.telemetry import Telemetry
from linerate.errors import TestbedError
from linerate.routers.base import Result
from linerate.routers.remote import Remote
from linerate.session.router_watch import RouterRestarted, RouterWatch

GONE = Result("", "clib_socket_init: connect: Connection refused\n", 1, 0.01)
DONE = Result("", "", 0, 0.01)


class Shell:
    """Answers every command alike."""

    def __init__(self) -> None:
        self.answer = DONE

    def __call__(self, command: str, limit: float) -> Result:
        return self.answer


def changed(*names: str) -> tuple[Shell, Remote]:
    shell = Shell()
    remote = Remote(shell, 5.0, False)
    for name in names:
        remote.change(("vppctl", "set", name), ("vppctl", "unset", name), silent=True)
    return shell, remote


def test_one_cause_is_told_once_with_all_that_could_not_be_undone():
    shell, remote = changed("a", "b")
    shell.answer = GONE
    with pytest.raises(TestbedError) as caught:
        remote.restore()
    assert str(caught.value) == (
        "the router's former configuration could not be restored in full: 'vppctl unset b', 'vppctl unset a' (VPP does"
        " not answer: clib_socket_init: connect: Connection refused)"
    )
    remote.restore()  # harmless when repeated


def test_vpp_that_does_not_run_is_no_question_of_names():
    shell = Shell()
    shell.answer = GONE
    with pytest.raises(TestbedError, match=r"'sudo -n vppctl show clock': VPP does not answer: .*look whether it runs"):
        Remote(shell, 5.0, True).run("vppctl", "show", "clock")


def test_sudo_that_asks_for_a_password_is_no_question_of_vpp():
    shell = Shell()
    shell.answer = Result("", "sudo: a password is required\n", 1, 0.01)
    with pytest.raises(TestbedError, match=r"the router refused 'sudo -n vppctl show clock' .*check the user's rights"):
        Remote(shell, 5.0, True).run("vppctl", "show", "clock")


def test_a_restart_is_known_until_the_router_is_configured_anew():
    uptimes = iter((1000.0, 1000.1, 3.0))

    class Rebooting:
        def read(self) -> Telemetry:
            return Telemetry(next(uptimes), {})

    watch = RouterWatch(Rebooting(), 1.0, tuple)
    watch.read()
    watch.read()
    assert not watch.restarted
    with pytest.raises(RouterRestarted):
        watch.read()
    assert watch.restarted
    watch.configured()
    assert not watch.restarted
