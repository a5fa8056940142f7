"""A TRex server that a testbed starts: over SSH by the command in its file, or in a network namespace.

It ends with the connection, or with the namespace.
"""

from __future__ import annotations

import shlex
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import paramiko

from ..errors import TestbedError
from ..generators.trex.clients import ask_server
from ..system.login import Login
from ..system.network_namespace import inside, kept_within, run_in_namespace
from ..system.ssh import CONNECT_LIMIT, Connection, run_in_worker_thread
from .process import LOG_LENGTH, Belongings, Program, TestbedProcess

NAME = "trex"
"""The name of the process, in messages."""

ARGUMENTS = ("-i", "--stl", "--hdrh", "--no-scapy-server", "--no-termio", "--iom", "0")
"""Interactive, stateless, fine latency, no program that would outlive it, quiet."""

RPC_PORT, PUB_PORT = 4501, 4500
"""TCP ports of TRex's API, in a network namespace of its own."""

LIMIT = 90.0
"""Seconds until its API must answer."""

GRACE = 8.0
"""Seconds for an orderly end."""

STATUS_LIMIT = 2.0
"""Seconds for the exit status, after the output has ended."""

LOST = 255
"""The status of a command whose connection was lost, as ssh(1) has it."""

IN_NAMESPACE = r"""
# a killed TRex leaves files there: they go with this mount namespace
mkdir -p /var/run/dpdk && mount -t tmpfs tmpfs /var/run/dpdk && cd "$1" || exit
export LD_LIBRARY_PATH="$1:$1/so/$(uname -m)"
shift
# not t-rex-64, which prepares cards and memory
exec ./_t-rex-64 "$@"
"""


def start_over_ssh(belongings: Belongings, login: Login, home: str, command: str, address: str, rpc_port: int) -> None:
    """Run *command* in the folder *home* of the host of *login*, with :data:`ARGUMENTS` after it.

    Its API must answer at *address*. Raises TestbedError.
    """
    with suppress(OSError):
        socket.create_connection((address, rpc_port), 1.0).close()
        raise TestbedError(
            f"a server answers already at {address}:{rpc_port}, where TRex is to be started; end that server, or leave"
            " 'start' out of the testbed file to use it"
        )
    whole = f"cd {shlex.quote(home)} && {command} {shlex.join(ARGUMENTS)}"
    belongings.keep(_RemoteServer(login, whole, partial(ask_server, address, rpc_port)))


def start_in_namespace(belongings: Belongings, namespace: str, home: Path, config: str) -> None:
    """Start a server in software mode in *namespace*, with its API at TRex's port. Raises TestbedError."""
    path = belongings.folder / "trex_cfg.yaml"
    path.write_text(config)
    # the watchdog ends a server whose threads had to wait on a busy machine
    arguments = (*ARGUMENTS, "--software", "--no-watchdog", "--cfg", str(path))
    argv = (*inside(namespace), "/bin/sh", "-c", IN_NAMESPACE, "lineproof-trex", str(home), *arguments)
    belongings.keep(
        TestbedProcess(
            NAME,
            # alone: the namespace's holder removes the testbed's folder where its owner was killed
            kept_within("", argv),
            belongings.folder / "trex.log",
            answers=partial(run_in_namespace, namespace, partial(ask_server, "127.0.0.1", RPC_PORT)),
            limit=LIMIT,
        )
    )


class _RemoteServer(Program):
    """A *command* in a terminal at *login*, ready once *answers* raises no OSError or TestbedError.

    Raises TestbedError, with the command ended, where it is not within :data:`LIMIT`. Its output is kept in memory.
    """

    def __init__(self, login: Login, command: str, answers: Callable[[], object]) -> None:
        self.name, self._output, self._status = NAME, bytearray(), LOST
        self._channel: paramiko.Channel | None = None
        self._login, self._connection = login, Connection(login, "the TRex server's host")
        self._reader = threading.Thread(target=self._read, daemon=True, name="log of a TRex server")
        try:
            self._connection.open()
            run_in_worker_thread(partial(self._begin, command), 2 * CONNECT_LIMIT, f"'{command}'")
            self._await(partial(self._answering, answers), LIMIT)
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
            with suppress(TestbedError, OSError):
                run_in_worker_thread(partial(self._channel.sendall, b"\x03"), STATUS_LIMIT, "Ctrl-C")
        self._closed = True

    def close(self) -> str:
        """End it; the end of the connection hangs up what still runs after :data:`GRACE`."""
        self.request_end()
        if self._reader.is_alive():
            self._reader.join(GRACE)
        with suppress(TestbedError):
            run_in_worker_thread(self._connection.close, STATUS_LIMIT, "closing the SSH link")
        return ""
