"""The receive queues' rings: frames that come faster than they are handled wait there; a full ring loses them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from lineproof.units import l1_bits

from .counting import Sending, Splitter
from .forwarding import (
    CoreLoad,
    Fate,
    Forwarding,
    StreamLoad,
    arrivals_of,
    cost_per_frame,
    seconds_per_frame,
    worker_of,
)
from .schema import RouterModel

_SPARE = 0.01
"""The least share of a core's speed that empties a ring, however busy its other queues are."""

_TINY = 0.01
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
        self._splits: dict[Sending, tuple[list[QueueExit], list[float], Splitter]] = {}

    @property
    def waiting(self) -> Mapping[Queue, int]:
        """Frames in each ring."""
        return {queue: ring.count for queue, ring in self._rings.items()}

    def settle(
        self, model: RouterModel, forwarding: Forwarding, loads: Sequence[StreamLoad], sendings: Sequence[Sending]
    ) -> Forwarding:
        """*forwarding* with frames that wait instead of being missed, and with cores that empty a ring."""
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
        """Only the share *kept* of the expected frames fills *port*'s rings: fates changed after :meth:`settle`."""
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
        self._splits[sending] = list(room), shares, Splitter([0.0] * len(shares))
        return replace(fate, missed=missed, held=min(1.0, sum(room.values()) / (1 - missed)))

    def put(self, sending: Sending, frames: int) -> int:
        """*frames* of *sending* have to wait. Returns how many of them found no room."""
        if not frames or sending not in self._splits:
            return frames
        directions, shares, splitter = self._splits[sending]
        parts, splitter.carries = splitter.split(frames, shares)
        lost = 0
        for (number, direction), part in zip(directions, parts, strict=True):
            ring = self._rings[sending.port, number]
            taken = min(part, self._size - ring.count)
            lost += part - taken
            if taken:
                ring.waiting[sending, direction] = ring.waiting.get((sending, direction), 0) + taken
        return lost

    def next_change(self) -> float:
        """Seconds until a ring is full or empty, at least 1 µs; inf for never.

        Counts do not depend on it: frames without room are lost whenever they are counted.
        """
        found = math.inf
        for ring in self._rings.values():
            count = ring.count
            if ring.rate > 0 and count < self._size:
                found = min(found, max(ring.step, (self._size - count) / ring.rate))
            elif ring.rate < 0 and count:
                found = min(found, max(_STEP, (count - ring.carry) / -ring.rate))
        return found

    def advance(self, seconds: float) -> list[ReleasedFrames]:
        """The frames that left the rings in the last *seconds*, first come first served."""
        found = []
        for ring in self._rings.values():
            if ring.rate >= 0 or not ring.waiting:
                continue
            count = ring.count
            exact = ring.carry - ring.rate * seconds
            left = min(count, math.floor(exact + _TINY))
            ring.carry = max(0.0, exact - left) if left < count else 0.0
            usec = (count - left / 2) / -ring.rate * 1e6
            for (sending, direction), frames in tuple(ring.waiting.items()):
                taken = min(frames, left)
                left -= taken
                if taken:
                    found.append(ReleasedFrames(sending, direction, taken, usec))
                if taken == frames:
                    del ring.waiting[sending, direction]
                else:
                    ring.waiting[sending, direction] = frames - taken
                    break
        return found


def _cycles(model: RouterModel, ring: _Ring, contention: float) -> float:
    return cost_per_frame(model, _size(ring), model.maximum_vector) + contention


def _size(ring: _Ring) -> float:
    return sum(sending.size * frames for (sending, _), frames in ring.waiting.items()) / ring.count


def _emptying_rate(
    model: RouterModel, forwarding: Forwarding, loads: Sequence[StreamLoad], queue: Queue, ring: _Ring
) -> float:
    """Frames/s that core, card and line can still handle of the frames in *ring*."""
    most = model.clock_hz / _cycles(model, ring, forwarding.contention)
    free = most * (1 - forwarding.workers[worker_of(model, *queue)].busy)
    arrivals = arrivals_of(loads)
    if own := seconds_per_frame(model.nic, arrivals):
        free = min(free, 1 / own - sum(row.pps for row in arrivals if (row.port, row.queue) == queue))
    return max(min(free, model.speeds[queue[0]] / l1_bits(_size(ring))), _SPARE * most)


def _with_emptying(model: RouterModel, worker: CoreLoad, ring: _Ring, contention: float) -> CoreLoad:
    """*worker* when it also empties *ring*, in full vectors."""
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
