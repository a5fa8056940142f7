"""Port counters as they are read: since a reset, or within 32 bits."""

from __future__ import annotations

from dataclasses import replace

from ..backend import PortCounters

WRAP = 2**32
FRAMES = ("opackets", "ipackets")
_BYTES = ("obytes", "ibytes")


class Readings:
    """What is read in place of what is counted; the same until something is asked for."""

    def __init__(self) -> None:
        self._offsets: dict[tuple[int, str], int] = {}
        self._wraps = False

    def reset(self, port: int, counted: PortCounters) -> None:
        """*port* begins at zero."""
        self._begin(port, counted, 0)

    def wrap(self, port: int, counted: PortCounters, left: int) -> None:
        """Frames of every port wrap at 32 bits; those of *port* are so many before it."""
        self._wraps = True
        self._begin(port, counted, WRAP - left)

    def _begin(self, port: int, counted: PortCounters, value: int) -> None:
        for name in FRAMES if self._wraps else (*FRAMES, *_BYTES):
            self._offsets[port, name] = value - getattr(counted, name)

    def seen(self, port: int, counted: PortCounters) -> PortCounters:
        """What is read where *counted* is true."""
        if not self._offsets:
            return counted
        seen = {name: getattr(counted, name) + self._offsets.get((port, name), 0) for name in (*FRAMES, *_BYTES)}
        if self._wraps:
            seen |= {name: seen[name] % WRAP for name in FRAMES}
        return replace(counted, **seen)
