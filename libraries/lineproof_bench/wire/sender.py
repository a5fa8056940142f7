"""The processes that send: ``python -m lineproof_bench.wire.sender``, started by the backend.

The first process gets the members as one JSON line and forks one process for each: several for a port, each of which
sends its share of a fast port's frames, and one more for its latency streams. A member takes commands from its own
pipe, a dictionary each, and answers each with a sentence, empty unless it failed: ``load`` (what to send, duration,
share), ``go`` (at a moment of the monotonic clock), ``update``, ``stop``. Processes, because the interpreter's lock
would let the server's protocol work, or a second thread, delay frames. A member ends when its pipe ends, the first
process when its members have.

Each frame of a latency stream gets its number and the time just before it is sent. The kernel's transmit time stamp
(``SO_TIMESTAMPING``) gives the delay until the frame reached the interface, which is kept for the receiver. Two system
calls for each frame: for thousands of frames/s, not for millions.
"""

from __future__ import annotations

import contextlib
import json
import math
import mmap
import os
import signal
import socket
import struct
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lineproof.errors import LineproofError, TestbedError
from lineproof.system.network_namespace import enter_namespace
from lineproof.units import FCS

from .frames import Bytes, Indexes, PlannedFrames, locate
from .linux import QDISC_BYPASS, SO_SNDBUFFORCE, SOL_PACKET, open_packet_socket, wake_punctually
from .protocol import LATENCY_HEADER, MAGIC, STATUS, STATUS_BYTES, SenderLoad, SentProbes

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
    """Return the bytes of a slot for a frame of *longest* bytes: a power of two, so that slots lie evenly in pages."""
    return max(128, 1 << (_DATA + _VNET + longest - 1).bit_length())


