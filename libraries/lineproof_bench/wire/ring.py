"""The kernel's transmit ring of a packet socket, as arrays: many frames are handed over with one system call.

``PACKET_TX_RING`` with ``TPACKET_V2`` (packet(7), Documentation/networking/packet_mmap.rst). Two choices were measured
on a veth pair: past the queueing discipline, and with a virtio-net header whose ``hdr_len`` is the whole frame. The
latter makes the kernel copy the frame into a linear buffer at once, which spares a page allocation and a second copy
when the frame changes namespace: a third more frames per second than the plain ring.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import socket
import struct

import numpy as np
from numpy.typing import NDArray

from lineproof.errors import TestbedError

from .frames import Bytes, Indexes
from .linux import QDISC_BYPASS, SO_SNDBUFFORCE, SOL_PACKET

_TX_RING, _VERSION, _LOSS, _VNET_HDR = 13, 10, 14, 15
_TPACKET_V2 = 1
_SEND_REQUEST = 1
_LENGTH_WORD = 1
_DATA = 32
"""Offset of a frame's data in its slot: the TPACKET_V2 header, aligned."""
_VNET = 10
"""Bytes of ``struct virtio_net_hdr`` before the frame; ``hdr_len`` is its 16-bit word at offset 2."""

PAGE = 4096
LARGEST_RING = 32 << 20
"""The most bytes of one ring."""
USUAL_SLOTS = 4096
"""Slots of a ring that is written again for every batch."""


def stride_for(longest: int) -> int:
    """Bytes of a slot that holds a frame of *longest* bytes: a power of two, so that slots lie evenly in pages."""
    return max(128, 1 << (_DATA + _VNET + longest - 1).bit_length())


def slots_for(period: int, longest: int) -> int | None:
    """Slots that hold whole periods of *period* frames and whole pages, or None when that is too large a ring."""
    stride = stride_for(longest)
    whole = math.lcm(period, max(1, PAGE // stride))
    slots = whole * max(1, -(-1024 // whole))
    return slots if slots * stride <= LARGEST_RING else None


class TxRing:
    """A ring of *slots* for frames of up to *longest* bytes on *interface* of the calling thread's namespace."""

    def __init__(self, interface: str, longest: int, slots: int = USUAL_SLOTS) -> None:
        stride = stride_for(longest)
        block = max(stride, PAGE)
        self.slots = slots
        self.stride = stride
        self._next = 0
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        try:
            for option, value in ((_VERSION, _TPACKET_V2), (_VNET_HDR, 1), (_LOSS, 1)):
                self._socket.setsockopt(SOL_PACKET, option, value)
            with contextlib.suppress(OSError):  # slower without, not wrong
                self._socket.setsockopt(SOL_PACKET, QDISC_BYPASS, 1)
            with contextlib.suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 8 << 20)
            request = struct.pack("=IIII", block, slots * stride // block, stride, slots)
            self._socket.setsockopt(SOL_PACKET, _TX_RING, request)
            self._map = mmap.mmap(self._socket.fileno(), slots * stride)
            self._socket.bind((interface, 0))
        except OSError as error:
            self._socket.close()
            raise TestbedError(f"no transmit ring of {slots} frames on interface '{interface}': {error}") from error
        self._bytes: Bytes = np.frombuffer(self._map, np.uint8).reshape(slots, stride)
        words: NDArray[np.uint32] = self._bytes.view(np.uint32)
        self._status, self._lengths = words[:, 0], words[:, _LENGTH_WORD]
        self._headers: NDArray[np.uint16] = self._bytes.view(np.uint16)[:, (_DATA + 2) // 2]

    @property
    def next(self) -> int:
        """The slot that is sent next."""
        return self._next

    def write(self, slots: Indexes, rows: Bytes) -> None:
        """Put frames of one length into *slots*, one row each. The slots must be free."""
        length = rows.shape[1]
        self._bytes[slots, _DATA + _VNET : _DATA + _VNET + length] = rows
        self._lengths[slots] = _VNET + length
        self._headers[slots] = length

    def free(self, frames: int) -> bool:
        """Return whether the next *frames* slots have left the kernel."""
        begin, end = self._next, self._next + frames
        busy = self._status[begin:end].any() or (end > self.slots and self._status[: end - self.slots].any())
        return not busy

    def send(self, frames: int) -> int:
        """Hand over the next *frames* slots; returns how many the kernel took. Those not taken stay next."""
        if not self.free(frames):
            return 0
        begin, end = self._next, min(self._next + frames, self.slots)
        over = self._next + frames - end
        self._status[begin:end] = _SEND_REQUEST
        self._status[:over] = _SEND_REQUEST
        with contextlib.suppress(BlockingIOError, InterruptedError):
            try:
                self._socket.send(b"", socket.MSG_DONTWAIT)
            except OSError as error:
                # ENOBUFS: the peer's queue refused a frame, which then is not sent but offered again
                if error.errno not in (105, 11):
                    raise TestbedError(f"the kernel refuses to send: {error}") from error
        refused = self._withdraw(begin, end) + self._withdraw(0, over)
        taken = frames - refused
        self._next = (self._next + taken) % self.slots
        return taken

    def _withdraw(self, begin: int, end: int) -> int:
        waiting = self._status[begin:end] == _SEND_REQUEST
        count = int(np.count_nonzero(waiting))
        if count:
            self._status[begin:end][waiting] = 0
        return count

    def close(self) -> None:
        """Close ring and socket."""
        self._socket.close()
        del self._bytes, self._status, self._lengths, self._headers
        with contextlib.suppress(BufferError):
            self._map.close()


class RingStore:
    """Rings kept for the next trial: giving one back costs tens of milliseconds of the kernel's RCU grace periods."""

    def __init__(self, interface: str) -> None:
        self._interface = interface
        self._idle: list[TxRing] = []

    def take(self, longest: int, slots: int) -> TxRing:
        """An idle ring of exactly this shape, or a new one."""
        for ring in self._idle:
            if ring.slots == slots and ring.stride == stride_for(longest) and ring.free(slots):
                self._idle.remove(ring)
                return ring
        return TxRing(self._interface, longest, slots)

    def keep(self, ring: TxRing) -> None:
        """Keep *ring* for later; the oldest beyond a handful is closed."""
        self._idle.append(ring)
        if len(self._idle) > 6:
            self._idle.pop(0).close()
