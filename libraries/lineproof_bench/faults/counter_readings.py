"""Counters as they are read: ports' since a reset, or within 32 bits; interfaces' after a new start of the model."""

from __future__ import annotations

from ..backend import PortCounters
from ..state import InterfaceState, RouterState

COUNTERS = ("rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "rx_missed", "rx_damaged", "no_route", "tx_dropped")
"""The counters of a router's interface."""
WRAP = 2**32
FRAMES = ("opackets", "ipackets")
_BYTES = ("obytes", "ibytes")


class CounterReadings:
    """Readings of port counters: the counts themselves until a reset or wrap is asked for."""

    def __init__(self) -> None:
        self._offsets: dict[tuple[int, str], int] = {}
        self._wraps = False

    def reset(self, port: int, counted: PortCounters) -> None:
        """*port* reads zero now."""
        self._read_as(port, counted, 0)

    def wrap(self, port: int, counted: PortCounters, left: int) -> None:
        """Frame counters of all ports wrap at 32 bits; those of *port* after *left* more frames."""
        self._wraps = True
        self._read_as(port, counted, WRAP - left)
        # as many frames were received and sent as the counters show, of 64 bytes at least
        self._offsets |= {(port, name): 64 * (WRAP - left) for name in _BYTES}

    def _read_as(self, port: int, counted: PortCounters, value: int) -> None:
        for name in FRAMES if self._wraps else (*FRAMES, *_BYTES):
            self._offsets[port, name] = value - getattr(counted, name)

    def read(self, port: int, counted: PortCounters) -> PortCounters:
        """The reading for the true counts *counted*."""
        if not self._offsets:
            return counted
        found = {name: getattr(counted, name) + self._offsets.get((port, name), 0) for name in (*FRAMES, *_BYTES)}
        if self._wraps:
            found |= {name: found[name] % WRAP for name in FRAMES}
        return counted._replace(**found)


def counter_base(router: RouterState, fresh: RouterState) -> dict[str, InterfaceState]:
    """Return by interface what to subtract from the counts of *fresh* so that they continue those of *router*."""
    before = {row.name: row for row in router.interfaces}
    return {
        row.name: row._replace(**{name: getattr(row, name) - getattr(before[row.name], name) for name in COUNTERS})
        for row in fresh.interfaces
        if row.name in before
    }
