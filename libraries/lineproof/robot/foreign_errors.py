"""What no other code caught: errors of Python and of other libraries, as one paragraph in Robot's results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from robot.api import logger
from robot.errors import RobotError

from ..errors import LineproofError, SlaFailure, TestbedError, in_words


@contextmanager
def one_paragraph() -> Iterator[None]:
    """Within it, raise TestbedError in place of an error that is neither Lineproof's nor Robot's own.

    An ``AssertionError`` that is no SlaFailure is not the router's fault either.
    """
    try:
        yield
    except (LineproofError, SlaFailure, RobotError):
        raise
    except Exception as error:  # whatever a library raises is no fault of the router
        if hasattr(error, "ROBOT_CONTINUE_ON_FAILURE") or hasattr(error, "ROBOT_SKIP_EXECUTION"):  # of Robot's API
            raise
        raise TestbedError(in_words(error)) from error


class CalmListener:
    """*listener*, whose errors are warnings, each kind once: what it writes follows from the records.

    *what*: what its errors mean, in words; *tidy*: removes what it left half written.
    """

    def __init__(self, listener: Any, what: str | Callable[[], str], tidy: Callable[[], None] = lambda: None) -> None:
        self.ROBOT_LISTENER_API_VERSION = listener.ROBOT_LISTENER_API_VERSION
        self._listener, self._what, self._tidy = listener, what, tidy
        self._warned: set[tuple[type, int | None]] = set()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._listener, name)
        if name.startswith("_") or not callable(found):
            return found

        def call(*arguments: Any) -> None:
            try:
                found(*arguments)
            except RobotError:
                raise
            except Exception as error:  # what keeps a listener from writing must not end the run
                self._tidy()
                kind = type(error), getattr(error, "errno", None)
                if kind not in self._warned:
                    self._warned.add(kind)
                    logger.warn(f"{self._what if isinstance(self._what, str) else self._what()}: {in_words(error)}")

        return call
