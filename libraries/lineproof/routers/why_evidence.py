"""The evidence that the rules of :mod:`.why` look at: figures of a failed sentence, its trial, ledger and router.

Rates in frames/s, shares 0 to 1. A figure that was not read is missing: None, empty or 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from ..core.causes import Stage
from ..core.explanation import Confidence, Explanation
from ..core.ledger import Drop, Ledger
from ..core.router_facts import NicFacts, RouterFacts
from ..core.under_load import CpuLoad, UnderLoad, WorkerLoad
from ..units import FCS, l1_bits, si
from .linux_load import THROTTLED
from .linux_losses import BACKLOG_FULL, FILTER_DROPS, QDISC_DROPS, discipline_of, is_of_the_system
from .vpp_losses import FREE_BUFFERS, is_failed_allocation

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

NOT_FREEBSD = 99
"""Above any release of FreeBSD with a lock that a rule knows."""

CERTAIN, LIKELY = Confidence.CERTAIN, Confidence.LIKELY


@dataclass(frozen=True, slots=True)
class TriedLoad:
    """The load of a sentence's worst trial: rates of all directions together.

    ``frame_bytes``: mean, with FCS. ``flows`` of each direction; None: not known. ``link_bps`` of a port.
    ``intended_pps``: what was asked of the generator, ``offered_pps``: what it sent. ``grown_bytes``: by receiving port
    the mean of frames that came back longer, as with a tag.
    """

    frame_bytes: float
    flows: int | None
    link_bps: float
    intended_pps: float
    offered_pps: float
    forwarded_pps: float
    grown_bytes: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Evidence:
    """All that is known of one failed sentence. ``limit``: the one that was found, for CIRCUMSTANCES."""

    tried: TriedLoad
    ledger: Ledger
    facts: RouterFacts
    load: UnderLoad
    limit: Explanation | None = None

    def figures(self) -> dict[str, float]:
        """Return the figures that most rules look at; those that were not read are missing."""
        counts = {"lost": self.lost, "dropped_on_leaving": self.left(), "backlog_full": self.backlogged()}
        if self.workers:
            counts |= {"workers": len(self.workers), "busy_workers": len(self.busy), "idle_workers": len(self.idle())}
        return {name: float(count) for name, count in counts.items()}

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

    def sent(self) -> str:
        """Say how much the generator sent of what was asked."""
        return f"{si(self.tried.offered_pps, 'pps')} of {si(self.tried.intended_pps, 'pps')}"

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

    def most(self, name: str) -> Drop:
        """Return the largest drops whose name begins with *name*."""
        return next((drop for drop in self.ledger.drops if drop.name.startswith(name)), Drop(Stage.PASSING, "", "", 0))

    def left(self) -> int:
        """Return how many frames were dropped on leaving: they were taken in and handled."""
        return sum(drop.frames for drop in self.ledger.drops if drop.stage is Stage.LEAVING)

    def handed(self) -> int:
        """Return how many frames were handed to the sending interfaces."""
        return self.left() + sum(row.forwarded for row in self.ledger.directions)

    def limits_sending(self, frames: int) -> bool:
        """Return whether *frames* dropped on leaving are enough to limit, and are lost ones."""
        return 0 < frames >= 0.01 * self.handed() and self.are_lost_ones(frames) is not None

    def leaving_at(self) -> frozenset[str]:
        """Return the interfaces that dropped frames on leaving."""
        return frozenset(drop.interface for drop in self.ledger.drops if drop.stage is Stage.LEAVING)

    def has_full_slots(self) -> bool:
        """Return whether sending interfaces were full, and not a processor busy for which frames wait there."""
        waited = not self.leave_by_card() and self.backlogged() > self.left() / 2
        return self.limits_sending(self.left()) and not waited

    def leave_by_card(self) -> bool | None:
        """Return whether an interface that dropped frames on leaving has a card; None where that was not read."""
        cards = {self.has_card(name) for name in self.leaving_at()}
        return True if True in cards else None if None in cards else False

    def no_slot(self) -> str:
        """Say how many frames found sending interfaces full."""
        return f"of {self.handed():,} frames handed to the sending interfaces {self.left():,} found no free slot"

    def line(self) -> tuple[str, float, float]:
        """Return the fullest line of those that dropped frames, with the shares of its rate that it carries and gets.

        It gets those too that were certainly dropped when they were to be sent. Another line may be full without loss.
        """
        # the offered frames took so many seconds; a port without a link has a rate of 0
        offered, places = sum(row.offered for row in self.ledger.directions), self.leaving_at()
        most = self.tried.link_bps * offered / self.tried.offered_pps if self.tried.offered_pps else 0.0
        lines: dict[str, tuple[str, float, float]] = {}
        for row in self.ledger.directions if most > 0 else ():
            if places & {row.egress, ""}:
                share = l1_bits(self.tried.grown_bytes.get(row.rx_port, self.tried.frame_bytes)) / most
                dropped = max(0, min(row.lost, sum(drop.frames for drop in row.drops_at(Stage.LEAVING))))
                _, carries, gets = lines.get(row.egress, ("", 0.0, 0.0))
                gets += share * (row.forwarded + dropped)
                lines[row.egress] = (row.egress, carries + share * row.forwarded, gets)
        return max(lines.values(), key=lambda line: line[1], default=("", 0.0, 0.0))

    def line_is_full(self) -> bool:
        """Return whether a line carries all that it can, and gets more."""
        _, carries, gets = self.line()
        return carries >= LINE_FULL and gets > LINE_EXCEEDED

    @cached_property
    def discipline(self) -> Drop:
        """Frames lost at a queueing discipline, which is the meaning; "": they are few, or it is the system's own."""
        drop = self.most(QDISC_DROPS)
        enough = self.are_most(drop.frames) or self.limits_sending(drop.frames)
        kind = discipline_of(drop.meaning) if enough and drop.frames > self.left() / 2 else ""
        return replace(drop, meaning="" if is_of_the_system(kind) else kind)

    def dropped_by_discipline(self) -> str:
        """Say which queueing discipline dropped how many."""
        where = f"the queueing discipline of {self.discipline.interface}, {self.discipline.meaning}"
        return f"{self.of_lost(self.discipline.frames)} were dropped by {where}"

    def backlogged(self) -> int:
        """Return how many frames found a processor's backlog full: as Linux counts them, and an interface too."""
        full = sum(reason.frames for reason in self.ledger.reasons if reason.name == BACKLOG_FULL)
        # what an interface without a card sends waits for a processor at its other end
        waited = {"rx_dropped": True, "tx_dropped": not self.leave_by_card()}
        return min(full, sum(drop.frames for drop in self.ledger.drops if waited.get(drop.name)))

    def has_card(self, interface: str) -> bool | None:
        """Return whether *interface* has a card behind it; None where its driver was not read."""
        driver = next((nic.driver for nic in self.facts.nics if nic.interface == interface), None)
        virtual = r"veth|tun|tap|dummy|ifb|macvlan|ipvlan|bridge"
        return None if driver is None else re.fullmatch(virtual, driver) is None

    def filtered(self) -> Drop:
        """Return what filters of ``tc`` dropped."""
        return self.most(FILTER_DROPS)

    def filter_words(self) -> str:
        """Say which filters dropped frames, and where."""
        return f"{self.filtered().meaning} at {self.filtered().label.rpartition(' at ')[2]}: rules, or a policer's rate"

    def vanished(self) -> int:
        """Return how many frames the router received and did not send, and counted nowhere."""
        return self.ledger.unexplained_rx_to_tx or 0

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
        if not rows and self.kernel_forwards():
            rows = [WorkerLoad(name, cpu.busy, cpu.packets_per_s) for name, cpu in self.cpus.items()]
        # a VPP worker whose busy time was not read has no time left with nearly 256 packets per call
        full = [row.busy is None and (row.vectors_per_call or 0) >= 250 for row in rows]
        rows = [replace(row, busy=1.0) if is_full else row for row, is_full in zip(rows, full, strict=True)]
        return tuple(rows) if all(row.busy is not None and 0 <= row.busy <= 1 for row in rows) else ()

    def kernel_forwards(self) -> bool:
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

    def idle(self) -> tuple[str, ...]:
        """Return the workers with time left."""
        return tuple(name for name, share in self.workers.items() if share < IDLE and name not in self.elsewhere)

    @cached_property
    def elsewhere(self) -> Mapping[str, float]:
        """Processors that spend much time on other things than packets, with the share that they do.

        What they could do for packets without programs, or a hypervisor that withholds time, is not known.
        """
        cpus = self.cpus if self.workers and not self.load.workers else {}
        near = {name for name in cpus if self.workers[name] >= IDLE or name in self.stolen}
        shares = {name: self.on_programs(name) + (cpu.steal or 0.0) for name, cpu in cpus.items() if name in near}
        return {name: share for name, share in shares.items() if share > ELSEWHERE}

    def on_programs(self, name: str) -> float:
        """Return the share of the time of the processor *name* that is neither packets' nor its hypervisor's.

        Linux handles packets in interrupts, FreeBSD in threads of its kernel too, as ``kernel{if_io_tqg_3}``.
        """
        cpu, kernel = self.cpus[name], re.compile(r"\[?(?:kernel|intr)\b")
        if self.freebsd() < NOT_FREEBSD:
            # top shows the threads of one second only, or was not read
            return max(sum(share for thread, share in cpu.threads.items() if not kernel.match(thread)), cpu.user or 0.0)
        return 0.0 if cpu.on_packets is None else max(0.0, (cpu.busy or 0.0) - cpu.on_packets - (cpu.steal or 0.0))

    def freebsd(self) -> int:
        """Return FreeBSD's major release; NOT_FREEBSD of any other system."""
        release = re.search(r"FreeBSD (\d+)\.\d+", f"{self.facts.os} {self.facts.kernel}")
        return int(release[1]) if release else NOT_FREEBSD

    def locks(self) -> str:
        """Name the lock that busy cores may wait for: such cores are as busy as those that work. "": none is known."""
        release, other, cores = self.freebsd(), self.facts.other, len(self.busy) if self.arrived() else 0
        if release < 13 and BRIDGE in other and cores > 1:
            return "the bridge's lock"
        # a kernel with patches has a configuration of its own
        is_plain = other.get(KERNEL_IDENT, "GENERIC") == "GENERIC"
        return "the locks of routing and neighbour tables" if release < 12 and is_plain and cores >= 6 else ""

    def handles(self, name: str) -> bool:
        """Return whether the processor *name* handles a tenth of the packets or more, or it is not known how many."""
        rates = {name: cpu.packets_per_s for name, cpu in self.cpus.items()}
        own, known = rates.get(name) or 0.0, [rate for rate in rates.values() if rate is not None]
        return len(known) < len(rates) or (own > 0 and own >= 0.1 * sum(known))

    @cached_property
    def stolen(self) -> Mapping[str, float]:
        """Processors that handle packets, with the share, a hundredth or more, that a hypervisor withheld."""
        shares = {name: cpu.steal or 0.0 for name, cpu in self.cpus.items() if self.workers and self.handles(name)}
        return {name: share for name, share in shares.items() if share >= 0.01}

    def withheld(self) -> str:
        """Say how much time a hypervisor withheld, of the processor that lacks most."""
        name = max(self.stolen, key=lambda name: self.stolen[name])
        return f"the hypervisor of this virtual machine withheld {self.stolen[name]:.0%} of the time of {name} (steal)"

    def may_be_stolen(self) -> bool:
        """Return whether a hypervisor withheld time from packets, or may have where that is not read."""
        read = any(cpu.steal is not None for cpu in self.load.cpus)
        return bool(self.stolen) or (not read and bool(self.facts.other.get("hypervisor")))

    def crowded(self) -> str:
        """Name the processor without time left, or late, that handles packets and has least for them; "": none."""
        shares = self.elsewhere if self.arrived() else {}
        names = [name for name in shares if self.handles(name) and (self.workers[name] >= BUSY or name in self.stolen)]
        name = max(names, key=lambda name: shares[name], default="")
        return f"other work (programs, steal) takes {shares[name]:.0%} of the time of {name}" if name else ""

    def busiest_handler(self) -> float:
        """Return the largest busy share of the processors that handle packets; 1 where one was not read."""
        shares = [cpu.busy for name, cpu in self.cpus.items() if self.workers and self.handles(name)]
        return max((1.0 if share is None else share for share in shares), default=1.0)

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

    def entries(self) -> list[NicFacts]:
        """Return the cards that frames enter by."""
        return [nic for nic in self.facts.nics if nic.interface in self.ingress]

    def steering(self) -> tuple[str, ...]:
        """Return the processors that software steers the packets of the queues to, as ``1`` or ``0,1``."""
        return tuple(dict.fromkeys(cpus for nic in self.entries() for cpus in nic.steered_to.values()))

    def queues(self) -> int:
        """Return how many receive queues frames enter by; 0: not known."""
        known = [nic.rx_queues for nic in self.entries() if nic.rx_queues is not None]
        return sum(map(len, self.placed.values())) or (sum(known) if len(known) == len(self.ingress) else 0)

    @cached_property
    def no_time(self) -> bool:
        """Return whether workers have no time left for lost frames; those busy with others have taken none of these."""
        served = {interface for name in self.busy for interface, _ in self.placed.get(name, ())}
        serve = not self.placed or self.steering() or not self.losing().isdisjoint(served)
        return bool(self.busy and self.arrived() and serve)

    def busy_words(self) -> str:
        """Say which workers are busy."""
        least = min(self.workers[name] for name in self.busy)
        return f"{names(self.busy)} {'is' if len(self.busy) == 1 else 'are'} {least:.0%} busy"

    @cached_property
    def uneven(self) -> str:
        """How unevenly workers are busy, in words; "" where none is full, or no other one has time.

        Processors that handle hardly a packet count as the latter, even where programs leave them no time.
        """
        others, idle = [name for name in self.workers if name not in self.busy], self.idle()
        if self.no_time and idle:
            most = max(self.workers[name] for name in idle)
            return f"{self.busy_words()}, {len(idle)} of {len(self.workers)} workers at most {most:.0%}"
        if not (self.no_time and others) or any(name not in self.elsewhere or self.handles(name) for name in others):
            return ""
        return f"{self.busy_words()}, and programs fill {names(others)}, with hardly a packet there"

    def sure(self, proven: object) -> Confidence:
        """Return how sure it is that others would help; programs or a hypervisor may have kept time from packets."""
        return CERTAIN if proven and self.idle() and not self.may_be_stolen() else LIKELY

    def has_spare_core(self) -> bool:
        """Return whether certainly a whole core has time left: idle hyper-threads may share the cores of busy ones."""
        return len(self.busy) * (self.facts.threads_per_core or 2) < len(self.workers)

    def few_queues(self) -> bool:
        """Return whether there are fewer queues than workers, and all who serve them are busy, as far as is known."""
        served = len(self.busy) >= self.queues() and set(self.placed) <= set(self.busy)
        return 0 < self.queues() < len(self.workers) and served and not self.steering()

    def each_handles(self) -> bool | None:
        """Return whether as many workers handle packets of flows as there are directions; None where not read."""
        known = [row.packets_per_s for row in self.forwarding if row.packets_per_s is not None]
        # a tenth of a direction's mean rate: packets now and then, of a login or a routing protocol, are none of a flow
        few = 0.1 * sum(known) / max(1, len(self.ingress))
        return sum(rate > few for rate in known) >= len(self.ingress) if len(known) == len(self.forwarding) else None

    def serves_several(self) -> list[tuple[tuple[str, int], ...]]:
        """Return the queues of each busy worker that serves several interfaces."""
        rows = [self.placed.get(name, ()) for name in self.busy]
        return [queues for queues in rows if len({interface for interface, _ in queues}) > 1]

    def shared(self) -> str:
        """Name the queues of several interfaces that a busy worker serves, though others serve fewer; "": none."""
        rows = self.serves_several()
        if self.tried.flows == 1:
            # a flow has no other way in than its interface's only queue
            one_queue = self.queues() == len(self.ingress) and all(nic.rx_queues in (None, 1) for nic in self.entries())
            fits = self.each_handles() is False or (one_queue and not self.steering())
        else:
            fewest = min((len(self.placed.get(name, ())) for name in self.idle()), default=math.inf)
            fits = any(len(queues) > fewest for queues in rows)
        return " and ".join(f"queue {queue} of {name}" for name, queue in rows[0]) if rows and fits else ""

    def flows_may_share(self) -> bool:
        """Return whether flows of several directions may be on one worker, beside others without any."""
        on_one = not self.placed or self.steering() or self.serves_several()
        return len(self.ingress) > 1 and not self.each_handles() and bool(on_one)

    # -- cards, buses, buffers

    def has_time(self) -> bool:
        """Return whether frames are lost on arrival while every worker has time left."""
        return self.arrived() and 0 < len(self.workers) == len(self.idle())

    def time_left(self) -> str:
        """Say how busy workers are that have time left."""
        return f"frames are lost on arrival while the busiest worker is {max(self.workers.values()):.0%} busy"

    @cached_property
    def bus(self) -> Bus | None:
        """The fullest bus of the cards by which lost frames enter; None where one was not read."""
        buses = [self.bus_of(nic) for nic in self.facts.nics if nic.interface in self.losing()]
        known = [bus for bus in buses if bus is not None]
        return max(known, key=lambda bus: bus.share) if known and len(known) == len(self.losing()) else None

    def bus_of(self, nic: NicFacts) -> Bus | None:
        """Return the bus of one card; None where it was not read."""
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
        most, fastest = nic.pcie_width_max or 0, nic.pcie_speed_max or 0
        can = f" (the card can x{most})" if most > width else ""
        # one flow is in one receive queue of the card
        may_limit = share >= 0.25 and (most > width or fastest > speed) and self.tried.flows != 1
        return Bus(share, may_limit, f"PCIe x{width} at {speed:g} GT/s{can}")

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

    # -- what is said beside a limit

    def limits_time(self) -> bool:
        """Return whether the limit is one that more time of a processor would raise, or may."""
        others = ("generator", "line", "shaper", "short queue", "tx slots", "filter", "no buffers")
        return self.limit is not None and self.limit.rule not in others

    def is_spread_badly(self) -> bool:
        """Return whether interrupts that stay on other processors may help."""
        rule = self.limit.rule if self.limit else ""
        spread = rule in ("uneven workers", "one processor", "late worker", "shared worker")
        return len(self.workers) > 1 and (spread or (rule == "backlog" and bool(self.idle() or self.uneven)))

    def throttled(self) -> tuple[str, float]:
        """Return the counter of a busy processor's lowered clock that rose most, with its rate."""
        rows = {name: rate for name, rate in self.load.counters.items() if name.startswith(THROTTLED)}
        mine = {name: rate for name, rate in rows.items() if f"CPU {name.rpartition(' CPU ')[2]}" in self.busy}
        return max((mine if self.are_cpus() else rows).items(), key=lambda row: row[1], default=("", 0.0))

    def are_cpus(self) -> bool:
        """Return whether busy workers are processors; on which ones VPP's workers are is not read."""
        return all(name.startswith("CPU ") for name in self.busy)

    def has_firewall(self) -> bool:
        """Return whether a firewall is on."""
        return re.match(r"on\b", self.facts.firewall or "") is not None


@dataclass(frozen=True)
class Bus:
    """The least ``share`` of a card's PCIe ``link`` that frames take; ``may_limit``: it is narrow."""

    share: float
    may_limit: bool
    link: str

    def __str__(self) -> str:
        return f"the frames with their headers take {self.share:.0%} of {self.link}"


def names(threads: Collection[str]) -> str:
    """Name one or two *threads*, or say how many they are."""
    return " and ".join(threads) if len(threads) <= 2 else f"{len(threads)} workers"
