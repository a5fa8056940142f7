"""The carrier of real frames behind the embedded TRex server: kernel interfaces, one sending process per port.

All counts of ports are the kernel's own interface counters, so they agree with ``ip -s link`` to the frame. Packet
groups of latency streams are counted as well, frame by frame, with their order and their latency; streams that ask for
counts without latency are sent like all others, and counted with their port.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lineproof.core.traffic.ip_header import ip_header
from lineproof.errors import TestbedError
from lineproof.units import FCS

from ..backend import (
    WINDOW,
    Backend,
    CapturedFrame,
    FlowCounters,
    LatencyCounters,
    PortCounters,
    PortDescription,
    StreamTraffic,
)
from .linux import FrameCapture, LinkReader, Receiver
from .protocol import LATENCY_GROUPS, LATENCY_HEADER, MAGIC, SenderLoad, SenderProcess, SenderProcesses, SentProbes

DRIVER = "lineproof_wire"

SENDER_PPS = 400_000.0
"""Frames/s for one sending process; faster traffic is shared among processes if there are CPUs."""

MOST_SENDERS = 4
"""The most sending processes of a port."""

START_DELAY = 0.003
"""Seconds from the moment that the last process is ready to the common start."""

_HEADERS = 18
"""Bytes of a frame beyond the interface's MTU: the Ethernet header and a VLAN tag."""


@dataclass(frozen=True, slots=True)
class WirePort(PortDescription):
    """A generator port: an *interface* of the namespace at *netns* (None: this one), with a nominal speed."""

    speed_bps: float = 10e9
    driver: str = DRIVER
    netns: str | None = None


