"""Telemetry of the modelled router's cores: VPP's nodes, or the frames and busy time of a kernel's CPUs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..state import NodeState, ThreadState
from .forwarding import Forwarding, placement
from .schema import RouterModel, Vectors

GRAPH = {
    "ethernet-input": 0.12,
    "ip4-input-no-checksum": 0.13,
    "ip4-lookup": 0.18,
    "ip4-load-balance": 0.10,
    "ip4-rewrite": 0.19,
    "-output": 0.06,
    "-tx": 0.22,
}
"""The nodes after the input node that a forwarded frame visits, with their shares of the cycles (together 1)."""


@dataclass(slots=True)
class _Core:
    frames: float = 0.0
    calls: float = 0.0
    cycles: float = 0.0
    busy: float = 0.0
    idle: float = 0.0
    exits: defaultdict[int | None, float] = field(default_factory=lambda: defaultdict(float))
    calls_of: defaultdict[int | None, float] = field(default_factory=lambda: defaultdict(float))
    sent: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))


class ModelTelemetry:
    """Sums over time of what the workers of *model* did."""

    def __init__(self, model: RouterModel) -> None:
        self._model = model
        self._seconds = 0.0
        self._cores = [_Core() for _ in range(model.workers)]

    def use(self, model: RouterModel) -> None:
        """From now on it is *model*, with as many workers."""
        self._model = model

    def clear(self) -> None:
        """Set all sums to zero."""
        self._seconds = 0.0
        self._cores = [_Core() for _ in range(self._model.workers)]

    def add(self, forwarding: Forwarding, seconds: float) -> None:
        """For *seconds* the workers did as *forwarding* says."""
        self._seconds += seconds
        for core, load in zip(self._cores, forwarding.workers, strict=False):
            core.frames += load.pps * seconds
            core.calls += load.pps / load.vector * seconds
            core.cycles += load.pps * load.cycles * seconds
            # each grows by itself: a difference of two sums may fall by its rounding
            core.busy += min(1.0, load.busy) * seconds
            core.idle += max(0.0, 1.0 - load.busy) * seconds
            for direction, pps in load.exits.items():
                core.exits[direction] += pps * seconds
                core.calls_of[direction] += pps / load.vector * seconds
            for out, pps in load.sent.items():
                core.sent[out] += pps * seconds

    def threads(self, interfaces: Sequence[str], kind: str) -> tuple[ThreadState, ...]:
        """The workers' threads for software of *kind* (``vpp``, ``linux``, ``freebsd``)."""
        vectors = self._model.software.vectors
        found = []
        for number, (core, queues) in enumerate(zip(self._cores, placement(self._model, len(interfaces)), strict=True)):
            named = tuple((interfaces[port], queue) for port, queue in queues)
            nodes = self._nodes(core, interfaces, vectors) if vectors and named else ()
            name, lcore = (f"vpp_wk_{number}", number + 1) if kind == "vpp" else (f"cpu{number}", number)
            found.append(ThreadState(name, lcore, named, nodes, round(core.frames), core.busy, core.idle))
        return tuple(found)

    def _nodes(self, core: _Core, interfaces: Sequence[str], vectors: Vectors) -> tuple[NodeState, ...]:
        cost, clock = self._model.software.cost, self._model.clock_hz
        frames = round(core.frames)
        own_input = cost.input * core.frames
        graph = max(0.0, core.cycles - own_input)
        # a polling worker never rests: the time that the graph leaves goes into looks at empty queues
        idle = max(0.0, clock * self._seconds - core.cycles)
        looks = idle / (vectors.poll + vectors.loop)
        polls = round(core.calls + looks)
        nodes = [NodeState(vectors.input, "polling", polls, frames, 0, own_input + looks * vectors.poll)]
        if not frames:
            return tuple(nodes)
        for name, share in GRAPH.items():
            if not name.startswith("-"):
                nodes.append(NodeState(name, "active", max(1, round(core.calls)), frames, 0, share * graph))
                continue
            for direction, handed in core.exits.items():
                if direction is not None and round(handed):
                    calls = max(1, round(core.calls_of[direction]))
                    clocks = share * graph * handed / core.frames
                    # what finds no free slot in the sending ring is dropped in the last node
                    vectors_of = round(core.sent[direction] if name == "-tx" else handed)
                    nodes.append(NodeState(interfaces[direction] + name, "active", calls, vectors_of, 0, clocks))
        unrouted = core.exits[None]
        if round(unrouted):
            calls = max(1, round(core.calls_of[None]))
            nodes.append(NodeState("error-drop", "active", calls, round(unrouted), 0, 0.0))
        return tuple(nodes)
