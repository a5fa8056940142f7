"""Latency of a load, and the counts of packet groups: frames sent, where they arrived, how long they took.

Every frame takes some time, and waits in a queue that grows as its core or its card comes near capacity. Times in µs.
Rates as in :mod:`.forwarding`.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lineproof.units import l2_bits

from ..backend import WINDOW, FlowCounters, LatencyCounters, StreamGroup, StreamTraffic
from .counting import ReleasedFrames
from .forwarding import Forwarding, StreamLoad, arrivals_of, seconds_per_frame, worker_of
from .schema import RouterModel

FIXED_LATENCY = 8.0
"""µs of two cards, their buses and interrupts or polls, generator included."""

_FULL_AT = 0.999
"""A server that is busy for this share of the time has a full queue."""


def least_latency(model: RouterModel, port: int, size: float) -> float:
    """Return what every frame of *size* bytes with FCS takes from *port* to the other one of its pair."""
    bits = l2_bits(size)
    return FIXED_LATENCY + (bits / model.speeds[port] + bits / model.speeds[port ^ 1]) * 1e6


def delay_of(
    model: RouterModel,
    forwarding: Forwarding,
    loads: Sequence[StreamLoad],
    number: int,
    waiting: Mapping[tuple[int, int], int],
) -> Delay:
    """Return the latency of the stream *number* of *loads* with their *forwarding* (:func:`.forwarding.forward`).

    A frame is stored and forwarded on the line and handled with its vector. Before that it queues: with random arrivals
    and a fixed service time (M/D/1) the mean wait is half of that time by load over free share. A server without free
    time has no such queue but a ring that fills or empties. *waiting*: the frames in each (port, queue)'s ring; if it
    is not full, frames find half of them there on average.
    """
    load, arrivals = loads[number], arrivals_of(loads)
    own = seconds_per_frame(model.nic, arrivals)
    pps: defaultdict[tuple[int, int], float] = defaultdict(float)
    for arriving in arrivals:
        pps[arriving.port, arriving.queue] += arriving.pps
    through = sum(part.share for part in load.parts if part.exit is not None) or 1.0
    wait, longest = 0.0, 0.0
    for part in load.parts:
        if part.exit is None:
            continue
        key, worker = (load.port, part.queue), forwarding.workers[worker_of(model, load.port, part.queue)]
        core = worker.cycles / model.clock_hz * 1e6
        servers = ((core, worker.busy), (own * 1e6, pps[key] * own))
        most = model.ring * max(service for service, _ in servers)
        full = any(busy > _FULL_AT for _, busy in servers)
        mean = 0.0 if full else sum(service * busy / (2 * (1 - busy)) for service, busy in servers)
        fixed = min(most, core * worker.vector)
        if frames := waiting.get(key, 0):
            fixed = max(fixed, most if frames >= model.ring else most * frames / model.ring / 2)
        # an exponential wait beyond the fixed one, cut off where the ring is full
        beyond = mean * (1 - math.exp(-max(0.0, most - fixed) / mean)) if mean else 0.0
        wait += part.share / through * (min(fixed, most) + beyond)
        longest = max(longest, most)
    least = least_latency(model, load.port, load.size)
    return Delay(least, wait, least + longest)


def delay_of_released(model: RouterModel, released: ReleasedFrames) -> Delay:
    """Return the latency of frames that had to wait in a ring."""
    least = least_latency(model, released.sending.port, released.sending.size)
    return Delay(least + released.usec / 2, released.usec / 2, least + 2 * released.usec)


class Delay(NamedTuple):
    """Latency in µs: ``least`` for each frame, and a wait with an exponential distribution of mean ``wait``.

    ``most``: the latency behind a full queue, which no frame exceeds.
    """

    least: float
    wait: float
    most: float = math.inf


_BUCKETS = [*range(2048), *(low << shift for shift in range(1, 14) for low in range(1024, 2048))]
"""The lower ends of the buckets of TRex's fine histogram, in µs."""


@dataclass(slots=True)
class _Group:
    sent: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    received: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    delays: defaultdict[Delay, int] = field(default_factory=lambda: defaultdict(int))
    """Frames of each delay: all figures follow from these sums alone, however often they are asked for."""
    last: tuple[Delay, float] | None = None
    """The latest delay, and the frames/s that are sent."""
    reported: LatencyCounters | None = None
    """The latency, until more frames are counted."""
    missing: int = 0
    lost: int = 0
    duplicates: int = 0
    overtaken: int = 0


