"""Exact counts of one stream: whole frames, each with exactly one fate, none lost to rounding.

Frames that come faster than they are handled wait in the rings of receive queues; a full ring loses them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from lineproof.units import FCS, l1_bits

from ..backend import StreamTraffic
from .forwarding import (
    CoreLoad,
    Fate,
    Forwarding,
    StreamLoad,
    StreamPart,
    arrivals_of,
    cost_per_frame,
    seconds_per_frame,
    worker_of,
)
from .routing import period_of
from .schema import RouterModel

_TINY = 1e-9
"""Frames: a sum of shares that is short of a whole frame by less is whole."""


class StreamCounts(NamedTuple):
    """Frames of a stream. ``exits``: (port, frames) that left the router at once; together they are ``offered``.

    ``held``: frames that had to wait in a ring; their fate is counted later.
    """

    offered: int = 0
    missed: int = 0
    held: int = 0
    no_route: int = 0
    tx_dropped: int = 0
    exits: tuple[tuple[int, int], ...] = ()


def split(frames: int, shares: Sequence[float], carries: Sequence[float]) -> tuple[list[int], list[float]]:
    """Return the *frames* of each share of what the shares before it left, the rest last; and fractions to carry on."""
    parts, carried, left = [], [], frames
    for share, carry in zip(shares, carries, strict=True):
        exact = carry + share * left
        taken = min(left, math.floor(exact + _TINY))
        parts.append(taken)
        carried.append(min(max(exact - taken, 0.0), 1 - _TINY))
        left -= taken
    return [*parts, left], carried


class Sending:
    """A stream being sent by *port* since *begin*, for *duration* s (inf: until stopped), s of the bench's clock.

    ``asked`` and ``pps``: the intended and the real rate, frames/s. ``unsent``: intended frames that were not sent.
    ``left``: those whose fate was decided, so that frames that waited in a ring leave once, and in their order.
    """

    def __init__(
        self, port: int, traffic: StreamTraffic, parts: tuple[StreamPart, ...], begin: float, duration: float
    ) -> None:
        self.port, self.traffic, self.parts = port, traffic, parts
        self.size, self.period = len(traffic.frame) + FCS, period_of(traffic)
        self.made: dict[Any, Sequence[bytes]] = {}
        """The frames as they left, if they come again after *period*."""
        self.asked = self.pps = 0.0
        self.counts = StreamCounts()
        self.unsent = self.left = 0
        # at the origin of the present rate: when it was, what was counted, how long it may last
        self._origin, self._at_origin, self._unsent_at_origin, self._lasts = begin, 0, 0, duration
        self._segment = StreamCounts()
        self._fate = Fate(0.0, 0.0, 0.0, {})
        self._carries = [0.0] * 4

    def rate(self, now: float, asked: float, pps: float) -> None:
        """Send *pps* of the *asked* frames/s from *now* on (up to which frames are counted)."""
        if (asked, pps) != (self.asked, self.pps):
            self.hold(now)
            self.asked, self.pps = asked, pps

    def hold(self, now: float) -> None:
        """End the present rate at *now* and keep the rest of the duration."""
        self._lasts -= min(self._lasts, max(0.0, now - self._origin)) if self._lasts < math.inf else 0.0
        # one that has not begun yet begins when it should
        self._origin = max(now, self._origin)
        self._at_origin, self._unsent_at_origin = self.counts.offered, self.unsent

    @property
    def over(self) -> float:
        """When the last frame is sent: the end of the duration, or of the count if that comes first."""
        end = self._origin + self._lasts
        if self.traffic.count is None:
            return end
        left = self.traffic.count - self._at_origin
        if self.pps <= 0:
            return end if left > 0 else self._origin
        return min(end, self._origin + left / self.pps)

    def fate(self, fate: Fate) -> None:
        """Set the fate of frames from now on (frames are counted up to now)."""
        _, self._carries = self._split()
        self._segment, self._fate = self.counts, fate

    def advance(self, now: float) -> StreamCounts:
        """Count up to *now*, at most to the end; returns the new counts."""
        # at the end the duration itself counts, not a difference of two readings of a clock
        elapsed = self._lasts if now >= self._origin + self._lasts else max(0.0, now - self._origin)
        offered = self._at_origin + round(self.pps * elapsed)
        unsent = self._unsent_at_origin + round(self.asked * elapsed) - round(self.pps * elapsed)
        if self.traffic.count is not None and offered >= self.traffic.count - (now >= self.over):
            offered = self.traffic.count
        before = self.counts
        if offered > before.offered:
            self.counts = before._replace(offered=offered)
            (missed, held, no_route, tx_dropped, rest), _ = self._split()
            start = self._segment
            self.counts = StreamCounts(
                offered,
                start.missed + missed,
                start.held + held,
                start.no_route + no_route,
                start.tx_dropped + tx_dropped,
                self._exits(start, rest),
            )
        self.unsent = max(self.unsent, unsent)
        return difference(self.counts, before)

    def _split(self) -> tuple[list[int], list[float]]:
        frames, fate = self.counts.offered - self._segment.offered, self._fate
        return split(frames, (fate.missed, fate.held, fate.no_route, fate.tx_dropped), self._carries)

    def _exits(self, start: StreamCounts, rest: int) -> tuple[tuple[int, int], ...]:
        frames, left, total = dict(start.exits), rest, self._fate.forwarded
        directions = list(self._fate.exits.items())
        for number, (direction, share) in enumerate(directions):
            taken = left if number == len(directions) - 1 else min(left, math.floor(rest * share / total + _TINY))
            frames[direction] = frames.get(direction, 0) + taken
            left -= taken
        return tuple(sorted(frames.items()))


def difference(new: StreamCounts, old: StreamCounts) -> StreamCounts:
    """Return *new* less *old*."""
    before = dict(old.exits)
    offered, missed, held, no_route, tx_dropped = (now - then for now, then in zip(new[:5], old[:5], strict=True))
    exits = tuple((direction, frames - before.get(direction, 0)) for direction, frames in new.exits)
    return StreamCounts(offered, missed, held, no_route, tx_dropped, exits)


_SPARE = 0.01
"""The least share of a core's speed that empties a ring, however busy its other queues are."""

