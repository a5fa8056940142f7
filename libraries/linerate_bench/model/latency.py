"""Latency of a load: what every frame takes, and a queue that grows as its core or its card comes near capacity.

Times in µs. Rates as in :mod:`.forwarding`.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from linerate.units import l2_bits

from .card import QueueArrival, seconds_per_frame
from .forwarding import Forwarding, StreamLoad, worker_of
from .schema import RouterModel

ALWAYS = 8.0
"""µs of two cards, their buses and interrupts or polls, generator included."""

_NEARLY = 0.999
"""A server that is busy for this share of the time has a full queue."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Of a *share* of the frames: ``fixed`` for each, then exponential with ``mean``; together at most ``most``."""

    share: float
    fixed: float
    mean: float
    most: float

    def after(self, time: float) -> float:
        """The part of these frames that waits longer than *time*."""
        if time < min(self.fixed, self.most):
            return 1.0
        return math.exp(-(time - self.fixed) / self.mean) if self.mean and time < self.most else 0.0


@dataclass(frozen=True, slots=True)
class Latency:
    """Of the frames that come through: ``least`` for each of them, and ``waits`` (shares together 1)."""

    least: float
    waits: tuple[Wait, ...]

    @property
    def mean(self) -> float:
        """Mean latency."""
        return self.least + self.wait

    @property
    def wait(self) -> float:
        """Mean latency beyond the least."""
        found = 0.0
        for item in self.waits:
            room = max(0.0, item.most - item.fixed)
            beyond = item.mean * (1 - math.exp(-room / item.mean)) if item.mean else 0.0
            found += item.share * (min(item.fixed, item.most) + beyond)
        return found

    @property
    def most(self) -> float:
        """No frame is later."""
        return self.least + max((item.most for item in self.waits), default=0.0)

    def percentile(self, percent: float) -> float:
        """The latency that *percent* of the frames do not exceed, 0..100."""
        late, low, high = 1 - percent / 100, 0.0, self.most - self.least
        for _ in range(60):
            middle = (low + high) / 2
            if sum(item.share * item.after(middle) for item in self.waits) > late:
                low = middle
            else:
                high = middle
        return self.least + high

    def samples(self, count: int, chance: random.Random) -> list[float]:
        """Latencies of *count* frames, drawn from *chance*."""
        drawn = chance.choices(self.waits, [item.share for item in self.waits], k=count) if self.waits else []
        return [self.least + _drawn(item, chance) for item in drawn]


def _drawn(item: Wait, chance: random.Random) -> float:
    beyond = chance.expovariate(1 / item.mean) if item.mean else 0.0
    return min(item.most, item.fixed + beyond)


def least_of(model: RouterModel, size: float) -> float:
    """What every frame of *size* bytes with FCS takes."""
    return ALWAYS + 2 * l2_bits(size) / model.link_bps * 1e6


def latency_of(
    model: RouterModel,
    forwarding: Forwarding,
    loads: Sequence[StreamLoad],
    number: int,
    waiting: Mapping[tuple[int, int], int] | None = None,
) -> Latency:
    """Latency of the stream *number* of *loads*, of which *forwarding* came (:func:`.forwarding.forward`).

    Stored and forwarded on the line, handled with its vector, and before that queued: with random arrivals and a fixed
    service time (M/D/1) the mean wait is half of that time by load over free share. A server without free time has a
    ring before it that is full, or *waiting*: the frames in each (port, queue)'s ring, which fills or empties: over
    that time frames find half of them there.
    """
    load, rows = loads[number], [(row, part) for row in loads for part in row.parts]
    arrivals = [QueueArrival(row.port, part.queue, row.pps * part.share, row.size) for row, part in rows]
    own = seconds_per_frame(model.nic, arrivals)
    pps: defaultdict[tuple[int, int], float] = defaultdict(float)
    for item in arrivals:
        pps[item.port, item.queue] += item.pps
    through = sum(part.share for part in load.parts if part.exit is not None) or 1.0
    waits = []
    for part in load.parts:
        if part.exit is None:
            continue
        key, worker = (load.port, part.queue), forwarding.workers[worker_of(model, load.port, part.queue)]
        core = worker.cycles / model.clock_hz * 1e6
        servers = ((core, worker.busy), (own * 1e6, pps[key] * own))
        most = model.ring * max(service for service, _ in servers)
        full = any(busy > _NEARLY for _, busy in servers)
        mean = 0.0 if full else sum(service * busy / (2 * (1 - busy)) for service, busy in servers)
        fixed = min(most, core * worker.vector)
        if waiting is None:
            fixed = most if full else fixed
        elif frames := waiting.get(key, 0):
            fixed = max(fixed, most if frames >= model.ring else most * frames / model.ring / 2)
        waits.append(Wait(part.share / through, fixed, mean, most))
    return Latency(least_of(model, load.size), tuple(waits))
