"""The protocol between the client's process and the driver. Independent of TRex.

One JSON object per line on standard input, ``{"id": n, "command": …, …}``; one per line on standard output,
``{"id": n, "ok": …}`` or ``{"id": n, "error": {"kind": …, "message": …}}``. A trial may announce before, by
``{"id": n, "sending": t}``, that every port sends; *t*: when the start was asked for. It ends with standard input, with
SIGTERM, SIGHUP and SIGQUIT; a ``stop`` or an end also interrupts a command.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

TRIES, TRY_SECONDS = 5, 1.0
"""How often all ports without an answer ask, at once, and seconds that each try waits for answers."""

REQUEST_SECONDS = 0.2
"""Seconds that a busy server may take for the requests of one port in one try."""


class Refusal(Exception):
    """An answer that is an error. ``kind``: request, install, connect, taken, refused, lost, cancelled or internal.

    ``code``: the server's, of JSON-RPC.
    """

    def __init__(self, kind: str, message: str, code: Any = None) -> None:
        super().__init__(message)
        self.kind, self.code = kind, code


def read_message(line: str | bytes) -> dict[str, Any]:
    """Return the message in *line*. Keys that are numbers are numbers again: those of ports and packet groups."""

    def numbered(data: dict[str, Any]) -> dict[Any, Any]:
        return {int(key) if key.isdecimal() else key: value for key, value in data.items()}

    message: dict[str, Any] = json.loads(line, object_hook=numbered)
    return message


def search_limit(ports: int) -> float:
    """Return the most seconds that a search for the next hops of so many *ports* takes: they ask together."""
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
    drain: float
    """How long missing frames are waited for after the last one was sent."""
    duration: float
    frames: int | None = None
    """Frames of each port, whose streams end by themselves within the duration; None: they do not."""
    clock_speed: float = 1.0
    """Seconds of the testbed's clock per second of the wall clock."""
    groups: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """The packet groups of each sending port."""
    times: bool = True
    """False: of their frames only how many were sent, came back, and came twice or out of order."""
    keep: int = 0
    """The last frames of each receiving port that are wanted."""
    announced: bool = False
    """It is said once every port has sent a frame."""
    later_rates: Mapping[int, float] = field(default_factory=dict)
    """The load changes to these after ``change_after``, without a pause; then the counters are kept each ``interval``
    until all is sent. Empty: it does not change."""
    change_after: float = 0.0
    interval: float = 0.0

    @property
    def group_numbers(self) -> list[int]:
        """All packet groups."""
        return [number for numbers in self.groups.values() for number in numbers]


@dataclass(frozen=True)
class CounterReading:
    """The totals by port, read from ``earliest`` to ``latest`` (s, the server's clock)."""

    earliest: float
    latest: float
    ports: Mapping[int, Mapping[str, int]]
    queue_full: float | None = None
    """Times that a transmit queue was full; None: not reported."""
    rx_load: float | None = None
    """Load of the receiving core in per cent; None: not reported."""
    groups: Mapping[str, Any] = field(default_factory=dict)
    """The server's counts of packet groups."""
    asked: float = 0.0
    moment: float = 0.0
    """When it was asked for, and when it was there, s of the machine's monotonic clock."""

    def since(self, before: CounterReading, port: int, name: str) -> int:
        """Return by how much a counter of *port* grew since *before*."""
        return self.ports[port][name] - before.ports[port][name]

    def sent(self, port: int) -> int:
        """Return the frames that *port* has sent."""
        return self.ports[port]["opackets"]

    def received(self, port: int) -> int:
        """Return the frames that *port* has received."""
        return self.ports[port]["ipackets"]

    def after(self, before: CounterReading) -> CounterReading:
        """Return the reading with what has been counted since *before* in place of the totals."""
        grown = {port: {name: self.since(before, port, name) for name in counts} for port, counts in self.ports.items()}
        return replace(self, ports=grown)


@dataclass(frozen=True)
class LoadChange:
    """A change of the load: the readings on both sides, and ``samples`` after it. Times: s of the monotonic clock."""

    before: CounterReading
    after: CounterReading
    asked: float
    answered: float
    start_asked: float
    start_answered: float
    samples: Sequence[CounterReading]


@dataclass(frozen=True)
class TrialCounts:
    """The counts of a trial. Times are s of the server's clock, unless stated otherwise."""

    started: float
    """s since the epoch."""
    first: float
    """A time before the first frame."""
    before: CounterReading
    at_end: CounterReading
    after: CounterReading
    """After the drain."""
    finished: bool
    drained: float
    """s of the wall clock."""
    clocks: tuple[float, float, float]
    """How far the server's clock went on since the connection, and this machine's at least and at most."""
    links: Mapping[int, bool]
    """By port: up at every check."""
    cpu_util: float | None
    """The highest load of a core in a second of sending, in per cent; after a change of load, since that change."""
    complaints: Sequence[str] = ()
    """The server's."""
    clock_jump: float = 0.0
    """s by which the time of day went ahead of the monotonic clock."""
    snapshots: Sequence[CounterReading] = ()
    """Readings during the sending."""
    cards: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """By how much the cards' own counters grew, by port."""
    received_around: Mapping[int, int] = field(default_factory=dict)
    """Frames received from before they were read until after it."""
    late: Mapping[int, int] = field(default_factory=dict)
    """By port the frames that came perhaps after the drain."""
    latency: Sequence[Mapping[str, Any]] = ()
    """:func:`.running_traffic.group_counts` of those directions all of whose packet groups are reported."""
    frames: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """The last frames of each receiving port, in base64 as the server sends them."""
    change: LoadChange | None = None