_MOMENT = 0.01
"""Frames: the resolution of a clock that has run for a week."""

_STEP = 1e-6
"""Seconds between two looks at a ring at the least, so that the clock always goes on."""

_STEP_MOST = 0.01
"""Seconds that this time may double to while a ring does not fill as predicted, because other streams change."""

Queue = tuple[int, int]
"""Port and receive queue."""

QueueExit = tuple[int, int | None]
"""Receive queue of a stream's port, and the port where its frames leave (None: not routed)."""


class ReleasedFrames(NamedTuple):
    """*frames* of *sending* leave a ring towards *exit* (None: not routed) after *usec* µs on average."""

    sending: Sending
    exit: int | None
    frames: int
    usec: float


@dataclass(slots=True)
class _Ring:
    waiting: dict[tuple[Sending, int | None], int] = field(default_factory=dict)
    rate: float = 0.0
    """Frames/s by which it fills; negative: empties."""
    carry: float = 0.0
    step: float = _STEP
    """Seconds until the next look at it, at the earliest."""

    @property
    def count(self) -> int:
        return sum(self.waiting.values())


class ReceiveRings:
    """One ring of *size* frames for each receive queue. Times are s since the last :meth:`advance`."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._rings: defaultdict[Queue, _Ring] = defaultdict(_Ring)
        self._splits: dict[Sending, tuple[list[QueueExit], list[float], list[float]]] = {}

    @property
    def waiting(self) -> Mapping[Queue, int]:
        """Frames in each ring that has any."""
        return {queue: ring.count for queue, ring in self._rings.items() if ring.waiting}

    def settle(
        self, model: RouterModel, forwarding: Forwarding, loads: Sequence[StreamLoad], sendings: Sequence[Sending]
    ) -> Forwarding:
        """Return *forwarding* with frames that wait instead of being missed, and with cores that empty a ring."""
        filling: defaultdict[Queue, float] = defaultdict(float)
        for load, fate in zip(loads, forwarding.fates, strict=True):
            for (queue, _), share in fate.excess.items():
                filling[load.port, queue] += load.pps * share
        for key, rate in filling.items():
            ring = self._rings[key]
            ring.step = min(_STEP_MOST, 2 * ring.step) if ring.rate > 0 else _STEP
            ring.rate = rate
        self._splits.clear()
        fates = tuple(self._fate(sending, fate) for sending, fate in zip(sendings, forwarding.fates, strict=True))
        emptying = {key: ring for key, ring in self._rings.items() if key not in filling and ring.waiting}
        workers = list(forwarding.workers)
        for key, ring in emptying.items():
            number = worker_of(model, *key)
            sharing = sum(worker_of(model, *other) == number for other in emptying)
            ring.rate = -_emptying_rate(model, forwarding, loads, key, ring) / sharing
            workers[number] = _with_emptying(model, workers[number], ring, forwarding.contention)
        for key in self._rings.keys() - filling.keys() - emptying.keys():
            del self._rings[key]
        return replace(forwarding, fates=fates, workers=tuple(workers))

    def reduce(self, port: int, kept: float) -> None:
        """Let only the share *kept* of the frames fill *port*'s rings: fates changed after :meth:`settle`."""
        for (own, _), ring in self._rings.items():
            if own == port and ring.rate > 0:
                ring.rate *= kept

    def _fate(self, sending: Sending, fate: Fate) -> Fate:
        room = {
            direction: share
            for direction, share in fate.excess.items()
            if self._rings[sending.port, direction[0]].count < self._size
        }
        if not room:
            return fate
        missed = 0.0 if len(room) == len(fate.excess) else max(0.0, fate.missed - sum(room.values()))
        left, shares = sum(room.values()), []
        for share in list(room.values())[:-1]:
            shares.append(share / left)
            left -= share
        self._splits[sending] = list(room), shares, [0.0] * len(shares)
        return replace(fate, missed=missed, held=min(1.0, sum(room.values()) / (1 - missed)))

    def put(self, sending: Sending, frames: int) -> int:
        """Let *frames* of *sending* wait; return how many of them found no room."""
        if not frames or sending not in self._splits:
            return frames
        directions, shares, carries = self._splits[sending]
        parts, carries[:] = split(frames, shares, carries)
        lost = 0
        for (number, direction), part in zip(directions, parts, strict=True):
            ring = self._rings[sending.port, number]
            taken = min(part, self._size - ring.count)
            lost += part - taken
            if taken:
                ring.waiting[sending, direction] = ring.waiting.get((sending, direction), 0) + taken
        return lost

    def next_change(self) -> float:
        """Return the seconds until a ring is full or empty, at least 1 µs; inf for never.

        Counts do not depend on it: frames without room are lost whenever they are counted.
        """
        soonest = math.inf
        for ring in self._rings.values():
            count = ring.count
            if ring.rate > 0 and count < self._size:
                soonest = min(soonest, max(ring.step, (self._size - count) / ring.rate))
            elif ring.rate < 0 and count:
                soonest = min(soonest, max(_STEP, (count - ring.carry) / -ring.rate))
        return soonest

    def advance(self, seconds: float) -> list[ReleasedFrames]:
        """Return the frames that left the rings in the last *seconds*, first come first served."""
        released = []
        for ring in self._rings.values():
            if ring.rate >= 0 or not ring.waiting:
                continue
            count = ring.count
            exact = ring.carry - ring.rate * seconds
            left = min(count, math.floor(exact + _MOMENT))
            ring.carry = max(0.0, exact - left) if left < count else 0.0
            usec = (count - left / 2) / -ring.rate * 1e6
            for (sending, direction), frames in tuple(ring.waiting.items()):
                taken = min(frames, left)
                left -= taken
                if taken:
                    released.append(ReleasedFrames(sending, direction, taken, usec))
                if taken == frames:
                    del ring.waiting[sending, direction]
                else:
                    ring.waiting[sending, direction] = frames - taken
                    break
        return released


