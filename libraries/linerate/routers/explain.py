"""Why a router lost frames: rules over its facts, its load and the ledger. docs/methodology/why.md has them as a table.

A rule speaks only where its figures are there and fit; a rule that found one limit keeps those below it silent. None
changes a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..counts.causes import Stage
from ..counts.explanation import Confidence, Explanation
from ..counts.ledger import Ledger
from ..counts.router_facts import RouterFacts
from ..counts.under_load import UnderLoad
from ..units import si
from .explain_circumstances import few_buffers, firewall, irqbalance, numa, slowed
from .explain_evidence import SMALL_LOSS, RouterEvidence, TriedLoad, bus_gbps, busy_share, is_narrow
from .explain_system import TX_LOSS, are_lost_ones, backlog, discipline, filters, no_buffers, other_work
from .explain_workers import locks, workers

GENERATOR = "generator"
"""The only rule that names what is not the router's."""

UNSENT = 0.01
"""The generator is named when it sent less than was asked of it by more than this share."""

LINE_FULL = 0.97
"""A line is full from this share on: clocks of two cards differ, and a trial has edges."""

LINE_EXCEEDED = 1.0002
"""Shares of a line's rate above this are certainly more than it carries: both ends' clocks may be off by 100 ppm."""

BUS_FULL, BUS_MAYBE = 0.75, 0.25
"""Least share of the bus from which on it is the limit, or may be: descriptors and turns take the rest."""

Rule = Callable[[RouterEvidence], Explanation | None]


def explain(
    tried: TriedLoad,
    ledger: Ledger | None = None,
    facts: RouterFacts | None = None,
    load: UnderLoad | None = None,
) -> tuple[Explanation, ...]:
    """Why frames were lost, the best explanation first; () where the figures support none.

    *ledger*: of the worst trial. *facts* and *load* None: not read; then only rules that need neither speak.
    """
    evidence = RouterEvidence(tried, ledger, facts, load)
    limit = next((found for rule in LIMITS if (found := rule(evidence))), None)
    added = (found for rule in CIRCUMSTANCES if (found := rule(evidence, limit)))
    return tuple(found for found in (limit, *added) if found)


def _generator(evidence: RouterEvidence) -> Explanation | None:
    tried = evidence.tried
    # without a ledger the trial itself says whether frames were lost
    if evidence.lost or (evidence.ledger is None and not tried.offered_pps <= tried.forwarded_pps):
        return None
    if not tried.offered_pps < (1 - UNSENT) * tried.intended_pps:
        return None
    return Explanation(
        GENERATOR,
        f"the generator sent {si(tried.offered_pps, 'pps')} of {si(tried.intended_pps, 'pps')}, and the router lost"
        " none of it",
        {"intended_pps": tried.intended_pps, "offered_pps": tried.offered_pps},
        Confidence.CERTAIN,
        "ask for less, or give the generator more cores or a faster card",
    )


def _line(evidence: RouterEvidence) -> Explanation | None:
    """More arrives for a line than it carries; up to that, a drop on leaving is the card's or the driver's."""
    name, filled = _fullest_line(evidence)
    arriving = evidence.line_shares(with_lost=True).get(name, 0.0)
    if not _sending_limits(evidence) or filled < LINE_FULL or arriving <= LINE_EXCEEDED:
        return None
    return Explanation(
        "line",
        f"the line out of {name} is full ({filled:.1%} of its rate): more arrives for it than it carries",
        _sending_figures(evidence) | {"line_share_arriving": arriving},
        are_lost_ones(evidence, evidence.dropped(Stage.LEAVING)) or Confidence.LIKELY,
        "spread the load over more or faster lines; frames that grow on the way (tags, labels) need room too",
    )


def _tx_slots(evidence: RouterEvidence) -> Explanation | None:
    """What is lost on leaving was taken in and handled: the sending side limits, whatever was lost before."""
    if not _sending_limits(evidence):
        return None
    dropped, handed = evidence.dropped(Stage.LEAVING), evidence.handed_to_send
    _, filled = _fullest_line(evidence)
    full = f"of {handed:,} frames that were handed to the sending interfaces {dropped:,} found no free slot"
    places = {drop.interface for drop in evidence.drops if drop.stage is Stage.LEAVING}
    cards = {evidence.has_card(place) for place in places}
    if True not in cards and evidence.backlogged > dropped / 2:
        return None  # at the other end they waited for a processor
    if cards == {False}:
        return Explanation(
            "tx slots",
            f"{full}: what is at the other end of {' and '.join(sorted(places))} (no card) takes them too slowly",
            _sending_figures(evidence),
            Confidence.LIKELY,
            "look at the namespace, bridge or program that takes the frames there",
        )
    may_grow = filled >= LINE_FULL and not evidence.tried.grown_bytes
    grown = "; if frames grow on the way (tags, labels), the line is full" if may_grow else ""
    return Explanation(
        "tx slots",
        f"{full}, with the line {filled:.1%} full: the card empties its sending ring too slowly",
        _sending_figures(evidence),
        Confidence.LIKELY,
        "look at the sending ring's size, the driver (another one, compressed completions) and the card's firmware"
        + grown,
    )


