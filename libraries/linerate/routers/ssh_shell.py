"""The router's shell over SSH, through SSHLibrary: host keys checked, commands limited, a dropped link an error."""

from __future__ import annotations

import contextlib
import logging
import socket
import time

from SSHLibrary import SSHLibrary

from ..errors import TestbedError
from ..system.ssh import CONNECT_LIMIT, Login, password, refusal
from ..system.uninterrupted import uninterrupted
from .base import Result

log = logging.getLogger("linerate.router")

CLOSE_LIMIT = 5.0
"""Seconds that closing the connection may take before it is left to the end of the process."""

MARGIN = 2.0
"""Seconds beyond a command's limit, in which SSHLibrary itself should have given it up."""

WHO = "the router"


class SshShell:
    """A :data:`~linerate.routers.base.Shell` on the machine of *login*.

    SSHLibrary alone trusts every host key, ignores return codes and reports a dropped link as rc -1. Here an unknown
    or another host key refuses the connection, and a dropped link raises TestbedError; the next command then tries once
    to log in again.
    """

    def __init__(self, login: Login) -> None:
        self._login = login
        self._ssh = SSHLibrary(loglevel="DEBUG")
        self._connected = False

    def open(self) -> None:
        """Log in. Raises TestbedError, which never holds the password."""
        uninterrupted(self._open, 3 * CONNECT_LIMIT, "the SSH login to the router")

    def close(self) -> None:
        """Log out. Harmless when repeated."""
        self._connected = False
        # a thread that hangs in a command that was given up may hold what closing needs
        with contextlib.suppress(TestbedError):
            uninterrupted(self._ssh.close_all_connections, CLOSE_LIMIT, "closing the SSH link")

    def __call__(self, command: str, limit: float) -> Result:
        """What *command* left, within *limit* s; any exit status. Raises TestbedError where the link broke."""
        if not self._connected:
            self.open()
        begun = time.monotonic()
        try:
            stdout, stderr, status = uninterrupted(
                lambda: self._ssh.execute_command(
                    command, return_stdout=True, return_stderr=True, return_rc=True, timeout=f"{limit}s"
                ),
                limit + MARGIN,
                f"'{command}'",
            )
        except TestbedError:
            raise
        except Exception as error:
            if "Timed out" in str(error):
                raise TestbedError(f"'{command}' did not end within {limit:g} s on the router") from None
            self._connected = False
            raise TestbedError(f"the SSH link to the router broke during '{command}': {error}") from None
        if status == -1:
            self._connected = False
            raise TestbedError(f"the SSH link to the router broke during '{command}'; its output is not complete")
        log.debug("$ %s\n%s%s", command, stdout, stderr)
        return Result(stdout, stderr, status, time.monotonic() - begun)

    def _open(self) -> None:
        login = self._login
        self.close()
        self._ssh.open_connection(login.host, port=login.port, timeout=f"{CONNECT_LIMIT}s")
        # SSHLibrary has no setting for host keys, so its client is configured before it connects
        client = self._ssh.current.client
        login.check_host_key(client, WHO)
        try:
            if login.key_path:
                self._ssh.login_with_public_key(login.user, str(login.key_path), delay="0 seconds")
            else:
                self._ssh.login(login.user, password(login, WHO), delay="0 seconds")
        except TestbedError:
            raise
        except Exception as error:
            self.close()
            raise refusal(error, login, WHO) from None  # what caused it may hold the password
        try:
            # a command is a few small packets; without this each waits for the other side's acknowledgement
            client.get_transport().sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except (OSError, AttributeError):  # the router went down at that moment
            self.close()
            raise TestbedError(
                f"the SSH link to the router at {login.where} broke as soon as it was logged in"
            ) from None
        self._connected = True
