"""Rules of :mod:`.explain` over what a system drops itself: queueing disciplines, filters, backlogs, busy programs."""

from __future__ import annotations

import re
from dataclasses import replace

from ..core.causes import Stage
from ..core.explanation import Confidence, Explanation
from .explain_evidence import ELSEWHERE, IDLE, RouterEvidence
from .explain_workers import workers
from .linux_losses import FILTER_DROPS, QDISC_DROPS, discipline_of, is_limiting, is_of_the_system

VECTOR = 256
"""Frames that VPP reads from a queue at once, at most."""

FEW_TURNS = 0.15
"""Share of its time on packets up to which a processor that programs fill hardly lacks any for them: software
interrupts go before programs, and the kernel's thread for those, where many are due, has its turn beside a few.
"""

TX_LOSS = 0.01
"""Of what was handed to the sending interfaces, the share lost there that makes them the limit."""

NOISE = 0.01
"""The share by which counts of the same frames may differ: of a few other frames."""


def are_lost_ones(evidence: RouterEvidence, frames: int, counted: bool = True) -> Confidence | None:
    """How sure it is that *frames* dropped at one place are of the lost ones; None: other drops explain these.

    A router's counters have the frames of others too. *counted*: by one of them, not as a difference.
    """
    lost = evidence.lost
    others = sum(drop.frames for drop in evidence.drops) - (frames if counted else 0)
    if lost - others <= NOISE * min(frames, lost) and abs(frames - lost) > NOISE * lost:
        return None
    return Confidence.CERTAIN if frames + others <= (1 + NOISE) * lost else Confidence.LIKELY


def discipline(evidence: RouterEvidence) -> Explanation | None:
    """A queueing discipline that somebody set: it drops by itself, whatever the card below it takes."""
    drops = [drop for drop in evidence.drops if drop.name == QDISC_DROPS and discipline_of(drop.meaning)]
    drop = max(drops, key=lambda drop: drop.frames, default=None)
    if drop is None or is_of_the_system(words := discipline_of(drop.meaning)):
        return None
    if drop.frames <= evidence.dropped(Stage.LEAVING) / 2:
        return None
    if drop.frames <= evidence.lost / 2 and drop.frames < TX_LOSS * evidence.handed_to_send:
        return None
    if (sure := are_lost_ones(evidence, drop.frames)) is None:
        return None
    dropped = f"{_share(drop.frames, evidence)} were dropped by the queueing discipline of {drop.interface}, {words}"
    figures = {"dropped": float(drop.frames), "lost": float(evidence.lost)}
    look = f"see 'tc -s qdisc show dev {drop.interface}'"
    if is_limiting(words):
        return Explanation(
            "shaper",
            f"{dropped}, which sends no faster than it is set to",
            figures,
            sure,
            f"{look} and 'tc -s class show dev {drop.interface}': raise its rate, or remove it if it is not meant",
        )
    if words.startswith("netem"):
        return Explanation(
            "shaper",
            f"{dropped}, which loses and delays frames on purpose",
            figures,
            sure,
            f"{look}: remove it if this loss is not meant",
        )
    return Explanation(
        "short queue",
        f"{dropped}: frames come faster than {drop.interface} takes them, for moments or always",
        figures,
        Confidence.LIKELY,
        f"{look}: a longer queue for bursts, a faster line or less load otherwise",
    )


