"""The testbed around the server: processors that send for a port, the place of its card, habits that it has itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lineproof.simulation.habits import Habit, HabitKind

from .params import refused

ALL_CORES = (1 << 64) - 1
"""TRex's mask where a client gives none."""


@dataclass(frozen=True, slots=True)
class Places:
    """``cores`` that send, for each pair of ports. ``numa``, ``pci``: each port's node, and its own address."""

    cores: int = 1
    numa: Sequence[int] = ()
    pci: Sequence[str] = ()

    def check_mask(self, mask: int) -> None:
        """Raise RpcError for a mask of ``start_traffic`` that leaves none of a pair's cores."""
        if not mask & (1 << self.cores) - 1:
            raise refused(f"core_mask: '0x{mask:x}' for {self.cores} cores generates an empty set")

    def of_port(self, index: int) -> dict[str, Any]:
        """Return its part of the port's entry. The ports of a pair share their cores."""
        first = index // 2 * self.cores
        return {
            "cores": list(range(first, first + self.cores)),
            "numa": self.numa[index] if index < len(self.numa) else -1,
            **({"pci_addr": self.pci[index]} if index < len(self.pci) else {}),
        }


class ServerHabits:
    """*habits* of the testbed; *next_hops* by port: its own IPv4 address and the router's."""

    def __init__(self, habits: Sequence[Habit] = (), next_hops: Sequence[Sequence[str]] = ()) -> None:
        self._habits, self._next_hops = habits, [(row[0], row[1]) for row in next_hops]

    def has(self, kind: HabitKind, port: int) -> bool:
        """Return whether *port* has this habit."""
        return any(habit.kind == kind and habit.port in (None, port) for habit in self._habits)

    def unresolved(self, port: int) -> tuple[str, str] | None:
        """The addresses of *port* and of its gateway, whose MAC address the server does not know; None: it does."""
        if not (self.has("silent gateway", port) or self.has("gateway unknown at start", port)):
            return None
        return self._next_hops[port] if port < len(self._next_hops) else ("0.0.0.0", "0.0.0.0")
