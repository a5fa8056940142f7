"""The limits of the modelled router that bind: those whose relief, alone, lets more frames through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from lineproof_bench.model.forwarding import Forwarding, StreamLoad, forward
from lineproof_bench.model.schema import RouterModel

WORK = ("packet", "byte", "input", "call", "shared", "duplex", "layer", "crossing", "crossing_far")
"""Cycles of a worker's own, without locks."""
BUSY, LOST = 1 - 1e-9, 1e-9
AS_GOOD = 0.5
"""A relief that lets through this share of what the best one does is as good: either would help."""


def binding_limits(model: RouterModel, loads: Sequence[StreamLoad], asked: float = 0.0) -> frozenset[str]:
    """Return the limits that bind at *loads*.

    None do where nothing is lost and all of *asked* (frames/s) is offered. Each limit in turn is set to half of what it
    costs (or twice what it carries).
    """
    now = forward(model, loads)
    base, offered = forwarded_pps(loads, now), sum(load.pps for load in loads)
    if base >= offered * (1 - LOST):
        return frozenset({"generator"} if asked > offered * (1 + LOST) else ())
    gains = {limit: forwarded_pps(loads, forward(other, loads)) - base for limit, other in _relieved(model, now)}
    best = max(gains.values())
    return frozenset(limit for limit, gain in gains.items() if best > 0 and gain >= AS_GOOD * best)


def forwarded_pps(loads: Sequence[StreamLoad], outcome: Forwarding) -> float:
    """Return the frames/s of *loads* that are forwarded."""
    return sum(load.pps * fate.forwarded for load, fate in zip(loads, outcome.fates, strict=True))


def _relieved(model: RouterModel, now: Forwarding) -> Iterator[tuple[str, RouterModel]]:
    cost, nic = model.software.cost, model.nic

    def cheaper(**changed: Any) -> RouterModel:
        own = cost.model_copy(update=changed)
        return replace(model, software=model.software.model_copy(update={"cost": own}))

    busy = sum(worker.busy >= BUSY for worker in now.workers)
    workers = "one worker" if busy == 1 and model.workers > 1 else "several workers"
    yield workers, cheaper(**{name: getattr(cost, name) / 2 for name in WORK})
    yield "line", replace(model, speeds=tuple(2 * speed for speed in model.speeds))
    if cost.locks:
        yield "lock", cheaper(locks=())
    if nic.pcie:
        faster = nic.pcie.model_copy(update={"gbps": 2 * nic.pcie.gbps})
        yield "bus", replace(model, nic=nic.model_copy(update={"pcie": faster}))
    for limit, name, factor in (
        ("card's queue", "queue_ns", 0.5),
        ("port", "port_mpps", 2),
        ("tx slots", "tx_mpps", 2),
    ):
        if value := getattr(nic, name):
            yield limit, replace(model, nic=nic.model_copy(update={name: value * factor}))
