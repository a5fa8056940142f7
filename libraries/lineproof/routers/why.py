"""Why a router lost frames, or was late: rules over the ledger, the router's facts and its load. No verdict changes.

docs/methodology/why.md has the table for users; the first rule that fits names the limit. Rates in frames/s, shares 0
to 1. What was not read is missing (None, empty or 0), and no rule fits that needs it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from ..core.ledger import Drop, Ledger
from ..core.router_facts import NicFacts, RouterFacts
from ..core.telemetry import Stage
from ..core.under_load import SMALL_LOSS, Confidence, Explanation, TriedLoad, UnderLoad, Workers
from ..units import FCS, l1_bits, si
from .linux import BACKLOG_FULL, FILTER_DROPS, QDISC_DROPS, discipline_of, is_limiting
from .vpp import FAILED_ALLOCATIONS, FREE_BUFFERS

GENERATOR = "generator"
"""The only rule that names what is not the router's."""

LATE = "late frames"
"""The only rule of frames that came late and were not lost."""

KERNEL_IDENT, BRIDGE = "kernel ident", "bridge"
"""Keys of :attr:`RouterFacts.other`: FreeBSD's ``kern.ident``, and its bridges that have an interface under test."""

CERTAIN, LIKELY, POSSIBLE = Confidence


def explanation(
    tried: TriedLoad,
    ledger: Ledger | None = None,
    facts: RouterFacts | None = None,
    load: UnderLoad | None = None,
) -> Explanation | None:
    """Return why frames were lost, or late; None where the figures support no reason.

    *ledger*: of the worst trial. *facts* and *load* None: not read.
    """
    ledger = ledger or Ledger(0, 0, ())
    ledger = ledger.without_counts() if ledger.contradiction else ledger
    seen = Evidence(tried, ledger, facts or RouterFacts(), load or UnderLoad())
    for rule in RULES:
        if rule.needs(seen):
            sure = rule.sure if isinstance(rule.sure, Confidence) else rule.sure(seen)
            return Explanation(rule.name, rule.sentence(seen), sure, rule.remedy, rule.grounds)
    return None


@dataclass(frozen=True)
class WhyRule:
    """A row of the table: if ``needs`` holds, ``sentence`` says why; ``sure`` may depend on figures."""

    name: str
    needs: Callable[[Evidence], object]
    sure: Confidence | Callable[[Evidence], Confidence]
    sentence: Callable[[Evidence], str]
    remedy: str
    grounds: str = "the counts"


LoadRule = partial(WhyRule, grounds="the counts and the workers' load")
"""A row that needs the load of the router's workers as well."""


