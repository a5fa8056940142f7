"""The visible part of a modelled router: facts, load and ledger, as its shell and its counters would report them.

Nothing of the model's parameters is here but what such a box shows: its processors, its cards' slots, where its queues
are placed, how busy its workers are, what it counts as dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lineproof.core.ledger import DirectionAccount, Drop, Ledger
from lineproof.core.router_facts import NicFacts, Placement, RouterFacts
from lineproof.core.telemetry import Stage
from lineproof.core.under_load import QueueLoad, UnderLoad, WorkerLoad
from lineproof.platforms import Software
from lineproof.routers.why import BRIDGE, KERNEL_IDENT
from lineproof_bench.model.forwarding import Forwarding, StreamLoad, placement
from lineproof_bench.model.schema import RouterModel

from .limits import forwarded_pps

SECONDS = 1.0
PCIE3 = 8 * 128 / 130
"""Gbit/s of a lane of PCIe 3.0 (8 GT/s)."""
CARD_LANES = 8
"""Lanes that the cards can use whose slots are modelled: ConnectX-4 Lx and ConnectX-5 EN with 25GbE ports."""
DROPS = {"vpp": "rx-miss", "linux": "rx_missed", "freebsd": "Idrop"}


def _thread_name(software: Software, number: int) -> str:
    return f"vpp_wk_{number}" if software.shell == "vpp" else f"CPU {number}"


def _placed(model: RouterModel, software: Software) -> Iterator[tuple[str, int, str]]:
    """Yield interface and number of each receive queue, and who polls it."""
    for number, queues in enumerate(placement(model, len(software.interfaces))):
        for port, queue in queues:
            yield software.interfaces[port], queue, _thread_name(software, number)


def facts_of(model: RouterModel, software: Software, name: str) -> RouterFacts:
    """Return the facts of the box with *software*, whose key in the platform's file is *name*."""
    pcie, is_vpp = model.nic.pcie, software.shell == "vpp"
    nics = tuple(
        NicFacts(
            interface,
            model=software.about or None,
            # the modelled boxes have both ports on one card
            pci_address=f"0000:03:00.{port}" if pcie else None,
            driver="rdma" if "rdma" in name else "dpdk" if is_vpp else None,
            pcie_width=round(pcie.gbps / PCIE3) if pcie else None,
            pcie_speed=8.0 if pcie else None,
            pcie_width_max=CARD_LANES if pcie else None,
            pcie_speed_max=8.0 if pcie else None,
            rx_queues=model.rx_queues,
        )
        for port, interface in enumerate(software.interfaces)
    )
    is_freebsd, other = software.shell == "freebsd", {}
    if is_freebsd:
        # a kernel with patches has a configuration of its own
        other[KERNEL_IDENT] = "GENERIC" if "as released" in software.about else "PATCHED"
    if any(lock.name == "bridge" for lock in model.software.cost.locks):
        other[BRIDGE] = "bridge0"
    return RouterFacts(
        os=f"FreeBSD {software.version}-RELEASE" if is_freebsd else "Linux",
        version=software.version,
        nics=nics,
        workers=model.workers,
        placement=tuple(Placement(*place) for place in _placed(model, software)),
        other=other,
    )


def load_of(
    model: RouterModel, software: Software, loads: Sequence[StreamLoad], outcome: Forwarding, asked: float
) -> UnderLoad:
    """Return the readings while *loads* are offered, of which *asked* frames/s were wanted."""
    workers = tuple(
        WorkerLoad(
            _thread_name(software, number),
            worker.busy,
            worker.pps,
            worker.vector if software.shell == "vpp" else None,
            worker.cycles or None,
        )
        for number, worker in enumerate(outcome.workers)
    )
    queues = tuple(QueueLoad(*place) for place in _placed(model, software))
    offered = sum(load.pps for load in loads)
    return UnderLoad(asked, offered, forwarded_pps(loads, outcome), workers, queues, seconds=SECONDS)


def ledger_of(software: Software, loads: Sequence[StreamLoad], outcome: Forwarding, counts_arrivals: bool) -> Ledger:
    """Return where the frames of SECONDS went. *counts_arrivals*: the driver knows what its card lost."""
    names, accounts = software.interfaces, []
    for port in sorted({load.port for load in loads}):
        pairs = [(load, fate) for load, fate in zip(loads, outcome.fates, strict=True) if load.port == port]
        offered = round(sum(load.pps for load, _ in pairs) * SECONDS)
        forwarded = round(sum(load.pps * fate.forwarded for load, fate in pairs) * SECONDS)
        taken = round(sum(load.pps * (1 - fate.missed) for load, fate in pairs) * SECONDS)
        drops = [Drop(Stage.LEAVING, "tx-error", names[1 - port], taken - forwarded)]
        if counts_arrivals:
            drops.append(Drop(Stage.ARRIVING, DROPS[software.shell], names[port], offered - taken))
        shown = tuple(drop for drop in drops if drop.frames > 0)
        ends = port, 1 - port, names[port], names[1 - port]
        accounts.append(DirectionAccount(*ends, offered, forwarded, taken, forwarded, shown))
    return Ledger(1, 1, tuple(accounts))
