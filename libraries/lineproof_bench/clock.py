"""The clock of a bench: seconds that never go back, on a simulated bench faster than the wall's."""

from __future__ import annotations

import time
from collections.abc import Callable


class Clock:
    """Runs *speed* times as fast as *source* (s, monotonic), from 0. Raises ValueError for a speed ≤ 0."""

    def __init__(self, speed: float = 1.0, source: Callable[[], float] = time.monotonic) -> None:
        if not speed > 0:
            raise ValueError(f"a clock's speed is {speed:g}; expected a number above 0, 1 for real time")
        self.speed = speed
        self._source = source
        self._begin = source()

    def now(self) -> float:
        """Seconds of the bench's time since the clock was made."""
        return (self._source() - self._begin) * self.speed
