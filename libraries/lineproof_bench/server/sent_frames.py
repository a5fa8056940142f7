"""The frames that streams send, in order of time, for captures of sent frames."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice

from ..backend import StreamTraffic
from ..model.flows import frame_of


def first_frames(traffic: tuple[StreamTraffic, ...], most: int, at: float) -> list[tuple[float, bytes]]:
    """The first *most* frames of *traffic* without FCS, with their times in s; the first is sent at *at*."""
    streams = [_frames(number, stream) for number, stream in enumerate(traffic) if stream.pps > 0]
    return [(at + due, frame_of(traffic[number], place)) for due, number, place in islice(heapq.merge(*streams), most)]


def _frames(number: int, stream: StreamTraffic) -> Iterator[tuple[float, int, int]]:
    place = 0
    while stream.count is None or place < stream.count:
        yield stream.isg_usec / 1e6 + place / stream.pps, number, place
        place += 1
