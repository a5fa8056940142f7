"""A router's report of its queues, workers and processors while traffic flows, and why it lost frames by that.

A fact that the router does not report is missing (None, or no entry), never 0.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .json_types import NamedEnum, NotKept
from .router_facts import Placement, RouterFacts


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """One VPP graph node on one worker: packets/s, TSC cycles per packet, vectors per call, share 0 to 1 of the core.

    ``clocks``: None for a node that handled no packet.
    """

    name: str
    packets_per_s: float
    clocks: float | None
    vectors_per_call: float | None
    share: float | None


@dataclass(frozen=True, slots=True)
class WorkerLoad:
    """One thread that forwards.

    ``busy``: share 0 to 1 of its time spent on packets, without the polling of empty queues. ``packets_per_s``: taken
    from receive queues. ``nodes``: VPP only, the most expensive first.
    """

    thread: str
    busy: float | None = None
    packets_per_s: float | None = None
    vectors_per_call: float | None = None
    cycles_per_packet: float | None = None
    nodes: tuple[NodeLoad, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """One receive queue. ``worker_or_cpu``: the thread's name (VPP) or ``CPU 3`` that serves it, "" if not read."""

    interface: str
    queue: int
    worker_or_cpu: str = ""
    packets_per_s: float | None = None
    drops_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class CpuLoad:
    """One processor of the router's system: shares 0 to 1 of the seconds read.

    ``busy``: not idle. ``softirq``: Linux's software interrupts, FreeBSD's interrupts. ``packets_per_s``: handled by
    the kernel there (Linux ``softnet_stat``). ``threads``: FreeBSD, the threads that ran there last, with their share
    0 to 1 of a processor, the busiest first. ``irq``: Linux's hardware interrupts. ``steal``: Linux, what the
    hypervisor withheld. ``user``: programs, without the system's work for them. All three are part of ``busy``.
    """

    cpu: int
    busy: float | None = None
    softirq: float | None = None
    packets_per_s: float | None = None
    threads: Mapping[str, float] = field(default_factory=dict)
    irq: float | None = None
    steal: float | None = None
    user: float | None = None

    @property
    def on_packets(self) -> float | None:
        """Share in interrupts, of both kinds; None where it was not read."""
        return None if self.softirq is None else self.softirq + (self.irq or 0.0)


@dataclass(frozen=True, slots=True)
class UnderLoad:
    """Readings of the router around some seconds of traffic; a trial that no verdict rests on.

    ``load_pps``, ``offered_pps``, ``forwarded_pps``: frames/s of all directions together, which no router knows.
    ``seconds`` between the readings. ``counters``: increase per second of error counters and interrupts, by the
    router's own names. ``condition``: other readings as text, as ``load`` and ``temperature`` of a described router.
    ``unread``: command -> why it was not read. ``raw``: output by command.
    """

    load_pps: float = 0.0
    offered_pps: float = 0.0
    forwarded_pps: float = 0.0
    workers: tuple[WorkerLoad, ...] = ()
    queues: tuple[QueueLoad, ...] = ()
    cpus: tuple[CpuLoad, ...] = ()
    raw: NotKept[Mapping[str, str]] = field(default_factory=dict)
    seconds: float | None = None
    counters: Mapping[str, float] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    condition: Mapping[str, str] = field(default_factory=dict)


BUSY_SHARE, FRAMES_TAKEN = "worker_busy.", "worker_pps."
"""How readings of a trial begin, before the name of a worker: share 0 to 1 of the seconds of traffic; frames/s."""


def rates(before: Mapping[str, float], after: Mapping[str, float], seconds: float | None) -> dict[str, float]:
    """Return the rises per second of the counters of *after* in *seconds* since *before*; one that fell was reset."""
    if not seconds or seconds <= 0:
        return {}
    return {
        name: (count - before[name]) / seconds
        for name, count in after.items()
        if name in before and count >= before[name]
    }


def per_second(before: Mapping[str, int], after: Mapping[str, int], seconds: float | None) -> dict[str, float]:
    """Return :func:`rates` of those counters that rose."""
    return {name: rate for name, rate in rates(before, after, seconds).items() if rate > 0}


