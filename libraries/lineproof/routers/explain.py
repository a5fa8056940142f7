"""Why a router lost frames: rules over its facts, its load and the ledger. docs/methodology/why.md has them as a table.

A rule speaks only where its figures are there and fit; a rule that found one limit keeps those below it silent. None
changes a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.causes import Stage
from ..core.explanation import Confidence, Explanation
from ..core.ledger import Ledger
from ..core.router_facts import RouterFacts
from ..core.under_load import UnderLoad
from ..units import si
from .explain_card import card
from .explain_circumstances import few_buffers, firewall, irqbalance, numa, slowed, some_steal
from .explain_evidence import RouterEvidence, TriedLoad
from .explain_system import TX_LOSS, are_lost_ones, backlog, discipline, filters, no_buffers, other_work, steal
from .explain_workers import locks, workers

GENERATOR = "generator"
"""The only rule that names what is not the router's."""

UNSENT = 0.01
"""The generator is named when it sent less than was asked of it by more than this share."""

LINE_FULL = 0.97
"""A line is full from this share on: clocks of two cards differ, and a trial has edges."""

LINE_EXCEEDED = 1.0002
"""Shares of a line's rate above this are certainly more than it carries: both ends' clocks may be off by 100 ppm."""

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
    """Return what is lost on leaving was taken in and handled: the sending side limits, whatever was lost before."""
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


LIMITS: Sequence[Rule] = (
    _generator,
    _line,
    discipline,
    _tx_slots,
    filters,
    backlog,
    locks,
    workers,
    steal,
    other_work,
    no_buffers,
    card,
)
"""What binds; the first that speaks is the one: what is nearer the exit limits, whatever is lost before it."""

CIRCUMSTANCES: Sequence[Callable[[RouterEvidence, Explanation | None], Explanation | None]] = (
    slowed,
    some_steal,
    few_buffers,
    firewall,
    irqbalance,
    numa,
)
"""What makes the limit lower than it could be; said beside it."""
