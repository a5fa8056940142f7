"""The router's shell over SSH, through SSHLibrary, with host key checks, time limits and errors for dropped links."""

from __future__ import annotations

import contextlib
import logging
import socket
import time

from SSHLibrary import SSHLibrary

from ..errors import TestbedError
from ..system.ssh import CONNECT_LIMIT, Login, login_error, read_password
from ..system.worker_thread import run_in_worker_thread
from .base import Result

log = logging.getLogger("linerate.router")

CLOSE_LIMIT = 5.0
"""Seconds that closing the connection may take."""

HOST_ROLE = "the router"


class SshShell:
    """A :data:`~linerate.routers.base.Shell` on the machine of *login*.

    SSHLibrary alone trusts every host key, ignores return codes and reports a dropped link as rc -1. Here the host key
    must be known, and a dropped link raises TestbedError; the next command tries once to log in again.
    """

    def __init__(self, login: Login) -> None:
        self._login = login
        self._ssh = SSHLibrary(loglevel="DEBUG")
        self._connected = False

    def open(self) -> None:
        """Log in. Raises TestbedError, which never contains the password."""
        run_in_worker_thread(self._open, 3 * CONNECT_LIMIT, "the SSH login to the router")

    def close(self) -> None:
        """Log out. May be repeated."""
        self._connected = False
        # a thread that still hangs in an old command may block closing
        with contextlib.suppress(TestbedError):
            run_in_worker_thread(self._ssh.close_all_connections, CLOSE_LIMIT, "closing the SSH link")

    def __call__(self, command: str, limit: float) -> Result:
        """Run *command* within *limit* s; any exit status. Raises TestbedError if the link breaks."""
        if not self._connected:
            self.open()
        began = time.monotonic()
        try:
            # without a limit of SSHLibrary's own: it waits for one in a loop that takes a whole core of this machine
            stdout, stderr, status = run_in_worker_thread(
                lambda: self._ssh.execute_command(command, return_stdout=True, return_stderr=True, return_rc=True),
                limit,
                f"'{command}'",
            )
        except TestbedError as error:
            self.close()  # ends the thread, too
            raise TestbedError(f"{error} on the router") from None
        except Exception as error:
            self._connected = False
            raise TestbedError(f"the SSH link to the router broke during '{command}': {error}") from None
        if status == -1:
            self._connected = False
            raise TestbedError(f"the SSH link to the router broke during '{command}'; its output is not complete")
        log.debug("$ %s\n%s%s", command, stdout, stderr)
        return Result(stdout, stderr, status, time.monotonic() - began)

    def _open(self) -> None:
        login = self._login
        self.close()
        self._ssh.open_connection(login.host, port=login.port, timeout=f"{CONNECT_LIMIT}s")
        # SSHLibrary has no setting for host keys, so its client is configured before it connects
        client = self._ssh.current.client
        login.require_known_host_key(client, HOST_ROLE)
        try:
            if login.key_path:
                self._ssh.login_with_public_key(login.user, str(login.key_path), delay="0 seconds")
            else:
                self._ssh.login(login.user, read_password(login, HOST_ROLE), delay="0 seconds")
        except TestbedError:
            raise
        except Exception as error:
            self.close()
            raise login_error(error, login, HOST_ROLE) from None  # its cause may contain the password
        try:
            # a command is a few small packets; without this each waits for an acknowledgement
            client.get_transport().sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except (OSError, AttributeError):  # the router has just gone down
            self.close()
            raise TestbedError(
                f"the SSH link to the router at {login.where} broke as soon as it was logged in"
            ) from None
        self._connected = True
