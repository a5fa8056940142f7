"""What the client's process needs of a TRex client library, whichever of them it is. Imports none of them."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, Protocol

from .messages import Watch

REPLY = 5.0
"""Seconds that one answer of the server may take."""

SILENCE = 5.0
"""Seconds without any message of the server after which it counts as lost."""


class ClientLibrary(Protocol):
    """A connection to one TRex server. Whatever fails raises :class:`.service.Refusal`, or an error of the library.

    Ports are given by number; counters are totals, flat: ``opackets-0``, ``m_cpu_util``, ``m_cpu_util-0`` and so on.
    """

    @property
    def watch(self) -> Watch:
        """What the server said of its own accord."""
        ...

    def load(self) -> None:
        """Import the library, once."""
        ...

    def connect(self, server: str, sync_port: int, async_port: int, username: str) -> dict[str, str]:
        """Connect; the versions of all that takes part."""
        ...

    def numbers(self) -> Sequence[int]:
        """The server's ports."""
        ...

    def facts(self, port: int) -> dict[str, Any]:
        """``mac``, ``speed_bps``, ``link_up``, ``driver`` and ``owner`` of *port*, asked now."""
        ...

    def acquire(self, ports: Sequence[int], force: bool, former: Mapping[str, str]) -> dict[str, str]:
        """Take *ports*, stop and forget what ran on them; the handler of each. *former*: handlers to give up first."""
        ...

    def release(self, ports: Sequence[int]) -> None:
        """Give back those of *ports* that are still held."""
        ...

    def disconnect(self) -> None:
        """Close the sockets only."""
        ...

    def streams(self, ports: Sequence[int], items: Mapping[int, Sequence[Mapping[str, Any]]]) -> None:
        """Replace all streams of *ports* by *items*: :class:`linerate.generators.streams.Stream` as data."""
        ...

    def rates(self, port: int) -> Mapping[str, Any]:
        """What the server says that the streams of *port* amount to without a multiplier (``rate`` of ``validate``)."""
        ...

    def start(self, rates: Mapping[int, float], duration: float, as_they_are: Container[int] = ()) -> float:
        """Let all ports of *rates* (frames/s) begin together; the moment of the answer (``time.monotonic()``).

        *duration* in s of the server's clock; -1: until they are stopped, or their streams end. *as_they_are*: ports
        whose streams have these rates already.
        """
        ...

    def update(self, rates: Mapping[int, float]) -> None:
        """New rates for ports that send, by one message."""
        ...

    def halt(self, ports: Sequence[int]) -> None:
        """Stop what is sending on those of *ports* that are held, whatever the library believes of it."""
        ...

    def listen(self) -> None:
        """Take in what the server has to say of its own accord, where the library must ask for it."""
        ...

    def look(self, port: int) -> None:
        """Ask whether the link of *port* is up; the answer goes to the watch."""
        ...

    def fresh(self, ports: Sequence[int]) -> Mapping[str, Any]:
        """Counters of this moment."""
        ...

    def cores(self) -> list[list[float]]:
        """How busy each of the server's sending cores was, in per cent of each second, the latest first (up to 20)."""
        ...

    def groups(self, numbers: Sequence[int]) -> Mapping[str, Any]:
        """What the server counted of packet groups, in its own words (see :mod:`.groups`)."""
        ...

    def capture(self, ports: Sequence[int], limit: int) -> dict[int, int]:
        """Begin to keep up to *limit* frames that each of *ports* receives; a number for each capture."""
        ...

    def captured(self, number: int) -> list[bytes]:
        """End a capture; its frames."""
        ...

    def service_off(self, ports: Sequence[int]) -> None:
        """End what captures need of the ports, and the captures that are left."""
        ...

    @property
    def reachable(self) -> bool:
        """Whether the connection stands, as far as the library knows."""
        ...

    @property
    def lost(self) -> bool:
        """Whether the server has fallen silent. False while never connected."""
        ...

    @property
    def cause(self) -> str:
        """Why there is no connection."""
        ...
