"""A few received frames, with the kernel's time stamps."""

from __future__ import annotations

import time

from ..backend import CapturedFrame
from .sockets import Receiver

_ROOM, _ENOUGH, _MANY = 16 << 20, 1000, 100_000
"""Bytes of frames that may wait; frames for which another socket is worth its while; more than have room to wait."""


class FrameCapture:
    """Keeps the last *limit* frames received on *interface* of *netns* since it was made.

    A socket keeps the first frames for which it has room. So another socket takes over whenever one has had enough, if
    :meth:`look` is called every few ms.
    """

    def __init__(self, netns: str | None, interface: str, port: int, limit: int) -> None:
        self._port, self._limit, self._seen = port, limit, 0
        self._place = (netns, interface)
        self._offset = time.time_ns() - time.monotonic_ns()
        self._receivers = [Receiver(*self._place, _ROOM)]

    def look(self) -> None:
        """Let another socket take over if it is time. The one before goes on: no frame is missed meanwhile."""
        self._seen += self._receivers[-1].new()[0]
        if self._seen >= max(self._limit, _ENOUGH):
            self._keep(1)
            self._receivers.append(Receiver(*self._place, _ROOM))
            self._seen = 0

    def frames(self) -> tuple[CapturedFrame, ...]:
        """Take the frames since the last call, oldest first. Time stamps are on the monotonic clock, s."""
        found: list[CapturedFrame] = []
        for receiver in self._receivers:
            since = found[-1].timestamp if found else 0.0
            rows = ((frame.data, (frame.arrived - self._offset) / 1e9) for frame in receiver.read(_MANY))
            found += [CapturedFrame(self._port, data, moment) for data, moment in rows if moment > since]
        self._keep(1)
        return tuple(found[-self._limit :])

    def _keep(self, receivers: int) -> None:
        """Close all but the last *receivers*."""
        while len(self._receivers) > receivers:
            self._receivers.pop(0).close()

    def close(self) -> None:
        """Keep no more frames."""
        self._keep(0)
