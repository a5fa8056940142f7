"""A started TRex server: a process of this machine, or a command over SSH. Both end with their standard input."""

from __future__ import annotations

import collections
import contextlib
import os
import re
import shlex
import signal
import socket
import sys
import threading
import time
from typing import Protocol

import paramiko

from ...errors import TestbedError
from ...system import children
from ...system.login import Login
from ...system.ssh import connect

QUOTED_LINES = 5
"""Last lines of its output that a message quotes."""

QUOTED_LENGTH = 500
"""Characters of them at most."""

LONGEST_LOG = 64 << 20
"""Bytes of its output that go into the log: a server that writes without end must not fill the disk."""

LOG_FULL = b"\nlineproof: more output of TRex is not kept\n"

START_LIMIT = 15.0
"""Seconds for the host to accept a command over SSH."""

_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class ServerOutput:
    """A server's output: copied to this process's standard error, its last lines kept."""

    def __init__(self) -> None:
        self._lines: collections.deque[str] = collections.deque(maxlen=QUOTED_LINES)
        self._rest, self._left = "", LONGEST_LOG
        self._lock = threading.Lock()

    def add(self, data: bytes) -> None:
        """Add bytes that were read."""
        left, self._left = self._left, max(0, self._left - len(data))
        with contextlib.suppress(OSError):
            if left:
                os.write(2, data[:left] if self._left else data[:left] + LOG_FULL)
        with self._lock:
            *lines, self._rest = (self._rest + data.decode(errors="replace")).replace("\r", "\n").split("\n")
            self._rest = self._rest[-QUOTED_LENGTH:]
            for found in lines:
                if text := " ".join(_COLOURS.sub("", found).split()):
                    self._lines.append(text)

    def last_lines(self) -> str:
        """The last lines, joined."""
        with self._lock:
            rest = " ".join(_COLOURS.sub("", self._rest).split())
            found = "; ".join([*self._lines, rest] if rest else self._lines)
        return found if len(found) <= QUOTED_LENGTH else "…" + found[-QUOTED_LENGTH:]


class StartedServer(Protocol):
    """A started server."""

    output: ServerOutput

    def write_input(self, text: str) -> None:
        """Write to its standard input, which stays open."""
        ...

    def status(self) -> int | None:
        """Return its exit status as a shell reports it (128 + n: by signal n); None while it runs; -1: not known."""
        ...

    def stop(self, limit: float) -> bool:
        """End its input, and after *limit* s kill it. False if it had to be killed."""
        ...


class LocalServer:
    """A process of this machine."""

    def __init__(self, argv: tuple[str, ...]) -> None:
        self.output = ServerOutput()
        try:
            # a session of its own: a signal to this process's group must not prevent its orderly end
            self._process = children.start(
                argv, stdin=children.PIPE, stdout=children.PIPE, stderr=children.STDOUT, start_new_session=True
            )
        except OSError as error:
            raise TestbedError(f"TRex cannot be started: {argv[0]}: {error.strerror}") from None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        if self._process.stdout is not None:
            with contextlib.suppress(OSError, ValueError):
                while data := os.read(self._process.stdout.fileno(), 65536):
                    self.output.add(data)

    def write_input(self, text: str) -> None:
        """See :class:`StartedServer`."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.write(text.encode())
                self._process.stdin.flush()

    def status(self) -> int | None:
        """See :class:`StartedServer`."""
        found = self._process.poll()
        if found is None:
            return None
        self._reader.join(0.5)
        return 128 - found if found < 0 else found

    def stop(self, limit: float) -> bool:
        """See :class:`StartedServer`."""
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(limit)
            return True
        except children.TimeoutExpired:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with contextlib.suppress(children.TimeoutExpired):
                self._process.wait(1.0)
            return False
        finally:
            self._reader.join(0.5)


class RemoteServer:
    """A command on another host, over SSH."""

    def __init__(self, login: Login, argv: tuple[str, ...]) -> None:
        self.output = ServerOutput()
        self._client = connect(login, "the TRex server's host")
        try:
            transport = self._client.get_transport()
            if transport is None:
                raise paramiko.SSHException("the connection was lost")
            # so that both ends notice a lost connection
            transport.set_keepalive(5)
            self._channel = transport.open_session(timeout=START_LIMIT)
            self._channel.set_combine_stderr(True)
            self._channel.exec_command(shlex.join(argv))
        except (paramiko.SSHException, OSError, EOFError) as error:
            self._client.close()
            raise TestbedError(
                f"TRex cannot be started over SSH at {login.where}: {str(error) or type(error).__name__}; look at the"
                " sshd's log there"
            ) from None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, EOFError, socket.timeout):
            while data := self._channel.recv(65536):
                self.output.add(data)

    def write_input(self, text: str) -> None:
        """See :class:`StartedServer`."""
        with contextlib.suppress(OSError):
            self._channel.sendall(text.encode())

    def status(self) -> int | None:
        """See :class:`StartedServer`."""
        if self._channel.exit_status_ready():
            self._reader.join(0.5)
            return self._channel.recv_exit_status()
        return -1 if self._channel.closed else None

    def stop(self, limit: float) -> bool:
        """See :class:`StartedServer`."""
        with contextlib.suppress(OSError, EOFError):
            self._channel.shutdown_write()
        until = time.monotonic() + limit
        while (found := self.status()) is None and time.monotonic() < until:
            time.sleep(0.05)
        # the end of the connection ends the command if it still runs
        self._client.close()
        self._reader.join(0.5)
        return found is not None


def log_note(text: str) -> None:
    """Write a line of this process's own to the log."""
    print(f"lineproof: {text}", file=sys.stderr, flush=True)
