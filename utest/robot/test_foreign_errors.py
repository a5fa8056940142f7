"""What a keyword or a listener did not foresee is one paragraph, and never the router's fault."""

from __future__ import annotations

import errno
import logging
from typing import Any

import pytest
from robot.api import SkipExecution
from robot.errors import RobotError

from lineproof.errors import SlaFailure, TestbedError
from lineproof.robot import Lineproof
from lineproof.robot.library import CalmListener


@pytest.mark.parametrize("error", [KeyError("x"), RecursionError(), MemoryError(), OSError(5, "I/O error", "/x")])
def test_a_foreign_error_of_a_keyword_is_the_testbeds(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    found = raised_for(error, monkeypatch)
    assert isinstance(found, TestbedError)
    assert type(error).__name__ not in str(found)


def test_an_assertion_that_is_no_verdict_does_not_blame_the_router(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(raised_for(AssertionError("stdin"), monkeypatch), TestbedError)


@pytest.mark.parametrize("error", [SlaFailure("FAIL: x"), TestbedError("y"), RobotError("z"), SkipExecution("skip")])
def test_own_errors_and_those_of_robot_stay(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    assert raised_for(error, monkeypatch) is error


def raised_for(error: Exception, monkeypatch: pytest.MonkeyPatch) -> BaseException:
    """Return what Robot sees of a keyword that raises *error*."""
    library = Lineproof()

    def broken(*_: object) -> None:
        raise error

    monkeypatch.setitem(library.keywords, "end_testbed", broken)
    with pytest.raises((Exception,)) as caught:
        library.run_keyword("end_testbed", [])
    return caught.value


def test_a_listeners_error_is_a_warning_once(caplog: pytest.LogCaptureFixture) -> None:
    class Writing:
        ROBOT_LISTENER_API_VERSION = 2

        def end_test(self, name: str, attributes: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device", f"/full/{name}")

    tidied: list[bool] = []
    listener = CalmListener(Writing(), "results lack something", lambda: tidied.append(True))
    with caplog.at_level(logging.WARNING):
        for name in ("one", "two"):
            listener.end_test(name, {})
    (warning,) = caplog.records
    assert warning.getMessage().startswith("results lack something: /full/one: No space left on device (")
    assert tidied == [True, True]
    assert not hasattr(listener, "start_test")
