"""A few received frames, with the kernel's time stamps, from packet sockets that ignore sent frames."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

from lineproof.errors import TestbedError
from lineproof.system.network_namespace import run_in_namespace

from ..backend import CapturedFrame
from . import packet_sockets as packets

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
        self._sockets = [self._open()]

    def _open(self) -> socket.socket:
        netns, interface = self._place
        options = (
            (packets.SOL_PACKET, packets.IGNORE_OUTGOING, 1),
            (packets.SOL_PACKET, packets.AUXDATA, 1),
            (socket.SOL_SOCKET, packets.SO_TIMESTAMPNS, 1),
        )
        room = ((socket.SOL_SOCKET, packets.SO_RCVBUFFORCE, _ROOM),)
        try:
            return run_in_namespace(netns, lambda: packets.open_packet_socket(interface, options, room))
        except OSError as error:
            raise TestbedError(f"cannot capture on interface '{interface}': {error}") from error

    def look(self) -> None:
        """Let another socket take over if it is time. The one before goes on: no frame is missed meanwhile."""
        self._seen += packets.new_frames(self._sockets[-1])[0]
        if self._seen >= max(self._limit, _ENOUGH):
            self._keep(1)
            self._sockets.append(self._open())
            self._seen = 0

    def frames(self) -> tuple[CapturedFrame, ...]:
        """Take the frames since the last call, oldest first. Time stamps are on the monotonic clock, s."""
        found: list[CapturedFrame] = []
        for opened in self._sockets:
            since = found[-1].timestamp if found else 0.0
            found += [frame for frame in self._read(opened) if frame.timestamp > since]
        self._keep(1)
        return tuple(found[-self._limit :])

    def _read(self, opened: socket.socket) -> Iterator[CapturedFrame]:
        for _ in range(_MANY):
            try:
                data, ancillary, _, _ = opened.recvmsg(65536, 256)
            except BlockingIOError:
                break
            stamp, tag = packets.arrival_facts(ancillary)
            data = data[:12] + tag + data[12:]
            yield CapturedFrame(self._port, data, ((stamp or time.time_ns()) - self._offset) / 1e9)

    def _keep(self, sockets: int) -> None:
        """Close all but the last *sockets*."""
        while len(self._sockets) > sockets:
            self._sockets.pop(0).close()

    def close(self) -> None:
        """Keep no more frames."""
        self._keep(0)
