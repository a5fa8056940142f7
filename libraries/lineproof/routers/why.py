"""Why a router lost frames: a table of rules over the ledger, the router's facts and its load. No verdict changes.

docs/methodology/why.md has the table for users; the first rule that fits names the limit. Rates in frames/s, shares 0
to 1. What was not read is missing (None, empty or 0), and no rule fits that needs it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from ..core.causes import Stage
from ..core.explanation import Confidence, Explanation
from ..core.ledger import Drop, Ledger
from ..core.router_facts import NicFacts, Placement, RouterFacts
from ..core.under_load import CpuLoad, UnderLoad, WorkerLoad
from ..units import FCS, l1_bits, si
from .linux.losses import BACKLOG_FULL, FILTER_DROPS, QDISC_DROPS, discipline_of, is_limiting, is_of_the_system
from .vpp.output import FAILED_ALLOCATIONS, FREE_BUFFERS

GENERATOR = "generator"
"""The only rule that names what is not the router's."""

KERNEL_IDENT, BRIDGE = "kernel ident", "bridge"
"""Keys of :attr:`RouterFacts.other`: FreeBSD's ``kern.ident``, and its bridges that have an interface under test."""

BUSY, IDLE = 0.95, 0.85
"""Shares of a worker's time: from BUSY on it is a limit, below IDLE it is none; between them no rule says either."""

SMALL_LOSS = 0.01
"""Share of the offered frames. A smaller loss comes of moments, and may not come again."""

CERTAIN, LIKELY, POSSIBLE = Confidence


def explanation(
    tried: TriedLoad,
    ledger: Ledger | None = None,
    facts: RouterFacts | None = None,
    load: UnderLoad | None = None,
) -> Explanation | None:
    """Return why frames were lost; None where the figures support no reason.

    *ledger*: of the worst trial. *facts* and *load* None: not read.
    """
    seen = Evidence(tried, ledger or Ledger(0, 0, ()), facts or RouterFacts(), load or UnderLoad())
    for rule in RULES:
        if rule.needs(seen):
            sure = rule.sure if isinstance(rule.sure, Confidence) else rule.sure(seen)
            return Explanation(rule.name, rule.sentence(seen), sure, rule.remedy, rule.grounds)
    return None


@dataclass(frozen=True, slots=True)
class TriedLoad:
    """The load of a sentence's worst trial: rates of all directions together.

    ``frame_bytes``: mean, with FCS. ``flows`` of each direction; None: not known. ``link_bps`` of a port.
    ``intended_pps``: what was asked of the generator, ``offered_pps``: what it sent.
    """

    frame_bytes: float
    flows: int | None
    link_bps: float
    intended_pps: float
    offered_pps: float
    forwarded_pps: float


@dataclass(frozen=True)
class WhyRule:
    """A row of the table: where ``needs`` holds, ``sentence`` says why; ``sure`` may depend on the figures."""

    name: str
    needs: Callable[[Evidence], object]
    sure: Confidence | Callable[[Evidence], Confidence]
    sentence: Callable[[Evidence], str]
    remedy: str
    grounds: ClassVar = "the counts"


