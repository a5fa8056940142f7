"""Why a router lost frames: a table of rules over the ledger, the router's facts and its load. No verdict changes.

docs/methodology/why.md has the table for users. The first rule of LIMITS that fits names the limit, CIRCUMSTANCES add
what lowers it. Rates in frames/s, shares 0 to 1. No rule fits where a figure that it needs was not read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..core.explanation import Confidence, Explanation
from ..core.ledger import Ledger
from ..core.router_facts import RouterFacts
from ..core.under_load import UnderLoad
from .linux_losses import is_limiting
from .why_evidence import BRIDGE, IDLE, KERNEL_IDENT, SMALL_LOSS, Evidence, TriedLoad, names

GENERATOR = "generator"
"""The only rule that names what is not the router's."""

CERTAIN, LIKELY, POSSIBLE = Confidence


def explanations(
    tried: TriedLoad,
    ledger: Ledger | None = None,
    facts: RouterFacts | None = None,
    load: UnderLoad | None = None,
) -> tuple[Explanation, ...]:
    """Return why frames were lost, the best explanation first; () where the figures support none.

    *ledger*: of the worst trial. *facts* and *load* None: not read.
    """
    seen = Evidence(tried, ledger or Ledger(0, 0, ()), facts or RouterFacts(), load or UnderLoad(0.0, 0.0, 0.0))
    limit = next((rule.explanation(seen) for rule in LIMITS if rule.needs(seen)), None)
    if limit is None:
        return ()
    beside = replace(seen, limit=limit)
    return (limit, *(rule.explanation(beside) for rule in CIRCUMSTANCES if rule.needs(beside)))


@dataclass(frozen=True)
class WhyRule:
    """A row of the table: where ``needs`` holds, ``sentence`` says why; ``sure`` may depend on the figures."""

    name: str
    needs: Callable[[Evidence], object]
    sentence: Callable[[Evidence], str]
    sure: Confidence | Callable[[Evidence], Confidence]
    remedy: str

    def explanation(self, seen: Evidence) -> Explanation:
        """Return the explanation by this rule, which fits."""
        return Explanation(self.name, self.sentence(seen), seen.figures(), self.confidence(seen), self.remedy)

    def confidence(self, seen: Evidence) -> Confidence:
        """Return how sure it is."""
        return self.sure if isinstance(self.sure, Confidence) else self.sure(seen)


def _behind_backlog(rule: WhyRule) -> WhyRule:
    """Return *rule* for frames that found a backlog full: it says what the processors did that they waited for."""

    def sentence(seen: Evidence) -> str:
        counters = seen.load.counters if seen.workers else {}
        cpus = sorted(name.partition("full ")[2] for name in counters if name.startswith("softnet backlog full "))
        whose = " and ".join(cpus) if 0 < len(cpus) <= 3 else "a processor"
        full = f"the backlog full in which frames wait for {whose} (softnet, netdev_max_backlog)"
        return f"{seen.of_lost(seen.backlogged())} found {full}; {rule.sentence(seen)}"

    def weaker(seen: Evidence) -> Confidence:
        return max(rule.confidence(seen), seen.are_lost_ones(seen.backlogged()) or LIKELY, key=list(Confidence).index)

    return WhyRule(
        "backlog", lambda seen: seen.are_most(seen.backlogged()) and rule.needs(seen), sentence, weaker, rule.remedy
    )


_CARD = "more cores will not help; look for the card's published limit, its slot, another driver, or its firmware"
_SPREAD = "spread the queues over the processors: their interrupts (smp_affinity), RPS (rps_cpus), or more queues"
_BACKLOG = "enlarge net.core.netdev_max_backlog, or let the interrupts' own processors handle the frames (no RPS)"

