"""Rules of :mod:`.explain` over who was busy: locks, all workers, or some beside idle ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..core.explanation import Confidence, Explanation
from ..core.under_load import WorkerLoad
from .explain_evidence import RouterEvidence, busy_share

MANY_CORES = 6
"""Busy cores from which on FreeBSD's locks before release 12 cost more than the work."""

FEW_PACKETS = 0.1
"""Of what each direction has on average, the share up to which a worker is none of those that a flow enters by."""

IDENT, BRIDGE = "kernel ident", "bridge"
"""Keys of :attr:`RouterFacts.other`: FreeBSD's ``kern.ident``, and its bridges that have an interface under test."""

_FREEBSD = re.compile(r"FreeBSD (\d+)\.\d+")
_SPREADS_PORTS = re.compile(r"udp|tcp|4.?tuple|l4|port", re.IGNORECASE)


def locks(evidence: RouterEvidence) -> Explanation | None:
    """Cores that wait for each other are as busy as cores that work."""
    busy, facts = evidence.busy, evidence.facts
    if facts is None or not evidence.arrival_decides or len(busy) < 2:
        return None
    release = _FREEBSD.search(" ".join(filter(None, (facts.os, facts.kernel))))
    if release is None:
        return None
    number, ident = int(release[1]), facts.other.get(IDENT)
    if number < 13 and BRIDGE in facts.other:
        what, remedy = "the bridge's lock", "route instead of bridging, or take FreeBSD 13"
    elif number < 12 and ident in ("GENERIC", None) and len(busy) >= MANY_CORES:
        what = "the locks of routing and neighbour tables"
        remedy = "take FreeBSD 12 or later; more cores or queues would not help"
    else:
        return None
    return Explanation(
        "locks",
        f"{len(busy)} cores are {_least_busy(busy):.0%} busy and wait for each other at {what}, which FreeBSD {number}"
        " takes for each frame",
        {"busy_workers": float(len(busy))},
        Confidence.LIKELY if ident or BRIDGE in facts.other else Confidence.POSSIBLE,
        remedy,
    )


def workers(evidence: RouterEvidence) -> Explanation | None:
    """Workers without time left: all of them, or some beside idle ones, and why those get no frames.

    Not certain where a hypervisor may have withheld some of that time.
    """
    found = _busy_workers(evidence)
    unsure = found is not None and found.confidence is Confidence.CERTAIN and evidence.may_be_stolen
    return replace(found, confidence=Confidence.LIKELY) if found and unsure else found


def _busy_workers(evidence: RouterEvidence) -> Explanation | None:
    busy, idle = evidence.busy, evidence.idle
    # a worker that is busy with other frames has taken none of these
    if not busy or not evidence.arrival_decides or not evidence.busy_lose:
        return None
    if len(busy) == len(evidence.workers):
        few = f"all {len(busy)} workers are" if len(busy) > 1 else f"its only worker {busy[0].thread} is"
        share = f"{_least_busy(busy):.0%} busy"
        cycles = _cycles(busy)
        cost = f", at {cycles:.0f} cycles per packet" if cycles else ""
        return Explanation(
            "all workers",
            f"{few} {share}{cost}: the cores are too slow",
            _figures(evidence) | ({"cycles_per_packet": cycles} if cycles else {}),
            Confidence.CERTAIN,
            "more cores and queues, faster cores, or less work per packet",
        )
    if not idle:
        return _beside_programs(evidence)
    verb, count = "is" if len(busy) == 1 else "are", len(evidence.workers)
    most = max(busy_share(worker) or 0.0 for worker in idle)
    rest = f"at most {most:.0%}" if most >= 0.01 else "is idle" if len(idle) == 1 else "are idle"
    some = f"{_names(busy)} {verb} {_least_busy(busy):.0%} busy, {len(idle)} of {count} workers {rest}"
    return _why_uneven(evidence, some)


def _beside_programs(evidence: RouterEvidence) -> Explanation | None:
    """As beside idle processors, where the others handle hardly a packet, but programs leave them no time either."""
    busy, others = evidence.busy, [worker for worker in evidence.workers if worker not in evidence.busy]
    if any(other.thread not in evidence.elsewhere or evidence.handles(other.thread) for other in others):
        return None
    some = f"{_names(busy)} {'is' if len(busy) == 1 else 'are'} {_least_busy(busy):.0%} busy"
    some += f", {_names(others)} handle{'s' * (len(others) == 1)} hardly a packet, with programs at work there"
    found = _why_uneven(evidence, some)
    certain = found is not None and found.confidence is Confidence.CERTAIN
    return replace(found, confidence=Confidence.LIKELY) if found and certain else found


