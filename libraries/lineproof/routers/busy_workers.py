"""Who forwards on a router under load, how busy each is, and which receive queues it serves."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from ..core.router_facts import Placement, RouterFacts
from ..core.under_load import UnderLoad, WorkerLoad

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
        self.ingress, self._facts, self._load, self._flows, self._threads = ingress, facts, load, flows, kernel_threads
        steered = [nic.steered_to.values() for nic in facts.nics if nic.interface in ingress]
        self.steering = {f"CPU {cpus}" for own in steered for cpus in own}
        reported = [Placement(row.interface, row.queue, row.worker_or_cpu) for row in load.queues if row.worker_or_cpu]
        self.serving: Sequence[Placement] = facts.placement or reported
        self.placed: dict[str, list[Placement]] = defaultdict(list)
        for place in self.serving:
            if place.interface in ingress:
                self.placed[place.worker].append(place)
        self._rows = self._forwarding()
        self.shares = {row.thread: row.busy or 0.0 for row in self._rows}
        self.elsewhere = {} if load.workers else dict(self._elsewhere())
        self.idle = [name for name, share in self.shares.items() if share < IDLE]
        self.busy = [name for name, share in self.shares.items() if share >= BUSY and name not in self.elsewhere]

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
