"""A command on another host, in a terminal there, that ends with the SSH connection.

The end of the connection hangs up what runs in the terminal, so the command ends with this process, however that ends.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from functools import partial

import paramiko

from ...errors import TestbedError
from ...system.login import Login
from ...system.ssh import CONNECT_LIMIT, Connection
from ...system.worker_thread import run_in_worker_thread
from ..process import LOG_LENGTH, Program

GRACE = 8.0
"""Seconds for an orderly end."""

STATUS_LIMIT = 2.0
"""Seconds for the exit status, after the output has ended."""

LOST = 255
"""The status of a command whose connection was lost, as ssh(1) has it."""


class RemoteProgram(Program):
    """*command* on the host of *login*; ready once *answers* raises neither OSError nor TestbedError, after *limit* s.

    Raises TestbedError, with the command ended, where it is not. Its output is kept in memory.
    """

    def __init__(
        self, name: str, login: Login, who: str, command: str, answers: Callable[[], object], limit: float
    ) -> None:
        self.name, self._output, self._status = name, bytearray(), LOST
        self._channel: paramiko.Channel | None = None
        self._login, self._connection = login, Connection(login, who)
        self._reader = threading.Thread(target=self._read, daemon=True, name=f"log of {name}")
        try:
            self._connection.open()
            run_in_worker_thread(partial(self._begin, command), 2 * CONNECT_LIMIT, f"'{command}'")
            self._await(partial(self._answering, answers), limit)
        except BaseException:
            self.close()
            raise

    def _begin(self, command: str) -> None:
        try:
            channel = self._channel = self._connection.session(CONNECT_LIMIT)
            # so that both ends notice a lost connection
            channel.get_transport().set_keepalive(5)
            channel.get_pty("dumb")
            channel.exec_command(command)
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise TestbedError(f"'{self.name}' cannot be started: {error or 'the connection ended'}") from None
        self._reader.start()

    def _read(self) -> None:
        channel = self._channel
        while channel is not None and (output := channel.recv(1 << 16)):
            self._output += output
            del self._output[:-LOG_LENGTH]
        if channel is not None and channel.status_event.wait(STATUS_LIMIT) and channel.exit_status >= 0:
            self._status = channel.exit_status
        else:
            self._output += b"\nthe SSH connection to it was lost\n"

    def status(self) -> int | None:
        """Return the command's exit status; None while its output goes on."""
        return None if self._reader.is_alive() else self._status

    def log(self) -> str:
        """Return the end of its output, without secrets of the login."""
        return self._login.masked(self._output.decode(errors="replace"))

    def request_end(self) -> None:
        """Type Ctrl-C, which asks the command to end in order, whoever's it is (sudo)."""
        if not self._closed and self._channel is not None:
            with contextlib.suppress(TestbedError, OSError):
                run_in_worker_thread(partial(self._channel.sendall, b"\x03"), STATUS_LIMIT, "Ctrl-C")
        self._closed = True

    def close(self) -> str:
        """End it; the end of the connection hangs up what still runs after :data:`GRACE`."""
        self.request_end()
        if self._reader.is_alive():
            self._reader.join(GRACE)
        with contextlib.suppress(TestbedError):
            run_in_worker_thread(self._connection.close, STATUS_LIMIT, "closing the SSH link")
        return ""
