"""Why a router lost frames: a table of rules over the ledger, the router's facts and its load. No verdict changes.

docs/methodology/why.md has the table for users; the first rule that fits names the limit. Rates in frames/s, shares 0
to 1. What was not read is missing (None, empty or 0), and no rule fits that needs it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..core.causes import Stage
from ..core.explanation import Confidence, Explanation
from ..core.ledger import Drop, Ledger
from ..core.router_facts import NicFacts, RouterFacts
from ..core.under_load import CpuLoad, UnderLoad, WorkerLoad
from ..units import FCS, l1_bits, si
from .linux_losses import BACKLOG_FULL, FILTER_DROPS, QDISC_DROPS, discipline_of, is_limiting, is_of_the_system
from .vpp_losses import FREE_BUFFERS, is_failed_allocation

GENERATOR = "generator"
"""The only rule that names what is not the router's."""

KERNEL_IDENT, BRIDGE = "kernel ident", "bridge"
"""Keys of :attr:`RouterFacts.other`: FreeBSD's ``kern.ident``, and its bridges that have an interface under test."""

BUSY, IDLE = 0.95, 0.85
"""Shares of a worker's time: from BUSY on it is a limit, below IDLE it is none; between them no rule says either."""

ELSEWHERE = 0.15
"""Share of a processor's time outside of interrupts from which on it is not packets alone that fill it."""

LINE_FULL, LINE_EXCEEDED = 0.97, 1.0002
"""Shares of a line's rate: full, with a trial's edges; more than it carries, by more than two clocks differ."""

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
            return Explanation(rule.name, rule.sentence(seen), sure, rule.remedy)
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
    sentence: Callable[[Evidence], str]
    sure: Confidence | Callable[[Evidence], Confidence]
    remedy: str


RULES: Sequence[WhyRule] = (
    WhyRule(
        GENERATOR,
        lambda seen: seen.none_was_lost() and seen.tried.offered_pps < 0.99 * seen.tried.intended_pps,
        lambda seen: (
            f"the generator sent {si(seen.tried.offered_pps, 'pps')} of {si(seen.tried.intended_pps, 'pps')}, and the"
            " router lost none of it"
        ),
        CERTAIN,
        "ask for less, or give the generator more cores or a faster card",
    ),
    WhyRule(
        "line",
        lambda seen: seen.limits_sending(seen.left) and seen.line_is_full(),
        lambda seen: (
            f"the line out of {seen.line[0]} is full ({seen.line[1]:.1%}): more arrives for it than it carries"
        ),
        lambda seen: seen.are_lost_ones(seen.left) or LIKELY,
        "spread the load over more or faster lines",
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
        lambda seen: seen.limits_sending(seen.left) and seen.backlogged() <= seen.left / 2,
        lambda seen: (
            f"of {seen.handed():,} frames handed to the sending interfaces {seen.left:,} found no free slot, with the"
            f" line {seen.line[1]:.1%} full: what takes them there is too slow"
        ),
        LIKELY,
        "look at the sending ring's size, the driver (another one, compressed completions) and the card's firmware, or"
        " at the program behind an interface without a card",
    ),
    WhyRule(
        "filter",
        lambda seen: seen.are_most(seen.filtered.frames),
        lambda seen: (
            f"{seen.of_lost(seen.filtered.frames)} were dropped {seen.filtered.meaning} at"
            f" {seen.filtered.label.rpartition(' at ')[2]}: rules, or a policer's rate"
        ),
        lambda seen: seen.are_lost_ones(seen.filtered.frames) or LIKELY,
        "see 'tc -s filter show dev … ingress' (or egress): remove the rule, or raise a policer's rate",
    ),
    WhyRule(
        "filter",
        lambda seen: seen.has_firewall() and seen.are_most(seen.vanished, counted=False),
        lambda seen: (
            f"the router received {seen.of_lost(seen.vanished)} and sent none; its firewall is {seen.facts.firewall}"
        ),
        LIKELY,
        "see the counters of its rules ('nft list ruleset', 'iptables -nvxL', 'pfctl -vsr'), and blackhole routes",
    ),
    WhyRule(
        "backlog",
        lambda seen: seen.are_most(seen.backlogged()),
        lambda seen: f"{seen.of_lost(seen.backlogged())} found {seen.full_backlog()}",
        LIKELY,
        "more processors for RPS or more queues; enlarge net.core.netdev_max_backlog, or let the interrupts' own"
        " processors handle the frames (no RPS)",
    ),
    WhyRule(
        "locks",
        lambda seen: seen.locks(),
        lambda seen: f"{seen.busy_words()} and wait for each other at {seen.locks()}, taken for each frame",
        lambda seen: LIKELY if {KERNEL_IDENT, BRIDGE} & set(seen.facts.other) else POSSIBLE,
        "take FreeBSD 12 or later, 13 for a bridge, or route instead; more cores or queues would not help",
    ),
    WhyRule(
        "all workers",
        lambda seen: seen.no_time() and len(seen.busy) == len(seen.workers),
        lambda seen: f"{seen.busy_words()}, and no other forwards: the cores are too slow{seen.beside_firewall()}",
        lambda seen: LIKELY if seen.may_be_stolen() else CERTAIN,
        "more cores and queues, faster cores, or less work per packet",
    ),
    WhyRule(
        "one flow",
        lambda seen: seen.uneven and seen.tried.flows == 1 and not seen.shared(),
        lambda seen: f"{seen.uneven}: the one flow in a direction enters by one receive queue, which one worker serves",
        lambda seen: LIKELY if len(seen.ingress) > 1 or seen.may_be_stolen() else CERTAIN,
        "a faster core, or less work per packet; more workers would not help one flow",
    ),
    WhyRule(
        "uneven workers",
        lambda seen: seen.uneven,
        lambda seen: f"{seen.uneven}: {seen.spread() or 'the flows do not spread evenly over them'}",
        lambda seen: LIKELY if seen.spread() else POSSIBLE,
        "as many receive queues per interface as workers, spread over them by interrupts (smp_affinity) or RPS"
        " (rps_cpus); compare what the card hashes with the flows that are sent",
    ),
    WhyRule(
        "other work",
        lambda seen: seen.crowded(),
        lambda seen: f"{seen.crowded()}, and what it could forward without that is not known",
        POSSIBLE,
        "keep programs off the processors that forward, and share none with other virtual machines",
    ),
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
        lambda seen: seen.has_time() and seen.bus and seen.bus[0] >= 0.75,
        lambda seen: f"{seen.time_left()}: {seen.bus_words()}",
        LIKELY,
        "put the card into a wider or faster slot",
    ),
    WhyRule(
        "card or bus",
        lambda seen: seen.has_time(),
        lambda seen: f"{seen.time_left()}: its card or bus takes no more: {seen.bus_words()}",
        LIKELY,
        "more cores will not help; look for the card's published limit, its slot, another driver, or its firmware",
    ),
)
"""The rules in order: what is nearer the exit comes first, whatever is lost before it."""


