"""Rules of :mod:`.explain` for what makes a limit lower than it could be; said beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..core.explanation import Confidence, Explanation
from ..core.ledger import DirectionAccount
from .explain_evidence import RouterEvidence
from .explain_system import NO_BUFFERS, STEAL, no_buffers
from .linux_load import THROTTLED

_TIME = frozenset(("busy_workers", "busiest_worker", "crowded_workers", "time_on_packets"))
"""Figures of limits that more time of a processor would raise, or may."""


def slowed(evidence: RouterEvidence, limit: Explanation | None) -> Explanation | None:
    """A processor that lowers its clock because of heat or power, where packets fill it."""
    if limit is None or "busy_workers" not in limit.figures or evidence.load is None:
        return None
    busy = {worker.thread for worker in evidence.busy}
    # on which processors VPP's workers are is not read
    known = all(thread.startswith("CPU ") for thread in busy)
    counters = {name: rate for name, rate in evidence.load.counters.items() if name.startswith(THROTTLED)}
    if known:
        counters = {name: rate for name, rate in counters.items() if f"CPU {name.rpartition(' CPU ')[2]}" in busy}
    name, rate = max(counters.items(), key=lambda item: item[1], default=("", 0.0))
    if rate <= 0:
        return None
    return Explanation(
        "throttling",
        f"a processor slows itself down: {name} rose by {rate:.3g} per second",
        {"throttled_per_s": rate},
        Confidence.LIKELY if known else Confidence.POSSIBLE,
        "look at cooling and power limits",
    )


def some_steal(evidence: RouterEvidence, limit: Explanation | None) -> Explanation | None:
    """Less time that a hypervisor withheld than explains the loss, where processors' time is the limit."""
    if not evidence.stolen or limit is None or "steal" in limit.figures or _TIME.isdisjoint(limit.figures):
        return None
    share, name = max((cpu.steal or 0.0, name) for name, cpu in evidence.stolen.items())
    return Explanation(
        STEAL,
        f"the hypervisor of this virtual machine withheld {share:.0%} of the time of {name} (steal)",
        {"steal": share, "stolen_workers": float(len(evidence.stolen))},
        Confidence.POSSIBLE,
        "do not share the host's cores: give each of the router's processors one that nothing else uses",
    )


def firewall(evidence: RouterEvidence, limit: Explanation | None) -> Explanation | None:
    """A firewall that each packet passes, where workers are the limit."""
    firewall = evidence.facts.firewall if evidence.facts else None
    if not firewall or not re.match(r"on\b", firewall) or limit is None or "busy_workers" not in limit.figures:
        return None
    return Explanation(
        "firewall",
        f"a firewall looks at each packet ({firewall})",
        {"busy_workers": limit.figures["busy_workers"]},
        Confidence.POSSIBLE,
        "try the sentence without it: the difference is its cost",
    )


def few_buffers(evidence: RouterEvidence, limit: Explanation | None) -> Explanation | None:
    """VPP without free buffers, beside workers that are the limit."""
    found = no_buffers(evidence)
    if found is None or limit is None or limit.rule == NO_BUFFERS or "busy_workers" not in limit.figures:
        return None
    return replace(found, confidence=Confidence.POSSIBLE)


def irqbalance(evidence: RouterEvidence, limit: Explanation | None) -> Explanation | None:
    """A daemon that moves interrupts, where the load is not spread evenly."""
    if limit is None or len(evidence.workers) < 2:
        return None
    uneven = limit.rule in ("uneven workers", "one processor", "late worker", "shared worker")
    if limit.rule == "backlog":
        busy = limit.figures.get("busy_workers")
        uneven = bool(evidence.idle) if busy is None else busy < len(evidence.workers)
    if not uneven or evidence.queues is None or not evidence.facts or not evidence.facts.irqbalance:
        return None
    return Explanation(
        "irqbalance",
        "irqbalance is on and moves the queues' interrupts between processors",
        {"queues": float(evidence.queues)},
        Confidence.POSSIBLE,
        "stop it and pin each queue to a processor of its own",
    )


def numa(evidence: RouterEvidence, limit: Explanation | None) -> Explanation | None:
    """Frames that enter and leave by cards on different nodes, where workers are the limit."""
    if limit is None or "busy_workers" not in limit.figures or evidence.ledger is None:
        return None
    node_of = {
        nic.interface: nic.numa_node for nic in evidence.nics if nic.numa_node is not None and nic.numa_node >= 0
    }
    rows = [row for row in evidence.ledger.directions if row.offered]
    ends = [{node_of[name] for name in (row.ingress, row.egress) if name in node_of} for row in rows]
    crossing = [row for row, nodes in zip(rows, ends, strict=True) if len(nodes) > 1]
    if not crossing:
        return None
    nodes = sorted(set().union(*ends))
    which = "each frame crosses" if len(crossing) == len(rows) else f"what enters by {_names(crossing)} crosses"
    return Explanation(
        "numa",
        f"the interfaces are on NUMA nodes {' and '.join(map(str, nodes))}: {which} between them",
        {"numa_nodes": float(len(nodes))},
        Confidence.POSSIBLE,
        "put both cards and the workers on one node",
    )


def _names(rows: Sequence[DirectionAccount]) -> str:
    return " and ".join(dict.fromkeys(row.ingress for row in rows))
