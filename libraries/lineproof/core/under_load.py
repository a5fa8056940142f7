"""A router's report of its queues, workers and processors while traffic flows, and why it lost frames by that.

A fact that the router does not report is missing (None, or no entry), never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .json_types import NamedEnum, NotKept


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
    """The rises per second of the counters of *after* in *seconds* since *before*; one that fell was reset."""
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
