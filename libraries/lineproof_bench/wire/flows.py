"""Packet groups on the wire: those of latency streams, counted frame by frame, with their order and their latency.

Streams that ask for counts without latency are sent like all others, and counted with their port.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lineproof.core.traffic.ip_header import ip_header
from lineproof.errors import TestbedError
from lineproof.units import FCS

from ..backend import WINDOW, FlowCounters, LatencyCounters, StreamTraffic
from .linux import Receiver
from .protocol import LATENCY_GROUPS, LATENCY_HEADER, MAGIC, SenderLoad, SentProbes

MOST_MISSING = 1 << 16
"""The most missing frames whose numbers are kept; a frame older than these counts as a duplicate."""

_SMOOTHING = 16
"""RFC 3550 (6.4.1), as TRex: jitter follows the change from frame to frame by a sixteenth."""
_NUMBERS = 1 << 32
"""Sequence numbers have 32 bits."""


class LatencyTracker:
    """Latency, jitter and missing frames of one group."""

    def __init__(self) -> None:
        self._start = 0
        self._next = 0
        self._missing: OrderedDict[int, None] = OrderedDict()
        self._histogram: Counter[int] = Counter()
        self._frames = 0
        self._sum = 0.0
        self._least, self._most = math.inf, 0.0
        self._before: float | None = None
        self._jitter = 0.0
        self._window = (0.0, 0.0, 0.0)
        self._lost = self._late = self._repeated = 0

    def begin(self, start: int, first: int = 0) -> None:
        """Expect frames of *start* from number *first* on; the order of earlier starts is no longer checked."""
        self._start, self._next = start, first
        self._missing.clear()

    def add(self, start: int, number: int, usec: float, now: float) -> None:
        """A frame of *start* came *usec* µs after it was sent, at *now* s."""
        self._measure(max(0.0, usec), now)
        if start == self._start:
            self._order(number)

    def _order(self, number: int) -> None:
        ahead = (number - self._next) % _NUMBERS
        if ahead < _NUMBERS // 2:
            self._lost += ahead
            for missed in range(max(0, ahead - MOST_MISSING), ahead):
                self._missing[(self._next + missed) % _NUMBERS] = None
            while len(self._missing) > MOST_MISSING:
                self._missing.popitem(last=False)
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
        """The counts up to now."""
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
LOSSES_LOGGED = 60.0
"""Seconds between two looks for frames that found no room to wait."""
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

log = logging.getLogger("lineproof.server")


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
        self._looked = time.monotonic()

    def prepare(
        self, traffic: Mapping[int, tuple[StreamTraffic, ...]], idle: bool
    ) -> dict[int, tuple[SenderLoad, SenderLoad]]:
        """The loads of the plain and the latency senders of each port; receivers are ready on return.

        *idle*: whether no other port sends. Raises TestbedError for a stream that cannot be counted as it asks.
        """
        self._check(traffic, idle)
        is_timed = any(stream.is_latency for streams in traffic.values() for stream in streams)
        self.collect()
        if is_timed:
            self._begin()
        elif idle:
            # no receivers without groups: they would only cost time
            self.close()
        found = {port: self._loads(port, streams) for port, streams in traffic.items()}
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
        self._begin()
        timed = self._last[port] = replace(timed, start=self._starts)
        self._expect(timed)
        return plain, timed

    def _begin(self) -> None:
        self._starts = self._starts % STARTS + 1
        for port, place in self._ports.items():
            if port not in self._receivers:
                self._receivers[port] = Receiver(*place, _ROOM, _ACCEPTS)

    def _check(self, traffic: Mapping[int, tuple[StreamTraffic, ...]], idle: bool) -> None:
        rows = [stream for streams in traffic.values() for stream in streams if stream.is_latency]
        if not idle:
            rows += [stream for port, load in self._last.items() if port not in traffic for stream in load.streams]
        if (pps := sum(stream.pps for stream in rows)) > MOST_LATENCY_PPS:
            raise TestbedError(
                f"latency streams ask for {pps:.0f} frames/s together; expected {MOST_LATENCY_PPS:.0f} at most, each of"
                " which is stamped and read by itself, and a stream without latency for the rest"
            )

    def _expect(self, timed: SenderLoad) -> None:
        for group in self._groups.values():
            if group.number in timed.groups:
                group.tracker.begin(timed.start)

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
                if (group := groups.get(number)) is None:
                    continue
                row = group.received.setdefault(port, [0, 0])
                row[0] += 1
                row[1] += len(data) + FCS
                delay = self._probes[group.port].delay(number, start, sequence)
                if delay is None:
                    delay = self._last_delay[group.port]
                self._last_delay[group.port] = delay
                group.tracker.add(start, sequence, (arrived - sent - delay) / 1000, arrived / 1e9)
        now = time.monotonic()
        if now - self._looked > LOSSES_LOGGED:
            self._looked = now
            self._log_losses()

    def _log_losses(self) -> None:
        for port, receiver in self._receivers.items():
            if dropped := receiver.new()[1]:
                words = "%d latency frames of port %d came faster than they could be read and appear as lost"
                log.warning(words, dropped, port)

    def flow_counters(self, group: int) -> FlowCounters:
        """Frames and bytes of *group* up to this moment."""
        self.collect(READ_ALL)
        if (found := self._groups.get(group)) is None:
            return FlowCounters()
        frames, octets = self._probes[found.port].counted(found.number)
        sent = {found.port: (frames - found.before[0], octets - found.before[1])}
        return FlowCounters(sent, {port: (row[0], row[1]) for port, row in found.received.items()})

    def latency_counters(self, group: int) -> LatencyCounters:
        """Latency of *group* up to this moment."""
        self.collect(READ_ALL)
        found = self._groups.get(group)
        return found.tracker.counters() if found else LatencyCounters()

    def forget(self, group: int) -> None:
        """Set the counts of *group* to zero. Its frames on the way are counted nowhere."""
        self.collect(READ_ALL)
        self._groups.pop(group, None)

    def close(self) -> None:
        """Stop receiving; counts stay."""
        self._log_losses()
        for receiver in self._receivers.values():
            receiver.close()
        self._receivers.clear()


def _payload_room(frame: bytes) -> int:
    """Bytes behind the IP header, and the UDP or TCP header if there is one; 0 without one, and with padding."""
    header = ip_header(frame)
    if header is None or header.packet_end(frame) < len(frame):
        return 0
    protocol, begin = header.payload(frame)
    return len(frame) - begin - {_UDP: 8, _TCP: 20}.get(protocol, 0)
