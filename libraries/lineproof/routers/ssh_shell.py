"""The router's shell over SSH, through SSHLibrary, with host key checks, time limits and errors for dropped links."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time

from ..errors import TestbedError
from ..system.login import Login
from ..system.ssh import LOGIN_LIMIT, CommandUnfinished, Connection, NotInTime, run_in_worker_thread
from ..system.ssh_terminal import Dialogue, SshTerminal
from ..visible import shortened, visible
from .base import Result, RouterUnreachable
from .shell_output import plain_text

log = logging.getLogger("lineproof.router")

CLOSE_LIMIT = 5.0
"""Seconds that closing the connection may take."""

HOST_ROLE = "the router"


class SshShell:
    """A :data:`~lineproof.routers.base.Shell` on the machine of *login*.

    A dropped link raises TestbedError; the next command tries once to log in again. With *dialogue* commands are typed
    in a terminal, and have no exit status but 0. *who*: the machine, for messages.
    """

    def __init__(self, login: Login, dialogue: Dialogue | None = None, who: str = HOST_ROLE) -> None:
        self._login, self._dialogue, self._who = login, dialogue, who
        self.connection = Connection(login, who)
        self._terminal: SshTerminal | None = None
        self._deadline = math.inf
        # a command that was interrupted here goes on there: what follows, as its undo, waits for it
        self._one_by_one = threading.Lock()

    def end_by(self, moment: float) -> None:
        """Let logins and commands take until *moment* of the monotonic clock at most, whatever their own limits are."""
        self._deadline = moment

    def open(self) -> None:
        """Log in. Raises TestbedError, which never contains the password."""
        self.close()
        self.connection.open(self._within(LOGIN_LIMIT))

    def first_answers(self, limit: float) -> tuple[tuple[str, str], ...]:
        """Each line that is typed after the login to a terminal, and what it wrote. Raises TestbedError."""
        if self._dialogue is not None and self._terminal is None:
            self("", limit)  # opens it
        return self._terminal.first_answers if self._terminal else ()

    def _within(self, limit: float) -> float:
        return max(0.0, min(limit, self._deadline - time.monotonic()))

    def close(self) -> None:
        """Log out. May be repeated."""
        self._terminal = None
        # a thread that still hangs in an old command may block closing
        with contextlib.suppress(TestbedError):
            run_in_worker_thread(self.connection.close, CLOSE_LIMIT, "closing the SSH link")

    def __call__(self, command: str, limit: float, stdin: str = "") -> Result:
        """Run *command* within *limit* s, with *stdin* for its standard input; any exit status.

        Raises TestbedError if the link breaks, RouterUnreachable if it had and the new login fails.
        """
        if not self.connection.is_open:
            try:
                self.open()
            except TestbedError as error:
                raise RouterUnreachable(str(error)) from None
        began, within = time.monotonic(), self._within(limit)

        def execute() -> tuple[bytes, bytes, int]:
            # here, where no interrupt of the main thread can be taken for an error of the link
            with self._one_by_one:
                try:
                    # this ends by itself a moment before the thread would be left
                    if self._dialogue is None:
                        return self.connection.run(command, within, stdin.encode())
                    if stdin:
                        raise TestbedError(f"'{command}' has 'stdin', for which a router must take single commands")
                    return self._typed(command, self._dialogue, began + within), b"", 0
                except TestbedError:
                    raise
                except Exception as error:  # paramiko's threads raise what they met, also EOFError
                    raise TestbedError(f"the SSH link to {self._who} broke during '{command}': {error}") from None

        try:
            stdout, stderr, status = run_in_worker_thread(execute, within + CLOSE_LIMIT, f"'{command}'")
        except TestbedError as error:
            self.close()  # ends the thread, too
            if not isinstance(error, CommandUnfinished | NotInTime):
                raise
            raise TestbedError(f"{error} on {self._who}; run it there by hand to see why") from None
        found = Result(self._shown(stdout), self._shown(stderr), status, time.monotonic() - began)
        given = f" <<< '{shortened(stdin)}'" if stdin else ""
        log.debug("$ %s%s\n%s%s", command, given, found.stdout, found.stderr)
        return found

    def _typed(self, command: str, dialogue: Dialogue, until: float) -> bytes:
        """Return what *command* writes in the terminal, which is opened if none is."""
        if self._terminal is None:
            self._terminal = SshTerminal(self.connection, dialogue, until - time.monotonic())
        return self._terminal.run(command, until - time.monotonic()).encode(errors="replace")

    def _shown(self, output: bytes) -> str:
        """Output as all above get it: no control characters, and no password that the router echoed."""
        return self._login.masked(visible(plain_text(output.decode(errors="replace"))))
