"""What faults do to packet groups: frames late or twice, and statistics that are not told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from linerate.simulation.faults import InjectedFault

from ..backend import FlowCounters, LatencyCounters, StreamCounters, StreamTraffic
from .shares import Shares

LATE, TWICE = "late", "twice"
_ADDED = {"reordered frames": LATE, "duplicated frames": TWICE}


class Disorder:
    """Reads the groups of *model*; *shares* counts what faults add to them, from :meth:`counted`."""

    def __init__(self, model: StreamCounters, shares: Shares) -> None:
        self._model, self._shares = model, shares
        self._groups: set[int] = set()
        self._active: list[InjectedFault] = []

    def begin(self, fault: InjectedFault) -> None:
        """*fault* happens from now on."""
        self._active.append(fault)
        self._measure(fault, self._groups)

    def end(self, fault: InjectedFault) -> None:
        """*fault* is over."""
        self._active.remove(fault)

    def met(self, traffic: Mapping[int, tuple[StreamTraffic, ...]]) -> None:
        """*traffic* is about to be sent."""
        rules = (stream.flow_stats for streams in traffic.values() for stream in streams)
        new = {int(rule["stream_id"]) for rule in rules if rule} - self._groups
        self._groups |= new
        for fault in self._active:
            self._measure(fault, new)

    def _measure(self, fault: InjectedFault, groups: Iterable[int]) -> None:
        if name := _ADDED.get(fault.kind):
            for group in groups:
                self._shares.begin(fault, (name, group), fault.share or 0.0)

    def counted(self, group: int) -> int:
        """Frames of *group* that arrived, wherever."""
        return sum(frames for frames, _ in self._model.flow_counters(group).received.values())

    def forget(self, group: int) -> None:
        """Begin to count *group* anew."""
        self._model.forget(group)
        for name in (LATE, TWICE):
            self._shares.forget((name, group))

    # -- what is seen

    def _shows(self) -> str | None:
        return next((fault.shows for fault in reversed(self._active) if fault.shows), None)

    def shown(self, groups: list[int]) -> list[int]:
        """Those of *groups* that an answer tells of."""
        match self._shows():
            case "nothing":
                return []
            case "some":
                return groups[::2]
        return groups

    def flow_counters(self, group: int) -> FlowCounters:
        """With the frames that came twice, at the port where most arrived."""
        if self._shows() == "zeros":
            return FlowCounters()
        found, twice = self._model.flow_counters(group), self._shares.of((TWICE, group))
        if not twice or not found.received:
            return found
        port = max(found.received, key=lambda port: found.received[port][0])
        frames, size = found.received[port]
        more = frames + twice, size + twice * (size // frames if frames else 0)
        return replace(found, received={**found.received, port: more})

    def latency_counters(self, group: int) -> LatencyCounters:
        """With the frames that came late or twice."""
        if self._shows() == "zeros":
            return LatencyCounters()
        late, twice = (self._shares.of((name, group)) for name in (LATE, TWICE))
        return replace(self._model.latency_counters(group), out_of_order=late, duplicates=twice)
