"""The cost of a packet on a VPP router, in cycles."""

from __future__ import annotations

from dataclasses import dataclass

from ..counts.telemetry import NodeRuntime, Telemetry


@dataclass(frozen=True, slots=True)
class PacketCost:
    """Cost on one thread (or all). ``work``, ``polling`` in TSC cycles per packet; ``packets`` since ``clear runtime``.

    ``polling`` is the input node's cost. Below saturation most of it is idle polling, so it is separate.
    """

    thread: str
    packets: int
    work: float
    polling: float

    @property
    def total(self) -> float:
        """Cycles per packet with the input node: clock / packet rate of a polling thread."""
        return self.work + self.polling


def is_input(node: NodeRuntime) -> bool:
    """Whether *node* receives frames: it polls or waits for interrupts (graph nodes are ``active``)."""
    return node.state.startswith(("polling", "interrupt"))


def cycles_per_packet(telemetry: Telemetry, traffic: float | None = None) -> tuple[PacketCost, ...]:
    """Cost per packet of each thread that saw packets, from ``show runtime``.

    ``work = sum(clocks_i * vectors_i) / packets`` over the nodes *i* with vectors other than input nodes, ``polling``
    likewise over the input nodes; ``packets`` are the vectors of the input nodes, or of the busiest node if another
    thread hands over the frames. If every packet visits every node, this is the sum of the Clocks column (as in the
    published Netgate 6100 figures); the weights keep it right when two directions share a thread and have an output
    node each.

    *traffic*: s during which frames came, if the reading covers more time. A polling thread spends the same cycles per
    second with and without frames, so the idle share of the time is subtracted from its polling.
    """
    idle = 0.0
    if traffic is not None and telemetry.since_clear > traffic:
        idle = 1 - traffic / telemetry.since_clear
    found = []
    for thread in dict.fromkeys(node.thread for node in telemetry.runtime):
        nodes = [node for node in telemetry.runtime if node.thread == thread and node.vectors > 0]
        if nodes:
            packets = sum(node.vectors for node in nodes if is_input(node)) or max(node.vectors for node in nodes)
            work = sum(node.clocks * node.vectors for node in nodes if not is_input(node))
            polling = sum(node.clocks * node.vectors for node in nodes if is_input(node))
            if any(node.state.startswith("polling") for node in nodes):
                polling = max(0.0, polling - idle * (work + polling))
            found.append(PacketCost(thread, packets, work / packets, polling / packets))
    return tuple(found)


def mean_cost(costs: tuple[PacketCost, ...]) -> PacketCost | None:
    """The cost over all threads, weighted by packets. None if no thread saw a packet."""
    packets = sum(cost.packets for cost in costs)
    if not packets:
        return None
    work = sum(cost.work * cost.packets for cost in costs) / packets
    return PacketCost("all", packets, work, sum(cost.polling * cost.packets for cost in costs) / packets)