RULES: Sequence[WhyRule] = (
    WhyRule(
        GENERATOR,
        lambda seen: seen.lost_nothing and seen.tried.offered_pps < 0.99 * seen.tried.intended_pps,
        CERTAIN,
        lambda seen: (
            f"the generator sent {si(seen.tried.offered_pps, 'pps')} of {si(seen.tried.intended_pps, 'pps')}, and the"
            " router lost none of it"
        ),
        "ask for less, or give the generator more cores or a faster card",
    ),
    WhyRule(
        "line",
        # all but a trial's edges, of more than it carries by more than two clocks differ
        lambda seen: seen.limits_sending(seen.left) and seen.line[1] >= 0.97 and seen.line[2] > 1.0002,
        lambda seen: seen.ledger.are_lost_ones(seen.left) or LIKELY,
        lambda seen: (
            f"the line out of {seen.line[0]} is full ({seen.line[1]:.1%}): more arrives for it than it carries"
        ),
        "spread the load over more or faster lines",
    ),
    WhyRule(
        "shaper",
        lambda seen: is_limiting(seen.discipline.meaning) or seen.discipline.meaning.startswith("netem"),
        lambda seen: seen.ledger.are_lost_ones(seen.discipline.frames) or LIKELY,
        lambda seen: f"{seen.dropped_by_discipline()}, by its settings",
        "see 'tc -s qdisc show' and 'tc -s class show': raise its rate, or remove it if it is not meant",
    ),
    WhyRule(
        "short queue",
        lambda seen: seen.discipline.meaning,
        LIKELY,
        lambda seen: f"{seen.dropped_by_discipline()}: frames come faster than they are taken, for moments or always",
        "see 'tc -s qdisc show': a longer queue for bursts, a faster line or less load otherwise",
    ),
    WhyRule(
        "tx slots",
        lambda seen: seen.limits_sending(seen.left) and seen.backlogged() <= seen.left / 2,
        LIKELY,
        lambda seen: (
            f"of {seen.handed:,} frames handed to the sending interfaces {seen.left:,} found no free slot, with the"
            f" line {seen.line[1]:.1%} full: what takes them there is too slow"
        ),
        "look at the sending ring's size, the driver (another one, compressed completions) and the card's firmware, or"
        " at the program behind an interface without a card",
    ),
    WhyRule(
        "filter",
        lambda seen: seen.ledger.are_most(seen.filtered.frames),
        lambda seen: seen.ledger.are_lost_ones(seen.filtered.frames) or LIKELY,
        lambda seen: (
            f"{seen.of_lost(seen.filtered.frames)} were dropped {seen.filtered.meaning} at"
            f" {seen.filtered.label.rpartition(' at ')[2]}: rules, or a policer's rate"
        ),
        "see 'tc -s filter show dev … ingress' (or egress): remove the rule, or raise a policer's rate",
    ),
    WhyRule(
        "filter",
        lambda seen: seen.firewall and seen.ledger.are_most(seen.vanished, counted=False),
        LIKELY,
        lambda seen: (
            f"the router received {seen.of_lost(seen.vanished)} and sent none; its firewall is {seen.firewall}"
        ),
        "see the counters of its rules ('nft list ruleset', 'iptables -nvxL', 'pfctl -vsr'), and blackhole routes",
    ),
    WhyRule(
        "backlog",
        lambda seen: seen.ledger.are_most(seen.backlogged()),
        LIKELY,
        lambda seen: f"{seen.of_lost(seen.backlogged())} found {seen.full_backlog()}",
        "more processors for RPS or more queues; enlarge net.core.netdev_max_backlog, or let the interrupts' own"
        " processors handle the frames (no RPS)",
    ),
    LoadRule(
        "locks",
        lambda seen: seen.lock(),
        lambda seen: LIKELY if {KERNEL_IDENT, BRIDGE} & set(seen.facts.other) else POSSIBLE,
        lambda seen: f"{seen.workers.busy_words()} and wait for each other at {seen.lock()}, taken for each frame",
        "take FreeBSD 12 or later, 13 for a bridge, or route instead; more cores or queues would not help",
    ),
    LoadRule(
        "all workers",
        lambda seen: seen.no_time() and len(seen.workers.busy) == len(seen.workers.shares),
        lambda seen: LIKELY if seen.workers.may_be_stolen() else CERTAIN,
        lambda seen: (
            f"{seen.workers.busy_words()}, and no other forwards: the cores are too slow"
            + (f"; a firewall looks at each packet ({seen.firewall})" if seen.firewall else "")
        ),
        "more cores and queues, faster cores, or less work per packet",
    ),
    LoadRule(
        "one flow",
        lambda seen: seen.uneven and seen.tried.flows == 1 and not seen.workers.shared(),
        lambda seen: LIKELY if len(seen.workers.ingress) > 1 or seen.workers.may_be_stolen() else CERTAIN,
        lambda seen: f"{seen.uneven}: the one flow in a direction enters by one receive queue, which one worker serves",
        "a faster core, or less work per packet; more workers would not help one flow",
    ),
    LoadRule(
        "uneven workers",
        lambda seen: seen.uneven,
        lambda seen: LIKELY if seen.workers.spread() else POSSIBLE,
        lambda seen: f"{seen.uneven}: {seen.workers.spread() or 'the flows do not spread evenly over them'}",
        "as many receive queues per interface as workers, spread over them by interrupts (smp_affinity) or RPS"
        " (rps_cpus); compare what the card hashes with the flows that are sent",
    ),
    LoadRule(
        "other work",
        lambda seen: seen.arrived() and seen.workers.crowded(),
        POSSIBLE,
        lambda seen: f"{seen.workers.crowded()}, and what it could forward without that is not known",
        "keep programs off the processors that forward, and share none with other virtual machines",
    ),
    WhyRule(
        "no buffers",
        lambda seen: seen.lacks_buffers(),
        LIKELY,
        lambda seen: f"{seen.lacks_buffers()}: the card cannot put frames anywhere until some are sent",
        "raise 'buffers-per-numa' in startup.conf: they fill all receive and sending rings; or shorten the rings",
    ),
    LoadRule(
        "late worker",
        lambda seen: seen.time_left and seen.tried.loss_ratio < SMALL_LOSS,
        POSSIBLE,
        lambda seen: f"{seen.time_left}: for moments it comes too late, and its receive ring overruns",
        "pin the interrupts, keep other work off those processors, forbid deep sleep states, or enlarge the ring",
    ),
    LoadRule(
        "bus",
        lambda seen: seen.time_left and seen.bus[0] >= 0.75,
        LIKELY,
        lambda seen: f"{seen.time_left}: {seen.bus[1]}",
        "put the card into a wider or faster slot",
    ),
    LoadRule(
        "card or bus",
        lambda seen: seen.time_left,
        LIKELY,
        lambda seen: f"{seen.time_left}: its card or bus takes no more: {seen.bus[1]}",
        "more cores will not help; look for the card's published limit, its slot, another driver, or its firmware",
    ),
    LoadRule(
        LATE,
        lambda seen: seen.lost_nothing and (seen.workers.busy or seen.workers.crowded()),
        lambda seen: LIKELY if seen.workers.busy and not seen.workers.may_be_stolen() else POSSIBLE,
        lambda seen: (
            f"{seen.workers.busy_words() if seen.workers.busy else seen.workers.crowded()}: frames wait, none is lost"
        ),
        "less load or faster cores, more workers for more than one flow; keep other work off those that forward",
    ),
)
"""The rules in order: what is nearer the exit comes first, whatever is lost before it."""


