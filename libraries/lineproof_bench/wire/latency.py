"""The receiving end of latency streams: every frame is read, with the kernel's time stamp of its arrival."""

from __future__ import annotations

import logging
import math
import socket
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

from lineproof.errors import TestbedError
from lineproof.system.network_namespace import run_in_namespace
from lineproof.units import FCS

from ..backend import LatencyCounters
from ..packet_groups import WINDOW
from . import packet_sockets as packets
from .filters import packed, program
from .group_marks import LATENCY, LATENCY_HEADER, MAGIC, FrameKind, header_of, packet_end

_ATTACH_FILTER = 26
_BUFFER = 32 << 20
"""Bytes of frames that may wait to be read: some tens of thousands of short ones."""
_EVERYTHING = 0x40000

log = logging.getLogger("lineproof.server")


class LatencyArrival(NamedTuple):
    """A latency frame: group number, start and sequence number of its header; ``size`` in L2 bytes with FCS.

    ``sent`` and ``arrived`` in ns of real time.
    """

    group: int
    start: int
    number: int
    sent: int
    arrived: int
    size: int


class LatencyReader:
    """Frames of latency streams received on *interface* of *netns* since it was made."""

    def __init__(self, netns: str | None, interface: str) -> None:
        def make() -> socket.socket:
            kinds = {FrameKind(version, LATENCY, None): _EVERYTHING for version in (4, 6)}
            with packed(program(kinds, base=14)) as found:
                options = (
                    (socket.SOL_SOCKET, _ATTACH_FILTER, found),
                    (packets.SOL_PACKET, packets.AUXDATA, 1),
                    (socket.SOL_SOCKET, packets.SO_TIMESTAMPNS, 1),
                )
                return packets.open_packet_socket(
                    interface, options, ((socket.SOL_SOCKET, packets.SO_RCVBUFFORCE, _BUFFER),)
                )

        self._interface = interface
        self._buffer = bytearray(65536)
        try:
            self._socket = run_in_namespace(netns, make)
        except OSError as error:
            raise TestbedError(f"cannot receive latency frames on interface '{interface}': {error}") from error

    def read(self, limit: int) -> Iterator[LatencyArrival]:
        """The frames that have arrived, oldest first, *limit* at most."""
        buffers = [self._buffer]
        for _ in range(limit):
            try:
                size, ancillary, _, _ = self._socket.recvmsg_into(buffers, 256)
            except OSError:
                # nothing is left; or the interface went down, which the kernel reports once
                return
            found = _header(bytes(self._buffer[:size]))
            if found is not None:
                _, start, group, number, sent = found
                arrived, tag = packets.arrival_facts(ancillary)
                yield LatencyArrival(group, start, number, sent, arrived, size + FCS + len(tag))

    def unread(self) -> int:
        """Frames since the last call that found no room to wait; they are logged too."""
        _, dropped = packets.new_frames(self._socket)
        if dropped:
            log.warning(
                "%d latency frames on '%s' came faster than they could be read and appear as lost",
                dropped,
                self._interface,
            )
        return dropped

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def _header(frame: bytes) -> tuple[int, int, int, int, int] | None:
    header = header_of(frame)
    if header is None:
        return None
    at = packet_end(frame, header) - LATENCY_HEADER.size
    if at < header.offset:
        return None
    found: tuple[int, int, int, int, int] = LATENCY_HEADER.unpack_from(frame, at)
    return found if found[0] == MAGIC else None


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
