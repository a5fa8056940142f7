"""The frames that streams send, in the order of their time: for captures of what a port sends."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice

from ..backend import StreamTraffic
from ..model.flows import frame_of


def first_frames(traffic: tuple[StreamTraffic, ...], most: int, at: float) -> list[tuple[float, bytes]]:
    """The first *most* frames of *traffic* without FCS, with their times in s when the first is sent at *at*."""
    directions = [_frames(number, stream) for number, stream in enumerate(traffic) if stream.pps > 0]
    return [
        (at + due, frame_of(traffic[number], place)) for due, number, place in islice(heapq.merge(*directions), most)
    ]


def _frames(number: int, stream: StreamTraffic) -> Iterator[tuple[float, int, int]]:
    place = 0
    while stream.count is None or place < stream.count:
        yield stream.isg_usec / 1e6 + place / stream.pps, number, place
        place += 1
