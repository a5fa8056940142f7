"""The load on a router's workers, processors and queues as a document."""

from __future__ import annotations

from ..core.under_load import UnderLoad
from ..units import si
from .document import Column, Document, Facts, Note, Section, Table

_MOST_NODES, _MOST_THREADS = 6, 4


def under_load_document(load: UnderLoad, title: str, simulated: bool = False) -> Document:
    """Return the router's readings around some seconds of traffic."""
    seconds = "" if load.seconds is None else f", read over {load.seconds:.2f} s"
    rates = f"offered {si(load.offered_pps, 'pps')}, forwarded {si(load.forwarded_pps, 'pps')}{seconds}"
    workers = [
        {
            Column("worker", left=True): worker.thread,
            Column("busy"): _share(worker.busy),
            Column("frames/s"): _read(worker.packets_per_s, ",.0f"),
            Column("vectors/call"): _read(worker.vectors_per_call, ".4g"),
            Column("cycles/packet"): _read(worker.cycles_per_packet, ".4g"),
            Column("nodes by share of the core", left=True): ", ".join(
                f"{node.name} {_share(node.share)} ({_read(node.clocks, '.4g')} clocks)"
                for node in worker.nodes[:_MOST_NODES]
            ),
        }
        for worker in load.workers
    ]
    cpus = [
        {
            Column("processor", left=True): f"CPU {cpu.cpu}",
            Column("busy"): _share(cpu.busy),
            Column("in interrupts"): _share(cpu.on_packets),
            Column("steal"): _share(cpu.steal),
            Column("frames/s"): _read(cpu.packets_per_s, ",.0f"),
            Column("threads", left=True): ", ".join(
                f"{name} {_share(share)}" for name, share in list(cpu.threads.items())[:_MOST_THREADS]
            ),
        }
        for cpu in load.cpus
    ]
    queues = [
        {
            Column("receive queue", left=True): f"{queue.interface} {queue.queue}",
            Column("served by", left=True): _read(queue.worker_or_cpu),
            Column("frames/s"): _read(queue.packets_per_s, ",.0f"),
            Column("drops/s"): _read(queue.drops_per_s, ",.0f"),
        }
        for queue in load.queues
    ]
    # as nic-queue-usage of the FreeBSD studies: all queues of an interface together
    for name in dict.fromkeys(queue.interface for queue in load.queues):
        own = [queue.packets_per_s for queue in load.queues if queue.interface == name]
        if len(own) > 1 and None not in own:
            total = sum(rate or 0.0 for rate in own)
            queues.append({Column("receive queue", left=True): f"{name} all", Column("frames/s"): _read(total, ",.0f")})
    rising = {name: _read(rate, ",.0f") for name, rate in load.counters.items()}
    more = {"Condition": load.condition, "Counters that rose, per second": rising, "Not read": load.unread}
    sections = [Section("", [Note(rates), *(Table.of(busy) for busy in (workers, cpus, queues) if busy)])]
    sections += [Section(name, [Facts(known)]) for name, known in more.items() if known]
    return Document(title, sections, simulated)


def _read(value: str | float | None, form: str = "") -> str:
    return "not read" if value is None or value == "" else f"{value:{form}}"


def _share(share: float | None) -> str:
    return _read(share, ".1%").replace("%", " %")
