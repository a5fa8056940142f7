"""What the rules of :mod:`.explain` look at: a sentence's load, its ledger, the router's facts and load, as figures.

Rates in frames/s, shares 0 to 1. A figure that was not read is None, and a rule that needs it is silent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ..core.causes import Stage
from ..core.ledger import Drop, Ledger
from ..core.router_facts import NicFacts, RouterFacts
from ..core.under_load import CpuLoad, UnderLoad, WorkerLoad
from ..units import l1_bits
from .linux_losses import BACKLOG_FULL
from .vpp_losses import FREE_BUFFERS, is_failed_allocation

BUSY, IDLE = 0.95, 0.85
"""Shares of a worker's time: from BUSY on it is a limit, below IDLE it is none; between them no rule says either."""

ELSEWHERE = 0.15
"""Share of a processor's time outside of interrupts from which on it is not packets alone that fill it."""

STOLEN = 0.01
"""Share of a processor's time that its hypervisor withheld, from which on it is not certain what it could forward."""

FULL_VECTOR = 250
"""Packets per call from which on a VPP worker whose busy time was not read has no time left (the most is 256)."""

SAME_LOAD = 0.9
"""The router's load was asked for and sent within this share of the trial's that it explains, or says nothing of it."""

SAME_LOSS, SMALL_LOSS = 0.5, 0.01
"""Of the share that was lost, the least that is lost again while the router's load is read; a smaller loss comes of
moments, and may not come again.
"""

HYPERVISOR = "hypervisor"
"""Key of :attr:`RouterFacts.other` of a virtual machine."""

_UNCOUNTED = re.compile(r"rdma|af.?packet", re.IGNORECASE)
"""Drivers that do not count what was lost before them."""

_DAMAGED = ("rx_errors", "rx-error")
"""Counters of Linux and VPP for frames that a card took for damaged. FreeBSD's ``Ierrs`` may be missed ones too."""

_KERNEL_THREAD = re.compile(r"\[?(?:kernel|intr)\b")
"""Threads of FreeBSD that handle packets, as ``kernel{if_io_tqg_3}`` and ``intr{irq285: t5nex0:0a1}``."""

_VIRTUAL = re.compile(r"veth|tun|tap|dummy|ifb|macvlan|ipvlan|bridge")
"""Drivers of interfaces without a card: what they send, the same kernel takes in at their other end."""


@dataclass(frozen=True, slots=True)
class TriedLoad:
    """What a sentence's worst trial tried: rates of all directions together.

    ``frame_bytes``: mean, with FCS. ``flows`` of each direction; None: not known. ``link_bps`` of a port.
    ``intended_pps``: what was asked of the generator, ``offered_pps``: what it sent. ``grown_bytes``: by receiving port
    the mean of frames that came back longer, as with a tag. ``ports_vary``: whether several flows have the same
    addresses, and differ by their ports; None: not known.
    """

    frame_bytes: float
    flows: int | None
    link_bps: float
    intended_pps: float
    offered_pps: float
    forwarded_pps: float
    grown_bytes: Mapping[int, float] = field(default_factory=dict)
    ports_vary: bool | None = False


