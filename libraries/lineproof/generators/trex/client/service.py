"""The protocol between the client's process and the driver. Independent of TRex.

One JSON object per line on standard input, ``{"id": n, "command": …, …}``; one per line on standard output,
``{"id": n, "ok": …}`` or ``{"id": n, "error": {"kind": …, "message": …}}``. It ends with
standard input, with SIGTERM, SIGHUP and SIGQUIT; a ``stop`` or an end also interrupts a command.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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
