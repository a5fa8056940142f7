"""The shell that holds one port: here, in a network namespace, or at the far end of an SSH connection.

It reads its commands from standard input, and ends with it. So the programs that it started end with the process that
started it, also if that was killed or its connection was lost; each has a limit of its own besides. As long as it or
one of its programs runs, it holds a lock: no other run can use the same interface.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import paramiko

from ...errors import TestbedError
from ...system import children
from ...system.login import Login
from ...system.network_namespace import inside
from ...system.ssh import Connection
from ...visible import shortened, visible
from ..site import Place
from .description import Ran

COMMAND_LIMIT = 15.0
"""Seconds for a command that only reads or sets something."""

CLOSE_LIMIT = 10.0
"""Seconds for a shell to end its programs and undo what it set: until then its port is held."""

WATCH_LIMIT = 5.0
"""Seconds for the watch on an interface to end, once the program has."""

LARGEST_OUTPUT = 4 << 20
"""Bytes that a command may write."""

COUNTERS = ("opackets", "obytes", "ipackets", "ibytes", "ierrors", "oerrors")
"""Counters of a port, under TRex's names."""

LOCK, FUNCTIONS = (Path(__file__).with_name(name).read_text("utf-8") for name in ("lock.sh", "port.sh"))

_LOST = (OSError, ValueError, EOFError, paramiko.SSHException)
"""The errors that writing to a shell that has ended raises, and reading from it."""


class Span(NamedTuple):
    """When frames were sent, Unix time in s: the earliest and latest moment for the first, and for the last."""

    begins: float
    began: float
    ends: float
    ended: float

    @property
    def seconds(self) -> tuple[float, float]:
        """The least and the most seconds from the first to the last."""
        return max(0.0, self.ends - self.began), self.ended - self.begins

    def lasting(self, seconds: float) -> Span:
        """Return the span of frames that took at least *seconds*, among others that were sent in this one, too."""
        ended = max(self.ended, self.begins + seconds)
        return Span(self.begins, ended - seconds, self.begins + seconds, ended)

    def here(self, ahead: tuple[float, float]) -> Span:
        """By the clock of this machine, which the host's is *ahead* of by so many seconds, at least and at most."""
        least, most = ahead
        return Span(self.begins - most, self.began - least, self.ends - most, self.ended - least)


def _shell(place: Place) -> tuple[str, ...]:
    """Return what starts the shell of a port at *place*."""
    if "/" in place.namespace:
        # nobody else knows it, so there is no lock to hold
        return (*inside(place.namespace, bound=True), "env", "lock=/dev/null", "/bin/sh")
    root = ("sudo", "-n", "--") if place.sudo else ()
    named = ("ip", "netns", "exec", place.namespace) if place.namespace else ()
    # the name that every run gives the port
    lock = re.sub(r"[^A-Za-z0-9_.-]", "_", f"{place.namespace}-{place.interface}")
    return (*root, *named, "/bin/sh", "-c", LOCK, "lineproof-port", lock)