def filters(evidence: RouterEvidence) -> Explanation | None:
    """Frames that a filter dropped: counted by ``tc``, or in no counter while a firewall is on."""
    drops = [drop for drop in evidence.drops if drop.name.startswith(FILTER_DROPS)]
    drop = max(drops, key=lambda drop: drop.frames, default=None)
    sure = are_lost_ones(evidence, drop.frames) if drop is not None else None
    if drop is not None and sure is not None and drop.frames > evidence.lost / 2:
        where = drop.interface or drop.name.rpartition(" at ")[2]
        return Explanation(
            "filter",
            f"{_share(drop.frames, evidence)} were dropped {drop.meaning} at {where}: rules, or a policer's rate",
            {"dropped": float(drop.frames), "lost": float(evidence.lost)},
            sure,
            f"see 'tc -s filter show dev {where} ingress' (or egress); remove the rule if this is not meant",
        )
    firewall = evidence.facts.firewall if evidence.facts else None
    inside = (evidence.ledger.unexplained_rx_to_tx or 0) if evidence.ledger else 0
    if not firewall or not re.match(r"on\b", firewall) or not evidence.lost or inside <= evidence.lost / 2:
        return None
    if are_lost_ones(evidence, inside, counted=False) is None:
        return None
    return Explanation(
        "filter",
        f"the router received {_share(inside, evidence)} and sent them nowhere, and none of its"
        f" counters has them; its firewall is {firewall}",
        {"uncounted": float(inside), "lost": float(evidence.lost)},
        Confidence.LIKELY,
        "see the counters of its rules ('nft list ruleset', 'iptables -nvxL', 'pfctl -vsr'), and blackhole routes",
    )


def backlog(evidence: RouterEvidence) -> Explanation | None:
    """Frames that waited for a processor of Linux in a queue that was full."""
    full = evidence.backlogged
    if not evidence.lost or full <= evidence.lost / 2:
        return None
    if (sure := are_lost_ones(evidence, full)) is None:
        return None
    counters = evidence.load.counters if evidence.load and evidence.workers else {}
    cpus = sorted(name.partition("full ")[2] for name in counters if name.startswith("softnet backlog full "))
    whose = " and ".join(cpus) if 0 < len(cpus) <= 3 else "a processor"
    lost = f"of {evidence.lost:,} lost frames" if full <= evidence.lost else f"with {evidence.lost:,} frames lost,"
    words = f"{lost} {full:,} found the backlog full in which frames wait for {whose} (softnet, netdev_max_backlog)"
    figures = {"backlog_full": float(full), "lost": float(evidence.lost)}
    if (found := workers(evidence) or steal(evidence)) is not None:
        confidence = sure if found.confidence is Confidence.CERTAIN else found.confidence
        found = replace(found, rule="backlog", confidence=confidence, figures={**found.figures, **figures})
        return replace(found, words=f"{words}; {found.words}")
    if (moments := _too_short(evidence)) is not None:
        rest, of_time, confidence = moments
        return Explanation(
            "backlog",
            f"{words}, {rest}: it is too short for moments when they come too late",
            {**figures, **of_time},
            confidence,
            "enlarge net.core.netdev_max_backlog, or let the interrupts' own processors handle the frames (no RPS)",
        )
    if (found := other_work(evidence)) is not None:
        return replace(found, rule="backlog", words=f"{words}; {found.words}", figures={**found.figures, **figures})
    return Explanation(
        "backlog",
        f"{words}: frames came faster than they were handled there; how busy it was with them is not clear",
        figures,
        Confidence.LIKELY,
        "more processors for RPS or more queues; for bursts a larger net.core.netdev_max_backlog",
    )


def _too_short(evidence: RouterEvidence) -> tuple[str, dict[str, float], Confidence] | None:
    """How little those processors that handle packets have to do with them; None: it is not little, or not known."""
    if not evidence.workers or evidence.load is None:
        return None
    handling = [cpu for cpu in evidence.load.cpus if evidence.handles(f"CPU {cpu.cpu}")]
    busiest = max((1.0 if cpu.busy is None else cpu.busy for cpu in handling), default=1.0)
    if busiest < IDLE:
        sure = Confidence.POSSIBLE if evidence.may_be_stolen else Confidence.LIKELY
        return f"while the busiest is {busiest:.0%} busy", {"busiest_worker": busiest}, sure
    packets = max((1.0 if cpu.on_packets is None else cpu.on_packets for cpu in handling), default=1.0)
    if packets > FEW_TURNS:
        return None
    words = f"while packets take at most {packets:.0%} of a processor's time, and go before programs"
    return words, {"time_on_packets": packets}, Confidence.POSSIBLE