class LoadRule(WhyRule):
    """A row that needs the load of the router's workers as well."""

    grounds = "the counts and the workers' load"


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
        lambda seen: seen.are_lost_ones(seen.left) or LIKELY,
        lambda seen: (
            f"the line out of {seen.line[0]} is full ({seen.line[1]:.1%}): more arrives for it than it carries"
        ),
        "spread the load over more or faster lines",
    ),
    WhyRule(
        "shaper",
        lambda seen: is_limiting(seen.discipline.meaning) or seen.discipline.meaning.startswith("netem"),
        lambda seen: seen.are_lost_ones(seen.discipline.frames) or LIKELY,
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
        lambda seen: seen.are_most(seen.filtered.frames),
        lambda seen: seen.are_lost_ones(seen.filtered.frames) or LIKELY,
        lambda seen: (
            f"{seen.of_lost(seen.filtered.frames)} were dropped {seen.filtered.meaning} at"
            f" {seen.filtered.label.rpartition(' at ')[2]}: rules, or a policer's rate"
        ),
        "see 'tc -s filter show dev … ingress' (or egress): remove the rule, or raise a policer's rate",
    ),
    WhyRule(
        "filter",
        lambda seen: seen.firewall and seen.are_most(seen.vanished, counted=False),
        LIKELY,
        lambda seen: (
            f"the router received {seen.of_lost(seen.vanished)} and sent none; its firewall is {seen.firewall}"
        ),
        "see the counters of its rules ('nft list ruleset', 'iptables -nvxL', 'pfctl -vsr'), and blackhole routes",
    ),
    WhyRule(
        "backlog",
        lambda seen: seen.are_most(seen.backlogged()),
        LIKELY,
        lambda seen: f"{seen.of_lost(seen.backlogged())} found {seen.full_backlog()}",
        "more processors for RPS or more queues; enlarge net.core.netdev_max_backlog, or let the interrupts' own"
        " processors handle the frames (no RPS)",
    ),
    LoadRule(
        "locks",
        lambda seen: seen.lock(),
        lambda seen: LIKELY if {KERNEL_IDENT, BRIDGE} & set(seen.facts.other) else POSSIBLE,
        lambda seen: f"{seen.busy_words()} and wait for each other at {seen.lock()}, taken for each frame",
        "take FreeBSD 12 or later, 13 for a bridge, or route instead; more cores or queues would not help",
    ),
    LoadRule(
        "all workers",
        lambda seen: seen.no_time() and len(seen.busy) == len(seen.workers),
        lambda seen: LIKELY if seen.may_be_stolen() else CERTAIN,
        lambda seen: (
            f"{seen.busy_words()}, and no other forwards: the cores are too slow"
            + (f"; a firewall looks at each packet ({seen.firewall})" if seen.firewall else "")
        ),
        "more cores and queues, faster cores, or less work per packet",
    ),
    LoadRule(
        "one flow",
        lambda seen: seen.uneven and seen.tried.flows == 1 and not seen.shared(),
        lambda seen: LIKELY if len(seen.ingress) > 1 or seen.may_be_stolen() else CERTAIN,
        lambda seen: f"{seen.uneven}: the one flow in a direction enters by one receive queue, which one worker serves",
        "a faster core, or less work per packet; more workers would not help one flow",
    ),
    LoadRule(
        "uneven workers",
        lambda seen: seen.uneven,
        lambda seen: LIKELY if seen.spread() else POSSIBLE,
        lambda seen: f"{seen.uneven}: {seen.spread() or 'the flows do not spread evenly over them'}",
        "as many receive queues per interface as workers, spread over them by interrupts (smp_affinity) or RPS"
        " (rps_cpus); compare what the card hashes with the flows that are sent",
    ),
    LoadRule(
        "other work",
        lambda seen: seen.crowded(),
        POSSIBLE,
        lambda seen: f"{seen.crowded()}, and what it could forward without that is not known",
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
        lambda seen: seen.time_left and seen.loss_ratio < SMALL_LOSS,
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
)
"""The rules in order: what is nearer the exit comes first, whatever is lost before it."""


