"""When faults begin and end, in seconds of the bench's clock. What they do is not known here."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from lineproof.simulation.faults import InjectedFault


class FreezableClock:
    """The bench's clock in s, as far as it has been *reached*: what was due by then is done.

    It can be frozen at an earlier moment, while that is being done. Its readings never go back.
    """

    def __init__(self, now: float) -> None:
        self._frozen: float | None = None
        self._reached = self._last = now

    def reach(self, moment: float) -> None:
        """Go on to *moment*, by which all that was due is done."""
        self._reached = moment

    def now(self) -> float:
        """Return the seconds."""
        self._last = max(self._last, self._reached if self._frozen is None else self._frozen)
        return self._last

    @contextmanager
    def frozen_at(self, moment: float) -> Iterator[None]:
        """Stop the clock at *moment* while the context is open; after it an outer one's moment counts again."""
        outer, self._frozen = self._frozen, moment
        try:
            yield
        finally:
            self._frozen = outer


class FaultSchedule:
    """Faults that wait for a start of traffic, and those whose moment to begin or end is known."""

    def __init__(self) -> None:
        self._armed: list[tuple[InjectedFault, int]] = []
        self._due: list[tuple[float, int, InjectedFault, bool]] = []
        self._number = itertools.count()
        self._active: list[InjectedFault] = []

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

        A fault that is due to begin again while it lasts ends first.
        """
        if not self._due or self._due[0][0] > now:
            return None
        moment, _, fault, begins = self._due[0]
        if not begins:
            heapq.heappop(self._due)
            self._active = [row for row in self._active if row is not fault]
        elif any(row is fault for row in self._active):
            self._due.remove(min(row for row in self._due if row[2] is fault and not row[3]))
            heapq.heapify(self._due)
            self._active = [row for row in self._active if row is not fault]
            begins = False
        else:
            heapq.heappop(self._due)
            if fault.lasts is not None:
                self._active.append(fault)
        return moment, fault, begins

    def left(self, now: float) -> list[InjectedFault]:
        """The faults that have not begun yet, for a schedule that begins at *now*."""
        waiting = [fault.model_copy(update={"start": starts}) for fault, starts in self._armed]
        due = [
            fault.model_copy(update={"start": 0, "at": max(0.0, moment - now), "every": False})
            for moment, _, fault, begins in sorted(self._due, key=lambda row: row[:2])
            if begins
        ]
        return [*waiting, *due]


def share_left(faults: Iterable[InjectedFault], port: int) -> float:
    """The share of *port*'s frames that is left by *faults*."""
    return math.prod(1 - (fault.share or 0.0) for fault in faults if fault.port in (None, port))
