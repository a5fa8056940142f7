"""Packet groups on the wire: their marks, the counts of their senders and receivers, their latency."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from lineproof.core.traffic.ip_header import IpHeaderPosition
from lineproof.errors import TestbedError
from lineproof.units import FCS

from ..backend import FlowCounters, LatencyCounters, StreamTraffic
from . import group_marks
from .counting import FrameCounter
from .frames import WireStream
from .group_marks import FrameKind
from .latency import LatencyReader, LatencyTracker
from .protocol import SLOTS, SenderLoad

SAMPLED_FRAMES = 256
"""Frames of a stream that are examined if its field engine writes into the mark."""
READ_IN_PASSING = 4000
"""The most latency frames that are read at once between requests: some 40 ms of work."""
READ_ALL = 100_000
"""More than can be waiting to be read."""
MOST_LATENCY_PPS = 20_000.0
"""Latency frames/s of all ports together that a busy machine is sure to read in time."""
COUNTS_TAKEN_OVER = 60.0
"""Seconds after which the kernel's counts are added up here, long before 32 bits are full."""
STARTS = 255

GroupCounts = tuple[int, int]


@dataclass(slots=True)
class _Group:
    rule: str
    number: int
    """Among the groups of its rule."""
    port: int = -1
    """The port that sends a latency group."""
    slots: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """{(port, L2 bytes with FCS): (slot, frames counted there before)}."""
    kinds: dict[FrameKind, dict[int, GroupCounts]] = field(default_factory=dict)
    """The counts of each port, of each kind, before."""
    tracker: LatencyTracker = field(default_factory=LatencyTracker)
    received: dict[int, list[int]] = field(default_factory=dict)


