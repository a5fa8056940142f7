"""How much CPU time a router that is a kernel takes for a frame, at one load.

Where the router is this machine's own kernel, it works in the context of the process that sends: with veth pairs
(``netns``) a frame is sent, forwarded and received within the sender's system call. The CPU time of the senders, and
of the kernel threads that take over from them, is read by the kernel's clock of each task, which counts neither other
programs nor stolen time. It holds the sender's own part, which is the same for each router: differences are the
router's. Elsewhere the router's own shares of soft interrupts are read while frames flow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from ..core.quantity import Requirement
from ..core.trial import DURING_READING, Fault, Load, Trial, read_trial
from ..errors import TestbedError
from ..system.cpu_clock import (
    cpu_seconds,
    cpu_times,
    frames_sent,
    soft_interrupt_seconds,
    soft_interrupt_threads,
    soft_interrupts_apart,
    steal_percent,
    with_children,
)
from .explaining import ALL, read_under_load
from .session import Session

WINDOWS = 10
"""Parts of a trial that are read apart; the value is their median, which a short disturbance does not move."""

RAMP, SPARE = 0.3, 0.2
"""Seconds of traffic before the first window and after the last."""

READINGS = 3
"""Readings of a router that reports the shares of its time."""


@dataclass(frozen=True, slots=True)
class CpuTime:
    """ns of CPU time per frame in each window, or the ``reason`` why there are none. ``figures``: others, by name."""

    values: tuple[float, ...] = ()
    reason: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def value(self) -> float | None:
        """The median."""
        return median(self.values) if self.values else None


@dataclass(frozen=True, slots=True)
class CpuReading:
    """Frames sent, CPU seconds of the senders, and of ``others`` that do the router's work, until now."""

    frames: int
    sending: float
    others: float


def cpu_time(
    session: Session, requirement: Requirement, seconds: float, on_trial: Callable[[Trial], None] = lambda trial: None
) -> CpuTime:
    """A trial of *seconds* at the load of *requirement*, whose streams are on the ports.

    Raises TestbedError, also where no CPU time can be read.
    """
    load = session.plan.load_for(requirement)
    if session.plan.testbed.kind != "netns":
        return _by_the_router(session, requirement, load)
    read, readings = _clock(session), list[CpuReading]()

    def during(wait: Callable[[float], None]) -> None:
        wait(RAMP)
        readings.append(read())
        for _ in range(WINDOWS):
            wait(seconds / WINDOWS)
            readings.append(read())

    before = cpu_times()
    found = session.traffic.measure(load, RAMP + seconds + SPARE, during)
    steal = steal_percent(before, cpu_times())
    trial = read_trial(1, found, session.tolerance, session.clock_speed)
    on_trial(trial)
    took = found.readings.get(DURING_READING, 0.0)
    if reason := why_unusable(trial, readings):
        return CpuTime(reason=reason)
    # a reading after the end of traffic, which came late, is of a window without enough frames
    windows = [(now, then) for then, now in pairwise(readings) if now.frames - then.frames >= 100]
    if len(windows) < WINDOWS / 2:
        return CpuTime(reason=f"{len(windows)} of {WINDOWS} readings came in time, the last after {took:.1f} s")
    values = [1e9 * _used(now, then) / (now.frames - then.frames) for now, then in windows]
    shares = [100 * (now.others - then.others) / _used(now, then) for now, then in windows]
    figures = {
        "least_ns_per_packet": min(values),
        "most_ns_per_packet": max(values),
        "windows": float(len(values)),
        "interrupts_percent": median(shares),
        "offered_pps": trial.offered / trial.seconds.high,
        "forwarded_pps": trial.forwarded / trial.seconds.high,
    }
    return CpuTime(tuple(values), "", figures if steal is None else {**figures, "cpu_steal": steal})


def _used(now: CpuReading, then: CpuReading) -> float:
    return max(1e-9, now.sending - then.sending + now.others - then.others)


def why_unusable(trial: Trial, readings: Sequence[CpuReading]) -> str:
    """Why a trial has no CPU time per frame; "" if it has. A load that was not reached does not matter."""
    # a lost frame has taken CPU time, and is not counted
    few = 0.01 * trial.offered
    faults = [problem for problem in trial.problems if not problem.fault.generator_too_slow]
    if spoilt := [item for item in faults if not (item.frames or math.inf) <= few]:
        return "; ".join(map(str, spoilt))
    if not readings:
        return "nothing was read, because a port of the generator sent no frame"
    if (surplus := sum(row.surplus for row in trial.outcome.directions)) > few:
        return f"{Fault.SURPLUS.value}: {surplus} of {trial.offered}"
    if trial.lost > few:
        return f"{trial.lost} of {trial.offered} frames lost, which took CPU time as well; expected a lower load"
    return ""


def _clock(session: Session) -> Callable[[], CpuReading]:
    """Reads frames and CPU seconds now. Raises TestbedError where they are not known."""
    sender = session.testbed.facts.sender
    if sender is None:
        raise TestbedError("the CPU time of what sends is not known of this generator; expected the embedded server")
    if (apart := soft_interrupts_apart()) is None:
        raise TestbedError(
            "whether this kernel counts interrupts in the CPU time of tasks is not known; expected its configuration in"
            " /proc/config.gz or /boot"
        )
    _, *senders = with_children(sender)
    if not senders:
        raise TestbedError(f"process {sender} of the testbed has no senders")
    threads = soft_interrupt_threads()

    def read() -> CpuReading:
        others = cpu_seconds(threads) + (soft_interrupt_seconds() if apart else 0.0)
        return CpuReading(frames_sent(senders[0]), cpu_seconds(senders), others)

    return read


def _by_the_router(session: Session, requirement: Requirement, load: Load) -> CpuTime:
    """Return the time of the router's own processors while frames flow, in soft interrupts."""
    values = list[float]()
    for _ in range(READINGS):
        found = read_under_load(session, requirement, load)
        shares = [cpu.softirq for cpu in found.cpus if cpu.softirq is not None]
        if not shares or not found.forwarded_pps:
            why = found.unread.get(ALL) or "it does not report them; of VPP measure 'cycles'"
            return CpuTime(reason=f"the router's shares of soft interrupts were not read: {why}")
        values.append(1e9 * sum(shares) / found.forwarded_pps)
    return CpuTime(tuple(values), "", {"least_ns_per_packet": min(values), "most_ns_per_packet": max(values)})
