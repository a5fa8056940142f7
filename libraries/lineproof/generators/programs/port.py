"""The shell that holds one port: here, in a network namespace, or at the far end of an SSH connection.

It reads its commands from standard input, and ends with it. So the programs that it started end with the process that
started it, also if that was killed or its connection was lost; each has a limit of its own besides. As long as it or
one of its programs runs, it holds a lock: no other run can use the same interface.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import paramiko

from ...core.counter_names import PORT_TOTALS
from ...errors import TestbedError
from ...system import children
from ...system.network_namespace import inside
from ...system.ssh import RemoteChild
from ...units import FCS
from ...visible import shortened, visible
from ..site import Place
from .description import PortChange, Ran, filled

COMMAND_LIMIT = 15.0
"""Seconds for a command that only reads or sets something."""

CLOSE_LIMIT = 10.0
"""Seconds for a shell to end its programs and undo what it set: until then its port is held."""

WATCH_LIMIT = 5.0
"""Seconds for the watch on an interface to end, once the program has."""

LARGEST_OUTPUT = 4 << 20
"""Characters that a command may write."""

FACTS = ("address", "carrier", "speed", "mtu", "driver")

LOCK, FUNCTIONS = (Path(__file__).with_name(name).read_text("utf-8") for name in ("lock.sh", "port.sh"))

_LOST = (OSError, EOFError, paramiko.SSHException)
"""The errors of reading from a shell that has ended."""


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
        """Return the span by this machine's clock. *ahead*: s by which the host's clock is ahead, least and most."""
        least, most = ahead
        return Span(self.begins - most, self.began - least, self.ends - most, self.ended - least)


def start(name: str, limit: float, command: str) -> str:
    """Return the command that starts the program *name* in the background, for *limit* s."""
    return f"start {name} {limit:.3f} {shlex.quote(command)}"


def _open(place: Place) -> children.Child | RemoteChild:
    """Return the shell of a port at *place*. Raises TestbedError and OSError."""
    if "/" in place.namespace:
        # nobody else knows it, so there is no lock to hold
        return children.Child((*inside(place.namespace, bound=True), "/bin/sh"), stderr=children.STDOUT)
    root = ("sudo", "-n", "--") if place.sudo else ()
    named = ("ip", "netns", "exec", place.namespace) if place.namespace else ()
    # the name that every run gives the port
    lock = re.sub(r"[^A-Za-z0-9_.-]", "_", f"{place.namespace}-{place.interface}")
    owner = f"{os.uname().nodename}, process {os.getpid()}, since {time.strftime('%Y-%m-%d %H:%M:%S')}"
    argv = (*root, *named, "/bin/sh", "-c", LOCK, "lineproof-port", lock, owner)
    if place.login is None:
        return children.Child(argv, stderr=children.STDOUT)
    return RemoteChild(place.login, "the generator's host", shlex.join(argv))


class Port:
    """A claimed port, by its shell. ``mac`` and ``mtu``: its own, as it was taken. *counts*: its interface does.

    ``values``: those of its commands; ``listed``: what its list of frames has. Raises TestbedError if the shell cannot
    start, or another run holds the port.
    """

    def __init__(self, index: int, place: Place, counts: bool = True) -> None:
        self.index, self.place = index, place
        self.values: Mapping[str, object] = {}
        self.listed: Mapping[str, object] = {}
        self._name = f"the generator's port {index} ({place.text})"
        self._made = dict[str, str]()
        self._own_counts = None if counts else dict.fromkeys(PORT_TOTALS, 0)
        try:
            self._shell = _open(place)
        except (OSError, TestbedError) as error:
            raise TestbedError(f"{self._name}: its shell does not start: {error}") from None
        try:
            self.ask(f"interface={shlex.quote(place.interface)}\n{FUNCTIONS}")
            facts = self.facts()
            self.mac, self.mtu = facts["address"], facts["mtu"]
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the shell, and with it its programs. May be repeated."""
        self._shell.end(CLOSE_LIMIT)

    # -- commands ------------------------------------------------------------------------------------------------------

    def ask(self, command: str, limit: float = COMMAND_LIMIT) -> str:
        """Return what *command* wrote, within *limit* s. Raises TestbedError, also for an exit status that is not 0."""
        return self.order(command, limit)()

    def order(self, command: str, limit: float = COMMAND_LIMIT) -> Callable[[], str]:
        """Order *command* to run; the function that is returned waits for its end, as :meth:`ask`."""
        mark = f"@@{secrets.token_hex(6)}"
        # if that fails, its output ends too, and says why
        self._shell.send(f"{command}\nprintf '\\n{mark} %s\\n' \"$?\"")
        return lambda: self._answer(mark, shortened(command.strip(), 120), limit)

    def _answer(self, mark: str, shown: str, limit: float) -> str:
        until, output, status = time.monotonic() + limit, "", ""
        try:
            while not status:
                line = self._shell.line(max(0.0, until - time.monotonic())).decode(errors="replace")
                if line.startswith(mark):
                    status = line.split()[1]
                elif len(output) > LARGEST_OUTPUT:
                    raise EOFError
                else:
                    output += f"{line}\n"
        except TimeoutError:
            self.close()
            raise TestbedError(f"{self._name}: '{shown}' did not end within {limit:g} s") from None
        except _LOST:
            self.close()
            raise TestbedError(f"{self._name}: {_reason(output) or 'its shell ended'}") from None
        if status != "0":
            reason = _reason(output) or "no reason given"
            raise TestbedError(f"{self._name}: '{shown}' failed with status {status}: {reason}")
        return output.removesuffix("\n")

    def change(self, changes: Sequence[PortChange], values: Mapping[str, object]) -> None:
        """Make those of *changes* that are not made. Raises TestbedError.

        They are undone when the shell ends, however it ends, the last one first.
        """
        for change in changes:
            do, undo = filled(change.do, values), filled(change.undo, values)
            if undo not in self._made:
                self.ask(f'undo={shlex.quote(undo)}"; $undo"')
            if self._made.get(undo) != do:
                self.ask(do)
            self._made[undo] = do

    # -- programs ------------------------------------------------------------------------------------------------------

    def await_end(self, name: str, limit: float) -> Ran:
        """Wait for the end of the program *name* of ``start``, within *limit* s. Raises TestbedError."""
        until = time.monotonic() + limit
        while not (answer := self.ask(f"ended {name}")):
            if time.monotonic() > until:
                self.ask("halt")
                raise TestbedError(f"{self._name}: the program did not end within {limit:g} s and was stopped")
            time.sleep(0.02)
        status, _, times, output = answer.split("\n", 3)
        # user and system, as 0m0.01s
        spent = re.findall(r"([0-9]+)m([0-9]+[.,][0-9]+)s", times)
        cpu = sum(60 * int(minutes) + float(seconds.replace(",", ".")) for minutes, seconds in spent)
        return Ran(int(status), output, cpu if spent else None)

    def watched_span(self) -> Span | None:
        """Return when the interface sent, of ``watch_sending``; None: it sent nothing. Raises TestbedError."""
        seen = self.await_end("watch", WATCH_LIMIT).output
        moments = re.search(r"^sent((?: [0-9]+\.[0-9]{6}){4})?$", seen, re.MULTILINE)
        if moments is None:
            raise TestbedError(f"the watch on {self.place.text} gave no answer: {seen.strip()[-200:]}")
        return Span(*map(float, moments[1].split())) if moments[1] else None

    # -- what is read of the interface and its host --------------------------------------------------------------------

    def facts(self) -> Mapping[str, str]:
        """Return :data:`FACTS` of the interface, ``speed`` in Mbit/s; "" if not known. Raises TestbedError."""
        return dict(zip(FACTS, self.ask("facts").split("\n"), strict=False))

    def counters(self) -> dict[str, int]:
        """Return PORT_TOTALS of the interface, or of the programs where it does not count. Raises TestbedError."""
        if self._own_counts is not None:
            return dict(self._own_counts)
        return dict(zip(PORT_TOTALS, map(int, self._numbers("counters", len(PORT_TOTALS))), strict=True))

    def count(self, way: str, report: Mapping[str, str]) -> int:
        """Count the frames of a program's report, received (``i``) or sent ones (``o``); return how many they are."""
        frames = int(report["frames"])
        if self._own_counts is not None:
            self._own_counts[f"{way}packets"] += frames
            self._own_counts[f"{way}bytes"] += int(report["bytes"]) + FCS * frames
        return frames

    def clock(self) -> tuple[float, float]:
        """Return by how many seconds, least and most, the host's clock is ahead. Raises TestbedError."""
        if self.place.login is None:
            return 0.0, 0.0
        before = time.time()
        there = float(*self._numbers("date +%s.%N", 1))
        after = time.time()
        return there - after, there - before

    def _numbers(self, command: str, count: int) -> list[str]:
        """Return so many numbers that *command* prints. Raises TestbedError."""
        printed = self.ask(command)
        if not re.fullmatch(rf"\s*(?:[0-9]{{1,20}}(?:\.[0-9]{{9}})?\s+){{{count}}}", printed):
            raise TestbedError(f"{self._name}: '{command}' printed no {count} numbers: {printed[:100]!r}")
        return printed.split()


def _reason(output: str) -> str:
    return shortened(" ".join(visible(output).split()), 300)
