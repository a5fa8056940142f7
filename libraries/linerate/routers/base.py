"""What a testbed and a report need of a router, and the one thing a router knows of the world: a shell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ..counts.telemetry import Telemetry
from ..traffic.frame_kinds import FrameKinds, Lacking


@dataclass(frozen=True, slots=True)
class Result:
    """What a shell command left. ``duration`` in s."""

    stdout: str
    stderr: str
    status: int
    duration: float


Shell = Callable[[str, float], Result]
"""``shell(command, limit in s) -> Result``. Raises TestbedError when the link drops or the limit passes."""


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


class Router(Protocol):
    """A router behind a shell. Every method raises TestbedError when the shell's answer is not understood."""

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

    def set_up(self, sides: tuple[Side, ...], frames: FrameKinds) -> None:
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
