"""Where a TRex server runs: a process of this machine, or the far end of an SSH link. Both end with their input."""

from __future__ import annotations

import collections
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Protocol

import paramiko

from ...errors import TestbedError
from ...system.ssh import Login, connect
from .wrapper import line

LINES = 5
"""How many of its last lines a sentence quotes."""

LONGEST = 500
"""Characters of them."""

START_LIMIT = 15.0
"""Seconds for a far machine to take a command."""

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


class ServerOutput:
    """What a server says: passed on to this process's standard error, its last lines kept."""

    def __init__(self) -> None:
        self._lines: collections.deque[str] = collections.deque(maxlen=LINES)
        self._rest = ""
        self._lock = threading.Lock()

    def take(self, said: bytes) -> None:
        """Some bytes came."""
        with contextlib.suppress(OSError):
            os.write(2, said)
        with self._lock:
            *lines, self._rest = (self._rest + said.decode(errors="replace")).replace("\r", "\n").split("\n")
            self._rest = self._rest[-LONGEST:]
            for found in lines:
                if text := " ".join(_ESCAPES.sub("", found).split()):
                    self._lines.append(text)

    def last(self) -> str:
        """The last lines, in one."""
        with self._lock:
            rest = " ".join(_ESCAPES.sub("", self._rest).split())
            found = "; ".join([*self._lines, rest] if rest else self._lines)
        return found if len(found) <= LONGEST else "…" + found[-LONGEST:]


class Running(Protocol):
    """A started server."""

    output: ServerOutput

    def tell(self, text: str) -> None:
        """Write to its standard input, which stays open."""
        ...

    def status(self) -> int | None:
        """Its exit status as a shell has it (128 + n: by signal n); None while it runs; -1: nobody knows."""
        ...

    def stop(self, limit: float) -> bool:
        """End its input, which ends it, within *limit* s; then by force. False where force was needed."""
        ...


class Here:
    """A process of this machine."""

    def __init__(self, argv: tuple[str, ...]) -> None:
        self.output = ServerOutput()
        try:
            # a session of its own: what ends this process's group must not reach it before its orderly end
            self._process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
            )
        except OSError as error:
            raise TestbedError(f"TRex cannot be started: {argv[0]}: {error.strerror}") from None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        if self._process.stdout is not None:
            with contextlib.suppress(OSError, ValueError):
                while said := os.read(self._process.stdout.fileno(), 65536):
                    self.output.take(said)

    def tell(self, text: str) -> None:
        """See :class:`Running`."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.write(text.encode())
                self._process.stdin.flush()

    def status(self) -> int | None:
        """See :class:`Running`."""
        found = self._process.poll()
        if found is None:
            return None
        self._reader.join(0.5)
        return 128 - found if found < 0 else found

    def stop(self, limit: float) -> bool:
        """See :class:`Running`."""
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(limit)
            return True
        except subprocess.TimeoutExpired:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)
            return False
        finally:
            self._reader.join(0.5)


class There:
    """A command at the far end of an SSH connection."""

    def __init__(self, login: Login, argv: tuple[str, ...]) -> None:
        self.output = ServerOutput()
        self._client = connect(login, "the TRex server's host")
        try:
            transport = self._client.get_transport()
            if transport is None:
                raise paramiko.SSHException("the connection was lost")
            # a machine that is gone is noticed, here as there
            transport.set_keepalive(5)
            self._channel = transport.open_session(timeout=START_LIMIT)
            self._channel.set_combine_stderr(True)
            self._channel.exec_command(line(argv))
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
            while said := self._channel.recv(65536):
                self.output.take(said)

    def tell(self, text: str) -> None:
        """See :class:`Running`."""
        with contextlib.suppress(OSError):
            self._channel.sendall(text.encode())

    def status(self) -> int | None:
        """See :class:`Running`."""
        if self._channel.exit_status_ready():
            self._reader.join(0.5)
            return self._channel.recv_exit_status()
        return -1 if self._channel.closed else None

    def stop(self, limit: float) -> bool:
        """See :class:`Running`."""
        with contextlib.suppress(OSError, EOFError):
            self._channel.shutdown_write()
        until = time.monotonic() + limit
        while (found := self.status()) is None and time.monotonic() < until:
            time.sleep(0.05)
        # the end of the connection ends what is left at the other end
        self._client.close()
        self._reader.join(0.5)
        return found is not None


def note(text: str) -> None:
    """A line of this process's own in the log."""
    print(f"linerate: {text}", file=sys.stderr, flush=True)