class WireBackend(Backend):
    """Sends real frames from *ports* and counts with the kernel. Linux, root."""

    def __init__(self, ports: Sequence[WirePort]) -> None:
        self._ports = tuple(ports)
        self._captures: dict[int, FrameCapture] = {}
        with contextlib.ExitStack() as opened:
            self._readers = [
                opened.enter_context(contextlib.closing(LinkReader(port.netns, port.interface))) for port in self._ports
            ]
            # a port may send with every CPU when it sends alone
            plain = [False] * min(MOST_SENDERS, len(os.sched_getaffinity(0)))
            self._processes = SenderProcesses(
                [(port.index, port.netns, port.interface, timed) for port in self._ports for timed in (*plain, True)]
            )
            opened.callback(self._processes.close)
            self._active = {port.index: self._processes.of(port.index)[:1] for port in self._ports}
            self._flows = FlowGroups(
                {port.index: (port.netns, port.interface) for port in self._ports},
                {port.index: self._processes.of(port.index)[-1].probes for port in self._ports},
            )
            opened.callback(self._flows.close)
            self._first = [reader.read() for reader in self._readers]
            self._opened = opened.pop_all()
        self._used = (time.monotonic(), self._seconds())

    @property
    def ports(self) -> tuple[PortDescription, ...]:
        return self._ports

    @property
    def sender(self) -> int:
        """Process id of the senders' parent."""
        return self._processes.parent

    def start(self, traffic: Mapping[int, tuple[StreamTraffic, ...]], duration: float | None) -> None:
        """Begin sending on each port of *traffic* at the same moment, for *duration* s (None: until stopped).

        Raises TestbedError for a frame that the interface cannot carry, or a stream that cannot be counted by its
        packet group.
        """
        traffic = {port: streams for port, streams in traffic.items() if streams}
        for port, streams in traffic.items():
            self._check(port, streams)
        others = sum(self.sending(other.index) for other in self._ports if other.index not in traffic)
        loads = self._flows.prepare(traffic, idle=not others)
        began: list[SenderProcess] = []
        try:
            for port, (plain, timed) in loads.items():
                self._active[port] = self._choose(port, plain, timed, len(traffic) + others)
                for process, order in self._orders(port, plain, timed):
                    process.number += 1
                    began.append(process)
                    process.send({**order, "op": "load", "duration": duration, "number": process.number})
            for process in began:
                process.answer()
        except TestbedError:
            for process in began:
                process.number = min(process.number, process.status[0])
            for port in traffic:
                with contextlib.suppress(TestbedError):
                    self.stop(port)
            raise
        _command_all([(process, {"op": "go", "at": time.monotonic() + START_DELAY}) for process in began])

    def _choose(self, port: int, plain: SenderLoad, timed: SenderLoad, sending: int) -> tuple[SenderProcess, ...]:
        """Return the processes that send: as few as the rate needs, at most this port's part of the CPUs."""
        *own, of_probes = self._processes.of(port)
        needed = math.ceil(sum(stream.pps for stream in plain.streams) / SENDER_PPS)
        least = 0 if timed.streams and not plain.streams else 1
        return (*own[: max(least, min(needed, len(own) // max(1, sending)))], *[of_probes] * bool(timed.streams))

    def _orders(
        self, port: int, plain: SenderLoad, timed: SenderLoad | None
    ) -> list[tuple[SenderProcess, dict[str, Any]]]:
        """Return what each process that sends gets to send; without *timed* that of latency streams nothing."""
        senders = [process for process in self._active[port] if not process.timed]
        orders: list[tuple[SenderProcess, dict[str, Any]]] = [
            (process, {"load": plain, "share": share, "shares": len(senders)}) for share, process in enumerate(senders)
        ]
        return orders + [(process, {"load": timed}) for process in self._active[port] if process.timed and timed]

    def _check(self, port: int, streams: tuple[StreamTraffic, ...]) -> None:
        room = self._readers[port].read().mtu + _HEADERS
        for stream in streams:
            if not 14 <= len(stream.frame) <= room:
                raise TestbedError(
                    f"stream {stream.stream_id} has frames of {len(stream.frame)} bytes without FCS;"
                    f" interface '{self._ports[port].interface}' carries 14 to {room}"
                )

    def update(self, port: int, streams: tuple[StreamTraffic, ...]) -> None:
        if self.sending(port):
            self._check(port, streams)
            # a latency stream keeps its rate
            plain = SenderLoad(tuple(stream for stream in streams if not stream.is_latency))
            order = {"op": "update", "at": time.monotonic() + START_DELAY}
            _command_all([(process, {**own, **order}) for process, own in self._orders(port, plain, None)])

    def stop(self, port: int) -> None:
        """Stop sending; on return no more frames leave. Harmless on an idle port."""
        _command_all([(process, {"op": "stop"}) for process in self._processes.of(port)])

    def sending(self, port: int) -> bool:
        # the server asks every few ms while a port sends: often enough to read what arrives
        self._flows.collect()
        for capture in self._captures.values():
            capture.look()
        return any(process.busy for process in self._active[port])

    def counters(self, port: int) -> PortCounters:
        """Return the kernel's counts since the backend started. ``queue_full``: refused by the peer, so not sent."""
        now, first = self._readers[port].read(), self._first[port]
        received, sent = now.rx_packets - first.rx_packets, now.tx_packets - first.tx_packets
        return PortCounters(
            opackets=sent,
            ipackets=received,
            obytes=now.tx_bytes - first.tx_bytes + FCS * sent,
            ibytes=now.rx_bytes - first.rx_bytes + FCS * received,
            oerrors=now.tx_errors - first.tx_errors,
            ierrors=now.rx_errors - first.rx_errors,
            queue_full=now.tx_dropped - first.tx_dropped,
        )

    def flow_counters(self, group: int) -> FlowCounters:
        return self._flows.flow_counters(group)

    def latency_counters(self, group: int) -> LatencyCounters:
        """Return the latency of a packet group: from the kernel's sending of a frame to its receiving it."""
        return self._flows.latency_counters(group)

    def forget(self, group: int) -> None:
        self._flows.forget(group)

    def link_up(self, port: int) -> bool:
        """Return whether the interface has carrier; False as well when it is gone."""
        try:
            return self._readers[port].read().carrier
        except TestbedError:
            return False

    def capture(self, port: int, limit: int) -> None:
        if port in self._captures:
            self._captures.pop(port).close()
        if limit > 0:
            settings = self._ports[port]
            self._captures[port] = FrameCapture(settings.netns, settings.interface, port, limit)

    def captured(self, port: int) -> tuple[CapturedFrame, ...]:
        return self._captures[port].frames() if port in self._captures else ()

    def utilisation(self) -> float:
        """Return the CPU time of the busiest sending process since the last call, in per cent of one CPU."""
        now, seconds = time.monotonic(), self._seconds()
        before, used = self._used
        if now - before < 0.01:
            return 0.0
        self._used = (now, seconds)
        busiest = max((new - old for new, old in zip(seconds, used, strict=True)), default=0.0)
        return min(100.0, 100 * busiest / (now - before))

    def _seconds(self) -> list[float]:
        return [process.status[1] for process in self._processes]

    def close(self) -> None:
        """Stop everything and release all resources. Harmless when repeated."""
        for capture in self._captures.values():
            capture.close()
        self._captures.clear()
        self._opened.close()


def _command_all(orders: Sequence[tuple[SenderProcess, Mapping[str, Any]]]) -> None:
    """Send each process its command, then wait for all, so that they carry it out at nearly the same time."""
    for process, order in orders:
        process.send(order)
    for process, _ in orders:
        process.answer()


MOST_MISSING = 1 << 16
"""The most missing frames whose numbers are kept; a frame older than these counts as a duplicate."""

_SMOOTHING = 16
"""RFC 3550 (6.4.1), as TRex: jitter follows the change from frame to frame by a sixteenth."""
_NUMBERS = 1 << 32
"""Sequence numbers have 32 bits."""


class LatencyTracker:
    """Latency, jitter and missing frames of one group."""

    def __init__(self) -> None:
        self.start = 0
        """The start of its stream whose frames are counted."""
        self._next = 0
        self._missing: dict[int, None] = {}
        self._histogram: Counter[int] = Counter()
        self._frames = 0
        self._sum = 0.0
        self._least, self._most = math.inf, 0.0
        self._before: float | None = None
        self._jitter = 0.0
        self._window = (0.0, 0.0, 0.0)
        self._lost = self._late = self._repeated = 0

    def begin(self, start: int, first: int = 0) -> None:
        """Expect frames of *start* from number *first* on."""
        self.start, self._next = start, first
        self._missing.clear()

    def add(self, number: int, usec: float, now: float) -> None:
        """Count frame *number*, which came *usec* µs after it was sent, at *now* s."""
        self._measure(max(0.0, usec), now)
        self._order(number)

    def _order(self, number: int) -> None:
        ahead = (number - self._next) % _NUMBERS
        if ahead < _NUMBERS // 2:
            self._lost += ahead
            for missed in range(max(0, ahead - MOST_MISSING), ahead):
                self._missing[(self._next + missed) % _NUMBERS] = None
            while len(self._missing) > MOST_MISSING:
                del self._missing[next(iter(self._missing))]
            self._next = (number + 1) % _NUMBERS
        elif number in self._missing:
            del self._missing[number]
            self._lost -= 1
            self._late += 1
        else:
            self._repeated += 1

    def _measure(self, usec: float, now: float) -> None:
        self._frames += 1
        self._sum += usec
        self._histogram[int(usec)] += 1
        self._least, self._most = min(self._least, usec), max(self._most, usec)
        if self._before is not None:
            self._jitter += (abs(usec - self._before) - self._jitter) / _SMOOTHING
        self._before = usec
        began, present, before = self._window
        if now - began > WINDOW:
            began, present, before = now, 0.0, present if now - began < 2 * WINDOW else 0.0
        self._window = began, max(present, usec), before

    def counters(self) -> LatencyCounters:
        """Return the counts up to now."""
        return LatencyCounters(
            average=self._sum / self._frames if self._frames else 0.0,
            jitter=self._jitter,
            total_min=self._least if self._frames else 0.0,
            total_max=self._most,
            last_max=max(self._window[1:]),
            histogram=dict(sorted(self._histogram.items())),
            lost=self._lost,
            out_of_order=self._late,
            duplicates=self._repeated,
        )


READ_IN_PASSING = 4000
"""The most latency frames that are read at once between requests: some 40 ms of work."""
READ_ALL = 100_000
"""More than can be waiting to be read."""
MOST_LATENCY_PPS = 20_000.0
"""Latency frames/s of all ports together that a busy machine is sure to read in time."""
STARTS = 255

_ROOM = 32 << 20
"""Bytes of frames that may wait to be read: some tens of thousands of short ones."""
_ACCEPTS = (
    (0x80, 0, 0, 0),  # length
    (0x14, 0, 0, LATENCY_HEADER.size),  # less that of the header
    (0x07, 0, 0, 0),  # is where
    (0x48, 0, 0, 0),  # the two bytes
    (0x15, 0, 1, MAGIC),  # are the magic:
    (0x06, 0, 0, 0x40000),  # take it whole,
    (0x06, 0, 0, 0),  # else nothing
)
_UDP, _TCP = 17, 6


@dataclass(slots=True)
class _Group:
    number: int
    port: int
    """The port that sends it."""
    before: tuple[int, int]
    """Frames and bytes that were sent with this number before."""
    tracker: LatencyTracker = field(default_factory=LatencyTracker)
    received: dict[int, list[int]] = field(default_factory=dict)


class FlowGroups:
    """The groups of all *ports*: {index: (namespace, interface)}. *probes*: those that a port sent."""

    def __init__(self, ports: Mapping[int, tuple[str | None, str]], probes: Mapping[int, SentProbes]) -> None:
        self._ports, self._probes = ports, probes
        self._last_delay = dict.fromkeys(ports, 0)
        """The last known send delay of each port, ns."""
        self._groups: dict[int, _Group] = {}
        self._receivers: dict[int, Receiver] = {}
        self._last: dict[int, SenderLoad] = {}
        """The latency streams that each port sends."""
        self._starts = 0

    def prepare(
        self, traffic: Mapping[int, tuple[StreamTraffic, ...]], idle: bool
    ) -> dict[int, tuple[SenderLoad, SenderLoad]]:
        """Return the loads of the plain and the latency senders of each port; receivers are ready on return.

        *idle*: whether no other port sends. Raises TestbedError for a stream that cannot be counted as it asks.
        """
        self._check(traffic, idle)
        self.collect()
        if any(stream.is_latency for streams in traffic.values() for stream in streams):
            self._starts = self._starts % STARTS + 1
            for port, place in self._ports.items():
                if port not in self._receivers:
                    self._receivers[port] = Receiver(*place, _ROOM, _ACCEPTS)
        elif idle:
            # no receivers without groups: they would only cost time
            self.close()
        loads = {port: self._loads(port, streams) for port, streams in traffic.items()}
        for port, (_, timed) in loads.items():
            self._last[port] = timed
            for group in self._groups.values():
                if group.number in timed.groups:
                    group.tracker.begin(timed.start)
        return loads

    def _check(self, traffic: Mapping[int, tuple[StreamTraffic, ...]], idle: bool) -> None:
        rows = [stream for streams in traffic.values() for stream in streams if stream.is_latency]
        if not idle:
            rows += [stream for port, load in self._last.items() if port not in traffic for stream in load.streams]
        if (pps := sum(stream.pps for stream in rows)) > MOST_LATENCY_PPS:
            raise TestbedError(
                f"latency streams ask for {pps:.0f} frames/s together; expected {MOST_LATENCY_PPS:.0f} at most, each of"
                " which is stamped and read by itself, and a stream without latency for the rest"
            )

    def _loads(self, port: int, streams: tuple[StreamTraffic, ...]) -> tuple[SenderLoad, SenderLoad]:
        timed = tuple(stream for stream in streams if stream.is_latency)
        plain = tuple(stream for stream in streams if not stream.is_latency)
        groups = tuple(self._group(port, stream, stream.group.number).number for stream in timed if stream.group)
        return SenderLoad(plain), SenderLoad(timed, groups, self._starts if timed else 0)

    def _group(self, port: int, stream: StreamTraffic, name: int) -> _Group:
        """Return the group *name* of a latency stream of *port*; a new one if there is none yet."""
        if (room := _payload_room(stream.frame)) < LATENCY_HEADER.size:
            raise TestbedError(
                f"latency stream {stream.stream_id} has room for {room} bytes behind its headers; expected an IP packet"
                f" without padding and {LATENCY_HEADER.size} bytes or more, which hold its number and time"
            )
        if name not in self._groups:
            used = {row.number for row in self._groups.values()}
            number = next((number for number in range(LATENCY_GROUPS) if number not in used), None)
            if number is None:
                raise TestbedError(f"there are more than {LATENCY_GROUPS} packet groups of latency streams")
            self._groups[name] = _Group(number, port, self._probes[port].counted(number))
        group = self._groups[name]
        if group.port != port:
            raise TestbedError(
                f"latency stream {stream.stream_id} has a packet group that port {group.port} sends already;"
                " expected a group of its own"
            )
        return group

    def collect(self, limit: int = READ_IN_PASSING) -> None:
        """Read the latency frames received so far. To be called often while latency streams are sent."""
        groups = {group.number: group for group in self._groups.values()}
        for port, receiver in self._receivers.items():
            for data, arrived in receiver.read(limit):
                _, start, number, sequence, sent = LATENCY_HEADER.unpack_from(data, len(data) - LATENCY_HEADER.size)
                if (group := groups.get(number)) is None or start != group.tracker.start:
                    continue  # a late frame of an earlier start, which TRex counts as "old_flow" alone
                row = group.received.setdefault(port, [0, 0])
                row[0] += 1
                row[1] += len(data) + FCS
                delay = self._probes[group.port].delay(number, start, sequence)
                if delay is None:
                    delay = self._last_delay[group.port]
                self._last_delay[group.port] = delay
                group.tracker.add(sequence, (arrived - sent - delay) / 1000, arrived / 1e9)

    def flow_counters(self, group: int) -> FlowCounters:
        """Return the frames and bytes of *group* up to this moment."""
        self.collect(READ_ALL)
        if (counted := self._groups.get(group)) is None:
            return FlowCounters()
        frames, octets = self._probes[counted.port].counted(counted.number)
        sent = {counted.port: (frames - counted.before[0], octets - counted.before[1])}
        return FlowCounters(sent, {port: (row[0], row[1]) for port, row in counted.received.items()})

    def latency_counters(self, group: int) -> LatencyCounters:
        """Return the latency of *group* up to this moment."""
        self.collect(READ_ALL)
        counted = self._groups.get(group)
        return counted.tracker.counters() if counted else LatencyCounters()

    def forget(self, group: int) -> None:
        """Set the counts of *group* to zero. Its frames on the way are counted nowhere."""
        self.collect(READ_ALL)
        self._groups.pop(group, None)

    def close(self) -> None:
        """Stop receiving; counts stay."""
        for receiver in self._receivers.values():
            receiver.close()
        self._receivers.clear()


def _payload_room(frame: bytes) -> int:
    """Return the bytes behind the IP header, and UDP's or TCP's if there is one; 0 without IP, and with padding."""
    header = ip_header(frame)
    if header is None or header.packet_end(frame) < len(frame):
        return 0
    protocol, begin = header.payload(frame)
    return len(frame) - begin - {_UDP: 8, _TCP: 20}.get(protocol, 0)
