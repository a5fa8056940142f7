"""Frames that a fault adds to a count: a share of the frames counted while it lasts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lineproof.simulation.faults import InjectedFault

from ..backend import CapturedFrame

CountKey = tuple[str, int]
"""The name of a count, and its port or packet group."""


@dataclass(slots=True)
class _Added:
    fault: InjectedFault
    key: CountKey
    share: float
    first: int


class AddedFrames:
    """Frames added by key. *count*: frames counted under a key up to now."""

    def __init__(self, count: Callable[[CountKey], int]) -> None:
        self._count = count
        self._active: list[_Added] = []
        self._ended: dict[CountKey, int] = {}

    def begin(self, fault: InjectedFault, key: CountKey, share: float) -> None:
        """From now on add *share* of what is counted under *key*; a share that was added before ends."""
        self._ended[key] = self.of(key)
        self._active = [row for row in self._active if row.key != key]
        self._active.append(_Added(fault, key, share, self._count(key)))

    def end(self, fault: InjectedFault) -> None:
        """Add no more frames because of *fault*."""
        for row in [row for row in self._active if row.fault is fault]:
            self._ended[row.key] = self.of(row.key)
            self._active.remove(row)

    def of(self, key: CountKey) -> int:
        """Frames added under *key* up to now."""
        found = self._ended.get(key, 0)
        for row in self._active:
            if row.key == key:
                found += int(row.share * (self._count(key) - row.first))
        return found

    def forget(self, key: CountKey) -> None:
        """The count under *key* begins at zero again."""
        self._ended.pop(key, None)
        for row in self._active:
            if row.key == key:
                row.first = 0


HELLO_SECONDS = 2.0
"""Seconds between foreign frames, as between spanning tree's hellos (IEEE 802.1D)."""

HELLO = bytes.fromhex("0180c2000000 0200000000fe 0026 424203") + bytes(35 + 8)
"""A configuration message of spanning tree, from a bridge with the address 02:00:00:00:00:fe."""

PAUSE_SECONDS = 0.01
"""Seconds between pause frames. Of 10 Gbit/s the longest pause that one frame asks for is 3.4 ms (65 535 x 512 bit)."""


class PeriodicFrames:
    """Frames that come by themselves to the ports of a fault, every *period* s while it lasts. *now*: s."""

    def __init__(self, now: Callable[[], float], period: float) -> None:
        self._now, self._period = now, period
        self._active: list[tuple[InjectedFault, float]] = []
        self._ended: list[tuple[InjectedFault, int]] = []

    def begin(self, fault: InjectedFault) -> None:
        """The first come after a period."""
        self._active.append((fault, self._now()))

    def end(self, fault: InjectedFault) -> None:
        """No more of them because of *fault*."""
        for row in [row for row in self._active if row[0] is fault]:
            self._active.remove(row)
            self._ended.append((fault, self._since(row[1], fault)))

    def at(self, port: int) -> int:
        """Frames that came to *port* up to now."""
        found = [*self._ended, *((fault, self._since(began, fault)) for fault, began in self._active)]
        return sum(count for fault, count in found if fault.port in (None, port))

    def _since(self, began: float, fault: InjectedFault) -> int:
        return int((self._now() - began) / self._period) * (fault.frames or 1)


class HelloFrames(PeriodicFrames):
    """Hellos of a bridge's spanning tree, which can be captured."""

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__(now, HELLO_SECONDS)
        self._requests: dict[int, tuple[int, int]] = {}

    def capture(self, port: int, limit: int) -> None:
        """Keep the last *limit* at *port*; forget those kept."""
        self._requests[port] = self.at(port), limit

    def captured(self, port: int) -> tuple[CapturedFrame, ...]:
        """Return those since :meth:`capture`, or the last call."""
        first, limit = self._requests.get(port, (0, 0))
        new = min(limit, self.at(port) - first)
        self._requests[port] = self.at(port), limit
        return (CapturedFrame(port, HELLO, self._now()),) * new


class PauseFrames:
    """Pause frames that one end of a cable sends the other one. *now*: s."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._of = {who: PeriodicFrames(now, PAUSE_SECONDS) for who in ("router", "generator")}

    def begin(self, fault: InjectedFault) -> None:
        """The first come after PAUSE_SECONDS; of another fault none."""
        if fault.kind == "pause frames":
            self._of[fault.of or "router"].begin(fault)

    def end(self, fault: InjectedFault) -> None:
        """No more of them because of *fault*."""
        for frames in self._of.values():
            frames.end(fault)

    def at(self, port: int, by: str) -> dict[str, int]:
        """Return those at *port*, as the card there ``by`` generator or router counts them."""
        received = "router" if by == "generator" else "generator"
        return {"pauses_received": self._of[received].at(port), "pauses_sent": self._of[by].at(port)}
