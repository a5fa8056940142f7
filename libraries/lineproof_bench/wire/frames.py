"""Frames of streams as arrays: their bytes, and their order on the wire.

Streams of one port are interleaved in the ratio of their rates, as evenly as integers allow. A stream that starts
later (``isg_usec``) or ends after ``count`` frames divides time into phases, in each of which the ratio is constant.
The k-th frame is computed for any k without history.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..backend import FieldVariable, StreamTraffic

Bytes = NDArray[np.uint8]

RANDOM_PERIOD = 4096
"""Frames after which a ``random`` variable repeats, so that a ring holds them all and is written once."""

LONGEST_TABLE = 1 << 14
"""The longest period of a variable whose bytes are computed once for all frames."""

_IPV4_CHECKSUM = 10


class WireStream:
    """One stream's frames. ``length`` in bytes without FCS; ``period``: after how many frames the bytes repeat."""

    def __init__(self, traffic: StreamTraffic) -> None:
        self._frame = np.frombuffer(traffic.frame, np.uint8)
        self._header = traffic.fix_ipv4_checksum
        self.length = len(traffic.frame)
        periods = [variable.period(RANDOM_PERIOD) for variable in traffic.variables]
        self.period = math.lcm(*periods)
        self._variables = [
            (variable, _values(variable, np.arange(period)) if period <= LONGEST_TABLE else None)
            for variable, period in zip(traffic.variables, periods, strict=True)
        ]

    def rows(self, numbers: Indexes) -> Bytes:
        """The frames of these numbers, shape (len(numbers), length)."""
        rows: Bytes = np.repeat(self._frame[np.newaxis, :], len(numbers), axis=0)
        for variable, table in self._variables:
            found = _values(variable, numbers) if table is None else table[numbers % len(table)]
            for place in range(variable.size):
                shift = np.uint64(8 * (variable.size - 1 - place))
                rows[:, variable.offset + place] = (found >> shift).astype(np.uint8)
        if self._header is not None:
            write_ipv4_checksum(rows, self._header)
        return rows


def _values(variable: FieldVariable, numbers: Indexes) -> NDArray[np.uint64]:
    """Return what *variable* writes into the frames of these *numbers*."""
    period = variable.period(RANDOM_PERIOD)
    return np.array([variable.written(number % period) for number in numbers.tolist()], np.uint64)


def write_ipv4_checksum(rows: Bytes, header: int) -> None:
    """Write the IPv4 header checksum (RFC 791, RFC 1071) of every row; *header*: the header's offset."""
    size = 4 * int(rows[0, header] & 0x0F) if len(rows) else 20
    rows[:, header + _IPV4_CHECKSUM : header + _IPV4_CHECKSUM + 2] = 0
    octets = rows[:, header : header + size].astype(np.uint32)
    total = (octets[:, 0::2] << 8).sum(axis=1, dtype=np.uint32) + octets[:, 1::2].sum(axis=1, dtype=np.uint32)
    total = (total & 0xFFFF) + (total >> 16)
    total = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    rows[:, header + _IPV4_CHECKSUM] = total >> 8
    rows[:, header + _IPV4_CHECKSUM + 1] = total & 0xFF


Indexes = NDArray[np.int64]

LONGEST_CYCLE = 4096
"""The most frames after which the interleaving repeats: ratios are exact to 1 in 4096 or better."""


