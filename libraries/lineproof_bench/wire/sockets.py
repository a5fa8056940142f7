"""Packet sockets (packet(7)): opened at an interface, and frames received with the kernel's time stamps."""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lineproof.errors import TestbedError
from lineproof.system.network_namespace import run_in_namespace

SOL_PACKET, SO_SNDBUFFORCE = 263, 32
_STATISTICS, _AUXDATA, _IGNORE_OUTGOING = 6, 8, 23
_ATTACH_FILTER, _SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 26, 33, 35
_ALL_PROTOCOLS = 0x0003

_COUNTS, _TIME, _AUX = struct.Struct("=II"), struct.Struct("@ll"), struct.Struct("=IIIHHHH")
_VLAN_VALID, _VLAN_TPID_VALID = 0x10, 0x40
_INSTRUCTION, _PROGRAM = struct.Struct("=HBBI"), struct.Struct("@HP")

SocketOption = tuple[int, int, int | bytes]
Instruction = tuple[int, int, int, int]
"""Of classic BPF (Linux's Documentation/networking/filter.rst): code, jump if true, jump if false, constant."""


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
