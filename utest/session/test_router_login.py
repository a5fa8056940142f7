"""A login that succeeds only after its limit is ended with the session."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lineproof.errors import TestbedError
from lineproof.session.router import RouterConnection


class LateShell:
    """Its login is given up after a limit, and succeeds then."""

    def __init__(self, made: list[LateShell]) -> None:
        self.logged_in = False
        made.append(self)

    def open(self) -> None:
        self.logged_in = True
        raise TestbedError("the SSH login to the router did not end within 30 s")

    def close(self) -> None:
        self.logged_in = False


@pytest.mark.parametrize("end", ["restore", "log_in"])
def test_a_login_that_comes_too_late_is_ended(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[LateShell] = []
    monkeypatch.setattr("lineproof.session.router.SshShell", lambda login, dialogue: LateShell(made))
    nothing: Any = None
    plan: Any = SimpleNamespace(
        software=SimpleNamespace(shell="linux"),
        command_file=None,
        link_wait=15.0,
        testbed=SimpleNamespace(link_wait=15.0),
    )
    testbed: Any = SimpleNamespace(facts=SimpleNamespace(router=None, sides=()))
    router = RouterConnection(plan, testbed, nothing, nothing)
    with pytest.raises(TestbedError):
        router.connect()
    if end == "restore":
        router.restore()
    else:
        with pytest.raises(TestbedError):
            router.log_in()
    assert not made[0].logged_in