def _why_uneven(evidence: RouterEvidence, some: str) -> Explanation | None:
    rules = (_shared_worker, _one_flow, _few_queues, _one_processor, _addresses, _uneven)
    return next((found for rule in rules if (found := rule(evidence, some))), None)


def _shared_worker(evidence: RouterEvidence, some: str) -> Explanation | None:
    """Queues of several interfaces on one worker, though others have fewer."""
    placed, busy = evidence.placed, evidence.busy
    rows_of = {worker.thread: _rows_of(evidence, worker) for worker in busy}
    shared = {thread: rows for thread, rows in rows_of.items() if len({name for name, _ in rows}) > 1}
    one_flow = evidence.tried.flows == 1
    if one_flow:
        handling = _handling(evidence)
        fits = handling is not None and len(evidence.ingress) > handling > 0
        if not fits:
            # a flow has no other way in than its interface's only queue
            only = {name for name in evidence.ingress if _has_one_queue(evidence, name)}
            shared = {thread: rows for thread, rows in shared.items() if only.issuperset(name for name, _ in rows)}
            fits = True
    else:
        most = max((len(rows) for rows in shared.values()), default=0)
        fits = most > min((len(placed.get(worker.thread, ())) for worker in evidence.idle), default=most)
    if not shared or not fits:
        return None
    thread, rows = next(iter(shared.items()))
    both = "both directions' only flows enter by queues" if one_flow else "queues"
    return Explanation(
        "shared worker",
        f"{some}: {both} of {_and(sorted({interface for interface, _ in rows}))} that are placed on {thread}",
        _figures(evidence) | {"queues_on_worker": float(len(rows))},
        _sure(evidence) if one_flow else Confidence.LIKELY,
        f"place the queues of each interface on workers of their own (now {_queue_words(rows)} on {thread})",
    )


def _handling(evidence: RouterEvidence) -> int | None:
    """How many workers handle packets of the flows; None where that was not read of all."""
    rates = [worker.packets_per_s for worker in evidence.workers]
    known = [rate for rate in rates if rate is not None]
    # packets now and then, of a login or a routing protocol, are none of the flow
    few = FEW_PACKETS * sum(known) / max(1, len(evidence.ingress))
    return sum(rate > few for rate in known) if len(known) == len(rates) else None


def _has_one_queue(evidence: RouterEvidence, interface: str) -> bool:
    """Return whether all that enters by *interface* is handled where its only queue is placed."""
    queues = [name for rows in evidence.placed.values() for name, _ in rows if name == interface]
    counts = {nic.rx_queues for nic in evidence.nics if nic.interface == interface}
    return len(queues) == 1 and counts <= {None, 1} and not evidence.steering


def _may_share(evidence: RouterEvidence) -> bool:
    """Return whether flows of several directions may be on one worker, beside others without any."""
    handling, directions = _handling(evidence), len(evidence.ingress)
    if directions < 2 or (handling is not None and handling >= directions):
        return False
    serving = [{name for name, _ in _rows_of(evidence, worker)} for worker in evidence.busy]
    return not evidence.placed or bool(evidence.steering) or any(len(names) > 1 for names in serving)


def _rows_of(evidence: RouterEvidence, worker: WorkerLoad) -> tuple[tuple[str, int], ...]:
    """The queues that *worker* serves, of interfaces that frames enter by."""
    return evidence.placed.get(worker.thread, ())


def _one_flow(evidence: RouterEvidence, some: str) -> Explanation | None:
    if evidence.tried.flows != 1:
        return None
    each = " in each direction" if len(evidence.ingress) > 1 else ""
    return Explanation(
        "one flow",
        f"{some}: one flow{each} enters by one receive queue, which one worker serves",
        _figures(evidence),
        Confidence.LIKELY if _may_share(evidence) else Confidence.CERTAIN,
        "a faster core, or less work per packet; more workers would not help one flow",
    )


