"""Habits of ports that the server itself has: what it knows of the next hops, and what acquiring does."""

from __future__ import annotations

from collections.abc import Sequence

from lineproof.simulation.habits import Habit, HabitKind


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