def _cycles(model: RouterModel, ring: _Ring, contention: float) -> float:
    return cost_per_frame(model, _size(ring), model.maximum_vector) + contention


def _size(ring: _Ring) -> float:
    return sum(sending.size * frames for (sending, _), frames in ring.waiting.items()) / ring.count


def _emptying_rate(
    model: RouterModel, forwarding: Forwarding, loads: Sequence[StreamLoad], queue: Queue, ring: _Ring
) -> float:
    """Return the frames/s that core, card and line can still handle of the frames in *ring*."""
    most = model.clock_hz / _cycles(model, ring, forwarding.contention)
    free = most * (1 - forwarding.workers[worker_of(model, *queue)].busy)
    arrivals = arrivals_of(loads)
    if own := seconds_per_frame(model.nic, arrivals):
        free = min(free, 1 / own - sum(row.pps for row in arrivals if (row.port, row.queue) == queue))
    return max(min(free, model.speeds[queue[0]] / l1_bits(_size(ring))), _SPARE * most)


def _with_emptying(model: RouterModel, worker: CoreLoad, ring: _Ring, contention: float) -> CoreLoad:
    """Return *worker* when it also empties *ring*, in full vectors."""
    more, cycles, count = -ring.rate, _cycles(model, ring, contention), ring.count
    exits, sent = defaultdict(float, worker.exits), defaultdict(float, worker.sent)
    for (_, direction), frames in ring.waiting.items():
        exits[direction] += more * frames / count
        if direction is not None:
            sent[direction] += more * frames / count
    pps = worker.pps + more
    calls = worker.pps / worker.vector + more / model.maximum_vector
    return CoreLoad(
        pps,
        dict(exits),
        pps / calls,
        (worker.pps * worker.cycles + more * cycles) / pps,
        min(1.0, worker.busy + more * cycles / model.clock_hz),
        dict(sent),
    )