class Evidence:
    """All that is known of one failed sentence, as the rules look at it.

    ``lost``: frames that did not come back, of which more in one direction make up for none of another; ``loss_ratio``:
    the share of the offered ones. ``left``: those dropped on leaving, after they were taken in, of all that were
    ``handed`` to the sending interfaces. ``vanished``: received, not sent, and counted nowhere. ``filtered``: dropped
    by filters of ``tc``. ``ingress``: the router's interfaces that frames enter by; ``losing``: of these, where a tenth
    of the loss or more entered. ``firewall``: the one that is on, "" if none is known; ``freebsd``: its major release,
    None of another system. ``steering``: processors that software steers packets to, as ``CPU 1`` or ``CPU 0,1``.
    ``serving``: who serves the receive queues; ``placed``: those of ``ingress``, by worker. ``cpus``: by name.
    ``forwarding``: the workers that forward; ``workers``: the share of each that is busy; ``idle``: those with time
    left; ``busy``: those that packets leave none.
    """

    def __init__(self, tried: TriedLoad, ledger: Ledger, facts: RouterFacts, load: UnderLoad) -> None:
        self.tried: TriedLoad = tried
        self.ledger: Ledger = ledger
        self.facts: RouterFacts = facts
        self.load: UnderLoad = load
        rows = ledger.directions
        self.lost: int = sum(max(0, row.lost) for row in rows)
        # without a ledger the trial itself says whether all frames came back
        self.lost_nothing: bool = not self.lost if rows else tried.offered_pps <= tried.forwarded_pps
        self.loss_ratio: float = 1 - tried.forwarded_pps / tried.offered_pps if tried.offered_pps else 0.0
        self.left: int = sum(drop.frames for drop in ledger.drops if drop.stage is Stage.LEAVING)
        self.handed: int = self.left + sum(row.forwarded for row in rows)
        self.vanished: int = ledger.gaps[1] or 0
        self.filtered: Drop = self._most(FILTER_DROPS)
        self.ingress: tuple[str, ...] = tuple(row.ingress for row in rows if row.offered)
        self.losing: frozenset[str] = frozenset(
            row.ingress for row in rows if row.lost > 0 and row.lost >= 0.1 * self.lost
        )
        self.firewall: str = facts.firewall if facts.firewall and re.match(r"on\b", facts.firewall) else ""
        release = re.search(r"FreeBSD (\d+)\.\d+", f"{facts.os} {facts.kernel}")
        self.freebsd: int | None = int(release[1]) if release else None
        steered = [nic.steered_to.values() for nic in facts.nics if nic.interface in self.ingress]
        self.steering: frozenset[str] = frozenset(f"CPU {cpus}" for own in steered for cpus in own)
        reported = [Placement(row.interface, row.queue, row.worker_or_cpu) for row in load.queues if row.worker_or_cpu]
        self.serving: Sequence[Placement] = facts.placement or reported
        self.placed: dict[str, list[Placement]] = {}
        for place in self.serving:
            if place.interface in self.ingress:
                self.placed.setdefault(place.worker, []).append(place)
        self.cpus: Mapping[str, CpuLoad] = {f"CPU {cpu.cpu}": cpu for cpu in load.cpus}
        self.forwarding: tuple[WorkerLoad, ...] = self._forwarding()
        self.workers: Mapping[str, float] = {row.thread: row.busy or 0.0 for row in self.forwarding}
        self.idle: list[str] = [name for name, share in self.workers.items() if share < IDLE]
        full = [name for name, share in self.workers.items() if share >= BUSY]
        self.busy: list[str] = [name for name in full if name not in self.elsewhere]

    # -- where the frames were lost

    def of_lost(self, frames: int) -> str:
        """Say how many of the lost frames; a system may drop its own as well."""
        of = f"{frames:,} of {self.lost:,} lost frames"
        return f"{frames:,} frames (lost were {self.lost:,})" if frames > self.lost else of

    def are_lost_ones(self, frames: int, counted: bool = True) -> Confidence | None:
        """Return how sure it is that *frames* dropped at one place are lost ones; None: other drops explain these.

        A router's counters have the frames of others too: counts of the same frames may differ by a hundredth.
        *counted*: by one of the counters, not as a difference.
        """
        others, noise = self.ledger.explained - (frames if counted else 0), 0.01
        if self.lost - others <= noise * min(frames, self.lost) and abs(frames - self.lost) > noise * self.lost:
            return None
        return CERTAIN if frames + others <= (1 + noise) * self.lost else LIKELY

    def are_most(self, frames: int, counted: bool = True) -> bool:
        """Return whether *frames* dropped at one place are most of the lost ones."""
        return 0 < self.lost / 2 < frames and self.are_lost_ones(frames, counted) is not None

    def _most(self, name: str) -> Drop:
        """Return the largest drops whose name begins with *name*."""
        return next((drop for drop in self.ledger.drops if drop.name.startswith(name)), Drop(Stage.PASSING, "", "", 0))

    def limits_sending(self, frames: int) -> bool:
        """Return whether *frames* dropped on leaving are enough to limit, and are lost ones."""
        return 0 < frames >= 0.01 * self.handed and self.are_lost_ones(frames) is not None

    @cached_property
    def line(self) -> tuple[str, float, float]:
        """The fullest line of those that dropped frames, with the shares of its rate that it carries and gets.

        It gets those too that were certainly dropped when they were to be sent. Another line may be full without loss.
        """
        dropping = {drop.interface for drop in self.ledger.drops if drop.stage is Stage.LEAVING}
        carried, got = Counter[str](), Counter[str]()
        for row in self.ledger.directions:
            if dropping & {row.egress, ""}:
                carried[row.egress] += row.forwarded
                dropped = sum(drop.frames for drop in row.drops_at(Stage.LEAVING))
                got[row.egress] += row.forwarded + max(0, min(row.lost, dropped))
        # bits that a line carries while the offered frames are sent; a port without a link has a rate of 0
        offered, tried = sum(row.offered for row in self.ledger.directions), self.tried
        bits = tried.link_bps * offered / tried.offered_pps if tried.offered_pps else 0.0
        share = l1_bits(tried.frame_bytes) / bits if bits > 0 else 0.0
        return max(
            ((name, share * frames, share * got[name]) for name, frames in carried.items()),
            key=lambda line: line[1],
            default=("", 0.0, 0.0),
        )

    @cached_property
    def discipline(self) -> Drop:
        """Frames lost at a queueing discipline, which is the meaning; "": they are few, or it is the system's own."""
        drop = self._most(QDISC_DROPS)
        enough = self.are_most(drop.frames) or self.limits_sending(drop.frames)
        kind = discipline_of(drop.meaning) if enough and drop.frames > self.left / 2 else ""
        return replace(drop, meaning="" if is_of_the_system(kind) else kind)

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
        counters = self.load.counters if self.workers else {}
        cpus = sorted(name.partition("full ")[2] for name in counters if name.startswith(f"{BACKLOG_FULL} "))
        whose = " and ".join(cpus) if 0 < len(cpus) <= 3 else "a processor"
        busy = f"; {self.busy_words()}" if self.busy else ""
        return f"the backlog full in which frames wait for {whose} (softnet, netdev_max_backlog){busy}"

    def arrived(self, uncounted_too: bool = False) -> bool:
        """Return whether most of the lost frames were lost, undamaged, before the router worked on them."""
        # counters of Linux and VPP for damaged frames, which no faster card takes
        damaged, drops = ("rx_errors", "rx-error"), self.ledger.drops
        dropped = sum(drop.frames for drop in drops if drop.stage is Stage.ARRIVING and drop.name not in damaged)
        # drivers that do not count what their card lost
        blind = any(re.search(r"rdma|af.?packet", nic.driver or "", re.IGNORECASE) for nic in self.facts.nics)
        uncounted = max(0, self.ledger.gaps[0] or 0) if blind or uncounted_too else 0
        return 0 < self.lost / 2 < dropped + uncounted + self.backlogged()

    # -- who was busy

    @cached_property
    def is_read_at_this_load(self) -> bool:
        """Return whether the load was read while as much was sent as in the trial, and frames were lost again."""
        load, tried, least = self.load, self.tried, 0.9
        asked = least * tried.intended_pps <= load.load_pps <= tried.intended_pps / least
        if not (asked and load.offered_pps >= least * tried.offered_pps > 0):
            return False
        again = 1 - load.forwarded_pps / load.offered_pps
        return self.loss_ratio < SMALL_LOSS or again >= self.loss_ratio / 2

    def _forwarding(self) -> tuple[WorkerLoad, ...]:
        """Workers that forward, of a kernel without any the processors; () where these were not read at this load."""
        if not self.is_read_at_this_load:
            return ()
        # VPP's main thread forwards only where it is alone, or serves a queue of these interfaces
        idlers = {"vpp_main"} - set(self.placed)
        rows = [row for row in self.load.workers if row.thread not in idlers] or list(self.load.workers)
        if not rows and self._kernel_forwards():
            rows = [WorkerLoad(name, cpu.busy, cpu.packets_per_s) for name, cpu in self.cpus.items()]
        # a VPP worker whose busy time was not read has no time left with nearly 256 packets per call
        full = [row.busy is None and (row.vectors_per_call or 0) >= 250 for row in rows]
        rows = [replace(row, busy=1.0) if is_full else row for row, is_full in zip(rows, full, strict=True)]
        return tuple(rows) if all(row.busy is not None and 0 <= row.busy <= 1 for row in rows) else ()

    def _kernel_forwards(self) -> bool:
        """Return whether processors serve the queues, not threads that poll and so keep a processor always busy."""
        # interfaces without interrupts of their own: the kernel counts what it handles
        counts = sum(cpu.packets_per_s or 0.0 for cpu in self.load.cpus) > self.load.forwarded_pps / 2 > 0
        return all(row.worker.startswith("CPU ") for row in self.serving) if self.serving else counts

    def busy_words(self) -> str:
        """Say which workers are busy."""
        least = min(self.workers[name] for name in self.busy)
        return f"{names(self.busy)} {'is' if len(self.busy) == 1 else 'are'} {least:.0%} busy"

    def no_time(self) -> bool:
        """Return whether workers have no time left for lost frames; those busy with others have taken none of these."""
        served = {place.interface for name in self.busy for place in self.placed.get(name, ())}
        serve = not self.placed or self.steering or not self.losing.isdisjoint(served)
        return bool(self.busy and self.arrived() and serve)

    @cached_property
    def uneven(self) -> str:
        """How unevenly workers are busy, in words; "" where none is full, or no other one has time."""
        if not (self.no_time() and self.idle):
            return ""
        most = max(self.workers[name] for name in self.idle)
        rest = "idle" if most < 0.005 else f"at most {most:.0%} busy"
        return f"{self.busy_words()}, {len(self.idle)} of {len(self.workers)} workers {rest}"

    @cached_property
    def time_left(self) -> str:
        """How busy workers are while frames are lost on arrival, in words; "" where one may have no time left."""
        if not (self.arrived() and 0 < len(self.workers) == len(self.idle)):
            return ""
        return f"frames are lost on arrival while the busiest worker is {max(self.workers.values()):.0%} busy"

    # -- processors with other work

    @cached_property
    def elsewhere(self) -> Mapping[str, float]:
        """Busy processors that spend over 15 % of their time on other things than packets, with that share.

        What they could do for packets without programs, or a hypervisor that withholds time, is not known.
        """
        late = [] if self.load.workers else [name for name, share in self.workers.items() if share >= IDLE]
        shares = {name: self._beside_packets(self.cpus[name]) for name in late}
        return {name: share for name, share in shares.items() if share > 0.15}

    def _beside_packets(self, cpu: CpuLoad) -> float:
        """Return the share of a processor's time that is not packets': programs, and steal.

        Linux handles packets in interrupts, FreeBSD in threads of its kernel too, as ``kernel{if_io_tqg_3}``.
        """
        if self.freebsd is None:
            return 0.0 if cpu.on_packets is None else max(0.0, (cpu.busy or 0.0) - cpu.on_packets)
        kernel = re.compile(r"\[?(?:kernel|intr)\b")
        # top shows the threads of one second only, or was not read
        return max(sum(share for thread, share in cpu.threads.items() if not kernel.match(thread)), cpu.user or 0.0)

    def crowded(self) -> str:
        """Name the processor without time left that handles packets and has least for them; "": none."""
        few = 0.1 * sum(cpu.packets_per_s or 0.0 for cpu in self.load.cpus)

        def is_late(name: str) -> bool:
            rate = self.cpus[name].packets_per_s  # where it was not read it is not known
            return self.workers[name] >= BUSY and (rate is None or rate > few)

        name = max(filter(is_late, self.elsewhere), key=self.elsewhere.__getitem__, default="")
        share = self.elsewhere.get(name, 0.0)
        return (
            f"other work (programs, steal) takes {share:.0%} of the time of {name}" if name and self.arrived() else ""
        )

    def may_be_stolen(self) -> bool:
        """Return whether a hypervisor withheld time, or may have where that is not read."""
        steal = [cpu.steal for cpu in self.load.cpus if cpu.steal is not None]
        return max(steal) >= 0.01 if steal else bool(self.facts.other.get("hypervisor"))

    def lock(self) -> str:
        """Name the lock that busy cores may wait for: such cores are as busy as those that work. "": none is known."""
        other, cores = self.facts.other, len(self.busy) if self.arrived() else 0
        if self.freebsd is None or self.freebsd >= 13:
            return ""
        if BRIDGE in other and cores > 1:
            return "the bridge's lock"
        # a kernel with patches has a configuration of its own
        is_plain = self.freebsd < 12 and other.get(KERNEL_IDENT, "GENERIC") == "GENERIC"
        return "the locks of routing and neighbour tables" if is_plain and cores >= 6 else ""

    # -- who serves which queue

    def spread(self) -> str:
        """Say why idle workers get no packets: by RPS, or by where the queues are; "": it is not known."""
        if self.steering:
            steered = self.steering == set(self.busy)
            return f"all packets are steered to {names(self.busy)} (RPS)" if steered else ""
        alone = self.placed and set(self.placed) <= set(self.busy)
        return self.shared() or (
            f"no other serves a receive queue of {names(sorted(set(self.ingress)))}" if alone else ""
        )

    def shared(self) -> str:
        """Name the queues of several interfaces that a busy worker serves, though idle ones serve fewer; "": none."""
        rates = [row.packets_per_s or 0.0 for row in self.forwarding]
        # a tenth of a direction's mean rate: packets now and then, of a login or a routing protocol, are none of a flow
        few = 0.1 * sum(rates) / max(1, len(self.ingress))
        if self.tried.flows == 1 and sum(rate > few for rate in rates) >= len(self.ingress):
            return ""
        fewest = min((len(self.placed.get(name, ())) for name in self.idle), default=math.inf)
        for queues in (self.placed.get(name, ()) for name in self.busy):
            if len({place.interface for place in queues}) > 1 and len(queues) > fewest:
                shared = " and ".join(f"queue {place.queue} of {place.interface}" for place in queues)
                return f"{shared} are on one worker"
        return ""

    # -- buses and buffers

    @cached_property
    def bus(self) -> tuple[float, str]:
        """The fullest bus of the cards by which lost frames enter: its share, and in words; 0: one was not read."""
        buses = [self._bus_of(nic) for nic in self.facts.nics if nic.interface in self.losing]
        known = [bus for bus in buses if bus is not None]
        return max(known) if 0 < len(known) == len(self.losing) else (0.0, "the bus was not read")

    def _bus_of(self, nic: NicFacts) -> tuple[float, str] | None:
        """Return the least share of the PCIe link of one card that frames take, in words too; None: not read."""
        rows, width, speed = self.ledger.directions, nic.pcie_width, nic.pcie_speed
        # ports of a card differ in the function only, behind the last dot
        card_of = {card.interface: (card.pci_address or "").rpartition(".")[0] for card in self.facts.nics}
        forwarded, card = sum(row.forwarded for row in rows), card_of[nic.interface]
        if not width or not speed or not card or not forwarded:
            return None
        # each direction of the bus by itself: what the card takes in goes up, what it sends comes down
        up = sum(row.forwarded for row in rows if card_of.get(row.ingress) == card)
        down = sum(row.forwarded for row in rows if card_of.get(row.egress) == card)
        # PCIe 1 and 2 code 8 bits in 10, later ones 128 in 130
        bps = 1e9 * width * speed * (0.8 if speed in (2.5, 5.0) else 128 / 130)
        data = self.tried.frame_bytes - FCS
        # a packet's largest payload is usually 256 bytes, behind 24 of header and framing; descriptors have at least 32
        size = data + 24 * math.ceil(data / 256) + 32
        share = self.tried.forwarded_pps * max(up, down) / forwarded * 8 * size / bps
        can = f" (the card can x{nic.pcie_width_max})" if (nic.pcie_width_max or 0) > width else ""
        return share, f"the frames with their headers take {share:.0%} of PCIe x{width} at {speed:g} GT/s{can}"

    def lacks_buffers(self) -> str:
        """Say how VPP lacked buffers for most of the lost frames; "" where it did not."""
        failed = sum(row.frames for row in self.ledger.reasons if row.meaning.startswith(FAILED_ALLOCATIONS))
        pools = self.load.condition if self.is_read_at_this_load else {}
        # but those in threads' caches
        empty = [name for name, free in pools.items() if name.startswith(FREE_BUFFERS) and free.startswith("0 of ")]
        # a read of a queue takes up to 256 frames
        if not self.arrived(uncounted_too=True) or (failed * 256 < self.lost and not empty):
            return ""
        tried = f"VPP found no free buffer {failed:,} times when it read a receive queue"
        return f"{tried}; there were no {' and no '.join(empty)}" if empty else tried


def names(threads: Collection[str]) -> str:
    """Name one or two *threads*, or say how many they are."""
    return " and ".join(threads) if len(threads) <= 2 else f"{len(threads)} workers"
