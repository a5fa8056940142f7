"""Frames that faults add to a count: a share of what is counted while they last."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lineproof.simulation.faults import InjectedFault

Counts = Mapping[int, float]
"""Counts up to a moment, by port or packet group."""


_TINY = 1e-9
"""Frames: a share that is short of a whole frame by less is whole."""


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
