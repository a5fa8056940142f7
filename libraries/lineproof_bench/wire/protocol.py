"""The sending processes as the backend sees them: what they send, and a status in shared memory.

They are started and ended together, and commanded one by one. Latency frames end in a header as long as TRex's, by
which they are known again.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Pipe
from typing import IO, Any

from lineproof.errors import TestbedError
from lineproof.system import children

from ..backend import StreamTraffic

MAGIC = 0xAB5A
"""The first byte is TRex's."""
LATENCY_HEADER = struct.Struct(">HBBIQ")
"""Magic, which start it belongs to, number of the group, sequence number, and when it was sent, in ns of real time."""
LATENCY_GROUPS = 128

STATUS = struct.Struct("=qd")
"""The fields that a sender writes to shared memory: number of the last trial ended, CPU seconds."""

KEPT_DELAYS = 1 << 14
"""Latency frames whose send delay is kept."""

STATUS_BYTES = STATUS.size + 8 * (2 * LATENCY_GROUPS + KEPT_DELAYS)
"""Size of that memory."""

_NANOSECONDS = (1 << 24) - 1


class SentProbes:
    """The latency frames that a process sent, in its *status*: counts of each group, and when they really left.

    Each word of 64 bits is read and written whole, which ``struct`` does not promise. Different groups use different
    places of the delays; each has start, sequence number and ns.
    """

    def __init__(self, status: mmap.mmap) -> None:
        counters = memoryview(status)[STATUS.size : STATUS_BYTES].cast("Q")
        self._counts, self._delays = counters[: 2 * LATENCY_GROUPS], counters[2 * LATENCY_GROUPS :]

    def count(self, group: int, size: int) -> None:
        """Count a frame of *size* bytes with FCS that the kernel took."""
        self._counts[2 * group] += 1
        self._counts[2 * group + 1] += size

    def counted(self, group: int) -> tuple[int, int]:
        """Return the frames and L2 bytes of *group* since the process began."""
        return self._counts[2 * group], self._counts[2 * group + 1]

    def keep(self, group: int, start: int, number: int, nanoseconds: int) -> None:
        """Keep how many ns after its stamp the kernel gave this frame to the interface."""
        self._delays[_place(group, number)] = start << 56 | number << 24 | min(nanoseconds, _NANOSECONDS)

    def delay(self, group: int, start: int, number: int) -> int | None:
        """Return the delay in ns of a frame that was received; None if it is not known any more."""
        word = self._delays[_place(group, number)]
        return word & _NANOSECONDS if word >> 24 == start << 32 | number else None


def _place(group: int, number: int) -> int:
    return (131 * group + number) % KEPT_DELAYS


@dataclass(frozen=True, slots=True)
class SenderLoad:
    """The load that a port's plain, or latency, senders have to send.

    ``groups``: for latency streams, the number of each one's group, and ``start`` which start it is.
    """

    streams: tuple[StreamTraffic, ...] = ()
    groups: tuple[int, ...] = ()
    start: int = 0


ANSWER_LIMIT = 5.0
"""Seconds that a process may take to answer."""


class SenderProcess:
    """One sending process of ``port``: its pipe, and its status in shared memory. *timed*: for latency streams.

    *log*: the output of all of them; an error quotes the end.
    """

    def __init__(self, log: IO[bytes], port: int, netns: str | None, interface: str, timed: bool) -> None:
        self._log, self.port, self._netns, self._interface, self.timed = log, port, netns, interface, timed
        self._pipe, self._far_pipe = Pipe()
        self._far_status = os.memfd_create("lineproof-sender")
        os.ftruncate(self._far_status, STATUS_BYTES)
        self._status = mmap.mmap(self._far_status, STATUS_BYTES)
        self.probes = SentProbes(self._status)
        """The latency frames of its port."""
        self._alive = True
        self.number = 0
        """Number of the trial begun last; :attr:`status` has the one that ended last."""

    @property
    def specification(self) -> dict[str, Any]:
        """Return what the process gets as its specification, with the descriptors that it inherits."""
        far = {"pipe": self._far_pipe.fileno(), "status": self._far_status}
        return {"netns": self._netns, "interface": self._interface, "timed": self.timed, **far}

    def started(self) -> None:
        """Close the descriptors that the process has now, so that its death ends the pipe."""
        self._far_pipe.close()
        os.close(self._far_status)

    def send(self, order: Mapping[str, Any]) -> None:
        """Send one command; :meth:`answer` must follow."""
        try:
            self._pipe.send(order)
        except OSError as error:
            self._alive = False
            raise TestbedError(f"a sending process of port {self.port} has died ({error.strerror})") from error

    def answer(self) -> None:
        """Wait for one answer. Raises TestbedError with the process's own words, or when ANSWER_LIMIT s pass."""
        if not self._pipe.poll(ANSWER_LIMIT):
            self._alive = False
            raise TestbedError(f"a sending process of port {self.port} did not answer within {ANSWER_LIMIT:g} s")
        try:
            error = self._pipe.recv()
        except (EOFError, OSError):
            self._alive = False
            raise TestbedError(f"a sending process of port {self.port} has died{self._last_output()}") from None
        if error:
            raise TestbedError(error)

    def _last_output(self) -> str:
        log = self._log.fileno()
        text = os.pread(log, 1 << 16, max(0, os.fstat(log).st_size - (1 << 16)))
        lines = [line.strip() for line in text.decode(errors="replace").splitlines() if line.strip()]
        return f"; its last output: {' / '.join(lines[-3:])[-500:]}" if lines else "; it wrote nothing"

    @property
    def status(self) -> tuple[int, float]:
        """Number of the last trial that ended, CPU seconds."""
        ended, seconds = STATUS.unpack_from(self._status, 0)
        return ended, seconds

    @property
    def busy(self) -> bool:
        """Return whether a trial was begun that has not ended; False as well when the process has died."""
        if not self._alive or self.status[0] >= self.number:
            return False
        try:
            # no answer is due: there is the end of the pipe, or one that a failed start left
            if self._pipe.poll():
                self._pipe.recv()
        except (EOFError, OSError):
            self._alive = False
        return self._alive

    def close(self) -> None:
        """Close the pipe, which ends the process."""
        self._pipe.close()


class SenderProcesses:
    """All sending processes: one for each (port, namespace, interface, whether of latency streams) of *places*.

    Raises TestbedError when one cannot begin.
    """

    def __init__(self, places: Sequence[tuple[int, str | None, str, bool]]) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self._all = tuple(SenderProcess(self._log, *place) for place in places)
        members = [process.specification for process in self._all]
        self._process = children.Child(
            children.python("lineproof_bench.wire.sender"),
            stdout=children.DEVNULL,
            stderr=self._log,
            pass_fds=[member[name] for member in members for name in ("pipe", "status")],
            # no linear algebra is done there: idle threads of that library would only take CPU time
            env=children.environment({"OPENBLAS_NUM_THREADS": "1"}),
        )
        for process in self._all:
            process.started()
        try:
            self._process.send(json.dumps({"members": members}))
            for process in self._all:
                process.answer()
        except BaseException:
            self.close()
            raise

    @property
    def parent(self) -> int:
        """Process id of the one that they descend from."""
        return self._process.pid

    def of(self, port: int) -> tuple[SenderProcess, ...]:
        """Return the processes of one port."""
        return tuple(process for process in self._all if process.port == port)

    def __iter__(self) -> Iterator[SenderProcess]:
        return iter(self._all)

    def close(self) -> None:
        """End them all; by force after 1.5 s."""
        for process in self._all:
            process.close()
        self._process.end(1.5)
        self._log.close()
