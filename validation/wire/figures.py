"""Figures of the wire study: frames, their CPU time, ratios of one run.

CPU time is that of the sender's processes, user and system, as ``/proc/PID/stat`` has it (proc(5), 10 ms ticks). A
frame's path over a veth pair until the other side drops or keeps it is a soft interrupt on the CPU that sent it. The
kernel charges it to the interrupted process, the sender; the time of the ``ksoftirqd`` threads for postponed ones is
added. What a receiving program uses is not. On a busy CPU some of it is charged to other processes, so that
frames per CPU second are then too many.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lineproof.errors import TestbedError

FRAME = 60
"""Bytes of the frames compared, without FCS: 64 on a cable."""

BUSY = 0.9
"""The least part of a CPU that a sender flat out takes when nothing else runs there."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process as in ``/proc/PID/stat``; ``ticks`` of user and system time, all its threads together."""

    pid: int
    name: str
    parent: int
    ticks: int

    @classmethod
    def parse(cls, text: str) -> Process:
        """From the file's *text*. Raises TestbedError for an invalid line."""
        head, bracket, tail = text.rpartition(")")  # a name may hold brackets and blanks
        pid, _, name = head.partition(" (")
        words = tail.split()
        try:
            if not bracket:
                raise ValueError
            return cls(int(pid), name, int(words[1]), int(words[11]) + int(words[12]))
        except (ValueError, IndexError):
            raise TestbedError(f"'{text.strip()[:80]}' is no line of /proc/PID/stat; see proc(5)") from None


def processes(folder: Path = Path("/proc")) -> Iterator[Process]:
    """All processes that live now."""
    for path in folder.iterdir():
        if path.name.isdigit():
            try:
                text = (path / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue  # it has ended meanwhile
            yield Process.parse(text)


@dataclass(frozen=True, slots=True)
class CpuTime:
    """CPU seconds used so far: by a *sender*'s processes, and by the kernel's threads for soft interrupts."""

    sender: float
    kernel: float

    @classmethod
    def of(cls, found: Sequence[Process], roots: Sequence[int], tick: float) -> CpuTime:
        """Of the processes *roots* and all that descend from them, among those *found*; *tick* s each tick."""
        family, size = set(roots), -1
        while len(family) != size:
            size = len(family)
            family |= {process.pid for process in found if process.parent in family}
        return cls(
            tick * sum(process.ticks for process in found if process.pid in family),
            tick * sum(process.ticks for process in found if process.name.startswith("ksoftirqd/")),
        )

    @classmethod
    def read(cls, roots: Sequence[int]) -> CpuTime:
        """Now, of this machine."""
        return cls.of(tuple(processes()), roots, 1 / os.sysconf("SC_CLK_TCK"))


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement: what the kernel's interface counters gained in *seconds*, and the CPU time used."""

    frames: int
    octets: int
    seconds: float
    cpu: float
    """CPU seconds of the sender's processes and of soft interrupts put off."""

    def checked(self, sender: str) -> Sample:
        """Itself. Raises TestbedError when nothing was sent, or not the frames that are compared."""
        if self.frames <= 0:
            raise TestbedError(f"{sender} sends nothing here; try its command by hand in a pair of namespaces")
        mean = self.octets / self.frames
        # a sender may add a few frames of its own, such as iperf3's connection that controls it
        if abs(mean - FRAME) > 0.5:
            raise TestbedError(f"{sender} sends frames of {mean:.1f} bytes on average; expected {FRAME}")
        return self

    @property
    def rate(self) -> float:
        """Frames/s of the wall clock."""
        return self.frames / self.seconds

    @property
    def busy(self) -> float:
        """How many CPUs it took."""
        return self.cpu / self.seconds

    @property
    def per_cpu(self) -> float:
        """Frames per CPU second; 0 when it took less than can be seen."""
        return self.frames / self.cpu if self.cpu > 0 else 0.0


def table(samples: Mapping[str, Sequence[Sample]]) -> list[str]:
    """A line for each sender, in millions of frames: wall rate, CPUs taken, frames per CPU second."""
    lines = [f"  {'sender':<26}{'median':>8}{'least':>8}{'most':>8}{'CPUs':>7}{'per CPU s':>11}"]
    for name, found in samples.items():
        rates = [sample.rate for sample in found]
        wall = "".join(f"{figure / 1e6:8.3f}" for figure in (statistics.median(rates), min(rates), max(rates)))
        busy = statistics.median(sample.busy for sample in found)
        each = statistics.median(sample.per_cpu for sample in found)
        lines.append(f"  {name:<26}{wall}{busy:7.2f}{each / 1e6:11.3f}")
    return lines


def rate_ratio(ours: Sequence[Sample], theirs: Sequence[Sample]) -> float:
    """Median of the rounds' ratios of frames/s.

    Round by round: what else the machine does comes and goes, and is alike for neighbours in time.
    """
    return statistics.median(own.rate / rival.rate for own, rival in zip(ours, theirs, strict=True))


def cpu_ratio(ours: Sequence[Sample], theirs: Sequence[Sample]) -> float:
    """Median of the rounds' ratios of frames per CPU second; 0 when ours took less CPU time than can be seen."""
    ratios = [own.per_cpu / rival.per_cpu for own, rival in zip(ours, theirs, strict=True) if rival.per_cpu > 0]
    return statistics.median(ratios) if ratios else 0.0


def fastest_sender(samples: Mapping[str, Sequence[Sample]]) -> str:
    """The sender with the highest median rate."""
    return max(samples, key=lambda name: statistics.median(sample.rate for sample in samples[name]))


def cpu_shared(single: Iterable[Sequence[Sample]]) -> bool:
    """Return whether other processes used the one CPU of the senders *single*."""
    return any(statistics.median(sample.busy for sample in samples) < BUSY for samples in single)
