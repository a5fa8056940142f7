"""The order and the delays of one packet group's latency frames, each of which was read."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict

from ..backend import WINDOW, LatencyCounters

MOST_MISSING = 1 << 16
"""The most missing frames whose numbers are kept; a frame older than these counts as a duplicate."""

_SMOOTHING = 16
"""RFC 3550 (6.4.1), as TRex: jitter follows the change from frame to frame by a sixteenth."""
_NUMBERS = 1 << 32
"""Sequence numbers have 32 bits."""


class LatencyTracker:
    """Latency, jitter and missing frames of one group."""

    def __init__(self) -> None:
        self._start = 0
        self._next = 0
        self._missing: OrderedDict[int, None] = OrderedDict()
        self._histogram: Counter[int] = Counter()
        self._frames = 0
        self._sum = 0.0
        self._least, self._most = math.inf, 0.0
        self._before: float | None = None
        self._jitter = 0.0
        self._window = (0.0, 0.0, 0.0)
        self._lost = self._late = self._repeated = 0

    def begin(self, start: int, first: int = 0) -> None:
        """Expect frames of *start* from number *first* on; the order of earlier starts is no longer checked."""
        self._start, self._next = start, first
        self._missing.clear()

    def add(self, start: int, number: int, usec: float, now: float) -> None:
        """A frame of *start* came *usec* µs after it was sent, at *now* s."""
        self._measure(max(0.0, usec), now)
        if start == self._start:
            self._order(number)

    def _order(self, number: int) -> None:
        ahead = (number - self._next) % _NUMBERS
        if ahead < _NUMBERS // 2:
            self._lost += ahead
            for missed in range(max(0, ahead - MOST_MISSING), ahead):
                self._missing[(self._next + missed) % _NUMBERS] = None
            while len(self._missing) > MOST_MISSING:
                self._missing.popitem(last=False)
            self._next = (number + 1) % _NUMBERS
        elif number in self._missing:
            del self._missing[number]
            self._lost -= 1
            self._late += 1
        else:
            self._repeated += 1

    def _measure(self, usec: float, now: float) -> None:
        self._frames += 1
        self._sum += usec
        self._histogram[int(usec)] += 1
        self._least, self._most = min(self._least, usec), max(self._most, usec)
        if self._before is not None:
            self._jitter += (abs(usec - self._before) - self._jitter) / _SMOOTHING
        self._before = usec
        began, present, before = self._window
        if now - began > WINDOW:
            began, present, before = now, 0.0, present if now - began < 2 * WINDOW else 0.0
        self._window = began, max(present, usec), before

    def counters(self) -> LatencyCounters:
        """The counts up to now."""
        return LatencyCounters(
            average=self._sum / self._frames if self._frames else 0.0,
            jitter=self._jitter,
            total_min=self._least if self._frames else 0.0,
            total_max=self._most,
            last_max=max(self._window[1:]),
            histogram=dict(sorted(self._histogram.items())),
            lost=self._lost,
            out_of_order=self._late,
            duplicates=self._repeated,
        )
