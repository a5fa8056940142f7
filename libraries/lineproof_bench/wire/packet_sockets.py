"""Packet sockets (packet(7)): opened at an interface, and what the kernel says of a received frame."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterable, Sequence

SOL_PACKET = 263
STATISTICS, AUXDATA, IGNORE_OUTGOING = 6, 8, 23
SO_SNDBUFFORCE, SO_RCVBUFFORCE, SO_TIMESTAMPNS = 32, 33, 35
ALL_PROTOCOLS = 0x0003

_COUNTS, _TIME, _AUX = struct.Struct("=II"), struct.Struct("@ll"), struct.Struct("=IIIHHHH")
_VLAN_VALID, _VLAN_TPID_VALID = 0x10, 0x40

SocketOption = tuple[int, int, int | bytes]


def open_packet_socket(
    interface: str, options: Sequence[SocketOption], wanted: Sequence[SocketOption] = (), protocol: int = ALL_PROTOCOLS
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


def new_frames(opened: socket.socket) -> tuple[int, int]:
    """Return frames since the last call, and those of them that found no room."""
    received, dropped = _COUNTS.unpack(opened.getsockopt(SOL_PACKET, STATISTICS, _COUNTS.size))
    return received, dropped


def arrival_facts(ancillary: Iterable[tuple[int, int, bytes]]) -> tuple[int, bytes]:
    """Return a frame's time stamp (ns, 0: unknown), and the VLAN tag that the kernel took out of it."""
    stamp, tag = 0, b""
    for level, kind, value in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
            seconds, rest = _TIME.unpack_from(value)
            stamp = seconds * 1_000_000_000 + rest
        elif level == SOL_PACKET and kind == AUXDATA and len(value) >= _AUX.size:
            status, _, _, _, _, number, protocol = _AUX.unpack_from(value)
            if status & _VLAN_VALID:
                tag = struct.pack("!HH", protocol if status & _VLAN_TPID_VALID else 0x8100, number)
    return stamp, tag
