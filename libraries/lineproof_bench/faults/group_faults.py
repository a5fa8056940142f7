"""Faults of packet groups: frames out of order, late or twice, and statistics that are not reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from lineproof.simulation.faults import InjectedFault

from ..backend import FlowCounters, LatencyCounters, StreamTraffic
from ..model.injected_loss import LossyModel
from .added_frames import AddedFrames

OVERTAKEN, LATE, DUPLICATED = "overtaken", "late", "twice"
_COUNTED_AS = {"reordered frames": OVERTAKEN, "late frames": LATE, "duplicated frames": DUPLICATED}

HOW_LATE = 1_500_000
"""µs: a late frame's latency, beyond TRex's coarse histogram and within the wait for frames in transit."""


class GroupFaults:
    """Reads the groups of *model* under the *active* faults; *added*: what these add, from :meth:`counted`."""

    def __init__(self, model: LossyModel, added: AddedFrames, active: Callable[[], Sequence[InjectedFault]]) -> None:
        self._model, self._added, self._active = model, added, active
        self._groups: set[int] = set()

    def begin(self, fault: InjectedFault) -> None:
        """*fault* happens from now on."""
        self._begin_adding(fault, self._groups)

    def expect(self, traffic: Mapping[int, tuple[StreamTraffic, ...]]) -> None:
        """*traffic* is about to be sent."""
        rules = (stream.flow_stats for streams in traffic.values() for stream in streams)
        new = {int(rule["stream_id"]) for rule in rules if rule} - self._groups
        self._groups |= new
        for fault in self._active():
            self._begin_adding(fault, new)

    def _begin_adding(self, fault: InjectedFault, groups: Iterable[int]) -> None:
        if name := _COUNTED_AS.get(fault.kind):
            for group in groups:
                self._added.begin(fault, (name, group), fault.share or 0.0)

    def counted(self, group: int) -> int:
        """Frames of *group* that arrived at any port."""
        return sum(frames for frames, _ in self._model.flow_counters(group).received.values())

    def forget(self, group: int) -> None:
        """Set the counts of *group* to zero."""
        self._model.forget(group)
        for name in _COUNTED_AS.values():
            self._added.forget((name, group))

    # -- what is reported

    def _reporting(self) -> str | None:
        return next((fault.shows for fault in reversed(self._active()) if fault.shows), None)

    def reported(self, groups: list[int]) -> list[int]:
        """Return those of *groups* that an answer reports."""
        match self._reporting():
            case "nothing":
                return []
            case "some":
                return groups[::2]
        return groups

    def flow_counters(self, group: int) -> FlowCounters:
        """With the duplicated frames, at the port where most arrived."""
        if self._reporting() == "zeros":
            return FlowCounters()
        found, duplicated = self._model.flow_counters(group), self._added.of((DUPLICATED, group))
        if not duplicated or not found.received:
            return found
        port = max(found.received, key=lambda port: found.received[port][0])
        frames, size = found.received[port]
        more = frames + duplicated, size + duplicated * (size // frames if frames else 0)
        return replace(found, received={**found.received, port: more})

    def latency_counters(self, group: int) -> LatencyCounters:
        """With the late, the overtaken and the duplicated frames. A late frame is overtaken by others."""
        if self._reporting() == "zeros":
            return LatencyCounters()
        found = self._model.latency_counters(group)
        overtaken, late, duplicated = (self._added.of((name, group)) for name in (OVERTAKEN, LATE, DUPLICATED))
        if late:
            found = _with_late_frames(found, late)
        return replace(found, out_of_order=overtaken + late, duplicates=found.duplicates + duplicated)


def _with_late_frames(found: LatencyCounters, late: int) -> LatencyCounters:
    """*late* of the fastest frames of *found* took :data:`HOW_LATE`."""
    histogram, left = dict(found.histogram), late
    for key in sorted(histogram):
        taken = min(left, histogram[key])
        histogram[key] -= taken
        left -= taken
    frames = sum(found.histogram.values())
    average = found.average + (HOW_LATE - found.average) * late / frames if frames else 0.0
    return replace(
        found,
        average=average,
        total_max=max(found.total_max, HOW_LATE),
        last_max=max(found.last_max, HOW_LATE),
        histogram={**histogram, HOW_LATE: histogram.get(HOW_LATE, 0) + late},
    )
