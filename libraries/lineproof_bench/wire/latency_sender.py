"""The sending end of latency streams: each frame gets its number and the time just before it is sent.

The kernel's transmit time stamp (``SO_TIMESTAMPING``) gives the delay until the frame reached the interface, which is
kept for the receiver. Two system calls for each frame: for thousands of frames/s, not for millions.
"""

from __future__ import annotations

import socket
import struct
import time
from collections import defaultdict, deque

import numpy as np

from lineproof.errors import TestbedError
from lineproof.units import FCS

from .interleaving import locate
from .protocol import LATENCY_HEADER, MAGIC, SenderLoad, SentProbes
from .schedule import PlannedFrames
from .sockets import SO_SNDBUFFORCE, SOL_PACKET, open_packet_socket

_QDISC_BYPASS = 20
_SO_TIMESTAMPING = 37
_TRANSMITTED, _SOFTWARE, _ONLY = 1 << 1, 1 << 4, 1 << 11
"""Flags (Linux's Documentation/networking/timestamping.rst): software stamps when sending, without the frame."""
_TIME = struct.Struct("@ll")
_LATEST_STAMP = 10_000_000
"""ns after which a stamp is not taken for this frame's."""
_BATCH = 32
"""Frames that are built at once, while there is time."""
_IDLE_TIME = 0.0003
"""Seconds before the next frame is due in which no frames are built."""
_NUMBERS = 1 << 32


def open_socket(interface: str) -> socket.socket:
    """A socket that sends whole frames from *interface* of the calling thread's namespace, past any queue."""
    stamps = struct.pack("=I", _TRANSMITTED | _SOFTWARE | _ONLY)
    wanted = (
        (SOL_PACKET, _QDISC_BYPASS, 1),
        (socket.SOL_SOCKET, SO_SNDBUFFORCE, 8 << 20),
        (socket.SOL_SOCKET, _SO_TIMESTAMPING, stamps),
    )
    try:
        return open_packet_socket(interface, (), wanted)
    except OSError as error:
        raise TestbedError(f"latency frames cannot be sent from interface '{interface}': {error}") from error


class LatencySender(PlannedFrames):
    """The latency streams of one port, sent through the socket *opened*."""

    def __init__(self, opened: socket.socket, load: SenderLoad, duration: float | None, probes: SentProbes) -> None:
        super().__init__(load, duration)
        self._probes = probes
        self._socket, self._groups, self._start = opened, load.groups, load.start
        self._numbers: defaultdict[int, int] = defaultdict(int)
        self._built = 0
        self._ready: deque[tuple[bytearray, int]] = deque()
        self._build()

    def _build(self) -> None:
        if not self._plan:
            return
        which, numbers = locate(self._plan, np.arange(self._built, self._built + _BATCH, dtype=np.int64))
        built: list[tuple[bytearray, int]] = [(bytearray(), 0)] * _BATCH
        for place, stream in enumerate(self._streams):
            mine = np.flatnonzero(which == place)
            for at, row in zip(mine.tolist(), stream.rows(numbers[mine]), strict=True):
                built[at] = bytearray(row.tobytes()), self._groups[place]
        self._ready.extend(built)
        self._built += _BATCH

    def send(self, elapsed: float) -> int:
        """Send what is due; returns how many frames were taken."""
        due = self.pace.allowance(elapsed)
        taken = 0
        while taken < due:
            if not self._ready:
                self._build()
            frame, group = self._ready[0]
            number = self._numbers[group]
            try:
                stamp = time.time_ns()
                LATENCY_HEADER.pack_into(
                    frame, len(frame) - LATENCY_HEADER.size, MAGIC, self._start, group, number, stamp
                )
                self._socket.send(frame)
            except OSError as error:
                # EAGAIN, ENOBUFS: the peer's queue refused the frame, which is offered again
                if error.errno not in (11, 105):
                    raise TestbedError(f"the kernel refuses to send: {error}") from error
                break
            delay = self._transmitted(stamp) - stamp
            if 0 <= delay < _LATEST_STAMP:
                self._probes.keep(group, self._start, number, delay)
            self._probes.count(group, len(frame) + FCS)
            self._numbers[group] = (number + 1) % _NUMBERS
            self._ready.popleft()
            taken += 1
        self.pace.took(taken)
        return taken

    def _transmitted(self, since: int) -> int:
        """When the kernel sent the last frame, at *since* ns of real time or later; 0 if unknown."""
        while True:
            try:
                _, ancillary, _, _ = self._socket.recvmsg(1, 256, socket.MSG_ERRQUEUE)
            except OSError:
                return 0
            for level, kind, value in ancillary:
                if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPING:
                    seconds, rest = _TIME.unpack_from(value)
                    # older: the stamp of an earlier frame
                    if (found := int(seconds * 1_000_000_000 + rest)) >= since:
                        return found

    def rest(self, elapsed: float) -> float:
        """Seconds until the next frame is due."""
        left = self._schedule.moment(self.pace.sent + 1) - elapsed
        if left > _IDLE_TIME and len(self._ready) < _BATCH // 2:
            self._build()
            return 0.0
        return max(left, 0.0)

    def close(self) -> None:
        """Nothing to close: the socket is the caller's."""