class PacketGroups:
    """Counts by group number. Latency is kept of groups whose streams have the rule ``latency``."""

    def __init__(self) -> None:
        self._groups: dict[int, _Group] = {}
        self._versions = Counter[int]()

    def version(self, group: StreamGroup | None) -> int:
        """Return how often *group* began anew: its late frames of before are counted nowhere, as in TRex."""
        return self._versions[group.number] if group else 0

    def record(
        self,
        port: int,
        traffic: StreamTraffic,
        size: int,
        sent: int,
        exits: Mapping[int, int],
        delay: Delay,
        lost: int | None = None,
        duplicates: int = 0,
        overtaken: int = 0,
    ) -> None:
        """Count *sent* frames of *size* bytes with FCS that left by *port*, and *exits* that came back, {port: frames}.

        *lost*: frames that will never come; None: all that did not come back. *duplicates*: copies among these,
        *overtaken*: those that later frames overtook.
        """
        rule, arrived = traffic.group, sum(exits.values())
        if rule is None or not (sent or arrived or lost):
            return
        group = self._groups.setdefault(rule.number, _Group())
        group.reported = None
        _add_frames(group.sent[port], sent, size)
        for direction, frames in exits.items():
            _add_frames(group.received[direction], frames, size)
        if traffic.is_latency:
            group.missing += sent - arrived if lost is None else lost
            group.duplicates += duplicates
            group.overtaken += overtaken
            if arrived:
                # a gap in the sequence is seen when the next frame arrives
                group.lost, group.missing = group.lost + group.missing, 0
                group.delays[delay] += arrived
                group.last = delay, traffic.pps

    def arrived(self) -> dict[int, int]:
        """Return how many frames of each group came back, at any port."""
        return {number: sum(frames for frames, _ in group.received.values()) for number, group in self._groups.items()}

    def flow_counters(self, group: int) -> FlowCounters:
        """Return the frames and bytes of *group*."""
        counted = self._groups.get(group, _Group())
        return FlowCounters(
            {port: (row[0], row[1]) for port, row in counted.sent.items()},
            {port: (row[0], row[1]) for port, row in counted.received.items()},
        )

    def latency_counters(self, group: int) -> LatencyCounters:
        """Return the latency of *group*."""
        counted = self._groups.get(group, _Group())
        counted.reported = counted.reported or _latency_of(counted)
        return counted.reported

    def forget(self, group: int) -> None:
        """Set the counts of *group* to zero."""
        self._groups.pop(group, None)
        self._versions[group] += 1


def _latency_of(counted: _Group) -> LatencyCounters:
    """Return the latency of a group, which follows from the frames of each delay alone."""
    histogram, total, frames, most = Counter[int](), 0.0, 0, 0.0
    for delay, count in counted.delays.items():
        highest = _highest(delay, count)
        histogram.update(_histogram(delay, count, highest))
        total += count * min(delay.least + _wait(delay), highest)
        frames, most = frames + count, max(most, highest)
    return LatencyCounters(
        average=total / frames if frames else 0.0,
        # the mean difference of two draws of an exponential distribution is its mean
        jitter=_wait(counted.last[0]) if counted.last else 0.0,
        total_min=min((delay.least for delay in counted.delays), default=0.0),
        total_max=most,
        last_max=_highest(counted.last[0], round(counted.last[1] * WINDOW)) if counted.last else 0.0,
        histogram={key: count for key, count in sorted(histogram.items()) if count},
        lost=counted.lost,
        out_of_order=counted.overtaken,
        duplicates=counted.duplicates,
    )


def _add_frames(row: list[int], frames: int, size: int) -> None:
    row[0] += frames
    row[1] += frames * size


def _wait(delay: Delay) -> float:
    return max(delay.wait, 1e-3)


def _highest(delay: Delay, frames: int) -> float:
    """Return the expected largest of so many draws."""
    return min(delay.most, delay.least + _wait(delay) * math.log(1 + frames))


def _histogram(delay: Delay, frames: int, highest: float) -> dict[int, int]:
    """Return so many frames in fine buckets: as many up to the end of each as is most likely."""
    first = bisect_right(_BUCKETS, delay.least)
    last = max(first, bisect_left(_BUCKETS, highest))
    ends = _BUCKETS[first:last]
    below = [0, *(round(-frames * math.expm1((delay.least - end) / _wait(delay))) for end in ends), frames]
    rows = zip(_BUCKETS[first - 1 : last], below, below[1:], strict=False)
    return {low: after - before for low, before, after in rows if after > before}