class Port:
    """A claimed port, by its shell. ``mac`` and ``mtu``: its own, as it was taken.

    Raises TestbedError if the shell cannot start, or another run holds the port.
    """

    def __init__(self, index: int, place: Place) -> None:
        self.index, self.place = index, place
        self._name = f"the generator's port {index} ({place.text})"
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._closing = contextlib.ExitStack()
        owner = f"{os.uname().nodename}, process {os.getpid()}, since {time.strftime('%Y-%m-%d %H:%M:%S')}"
        try:
            pipes: tuple[Any, Any] = self._open_here() if place.login is None else self._open_by_ssh(place.login)
            self._stdin, stdout = pipes
            threading.Thread(target=self._read, args=(stdout,), daemon=True, name="port").start()
            self.ask(f"interface={shlex.quote(place.interface)}\n{FUNCTIONS}")
            self.ask(f'printf "%s" {shlex.quote(owner)} > "$lock"')
            facts = self.facts()
            self.mac, self.mtu = facts["address"], facts["mtu"]
        except BaseException:
            self.close()
            raise

    def _open_here(self) -> tuple[Any, Any]:
        argv = _shell(self.place)
        try:
            child = children.Child(argv, stderr=children.STDOUT)
        except OSError as error:
            raise TestbedError(f"{self._name}: '{argv[0]}' does not start: {error.strerror}") from None
        self._closing.callback(child.end, CLOSE_LIMIT)
        return child.stdin, child.stdout

    def _open_by_ssh(self, login: Login) -> tuple[Any, Any]:
        connection = Connection(login, "the generator's host").open()
        self._closing.callback(connection.close)
        channel = connection.session(COMMAND_LIMIT)

        def end() -> None:
            with contextlib.suppress(Exception):
                channel.shutdown_write()
                channel.status_event.wait(CLOSE_LIMIT)
                channel.close()

        self._closing.callback(end)
        channel.set_combine_stderr(True)
        channel.exec_command(shlex.join(_shell(self.place)))
        return channel.makefile_stdin("wb"), channel.makefile("rb")

    def _read(self, stream: Any) -> None:
        with contextlib.suppress(*_LOST):
            while line := stream.readline(1 << 16):
                self._lines.put(line)
        self._lines.put(None)

    def close(self) -> None:
        """End the shell, and with it its programs. May be repeated."""
        self._closing.close()

    # -- commands ------------------------------------------------------------------------------------------------------

    def ask(self, command: str, limit: float = COMMAND_LIMIT) -> str:
        """Return what *command* wrote, within *limit* s. Raises TestbedError, also for an exit status that is not 0."""
        return self.order(command, limit)()

    def order(self, command: str, limit: float = COMMAND_LIMIT) -> Callable[[], str]:
        """Have *command* run; the function that is returned waits for its end, as :meth:`ask`."""
        mark = f"@@{secrets.token_hex(6)}"
        # if that fails, its output ends too, and says why
        with contextlib.suppress(*_LOST):
            self._stdin.write(f"{command}\nprintf '\\n{mark} %s\\n' \"$?\"\n".encode())
            self._stdin.flush()
        return lambda: self._answer(mark, shortened(command.strip(), 120), limit)

    def _answer(self, mark: str, shown: str, limit: float) -> str:
        until, output = time.monotonic() + limit, ""
        while len(output) <= LARGEST_OUTPUT:
            try:
                line = self._lines.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                self.close()
                raise TestbedError(f"{self._name}: '{shown}' did not end within {limit:g} s") from None
            if line is None:
                raise TestbedError(f"{self._name}: {_why_ended(output)}")
            text = line.decode(errors="replace")
            if text.startswith(mark):
                output, status = output.removesuffix("\n"), text.split()[1]
                if status == "0":
                    return output
                words = shortened(visible(output).strip(), 300) or "no reason given"
                raise TestbedError(f"{self._name}: '{shown}' failed with status {status}: {words}")
            output += text
        self.close()
        raise TestbedError(f"{self._name}: '{shown}' wrote more than {LARGEST_OUTPUT >> 20} MB")

    def undo(self, command: str) -> None:
        """Have *command* run when the shell ends, however it ends; the last one first. Raises TestbedError."""
        self.ask(f'undo={shlex.quote(command)}"; $undo"')

    # -- programs ------------------------------------------------------------------------------------------------------

    def await_end(self, name: str, limit: float) -> Ran:
        """How the program *name* of ``start`` ended, within *limit* s. Raises TestbedError."""
        until = time.monotonic() + limit
        while not (told := self.ask(f"ended {name}")):
            if time.monotonic() > until:
                self.ask("halt")
                raise TestbedError(f"{self._name}: the program did not end within {limit:g} s and was stopped")
            time.sleep(0.02)
        status, times, output = told.split("\n", 2)
        # user and system, as 0m0.01s
        spent = re.findall(r"([0-9]+)m([0-9]+[.,][0-9]+)s", times)
        cpu = sum(60 * int(minutes) + float(seconds.replace(",", ".")) for minutes, seconds in spent)
        return Ran(int(status), output, cpu if spent else None)

    def watched_span(self) -> Span | None:
        """When the interface sent, of ``watch_sending``; None: it sent nothing. Raises TestbedError."""
        seen = self.await_end("watch", WATCH_LIMIT).output
        moments = re.search(r"^sent [0-9]+((?: [0-9]+\.[0-9]{6}){4})?$", seen, re.MULTILINE)
        if moments is None:
            raise TestbedError(f"the watch on {self.place.text} gave no answer: {seen.strip()[-200:]}")
        return Span(*map(float, moments[1].split())) if moments[1] else None

    # -- what is read of the interface and its host --------------------------------------------------------------------

    def facts(self) -> Mapping[str, str]:
        """``address``, ``carrier``, ``speed`` (Mbit/s), ``mtu`` and ``driver`` of the interface; "" if not known.

        Raises TestbedError.
        """
        told = self.ask("facts")
        if told.startswith("@@none"):
            name = self.place.interface
            names = shortened(", ".join(visible(told).split()[1:]), 200)
            raise TestbedError(
                f"there is no interface '{name}'{self.place.text.removeprefix(name)}; there are: {names}; fix"
                " 'interface' in 'ports' of the testbed's file"
            )
        return dict(zip(("address", "carrier", "speed", "mtu", "driver"), told.split("\n"), strict=False))

    def counters(self) -> dict[str, int]:
        """:data:`COUNTERS` of the interface, bytes with FCS. Raises TestbedError."""
        text = self.ask("counters")
        try:
            return dict(zip(COUNTERS, map(int, text.split()), strict=True))
        except ValueError:
            raise TestbedError(f"{self.place.text}: its counters cannot be read: {text[:100]!r}") from None

    def clock(self) -> tuple[float, float]:
        """The least and the most seconds by which the host's clock is ahead of this machine's. Raises TestbedError."""
        if self.place.login is None:
            return 0.0, 0.0
        before = time.time()
        told = self.ask("date +%s.%N").strip()
        after = time.time()
        if not re.fullmatch(r"[0-9]{1,12}\.[0-9]{9}", told):
            raise TestbedError(f"{self._name}: 'date +%s.%N' was not understood: {told[:100]!r}")
        return float(told) - after, float(told) - before


def _why_ended(output: str) -> str:
    output = visible(output).strip()
    if held := re.search(r"@@held ?(.*)", output):
        who = f" ({shortened(held[1], 200)})" if held[1] else ""
        return f"another run uses it{who}; wait for its end"
    if refused := re.search(r"@@refused (.*)", output):
        return shortened(refused[1], 200)
    return f"its shell ended: {shortened(output, 300) or 'no reason given'}"