def _few_queues(evidence: RouterEvidence, some: str) -> Explanation | None:
    queues, workers = evidence.queues, len(evidence.workers)
    if evidence.steering or queues is None or queues >= workers or len(evidence.busy) < min(queues, workers):
        return None
    if not evidence.servers_are_busy:
        return None
    return Explanation(
        "few queues",
        f"{some}: the interfaces that frames enter by have {queues} receive queue{'s' * (queues != 1)} for {workers}"
        " workers",
        _figures(evidence) | {"queues": float(queues)},
        _sure(evidence),
        "set as many receive queues per interface as there are workers",
    )


def _addresses(evidence: RouterEvidence, some: str) -> Explanation | None:
    """A hash of ports too spreads only flows that have the same addresses: ports that all share permute the queues."""
    if (vary := evidence.tried.ports_vary) is False:
        return None
    fields = [nic.rss_fields for nic in evidence.nics if nic.interface in evidence.ingress]
    if not fields or any(not row or _SPREADS_PORTS.search(" ".join(row)) for row in fields):
        return None
    named = ", ".join(sorted({item for row in fields for item in row or ()}))
    return Explanation(
        "address hash",
        f"{some}: the card spreads frames by addresses only ({named})"
        + (", and flows with the same addresses have different ports" if vary else ""),
        _figures(evidence),
        Confidence.LIKELY if vary else Confidence.POSSIBLE,
        "let the card hash ports too",
    )


def _one_processor(evidence: RouterEvidence, some: str) -> Explanation | None:
    steering = evidence.steering
    if len(steering) == 1 and [worker.thread for worker in evidence.busy] == [f"CPU {steering[0]}"]:
        return Explanation(
            "one processor",
            f"{some}: all packets are steered to CPU {steering[0]} (RPS)",
            _figures(evidence),
            _sure(evidence),
            "steer them to more processors (rps_cpus of the receive queues), or use more queues",
        )
    one_cpu = not steering and len(evidence.placed) == 1 and (evidence.queues or 0) > 1 and evidence.servers_are_busy
    if one_cpu:
        return Explanation(
            "one processor",
            f"{some}: all {evidence.queues} receive queues are served by {next(iter(evidence.placed))}",
            _figures(evidence) | {"queues": float(evidence.queues or 0)},
            _sure(evidence),
            "spread the queues' interrupts over the processors (smp_affinity), or turn on RPS",
        )
    return None


def _uneven(evidence: RouterEvidence, some: str) -> Explanation:
    flows = f"{evidence.tried.flows} flows" if evidence.tried.flows else "the flows"
    return Explanation(
        "uneven workers",
        f"{some}: {flows} do not spread evenly over them",
        _figures(evidence),
        Confidence.POSSIBLE,
        "compare the queues' placement and what the card hashes with the flows that are sent",
    )


def _sure(evidence: RouterEvidence) -> Confidence:
    """How sure it is that idle workers would help."""
    return Confidence.CERTAIN if evidence.cores_are_idle else Confidence.LIKELY


def _figures(evidence: RouterEvidence) -> dict[str, float]:
    return {
        "busy_workers": float(len(evidence.busy)),
        "idle_workers": float(len(evidence.idle)),
        "workers": float(len(evidence.workers)),
    }


def _least_busy(workers: Sequence[WorkerLoad]) -> float:
    return min(busy_share(worker) or 0.0 for worker in workers)


def _cycles(workers: Sequence[WorkerLoad]) -> float | None:
    """Mean cycles per packet of *workers*, weighted by packets; None where they are not known."""
    rows = [(worker.packets_per_s, worker.cycles_per_packet) for worker in workers]
    known = [(pps, cycles) for pps, cycles in rows if pps and cycles]
    total = sum(pps for pps, _ in known)
    return sum(pps * cycles for pps, cycles in known) / total if known and len(known) == len(rows) else None


def _names(workers: Sequence[WorkerLoad]) -> str:
    if len(workers) > 3:
        return f"{len(workers)} workers"
    return _and([worker.thread for worker in workers])


def _queue_words(rows: Sequence[tuple[str, int]]) -> str:
    return _and([f"queue {queue} of {interface}" for interface, queue in rows])


def _and(words: Sequence[str]) -> str:
    return " and ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else "".join(words)