def weights(rates: Sequence[float]) -> tuple[int, ...]:
    """The smallest integers in the ratio of *rates* (frames/s, all > 0) that sum to no more than about CYCLE."""
    least = min(rates)
    ratios = [Fraction(rate / least).limit_denominator(64) for rate in rates]
    common = math.lcm(*(ratio.denominator for ratio in ratios))
    whole = [int(ratio * common) for ratio in ratios]
    if sum(whole) > LONGEST_CYCLE:
        total = sum(rates)
        whole = [max(1, round(LONGEST_CYCLE * rate / total)) for rate in rates]
    divisor = math.gcd(*whole)
    return tuple(weight // divisor for weight in whole)


@dataclass(frozen=True, slots=True)
class RatioPhase:
    """A span of constant ratio: from ``begin`` s, from frame ``first``, for ``length`` frames (None: no end)."""

    begin: float
    first: int
    pps: float
    length: int | None
    streams: Indexes
    """Stream of each frame of one cycle, shape (cycle,)."""
    steps: Indexes
    """Which of its stream's frames of that cycle it is, shape (cycle,)."""
    per_cycle: Indexes
    """Frames of each of the port's streams in one cycle, shape (streams,)."""
    starts: Indexes
    """The frame number that each stream begins this phase with, shape (streams,)."""

    def locate(self, indexes: Indexes) -> tuple[Indexes, Indexes]:
        """(stream, frame number within that stream) of each index since the start, shapes as *indexes*."""
        since, cycle = indexes - self.first, len(self.streams)
        cycles, places = since // cycle, since % cycle
        streams: Indexes = self.streams[places]
        return streams, self.starts[streams] + cycles * self.per_cycle[streams] + self.steps[places]


def _cycle(active: Sequence[int], shares: Sequence[int]) -> tuple[Indexes, Indexes]:
    streams: Indexes = np.concatenate(
        [np.full(share, stream, np.int64) for stream, share in zip(active, shares, strict=True)]
    )
    steps: Indexes = np.concatenate([np.arange(share, dtype=np.int64) for share in shares])
    moments = np.concatenate([(np.arange(share) + 0.5) / share for share in shares])
    order = np.argsort(moments, kind="stable")
    return np.take(streams, order), np.take(steps, order)


def phases(traffic: Sequence[StreamTraffic]) -> tuple[RatioPhase, ...]:
    """The phases of one port's streams in order of time. Streams without a rate or without frames are never sent."""
    left = [math.inf if stream.count is None else stream.count for stream in traffic]
    sent = np.zeros(len(traffic), np.int64)
    found: list[RatioPhase] = []
    now, first = 0.0, 0
    while True:
        waiting = [stream.isg_usec / 1e6 for stream in traffic if stream.isg_usec / 1e6 > now + 1e-12]
        active = [
            place
            for place, stream in enumerate(traffic)
            if left[place] > 0 and stream.pps > 0 and stream.isg_usec / 1e6 <= now + 1e-12
        ]
        if not active:
            if not waiting:
                return tuple(found)
            now = min(waiting)
            continue
        pps = sum(traffic[place].pps for place in active)
        shares = weights([traffic[place].pps for place in active])
        streams, steps = _cycle(active, shares)
        per_cycle = np.bincount(streams, minlength=len(traffic)).astype(np.int64)
        length = min(_exhausted(streams, place, left[place]) for place in active)
        until = min(waiting) if waiting else math.inf
        cut = until < math.inf and round(pps * (until - now)) <= length
        if cut:
            length = round(pps * (until - now))
        if length == math.inf:
            found.append(RatioPhase(now, first, pps, None, streams, steps, per_cycle, sent.copy()))
            return tuple(found)
        if length:
            found.append(RatioPhase(now, first, pps, int(length), streams, steps, per_cycle, sent.copy()))
        cycles, rest = divmod(int(length), len(streams))
        done = cycles * per_cycle + np.bincount(streams[:rest], minlength=len(traffic))
        left = [remaining - int(count) for remaining, count in zip(left, done, strict=True)]
        sent = sent + done
        first += int(length)
        now = until if cut else now + length / pps


def _exhausted(streams: Indexes, stream: int, left: float) -> float:
    """After how many frames of the interleaving *stream* has sent *left* frames."""
    if left == math.inf:
        return math.inf
    places = np.flatnonzero(streams == stream)
    cycles, step = divmod(int(left) - 1, len(places))
    return cycles * len(streams) + int(places[step]) + 1


def locate(plan: Sequence[RatioPhase], indexes: Indexes) -> tuple[Indexes, Indexes]:
    """(stream, frame number) of each of the ascending *indexes* over all phases of *plan*."""
    bounds = [phase.first for phase in plan[1:]]
    parts = np.split(indexes, np.searchsorted(indexes, bounds)) if bounds else [indexes]
    located = [phase.locate(part) for phase, part in zip(plan, parts, strict=True)]
    return np.concatenate([streams for streams, _ in located]), np.concatenate([numbers for _, numbers in located])