WORKERS = (
    WhyRule(
        "all workers",
        lambda seen: seen.no_time and len(seen.busy) == len(seen.workers),
        lambda seen: f"{seen.busy_words()}, and no other forwards: the cores are too slow",
        lambda seen: LIKELY if seen.may_be_stolen() else CERTAIN,
        "more cores and queues, faster cores, or less work per packet",
    ),
    WhyRule(
        "shared worker",
        lambda seen: seen.uneven and seen.shared(),
        lambda seen: f"{seen.uneven}: {seen.shared()} are on one worker",
        lambda seen: seen.sure(seen.tried.flows == 1 and seen.has_spare_core()),
        "place the queues of each interface on workers of their own",
    ),
    WhyRule(
        "one flow",
        lambda seen: seen.uneven and seen.tried.flows == 1,
        lambda seen: f"{seen.uneven}: the one flow in a direction enters by one receive queue, which one worker serves",
        lambda seen: seen.sure(not seen.flows_may_share()),
        "a faster core, or less work per packet; more workers would not help one flow",
    ),
    WhyRule(
        "few queues",
        lambda seen: seen.uneven and seen.few_queues(),
        lambda seen: f"{seen.uneven}: there are fewer receive queues ({seen.queues()}) than workers",
        lambda seen: seen.sure(seen.has_spare_core()),
        "set as many receive queues per interface as there are workers",
    ),
    WhyRule(
        "one processor",
        lambda seen: seen.uneven and seen.busy == tuple(f"CPU {cpus}" for cpus in seen.steering()),
        lambda seen: f"{seen.uneven}: all packets are steered to {names(seen.busy)} (RPS)",
        lambda seen: seen.sure(seen.has_spare_core()),
        _SPREAD,
    ),
    WhyRule(
        "one processor",
        lambda seen: seen.uneven and seen.queues() > 1 and tuple(seen.placed) == seen.busy and not seen.steering(),
        lambda seen: f"{seen.uneven}: all {seen.queues()} receive queues are served by {names(seen.busy)}",
        lambda seen: seen.sure(seen.has_spare_core()),
        _SPREAD,
    ),
    WhyRule(
        "uneven workers",
        lambda seen: seen.uneven,
        lambda seen: f"{seen.uneven}: {seen.tried.flows or 'the'} flows do not spread evenly over them",
        POSSIBLE,
        "compare the queues' placement and what the card hashes with the flows that are sent",
    ),
)
"""Workers without time left: all, or some beside others with time, and why those get no frames."""

OTHER_WORK = WhyRule(
    "other work",
    lambda seen: seen.crowded(),
    lambda seen: f"{seen.crowded()}, and what it could forward without that is not known",
    POSSIBLE,
    "keep programs off the processors that forward",
)

SHORT_BACKLOG = WhyRule(
    "short backlog",
    lambda seen: seen.busiest_handler() < IDLE,
    lambda seen: f"the busiest is {seen.busiest_handler():.0%} busy: it is too short for moments",
    lambda seen: POSSIBLE if seen.may_be_stolen() else LIKELY,
    _BACKLOG,
)
UNCLEAR = WhyRule(
    "unclear",
    lambda seen: True,
    lambda seen: "how busy it was with them is not clear",
    LIKELY,
    f"more processors for RPS or more queues; {_BACKLOG}",
)

