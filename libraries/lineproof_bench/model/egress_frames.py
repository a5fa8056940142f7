"""Frames that leave the router: their counts, and their bytes, which are made when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice

from ..backend import CapturedFrame, StreamTraffic
from .flows import flow_of, forwarded_frame, frame_of, ttl_offset
from .routing import Fib

_LOOKED_AT = 4096
"""Frames of a stream that are looked at, at least, for those that leave by a port."""


@dataclass(frozen=True, slots=True)
class LeavingFrames:
    """*frames* of those *numbers* of a stream, of *size* bytes with FCS, that leave for the port *exit*.

    They come within ``begin`` … ``end``, s. ``sent``: the frame of a number as it leaves, () if it is not among them;
    lost ones are not left out: the model counts them without knowing which ones they are. ``copies``: frames that come
    twice, in the place of as many lost ones. ``is_known``: whether TRex can tell their packet group. ``hold``: how much
    later than usual they come, s.
    """

    exit: int
    frames: int
    size: int
    numbers: range
    begin: float
    end: float
    sent: Callable[[int], Sequence[bytes]]
    copies: int = 0
    is_known: bool = True
    is_multicast: bool = False
    hold: float = 0.0

    def data(self, most: int) -> Iterator[tuple[float, bytes]]:
        """Yield the last of them, *most* at most, the last one first, each with its moment."""
        left, looked = min(most, self.frames), max(_LOOKED_AT, 4 * most)
        apart = (self.end - self.begin) / max(1, len(self.numbers))
        for number in self.numbers[: -looked - 1 : -1]:
            if left <= 0:
                return
            moment = self.begin + (number - self.numbers.start + 0.5) * apart
            for data in self.sent(number):
                yield moment, data
                left -= 1


class KeptFrames:
    """The last *limit* frames that come to a port."""

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit
        self._rows: list[LeavingFrames] = []

    def add(self, new: LeavingFrames) -> None:
        """Keep what is needed of *new*: which of the frames of one moment came first is known when all are there."""
        self._rows.append(new)
        while self._rows and sum(row.frames for row in self._rows if row.end > self._rows[0].end) >= self.limit:
            del self._rows[0]

    def take(self, port: int) -> tuple[CapturedFrame, ...]:
        """Return those kept since the last call, in the order in which they came."""
        # from the last one on: frames that are not kept are not made either
        last_first = merge(*(row.data(self.limit) for row in self._rows[::-1]), key=lambda pair: -pair[0])
        found = list(islice(last_first, self.limit))
        self._rows.clear()
        return tuple(CapturedFrame(port, data, moment) for moment, data in reversed(found))


def egress_frame(traffic: StreamTraffic, fib: Fib, interface: str, source_mac: str, number: int) -> tuple[bytes, ...]:
    """Frame *number* of *traffic* as the router sends it, if it leaves by *interface*."""
    frame = frame_of(traffic, number)
    flow = flow_of(frame)
    exit_ = fib.exit_for(flow)
    if exit_ and exit_.interface == interface and frame[ttl_offset(flow)] > 1:
        return (forwarded_frame(frame, flow, source_mac, exit_.mac),)
    return ()
