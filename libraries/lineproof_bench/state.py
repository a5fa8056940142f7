"""The simulated router as its shell sees and configures it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol


class InterfaceState(NamedTuple):
    """Counts since boot. ``rx_packets`` were received by the router; ``rx_missed`` never left the NIC's ring;
    ``rx_damaged`` had CRC errors.
    """

    name: str
    mac: str
    speed_bps: float
    link_up: bool
    rx_packets: int = 0
    rx_bytes: int = 0
    tx_packets: int = 0
    tx_bytes: int = 0
    rx_missed: int = 0
    no_route: int = 0
    tx_dropped: int = 0
    rx_damaged: int = 0
    pauses_received: int = 0
    pauses_sent: int = 0

    @property
    def handed(self) -> int:
        """Frames forwarded to this interface: those sent, and those that found no room in its ring."""
        return self.tx_packets + self.tx_dropped


@dataclass(frozen=True, slots=True)
class NodeState:
    """A VPP graph node since ``clear runtime``. ``clocks``: sum of cycles."""

    name: str
    state: str
    calls: int
    vectors: int
    clocks: float


@dataclass(frozen=True, slots=True)
class ThreadState:
    """A thread (VPP) or CPU (Linux, FreeBSD): its receive queues as (interface, queue), its nodes, frames handled."""

    name: str
    lcore: int
    queues: tuple[tuple[str, int], ...] = ()
    nodes: tuple[NodeState, ...] = ()
    packets: int = 0
    busy_seconds: float = 0.0
    """Time of the core spent on packets since ``clear``; ``idle_seconds``: the rest. Neither ever falls until then."""
    idle_seconds: float = 0.0

    def ticks(self, hertz: int) -> tuple[int, int]:
        """Return the whole ticks of ``busy_seconds`` and ``idle_seconds``, as a kernel counts them."""
        return int(hertz * self.busy_seconds), int(hertz * self.idle_seconds)


@dataclass(frozen=True, slots=True)
class RouterConfiguration:
    """The configuration that the shell has made. Without addresses, neighbours and routes a model forwards nothing."""

    up: tuple[str, ...] = ()
    addresses: tuple[tuple[str, str], ...] = ()
    """(interface, ``100.65.1.1/24``)"""
    neighbours: tuple[tuple[str, str, str], ...] = ()
    """(interface, address, MAC)"""
    routes: tuple[tuple[str, str], ...] = ()
    """(prefix, next hop)"""
    learned: tuple[tuple[str, str], ...] = ()
    """(interface, address) of the neighbours that are not set for good, but as if by ARP."""
    done: tuple[str, ...] = ()
    """Commands of a study that have been run and not undone, in their order."""

    def interface_towards(self, gateway: str) -> str | None:
        """Return the interface through which *gateway* is directly reached."""
        try:
            hop = ipaddress.ip_address(gateway)
        except ValueError:
            return None
        nets = ((name, ipaddress.ip_interface(address).network) for name, address in self.addresses)
        return next((name for name, net in nets if hop in net), None)

    def is_learned(self, interface: str, address: str) -> bool:
        """Return whether the neighbour *address* is not set for good."""
        return (interface, address) in self.learned

    def with_neighbour(self, row: tuple[str, str, str], learned: bool) -> RouterConfiguration:
        """Return the configuration with this neighbour, in place of any other entry of its address there."""
        others = self.without_neighbour(*row[:2])
        mark = (row[:2],) if learned else ()
        return replace(others, neighbours=(*others.neighbours, row), learned=(*others.learned, *mark))

    def without_neighbour(self, interface: str, address: str) -> RouterConfiguration:
        """Return the configuration without any entry of *address* there."""
        key = (interface, address)
        kept = tuple(row for row in self.neighbours if row[:2] != key)
        return replace(self, neighbours=kept, learned=tuple(row for row in self.learned if row != key))

    def without_neighbours(self, interface: str) -> RouterConfiguration:
        """Return the configuration without any neighbour at *interface*."""
        changed = self
        for name, address, _ in self.neighbours:
            changed = changed.without_neighbour(name, address) if name == interface else changed
        return changed


@dataclass(frozen=True, slots=True)
class RouterState:
    """The whole router. ``uptime`` and ``since_clear`` in s of the bench's clock."""

    software: str
    version: str
    hostname: str
    uptime: float
    since_clear: float
    clock_hz: float
    interfaces: tuple[InterfaceState, ...]
    threads: tuple[ThreadState, ...]
    configuration: RouterConfiguration = field(default_factory=RouterConfiguration)


class ModelledRouter(Protocol):
    """A router that exists as a model, for its shell."""

    def state(self) -> RouterState:
        """Return the router as it is now."""

    def configure(self, configuration: RouterConfiguration) -> None:
        """Replace the whole configuration. Raises ValueError or TestbedError with a sentence."""

    def clear(self) -> None:
        """``clear runtime``."""
