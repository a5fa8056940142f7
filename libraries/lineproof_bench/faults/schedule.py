"""When faults begin and end, in seconds of the bench's clock, and the frames that they add to a count meanwhile."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from lineproof.simulation.faults import InjectedFault

Counts = Mapping[int, float]
"""Counts up to a moment, by port or packet group."""

_TINY = 1e-9
"""Frames: a share that is short of a whole frame by less is whole."""


class FaultSchedule:
    """Faults that wait for a start of traffic, those whose moment is known, and those that last."""

    def __init__(self) -> None:
        self._armed: list[tuple[InjectedFault, int]] = []
        self._due: list[tuple[float, InjectedFault]] = []
        self._ends: list[tuple[float, InjectedFault]] = []

    @property
    def active(self) -> list[InjectedFault]:
        """The faults that have begun and last, in the order in which they began."""
        return [fault for _, fault in self._ends]

    @property
    def next_change(self) -> float:
        """When one begins or ends next; infinite: not before another start."""
        return min((moment for moment, _ in (*self._due, *self._ends)), default=math.inf)

    def arm(self, faults: Iterable[InjectedFault], now: float) -> None:
        """Let *faults* wait for their start; those without one begin ``at`` s after *now*."""
        for fault in faults:
            if fault.start:
                self._armed.append((fault, fault.start))
            else:
                self._due.append((now + fault.at, fault))

    def started(self, now: float) -> None:
        """Traffic was started."""
        self._due += [(now + fault.at, fault) for fault, left in self._armed if left == 1]
        self._armed = [(fault, max(1, left - 1)) for fault, left in self._armed if left > 1 or fault.every]

    def pop(self, now: float) -> tuple[InjectedFault, bool] | None:
        """The next change that is due by *now*: the fault, and whether it begins (else it ends).

        A fault that is due to begin again while it lasts ends first.
        """
        moment, fault = min((*self._ends, *self._due), key=lambda row: row[0], default=(math.inf, None))
        if fault is None or moment > now:
            return None
        if lasting := next((row for row in self._ends if row[1] is fault), None):
            self._ends.remove(lasting)
            return fault, False
        self._due.remove((moment, fault))
        if fault.lasts is not None:
            self._ends.append((moment + fault.lasts, fault))
        return fault, True

    def left(self, now: float) -> tuple[InjectedFault, ...]:
        """The faults that have not begun yet, for a schedule that begins at *now*."""
        waiting = [fault.model_copy(update={"start": starts}) for fault, starts in self._armed]
        due = [
            fault.model_copy(update={"start": 0, "at": max(0.0, moment - now), "every": False})
            for moment, fault in sorted(self._due, key=lambda row: row[0])
        ]
        return (*waiting, *due)


@dataclass(slots=True)
class _Added:
    fault: InjectedFault
    name: str
    share: float
    times: int
    first: dict[int, float]
    last: dict[int, float] | None = None


class AddedFrames:
    """Frames added under the name of a count. *counted*: the counts of a name up to now."""

    def __init__(self, counted: Callable[[str], Counts]) -> None:
        self._counted = counted
        self._rows: list[_Added] = []

    def __bool__(self) -> bool:
        """Return whether any were ever added."""
        return bool(self._rows)

    def begin(self, fault: InjectedFault, name: str, share: float = 1.0, times: int = 1) -> None:
        """From now on add *times* frames for each whole one in this *share* of what is counted under *name*."""
        self._rows.append(_Added(fault, name, share, times, dict(self._counted(name))))

    def end(self, fault: InjectedFault) -> None:
        """Add no more frames because of *fault*."""
        for row in self._rows:
            if row.fault is fault and row.last is None:
                row.last = dict(self._counted(row.name))

    def of(self, name: str, number: int, port: int | None = None) -> int:
        """Frames added up to now to the count *number*; *port*: by faults of that port only."""
        found = 0
        for row in self._rows:
            if row.name == name and (port is None or row.fault.port in (None, port)):
                counted = self._counted(name) if row.last is None else row.last
                found += row.times * math.floor(row.share * (counted.get(number, 0) - row.first.get(number, 0)) + _TINY)
        return found

    def forget(self, name: str, number: int) -> None:
        """The count *number* begins at zero again."""
        for row in self._rows:
            if row.name == name:
                row.first.pop(number, None)
                if row.last:
                    row.last.pop(number, None)
