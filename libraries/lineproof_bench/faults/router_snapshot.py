"""The router at the restart of a server: on real hardware it is another machine, which goes on.

Its configuration, its counters and its boot time pass from one process to the next. Its counts by thread and node
(``show runtime``) begin at zero, as after ``clear runtime``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..state import InterfaceState, RouterConfiguration, RouterState, configuration_from_json, to_json

COUNTERS = ("rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "rx_missed", "rx_damaged", "no_route", "tx_dropped")


@dataclass(frozen=True, slots=True)
class RouterSnapshot:
    """A router at the end of the process that modelled it. ``booted`` on the machine's monotonic clock, s."""

    booted: float
    interfaces: tuple[InterfaceState, ...]
    configuration: RouterConfiguration

    @classmethod
    def of(cls, state: RouterState, speed: float, now: Callable[[], float] = time.monotonic) -> RouterSnapshot:
        """From *state*, whose clock runs *speed* times as fast as *now*."""
        return cls(now() - state.uptime / speed, state.interfaces, state.configuration)

    def uptime(self, speed: float, now: Callable[[], float] = time.monotonic) -> float:
        """Uptime now, in s of the bench's clock."""
        return (now() - self.booted) * speed

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        interfaces = [asdict(row) for row in self.interfaces]
        return {"booted": self.booted, "interfaces": interfaces, "configuration": to_json(self.configuration)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RouterSnapshot:
        """The inverse of :meth:`to_json`."""
        interfaces = tuple(InterfaceState(**row) for row in data["interfaces"])
        return cls(float(data["booted"]), interfaces, configuration_from_json(data["configuration"]))


def counter_base(snapshot: RouterSnapshot, fresh: RouterState) -> dict[str, InterfaceState]:
    """By interface, what to subtract from the counts of *fresh* so that they continue those of *snapshot*."""
    before = {row.name: row for row in snapshot.interfaces}
    return {
        row.name: replace(row, **{name: getattr(row, name) - getattr(before[row.name], name) for name in COUNTERS})
        for row in fresh.interfaces
        if row.name in before
    }