class Evidence:
    """All that is known of one failed sentence, as the rules look at it.

    ``lost``: frames that did not come back, of which more in one direction make up for none of another. ``left``: those
    dropped on leaving, of all that were ``handed`` to the sending interfaces. ``vanished``: received, not sent, and
    counted nowhere. ``filtered``: dropped by filters of ``tc``. ``losing``: the router's interfaces by which a tenth of
    the loss or more entered. ``firewall``: the one that is on, "" if none is known; ``freebsd``: its major release,
    None of another system. ``load``: empty where it was read at another one.
    """

    def __init__(self, tried: TriedLoad, ledger: Ledger, facts: RouterFacts, load: UnderLoad) -> None:
        self.tried: TriedLoad = tried
        self.ledger: Ledger = ledger
        self.facts: RouterFacts = facts
        self.load: UnderLoad = load if tried.is_again(load) else UnderLoad()
        rows = ledger.directions
        self.lost: int = ledger.lost
        # without a ledger the trial itself says whether all frames came back
        self.lost_nothing: bool = not self.lost if rows else tried.offered_pps <= tried.forwarded_pps
        # of another interface than that of a direction they may be any frames
        left = [*(drop for row in rows for drop in row.drops), *(drop for drop in ledger.shared if not drop.interface)]
        self.left: int = sum(drop.frames for drop in left if drop.stage is Stage.LEAVING)
        self.handed: int = self.left + sum(row.forwarded for row in rows)
        self.vanished: int = ledger.whole.gaps[1] or 0
        self.filtered: Drop = ledger.largest(FILTER_DROPS)
        self.losing: set[str] = {row.ingress for row in rows if row.lost > 0 and row.lost >= 0.1 * self.lost}
        self.firewall: str = facts.firewall if facts.firewall and re.match(r"on\b", facts.firewall) else ""
        release = re.search(r"FreeBSD (\d+)\.\d+", f"{facts.os} {facts.kernel}")
        self.freebsd: int | None = int(release[1]) if release else None
        ingress = [row.ingress for row in rows if row.offered]
        self.workers: Workers = Workers(facts, self.load, ingress, tried.flows, self.freebsd is not None)

    # -- where the frames were lost

    def of_lost(self, frames: int) -> str:
        """Say how many of the lost frames; a system may drop its own as well."""
        of = f"{frames:,} of {self.lost:,} lost frames"
        return f"{frames:,} frames (lost were {self.lost:,})" if frames > self.lost else of

    def limits_sending(self, frames: int) -> bool:
        """Return whether *frames* dropped on leaving are enough to limit, and are lost ones."""
        return 0 < frames >= 0.01 * self.handed and self.ledger.are_lost_ones(frames) is not None

    @cached_property
    def line(self) -> tuple[str, float, float]:
        """Return the fullest line that dropped frames, and the shares of its rate that it carries and gets.

        It gets those too that were certainly dropped when they were to be sent. Another line may be full without loss.
        """
        directions, tried, carried, got = self.ledger.directions, self.tried, Counter[str](), Counter[str]()
        dropping = {drop.interface for drop in self.ledger.drops if drop.stage is Stage.LEAVING}
        for row in directions:
            if dropping & {row.egress, ""}:
                carried[row.egress] += row.forwarded
                dropped = sum(drop.frames for drop in row.drops_at(Stage.LEAVING))
                got[row.egress] += row.forwarded + max(0, min(row.lost, dropped))
        # bits that a line carries while the offered frames are sent; a port without a link has a rate of 0
        seconds = sum(row.offered for row in directions) / tried.offered_pps if tried.offered_pps else 0.0
        share = l1_bits(tried.frame_bytes) / bits if (bits := tried.link_bps * seconds) > 0 else 0.0
        lines = [(name, share * frames, share * got[name]) for name, frames in carried.items()]
        return max(lines, key=lambda line: line[1], default=("", 0.0, 0.0))

    @cached_property
    def discipline(self) -> Drop:
        """Return the frames lost at the discipline that ``meaning`` names; "": few, or the system's own one."""
        drop = self.ledger.largest(QDISC_DROPS)
        enough = self.ledger.are_most(drop.frames) or self.limits_sending(drop.frames)
        kind = discipline_of(drop.meaning) if enough and drop.frames > self.left / 2 else ""
        return replace(drop, meaning=kind)

    def dropped_by_discipline(self) -> str:
        """Say which queueing discipline dropped how many."""
        where = f"the queueing discipline of {self.discipline.interface}, {self.discipline.meaning}"
        return f"{self.of_lost(self.discipline.frames)} were dropped by {where}"

    def backlogged(self) -> int:
        """Return how many frames found a processor's backlog full: as Linux counts them, and an interface too."""
        full = sum(reason.frames for reason in self.ledger.reasons if reason.name == BACKLOG_FULL)
        # what is sent to a veth waits for a processor at its other end
        veths = {nic.interface for nic in self.facts.nics if nic.driver == "veth"}
        places = {"rx_dropped"}, {"rx_dropped", "tx_dropped"}
        return min(full, sum(drop.frames for drop in self.ledger.drops if drop.name in places[drop.interface in veths]))

    def full_backlog(self) -> str:
        """Say which processors' backlog was full, and how busy these were."""
        counters = self.load.counters if self.workers.shares else {}
        cpus = sorted(name.partition("full ")[2] for name in counters if name.startswith(f"{BACKLOG_FULL} "))
        whose = " and ".join(cpus) if 0 < len(cpus) <= 3 else "a processor"
        busy = f"; {self.workers.busy_words()}" if self.workers.busy else ""
        return f"the backlog full in which frames wait for {whose} (softnet, netdev_max_backlog){busy}"

    def arrived(self, uncounted_too: bool = False) -> bool:
        """Return whether most of the lost frames were lost, undamaged, before the router worked on them."""
        # counters of Linux and VPP for damaged frames, which no faster card takes
        drops = (drop for drop in self.ledger.drops if drop.name not in ("rx_errors", "rx-error"))
        dropped = sum(drop.frames for drop in drops if drop.stage is Stage.ARRIVING)
        # drivers that do not count what their card lost
        blind = any(re.search(r"rdma|af.?packet", nic.driver or "", re.IGNORECASE) for nic in self.facts.nics)
        uncounted = max(0, self.ledger.whole.gaps[0] or 0) if blind or uncounted_too else 0
        return 0 < self.lost / 2 < dropped + uncounted + self.backlogged()

    # -- who was busy

    def no_time(self) -> bool:
        """Return whether the workers that serve the losing interfaces have no time left."""
        workers = self.workers
        served = {place.interface for name in workers.busy for place in workers.placed.get(name, ())}
        serve = not workers.placed or workers.steering or not self.losing.isdisjoint(served)
        return bool(workers.busy and self.arrived() and serve)

    @cached_property
    def uneven(self) -> str:
        """Say how unevenly workers are busy; "" if none is full, or no other one has time."""
        shares, idle = self.workers.shares, self.workers.idle
        if not (self.no_time() and idle):
            return ""
        most = max(shares[name] for name in idle)
        rest = "idle" if most < 0.005 else f"at most {most:.0%} busy"
        return f"{self.workers.busy_words()}, {len(idle)} of {len(shares)} workers {rest}"

    @cached_property
    def time_left(self) -> str:
        """Say how busy workers are while frames are lost on arrival; "" if one may have no time left."""
        shares = self.workers.shares
        if not (self.arrived() and 0 < len(shares) == len(self.workers.idle)):
            return ""
        return f"frames are lost on arrival while the busiest worker is {max(shares.values()):.0%} busy"

    def lock(self) -> str:
        """Name the lock that cores may wait for, as busy as those that work; "": none is known."""
        other, cores = self.facts.other, len(self.workers.busy) if self.arrived() else 0
        if self.freebsd is None or self.freebsd >= 13:
            return ""
        if BRIDGE in other and cores > 1:
            return "the bridge's lock"
        # a kernel with patches has a configuration of its own
        is_plain = self.freebsd < 12 and other.get(KERNEL_IDENT, "GENERIC") == "GENERIC"
        return "the locks of routing and neighbour tables" if is_plain and cores >= 6 else ""

    # -- buses and buffers

    @cached_property
    def bus(self) -> tuple[float, str]:
        """Return the fullest bus by which lost frames enter: its share, and in words; 0: one was not read."""
        buses = [self._bus_of(nic) for nic in self.facts.nics if nic.interface in self.losing]
        known = [bus for bus in buses if bus is not None]
        return max(known) if 0 < len(known) == len(self.losing) else (0.0, "the bus was not read")

    def _bus_of(self, nic: NicFacts) -> tuple[float, str] | None:
        """Return the least share of the PCIe link of one card that frames take, in words too; None: not read."""
        directions, width, bps = self.ledger.directions, nic.pcie_width, nic.pcie_bps
        # ports of a card differ in the function only, behind the last dot
        card_of = {card.interface: (card.pci_address or "").rpartition(".")[0] for card in self.facts.nics}
        forwarded, card = sum(row.forwarded for row in directions), card_of[nic.interface]
        if not width or not bps or not card or not forwarded:
            return None
        # each direction of the bus by itself: what the card takes in goes up, what it sends comes down
        up = sum(row.forwarded for row in directions if card_of.get(row.ingress) == card)
        down = sum(row.forwarded for row in directions if card_of.get(row.egress) == card)
        data = self.tried.frame_bytes - FCS
        # a packet's largest payload is usually 256 bytes, behind 24 of header and framing; descriptors have at least 32
        size = data + 24 * math.ceil(data / 256) + 32
        share = self.tried.forwarded_pps * max(up, down) / forwarded * 8 * size / bps
        can = f" (the card can x{nic.pcie_width_max})" if (nic.pcie_width_max or 0) > width else ""
        return share, f"the frames with their headers take {share:.0%} of PCIe x{width} at {nic.pcie_speed:g} GT/s{can}"

    def lacks_buffers(self) -> str:
        """Say how VPP lacked buffers for most of the lost frames; "" where it did not."""
        failed = sum(row.frames for row in self.ledger.reasons if row.meaning.startswith(FAILED_ALLOCATIONS))
        # but those in threads' caches
        pools = [(name, free) for name, free in self.load.condition.items() if name.startswith(FREE_BUFFERS)]
        empty = [name for name, free in pools if free.startswith("0 of ")]
        # a read of a queue takes up to 256 frames
        if not self.arrived(uncounted_too=True) or (failed * 256 < self.lost and not empty):
            return ""
        tried = f"VPP found no free buffer {failed:,} times when it read a receive queue"
        return f"{tried}; there were no {' and no '.join(empty)}" if empty else tried