LIMITS: Sequence[WhyRule] = (
    WhyRule(
        GENERATOR,
        lambda seen: seen.none_was_lost() and seen.tried.offered_pps < 0.99 * seen.tried.intended_pps,
        lambda seen: f"the generator sent {seen.sent()}, and the router lost none of it",
        CERTAIN,
        "ask for less, or give the generator more cores or a faster card",
    ),
    WhyRule(
        "line",
        lambda seen: seen.limits_sending(seen.left()) and seen.line_is_full(),
        lambda seen: (
            f"the line out of {seen.line()[0]} is full ({seen.line()[1]:.1%}): more arrives for it than it carries"
        ),
        lambda seen: seen.are_lost_ones(seen.left()) or LIKELY,
        "spread the load over more or faster lines; frames that grow on the way (tags, labels) need room too",
    ),
    WhyRule(
        "shaper",
        lambda seen: is_limiting(seen.discipline.meaning) or seen.discipline.meaning.startswith("netem"),
        lambda seen: f"{seen.dropped_by_discipline()}, by its settings",
        lambda seen: seen.are_lost_ones(seen.discipline.frames) or LIKELY,
        "see 'tc -s qdisc show' and 'tc -s class show': raise its rate, or remove it if it is not meant",
    ),
    WhyRule(
        "short queue",
        lambda seen: seen.discipline.meaning,
        lambda seen: f"{seen.dropped_by_discipline()}: frames come faster than they are taken, for moments or always",
        LIKELY,
        "see 'tc -s qdisc show': a longer queue for bursts, a faster line or less load otherwise",
    ),
    WhyRule(
        "tx slots",
        lambda seen: seen.has_full_slots() and seen.leave_by_card() is False,
        lambda seen: f"{seen.no_slot()}: what is at the other end of {names(seen.leaving_at())} takes them too slowly",
        LIKELY,
        "look at the namespace, bridge or program that takes the frames there",
    ),
    WhyRule(
        "tx slots",
        lambda seen: seen.has_full_slots(),
        lambda seen: f"{seen.no_slot()}, with the line {seen.line()[1]:.1%} full: the card sends too slowly",
        LIKELY,
        "look at the sending ring's size, the driver (another one, compressed completions) and the card's firmware",
    ),
    WhyRule(
        "filter",
        lambda seen: seen.are_most(seen.filtered().frames),
        lambda seen: f"{seen.of_lost(seen.filtered().frames)} were dropped {seen.filter_words()}",
        lambda seen: seen.are_lost_ones(seen.filtered().frames) or LIKELY,
        "see 'tc -s filter show dev … ingress' (or egress): remove the rule, or raise a policer's rate",
    ),
    WhyRule(
        "filter",
        lambda seen: seen.has_firewall() and seen.are_most(seen.vanished(), counted=False),
        lambda seen: (
            f"the router received {seen.of_lost(seen.vanished())} and sent none; its firewall is {seen.facts.firewall}"
        ),
        LIKELY,
        "see the counters of its rules ('nft list ruleset', 'iptables -nvxL', 'pfctl -vsr'), and blackhole routes",
    ),
    *map(_behind_backlog, (*WORKERS, SHORT_BACKLOG, OTHER_WORK, UNCLEAR)),
    WhyRule(
        "locks",
        lambda seen: seen.locks(),
        lambda seen: f"{seen.busy_words()} and wait for each other at {seen.locks()}, taken for each frame",
        lambda seen: LIKELY if {KERNEL_IDENT, BRIDGE} & set(seen.facts.other) else POSSIBLE,
        "take FreeBSD 12 or later, 13 for a bridge, or route instead; more cores or queues would not help",
    ),
    *WORKERS,
    OTHER_WORK,
    WhyRule(
        "no buffers",
        lambda seen: seen.lacks_buffers(),
        lambda seen: f"{seen.lacks_buffers()}: the card cannot put frames anywhere until some are sent",
        LIKELY,
        "raise 'buffers-per-numa' in startup.conf: they fill all receive and sending rings; or shorten the rings",
    ),
    WhyRule(
        "late worker",
        lambda seen: seen.has_time() and seen.loss_ratio() < SMALL_LOSS,
        lambda seen: f"{seen.time_left()}: for moments it comes too late, and its receive ring overruns",
        POSSIBLE,
        "pin the interrupts, keep other work off those processors, forbid deep sleep states, or enlarge the ring",
    ),
    WhyRule(
        "bus",
        lambda seen: seen.has_time() and seen.bus and seen.bus.share >= 0.75,
        lambda seen: f"{seen.time_left()}: {seen.bus}",
        LIKELY,
        "put the card into a wider or faster slot",
    ),
    WhyRule(
        "card or bus",
        lambda seen: seen.has_time() and (seen.bus is None or seen.bus.may_limit),
        lambda seen: f"{seen.time_left()}: its card or bus takes no more: {seen.bus or 'the bus was not read'}",
        lambda seen: POSSIBLE if seen.bus else LIKELY,
        _CARD,
    ),
    WhyRule(
        "card",
        lambda seen: seen.has_time(),
        lambda seen: f"{seen.time_left()}, and {seen.bus}: the receive queues or ports of the card take no more",
        LIKELY,
        _CARD,
    ),
)
"""The rules that name the limit: what is nearer the exit comes first, whatever is lost before it."""

CIRCUMSTANCES: Sequence[WhyRule] = (
    WhyRule(
        "throttling",
        lambda seen: seen.limits_time() and seen.no_time and seen.throttled()[1] > 0,
        lambda seen: f"a processor slows itself down: {seen.throttled()[0]} rose by {seen.throttled()[1]:.3g} /s",
        lambda seen: LIKELY if seen.are_cpus() else POSSIBLE,
        "look at cooling and power limits",
    ),
    WhyRule(
        "steal",
        lambda seen: seen.limits_time() and seen.stolen,
        lambda seen: seen.withheld(),
        POSSIBLE,
        "do not share the host's cores: give each of the router's processors one that nothing else uses",
    ),
    WhyRule(
        "firewall",
        lambda seen: seen.limits_time() and seen.no_time and seen.has_firewall(),
        lambda seen: f"a firewall looks at each packet ({seen.facts.firewall})",
        POSSIBLE,
        "try the sentence without it: the difference is its cost",
    ),
    WhyRule(
        "irqbalance",
        lambda seen: seen.facts.irqbalance and len(seen.workers) > 1 and seen.queues() and seen.is_spread_badly(),
        lambda seen: "irqbalance is on and moves the queues' interrupts between processors",
        POSSIBLE,
        "stop it and pin each queue to a processor of its own",
    ),
)
"""The rules that say what makes the limit lower than it could be; said beside it."""
