"""Received frames counted by the kernel, kind by kind, without one of them being copied.

One packet socket for each kind, all of one fanout group (packet(7), ``PACKET_FANOUT_CBPF``): for each frame received
one classic BPF program gives its socket, so the cost does not grow with the sockets. The sockets have
next to no room, and ``PACKET_STATISTICS`` counts frames that found none as well: counts are exact at any rate. Frames
of no kind go to the first socket, whose filter takes nothing.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lineproof.errors import TestbedError
from lineproof.system.network_namespace import run_in_namespace
from lineproof.units import FCS

from .filters import TAKES_NOTHING, packed, program
from .group_marks import FrameKind
from .packet_sockets import AUXDATA, SOL_PACKET, arrival_facts, new_frames, open_packet_socket

KINDS = 255
"""Kinds that a port can count: the kernel's usual limit of a fanout group, less the socket that takes nothing."""

_FANOUT, _FANOUT_DATA = 18, 22
_BY_PROGRAM, _NEW = 6 << 16, 0x2000 << 16
_ATTACH_FILTER, _DETACH_FILTER = 26, 27


@dataclass(slots=True)
class _KindCounts:
    socket: socket.socket | None
    size: int
    """L2 bytes of a frame with FCS: as sent, until the first frame is received."""
    measured: bool = False
    frames: int = 0
    octets: int = 0


class FrameCounter:
    """Counts frames received on *interface* of *netns*. Costs nothing before :meth:`count` and after :meth:`close`."""

    def __init__(self, netns: str | None, interface: str) -> None:
        self._netns, self._interface = netns, interface
        self._kinds: dict[FrameKind, _KindCounts] = {}
        self._first: socket.socket | None = None
        self._group = 0
        self._joined: list[FrameKind] = []

    def count(self, sizes: Mapping[FrameKind, int]) -> None:
        """Count these kinds too from now on. *sizes*: L2 bytes with FCS as sent.

        Raises TestbedError when there are too many, or the kernel refuses.
        """
        new = [kind for kind in sizes if kind not in self._joined]
        if not new:
            return
        if (found := len(self._joined) + len(new)) > KINDS:
            raise TestbedError(
                f"interface '{self._interface}' would have to count {found} kinds of frames for flow statistics,"
                f" two for each packet group with frames of one length; expected {KINDS} or fewer"
            )
        try:
            run_in_namespace(self._netns, lambda: self._open(new, sizes))
        except OSError as error:
            raise TestbedError(f"the kernel does not count frames by kind on '{self._interface}': {error}") from error

    def _open(self, new: Iterable[FrameKind], sizes: Mapping[FrameKind, int]) -> None:
        if self._first is None:
            self._first = self._member(_BY_PROGRAM | _NEW)
            self._group = struct.unpack("=I", self._first.getsockopt(SOL_PACKET, _FANOUT, 4))[0] & 0xFFFF
        for kind in new:
            opened = self._member(_BY_PROGRAM | self._group)
            opened.setsockopt(socket.SOL_SOCKET, _DETACH_FILTER, 0)
            row = self._kinds.setdefault(kind, _KindCounts(None, sizes[kind]))
            row.socket, row.size, row.measured = opened, sizes[kind], False
            self._joined.append(kind)
        # a socket's number is its place in the order of joining
        answers = {kind: number for number, kind in enumerate(self._joined, 1)}
        with packed(program(answers, base=0)) as found:
            self._first.setsockopt(SOL_PACKET, _FANOUT_DATA, found)

    def _member(self, fanout: int) -> socket.socket:
        # it must accept nothing until it gets only its own frames
        with packed(TAKES_NOTHING) as nothing:
            options = (
                (socket.SOL_SOCKET, socket.SO_RCVBUF, 1),
                (SOL_PACKET, AUXDATA, 1),
                (socket.SOL_SOCKET, _ATTACH_FILTER, nothing),
            )
            opened = open_packet_socket(self._interface, options)
        try:
            opened.setsockopt(SOL_PACKET, _FANOUT, struct.pack("=I", fanout))
        except OSError:
            opened.close()
            raise
        return opened

    def total(self, kind: FrameKind) -> tuple[int, int]:
        """Frames, and L2 bytes with FCS, of *kind* since it was counted first."""
        row = self._kinds.get(kind)
        if row is None:
            return 0, 0
        _take_over(row)
        return row.frames, row.octets

    def settle(self) -> None:
        """Take over the kernel's counts, which have 32 bits."""
        for kind in self._joined:
            _take_over(self._kinds[kind])

    def close(self) -> None:
        """Stop counting; counts stay."""
        self.settle()
        opened = [row.socket for row in self._kinds.values() if row.socket is not None]
        if self._first is not None:
            opened.append(self._first)
        for row in self._kinds.values():
            row.socket = None
        self._first = None
        self._joined = []
        if opened:
            # the kernel takes milliseconds for each
            threading.Thread(target=_close, args=(opened,), name="close-counters", daemon=True).start()


def _take_over(row: _KindCounts) -> None:
    if row.socket is None:
        return
    frames, _ = new_frames(row.socket)
    if frames and not row.measured:
        # the first frame had room; an error here means that the interface was down for a while
        with contextlib.suppress(OSError):
            buffer = bytearray(65536)
            size, ancillary, _, _ = row.socket.recvmsg_into([buffer], 256)
            row.size, row.measured = size + FCS + len(arrival_facts(ancillary)[1]), True
    row.frames += frames
    row.octets += frames * row.size


def _close(sockets: Iterable[socket.socket]) -> None:
    for each in sockets:
        each.close()
