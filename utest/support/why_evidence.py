"""Figures of a router that lost frames, for the rules that say why: a load, a ledger, facts."""

from __future__ import annotations

from dataclasses import replace

from lineproof.core.causes import Stage
from lineproof.core.ledger import DirectionAccount, Drop, Ledger
from lineproof.core.router_facts import NicFacts, Placement, RouterFacts
from lineproof.core.under_load import UnderLoad, WorkerLoad
from lineproof.routers.explain_evidence import TriedLoad

OFFERED, FORWARDED = 10_000_000, 6_000_000
TRIED = TriedLoad(64, 251, 10e9, float(OFFERED), float(OFFERED), float(FORWARDED))
SPREAD = tuple(Placement("a", queue, f"w{queue}") for queue in range(3))


def ledger(
    stage: Stage | None = Stage.ARRIVING, offered: int = OFFERED, forwarded: int = FORWARDED, both: bool = False
) -> Ledger:
    """Frames lost at *stage*, None: by nobody who counts. *both*: half of them in each direction."""
    names, rows = ("a", "b"), []
    for port in range(1 + both):
        own, back = offered // (1 + both), forwarded // (1 + both)
        lost, into, out = own - back, names[port], names[1 - port]
        taken = back if stage in (Stage.ARRIVING, None) else own
        drops = (Drop(stage, "drop", out if stage is Stage.LEAVING else into, lost),) if stage and lost else ()
        rows.append(DirectionAccount(port, 1 - port, into, out, own, back, taken, back, drops))
    return Ledger(1, 1, tuple(rows))


def load(*busy: float, asked: float = OFFERED, names: str = "w", **more: object) -> UnderLoad:
    workers = tuple(WorkerLoad(f"{names}{number}", share, 1e6 * share) for number, share in enumerate(busy))
    return replace(UnderLoad(asked, asked, FORWARDED, workers), **more)  # type: ignore[arg-type]


def facts(placement: tuple[Placement, ...] = SPREAD, **more: object) -> RouterFacts:
    return replace(RouterFacts(placement=placement), **more)  # type: ignore[arg-type]


def nic(**more: object) -> NicFacts:
    return replace(NicFacts("a"), **more)  # type: ignore[arg-type]
