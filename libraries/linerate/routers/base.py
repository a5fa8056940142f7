"""What a testbed and a report need of a router, and the one thing a router knows of the world: a shell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from .causes import Cause
from .frames import Frames, Lacking


@dataclass(frozen=True, slots=True)
class Result:
    """What a shell command left. ``duration`` in s."""

    stdout: str
    stderr: str
    status: int
    duration: float


Shell = Callable[[str, float], Result]
"""``shell(command, limit in s) -> Result``. Raises BenchError when the link drops or the limit passes."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of the router: the interface cabled to a generator port, and what is reached through it.

    ``address`` as ``100.65.1.1/24``; ``peer`` is the generator port's address, ``peer_mac`` its MAC;
    ``network`` the prefix routed towards it, as ``16.0.0.0/8``.
    """

    interface: str
    address: str
    peer: str
    peer_mac: str
    network: str


@dataclass(frozen=True, slots=True)
class InterfaceCounters:
    """Frames and bytes of one interface since the router started, as the router counts them.

    ``tx_packets`` were sent: what a router counts before it fails to send is taken off.
    """

    rx_packets: int = 0
    rx_bytes: int = 0
    tx_packets: int = 0
    tx_bytes: int = 0
    rx_drops: int = 0
    tx_drops: int = 0
    rx_errors: int = 0
    tx_errors: int = 0


@dataclass(frozen=True, slots=True)
class NodeRuntime:
    """One VPP graph node on one thread, from ``show runtime``. ``clocks`` are TSC cycles per vector."""

    thread: str
    name: str
    state: str
    calls: int
    vectors: int
    suspends: int
    clocks: float
    vectors_per_call: float


@dataclass(frozen=True, slots=True)
class Telemetry:
    """A reading. ``uptime`` s; ``drops`` by the router's words; ``raw`` the commands' text.

    ``causes``: every counter of lost frames that was read, with what it is beside the others; zeros too.
    For VPP only: ``runtime`` and ``since_clear``, s that it covers (0: not known).
    """

    uptime: float
    interfaces: Mapping[str, InterfaceCounters]
    drops: Mapping[str, int] = field(default_factory=dict)
    runtime: tuple[NodeRuntime, ...] = ()
    raw: Mapping[str, str] = field(default_factory=dict)
    since_clear: float = 0.0
    causes: tuple[Cause, ...] = ()


class Router(Protocol):
    """A router behind a shell. Every method raises BenchError when the shell's answer is not understood."""

    def identify(self) -> Mapping[str, str]:
        """Operating system, version, kernel, software version: evidence."""
        ...

    def configure(self, sides: tuple[Side, ...]) -> None:
        """Addresses, static neighbours and routes of the sides. Remembers what it changed, for :meth:`restore`."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What :meth:`configure` changed beyond addresses, neighbours and routes, in words: evidence."""
        ...

    def set_up(self, sides: tuple[Side, ...], frames: Frames) -> None:
        """Ways for *frames* beside those of plain IPv4, after :meth:`configure` and undone with it."""
        ...

    @property
    def lacking(self) -> Lacking:
        """Which of them the router cannot forward, and what it lacks."""
        ...

    def restore(self) -> None:
        """Undo what :meth:`configure` changed, last first. Harmless when repeated."""
        ...

    def forget(self) -> None:
        """The router has restarted, and with that lost what :meth:`configure` changed: there is nothing to undo."""
        ...

    def clear(self) -> None:
        """Reset counters that the router can reset (VPP ``clear runtime``), before a trial."""
        ...

    def read(self) -> Telemetry:
        """Counters and runtime now."""
        ...
