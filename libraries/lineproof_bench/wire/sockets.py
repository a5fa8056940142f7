"""Packet sockets (packet(7)): opened at an interface, and frames received with the kernel's time stamps."""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lineproof.errors import TestbedError
from lineproof.system.network_namespace import run_in_namespace

from ..backend import CapturedFrame

SOL_PACKET, SO_SNDBUFFORCE = 263, 32
_STATISTICS, _AUXDATA, _IGNORE_OUTGOING = 6, 8, 23
_ATTACH_FILTER, _SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 26, 33, 35
_ALL_PROTOCOLS = 0x0003

_COUNTS, _TIME, _AUX = struct.Struct("=II"), struct.Struct("@ll"), struct.Struct("=IIIHHHH")
_VLAN_VALID, _VLAN_TPID_VALID = 0x10, 0x40
_INSTRUCTION, _PROGRAM = struct.Struct("=HBBI"), struct.Struct("@HP")

SocketOption = tuple[int, int, int | bytes]
Instruction = tuple[int, int, int, int]
"""An instruction of classic BPF (Linux: networking/filter.rst): code, jump if true, jump if false, constant."""


def open_packet_socket(
    interface: str, options: Sequence[SocketOption], wanted: Sequence[SocketOption] = (), protocol: int = 0
) -> socket.socket:
    """Return a socket of the calling thread's namespace. *wanted*: options without which it works too."""
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
    try:
        for level, name, value in options:
            opened.setsockopt(level, name, value)
        for level, name, value in wanted:
            with contextlib.suppress(OSError):
                opened.setsockopt(level, name, value)
        opened.bind((interface, protocol))
        opened.setblocking(False)
    except OSError:
        opened.close()
        raise
    return opened


class ReceivedFrame(NamedTuple):
    """A frame without FCS, and when the kernel received it, in ns of real time."""

    data: bytes
    arrived: int


class Receiver:
    """Frames received on *interface* of *netns* since it was made, of which *room* bytes may wait to be read.

    *accepts*: a program that returns 0 for a frame to be left out; empty: all are taken. Raises TestbedError.
    """

    def __init__(self, netns: str | None, interface: str, room: int, accepts: Sequence[Instruction] = ()) -> None:
        # struct sock_fprog points to the instructions, which the kernel copies
        memory = ctypes.create_string_buffer(b"".join(_INSTRUCTION.pack(*row) for row in accepts))
        program = _PROGRAM.pack(len(accepts), ctypes.addressof(memory))
        options: list[SocketOption] = [
            (SOL_PACKET, _IGNORE_OUTGOING, 1),
            (SOL_PACKET, _AUXDATA, 1),
            (socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1),
            *([(socket.SOL_SOCKET, _ATTACH_FILTER, program)] if accepts else []),
        ]
        wanted = ((socket.SOL_SOCKET, _SO_RCVBUFFORCE, room),)
        try:
            self._socket = run_in_namespace(
                netns, lambda: open_packet_socket(interface, options, wanted, _ALL_PROTOCOLS)
            )
        except OSError as error:
            raise TestbedError(f"cannot receive frames on interface '{interface}': {error}") from error
        self._buffer = bytearray(65536)

    def read(self, limit: int) -> Iterator[ReceivedFrame]:
        """Yield the frames that wait, oldest first, *limit* at most."""
        for _ in range(limit):
            try:
                size, ancillary, _, _ = self._socket.recvmsg_into([self._buffer], 256)
            except OSError:
                # nothing is left; or the interface went down, which the kernel reports once
                return
            data, arrived = bytes(memoryview(self._buffer)[:size]), 0
            for level, kind, value in ancillary:
                if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
                    seconds, rest = _TIME.unpack_from(value)
                    arrived = seconds * 1_000_000_000 + rest
                elif level == SOL_PACKET and kind == _AUXDATA and len(value) >= _AUX.size:
                    status, _, _, _, _, number, protocol = _AUX.unpack_from(value)
                    if status & _VLAN_VALID:
                        # the kernel has taken the first tag out
                        tag = struct.pack("!HH", protocol if status & _VLAN_TPID_VALID else 0x8100, number)
                        data = data[:12] + tag + data[12:]
            yield ReceivedFrame(data, arrived)

    def new(self) -> tuple[int, int]:
        """Return frames since the last call, and those of them that found no room."""
        received, dropped = _COUNTS.unpack(self._socket.getsockopt(SOL_PACKET, _STATISTICS, _COUNTS.size))
        return received, dropped

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


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
