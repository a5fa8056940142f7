"""CPU time of other processes, in nanoseconds by the kernel's own clocks, and the machine's steal.

``/proc/PID/stat`` counts ticks of 10 ms, which a trial of a second is too short for. The time of soft interrupts is
that of the task which they interrupt (of the one that sends, or of ``ksoftirqd``), unless the kernel accounts it apart.
"""

from __future__ import annotations

import gzip
import platform
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import psutil

from ..errors import TestbedError

_APART = b"\nCONFIG_IRQ_TIME_ACCOUNTING=y\n"


def cpu_seconds(processes: Iterable[int]) -> float:
    """CPU seconds of all threads of *processes* since each began. Raises TestbedError if one has ended."""
    seconds = 0.0
    for process in processes:
        try:
            # clock_getcpuclockid(3): CPUCLOCK_SCHED of a process
            seconds += time.clock_gettime(~process << 3 | 2)
        except OSError as error:
            raise TestbedError(f"the CPU time of process {process} cannot be read: {error.strerror}") from None
    return seconds


def soft_interrupt_threads() -> tuple[int, ...]:
    """Return the kernel threads ``ksoftirqd``, which do the work that soft interrupts leave undone."""
    return tuple(
        process.pid for process in psutil.process_iter(["name"]) if process.info["name"].startswith("ksoftirqd/")
    )


def soft_interrupts_apart(root: Path = Path("/")) -> bool | None:
    """Return whether this kernel counts interrupts apart from tasks; None: its configuration is unknown."""
    for path in (root / "proc/config.gz", root / f"boot/config-{platform.release()}"):
        try:
            text = path.read_bytes()
            return _APART in (gzip.decompress(text) if path.suffix == ".gz" else text)
        except (OSError, EOFError):
            continue
    return None


def soft_interrupt_seconds() -> float:
    """CPU seconds of this machine in interrupts, hard and soft, since it started."""
    times = psutil.cpu_times()
    return float(getattr(times, "irq", 0.0) + getattr(times, "softirq", 0.0))


def frames_sent(process: int) -> int:
    """Frames that all interfaces of the network namespace of *process* have sent. Raises TestbedError."""
    try:
        interfaces = Path(f"/proc/{process}/net/dev").read_text().splitlines()[2:]
        return sum(int(row.partition(":")[2].split()[9]) for row in interfaces if row.partition(":")[0].strip() != "lo")
    except (OSError, IndexError, ValueError) as error:
        raise TestbedError(f"the interfaces of process {process} cannot be read: {error}") from None


def with_children(process: int) -> tuple[int, ...]:
    """Return *process* and all its descendants. Raises TestbedError if it has ended."""
    try:
        return (process, *(child.pid for child in psutil.Process(process).children(recursive=True)))
    except psutil.Error:
        raise TestbedError(f"process {process} of the testbed has ended") from None


def cpu_times() -> Mapping[str, float]:
    """CPU seconds of all CPUs since boot, by use, for :func:`steal_percent`. Empty if they are not known."""
    try:
        times: Mapping[str, float] = psutil.cpu_times()._asdict()
    except OSError:  # a container without /proc/stat
        return {}
    return times


def steal_percent(before: Mapping[str, float], after: Mapping[str, float]) -> float | None:
    """Steal between two readings of :func:`cpu_times`, in per cent of all CPU time.

    None: the system does not report it, or no time has passed. Guest time is part of user time and not counted twice.
    """
    if "steal" not in after or "steal" not in before:
        return None
    kinds = [name for name in after if name in before and not name.startswith("guest")]
    total = sum(after[name] - before[name] for name in kinds)
    return None if total <= 0 else 100 * max(0.0, after["steal"] - before["steal"]) / total
