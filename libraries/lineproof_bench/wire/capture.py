"""A few received frames, with the kernel's time stamps, from a packet socket that ignores sent frames."""

from __future__ import annotations

import contextlib
import socket
import struct
import time

from lineproof.errors import TestbedError
from lineproof.system.network_namespace import run_in_namespace

from ..backend import CapturedFrame

_SOL_PACKET = 263
_AUXDATA, _IGNORE_OUTGOING = 8, 23
_SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 33, 35
_ETH_P_ALL = 0x0003
_VLAN_VALID, _VLAN_TPID_VALID = 0x10, 0x40
_AUX = struct.Struct("=IIIHHHH")
_TIME = struct.Struct("@ll")


class FrameCapture:
    """Keeps the first *limit* frames received on *interface* of *netns* since it was made."""

    def __init__(self, netns: str | None, interface: str, port: int, limit: int) -> None:
        def make() -> socket.socket:
            opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
            try:
                opened.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
                opened.setsockopt(_SOL_PACKET, _AUXDATA, 1)
                opened.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
                with contextlib.suppress(OSError):
                    opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, min(16 << 20, max(1 << 16, 16384 * limit)))
                opened.bind((interface, _ETH_P_ALL))
            except OSError:
                opened.close()
                raise
            opened.setblocking(False)
            return opened

        self._port, self._limit = port, limit
        self._frames: list[CapturedFrame] = []
        try:
            self._socket: socket.socket | None = run_in_namespace(netns, make)
        except OSError as error:
            raise TestbedError(f"cannot capture on interface '{interface}': {error}") from error

    def frames(self) -> tuple[CapturedFrame, ...]:
        """The frames so far, oldest first. Time stamps are on the monotonic clock, s."""
        offset = time.time() - time.monotonic()
        while self._socket is not None and len(self._frames) < self._limit:
            try:
                data, ancillary, _, _ = self._socket.recvmsg(65536, 256)
            except BlockingIOError:
                break
            stamp = time.time()
            for level, kind, value in ancillary:
                if level == _SOL_PACKET and kind == _AUXDATA and len(value) >= _AUX.size:
                    data = _tagged(data, value)
                elif level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
                    seconds, nanoseconds = _TIME.unpack_from(value)
                    stamp = seconds + nanoseconds / 1e9
            self._frames.append(CapturedFrame(self._port, data, stamp - offset))
        if len(self._frames) >= self._limit:
            self.close()
        return tuple(self._frames)

    def close(self) -> None:
        """Close the socket; frames already read stay."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _tagged(data: bytes, auxiliary: bytes) -> bytes:
    """*data* with the VLAN tag that the kernel took out of it put back."""
    status, _, _, _, _, tag, protocol = _AUX.unpack_from(auxiliary)
    if not status & _VLAN_VALID:
        return data
    kind = protocol if status & _VLAN_TPID_VALID else 0x8100
    return data[:12] + struct.pack("!HH", kind, tag) + data[12:]
