"""Packet groups on the wire: which mark each has, what its senders and receivers counted, and how late it came."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from linerate.errors import TestbedError
from linerate.units import FCS

from ..backend import FlowCounters, LatencyCounters, StreamTraffic
from . import marks
from .counting import FrameCounter
from .frames import WireStream
from .latency import LatencyReader
from .marks import MarkKind, Place
from .protocol import SLOTS, SenderLoad
from .tracker import Tracker

LOOKS = 256
"""Frames of a stream that are looked at when its field engine writes where it is counted by."""
AT_ONCE = 4000
"""Latency frames that are read at most in passing: some 40 ms of work."""
ALL = 100_000
"""More than can be waiting to be read."""
FASTEST = 20_000.0
"""Latency frames/s of all ports together: what is sure to be read in time, each for itself, on a busy machine."""
SETTLED = 60.0
"""Seconds after which the kernel's counts are taken over, long before 32 bits are full."""
STARTS = 255

GroupCounts = tuple[int, int]


@dataclass(slots=True)
class _Group:
    rule: str
    number: int
    """Among the groups of its rule."""
    port: int = -1
    """Which sends it, of a latency group."""
    slots: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """{(port, L2 bytes with FCS): (slot, frames counted there before)}."""
    kinds: dict[MarkKind, dict[int, GroupCounts]] = field(default_factory=dict)
    """What ports had counted of each kind before."""
    tracker: Tracker = field(default_factory=Tracker)
    received: dict[int, list[int]] = field(default_factory=dict)


