"""Requests to the kernel: punctual waking, an interface's counters (rtnetlink), packet sockets (packet(7)).

Numbers are those of the kernel's UAPI headers (``linux/rtnetlink.h``, ``linux/if_link.h``, ``linux/if.h``).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lineproof.errors import TestbedError
from lineproof.system.network_namespace import run_in_namespace

from ..backend import CapturedFrame

_PR_SET_TIMERSLACK = 29
_RTM_GETLINK, _NLMSG_ERROR, _NLM_F_REQUEST = 18, 2, 1
_IFLA_MTU, _IFLA_STATS64, _IFLA_CARRIER = 4, 23, 33
_HEADER, _LINK, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=BxHiII"), struct.Struct("=HH")
_STATS = struct.Struct("=8Q")


def wake_punctually() -> None:
    """Let the calling process and its later threads wake punctually and run before others, if permitted."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


class LinkReading(NamedTuple):
    """One interface at one moment. Bytes are L2 without FCS, counted since the interface was made."""

    rx_packets: int
    tx_packets: int
    rx_bytes: int
    tx_bytes: int
    rx_errors: int
    tx_errors: int
    rx_dropped: int
    tx_dropped: int
    carrier: bool
    mtu: int


class LinkReader:
    """Reads one interface of one namespace over a netlink socket opened there: tens of µs a reading."""

    def __init__(self, netns: str | None, interface: str) -> None:
        def make() -> tuple[socket.socket, int]:
            try:
                index = socket.if_nametoindex(interface)
            except OSError as error:
                where = f"namespace '{netns}'" if netns else "this namespace"
                raise TestbedError(f"there is no interface '{interface}' in {where}") from error
            opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
            opened.settimeout(1.0)
            opened.bind((0, 0))
            return opened, index

        self._interface = interface
        self._socket, self.index = run_in_namespace(netns, make)
        self._sequence = 0

    def read(self) -> LinkReading:
        """Return the counters now. Raises TestbedError when the interface has gone."""
        self._sequence = (self._sequence + 1) & 0x7FFFFFFF
        body = _LINK.pack(socket.AF_UNSPEC, 0, self.index, 0, 0)
        head = _HEADER.pack(_HEADER.size + len(body), _RTM_GETLINK, _NLM_F_REQUEST, self._sequence, 0)
        try:
            self._socket.send(head + body)
            while True:
                answer = self._socket.recv(65536)
                _, kind, _, sequence, _ = _HEADER.unpack_from(answer)
                if sequence == self._sequence:
                    break
        except OSError as error:
            raise TestbedError(f"the kernel does not give the counters of '{self._interface}': {error}") from error
        if kind == _NLMSG_ERROR:
            number = -struct.unpack_from("=i", answer, _HEADER.size)[0]
            raise TestbedError(f"the interface '{self._interface}' has gone: {os.strerror(number)}")
        return _parse(answer)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def _parse(message: bytes) -> LinkReading:
    end = _HEADER.unpack_from(message)[0]
    at = _HEADER.size + _LINK.size
    stats: tuple[int, ...] = (0,) * 8
    carrier, mtu = True, 1500
    while at + _ATTRIBUTE.size <= end:
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        if length < _ATTRIBUTE.size:
            break
        if kind == _IFLA_STATS64:
            stats = _STATS.unpack_from(message, at + 4)
        elif kind == _IFLA_CARRIER:
            carrier = message[at + 4] == 1
        elif kind == _IFLA_MTU:
            mtu = struct.unpack_from("=I", message, at + 4)[0]
        at += (length + 3) & ~3
    rx_packets, tx_packets, rx_bytes, tx_bytes, rx_errors, tx_errors, rx_dropped, tx_dropped = stats
    return LinkReading(
        rx_packets, tx_packets, rx_bytes, tx_bytes, rx_errors, tx_errors, rx_dropped, tx_dropped, carrier, mtu
    )


SOL_PACKET, SO_SNDBUFFORCE, QDISC_BYPASS = 263, 32, 20
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
        """Open a further socket when the newest has received enough; the former one keeps receiving."""
        self._seen += self._receivers[-1].new()[0]
        if self._seen >= max(self._limit, _ENOUGH):
            self._keep(1)
            self._receivers.append(Receiver(*self._place, _ROOM))
            self._seen = 0

    def frames(self) -> tuple[CapturedFrame, ...]:
        """Take the frames since the last call, oldest first. Time stamps are on the monotonic clock, s."""
        frames: list[CapturedFrame] = []
        for receiver in self._receivers:
            since = frames[-1].timestamp if frames else 0.0
            rows = ((frame.data, (frame.arrived - self._offset) / 1e9) for frame in receiver.read(_MANY))
            frames += [CapturedFrame(self._port, data, moment) for data, moment in rows if moment > since]
        self._keep(1)
        return tuple(frames[-self._limit :])

    def _keep(self, receivers: int) -> None:
        """Close all but the last *receivers*."""
        while len(self._receivers) > receivers:
            self._receivers.pop(0).close()

    def close(self) -> None:
        """Keep no more frames."""
        self._keep(0)
