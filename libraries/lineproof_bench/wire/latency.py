"""The receiving end of latency streams: every frame is read, with the kernel's time stamp of its arrival."""

from __future__ import annotations

import contextlib
import logging
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from lineproof.errors import TestbedError
from lineproof.system.network_namespace import run_in_namespace
from lineproof.units import FCS

from .counting import vlan_tag_bytes
from .filters import packed, program
from .group_marks import LATENCY, LATENCY_HEADER, MAGIC, FrameKind, IpHeader, ip_header_of, packet_end

_SOL_PACKET = 263
_STATISTICS, _AUXDATA = 6, 8
_ATTACH_FILTER, _SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 26, 33, 35
_ETH_P_ALL = 0x0003
_COUNTS = struct.Struct("=II")
_TIME = struct.Struct("@ll")
_BUFFER = 32 << 20
"""Bytes of frames that may wait to be read: some tens of thousands of short ones."""
_EVERYTHING = 0x40000

log = logging.getLogger("lineproof.server")


@dataclass(frozen=True, slots=True)
class LatencyArrival:
    """A latency frame: group number, start and sequence number of its header; ``size`` in L2 bytes with FCS.

    ``sent`` and ``arrived`` in ns of real time.
    """

    group: int
    start: int
    number: int
    sent: int
    arrived: int
    size: int


class LatencyReader:
    """Frames of latency streams received on *interface* of *netns* since it was made."""

    def __init__(self, netns: str | None, interface: str) -> None:
        def make() -> socket.socket:
            opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
            try:
                kinds = {FrameKind(version, LATENCY, None): _EVERYTHING for version in (4, 6)}
                with packed(program(kinds, base=14)) as found:
                    opened.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, found)
                opened.setsockopt(_SOL_PACKET, _AUXDATA, 1)
                opened.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
                with contextlib.suppress(OSError):
                    opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
                opened.setblocking(False)
                opened.bind((interface, _ETH_P_ALL))
            except OSError:
                opened.close()
                raise
            return opened

        self._interface = interface
        self._buffer = bytearray(65536)
        try:
            self._socket = run_in_namespace(netns, make)
        except OSError as error:
            raise TestbedError(f"cannot receive latency frames on interface '{interface}': {error}") from error

    def read(self, limit: int) -> Iterator[LatencyArrival]:
        """The frames that have arrived, oldest first, *limit* at most."""
        buffers = [self._buffer]
        for _ in range(limit):
            try:
                size, ancillary, _, _ = self._socket.recvmsg_into(buffers, 256)
            except OSError:
                # nothing is left; or the interface went down, which the kernel reports once
                return
            arrived = 0
            for level, kind, value in ancillary:
                if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
                    seconds, rest = _TIME.unpack_from(value)
                    arrived = seconds * 1_000_000_000 + rest
            found = _header(bytes(self._buffer[:size]))
            if found is not None:
                _, start, group, number, sent = found
                yield LatencyArrival(group, start, number, sent, arrived, size + FCS + vlan_tag_bytes(ancillary))

    def unread(self) -> int:
        """Frames since the last call that found no room to wait; they are logged too."""
        _, dropped = _COUNTS.unpack(self._socket.getsockopt(_SOL_PACKET, _STATISTICS, _COUNTS.size))
        if dropped:
            log.warning(
                "%d latency frames on '%s' came faster than they could be read and appear as lost",
                dropped,
                self._interface,
            )
        return int(dropped)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def _header(frame: bytes) -> tuple[int, int, int, int, int] | None:
    header: IpHeader | None = ip_header_of(frame)
    if header is None:
        return None
    at = packet_end(frame, header) - LATENCY_HEADER.size
    if at < header.offset:
        return None
    found: tuple[int, int, int, int, int] = LATENCY_HEADER.unpack_from(frame, at)
    return found if found[0] == MAGIC else None
