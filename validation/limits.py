"""Which of the model's limits binds: the one whose relief, alone, lets more frames through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum

from lineproof_bench.model.forwarding import Forwarding, StreamLoad, forward
from lineproof_bench.model.schema import CycleCost, Nic, RouterModel

_WORK = ("packet", "byte", "input", "call", "shared", "duplex", "layer", "crossing", "crossing_far")
"""Cycles of a worker's own, without locks."""

_BUSY = 1 - 1e-9
_LOST = 1e-9
_AS_GOOD = 0.5
"""A relief that lets through this share of what the best one does is as good: either would help."""


class Limit(Enum):
    """The limit of a router's forwarding rate."""

    GENERATOR = "generator"
    LINE = "line"
    TX_SLOTS = "tx slots"
    LOCK = "lock"
    ONE_WORKER = "one worker"
    WORKERS = "several workers"
    QUEUE = "card's queue"
    PORT = "port"
    BUS = "bus"


def binding_limits(model: RouterModel, loads: Sequence[StreamLoad], asked: float = 0.0) -> frozenset[Limit]:
    """The limits that bind at *loads*; empty where nothing is lost and all of *asked* (frames/s) is offered.

    Each limit in turn is set to half of what it costs (or twice what it carries).
    """
    now = forward(model, loads)
    base, offered = _forwarded(loads, now), sum(load.pps for load in loads)
    if base >= offered * (1 - _LOST):
        return frozenset({Limit.GENERATOR}) if asked > offered * (1 + _LOST) else frozenset()
    gains: dict[Limit, float] = {}
    for limit, other in _relieved(model, now):
        gains[limit] = max(gains.get(limit, 0.0), _forwarded(loads, forward(other, loads)) - base)
    best = max(gains.values())
    return frozenset(limit for limit, gain in gains.items() if best > 0 and gain >= _AS_GOOD * best)


def _forwarded(loads: Sequence[StreamLoad], found: Forwarding) -> float:
    return sum(load.pps * fate.forwarded for load, fate in zip(loads, found.fates, strict=True))


def _relieved(model: RouterModel, now: Forwarding) -> Iterator[tuple[Limit, RouterModel]]:
    cost, nic = model.software.cost, model.nic
    busy = sum(worker.busy >= _BUSY for worker in now.workers)
    yield (
        Limit.ONE_WORKER if busy == 1 and model.workers > 1 else Limit.WORKERS,
        _with_cost(model, cost, **{name: getattr(cost, name) / 2 for name in _WORK}),
    )
    yield Limit.LINE, replace(model, speeds=tuple(2 * speed for speed in model.speeds))
    if cost.locks:
        yield Limit.LOCK, _with_cost(model, cost, locks=())
    if nic.queue_ns:
        yield Limit.QUEUE, _with_nic(model, nic, queue_ns=nic.queue_ns / 2)
    if nic.port_mpps:
        yield Limit.PORT, _with_nic(model, nic, port_mpps=2 * nic.port_mpps)
    if nic.tx_mpps:
        yield Limit.TX_SLOTS, _with_nic(model, nic, tx_mpps=2 * nic.tx_mpps)
    if nic.pcie:
        yield Limit.BUS, _with_nic(model, nic, pcie=nic.pcie.model_copy(update={"gbps": 2 * nic.pcie.gbps}))


def _with_cost(model: RouterModel, cost: CycleCost, **changed: object) -> RouterModel:
    return replace(model, software=model.software.model_copy(update={"cost": cost.model_copy(update=changed)}))


def _with_nic(model: RouterModel, nic: Nic, **changed: object) -> RouterModel:
    return replace(model, nic=nic.model_copy(update=changed))