NO_BUFFERS = "no buffers"


def no_buffers(evidence: RouterEvidence) -> Explanation | None:
    """VPP had no free buffer for frames that arrived; with workers that are busy another rule names these."""
    ledger, failed, pools = evidence.ledger, evidence.failed_allocations, evidence.empty_pools
    # drivers of VPP's own do not count what the card lost
    uncounted = 0 if ledger is None or evidence.is_blind else max(0, ledger.unexplained_before_rx or 0)
    if not evidence.lost or evidence.lost_on_arrival + uncounted <= evidence.lost / 2:
        return None
    if failed * VECTOR < evidence.lost and not pools:
        return None
    tried = f"VPP found no free buffer {failed:,} times when it read a receive queue" if failed else ""
    empty = f"no buffer of {' and '.join(pools)} was free" if pools else ""
    return Explanation(
        NO_BUFFERS,
        f"{' and '.join(filter(None, (tried, empty)))}: the card cannot put frames anywhere until some are sent",
        {"failed_allocations": float(failed), "empty_pools": float(len(pools))},
        Confidence.LIKELY,
        "raise 'buffers-per-numa' ('buffers' in startup.conf): they fill all receive and sending rings; or shorten"
        " the rings",
    )


STEAL = "steal"


def steal(evidence: RouterEvidence) -> Explanation | None:
    """A hypervisor withheld the time in which a processor of this virtual machine would have handled packets."""
    full = {worker.thread for worker in evidence.full}
    rows = [
        (name in full, share, name, programs)
        for name, cpu in evidence.withheld.items()
        if (share := cpu.steal or 0.0) >= (programs := evidence.on_programs(cpu))
    ]
    if not rows or not evidence.arrival_decides:
        return None
    is_full, share, name, programs = max(rows)
    left = "has no time left" if is_full else "is late"
    also = f", and programs took {programs:.0%}" if programs > ELSEWHERE else ""
    return Explanation(
        STEAL,
        f"{name} {left}: of its time the hypervisor of this virtual machine withheld {share:.0%} (steal){also}; what it"
        " could forward with that is not known",
        {"steal": share, "stolen_workers": float(len(evidence.withheld))},
        Confidence.LIKELY if is_full and not also else Confidence.POSSIBLE,
        "do not share the host's cores: give each of the router's processors one that nothing else uses",
    )


def other_work(evidence: RouterEvidence) -> Explanation | None:
    """Processors that have no time left, and spend it on other things than packets too."""
    full = {worker.thread for worker in evidence.full}
    shares = {name: share for name, share in evidence.elsewhere.items() if name in full and evidence.handles(name)}
    if not shares or not evidence.workers or not evidence.arrival_decides:
        return None
    name, share = max(shares.items(), key=lambda item: item[1])
    stolen = (evidence.stolen[name].steal or 0.0) if name in evidence.stolen else 0.0
    where = "on programs: they" if evidence.is_freebsd else "outside of interrupts: programs (or threaded NAPI)"
    where += f" take it (its hypervisor withheld {stolen:.0%})" if stolen else " take it"
    return Explanation(
        "other work",
        f"{name} has no time left, but spends {share - stolen:.0%} of it {where}, and what it could forward"
        " without them is not known",
        {"elsewhere": share, "crowded_workers": float(len(shares))},
        Confidence.POSSIBLE,
        "keep programs off the processors that forward",
    )


def _share(frames: int, evidence: RouterEvidence) -> str:
    """How many of the lost frames; a system may drop its own as well."""
    if frames > evidence.lost:
        return f"{frames:,} frames (lost were {evidence.lost:,})"
    return f"{frames:,} of {evidence.lost:,} lost frames"
