"""A router with a deep queue: what it holds comes back after the end of sending, so that short trials lose nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

from lineproof.core.trial import DirectionCount, Load, Outcome


@dataclass
class QueuedRouter:
    """``capacity`` in frames/s of each direction; ``queue``: frames that it holds. ``asked``: loads and durations."""

    capacity: float
    queue: int
    directions: int = 1
    asked: list[tuple[float, float]] = field(default_factory=list)

    def __call__(self, load: Load, duration: float) -> Outcome:
        self.asked.append((load.pps, duration))
        sent = int(load.pps * duration)
        at_once = min(sent, int(self.capacity * duration))
        held = min(sent - at_once, self.queue)
        counts = [
            DirectionCount(port, 1 - port, sent, sent, at_once + held, backlog=held) for port in range(self.directions)
        ]
        return Outcome(load, duration, duration, 1_795_000_000.0, tuple(counts))
