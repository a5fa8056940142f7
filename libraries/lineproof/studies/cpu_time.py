"""How much CPU time a router that is a kernel takes for a frame, at one load.

Where the router is this machine's own kernel, it works in the context of the process that sends: with veth pairs
(``netns``) a frame is sent, forwarded and received within the sender's system call. The CPU time of the senders, and
of the kernel threads that take over from them, is read by the kernel's clock of each task, which counts neither other
programs nor stolen time. It holds the sender's own part, which is the same for each router: differences are the
router's. Elsewhere the router's own shares of soft interrupts are read while frames flow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from ..core.quantity import Requirement
from ..core.trial import DURING_READING, Fault, Trial
from ..errors import TestbedError
from ..procedures.procedure import ProcedureRun
from ..procedures.trials import CharacterisationEnded
from ..session.explaining import ALL, read_under_load
from ..session.session import Session
from ..system.cpu_clock import (
    cpu_seconds,
    frames_sent,
    soft_interrupt_seconds,
    soft_interrupt_threads,
    soft_interrupts_apart,
    with_children,
)

PARTS = 10
"""Parts of a trial that are read apart: a short disturbance does not move their median."""


class CpuReading(NamedTuple):
    """Frames sent, and CPU ``seconds`` of the senders and of what else does the router's work, until now."""

    frames: int
    seconds: float


def cpu_time(run: ProcedureRun, requirement: Requirement) -> tuple[float, dict[str, float]]:
    """Return the ns of CPU time per frame of *requirement*, and other figures, by one trial at its load.

    Raises CharacterisationEnded where it shows no time, TestbedError where none can be read.
    """
    session, seconds = run.session, run.session.plan.goal.final_trial_duration
    session.traffic.put_for(requirement)
    run.begin(requirement)
    load = session.plan.load_for(requirement)
    if session.plan.testbed.kind != "netns":
        return median(_by_the_router(session, requirement) for _ in range(3)), {}
    read, readings, ramp, spare = _clock(session), list[CpuReading](), 0.3, 0.2

    def during(wait: Callable[[float], None]) -> None:
        wait(ramp)
        readings.append(read())
        for _ in range(PARTS):
            wait(seconds / PARTS)
            readings.append(read())

    with run.series(requirement) as trials:
        measure = partial(session.traffic.measure, during=during)
        trial = trials.run(load, ramp + seconds + spare, lambda trial: True, measure, repeats=0)
    if unusable := trials.ended or "; ".join(why_unusable(trial)):
        raise CharacterisationEnded(unusable)
    windows = [CpuReading(now.frames - then.frames, now.seconds - then.seconds) for then, now in pairwise(readings)]
    # a reading after the end of traffic, which came late, is of a window without enough frames
    windows = [window for window in windows if window.frames >= 100]
    if len(windows) < PARTS / 2:
        took = trial.outcome.readings.get(DURING_READING, 0.0)
        raise CharacterisationEnded(f"{len(windows)} of {PARTS} readings came in time, the last after {took:.1f} s")
    figures = {
        "windows": float(len(windows)),
        "offered_pps": trial.offered / trial.seconds.high,
        "forwarded_pps": trial.forwarded / trial.seconds.high,
    }
    return median(1e9 * window.seconds / window.frames for window in windows), figures


def why_unusable(trial: Trial) -> Iterator[str]:
    """Yield why a trial has no CPU time per frame. A load that was not reached does not matter."""
    # a lost frame has taken CPU time, and is not counted
    few = 0.01 * trial.offered
    doubts = (problem for problem in trial.problems if not problem.fault.generator_too_slow)
    yield from (str(problem) for problem in doubts if problem.most_frames > few)
    if (surplus := sum(row.surplus for row in trial.outcome.directions)) > few:
        yield f"{Fault.SURPLUS.value}: {surplus} of {trial.offered}"
    if trial.lost > few:
        yield f"{trial.lost} of {trial.offered} frames lost, which took CPU time as well; expected a lower load"


def _clock(session: Session) -> Callable[[], CpuReading]:
    """Return a function that reads frames and CPU seconds. Raises TestbedError where they are not known."""
    sender, apart = session.testbed.facts.sender, soft_interrupts_apart()
    if sender is None:
        raise TestbedError("the CPU time of what sends is not known of this generator; expected the embedded server")
    if apart is None:
        raise TestbedError(
            "whether this kernel counts interrupts in the CPU time of tasks is not known; expected its configuration in"
            " /proc/config.gz or /boot"
        )
    _, *senders = with_children(sender)
    if not senders:
        raise TestbedError(f"process {sender} of the testbed has no senders")
    threads = soft_interrupt_threads()

    def read() -> CpuReading:
        interrupts = soft_interrupt_seconds() if apart else 0.0
        return CpuReading(frames_sent(senders[0]), cpu_seconds([*senders, *threads]) + interrupts)

    return read


def _by_the_router(session: Session, requirement: Requirement) -> float:
    """Return the ns that the router's processors take for a frame in soft interrupts, while frames flow."""
    report = read_under_load(session, requirement, session.plan.load_for(requirement))
    shares = [cpu.softirq for cpu in report.cpus if cpu.softirq is not None]
    if not shares or not report.forwarded_pps:
        why = report.unread.get(ALL) or "it does not report them; of VPP measure 'cycles'"
        raise CharacterisationEnded(f"the router's shares of soft interrupts were not read: {why}")
    return 1e9 * sum(shares) / report.forwarded_pps
