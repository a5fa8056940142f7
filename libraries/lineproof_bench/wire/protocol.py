"""Between the backend and its sending processes: what they send, and a status in shared memory."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass

from ..backend import StreamTraffic

STATUS = struct.Struct("=qd")
"""The fields that a sender writes to shared memory: number of the last trial ended, CPU seconds."""

_DELAYS_AT = 4 * mmap.PAGESIZE

KEPT_DELAYS = 1 << 14
"""Latency frames whose send delay is kept."""

STATUS_BYTES = _DELAYS_AT + 8 * KEPT_DELAYS
"""Size of that memory."""

SLOTS = 2000
"""Counts of frames by stream group behind STATUS, 64 bits each."""

_SLOTS_AT = 64


def slots_of(status: mmap.mmap) -> memoryview:
    """The counts by group, SLOTS numbers: each is read and written whole, which ``struct`` does not promise."""
    return memoryview(status)[_SLOTS_AT : _SLOTS_AT + 8 * SLOTS].cast("q")


class SendDelays:
    """How many ns after its stamp the kernel gave a latency frame to the interface, kept in a process's *status*.

    One 64-bit word for each frame: start, sequence number, ns. Different groups use different places.
    """

    def __init__(self, status: mmap.mmap) -> None:
        self._words = memoryview(status)[_DELAYS_AT:STATUS_BYTES].cast("Q")

    def keep(self, group: int, start: int, number: int, nanoseconds: int) -> None:
        """Keep the delay of a frame that was sent."""
        self._words[_place(group, number)] = start << 56 | number << 24 | min(nanoseconds, _NANOSECONDS)

    def of(self, group: int, start: int, number: int) -> int | None:
        """The delay in ns of a frame that was received; None if it is not known any more."""
        word = self._words[_place(group, number)]
        return word & _NANOSECONDS if word >> 24 == start << 32 | number else None


_NANOSECONDS = (1 << 24) - 1


def _place(group: int, number: int) -> int:
    return (131 * group + number) % KEPT_DELAYS


@dataclass(frozen=True, slots=True)
class SenderLoad:
    """The load that a port's plain, or latency, senders have to send.

    ``slots``: where the frames of each stream are counted, -1: nowhere; empty: of none. ``groups``: for latency
    streams, the number of each one's group, and ``start`` which start it is.
    """

    streams: tuple[StreamTraffic, ...] = ()
    slots: tuple[int, ...] = ()
    groups: tuple[int, ...] = ()
    start: int = 0