class FlowGroups:
    """The groups of all *ports*: {index: (namespace, interface)}.

    *sent* tells how many frames a port's members counted in a slot; *later* how many ns after its stamp a latency frame
    of a port, group number, start and sequence number was really sent, if that is known.
    """

    def __init__(
        self,
        ports: Mapping[int, tuple[str | None, str]],
        sent: Callable[[int, int], int],
        later: Callable[[int, int, int, int], int | None],
    ) -> None:
        self._ports, self._sent, self._later = ports, sent, later
        self._usual = dict.fromkeys(ports, 0)
        """The last answer of *later* for each port."""
        self._groups: dict[int, _Group] = {}
        self._counters = {port: FrameCounter(*place) for port, place in ports.items()}
        self._readers: dict[int, LatencyReader] = {}
        self._free = list(reversed(range(SLOTS)))
        self._last: dict[int, SenderLoad] = {}
        """The latency streams that each port was told last."""
        self._starts = 0
        self._settled = time.monotonic()

    def prepare(
        self, traffic: Mapping[int, tuple[StreamTraffic, ...]], idle: bool
    ) -> dict[int, tuple[SenderLoad, SenderLoad]]:
        """What the plain and the latency senders of each port are to send; receivers are ready on return.

        *idle*: whether no other port sends. Raises TestbedError for a stream that cannot be counted as it asks.
        """
        self._check(traffic, idle)
        grouped = any(stream.flow_stats for streams in traffic.values() for stream in streams)
        self.collect()
        if idle and not grouped:
            # nothing shall be slower for what nobody looks at any more
            self.close()
        if grouped:
            self._starts = self._starts % STARTS + 1
        found = {port: self._loads(port, streams) for port, streams in traffic.items()}
        self._receive(traffic)
        for port, (_, timed) in found.items():
            self._last[port] = timed
            self._expect(timed)
        return found

    def change(self, port: int, streams: tuple[StreamTraffic, ...]) -> tuple[SenderLoad, SenderLoad | None]:
        """As :meth:`prepare` for a port that sends; None for latency streams that stay as they are."""
        self._check({port: streams}, idle=False)
        plain, timed = self._loads(port, streams)
        last = self._last.get(port, SenderLoad())
        if replace(timed, start=last.start) == last:
            return plain, None
        self.collect()
        self._starts = self._starts % STARTS + 1
        timed = self._last[port] = replace(timed, start=self._starts)
        self._receive({port: streams})
        self._expect(timed)
        return plain, timed

    def _check(self, traffic: Mapping[int, tuple[StreamTraffic, ...]], idle: bool) -> None:
        rows = [stream for streams in traffic.values() for stream in streams if _rule(stream) == "latency"]
        if not idle:
            rows += [stream for port, load in self._last.items() if port not in traffic for stream in load.streams]
        if (pps := sum(stream.pps for stream in rows)) > FASTEST:
            raise TestbedError(
                f"latency streams ask for {pps:.0f} frames/s together; expected {FASTEST:.0f} at most, each of"
                " which is stamped and read for itself, and a stream with the rule 'stats' for the rest"
            )

    def _expect(self, timed: SenderLoad) -> None:
        for group in self._groups.values():
            if group.rule == "latency" and group.number in timed.groups:
                group.tracker.begin(timed.start)

    def _loads(self, port: int, streams: tuple[StreamTraffic, ...]) -> tuple[SenderLoad, SenderLoad]:
        plain = [stream for stream in streams if _rule(stream) != "latency"]
        timed = [stream for stream in streams if _rule(stream) == "latency"]
        if not timed and not any(stream.flow_stats for stream in plain):
            return SenderLoad(tuple(self._unmarked(stream) for stream in plain)), SenderLoad()
        for stream in timed:
            group = self._group(stream)
            if group.port not in (-1, port):
                raise TestbedError(
                    f"latency stream {stream.stream_id} has a packet group that port {group.port} sends already; right"
                    " would be one of its own"
                )
            group.port = port
        groups = tuple(self._group(stream).number for stream in timed)
        loads = [
            SenderLoad(
                tuple(self._marked(port, stream) for stream in rows), tuple(self._slot(port, stream) for stream in rows)
            )
            for rows in (plain, timed)
        ]
        return loads[0], replace(loads[1], groups=groups, start=self._starts)

    def _unmarked(self, stream: StreamTraffic) -> StreamTraffic:
        return replace(stream, frame=marks.plain(stream.frame)) if self._groups else stream

    def _marked(self, port: int, stream: StreamTraffic) -> StreamTraffic:
        if stream.flow_stats is None:
            return self._unmarked(stream)
        group, place = self._group(stream), marks.place_of(stream.frame)
        if place is None:
            raise TestbedError(
                f"stream {stream.stream_id} has flow statistics but neither an IPv4 nor an IPv6 header that could be"
                " marked; expected one behind at most two VLAN tags or four MPLS labels"
            )
        latency = group.rule == "latency"
        mark = marks.LATENCY if latency else marks.BASE + group.number
        if latency and (room := marks.room(stream.frame, place)) < marks.HEADER.size:
            raise TestbedError(
                f"latency stream {stream.stream_id} has room for {room} bytes behind its headers; expected"
                f" {marks.HEADER.size} or more, which hold its number and time"
            )
        found = replace(stream, frame=marks.marked(stream.frame, place, mark))
        kinds = _kinds(found, place)
        if any(kind.identification != mark for kind in kinds):
            raise TestbedError(
                f"the field engine of stream {stream.stream_id} writes the IPv4 identification or IPv6 flow label, by"
                " which its packet group is told; expected to leave these alone or to ask for no flow statistics"
            )
        if not latency:
            for kind in [*kinds, MarkKind(place.version, mark, None)]:
                if kind not in group.kinds:
                    group.kinds[kind] = {port: counter.total(kind) for port, counter in self._counters.items()}
        return found

    def _slot(self, port: int, stream: StreamTraffic) -> int:
        if stream.flow_stats is None:
            return -1
        group, key = self._group(stream), (port, len(stream.frame) + FCS)
        if key not in group.slots:
            if not self._free:
                raise TestbedError(f"there are more than {SLOTS} packet groups and frame lengths to be counted by")
            slot = self._free.pop()
            group.slots[key] = slot, self._sent(port, slot)
        return group.slots[key][0]

    def _group(self, stream: StreamTraffic) -> _Group:
        rule, name = _rule(stream), int((stream.flow_stats or {})["stream_id"])
        group = self._groups.get(name)
        if group is None:
            used = {row.number for row in self._groups.values() if row.rule == rule}
            most = marks.LATENCY_GROUPS if rule == "latency" else marks.GROUPS
            number = next((number for number in range(most) if number not in used), None)
            if number is None:
                raise TestbedError(f"there are more than {most} packet groups with the rule '{rule}'")
            group = self._groups[name] = _Group(rule, number)
        if group.rule != rule:
            raise TestbedError(
                f"packet group {name} has the rule '{group.rule}'; stream {stream.stream_id} asks '{rule}'"
            )
        return group

    def _receive(self, traffic: Mapping[int, tuple[StreamTraffic, ...]]) -> None:
        rules = {_rule(stream) for streams in traffic.values() for stream in streams}
        if "latency" in rules:
            for port, place in self._ports.items():
                if port not in self._readers:
                    self._readers[port] = LatencyReader(*place)
        sizes: dict[MarkKind, int] = {}
        for streams in traffic.values():
            for stream in streams:
                if _rule(stream) == "stats":
                    group, size = self._group(stream), len(stream.frame) + FCS
                    sizes |= {kind: sizes.get(kind, size) for kind in group.kinds}
        for counter in self._counters.values():
            counter.count(sizes)

    def collect(self, limit: int = AT_ONCE) -> None:
        """Take over what has been received; to be called often while latency streams are sent."""
        if self._readers:
            groups = {group.number: group for group in self._groups.values() if group.rule == "latency"}
            for port, reader in self._readers.items():
                for frame in reader.read(limit):
                    group = groups.get(frame.group)
                    if group is None:
                        continue
                    row = group.received.setdefault(port, [0, 0])
                    row[0] += 1
                    row[1] += frame.size
                    later = self._later(group.port, group.number, frame.start, frame.number)
                    if later is None:
                        later = self._usual[group.port]
                    self._usual[group.port] = later
                    usec = (frame.arrived - frame.sent - later) / 1000
                    group.tracker.add(frame.start, frame.number, usec, frame.arrived / 1e9)
        now = time.monotonic()
        if now - self._settled > SETTLED:
            self._settled = now
            for counter in self._counters.values():
                counter.settle()
            for reader in self._readers.values():
                reader.unread()

    def flow_counters(self, group: int) -> FlowCounters:
        """Frames and bytes of *group* up to this moment."""
        found = self._groups.get(group)
        if found is None:
            return FlowCounters()
        self.collect(ALL)
        sent: dict[int, GroupCounts] = {}
        for (port, size), (slot, before) in found.slots.items():
            frames = self._sent(port, slot) - before
            sent[port] = _sum(sent.get(port, (0, 0)), (frames, frames * size))
        received = {port: (row[0], row[1]) for port, row in found.received.items()}
        for kind, bases in found.kinds.items():
            for port, base in bases.items():
                total = self._counters[port].total(kind)
                received[port] = _sum(received.get(port, (0, 0)), (total[0] - base[0], total[1] - base[1]))
        return FlowCounters(sent, received)

    def latency_counters(self, group: int) -> LatencyCounters:
        """Latency of *group* up to this moment."""
        self.collect(ALL)
        found = self._groups.get(group)
        return found.tracker.counters() if found else LatencyCounters()

    def forget(self, group: int) -> None:
        """Begin to count *group* anew. What is still under way of it is counted nowhere."""
        self.collect(ALL)
        found = self._groups.pop(group, None)
        if found is not None:
            self._free += [slot for slot, _ in found.slots.values()]

    def close(self) -> None:
        """Receive no longer; what was counted stays."""
        for reader in self._readers.values():
            reader.unread()
            reader.close()
        self._readers.clear()
        for counter in self._counters.values():
            counter.close()


def _rule(stream: StreamTraffic) -> str:
    return str(stream.flow_stats["rule_type"]) if stream.flow_stats else ""


def _sum(first: GroupCounts, second: GroupCounts) -> GroupCounts:
    return first[0] + second[0], first[1] + second[1]


def _kinds(stream: StreamTraffic, place: Place) -> set[MarkKind]:
    """The kinds of a stream's frames: of all, or of the first ones when its field engine writes what they differ by."""
    written = (range(row.offset, row.offset + row.size) for row in stream.variables)
    if not any(_overlap(row, place.fields) for row in written):
        return {marks.kind_of(stream.frame, place)}
    frames = WireStream(stream)
    rows = frames.rows(np.arange(min(frames.period, LOOKS), dtype=np.int64))
    return {marks.kind_of(row.tobytes(), place) for row in np.unique(rows, axis=0)}


def _overlap(first: Iterable[int], second: Sequence[int]) -> bool:
    return any(at in second for at in first)