def output_by_moment(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Return both outputs of each command, by it and the moment."""
    moments = {"before": before, "after": after}
    return {f"{name} {moment}": text for moment, output in moments.items() for name, text in output.items() if text}


TICKS_BACK = 2
"""By so many a Linux kernel may count back idle time and iowait (proc(5))."""


def cpu_load(
    cpu: int,
    before: Mapping[str, int],
    after: Mapping[str, int],
    packets_per_s: float | None = None,
    threads: Mapping[str, float] | None = None,
) -> CpuLoad:
    """Return the load of a processor by two readings of its ticks in each state: ``idle``, ``softirq`` and others."""
    used = {state: ticks - before[state] for state, ticks in after.items() if state in before}
    load = CpuLoad(cpu, packets_per_s=packets_per_s, threads=threads or {})
    if sum(used.values()) <= 0 or min(used.values()) < -TICKS_BACK:
        return load
    total = sum(max(0, ticks) for ticks in used.values())
    share = {state: max(0, ticks) / total for state, ticks in used.items()}
    return replace(
        load,
        busy=1 - share["idle"] - share.get("iowait", 0.0),
        softirq=share["softirq"],
        irq=share.get("irq"),
        steal=share.get("steal"),
        user=share["user"] + share["nice"],
    )


SMALL_LOSS = 0.01
"""Share of the offered frames. A smaller loss comes of moments, and may not come again."""


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

    @property
    def loss_ratio(self) -> float:
        """The share of the offered frames that was lost."""
        return 1 - self.forwarded_pps / self.offered_pps if self.offered_pps else 0.0

    def is_again(self, load: UnderLoad, least: float = 0.9) -> bool:
        """Return whether *load* was read while as much was sent, to the ratio *least*, and frames were lost again."""
        asked = least * self.intended_pps <= load.load_pps <= self.intended_pps / least
        if not (asked and load.offered_pps >= least * self.offered_pps > 0):
            return False
        return self.loss_ratio < SMALL_LOSS or 1 - load.forwarded_pps / load.offered_pps >= self.loss_ratio / 2


BUSY, IDLE = 0.95, 0.85
"""Shares of a worker's time: from BUSY on it is a limit, below IDLE it is none; between them no rule says either."""


class Workers:
    """The workers that forward, of a kernel without any the processors; none where these were not read.

    ``shares``: how busy each is, 0 to 1. ``idle``: those with time left; ``busy``: those that packets leave none;
    ``elsewhere``: processors that spend much of their time on other things, with that share. ``steering``: those that
    software steers packets to, as ``CPU 1`` or ``CPU 0,1``. ``serving``: who serves the receive queues; ``placed``:
    those of *ingress*, the interfaces that frames enter by, by worker. *flows* of each direction; None: not known.
    *kernel_threads*: the system handles packets in threads of its kernel, too, as FreeBSD's ``kernel{if_io_tqg_3}``.
    """

    def __init__(
        self, facts: RouterFacts, load: UnderLoad, ingress: Sequence[str], flows: int | None, kernel_threads: bool
    ) -> None:
        self.ingress: Sequence[str] = ingress
        self._facts, self._load, self._flows, self._threads = facts, load, flows, kernel_threads
        steered = [nic.steered_to.values() for nic in facts.nics if nic.interface in ingress]
        self.steering = {f"CPU {cpus}" for own in steered for cpus in own}
        reported = [Placement(row.interface, row.queue, row.worker_or_cpu) for row in load.queues if row.worker_or_cpu]
        self.serving: Sequence[Placement] = facts.placement or reported
        self.placed: dict[str, list[Placement]] = defaultdict(list)
        for place in self.serving:
            if place.interface in ingress:
                self.placed[place.worker].append(place)
        self._rows = self._forwarding()
        self.shares: dict[str, float] = {row.thread: row.busy or 0.0 for row in self._rows}
        self.elsewhere = {} if load.workers else dict(self._elsewhere())
        self.idle = [name for name, share in self.shares.items() if share < IDLE]
        self.busy: list[str] = [
            name for name, share in self.shares.items() if share >= BUSY and name not in self.elsewhere
        ]

    def _forwarding(self) -> list[WorkerLoad]:
        load = self._load
        # VPP's main thread forwards only where it is alone, or serves a queue of these interfaces
        rows = [row for row in load.workers if row.thread in {*self.placed} or row.thread != "vpp_main"]
        rows = rows or list(load.workers)
        # of threads that poll a processor is always busy; an interface without interrupts has the kernel's counts
        counts = sum(cpu.packets_per_s or 0.0 for cpu in load.cpus) > load.forwarded_pps / 2 > 0
        if not rows and (all(row.worker.startswith("CPU ") for row in self.serving) if self.serving else counts):
            rows = [WorkerLoad(f"CPU {cpu.cpu}", cpu.busy, cpu.packets_per_s) for cpu in load.cpus]
        # a VPP worker whose busy time was not read has no time left with nearly 256 packets per call
        full = [row.busy is None and (row.vectors_per_call or 0) >= 250 for row in rows]
        rows = [replace(row, busy=1.0) if is_full else row for row, is_full in zip(rows, full, strict=True)]
        return rows if all(row.busy is not None and 0 <= row.busy <= 1 for row in rows) else []

    def _elsewhere(self) -> Iterator[tuple[str, float]]:
        """Yield busy processors that spend over 15 % of their time on other things than packets, with that share.

        What they could do for packets without programs, or a hypervisor that withholds time, is not known. Packets are
        handled in interrupts, and in threads of the kernel.
        """
        for cpu in self._load.cpus:
            if self.shares.get(f"CPU {cpu.cpu}", 0.0) < IDLE:
                continue
            share = 0.0 if cpu.on_packets is None else (cpu.busy or 0.0) - cpu.on_packets
            if self._threads:
                # top shows the threads of one second only, or was not read
                others = [part for name, part in cpu.threads.items() if not re.match(r"\[?(?:kernel|intr)\b", name)]
                share = max(sum(others), cpu.user or 0.0)
            if share > 0.15:
                yield f"CPU {cpu.cpu}", share

    def busy_words(self) -> str:
        """Say which workers are busy."""
        least = min(self.shares[name] for name in self.busy)
        return f"{names(self.busy)} {'is' if len(self.busy) == 1 else 'are'} {least:.0%} busy"

    def crowded(self) -> str:
        """Name the processor without time left that handles packets and has least for them; "": none."""
        rates = {f"CPU {cpu.cpu}": cpu.packets_per_s for cpu in self._load.cpus}
        few = 0.1 * sum(rate or 0.0 for rate in rates.values())
        full = [name for name in self.elsewhere if self.shares[name] >= BUSY]
        # a rate that was not read is not known
        late = [name for name in full if (rate := rates[name]) is None or rate > few]
        name = max(late, key=self.elsewhere.__getitem__, default="")
        return f"other work (programs, steal) takes {self.elsewhere[name]:.0%} of the time of {name}" if name else ""

    def may_be_stolen(self) -> bool:
        """Return whether a hypervisor withheld time, or may have where that is not read."""
        steal = [cpu.steal for cpu in self._load.cpus if cpu.steal is not None]
        return max(steal) >= 0.01 if steal else bool(self._facts.other.get("hypervisor"))

    def spread(self) -> str:
        """Say why idle workers get no packets: by RPS, or by where the queues are; "": it is not known."""
        if self.steering:
            steered = self.steering == set(self.busy)
            return f"all packets are steered to {names(self.busy)} (RPS)" if steered else ""
        alone = f"no other serves a receive queue of {names(sorted(set(self.ingress)))}"
        return self.shared() or (alone if self.placed and set(self.placed) <= set(self.busy) else "")

    def shared(self) -> str:
        """Name the queues of several interfaces that a busy worker serves, though idle ones serve fewer; "": none."""
        rates = [row.packets_per_s or 0.0 for row in self._rows]
        # a tenth of a direction's mean rate: packets now and then, of a login or a routing protocol, are none of a flow
        few = 0.1 * sum(rates) / max(1, len(self.ingress))
        if self._flows == 1 and sum(rate > few for rate in rates) >= len(self.ingress):
            return ""
        fewest = min((len(self.placed.get(name, ())) for name in self.idle), default=math.inf)
        for queues in (self.placed.get(name, ()) for name in self.busy):
            if len({place.interface for place in queues}) > 1 and len(queues) > fewest:
                shared = " and ".join(f"queue {place.queue} of {place.interface}" for place in queues)
                return f"{shared} are on one worker"
        return ""


def names(threads: Collection[str]) -> str:
    """Name one or two *threads*, or say how many they are."""
    return " and ".join(threads) if len(threads) <= 2 else f"{len(threads)} workers"


class Confidence(NamedEnum):
    """How sure an explanation is."""

    CERTAIN = "certain"
    """The counts leave no other cause."""
    LIKELY = "likely"
    """The figures fit, and what else would fit is rare."""
    POSSIBLE = "possible"
    """It is there and can cost this; how much is not known."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One cause. ``rule``: its name in docs/methodology/why.md; it rests on the ``grounds``."""

    rule: str
    words: str
    confidence: Confidence
    remedy: str
    grounds: str

    @property
    def lines(self) -> list[str]:
        """The cause and what helps, as a message has them, a line each."""
        return [f"why: {self.words} ({self.confidence.value}, by {self.grounds})", f"what helps: {self.remedy}"]


@dataclass(frozen=True, slots=True)
class Why:
    """The ``explanation`` of a failure, None where the figures support none; ``load``: the router's, below it."""

    explanation: Explanation | None = None
    load: UnderLoad | None = None
