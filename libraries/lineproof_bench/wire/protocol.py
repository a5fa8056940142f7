"""Between the backend and its sending processes: what they send, and a status in shared memory.

Latency frames end in a header as long as TRex's, by which they are known again.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass

from ..backend import StreamTraffic

MAGIC = 0xAB5A
"""The first byte is TRex's."""
LATENCY_HEADER = struct.Struct(">HBBIQ")
"""Magic, which start it belongs to, number of the group, sequence number, and when it was sent, in ns of real time."""
LATENCY_GROUPS = 128

STATUS = struct.Struct("=qd")
"""The fields that a sender writes to shared memory: number of the last trial ended, CPU seconds."""

KEPT_DELAYS = 1 << 14
"""Latency frames whose send delay is kept."""

STATUS_BYTES = STATUS.size + 8 * (2 * LATENCY_GROUPS + KEPT_DELAYS)
"""Size of that memory."""

_NANOSECONDS = (1 << 24) - 1


class SentProbes:
    """The latency frames that a process sent, in its *status*: counts of each group, and when they really left.

    Each word of 64 bits is read and written whole, which ``struct`` does not promise. Different groups use different
    places of the delays; each has start, sequence number and ns.
    """

    def __init__(self, status: mmap.mmap) -> None:
        words = memoryview(status)[STATUS.size : STATUS_BYTES].cast("Q")
        self._counts, self._delays = words[: 2 * LATENCY_GROUPS], words[2 * LATENCY_GROUPS :]

    def count(self, group: int, size: int) -> None:
        """The kernel took a frame of *size* bytes with FCS."""
        self._counts[2 * group] += 1
        self._counts[2 * group + 1] += size

    def counted(self, group: int) -> tuple[int, int]:
        """Frames and L2 bytes of *group* since the process began."""
        return self._counts[2 * group], self._counts[2 * group + 1]

    def keep(self, group: int, start: int, number: int, nanoseconds: int) -> None:
        """Keep how many ns after its stamp the kernel gave this frame to the interface."""
        self._delays[_place(group, number)] = start << 56 | number << 24 | min(nanoseconds, _NANOSECONDS)

    def delay(self, group: int, start: int, number: int) -> int | None:
        """The delay in ns of a frame that was received; None if it is not known any more."""
        word = self._delays[_place(group, number)]
        return word & _NANOSECONDS if word >> 24 == start << 32 | number else None


def _place(group: int, number: int) -> int:
    return (131 * group + number) % KEPT_DELAYS


@dataclass(frozen=True, slots=True)
class SenderLoad:
    """The load that a port's plain, or latency, senders have to send.

    ``groups``: for latency streams, the number of each one's group, and ``start`` which start it is.
    """

    streams: tuple[StreamTraffic, ...] = ()
    groups: tuple[int, ...] = ()
    start: int = 0
