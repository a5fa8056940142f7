"""The sending end of latency streams: each frame gets its number and the time just before it is handed over.

How much later the kernel gave it to the interface, the kernel tells after the fact (its transmit time stamp,
``SO_TIMESTAMPING``); that is kept beside for the receiver. Two system calls for each frame: meant for thousands of
frames a second, not for millions.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections import defaultdict, deque

import numpy as np

from linerate.errors import TestbedError

from .frames import streams as frames_of
from .marks import HEADER, MAGIC, end_of, place_of
from .order import OrderTally, locate, phases
from .protocol import Later, SenderLoad
from .schedule import Pace, SendSchedule

_SOL_PACKET, _QDISC_BYPASS = 263, 20
_SO_SNDBUFFORCE = 32
_SO_TIMESTAMPING = 37
_TRANSMITTED, _SOFTWARE, _ONLY = 1 << 1, 1 << 4, 1 << 11
"""Flags (Linux's Documentation/networking/timestamping.rst): software stamps when sending, without the frame."""
_TIME = struct.Struct("@ll")
_LATEST = 10_000_000
"""ns after which a stamp is no more believed to be this frame's."""
_AHEAD = 32
"""Frames that are made at once, while there is time."""
_EARLY = 0.0003
"""Seconds before the next frame is due in which none are made."""
_NUMBERS = 1 << 32


def open_socket(interface: str) -> socket.socket:
    """A socket that sends whole frames from *interface* of the calling thread's namespace, past any queue."""
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
    try:
        with contextlib.suppress(OSError):
            opened.setsockopt(_SOL_PACKET, _QDISC_BYPASS, 1)
        with contextlib.suppress(OSError):
            opened.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, 8 << 20)
        with contextlib.suppress(OSError):
            flags = struct.pack("=I", _TRANSMITTED | _SOFTWARE | _ONLY)
            opened.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, flags)
        opened.bind((interface, 0))
        opened.setblocking(False)
    except OSError as error:
        opened.close()
        raise TestbedError(f"latency frames cannot be sent from interface '{interface}': {error}") from error
    return opened


class Stamped:
    """The latency streams of one port, sent through the socket *opened*."""

    def __init__(self, opened: socket.socket, load: SenderLoad, duration: float | None, later: Later) -> None:
        traffic, self._later = load.streams, later
        self._socket, self._groups, self._start = opened, load.groups, load.start
        self._plan = phases(traffic)
        self._streams = frames_of(traffic)
        self._places = [place_of(stream.frame) for stream in traffic]
        self._schedule = SendSchedule(self._plan, duration)
        self.pace = Pace(self._schedule)
        self._tally = OrderTally(self._plan, len(traffic))
        self.stalls = 0
        self._numbers: defaultdict[int, int] = defaultdict(int)
        self._made = 0
        self._ready: deque[tuple[bytearray, int, int]] = deque()
        self._make()

    def _make(self) -> None:
        if not self._plan:
            return
        which, numbers = locate(self._plan, np.arange(self._made, self._made + _AHEAD, dtype=np.int64))
        made: list[tuple[bytearray, int, int]] = [(bytearray(), 0, 0)] * _AHEAD
        for place, stream in enumerate(self._streams):
            mine = np.flatnonzero(which == place)
            for at, row in zip(mine.tolist(), stream.rows(numbers[mine]), strict=True):
                frame, header = bytearray(row.tobytes()), self._places[place]
                end = len(frame) if header is None else end_of(frame, header)
                made[at] = frame, end - HEADER.size, self._groups[place]
        self._ready.extend(made)
        self._made += _AHEAD

    def send(self, elapsed: float) -> int:
        """Send what is due; returns how many frames were taken."""
        due = self.pace.allowance(elapsed)
        taken = 0
        while taken < due:
            if not self._ready:
                self._make()
            frame, at, group = self._ready[0]
            number = self._numbers[group]
            try:
                stamp = time.time_ns()
                HEADER.pack_into(frame, at, MAGIC, self._start, group, number, stamp)
                self._socket.send(frame)
            except OSError as error:
                # EAGAIN, ENOBUFS: the peer's queue refused the frame, which is offered again
                if error.errno not in (11, 105):
                    raise TestbedError(f"the kernel refuses to send: {error}") from error
                self.stalls += 1
                break
            later = self._transmitted(stamp) - stamp
            if 0 <= later < _LATEST:
                self._later.keep(group, self._start, number, later)
            self._numbers[group] = (number + 1) % _NUMBERS
            self._ready.popleft()
            taken += 1
        self.pace.took(taken)
        return taken

    def _transmitted(self, since: int) -> int:
        """When the kernel sent the last frame, *since* ns of real time or later; 0 when it does not tell."""
        while True:
            try:
                _, ancillary, _, _ = self._socket.recvmsg(1, 256, socket.MSG_ERRQUEUE)
            except OSError:
                return 0
            for level, kind, value in ancillary:
                if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPING:
                    seconds, rest = _TIME.unpack_from(value)
                    # an earlier one came too late for its own frame
                    if (found := int(seconds * 1_000_000_000 + rest)) >= since:
                        return found

    def rest(self, elapsed: float) -> float:
        """Seconds until the next frame is due."""
        left = self._schedule.moment(self.pace.sent + 1) - elapsed
        if left > _EARLY and len(self._ready) < _AHEAD // 2:
            self._make()
            return 0.0
        return max(left, 0.0)

    def counts(self) -> list[int]:
        """Frames of each stream that were taken."""
        return self._tally.counts(self.pace.sent)

    def close(self) -> None:
        """Nothing is held: the socket is the caller's."""
