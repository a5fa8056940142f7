"""Frames that a fault adds to a count: a share of what is counted while it lasts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from linerate.simulation.faults import InjectedFault

Key = tuple[str, int]
"""What is added, and the port or the packet group that it is added to."""


@dataclass(slots=True)
class _Meter:
    fault: InjectedFault
    key: Key
    share: float
    first: int


class Shares:
    """*count* tells how many frames there are by now, of which a share is added under a key."""

    def __init__(self, count: Callable[[Key], int]) -> None:
        self._count = count
        self._meters: list[_Meter] = []
        self._added: dict[Key, int] = {}

    def begin(self, fault: InjectedFault, key: Key, share: float) -> None:
        """From now on add *share* of what is counted, in place of what was added under *key* so far."""
        self._added[key] = self.of(key)
        self._meters = [row for row in self._meters if row.key != key]
        self._meters.append(_Meter(fault, key, share, self._count(key)))

    def end(self, fault: InjectedFault) -> None:
        """Add no more because of *fault*."""
        for meter in [row for row in self._meters if row.fault is fault]:
            self._added[meter.key] = self.of(meter.key)
            self._meters.remove(meter)

    def of(self, key: Key) -> int:
        """Frames added up to now."""
        found = self._added.get(key, 0)
        for meter in self._meters:
            if meter.key == key:
                found += int(meter.share * (self._count(key) - meter.first))
        return found

    def forget(self, key: Key) -> None:
        """What is counted under *key* begins anew."""
        self._added.pop(key, None)
        for meter in self._meters:
            if meter.key == key:
                meter.first = 0
