"""What outlives a server that is started again: the router, which on a real bench is another machine.

Its configuration, its counters and the moment it booted pass from one process to the next. What it counts by thread and
node (``show runtime``) begins anew, as after ``clear runtime``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..state import InterfaceState, RouterConfiguration, RouterState, configuration_from_json, to_json

COUNTS = ("rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "rx_missed", "no_route", "tx_dropped")


@dataclass(frozen=True, slots=True)
class Remains:
    """A router at the end of the process that modelled it. ``booted``: when, by the machine's monotonic clock in s."""

    booted: float
    interfaces: tuple[InterfaceState, ...]
    configuration: RouterConfiguration

    @classmethod
    def of(cls, state: RouterState, speed: float, now: Callable[[], float] = time.monotonic) -> Remains:
        """Those of *state*, whose clock runs *speed* times as fast as *now*."""
        return cls(now() - state.uptime / speed, state.interfaces, state.configuration)

    def uptime(self, speed: float, now: Callable[[], float] = time.monotonic) -> float:
        """How long the router is up by now, in s of the bench's clock."""
        return (now() - self.booted) * speed

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        interfaces = [asdict(row) for row in self.interfaces]
        return {"booted": self.booted, "interfaces": interfaces, "configuration": to_json(self.configuration)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Remains:
        """The inverse of :meth:`to_json`."""
        interfaces = tuple(InterfaceState(**row) for row in data["interfaces"])
        return cls(float(data["booted"]), interfaces, configuration_from_json(data["configuration"]))


def base_of(remains: Remains, fresh: RouterState) -> dict[str, InterfaceState]:
    """By interface, what is to be taken off the counts of *fresh* for them to go on where those of *remains* ended."""
    old = {row.name: row for row in remains.interfaces}
    return {
        row.name: replace(row, **{name: getattr(row, name) - getattr(old[row.name], name) for name in COUNTS})
        for row in fresh.interfaces
        if row.name in old
    }