class FlowGroups:
    """The groups of all *ports*: {index: (namespace, interface)}.

    *sent*: the frames that a port's processes counted in a slot. *send_delay*: for a port, group number, start and
    sequence number, how many ns after its stamp that latency frame was really sent, if known.
    """

    def __init__(
        self,
        ports: Mapping[int, tuple[str | None, str]],
        sent: Callable[[int, int], int],
        send_delay: Callable[[int, int, int, int], int | None],
    ) -> None:
        self._ports, self._sent, self._send_delay = ports, sent, send_delay
        self._last_delay = dict.fromkeys(ports, 0)
        """The last known send delay of each port, ns."""
        self._groups: dict[int, _Group] = {}
        self._counters = {port: FrameCounter(*interface) for port, interface in ports.items()}
        self._readers: dict[int, LatencyReader] = {}
        self._free = list(reversed(range(SLOTS)))
        self._last: dict[int, SenderLoad] = {}
        """The latency streams that each port sends."""
        self._starts = 0
        self._settled = time.monotonic()

    def prepare(
        self, traffic: Mapping[int, tuple[StreamTraffic, ...]], idle: bool
    ) -> dict[int, tuple[SenderLoad, SenderLoad]]:
        """The loads of the plain and the latency senders of each port; receivers are ready on return.

        *idle*: whether no other port sends. Raises TestbedError for a stream that cannot be counted as it asks.
        """
        self._check(traffic, idle)
        grouped = any(stream.flow_stats for streams in traffic.values() for stream in streams)
        self.collect()
        if idle and not grouped:
            # no receivers without groups: they would only cost time
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
        """Do as :meth:`prepare` for a port that sends; None for latency streams that stay as they are."""
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
        if (pps := sum(stream.pps for stream in rows)) > MOST_LATENCY_PPS:
            raise TestbedError(
                f"latency streams ask for {pps:.0f} frames/s together; expected {MOST_LATENCY_PPS:.0f} at most, each of"
                " which is stamped and read by itself, and a stream with the rule 'stats' for the rest"
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
                    f"latency stream {stream.stream_id} has a packet group that port {group.port} sends already;"
                    " expected a group of its own"
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
        return replace(stream, frame=group_marks.without_mark(stream.frame)) if self._groups else stream

    def _marked(self, port: int, stream: StreamTraffic) -> StreamTraffic:
        if stream.flow_stats is None:
            return self._unmarked(stream)
        group, header = self._group(stream), group_marks.header_of(stream.frame)
        if header is None:
            raise TestbedError(
                f"stream {stream.stream_id} has flow statistics but neither an IPv4 nor an IPv6 header that could be"
                " marked; expected one behind at most two VLAN tags or four MPLS labels"
            )
        latency = group.rule == "latency"
        mark = group_marks.LATENCY if latency else group_marks.BASE + group.number
        if latency and (room := group_marks.payload_room(stream.frame, header)) < group_marks.LATENCY_HEADER.size:
            raise TestbedError(
                f"latency stream {stream.stream_id} has room for {room} bytes behind its headers; expected"
                f" {group_marks.LATENCY_HEADER.size} or more, which hold its number and time"
            )
        found = replace(stream, frame=group_marks.with_mark(stream.frame, header, mark))
        kinds = _kinds(found, header)
        if any(kind.identification != mark for kind in kinds):
            raise TestbedError(
                f"the field engine of stream {stream.stream_id} writes the IPv4 identification or IPv6 flow label,"
                " which marks its packet group; expected to leave these alone or to ask for no flow statistics"
            )
        if not latency:
            for kind in [*kinds, FrameKind(header.version, mark, None)]:
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
            most = group_marks.LATENCY_GROUPS if rule == "latency" else group_marks.GROUPS
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
            for port, interface in self._ports.items():
                if port not in self._readers:
                    self._readers[port] = LatencyReader(*interface)
        sizes: dict[FrameKind, int] = {}
        for streams in traffic.values():
            for stream in streams:
                if _rule(stream) == "stats":
                    group, size = self._group(stream), len(stream.frame) + FCS
                    sizes |= {kind: sizes.get(kind, size) for kind in group.kinds}
        for counter in self._counters.values():
            counter.count(sizes)

    def collect(self, limit: int = READ_IN_PASSING) -> None:
        """Read the latency frames received so far. To be called often while latency streams are sent."""
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
                    delay = self._send_delay(group.port, group.number, frame.start, frame.number)
                    if delay is None:
                        delay = self._last_delay[group.port]
                    self._last_delay[group.port] = delay
                    usec = (frame.arrived - frame.sent - delay) / 1000
                    group.tracker.add(frame.start, frame.number, usec, frame.arrived / 1e9)
        now = time.monotonic()
        if now - self._settled > COUNTS_TAKEN_OVER:
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
        self.collect(READ_ALL)
        sent: dict[int, GroupCounts] = {}
        for (port, size), (slot, before) in found.slots.items():
            frames = self._sent(port, slot) - before
            sent[port] = _added(sent.get(port, (0, 0)), (frames, frames * size))
        received = {port: (row[0], row[1]) for port, row in found.received.items()}
        for kind, bases in found.kinds.items():
            for port, base in bases.items():
                total = self._counters[port].total(kind)
                received[port] = _added(received.get(port, (0, 0)), (total[0] - base[0], total[1] - base[1]))
        return FlowCounters(sent, received)

    def latency_counters(self, group: int) -> LatencyCounters:
        """Latency of *group* up to this moment."""
        self.collect(READ_ALL)
        found = self._groups.get(group)
        return found.tracker.counters() if found else LatencyCounters()

    def forget(self, group: int) -> None:
        """Set the counts of *group* to zero. Its frames on the way are counted nowhere."""
        self.collect(READ_ALL)
        found = self._groups.pop(group, None)
        if found is not None:
            self._free += [slot for slot, _ in found.slots.values()]

    def close(self) -> None:
        """Stop receiving; counts stay."""
        for reader in self._readers.values():
            reader.unread()
            reader.close()
        self._readers.clear()
        for counter in self._counters.values():
            counter.close()


def _rule(stream: StreamTraffic) -> str:
    return str(stream.flow_stats["rule_type"]) if stream.flow_stats else ""


def _added(first: GroupCounts, second: GroupCounts) -> GroupCounts:
    return first[0] + second[0], first[1] + second[1]


def _kinds(stream: StreamTraffic, header: IpHeaderPosition) -> set[FrameKind]:
    """The kinds of a stream's frames: of the first SAMPLED_FRAMES if its field engine writes into the mark."""
    first, end = header.offset + 2, header.offset + 6  # identification and length
    if not any(row.offset < end and first < row.offset + row.size for row in stream.variables):
        return {group_marks.kind_of(stream.frame, header)}
    frames = WireStream(stream)
    rows = frames.rows(np.arange(min(frames.period, SAMPLED_FRAMES), dtype=np.int64))
    return {group_marks.kind_of(row.tobytes(), header) for row in np.unique(rows, axis=0)}
