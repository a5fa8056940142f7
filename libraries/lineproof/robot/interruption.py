"""What ends a run of Robot: Ctrl-C, SIGTERM, a hang-up and SIGQUIT alike, in words, and with a testbed that is closed.

Robot itself handles the first two: it fails the keyword that runs and goes on with the teardowns; a second signal ends
it at once. Here the other two do the same, and while a testbed is open one signal more is needed to end without
closing it.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from robot.running.context import EXECUTION_CONTEXTS

from ..system.signals import handle_ending, interrupt_words, let_go_of_terminal

ROBOTS_WORDS = "Execution terminated by signal"
CLOSING = "The testbed is being closed, which takes a minute at most. The next signal ends without that.\n"


class Interruption:
    """Passes signals on to Robot, and is a listener of it that says which one. *is_open*: whether a testbed is."""

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, is_open: Callable[[], bool]) -> None:
        self._is_open = is_open
        self._robot: Any = None
        self._words, self._passed_on = ROBOTS_WORDS, False
        self._held: int | None = None

    def watch(self) -> None:
        """Begin, where Robot handles signals. May be repeated."""
        self.pass_on()
        found = signal.getsignal(signal.SIGTERM)
        if threading.current_thread() is threading.main_thread() and callable(found) and found != self._handle:
            self._robot = found
            handle_ending(self._handle)

    def pass_on(self) -> None:
        """The testbed is closed: let Robot end, if a signal came meanwhile."""
        number, self._held = self._held, None
        if number is not None and not self._passed_on:
            self._handle(number, None)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        let_go_of_terminal()
        self._words = interrupt_words(number)
        context = EXECUTION_CONTEXTS.current
        closing = self._passed_on or (context is not None and context.in_suite_teardown)
        if self._held is None and closing and self._is_open():
            self._held = number
            if sys.__stderr__ is not None:
                with contextlib.suppress(OSError, ValueError):
                    sys.__stderr__.write(CLOSING)
            return
        self._passed_on = True
        self._robot(number, frame)

    def _name(self, result: Any) -> None:
        if ROBOTS_WORDS in result.message:
            result.message = result.message.replace(ROBOTS_WORDS, self._words)

    def end_keyword(self, data: Any, result: Any) -> None:
        """Say which signal it was."""
        self._name(result)

    def end_test(self, data: Any, result: Any) -> None:
        """Say which signal it was."""
        self._name(result)

    def end_suite(self, data: Any, result: Any) -> None:
        """Say which signal it was."""
        self._name(result)

    def log_message(self, message: Any) -> None:
        """Say which signal it was."""
        self._name(message)
