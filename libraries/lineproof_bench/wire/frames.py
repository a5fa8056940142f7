"""Frames of streams as arrays: their bytes, their order on the wire, and when they are due.

Streams of one port begin together and are interleaved in the ratio of their rates, as evenly as integers allow. A
stream that ends after ``count`` frames divides time into phases, in each of which the ratio is constant.
The k-th frame is computed for any k without history. Counts are exact on a monotonic clock, bursts are bounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..backend import FieldVariable, StreamTraffic
from .protocol import SenderLoad

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
        """Return the frames of these numbers, shape (len(numbers), length)."""
        rows: Bytes = np.repeat(self._frame[np.newaxis, :], len(numbers), axis=0)
        for variable, table in self._variables:
            values = _values(variable, numbers) if table is None else table[numbers % len(table)]
            for place in range(variable.size):
                shift = np.uint64(8 * (variable.size - 1 - place))
                rows[:, variable.offset + place] = (values >> shift).astype(np.uint8)
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
    """Return the smallest integers in the ratio of *rates* (frames/s, all > 0) that sum to no more than about CYCLE."""
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
        """Return stream and frame number within that stream of each index since the start, shapes as *indexes*."""
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
    """Return the phases of one port's streams in order of time. Streams without rate or frames are never sent."""
    left = [math.inf if stream.count is None else stream.count for stream in traffic]
    sent, plan, now, first = np.zeros(len(traffic), np.int64), list[RatioPhase](), 0.0, 0
    while active := [place for place, stream in enumerate(traffic) if left[place] > 0 and stream.pps > 0]:
        pps = sum(traffic[place].pps for place in active)
        streams, steps = _cycle(active, weights([traffic[place].pps for place in active]))
        per_cycle = np.bincount(streams, minlength=len(traffic)).astype(np.int64)
        length = min(_exhausted(streams, place, left[place]) for place in active)
        whole = None if length == math.inf else int(length)
        plan.append(RatioPhase(now, first, pps, whole, streams, steps, per_cycle, sent.copy()))
        if whole is None:
            break
        cycles, rest = divmod(whole, len(streams))
        done = cycles * per_cycle + np.bincount(streams[:rest], minlength=len(traffic))
        left = [remaining - int(count) for remaining, count in zip(left, done, strict=True)]
        sent, first, now = sent + done, first + whole, now + whole / pps
    return tuple(plan)


def _exhausted(streams: Indexes, stream: int, left: float) -> float:
    """Return after how many frames of the interleaving *stream* has sent *left* frames."""
    if left == math.inf:
        return math.inf
    places = np.flatnonzero(streams == stream)
    cycles, step = divmod(int(left) - 1, len(places))
    return cycles * len(streams) + int(places[step]) + 1


def locate(plan: Sequence[RatioPhase], indexes: Indexes) -> tuple[Indexes, Indexes]:
    """Return stream and frame number of each of the ascending *indexes* over all phases of *plan*."""
    bounds = [phase.first for phase in plan[1:]]
    parts = np.split(indexes, np.searchsorted(indexes, bounds)) if bounds else [indexes]
    located = [phase.locate(part) for phase, part in zip(plan, parts, strict=True)]
    return np.concatenate([streams for streams, _ in located]), np.concatenate([numbers for _, numbers in located])


BURST = 512
"""The most frames sent at once: below the kernel's usual receive backlog of 1000 (net.core.netdev_max_backlog)."""

CATCH_UP = 2.0
"""A late sender catches up at no more than this multiple of its rate."""


