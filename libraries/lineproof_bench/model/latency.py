"""Latency of a load: what every frame takes, and a queue that grows as its core or its card comes near capacity.

Times in µs. Rates as in :mod:`.forwarding`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from lineproof.units import l2_bits

from ..packet_groups import Delay
from .card import seconds_per_frame
from .forwarding import Forwarding, StreamLoad, arrivals_of, worker_of
from .receive_rings import ReleasedFrames
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
    """Latency of the stream *number* of *loads*, which have the *forwarding* that :func:`.forwarding.forward` gives.

    A frame is stored and forwarded on the line and handled with its vector. Before that it queues: with random arrivals
    and a fixed service time (M/D/1) the mean wait is half of that time by load over free share. A server without free
    time has no such queue but a ring that fills or empties. *waiting*: the frames in each (port, queue)'s ring; if it
    is not full, frames find half of them there on average.
    """
    load, arrivals = loads[number], arrivals_of(loads)
    own = seconds_per_frame(model.nic, arrivals)
    pps: defaultdict[tuple[int, int], float] = defaultdict(float)
    for item in arrivals:
        pps[item.port, item.queue] += item.pps
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
    """Latency of frames that had to wait in a ring."""
    least = least_latency(model, released.sending.port, released.sending.size)
    return Delay(least + released.usec / 2, released.usec / 2, least + 2 * released.usec)