@dataclass(frozen=True)
class Evidence:
    """All that is known of one failed sentence, as the rules look at it."""

    tried: TriedLoad
    ledger: Ledger
    facts: RouterFacts
    load: UnderLoad

    # -- where the frames were lost

    @cached_property
    def lost(self) -> int:
        """Frames that did not come back. More frames of one direction make up for none of another."""
        return sum(max(0, row.lost) for row in self.ledger.directions)

    def none_was_lost(self) -> bool:
        """Return whether all frames came back; without a ledger the trial itself says it."""
        came_back = self.tried.offered_pps <= self.tried.forwarded_pps
        return not self.lost if self.ledger.directions else came_back

    def loss_ratio(self) -> float:
        """Return the share of the offered frames that was lost."""
        return 1 - self.tried.forwarded_pps / self.tried.offered_pps if self.tried.offered_pps else 0.0

    def of_lost(self, frames: int) -> str:
        """Say how many of the lost frames; a system may drop its own as well."""
        more = f"{frames:,} frames (lost were {self.lost:,})"
        return more if frames > self.lost else f"{frames:,} of {self.lost:,} lost frames"

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

    @cached_property
    def left(self) -> int:
        """Frames that were dropped on leaving: they were taken in and handled."""
        return sum(drop.frames for drop in self.ledger.drops if drop.stage is Stage.LEAVING)

    def handed(self) -> int:
        """Return how many frames were handed to the sending interfaces."""
        return self.left + sum(row.forwarded for row in self.ledger.directions)

    def limits_sending(self, frames: int) -> bool:
        """Return whether *frames* dropped on leaving are enough to limit, and are lost ones."""
        return 0 < frames >= 0.01 * self.handed() and self.are_lost_ones(frames) is not None

    @cached_property
    def line(self) -> tuple[str, float, float]:
        """The fullest line of those that dropped frames, with the shares of its rate that it carries and gets.

        It gets those too that were certainly dropped when they were to be sent. Another line may be full without loss.
        """
        # the offered frames took so many seconds; a port without a link has a rate of 0
        offered = sum(row.offered for row in self.ledger.directions)
        places = {drop.interface for drop in self.ledger.drops if drop.stage is Stage.LEAVING}
        most = self.tried.link_bps * offered / self.tried.offered_pps if self.tried.offered_pps else 0.0
        share = l1_bits(self.tried.frame_bytes) / most if most > 0 else 0.0
        lines: dict[str, tuple[str, float, float]] = {}
        for row in self.ledger.directions:
            if places & {row.egress, ""}:
                dropped = max(0, min(row.lost, sum(drop.frames for drop in row.drops_at(Stage.LEAVING))))
                _, carries, gets = lines.get(row.egress, ("", 0.0, 0.0))
                gets += share * (row.forwarded + dropped)
                lines[row.egress] = (row.egress, carries + share * row.forwarded, gets)
        return max(lines.values(), key=lambda line: line[1], default=("", 0.0, 0.0))

    def line_is_full(self) -> bool:
        """Return whether a line carries all that it can, and gets more."""
        _, carries, gets = self.line
        return carries >= LINE_FULL and gets > LINE_EXCEEDED

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
        waited = [
            drop.frames
            for drop in self.ledger.drops
            if drop.name == "rx_dropped" or (drop.name == "tx_dropped" and drop.interface in veths)
        ]
        return min(full, sum(waited))

    def full_backlog(self) -> str:
        """Say which processors' backlog was full, and how busy these were."""
        counters = self.load.counters if self.workers else {}
        cpus = sorted(name.partition("full ")[2] for name in counters if name.startswith(f"{BACKLOG_FULL} "))
        whose = " and ".join(cpus) if 0 < len(cpus) <= 3 else "a processor"
        busy = f"; {self.busy_words()}" if self.busy else ""
        return f"the backlog full in which frames wait for {whose} (softnet, netdev_max_backlog){busy}"

    @cached_property
    def filtered(self) -> Drop:
        """Frames that filters of ``tc`` dropped."""
        return self._most(FILTER_DROPS)

    @property
    def vanished(self) -> int:
        """Frames that the router received and did not send, and counted nowhere."""
        return self.ledger.unexplained_rx_to_tx or 0

    def has_firewall(self) -> bool:
        """Return whether a firewall is on."""
        return re.match(r"on\b", self.facts.firewall or "") is not None

    def beside_firewall(self) -> str:
        """Say that a firewall costs time, where one is on."""
        return f"; a firewall looks at each packet ({self.facts.firewall})" if self.has_firewall() else ""

    def arrived(self, uncounted_too: bool = False) -> bool:
        """Return whether most of the lost frames were lost, undamaged, before the router worked on them."""
        # counters of Linux and VPP for damaged frames, which no faster card takes
        damaged, drops = ("rx_errors", "rx-error"), self.ledger.drops
        dropped = sum(drop.frames for drop in drops if drop.stage is Stage.ARRIVING and drop.name not in damaged)
        # drivers that do not count what their card lost
        blind = any(re.search(r"rdma|af.?packet", nic.driver or "", re.IGNORECASE) for nic in self.facts.nics)
        uncounted = max(0, self.ledger.unexplained_before_rx or 0) if blind or uncounted_too else 0
        return 0 < self.lost / 2 < dropped + uncounted + self.backlogged()

    @cached_property
    def ingress(self) -> tuple[str, ...]:
        """The router's interfaces that frames enter by."""
        return tuple(row.ingress for row in self.ledger.directions if row.offered)

    def losing(self) -> frozenset[str]:
        """Return the interfaces by which the directions enter that lost a tenth of all or more."""
        return frozenset(row.ingress for row in self.ledger.directions if row.lost > 0 and row.lost >= 0.1 * self.lost)

    # -- who was busy

    @cached_property
    def is_read_at_this_load(self) -> bool:
        """Return whether the load was read while as much was sent as in the trial, and frames were lost again."""
        load, tried, least = self.load, self.tried, 0.9
        if not least * tried.intended_pps <= load.load_pps <= tried.intended_pps / least:
            return False
        if not load.offered_pps >= least * tried.offered_pps > 0:
            return False
        again = 1 - load.forwarded_pps / load.offered_pps
        return self.loss_ratio() < SMALL_LOSS or again >= self.loss_ratio() / 2

    @cached_property
    def forwarding(self) -> tuple[WorkerLoad, ...]:
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
        servers = [row.worker for row in self.facts.placement]
        servers += [row.worker_or_cpu for row in self.load.queues if row.worker_or_cpu]
        if servers:
            return all(name.startswith("CPU ") for name in servers)
        # interfaces without interrupts of their own: the kernel counts what it handles
        return sum(cpu.packets_per_s or 0.0 for cpu in self.load.cpus) > self.load.forwarded_pps / 2 > 0

    @cached_property
    def workers(self) -> Mapping[str, float]:
        """Busy share of each worker that forwards, by thread."""
        return {row.thread: row.busy or 0.0 for row in self.forwarding}

    @cached_property
    def cpus(self) -> Mapping[str, CpuLoad]:
        """The router's processors, by name."""
        return {f"CPU {cpu.cpu}": cpu for cpu in self.load.cpus}

    @cached_property
    def busy(self) -> tuple[str, ...]:
        """Workers that packets leave no time."""
        return tuple(name for name, share in self.workers.items() if share >= BUSY and name not in self.elsewhere)

    @cached_property
    def idle(self) -> tuple[str, ...]:
        """The workers with time left."""
        return tuple(name for name, share in self.workers.items() if share < IDLE)

    def busy_words(self) -> str:
        """Say which workers are busy."""
        least = min(self.workers[name] for name in self.busy)
        return f"{names(self.busy)} {'is' if len(self.busy) == 1 else 'are'} {least:.0%} busy"

    def no_time(self) -> bool:
        """Return whether workers have no time left for lost frames; those busy with others have taken none of these."""
        served = {interface for name in self.busy for interface, _ in self.placed.get(name, ())}
        serve = not self.placed or self.steering() or not self.losing().isdisjoint(served)
        return bool(self.busy and self.arrived() and serve)

    @cached_property
    def uneven(self) -> str:
        """How unevenly workers are busy, in words; "" where none is full, or no other one has time."""
        if not (self.no_time() and self.idle):
            return ""
        most = max(self.workers[name] for name in self.idle)
        idle = "idle" if most < 0.005 else f"at most {most:.0%} busy"
        return f"{self.busy_words()}, {len(self.idle)} of {len(self.workers)} workers {idle}"

    def has_time(self) -> bool:
        """Return whether frames are lost on arrival while every worker has time left."""
        return self.arrived() and 0 < len(self.workers) == len(self.idle)

    def time_left(self) -> str:
        """Say how busy workers are that have time left."""
        return f"frames are lost on arrival while the busiest worker is {max(self.workers.values()):.0%} busy"

    # -- processors with other work

    @cached_property
    def elsewhere(self) -> Mapping[str, float]:
        """Busy processors that spend much time on other things than packets, with the share that they do.

        What they could do for packets without programs, or a hypervisor that withholds time, is not known.
        """
        cpus = self.cpus if self.workers and not self.load.workers else {}
        shares = {name: self._beside_packets(cpu) for name, cpu in cpus.items() if self.workers[name] >= IDLE}
        return {name: share for name, share in shares.items() if share > ELSEWHERE}

    def _beside_packets(self, cpu: CpuLoad) -> float:
        """Return the share of a processor's time that is not packets': programs, and steal.

        Linux handles packets in interrupts, FreeBSD in threads of its kernel too, as ``kernel{if_io_tqg_3}``.
        """
        if self._freebsd() is None:
            return 0.0 if cpu.on_packets is None else max(0.0, (cpu.busy or 0.0) - cpu.on_packets)
        kernel = re.compile(r"\[?(?:kernel|intr)\b")
        # top shows the threads of one second only, or was not read
        return max(sum(share for thread, share in cpu.threads.items() if not kernel.match(thread)), cpu.user or 0.0)

    def crowded(self) -> str:
        """Name the processor without time left that handles packets and has least for them; "": none."""
        rates = {name: cpu.packets_per_s for name, cpu in self.cpus.items()}
        most = sum(rate or 0.0 for rate in rates.values())
        # of a processor whose rate was not read it is not known
        handling = {name for name, rate in rates.items() if rate is None or rate > 0.1 * most}
        late = [name for name in self.elsewhere if name in handling and self.workers[name] >= BUSY]
        name = max(late, key=lambda name: self.elsewhere[name], default="")
        if not name or not self.arrived():
            return ""
        return f"other work (programs, steal) takes {self.elsewhere[name]:.0%} of the time of {name}"

    def may_be_stolen(self) -> bool:
        """Return whether a hypervisor withheld time, or may have where that is not read."""
        steal = [cpu.steal for cpu in self.load.cpus if cpu.steal is not None]
        return max(steal) >= 0.01 if steal else bool(self.facts.other.get("hypervisor"))

    def _freebsd(self) -> int | None:
        """Return FreeBSD's major release; None of any other system."""
        release = re.search(r"FreeBSD (\d+)\.\d+", f"{self.facts.os} {self.facts.kernel}")
        return int(release[1]) if release else None

    def locks(self) -> str:
        """Name the lock that busy cores may wait for: such cores are as busy as those that work. "": none is known."""
        release, other, cores = self._freebsd(), self.facts.other, len(self.busy) if self.arrived() else 0
        if release is None or release >= 13:
            return ""
        if BRIDGE in other and cores > 1:
            return "the bridge's lock"
        # a kernel with patches has a configuration of its own
        is_plain = other.get(KERNEL_IDENT, "GENERIC") == "GENERIC"
        return "the locks of routing and neighbour tables" if release < 12 and is_plain and cores >= 6 else ""

    # -- who serves which queue

    @cached_property
    def placed(self) -> Mapping[str, tuple[tuple[str, int], ...]]:
        """Per worker the (interface, queue) pairs of the interfaces that frames enter by."""
        rows = [(row.interface, row.queue, row.worker) for row in self.facts.placement]
        rows = rows or [(row.interface, row.queue, row.worker_or_cpu) for row in self.load.queues if row.worker_or_cpu]
        found: dict[str, tuple[tuple[str, int], ...]] = {}
        for interface, queue, worker in rows:
            if interface in self.ingress:
                found[worker] = (*found.get(worker, ()), (interface, queue))
        return found

    def steering(self) -> frozenset[str]:
        """Return the processors that software steers the packets of the queues to, as ``CPU 1`` or ``CPU 0,1``."""
        entries = [nic for nic in self.facts.nics if nic.interface in self.ingress]
        return frozenset(f"CPU {cpus}" for nic in entries for cpus in nic.steered_to.values())

    def spread(self) -> str:
        """Say why idle workers get no packets: by RPS, or by where the queues are; "": it is not known."""
        if cpus := self.steering():
            return f"all packets are steered to {names(self.busy)} (RPS)" if cpus == set(self.busy) else ""
        if shared := self.shared():
            return shared
        if not self.placed or not set(self.placed) <= set(self.busy):
            return ""
        return f"no other serves a receive queue of {names(sorted(set(self.ingress)))}"

    def shared(self) -> str:
        """Name the queues of several interfaces that a busy worker serves, though idle ones serve fewer; "": none."""
        rates = [row.packets_per_s or 0.0 for row in self.forwarding]
        # a tenth of a direction's mean rate: packets now and then, of a login or a routing protocol, are none of a flow
        few = 0.1 * sum(rates) / max(1, len(self.ingress))
        if self.tried.flows == 1 and sum(rate > few for rate in rates) >= len(self.ingress):
            return ""
        fewest = min((len(self.placed.get(name, ())) for name in self.idle), default=math.inf)
        for queues in (self.placed.get(name, ()) for name in self.busy):
            if len({interface for interface, _ in queues}) > 1 and len(queues) > fewest:
                return " and ".join(f"queue {queue} of {name}" for name, queue in queues) + " are on one worker"
        return ""

    # -- buses and buffers

    @cached_property
    def bus(self) -> tuple[float, str] | None:
        """The fullest bus of the cards by which lost frames enter: its share, in words too. None: one was not read."""
        buses = [self._bus_of(nic) for nic in self.facts.nics if nic.interface in self.losing()]
        known = [bus for bus in buses if bus is not None]
        return max(known) if known and len(known) == len(self.losing()) else None

    def bus_words(self) -> str:
        """Say how full the bus is."""
        return self.bus[1] if self.bus else "the bus was not read"

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
        failed = sum(row.frames for row in self.ledger.reasons if is_failed_allocation(row.name))
        read = self.load.condition if self.is_read_at_this_load else {}
        # but those in threads' caches
        empty = [name for name, free in read.items() if name.startswith(FREE_BUFFERS) and free.startswith("0 of ")]
        # a read of a queue takes up to 256 frames
        if not self.arrived(uncounted_too=True) or (failed * 256 < self.lost and not empty):
            return ""
        tried = f"VPP found no free buffer {failed:,} times when it read a receive queue"
        return f"{tried}; there were no {' and no '.join(empty)}" if empty else tried


def names(threads: Collection[str]) -> str:
    """Name one or two *threads*, or say how many they are."""
    return " and ".join(threads) if len(threads) <= 2 else f"{len(threads)} workers"