class SendSchedule:
    """How many frames are due after *t* s, over all phases: ``round(pps * duration)`` at the end, never more."""

    def __init__(self, plan: Sequence[RatioPhase], duration: float | None) -> None:
        self._plan = tuple(plan)
        self.duration = duration
        last = self._plan[-1] if self._plan else None
        endless = last is not None and last.length is None
        self.frames: int | None = None
        """Frames in all; None when neither a duration nor bursts end it."""
        if duration is not None:
            self.frames = self._due(duration, ending=True)
        elif last is None:
            self.frames = 0
        elif not endless:
            self.frames = last.first + int(last.length or 0)

    def rate(self, elapsed: float) -> float:
        """Return the frames/s at that moment."""
        rate = 0.0
        for phase in self._plan:
            if phase.begin <= elapsed:
                rate = phase.pps
        return rate

    def due(self, elapsed: float) -> int:
        """Return how many frames should have been sent *elapsed* s after the start."""
        if self.duration is not None and elapsed >= self.duration:
            return int(self.frames or 0)
        frames = self._due(elapsed, ending=False)
        return frames if self.frames is None else min(frames, self.frames)

    def moment(self, frames: int) -> float:
        """Return after how many seconds so many frames are due, whatever the duration; infinite: never."""
        for phase in self._plan:
            if phase.length is None or frames <= phase.first + phase.length:
                return phase.begin + max(0, frames - phase.first) / phase.pps
        return math.inf

    def _due(self, elapsed: float, ending: bool) -> int:
        total = 0
        for phase in self._plan:
            if phase.begin > elapsed:
                break
            exact = phase.pps * (elapsed - phase.begin)
            frames = round(exact) if ending else math.floor(exact)
            total = phase.first + (frames if phase.length is None else min(frames, phase.length))
        return total


class Pace:
    """One of *shares* senders of a schedule: says how many frames to send now.

    The sender *share* owns the frames *share*, *share* + *shares*, … Up to one burst that is late is sent at once, more
    at CATCH_UP times the rate; frames still due at the end of the duration, beyond one burst, stay unsent.
    """

    def __init__(self, schedule: SendSchedule, share: int = 0, shares: int = 1) -> None:
        self._schedule, self._share, self._shares = schedule, share, shares
        self._last = 0.0
        self._budget = 0.0
        self.sent = 0

    def _own(self, frames: int) -> int:
        return (frames + self._shares - 1 - self._share) // self._shares

    def allowance(self, elapsed: float) -> int:
        """Return how many frames to send now, *elapsed* s after the start: 0 … :data:`BURST`."""
        behind = self._own(self._schedule.due(elapsed)) - self.sent
        if self._schedule.duration is not None and elapsed >= self._schedule.duration:
            return behind if behind <= BURST else 0
        rate = self._schedule.rate(elapsed) / self._shares
        self._budget = min(BURST, self._budget + 1 + CATCH_UP * rate * max(0.0, elapsed - self._last))
        self._last = elapsed
        return max(0, min(behind, int(self._budget)))

    def took(self, frames: int) -> None:
        """Count *frames* that were really handed over."""
        self.sent += frames
        self._budget = max(0.0, self._budget - frames)

    def finished(self, elapsed: float) -> bool:
        """Return whether the duration is over and nothing may be sent; without a duration, whether all was sent."""
        schedule = self._schedule
        if schedule.duration is not None:
            return elapsed >= schedule.duration and self.allowance(elapsed) == 0
        return schedule.frames is not None and self.sent >= self._own(schedule.frames)

    def rest(self, elapsed: float, tick: float) -> float:
        """Return the seconds until the next batch: 0 if the frames of a *tick* are due, else a tick or more."""
        rate = self._schedule.rate(elapsed) / self._shares
        behind = self._own(self._schedule.due(elapsed)) - self.sent
        if rate <= 0:
            return tick
        if behind < rate * tick:
            return max(tick, 1 / rate if behind <= 0 else 0.0)
        # due, but perhaps sent at the highest catch-up rate already: wait until half a burst may go
        budget = self._budget + CATCH_UP * rate * (elapsed - self._last)
        missing = min(behind, BURST // 2) - budget
        return min(tick, max(0.0, missing / (CATCH_UP * rate)))


class PlannedFrames:
    """The frames of *load* that one of *shares* senders sends within *duration* s (None: until stopped)."""

    def __init__(self, load: SenderLoad, duration: float | None, share: int = 0, shares: int = 1) -> None:
        self._plan = phases(load.streams)
        self._streams = [WireStream(stream) for stream in load.streams]
        self._schedule = SendSchedule(self._plan, duration)
        self.pace = Pace(self._schedule, share, shares)
