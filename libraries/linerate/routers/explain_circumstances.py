"""Rules of :mod:`.explain` for what makes a limit lower than it could be; said beside it."""

from __future__ import annotations

import re
from dataclasses import replace

from ..counts.explanation import Confidence, Explanation
from .explain_evidence import RouterEvidence
from .explain_system import NO_BUFFERS, STEAL, no_buffers
from .linux_load import THROTTLED

_TIME = frozenset(("busy_workers", "busiest_worker", "crowded_workers", "time_on_packets"))
"""Figures of limits that more time of a processor would raise, or may."""


def slowed(evidence: RouterEvidence, limit: Explanation | None) -> Explanation | None:
    """A processor that lowers its clock because of heat or power."""
    counters = evidence.load.counters if evidence.load and evidence.workers else {}
    name, rate = max(
        ((name, rate) for name, rate in counters.items() if name.startswith(THROTTLED)),
        key=lambda item: item[1],
        default=("", 0.0),
    )
    if rate <= 0 or not evidence.lost:
        return None
    return Explanation(
        "throttling",
        f"a processor slows itself down: {name} rose by {rate:.3g} per second",
        {"throttled_per_s": rate},
        Confidence.LIKELY,
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
    uneven = limit is not None and (
        limit.rule in ("uneven workers", "one processor", "late worker", "shared worker")
        or (limit.rule == "backlog" and limit.figures.get("busy_workers", 0.0) < len(evidence.workers))
    )
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
    """Cards on different nodes, where workers are the limit."""
    nodes = {nic.numa_node for nic in evidence.nics if nic.numa_node is not None and nic.numa_node >= 0}
    if len(nodes) < 2 or limit is None or "busy_workers" not in limit.figures:
        return None
    return Explanation(
        "numa",
        f"the interfaces are on NUMA nodes {' and '.join(map(str, sorted(nodes)))}: each frame crosses between them",
        {"numa_nodes": float(len(nodes))},
        Confidence.POSSIBLE,
        "put both cards and the workers on one node",
    )
