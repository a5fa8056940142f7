"""The interface of a TRex client library in the client's process. Imports no library."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Protocol

from .messages import ServerEvents

REPLY_LIMIT = 5.0
"""Seconds for one answer of the server."""

SILENCE_LIMIT = 5.0
"""Seconds without a message after which the server counts as lost."""


class ClientLibrary(Protocol):
    """A connection to one TRex server. Methods raise :class:`.service.Refusal`, or an error of the library.

    Ports are numbers; counters are totals, flat: ``opackets-0``, ``m_cpu_util``, ``m_cpu_util-0`` and so on. They were
    read from ``earliest`` to ``latest``, s of the server's own clock.
    """

    pins_cores: bool
    """True: the ports of a pair that both send have cores of their own."""
    check_cancelled: Callable[[], None]
    """Raises Refusal once a long search shall end."""

    next_hops: Mapping[str, Mapping[str, Any]]
    """By port number, :class:`..next_hops.NextHop` as data."""

    @property
    def events(self) -> ServerEvents:
        """Events of the server."""
        ...

    def load(self) -> None:
        """Import the library, once."""
        ...

    def connect(self, server: str, sync_port: int, async_port: int, username: str) -> dict[str, str]:
        """Connect; return the versions of server, client and libraries."""
        ...

    def port_numbers(self) -> Sequence[int]:
        """The server's port numbers."""
        ...

    def port_facts(self, port: int) -> dict[str, Any]:
        """Current ``mac``, ``speed_bps``, ``link_up``, ``driver`` and ``owner`` of *port*."""
        ...

    def acquire(
        self, ports: Sequence[int], force: bool, former: Mapping[str, str], promiscuous: bool
    ) -> dict[str, str]:
        """Acquire *ports* without traffic and streams; return their handlers. *former*: handlers to release first.

        *promiscuous*: the ports receive frames for any MAC address until their release.
        """
        ...

    def release(self, ports: Sequence[int]) -> None:
        """Release those of *ports* that are still held."""
        ...

    def disconnect(self) -> None:
        """Close the sockets only."""
        ...

    def replace_streams(self, ports: Sequence[int], items: Mapping[int, Sequence[Mapping[str, Any]]]) -> None:
        """Replace all streams of *ports* by *items*: :class:`lineproof.generators.streams.Stream` as data.

        Asks for the MAC addresses that the ports need and do not know (:mod:`.stl_library`).
        """
        ...

    def rates(self, port: int) -> Mapping[str, Any]:
        """The server's account of the streams of *port* without a multiplier (``rate`` of ``validate``)."""
        ...

    def start(
        self,
        rates: Mapping[int, float],
        duration: float,
        ports: Sequence[int],
        gap: float,
        at_own_rates: Container[int] = (),
    ) -> tuple[float, Mapping[str, Any]]:
        """Start all ports of *rates* (frames/s) together; return a time before it, and the counters of *ports* then.

        Until the answer comes, the counters are asked for each *gap* s, if several requests can be under way.
        *duration* in s of the server's clock; -1: until stopped, or until the streams end. *at_own_rates*: ports whose
        streams have these rates already. All of it is one message.
        """
        ...

    def update(self, rates: Mapping[int, float]) -> None:
        """Change the rates of sending ports in one message."""
        ...

    def stop_traffic(self, ports: Sequence[int]) -> None:
        """Stop traffic on those of *ports* that are held, whatever state the library assumes."""
        ...

    def poll_events(self) -> None:
        """Fetch the server's events, if the library has to ask for them."""
        ...

    def check_links(self, ports: Sequence[int]) -> None:
        """Ask whether the links of *ports* are up; the answers go to :attr:`events`."""
        ...

    def read_counters(self, ports: Sequence[int], groups: Sequence[int] = ()) -> Mapping[str, Any]:
        """Current counters. Fetches the server's events, too. ``groups``: its counts of packet *groups*, if asked."""
        ...

    def ask_counters(self, ports: Sequence[int]) -> None:
        """Ask for the counters of *ports*, if possible without waiting for the answer."""
        ...

    @property
    def under_way(self) -> int:
        """Return the number of such requests whose counters were not taken."""
        ...

    def counters_come(self, ports: Sequence[int], wait: float) -> tuple[float, Mapping[str, Any]] | None:
        """The next counters that were asked for, and when by this machine's clock; None: none came within *wait* s."""
        ...

    def extended_counters(self, ports: Sequence[int]) -> Mapping[int, Mapping[str, int]]:
        """The cards' own counters since the server started, by port and by their own names, where there are any."""
        ...

    def core_loads(self) -> list[list[float]]:
        """Load of each sending core in per cent of each second, the latest first (up to 20)."""
        ...

    def capture(self, ports: Sequence[int], limit: int) -> int:
        """Keep the last *limit* frames that *ports* receive together; return the capture's number."""
        ...

    def captured(self, number: int, limit: int) -> dict[int, list[bytes]]:
        """Return up to *limit* frames of a capture by port, in their order."""
        ...

    def end_captures(self, ports: Sequence[int]) -> None:
        """End the remaining captures, and the service mode of the ports."""
        ...

    @property
    def reachable(self) -> bool:
        """Return whether the library reports a connection."""
        ...

    @property
    def lost(self) -> bool:
        """Return whether the server no longer answers. False before the first connection."""
        ...

    @property
    def disconnect_cause(self) -> str:
        """Why there is no connection."""
        ...