def _sending_limits(evidence: RouterEvidence) -> bool:
    dropped = evidence.dropped(Stage.LEAVING)
    enough = dropped > 0 and dropped >= TX_LOSS * evidence.handed_to_send
    return enough and are_lost_ones(evidence, dropped) is not None


def _fullest_line(evidence: RouterEvidence) -> tuple[str, float]:
    """Of those that dropped frames on leaving: another one may be full without any loss."""
    places = {drop.interface for drop in evidence.drops if drop.stage is Stage.LEAVING}
    shares = {name: share for name, share in evidence.line_shares().items() if places & {name, ""}}
    return max(shares.items(), key=lambda item: item[1], default=("", 0.0))


def _sending_figures(evidence: RouterEvidence) -> dict[str, float]:
    handed, dropped = evidence.handed_to_send, evidence.dropped(Stage.LEAVING)
    share = _fullest_line(evidence)[1]
    return {"handed_to_send": float(handed), "dropped_on_leaving": float(dropped), "line_share": share}


def _card(evidence: RouterEvidence) -> Explanation | None:
    """Lost on arrival while every worker has time: the card, or the bus behind it."""
    if not evidence.arrival_decides or not evidence.workers or len(evidence.idle) < len(evidence.workers):
        return None
    busiest = max(busy_share(worker) or 0.0 for worker in evidence.workers)
    figures = {"busiest_worker": busiest, "loss_ratio": evidence.loss_ratio}
    time_left = f"frames are lost on arrival while the busiest worker is {busiest:.0%} busy"
    if evidence.loss_ratio < SMALL_LOSS:
        return _moments(evidence, time_left, figures)
    slot, share = evidence.fullest_bus or (None, 0.0)
    link = ""
    if slot is not None:
        figures |= {"bus_gbps": bus_gbps(slot) or 0.0, "bus_share": share}
        most = f" (the card can x{slot.pcie_width_max})" if slot.pcie_width_max and is_narrow(slot) else ""
        link = f"PCIe x{slot.pcie_width} at {slot.pcie_speed:g} GT/s{most}"
        if share >= BUS_FULL:
            return Explanation(
                "bus",
                f"{time_left}: the frames and their headers alone take {share:.0%} of {link}",
                figures,
                Confidence.LIKELY,
                "put the card into a wider or faster slot",
            )
    one_queue = evidence.tried.flows == 1
    if slot is None or (share >= BUS_MAYBE and not one_queue and is_narrow(slot)):
        bus = f"{link}, of which the frames take {share:.0%}" if slot is not None else "which was not read"
        return Explanation(
            "card or bus",
            f"{time_left}: its card, or the bus behind it ({bus}), takes no more frames",
            figures,
            Confidence.LIKELY if slot is None else Confidence.POSSIBLE,
            "more cores will not help; look at the card's limits, its slot, and another driver",
        )
    where = "the one receive queue that one flow has" if one_queue else "its receive queues or ports"
    return Explanation(
        "card",
        f"{time_left} and the frames take {share:.0%} of {link}: the card itself takes no more frames into {where}",
        figures,
        Confidence.LIKELY,
        "more cores will not help; look for the card's published limit, another driver, or its firmware"
        + ("; more flows use more queues" if one_queue else ""),
    )


def _moments(evidence: RouterEvidence, time_left: str, figures: dict[str, float]) -> Explanation:
    rings = [nic.ring_rx for nic in evidence.nics if nic.interface in evidence.ingress and nic.ring_rx]
    ring = f" of {min(rings)} frames" if rings else ""
    return Explanation(
        "late worker",
        f"{time_left}: for moments it comes too late, and the receive ring{ring} overruns",
        figures | ({"ring_rx": float(min(rings))} if rings else {}),
        Confidence.POSSIBLE,
        "pin the interrupts, keep other work off those processors, forbid deep sleep states, or enlarge the ring",
    )


LIMITS: Sequence[Rule] = (
    _generator,
    _line,
    discipline,
    _tx_slots,
    filters,
    backlog,
    locks,
    workers,
    other_work,
    no_buffers,
    _card,
)
"""What binds; the first that speaks is the one: what is nearer the exit limits, whatever is lost before it."""

CIRCUMSTANCES: Sequence[Callable[[RouterEvidence, Explanation | None], Explanation | None]] = (
    slowed,
    few_buffers,
    firewall,
    irqbalance,
    numa,
)
"""What makes the limit lower than it could be; said beside it."""
