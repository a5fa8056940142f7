"""Keywords that reach the router under test over SSH."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from pathlib import Path

import paramiko
from robot.api import logger
from robot.api.deco import keyword, library
from SSHLibrary import SSHLibrary

from linerate.aside import aside
from linerate.errors import BenchError
from linerate.routers.base import Result, Telemetry
from linerate.routers.frames import reason_against
from linerate.session import Session
from linerate.ssh_login import said

CONNECT_LIMIT = 10.0
"""Seconds that connecting may take; logging in may take as long again."""

CLOSE_LIMIT = 5.0
"""Seconds that closing the connection may take before it is left to the end of the process."""

MARGIN = 2.0
"""Seconds beyond a command's limit, in which SSHLibrary itself should have given it up."""


@library(scope="GLOBAL", version="0.1")
class RouterShell:
    """Reaches the router under test through SSHLibrary.

    Host keys are checked against the testbed's ``known_hosts`` file; an unknown or another key refuses the connection.
    Every command has a time limit, and a dropped link is an error (SSHLibrary alone reports neither).
    """

    def __init__(self) -> None:
        self._ssh = SSHLibrary(loglevel="DEBUG")
        self._connected = False
        self._bench: Session | None = None

    @keyword
    def connect_router(self, bench: Session) -> None:
        """Log in to the router of *bench* with its key and let it say what it is.

        Fails with one sentence where the address does not answer, the host key is unknown or another, or the login is
        refused.
        """
        self.log_in(bench)
        facts = bench.connect_router(self.execute)
        for name, value in facts.items():
            logger.info(f"{name}: {value}")

    @keyword
    def configure_router(self, bench: Session) -> None:
        """Give the router the testbed's addresses, static neighbours and routes; `Restore Router` takes them back.

        Where the testbed file says ``set_up``, ways for IPv6, tagged and labelled frames as well.
        """
        bench.configure_router()

    @keyword
    def reason_against_traffic(self, bench: Session, traffic: str) -> str:
        """Why the router, as `Configure Router` left it, cannot forward *traffic* (``64b vlan``); empty where it can.

        It names what the router lacks, for example a module of its kernel.
        """
        profile = bench.plan.catalogue.profile(traffic.split())
        return reason_against(profile, bench.router_connected.lacking)

    @keyword
    def restore_router(self, bench: Session) -> None:
        """Take back what `Configure Router` changed, then log out. Harmless when repeated."""
        try:
            bench.restore_router()
        finally:
            self._bench = None
            self._close()

    @keyword
    def run_on_router(self, command: str, limit: float = 10.0) -> str:
        """Run *command* in the router's shell and return its output.

        Fails where it takes longer than *limit* seconds, the link drops, or its exit status is not 0.
        """
        result = self.execute(command, limit)
        if result.status != 0:
            raise BenchError(f"'{command}' ended with status {result.status} on the router: {result.stderr.strip()}")
        return result.stdout

    @keyword
    def read_router_telemetry(self, bench: Session) -> Telemetry:
        """The router's counters now, as evidence. Fails where it restarted since the last reading."""
        return bench.router_watch.read()

    def log_in(self, bench: Session) -> None:
        """The SSH login alone."""
        aside(lambda: self._open(bench), 3 * CONNECT_LIMIT, "the SSH login to the router")
        self._bench = bench

    def _open(self, bench: Session) -> None:
        access = bench.bench.facts.router
        where = f"{access.host}:{access.port}"
        self._close()
        self._ssh.open_connection(access.host, port=access.port, timeout=f"{CONNECT_LIMIT}s")
        # SSHLibrary trusts every host key; it offers no setting, so its client is told before it connects
        client = self._ssh.current.client
        known = access.known_hosts_path
        if not known.is_file():
            raise BenchError(f"the known_hosts file '{known}' is missing; make it with: ssh-keyscan -H {access.host}")
        client.load_host_keys(str(known))
        client.set_missing_host_key_policy(paramiko.RejectPolicy())
        try:
            if access.key_path:
                self._ssh.login_with_public_key(access.user, str(access.key_path), delay="0 seconds")
            else:
                self._ssh.login(access.user, self._password(access.password_from), delay="0 seconds")
        except paramiko.BadHostKeyException as error:
            self._close()
            raise BenchError(
                f"the router at {where} shows another host key than '{known}' holds (got {_fingerprint(error.key)});"
                f" if the router was really exchanged, remove the old line and add the new key"
            ) from None
        except Exception as error:
            self._close()
            raise _refused(error, where, access.user, str(access.key_path or ""), known) from None
        try:
            # a command is a few small packets; without this each waits for the other side's acknowledgement
            client.get_transport().sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except (OSError, AttributeError):  # the router went down at that moment
            self._close()
            raise BenchError(f"the SSH link to the router at {where} broke as soon as it was logged in") from None
        self._connected = True

    @staticmethod
    def _password(variable: str | None) -> str:
        found = os.environ.get(variable or "")
        if not found:
            raise BenchError(
                f"the testbed takes the router's password from the environment variable '{variable}', which is not set"
            )
        return found

    def execute(self, command: str, limit: float) -> Result:
        """What *command* left, within *limit* s; any exit status. Raises BenchError where the link broke."""
        if not self._connected:
            if self._bench is None:
                raise BenchError("no router is connected; call 'Connect Router' first")
            # the link broke at an earlier command; this one tries once whether it is there again
            bench = self._bench
            aside(lambda: self._open(bench), 3 * CONNECT_LIMIT, "the SSH login to the router")
        begun = time.monotonic()
        try:
            stdout, stderr, status = aside(
                lambda: self._ssh.execute_command(
                    command, return_stdout=True, return_stderr=True, return_rc=True, timeout=f"{limit}s"
                ),
                limit + MARGIN,
                f"'{command}'",
            )
        except BenchError:
            raise
        except Exception as error:
            if "Timed out" in str(error):
                raise BenchError(f"'{command}' did not end within {limit:g} s on the router") from None
            self._connected = False
            raise BenchError(f"the SSH link to the router broke during '{command}': {error}") from None
        if status == -1:
            self._connected = False
            raise BenchError(f"the SSH link to the router broke during '{command}'; its output is not complete")
        # SSHLibrary logs from its own thread, which Robot does not hear
        logger.debug(f"$ {command}\n{stdout}{stderr}")
        return Result(stdout, stderr, status, time.monotonic() - begun)

    def _close(self) -> None:
        self._connected = False
        # a thread that hangs in a command that was given up may hold what closing needs
        with contextlib.suppress(BenchError):
            aside(self._ssh.close_all_connections, CLOSE_LIMIT, "closing the SSH link")


def _fingerprint(key: paramiko.PKey) -> str:
    return f"{key.get_name()} {key.fingerprint}"


def _refused(error: Exception, where: str, user: str, key: str, known: Path) -> BenchError:
    text = said(error)
    host, _, port = where.rpartition(":")
    if "not found in known_hosts" in text:
        return BenchError(
            f"the host key of the router at {where} is not in '{known}'; compare its fingerprint at the router's"
            f" console and add it, for example with: ssh-keyscan -p {port} {host}"
        )
    if "Login with public key failed" in text or "Authentication" in text:
        return BenchError(
            f"the router at {where} refuses the login of '{user}' with the key '{key}'; put the key's public half into"
            f" the router's authorized_keys, or mend 'user' and 'key' in the testbed file"
        )
    if "key file" in text.lower():
        return BenchError(f"{text.rstrip('.')}; mend 'key' in the testbed file")
    return BenchError(f"no SSH login to the router at {where}: {text.rstrip('.')}; check 'address' and 'port'")