def slots_for(period: int, longest: int) -> int | None:
    """Return how many slots hold whole periods of *period* frames and whole pages; None: too large a ring."""
    stride = stride_for(longest)
    whole = math.lcm(period, max(1, PAGE // stride))
    slots = whole * max(1, -(-1024 // whole))
    return slots if slots * stride <= LARGEST_RING else None


class TxRing:
    """A ring of *slots* for frames of up to *longest* bytes on *interface* of the calling thread's namespace.

    ``PACKET_TX_RING`` with ``TPACKET_V2`` (packet(7), Documentation/networking/packet_mmap.rst): many frames are handed
    over with one system call. Two choices were measured on a veth pair: past the queueing discipline, and with a
    virtio-net header whose ``hdr_len`` is the whole frame. The latter makes the kernel copy the frame into a linear
    buffer at once, which spares a page allocation and a second copy when the frame changes namespace: a third more
    frames per second than the plain ring.
    """

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
        fields: NDArray[np.uint32] = self._bytes.view(np.uint32)
        self._status, self._lengths = fields[:, 0], fields[:, _LENGTH_WORD]
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
        """Return an idle ring of exactly this shape, or a new one."""
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


_SO_TIMESTAMPING = 37
_TRANSMITTED, _SOFTWARE, _ONLY = 1 << 1, 1 << 4, 1 << 11
"""Flags (Linux's Documentation/networking/timestamping.rst): software stamps when sending, without the frame."""
_TIME = struct.Struct("@ll")
_LATEST_STAMP = 10_000_000
"""ns after which a stamp is not taken for this frame's."""
_BATCH = 32
"""Frames that are built at once, while there is time."""
_IDLE_TIME = 0.0003
"""Seconds before the next frame is due in which no frames are built."""
_NUMBERS = 1 << 32


def open_socket(interface: str) -> socket.socket:
    """Return a socket that sends whole frames from *interface* of the calling thread's namespace, past any queue."""
    stamps = struct.pack("=I", _TRANSMITTED | _SOFTWARE | _ONLY)
    wanted = (
        (SOL_PACKET, QDISC_BYPASS, 1),
        (socket.SOL_SOCKET, SO_SNDBUFFORCE, 8 << 20),
        (socket.SOL_SOCKET, _SO_TIMESTAMPING, stamps),
    )
    try:
        return open_packet_socket(interface, (), wanted)
    except OSError as error:
        raise TestbedError(f"latency frames cannot be sent from interface '{interface}': {error}") from error


class LatencySender(PlannedFrames):
    """The latency streams of one port, sent through the socket *opened*."""

    def __init__(self, opened: socket.socket, load: SenderLoad, duration: float | None, probes: SentProbes) -> None:
        super().__init__(load, duration)
        self._probes = probes
        self._socket, self._groups, self._start = opened, load.groups, load.start
        self._numbers: defaultdict[int, int] = defaultdict(int)
        self._built = 0
        self._ready: deque[tuple[bytearray, int]] = deque()
        self._build()

    def _build(self) -> None:
        if not self._plan:
            return
        which, numbers = locate(self._plan, np.arange(self._built, self._built + _BATCH, dtype=np.int64))
        built: list[tuple[bytearray, int]] = [(bytearray(), 0)] * _BATCH
        for place, stream in enumerate(self._streams):
            mine = np.flatnonzero(which == place)
            for at, row in zip(mine.tolist(), stream.rows(numbers[mine]), strict=True):
                built[at] = bytearray(row.tobytes()), self._groups[place]
        self._ready.extend(built)
        self._built += _BATCH

    def send(self, elapsed: float) -> int:
        """Send what is due; returns how many frames were taken."""
        due = self.pace.allowance(elapsed)
        taken = 0
        while taken < due:
            if not self._ready:
                self._build()
            frame, group = self._ready[0]
            number = self._numbers[group]
            try:
                stamp = time.time_ns()
                LATENCY_HEADER.pack_into(
                    frame, len(frame) - LATENCY_HEADER.size, MAGIC, self._start, group, number, stamp
                )
                self._socket.send(frame)
            except OSError as error:
                # EAGAIN, ENOBUFS: the peer's queue refused the frame, which is offered again
                if error.errno not in (11, 105):
                    raise TestbedError(f"the kernel refuses to send: {error}") from error
                break
            delay = self._transmitted(stamp) - stamp
            if 0 <= delay < _LATEST_STAMP:
                self._probes.keep(group, self._start, number, delay)
            self._probes.count(group, len(frame) + FCS)
            self._numbers[group] = (number + 1) % _NUMBERS
            self._ready.popleft()
            taken += 1
        self.pace.took(taken)
        return taken

    def _transmitted(self, since: int) -> int:
        """Return when the kernel sent the last frame, at *since* ns of real time or later; 0 if unknown."""
        while True:
            try:
                _, ancillary, _, _ = self._socket.recvmsg(1, 256, socket.MSG_ERRQUEUE)
            except OSError:
                return 0
            for level, kind, value in ancillary:
                if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPING:
                    seconds, rest = _TIME.unpack_from(value)
                    # older: the stamp of an earlier frame
                    if (moment := int(seconds * 1_000_000_000 + rest)) >= since:
                        return moment

    def rest(self, elapsed: float) -> float:
        """Return the seconds until the next frame is due."""
        left = self._schedule.moment(self.pace.sent + 1) - elapsed
        if left > _IDLE_TIME and len(self._ready) < _BATCH // 2:
            self._build()
            return 0.0
        return max(left, 0.0)

    def close(self) -> None:
        """Do nothing: the socket is the caller's."""


TICK = 0.0005
"""Seconds between batches at moderate rates: keeps bursts short and leaves the CPU to the router."""

NICE = -5
"""setpriority(2): a little above other processes, so that a small machine keeps the rate."""

OVERTIME = 0.05
"""Seconds beyond the duration after which frames that are still due stay unsent."""


class SenderShare(PlannedFrames):
    """One process's part of a port's traffic: its ring, its frames and its pace."""

    def __init__(self, rings: RingStore, load: SenderLoad, duration: float | None, share: int, shares: int) -> None:
        super().__init__(load, duration, share, shares)
        self._share, self._shares = share, shares
        longest = max(stream.length for stream in self._streams)
        period = self._period()
        slots = slots_for(period, longest) if period else None
        self._static = slots is not None
        self._rings = rings
        self.ring = rings.take(longest, slots or USUAL_SLOTS)
        if self._static:
            self._fill(0, self.ring.slots)

    def _period(self) -> int | None:
        """Return after how many of this share's frames the ring's contents repeat; None when they never do."""
        if len(self._plan) != 1:
            return None
        [phase] = self._plan
        whole = len(phase.streams)
        for place, stream in enumerate(self._streams):
            per_cycle = int(phase.per_cycle[place])
            if per_cycle:
                whole = int(np.lcm(whole, len(phase.streams) * (stream.period // np.gcd(stream.period, per_cycle))))
        return int(whole // np.gcd(whole, self._shares))

    def _fill(self, first: int, frames: int) -> None:
        """Write this share's frames *first* … into the ring's next slots."""
        own = np.arange(first, first + frames, dtype=np.int64)
        which, numbers = locate(self._plan, own * self._shares + self._share)
        slots = (self.ring.next + np.arange(frames, dtype=np.int64)) % self.ring.slots
        for place, stream in enumerate(self._streams):
            mine = which == place
            if mine.any():
                self.ring.write(slots[mine], stream.rows(numbers[mine]))

    def send(self, elapsed: float) -> int:
        """Send what is due; returns how many frames were taken."""
        frames = self.pace.allowance(elapsed)
        if frames <= 0:
            return 0
        if not self._static:
            if not self.ring.free(frames):
                return 0
            self._fill(self.pace.sent, frames)
        taken = self.ring.send(frames)
        self.pace.took(taken)
        return taken

    def rest(self, elapsed: float) -> float:
        """Return the seconds until the next batch."""
        return self.pace.rest(elapsed, TICK)

    def close(self) -> None:
        """Return the ring."""
        self._rings.keep(self.ring)


class RunningTrial:
    """One start of traffic: the sending thread, and the flag that it checks between batches.

    *tell* is called between batches with False, and with True when all is sent or nothing more can be.
    """

    def __init__(
        self, share: SenderShare | LatencySender, duration: float | None, tell: Callable[[bool], None]
    ) -> None:
        self._share, self._duration, self._tell = share, duration, tell
        self._stopped = threading.Event()
        self._begin = 0.0
        self._thread: threading.Thread | None = None

    def elapsed(self) -> float:
        """Return the seconds since it began."""
        return time.monotonic() - self._begin

    @property
    def left(self) -> float | None:
        """Seconds left of the duration."""
        return None if self._duration is None else max(0.0, self._duration - self.elapsed())

    def go(self, at: float) -> None:
        """Begin at *at* of the monotonic clock."""
        self._begin = at
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        share = self._share
        time.sleep(max(0.0, self._begin - time.monotonic()))
        try:
            while not self._stopped.is_set():
                elapsed = self.elapsed()
                if not share.send(elapsed):
                    over = self._duration is not None and elapsed > self._duration + OVERTIME
                    if over or share.pace.finished(elapsed):
                        break
                self._tell(False)
                self._wait()
        except LineproofError as error:
            sys.stderr.write(f"{error}\n")
        if not self._stopped.is_set():
            self._tell(True)

    def _wait(self) -> None:
        elapsed = self.elapsed()
        rest = self._share.rest(elapsed)
        if rest > 0:
            left = 1.0 if self._duration is None else self._duration - elapsed
            time.sleep(min(rest, 0.02, left) if left > 0 else 0.0001)

    @property
    def sending(self) -> bool:
        """Return whether the thread has more to send."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """End at the next batch and give the ring back."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(1.0)
        self._share.close()


class Sender:
    """The commands of one member. *timed*: a member for latency streams."""

    def __init__(self, interface: str, status: mmap.mmap, timed: bool) -> None:
        self._rings, self._status = RingStore(interface), status
        self._socket = open_socket(interface) if timed else None
        self._probes = SentProbes(status)
        self._trial: RunningTrial | None = None
        self._number = 0

    def _tell(self, ended: bool) -> None:
        """Write the status: the trial of the present number has *ended*, or only those before it."""
        STATUS.pack_into(self._status, 0, self._number - (not ended), time.process_time())

    def _close(self) -> None:
        if self._trial is not None:
            self._trial.stop()
            self._trial = None

    def _load(self, order: Mapping[str, Any], duration: float | None) -> RunningTrial:
        load: SenderLoad = order["load"]
        if self._socket is not None:
            return RunningTrial(LatencySender(self._socket, load, duration, self._probes), duration, self._tell)
        share = SenderShare(self._rings, load, duration, order["share"], order["shares"])
        return RunningTrial(share, duration, self._tell)

    def command(self, order: Mapping[str, Any]) -> None:
        """Do one command. Raises TestbedError."""
        match order["op"]:
            case "load":
                self._close()
                self._number = order["number"]
                self._trial = self._load(order, order["duration"])
                self._tell(False)
            case "stop":
                self._close()
                self._tell(True)
            case "go" if self._trial:
                self._trial.go(order["at"])
            case "update" if self._trial and self._trial.sending:
                left = self._trial.left
                self._close()
                self._trial = self._load(order, left)
                self._trial.go(order["at"])


def serve(member: Mapping[str, Any]) -> None:
    """Be one member until its pipe ends."""
    with Connection(member["pipe"]) as parent:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, NICE)
        try:
            enter_namespace(member["netns"])
            if member["timed"]:
                wake_punctually()
            else:
                TxRing(member["interface"], 60).close()
            sender = Sender(member["interface"], mmap.mmap(member["status"], STATUS_BYTES), member["timed"])
        except LineproofError as error:
            parent.send(str(error))
            return
        parent.send("")
        with contextlib.suppress(EOFError, ConnectionError):
            while order := parent.recv():
                try:
                    sender.command(order)
                    parent.send("")
                except LineproofError as error:
                    parent.send(str(error))
        sender.command({"op": "stop"})


def main() -> int:
    """Fork the members and wait for them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    members = json.loads(sys.stdin.readline())["members"]
    for member in members:
        if os.fork() == 0:
            for other in members:
                if other is not member:
                    # else the death of a member would not end its pipe
                    os.close(other["pipe"])
            status = 1
            try:
                serve(member)
                status = 0
            except (BrokenPipeError, KeyboardInterrupt):
                pass
            finally:
                os._exit(status)
    for member in members:
        os.close(member["pipe"])
    for _ in members:
        os.wait()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
