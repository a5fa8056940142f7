"""Figures of a router that lost frames, for the rules that say why: a load, a ledger, facts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lineproof.core.ledger import DirectionAccount, Drop, Ledger
from lineproof.core.router_facts import NicFacts, Placement, RouterFacts
from lineproof.core.telemetry import Stage
from lineproof.core.under_load import CpuLoad, TriedLoad, UnderLoad, WorkerLoad
from lineproof.routers.linux import BACKLOG_FULL, QDISC_DROPS

OFFERED, FORWARDED = 10_000_000, 6_000_000
LOST = OFFERED - FORWARDED
TRIED = TriedLoad(64, 251, 10e9, float(OFFERED), float(OFFERED), float(FORWARDED))
SPREAD = tuple(Placement("a", queue, f"w{queue}") for queue in range(3))


def ledger(
    stage: Stage | None = Stage.ARRIVING, offered: int = OFFERED, forwarded: int = FORWARDED, both: bool = False
) -> Ledger:
    """Return frames lost at *stage*, None: by nobody who counts. *both*: half of them in each direction."""
    names, accounts = ("a", "b"), []
    for port in range(1 + both):
        own, back = offered // (1 + both), forwarded // (1 + both)
        lost, into, out = own - back, names[port], names[1 - port]
        taken = back if stage in (Stage.ARRIVING, None) else own
        drops = (Drop(stage, "drop", out if stage is Stage.LEAVING else into, lost),) if stage and lost else ()
        accounts.append(DirectionAccount(port, 1 - port, into, out, own, back, taken, back, drops))
    return Ledger(1, 1, tuple(accounts))


def dropped(name: str, stage: Stage, meaning: str = "", frames: int = LOST, **more: Any) -> Ledger:
    """Return ``lost`` frames: *frames* dropped under *name* at ``place``, ``missed`` by the card of a."""
    missed, forwarded = more.get("missed", 0), OFFERED - more.get("lost", LOST)
    taken = forwarded if stage is Stage.ARRIVING else OFFERED - missed
    place = more.get("place") or ("b" if stage is Stage.LEAVING else "a")
    drops = (
        Drop(stage, name, place, frames, meaning),
        *[Drop(Stage.ARRIVING, "rx_missed", "a", missed)] * bool(missed),
    )
    row = DirectionAccount(0, 1, "a", "b", OFFERED, forwarded, taken, forwarded, drops)
    full = Drop(Stage.PASSING, BACKLOG_FULL, "", frames)
    return Ledger(1, 1, (row,), reasons=(full,) if name in ("rx_dropped", "tx_dropped") else ())


def qdisc(name: str, frames: int = LOST, **more: Any) -> Ledger:
    return dropped(QDISC_DROPS, Stage.LEAVING, f"its queueing discipline {name}", frames, **more)


def load(*busy: float, asked: float = OFFERED, **more: Any) -> UnderLoad:
    workers = tuple(WorkerLoad(f"w{number}", share, 1e6 * share) for number, share in enumerate(busy))
    return replace(UnderLoad(asked, asked, FORWARDED, workers), **more)


def cpus(*rows: tuple[float, float, float, float | None], **more: Any) -> UnderLoad:
    """Busy share, that in interrupts, steal, and packets/s of each processor."""
    shares = tuple(CpuLoad(n, busy, soft, pps, {}, 0.0, steal) for n, (busy, soft, steal, pps) in enumerate(rows))
    return UnderLoad(OFFERED, OFFERED, FORWARDED, cpus=shares, **more)


def facts(placement: tuple[Placement, ...] = SPREAD, **more: Any) -> RouterFacts:
    return replace(RouterFacts(placement=placement), **more)


def on(*names: str, of: str = "a", **more: Any) -> RouterFacts:
    """Return the queues of an interface, each on the worker that is named."""
    return facts(tuple(Placement(of, queue, name) for queue, name in enumerate(names)), **more)


def nic(**more: Any) -> NicFacts:
    return replace(NicFacts("a"), **more)
