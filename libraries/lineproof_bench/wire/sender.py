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
import mmap
import os
import signal
import socket
import struct
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from lineproof.errors import LineproofError, TestbedError
from lineproof.system.network_namespace import enter_namespace
from lineproof.units import FCS

from .frames import locate
from .linux import QDISC_BYPASS, SO_SNDBUFFORCE, SOL_PACKET, open_packet_socket, wake_punctually
from .protocol import LATENCY_HEADER, MAGIC, STATUS, STATUS_BYTES, SenderLoad, SentProbes
from .ring import USUAL_SLOTS, RingStore, TxRing, slots_for
from .schedule import PlannedFrames

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
    """A socket that sends whole frames from *interface* of the calling thread's namespace, past any queue."""
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
        """When the kernel sent the last frame, at *since* ns of real time or later; 0 if unknown."""
        while True:
            try:
                _, ancillary, _, _ = self._socket.recvmsg(1, 256, socket.MSG_ERRQUEUE)
            except OSError:
                return 0
            for level, kind, value in ancillary:
                if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPING:
                    seconds, rest = _TIME.unpack_from(value)
                    # older: the stamp of an earlier frame
                    if (found := int(seconds * 1_000_000_000 + rest)) >= since:
                        return found

    def rest(self, elapsed: float) -> float:
        """Seconds until the next frame is due."""
        left = self._schedule.moment(self.pace.sent + 1) - elapsed
        if left > _IDLE_TIME and len(self._ready) < _BATCH // 2:
            self._build()
            return 0.0
        return max(left, 0.0)

    def close(self) -> None:
        """Nothing to close: the socket is the caller's."""


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
        """After how many of this share's frames the ring's contents repeat; None when they never do."""
        if len(self._plan) != 1:
            return None
        [phase] = self._plan
        whole = len(phase.streams)
        for place, stream in enumerate(self._streams):
            each = int(phase.per_cycle[place])
            if each:
                whole = int(np.lcm(whole, len(phase.streams) * (stream.period // np.gcd(stream.period, each))))
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
        """Seconds until the next batch."""
        return self.pace.rest(elapsed, TICK)

    def close(self) -> None:
        """Return the ring."""
        self._rings.keep(self.ring)


class RunningTrial:
    """One start of traffic: the sending thread, and the flags that it checks between batches."""

    def __init__(self, share: SenderShare | LatencySender, duration: float | None) -> None:
        self._share = share
        self._duration = duration
        self._ended = threading.Event()
        self._begin = 0.0
        self._thread: threading.Thread | None = None
        self.failure = ""

    def elapsed(self) -> float:
        """Seconds since it began."""
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
        try:
            time.sleep(max(0.0, self._begin - time.monotonic()))
            while not self._ended.is_set():
                elapsed = self.elapsed()
                if not share.send(elapsed):
                    over = self._duration is not None and elapsed > self._duration + OVERTIME
                    if over or share.pace.finished(elapsed):
                        return
                self._wait()
        except LineproofError as error:
            self.failure = str(error)

    def _wait(self) -> None:
        elapsed = self.elapsed()
        rest = self._share.rest(elapsed)
        if rest > 0:
            left = 1.0 if self._duration is None else self._duration - elapsed
            time.sleep(min(rest, 0.02, left) if left > 0 else 0.0001)

    @property
    def over(self) -> bool:
        """Return whether the thread has sent its last."""
        return self._thread is not None and not self._thread.is_alive()

    def stop(self) -> None:
        """End at the next batch and give the ring back."""
        self._ended.set()
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
        self._ended = 0
        self._lock = threading.Lock()
        self._awake = threading.Event()

    def watch(self) -> None:
        """Keep the status up to date while a trial runs, and close the trial when its threads are done."""
        while self._awake.wait():
            with self._lock:
                if self._trial is not None and self._trial.over:
                    self._close()
                if self._trial is None:
                    self._awake.clear()
                self._write()
            time.sleep(0.002)

    def _write(self) -> None:
        STATUS.pack_into(self._status, 0, self._ended, time.process_time())

    def _close(self) -> None:
        trial = self._trial
        if trial is None:
            return
        trial.stop()
        if trial.failure:
            sys.stderr.write(trial.failure + "\n")
        self._trial, self._ended = None, self._number

    def _load(self, order: Mapping[str, Any], duration: float | None) -> RunningTrial:
        load: SenderLoad = order["load"]
        if self._socket is not None:
            return RunningTrial(LatencySender(self._socket, load, duration, self._probes), duration)
        return RunningTrial(SenderShare(self._rings, load, duration, order["share"], order["shares"]), duration)

    def command(self, order: Mapping[str, Any]) -> None:
        """Do one command. Raises TestbedError."""
        with self._lock:
            match order["op"]:
                case "load":
                    self._close()
                    self._number = order["number"]
                    self._trial = self._load(order, order["duration"])
                case "stop":
                    self._close()
                case "go" if self._trial:
                    self._trial.go(order["at"])
                    self._awake.set()
                case "update" if self._trial:
                    left, number = self._trial.left, self._number
                    self._number = self._ended
                    self._close()
                    self._number = number
                    self._trial = self._load(order, left)
                    self._trial.go(order["at"])
            self._write()


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
        threading.Thread(target=sender.watch, daemon=True).start()
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
