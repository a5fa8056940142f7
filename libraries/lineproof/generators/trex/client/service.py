"""The protocol between the client's process and the driver, and the end of the process. Independent of TRex.

One JSON object per line on standard input, ``{"id": n, "command": …, …}``; one per line on standard output,
``{"id": n, "ok": …}`` or ``{"id": n, "error": {"kind": …, "message": …}}``. It ends with
standard input, with SIGTERM, SIGHUP and SIGQUIT; a ``stop`` or an end also interrupts a command.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

END_LIMIT = 3.0
"""Seconds for an orderly end, before the process ends itself in any case."""


TRIES, TRY_SECONDS = 5, 1.0
"""How often all ports without an answer ask, at once, and seconds that each try waits for answers."""

REQUEST_SECONDS = 0.2
"""Seconds that a busy server may take for the requests of one port in one try."""


class Refusal(Exception):
    """An answer that is an error. ``kind``: request, install, connect, taken, refused, lost, cancelled or internal."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def read_message(line: str | bytes) -> dict[str, Any]:
    """Return the message in *line*. Keys that are numbers are numbers again: those of ports and packet groups."""
    found: dict[str, Any] = json.loads(line, object_hook=_with_numbers)
    return found


def _with_numbers(data: dict[str, Any]) -> dict[Any, Any]:
    return {int(key) if key.isdecimal() else key: value for key, value in data.items()}


def search_limit(ports: int) -> float:
    """Seconds that a search for the next hops of so many *ports* takes at most: they ask together."""
    return TRIES * (TRY_SECONDS + REQUEST_SECONDS * ports)


@dataclass(frozen=True, slots=True)
class NextHop:
    """Who answers with the MAC address that a port sends to: *address*, IPv4 or IPv6; *source*: the port's own IPv4.

    *explicit*: the testbed file's ``next_hop``, which is asked in any case; else its ``address``, which is asked only
    where the server knows no destination.
    """

    source: str
    address: str
    explicit: bool = False


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """A trial that the driver asks for. Times are s of the testbed's clock."""

    rates: Mapping[int, float]
    """Frames/s of each sending port."""
    directions: Sequence[tuple[int, int]]
    """The sending and the receiving port of each."""
    duration: float | None = None
    """None: until it is stopped."""
    frames: int | None = None
    """Frames of each port, whose streams end by themselves within the duration; None: they do not."""
    clock_speed: float = 1.0
    """Seconds of the testbed's clock per second of the wall clock."""
    drain: float = 2.0
    """The longest wait for missing frames."""
    groups: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """The packet groups of each sending port."""
    times: bool = True
    """False: of their frames only how many were sent, came back, and came twice or out of order."""
    keep: int = 0
    """The last frames of each receiving port that are wanted."""

    @property
    def group_numbers(self) -> list[int]:
        """All packet groups."""
        return [number for numbers in self.groups.values() for number in numbers]


class ClientService:
    """Reads commands, runs them one by one and answers, until the end."""

    def __init__(self, answers: TextIO) -> None:
        self._answers = answers
        self._commands: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.cancelled = threading.Event()

    def end(self, *_: object) -> None:
        """Begin the orderly end, with a time limit. For any thread and for signals."""
        watchdog = threading.Timer(END_LIMIT, os._exit, (1,))
        watchdog.daemon = True
        watchdog.start()
        self.cancelled.set()
        self._commands.put(None)

    def read(self) -> None:
        """Read commands until standard input ends."""
        with contextlib.suppress(OSError, ValueError):
            for line in sys.stdin:
                message = read_message(line)
                if message.get("command") == "stop":
                    self.cancelled.set()
                self._commands.put(message)
        self.end()

    def serve(self, find: Callable[[str], Callable[..., Any]]) -> None:
        """Run commands with the function that *find* returns, until the end."""
        while (message := self._commands.get()) is not None:
            number, command = message.pop("id", None), str(message.pop("command", ""))
            try:
                answer = {"id": number, "ok": find(command)(**message)}
            except Refusal as error:
                answer = {"id": number, "error": {"kind": error.kind, "message": str(error)}}
            except Exception as error:  # every request gets an answer
                text = f"{command}: {type(error).__name__}: {error}"
                answer = {"id": number, "error": {"kind": "internal", "message": text}}
            self._answer(answer)

    def _answer(self, answer: dict[str, Any]) -> None:
        # if the driver is gone, the end of standard input follows
        try:
            line = json.dumps(answer, allow_nan=False)
        except ValueError:
            text = "one of its readings is no number (NaN or infinite)"
            line = json.dumps({"id": answer["id"], "error": {"kind": "refused", "message": text}})
        with contextlib.suppress(BrokenPipeError):
            self._answers.write(line + "\n")
            self._answers.flush()
