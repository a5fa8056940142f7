"""The cost of a packet on a VPP router, in cycles, from ``show runtime``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from .telemetry import NodeRuntime, Telemetry

FEW_PACKETS = 0.01
"""Share of all packets up to which a thread's polling is idle: it would be the same without the traffic."""


DROPPING = ("drop", "error-drop")
"""The nodes at which every dropped packet ends, one after the other (VPP, src/vnet/interface_output.c)."""


@dataclass(frozen=True, slots=True)
class PacketCost:
    """Cycles that a *thread* (or all) spent since ``clear runtime``.

    ``graph``, ``input``: TSC cycles of the graph nodes and of the input nodes, idle polling included. ``received``:
    vectors of its input nodes; ``handled``: the same, or of the busiest node if another thread hands over the frames.
    ``vectors`` and ``calls``: of its busiest graph node. ``dropped``: packets that it did not forward.
    """

    thread: str
    received: int
    handled: int
    graph: float
    input: float
    vectors: int = 0
    calls: int = 0
    dropped: int = 0

    @property
    def packets(self) -> int:
        """The packets that the cycles are shared by; a packet that is handed over counts once, where it is received."""
        return self.received or self.handled

    @property
    def total(self) -> float:
        """Cycles per packet, the input nodes' polling included: about clock / packet rate of a polling thread."""
        return (self.graph + self.input) / self.packets

    @property
    def without_input(self) -> float:
        """Cycles per packet without the input nodes."""
        return self.graph / self.packets

    @property
    def vectors_per_call(self) -> float | None:
        """Packets per call of the busiest graph node; None if no graph node saw one.

        Not of the input node, whose calls are mostly looks at empty queues.
        """
        return self.vectors / self.calls if self.calls else None

    def figures(self) -> dict[str, float]:
        """Return the figures by name: cycles per packet, with and without the input nodes, and packets per call."""
        costs = {"cycles_per_packet": self.total, "cycles_per_packet_without_input": self.without_input}
        return costs if self.vectors_per_call is None else {**costs, "vectors_per_call": self.vectors_per_call}


_COUNTED = tuple(item.name for item in fields(PacketCost) if item.name != "thread")


def is_input(node: NodeRuntime) -> bool:
    """Return whether *node* receives frames: it polls or waits for interrupts (graph nodes are ``active``)."""
    return node.state.startswith(("polling", "interrupt"))


def packet_costs(telemetry: Telemetry) -> tuple[PacketCost, ...]:
    """Return the cost on each thread that saw packets; of one that saw FEW_PACKETS of all at most, without its polling.

    Cycles are ``sum(clocks_i * vectors_i)`` over the nodes *i* with vectors. If every packet visits every node, cycles
    per packet are the sum of the Clocks column (as in the published Netgate 6100 figures); the weights keep it right
    when two directions share a thread and have an output node each. An input node that found nothing has been polled
    all the same: its clocks are those of a call (VPP, src/vlib/node_cli.c).
    """
    costs = [
        _cost(thread, [node for node in telemetry.runtime if node.thread == thread])
        for thread in dict.fromkeys(node.thread for node in telemetry.runtime if node.vectors > 0)
    ]
    few = FEW_PACKETS * sum(cost.packets for cost in costs)
    return tuple(replace(cost, input=0.0) if cost.packets <= few else cost for cost in costs)


def _cost(thread: str, nodes: Sequence[NodeRuntime]) -> PacketCost:
    inputs, graph = [node for node in nodes if is_input(node)], [node for node in nodes if not is_input(node)]
    received = sum(node.vectors for node in inputs)
    busiest = max(graph, key=lambda node: node.vectors, default=None)
    vectors = busiest.vectors if busiest else 0
    return PacketCost(
        thread,
        received,
        received or vectors,
        sum(node.clocks * node.vectors for node in graph),
        sum(node.clocks * (node.vectors or node.calls) for node in inputs),
        vectors,
        busiest.calls if busiest and vectors else 0,
        max((node.vectors for node in graph if node.name in DROPPING), default=0),
    )


def together(costs: Iterable[PacketCost]) -> PacketCost | None:
    """Return the sum of *costs*: of several threads, or of one in several readings. None if there is none."""
    rows = tuple(costs)
    if not rows:
        return None
    return PacketCost("all", *(sum(getattr(row, name) for row in rows) for name in _COUNTED))


def cost_figures(readings: Sequence[Sequence[PacketCost]]) -> dict[str, float]:
    """Return figures of all *readings*, each the costs by thread: over all threads, and of each (``…_vpp_wk_0``)."""
    rows = [cost for reading in readings for cost in reading]
    if (whole := together(rows)) is None:
        return {}
    costs = {**whole.figures(), "runtime_packets": float(whole.packets)}
    for thread in dict.fromkeys(row.thread for row in rows):
        if own := together(row for row in rows if row.thread == thread):
            costs |= {f"{name}_{thread}": value for name, value in own.figures().items()}
    return costs


_COUNTS = "runtime"
"""Readings of a trial, as ``runtime.vpp_wk_0.graph``: the fields of the cost on each thread."""


def cost_readings(costs: Sequence[PacketCost]) -> dict[str, float]:
    """Return the *costs* of one reading as readings of its trial."""
    return {f"{_COUNTS}.{cost.thread}.{name}": float(getattr(cost, name)) for cost in costs for name in _COUNTED}


def read_costs(readings: Mapping[str, float]) -> tuple[PacketCost, ...]:
    """Return the costs that the *readings* of a trial hold; none where there is no fit reading."""
    costs: dict[str, dict[str, float]] = {}
    for key, value in readings.items():
        if key.startswith(f"{_COUNTS}."):
            thread, _, name = key.removeprefix(f"{_COUNTS}.").rpartition(".")
            costs.setdefault(thread, {})[name] = value
    return tuple(PacketCost(thread, **values) for thread, values in costs.items())  # type: ignore[arg-type]
