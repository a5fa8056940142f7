"""When faults begin and end: a small schedule in seconds of the bench's clock. Knows nothing of what they do."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from linerate.simulation.faults import InjectedFault


class HeldClock:
    """The bench's clock, *source* in s, that can be held at an earlier moment while what was due then is done.

    Never goes back for whoever reads it: what happened in between was not asked for yet.
    """

    def __init__(self, source: Callable[[], float]) -> None:
        self._source = source
        self._held: float | None = None
        self._last = source()

    def now(self) -> float:
        """Seconds."""
        found = self._source() if self._held is None else self._held
        self._last = max(self._last, found)
        return self._last

    def hold(self, moment: float) -> None:
        """Stand still at *moment* until :meth:`release`."""
        self._held = moment

    def release(self) -> None:
        """Go on."""
        self._held = None

    @contextmanager
    def held(self, moment: float) -> Iterator[None]:
        """Stands still at *moment* meanwhile."""
        self.hold(moment)
        try:
            yield
        finally:
            self.release()


class FaultSchedule:
    """Faults that wait for a start of traffic, and those whose moment to begin or end is known."""

    def __init__(self) -> None:
        self._armed: list[tuple[InjectedFault, int]] = []
        self._due: list[tuple[float, int, InjectedFault, bool]] = []
        self._number = itertools.count()
        self._on: list[InjectedFault] = []

    def arm(self, faults: Iterable[InjectedFault], now: float) -> None:
        """Let *faults* wait for their start; those without one begin ``at`` s after *now*."""
        for fault in faults:
            if fault.start:
                self._armed.append((fault, fault.start))
            else:
                self._plan(fault, now)

    def started(self, now: float) -> None:
        """Traffic was started."""
        waiting: list[tuple[InjectedFault, int]] = []
        for fault, left in self._armed:
            if left > 1:
                waiting.append((fault, left - 1))
                continue
            self._plan(fault, now)
            if fault.every:
                waiting.append((fault, 1))
        self._armed = waiting

    def _plan(self, fault: InjectedFault, now: float) -> None:
        begin = now + fault.at
        heapq.heappush(self._due, (begin, next(self._number), fault, True))
        if fault.lasts is not None:
            heapq.heappush(self._due, (begin + fault.lasts, next(self._number), fault, False))

    def pop(self, now: float) -> tuple[float, InjectedFault, bool] | None:
        """The next that is due by *now*: its moment, the fault, and whether it begins (else it ends).

        One that is to begin again while it lasts ends first: it takes the place of its former self.
        """
        if not self._due or self._due[0][0] > now:
            return None
        moment, _, fault, begins = self._due[0]
        if not begins:
            heapq.heappop(self._due)
            self._on = [row for row in self._on if row is not fault]
        elif any(row is fault for row in self._on):
            self._due.remove(min(row for row in self._due if row[2] is fault and not row[3]))
            heapq.heapify(self._due)
            self._on = [row for row in self._on if row is not fault]
            begins = False
        else:
            heapq.heappop(self._due)
            if fault.lasts is not None:
                self._on.append(fault)
        return moment, fault, begins

    def left(self, now: float) -> list[InjectedFault]:
        """What is still to begin, as faults for a schedule that begins at *now*; not what has only to end."""
        waiting = [fault.model_copy(update={"start": starts}) for fault, starts in self._armed]
        due = [
            fault.model_copy(update={"start": 0, "at": max(0.0, moment - now), "every": False})
            for moment, _, fault, begins in sorted(self._due, key=lambda row: row[:2])
            if begins
        ]
        return [*waiting, *due]
