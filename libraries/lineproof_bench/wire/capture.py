"""A few received frames, with the kernel's time stamps, from packet sockets that ignore sent frames."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterator

from lineproof.errors import TestbedError
from lineproof.system.network_namespace import run_in_namespace

from ..backend import CapturedFrame

_SOL_PACKET = 263
_AUXDATA, _IGNORE_OUTGOING = 8, 23
_SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 33, 35
_ETH_P_ALL = 0x0003
_VLAN_VALID, _VLAN_TPID_VALID = 0x10, 0x40
_STATISTICS = 6
_COUNTS = struct.Struct("=II")
_AUX = struct.Struct("=IIIHHHH")
_TIME = struct.Struct("@ll")
_ROOM, _ENOUGH, _MANY = 16 << 20, 1000, 100_000
"""Bytes of frames that may wait; frames for which another socket is worth its while; more than have room to wait."""


class FrameCapture:
    """Keeps the first, or the *last*, *limit* frames received on *interface* of *netns* since it was made.

    A socket keeps the first frames for which it has room. So for the last ones another socket takes over whenever one
    has had enough, if :meth:`look` is called every few ms.
    """

    def __init__(self, netns: str | None, interface: str, port: int, limit: int, last: bool = False) -> None:
        self._port, self._limit, self._last, self._seen = port, limit, last, 0
        self._place = (netns, interface)
        self._offset = time.time_ns() - time.monotonic_ns()
        self._sockets = [self._open()]

    def _open(self) -> socket.socket:
        netns, interface = self._place

        def make() -> socket.socket:
            opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
            try:
                opened.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
                opened.setsockopt(_SOL_PACKET, _AUXDATA, 1)
                opened.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
                with contextlib.suppress(OSError):
                    opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _ROOM)
                opened.bind((interface, _ETH_P_ALL))
            except OSError:
                opened.close()
                raise
            opened.setblocking(False)
            return opened

        try:
            return run_in_namespace(netns, make)
        except OSError as error:
            raise TestbedError(f"cannot capture on interface '{interface}': {error}") from error

    def look(self) -> None:
        """Let another socket take over if it is time. The one before goes on: no frame is missed meanwhile."""
        if self._last:
            self._seen += _COUNTS.unpack(self._sockets[-1].getsockopt(_SOL_PACKET, _STATISTICS, _COUNTS.size))[0]
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
        if self._last:
            self._keep(1)
            return tuple(found[-self._limit :])
        self._limit -= len(found)
        if not self._limit:
            self.close()
        return tuple(found)

    def _read(self, opened: socket.socket) -> Iterator[CapturedFrame]:
        for _ in range(_MANY if self._last else self._limit):
            try:
                data, ancillary, _, _ = opened.recvmsg(65536, 256)
            except BlockingIOError:
                break
            stamp = time.time_ns()
            for level, kind, value in ancillary:
                if level == _SOL_PACKET and kind == _AUXDATA and len(value) >= _AUX.size:
                    data = _tagged(data, value)
                elif level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
                    seconds, nanoseconds = _TIME.unpack_from(value)
                    stamp = 1_000_000_000 * seconds + nanoseconds
            yield CapturedFrame(self._port, data, (stamp - self._offset) / 1e9)

    def _keep(self, sockets: int) -> None:
        """Close all but the last *sockets*."""
        while len(self._sockets) > sockets:
            self._sockets.pop(0).close()

    def close(self) -> None:
        """Keep no more frames."""
        self._keep(0)


def _tagged(data: bytes, auxiliary: bytes) -> bytes:
    """*data* with the VLAN tag that the kernel took out of it put back."""
    status, _, _, _, _, tag, protocol = _AUX.unpack_from(auxiliary)
    if not status & _VLAN_VALID:
        return data
    kind = protocol if status & _VLAN_TPID_VALID else 0x8100
    return data[:12] + struct.pack("!HH", kind, tag) + data[12:]