@dataclass(frozen=True)
class RouterEvidence:
    """All that is known about one failed sentence."""

    tried: TriedLoad
    ledger: Ledger | None = None
    facts: RouterFacts | None = None
    load: UnderLoad | None = None

    # -- where the frames were lost

    @cached_property
    def lost(self) -> int:
        """Frames that did not come back; 0: not known. More frames of one direction make up for none of another."""
        return sum(max(0, row.lost) for row in self.ledger.directions) if self.ledger else 0

    @cached_property
    def drops(self) -> tuple[Drop, ...]:
        """All that the router counts as lost."""
        return self.ledger.drops if self.ledger else ()

    def dropped(self, stage: Stage) -> int:
        """Frames that the router counts as dropped at *stage*."""
        return sum(drop.frames for drop in self.drops if drop.stage is stage)

    @cached_property
    def handed_to_send(self) -> int:
        """Frames that were handed to the sending interfaces."""
        forwarded = sum(row.forwarded for row in self.ledger.directions) if self.ledger else 0
        return self.dropped(Stage.LEAVING) + forwarded

    @cached_property
    def lost_on_arrival(self) -> int:
        """Frames lost before the router took them in: counted, or uncounted by a driver that counts none.

        Those that no processor took in time are among them: no work was done on them either. Damaged frames are not: no
        faster card or worker takes them.
        """
        uncounted = (self.ledger.unexplained_before_rx or 0) if self.ledger and self.is_blind else 0
        damaged = sum(drop.frames for drop in self.drops if drop.stage is Stage.ARRIVING and drop.name in _DAMAGED)
        return self.dropped(Stage.ARRIVING) - damaged + max(0, uncounted) + self.backlogged

    @cached_property
    def backlogged(self) -> int:
        """Frames that found a processor's backlog full: counted by Linux as such, and by an interface as dropped."""
        if self.ledger is None:
            return 0
        full = sum(reason.frames for reason in self.ledger.reasons if reason.name == BACKLOG_FULL)
        counted = (
            drop.frames
            for drop in self.drops
            # what an interface without a card sends waits for a processor at its other end
            if drop.name == "rx_dropped" or (drop.name == "tx_dropped" and self.has_card(drop.interface) is not True)
        )
        return min(full, sum(counted))

    @cached_property
    def failed_allocations(self) -> int:
        """How often VPP found no buffer for frames that arrived: reads of a queue, of up to 256 frames each."""
        return sum(row.frames for row in self.ledger.reasons if is_failed_allocation(row.name)) if self.ledger else 0

    @property
    def empty_pools(self) -> tuple[str, ...]:
        """VPP's pools that had no free buffer at this load, but those in threads' caches."""
        read = self.load.condition if self.load and self._read_at_this_load else {}
        rows = ((name.removeprefix(FREE_BUFFERS), text) for name, text in read.items() if name.startswith(FREE_BUFFERS))
        return tuple(name for name, text in rows if text.startswith("0 of "))

    def has_card(self, interface: str) -> bool | None:
        """Return whether *interface* has a card behind it; None where its driver was not read."""
        driver = next((nic.driver for nic in self.nics if nic.interface == interface), None)
        return None if driver is None else _VIRTUAL.fullmatch(driver) is None

    @property
    def arrival_decides(self) -> bool:
        """Return whether most of the lost frames were lost on arrival."""
        return self.lost > 0 and self.lost_on_arrival > self.lost / 2

    @property
    def is_blind(self) -> bool:
        """Return whether the driver of an interface under test counts nothing that its card lost."""
        return any(_UNCOUNTED.search(nic.driver or "") for nic in self.nics)

    @property
    def loss_ratio(self) -> float:
        """Share of the offered frames that were lost."""
        return 1 - self.tried.forwarded_pps / self.tried.offered_pps if self.tried.offered_pps else 0.0

    @cached_property
    def ingress(self) -> tuple[str, ...]:
        """The router's interfaces that frames enter by."""
        return tuple(row.ingress for row in self.ledger.directions if row.offered) if self.ledger else ()

    def line_shares(self, with_lost: bool = False) -> Mapping[str, float]:
        """Per egress interface the share of its line that the forwarded frames fill.

        *with_lost*: that these and the lost ones would fill that were certainly dropped when it was to send them.
        """
        rows = self.ledger.directions if self.ledger else ()
        bits: dict[str, float] = {}
        for row in rows:
            dropped = sum(drop.frames for drop in row.drops_at(Stage.LEAVING)) if with_lost else 0
            frames = row.forwarded + max(0, min(dropped, row.lost))
            size = self.tried.grown_bytes.get(row.rx_port, self.tried.frame_bytes)
            bits[row.egress] = bits.get(row.egress, 0.0) + frames * l1_bits(size)
        # as many seconds as the offered frames took
        offered = sum(row.offered for row in rows)
        seconds = offered / self.tried.offered_pps if self.tried.offered_pps else 0.0
        most = seconds * self.tried.link_bps
        # a port without a link has a rate of 0
        return {name: count / most for name, count in bits.items() if most > 0}

    # -- who was busy

    @cached_property
    def workers(self) -> tuple[WorkerLoad, ...]:
        """Return those that forward, each with its busy share; () where these were not read at this load.

        Of a kernel without workers of its own: the processors.
        """
        load = self.load
        if load is None or not self._read_at_this_load:
            return ()
        # VPP's main thread forwards only where it is alone, or serves a queue of these interfaces
        idlers = {"vpp_main"} - set(self.placed)
        workers = [worker for worker in load.workers if worker.thread not in idlers] or list(load.workers)
        if not workers and self._kernel_forwards:
            workers = [WorkerLoad(f"CPU {cpu.cpu}", cpu.busy, cpu.packets_per_s) for cpu in load.cpus]
        return tuple(workers) if all(busy_share(worker) is not None for worker in workers) else ()

    @property
    def _read_at_this_load(self) -> bool:
        """Whether the router's load was read while as much was sent as in the trial, and frames were lost again."""
        load, tried = self.load, self.tried
        if load is None or not SAME_LOAD * tried.intended_pps <= load.load_pps <= tried.intended_pps / SAME_LOAD:
            return False
        if not load.offered_pps >= SAME_LOAD * tried.offered_pps > 0:
            return False
        again = 1 - load.forwarded_pps / load.offered_pps
        return self.loss_ratio < SMALL_LOSS or again >= SAME_LOSS * self.loss_ratio

    @property
    def _kernel_forwards(self) -> bool:
        """Whether processors serve the queues, not threads, whose polling keeps a processor busy without any frame."""
        servers = [row.worker for row in self.facts.placement] if self.facts else []
        servers += [row.worker_or_cpu for row in self.load.queues if row.worker_or_cpu] if self.load else []
        if servers:
            return all(name.startswith("CPU ") for name in servers)
        # interfaces without interrupts of their own: the kernel counts what it handles
        handled = sum(cpu.packets_per_s or 0.0 for cpu in self.load.cpus) if self.load else 0.0
        return self.load is not None and handled > self.load.forwarded_pps / 2 > 0

    @cached_property
    def full(self) -> tuple[WorkerLoad, ...]:
        """Workers without time left."""
        return tuple(worker for worker in self.workers if (busy_share(worker) or 0.0) >= BUSY)

    @cached_property
    def busy(self) -> tuple[WorkerLoad, ...]:
        """Workers that packets leave no time."""
        return tuple(worker for worker in self.full if worker.thread not in self.elsewhere)

    @cached_property
    def elsewhere(self) -> Mapping[str, float]:
        """Processors with hardly any time left that spend much of it on other things than packets: the share of those.

        Linux handles packets in interrupts, FreeBSD in threads of its kernel too. What a processor that programs use,
        or that its hypervisor withholds, could do for packets without that is not known.
        """
        if self.load is None or self.load.workers:
            return {}
        rows = [cpu for cpu in self.load.cpus if (cpu.busy or 0.0) >= IDLE]
        shares = {f"CPU {cpu.cpu}": self.on_programs(cpu) + (cpu.steal or 0.0) for cpu in rows}
        return {name: share for name, share in shares.items() if share > ELSEWHERE or name in self.withheld}

    def on_programs(self, cpu: CpuLoad) -> float:
        """Share of the time of *cpu* that is neither packets' nor its hypervisor's."""
        if self.is_freebsd:
            threads = sum(share for name, share in cpu.threads.items() if not _KERNEL_THREAD.match(name))
            # top shows the threads of one second only, or was not read
            return max(threads, cpu.user or 0.0)
        return 0.0 if cpu.on_packets is None else max(0.0, (cpu.busy or 0.0) - cpu.on_packets - (cpu.steal or 0.0))

    @cached_property
    def stolen(self) -> Mapping[str, CpuLoad]:
        """Processors that handle packets, and of whose time their hypervisor withheld some."""
        rows = {f"CPU {cpu.cpu}": cpu for cpu in self.load.cpus} if self.load and self.workers else {}
        return {name: cpu for name, cpu in rows.items() if (cpu.steal or 0.0) >= STOLEN and self.handles(name)}

    @cached_property
    def withheld(self) -> Mapping[str, CpuLoad]:
        """Those of ``stolen`` that might have carried what was lost in that time, or that had much less for packets."""
        return {
            name: cpu
            for name, cpu in self.stolen.items()
            if (steal := cpu.steal or 0.0) >= self.loss_ratio or steal + self.on_programs(cpu) > ELSEWHERE
        }

    @property
    def may_be_stolen(self) -> bool:
        """Whether a hypervisor withheld time from processors that handle packets, or whether it did was not read."""
        cpus = self.load.cpus if self.load else ()
        read = any(cpu.steal is not None for cpu in cpus)
        return bool(self.stolen) or (not read and self.facts is not None and bool(self.facts.other.get(HYPERVISOR)))

    @property
    def is_freebsd(self) -> bool:
        """Return whether the router's system is FreeBSD, or made of it."""
        return self.facts is not None and "FreeBSD" in f"{self.facts.os} {self.facts.kernel}"

    def handles(self, thread: str) -> bool:
        """Return whether the processor *thread* handles a tenth of the packets or more, or it is not known how many."""
        cpus = self.load.cpus if self.load else ()
        if any(cpu.packets_per_s is None for cpu in cpus):
            return True
        own = sum(cpu.packets_per_s or 0.0 for cpu in cpus if thread == f"CPU {cpu.cpu}")
        return own > 0 and own >= 0.1 * sum(cpu.packets_per_s or 0.0 for cpu in cpus)

    @cached_property
    def idle(self) -> tuple[WorkerLoad, ...]:
        """Workers with time left."""
        return tuple(worker for worker in self.workers if (busy_share(worker) or 0.0) < IDLE)

    @cached_property
    def placed(self) -> Mapping[str, tuple[tuple[str, int], ...]]:
        """Per worker the (interface, queue) pairs of the interfaces that frames enter by."""
        rows = [(row.interface, row.queue, row.worker) for row in self.facts.placement] if self.facts else []
        if not rows and self.load:
            rows = [(row.interface, row.queue, row.worker_or_cpu) for row in self.load.queues if row.worker_or_cpu]
        found: dict[str, tuple[tuple[str, int], ...]] = {}
        for interface, queue, worker in rows:
            if interface in self.ingress:
                found[worker] = (*found.get(worker, ()), (interface, queue))
        return found

    @property
    def losing(self) -> frozenset[str]:
        """Interfaces by which the directions enter that lost a tenth of all or more."""
        rows = self.ledger.directions if self.ledger else ()
        return frozenset(row.ingress for row in rows if row.lost > 0 and row.lost >= 0.1 * self.lost)

    @property
    def busy_lose(self) -> bool:
        """Whether a busy worker serves a queue whose frames were lost. True where who serves them is not known."""
        if not self.placed or self.steering:
            return True
        served = {interface for worker in self.busy for interface, _ in self.placed.get(worker.thread, ())}
        return not self.losing.isdisjoint(served)

    @property
    def cores_are_idle(self) -> bool:
        """Return whether certainly a whole core has time left: idle hyper-threads may share the cores of the busy ones.

        A core has two threads where that was not read.
        """
        each = (self.facts.threads_per_core if self.facts else None) or 2
        return len(self.busy) * each < len(self.workers)

    @property
    def servers_are_busy(self) -> bool:
        """Return whether all who serve the queues are busy. True where they are not known."""
        return set(self.placed) <= {worker.thread for worker in self.busy}

    @property
    def steering(self) -> tuple[str, ...]:
        """Processors that software steers the packets of the queues to that frames enter by, as ``1`` or ``0,1``."""
        entries = [nic for nic in self.nics if nic.interface in self.ingress]
        return tuple(dict.fromkeys(cpus for nic in entries for cpus in nic.steered_to.values()))

    @property
    def queues(self) -> int | None:
        """Receive queues of the interfaces that frames enter by."""
        if self.placed:
            return sum(map(len, self.placed.values()))
        counts = [nic.rx_queues for nic in self.nics if nic.interface in self.ingress]
        known = [count for count in counts if count is not None]
        return sum(known) if known and len(known) == len(self.ingress) else None

    # -- the machine

    @property
    def nics(self) -> tuple[NicFacts, ...]:
        """The cards of the interfaces under test."""
        return self.facts.nics if self.facts else ()


def busy_share(worker: WorkerLoad) -> float | None:
    """Busy share of *worker*, None if it is no share; of a VPP worker without it 1 where its vectors are full."""
    if worker.busy is None and worker.vectors_per_call is not None and worker.vectors_per_call >= FULL_VECTOR:
        return 1.0
    return worker.busy if worker.busy is not None and 0 <= worker.busy <= 1 else None
