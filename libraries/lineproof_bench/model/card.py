"""Frames that the card admits: limits of its queues, its ports and the bus they share. Pure functions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lineproof.units import FCS, l2_bits

from .schema import Nic


class QueueArrival(NamedTuple):
    """Frames for one receive queue: ``port``, ``queue``, ``pps`` frames/s of ``size`` bytes with FCS."""

    port: int
    queue: int
    pps: float
    size: float


def effective(rates: Sequence[float]) -> float:
    """How many equal rates would be as uneven as *rates*: (Σr)² / Σr²; 1 when there are none."""
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / squares if squares else 1.0


def waiting(service: float, load: float, users: float) -> float:
    """Time at a server that *users* share, each with at most one request there; *load* is their rate times *service*.

    An arriving request finds the others' queue, not its own (Schweitzer's approximation of mean value analysis):
    service / (1 - load * (users - 1) / users), at most all users' requests one after the other.
    """
    free = 1 - load * (1 - 1 / max(1.0, users))
    worst = max(1.0, users) * service
    return min(worst, service / free) if free > 0 else worst


def bus_seconds(nic: Nic, size: float, both: float) -> float:
    """Bus time of a frame of *size* bytes (with FCS), s. *both*: how evenly both directions are loaded, 0..1."""
    if nic.pcie is None:
        return 0.0
    data, pcie = size - FCS, nic.pcie
    total = data + pcie.header * math.ceil(data / pcie.payload) + nic.descriptors
    return 8 * total / (pcie.gbps * 1e9 * (1 - pcie.duplex * both))


def both_directions(per_port: Mapping[int, float]) -> float:
    """How evenly two ports are loaded: 0 when one has all, 1 when the two busiest have the same."""
    first, second = (*sorted(per_port.values(), reverse=True), 0.0, 0.0)[:2]
    return 2 * second / (first + second) if second else 0.0


def admitted(nic: Nic, arrivals: Sequence[QueueArrival]) -> dict[tuple[int, int], float]:
    """Per (port, queue) the share of its frames that reach the queue's ring."""
    per_queue: defaultdict[tuple[int, int], float] = defaultdict(float)
    for row in arrivals:
        per_queue[row.port, row.queue] += row.pps
    each = seconds_per_frame(nic, arrivals)
    shares = {key: min(1.0, 1 / (pps * each)) if pps * each > 0 else 1.0 for key, pps in per_queue.items()}
    if nic.port_mpps:
        taken: defaultdict[int, float] = defaultdict(float)
        for (port, queue), pps in per_queue.items():
            taken[port] += pps * shares[port, queue]
        fits = {port: min(1.0, nic.port_mpps * 1e6 / pps) if pps else 1.0 for port, pps in taken.items()}
        shares = {key: share * fits[key[0]] for key, share in shares.items()}
    if nic.bus_gbps:
        used = sum(row.pps * shares[row.port, row.queue] * l2_bits(row.size) for row in arrivals)
        fit = min(1.0, nic.bus_gbps * 1e9 / used) if used else 1.0
        shares = {key: share * fit for key, share in shares.items()}
    return shares


def seconds_per_frame(nic: Nic, arrivals: Sequence[QueueArrival]) -> float:
    """s that a receive queue of the card is busy with a frame: its own work, and the wait for the bus.

    The wait depends on the bus's load, which depends on the queues' throughput: one fixed point.
    """
    own, turn = nic.queue_ns * 1e-9, nic.pcie.turn_ns * 1e-9 if nic.pcie else 0.0
    if not nic.pcie:
        return own
    per_queue: defaultdict[tuple[int, int], float] = defaultdict(float)
    on_bus: defaultdict[tuple[int, int], float] = defaultdict(float)
    per_port: defaultdict[int, float] = defaultdict(float)
    for row in arrivals:
        per_port[row.port] += row.pps
    both = both_directions(per_port)
    for row in arrivals:
        per_queue[row.port, row.queue] += row.pps
        on_bus[row.port, row.queue] += row.pps * bus_seconds(nic, row.size, both)

    def each(load: float) -> float:
        return own + turn * load / (1 - load) if load < 1 else math.inf

    def load_of(seconds: float) -> float:
        return sum(
            used * (min(1.0, 1 / (per_queue[key] * seconds)) if per_queue[key] * seconds > 0 else 1.0)
            for key, used in on_bus.items()
        )

    low, high = 0.0, min(load_of(each(0.0)), 1.0)
    for _ in range(60 if load_of(each(high)) < high else 0):
        middle = (low + high) / 2
        if load_of(each(middle)) > middle:
            low = middle
        else:
            high = middle
    return each(high)
