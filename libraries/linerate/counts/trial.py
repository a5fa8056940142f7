"""One trial: what was asked for, what was really offered, what came back. Counts first, rates derived.

Terms: RFC 2285 3.5 (intended load, offered load), RFC 2544 26.1 (trial), RFC 9971 (trial duration, loss ratio).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from .latency import LatencyCount


@dataclass(frozen=True, slots=True)
class Load:
    """An intended load: ``pps`` frames/s into **each** sending port (all streams of the profile together)."""

    pps: float

    def __post_init__(self) -> None:
        if not self.pps > 0:
            raise ValueError(f"a load is a positive number of frames per second, not {self.pps}")


@dataclass(frozen=True, slots=True)
class DirectionCount:
    """Frames of one direction in one trial, all counts.

    ``intended``: load x duration; ``offered``: really sent by the generator; ``forwarded``: received on the expected
    port. Bytes are L2 with FCS.
    """

    tx_port: int
    rx_port: int
    intended: int
    offered: int
    forwarded: int
    offered_bytes: int = 0
    forwarded_bytes: int = 0

    @property
    def unsent(self) -> int:
        """Frames the generator did not send: its own shortcoming, never the router's loss."""
        return max(0, self.intended - self.offered)

    @property
    def lost(self) -> int:
        """Frames that did not come back. Never negative; a surplus is :attr:`surplus`."""
        return max(0, self.offered - self.forwarded)

    @property
    def surplus(self) -> int:
        """Frames received beyond those offered (duplicates or strangers)."""
        return max(0, self.forwarded - self.offered)

    @property
    def loss_ratio(self) -> float:
        """Lost / offered, 0..1 (RFC 9971). 0 where nothing was offered."""
        return self.lost / self.offered if self.offered else 0.0


class Fault(Enum):
    """What can be wrong with a trial, by the testbed."""

    UNDER_OFFERED = "the generator sent less than was asked"
    STRETCHED = "the generator took longer than the trial's duration"
    CPU_BOUND = "the generator's CPU was too busy"
    OVER_OFFERED = "the generator sent more than was asked"
    SURPLUS = "more frames came back than were sent"
    LINK_DOWN = "a link was down"
    COUNTERS = "counters went backwards or could not be read"
    GENERATOR = "the generator reported an error"
    ROUTER = "the router restarted or could not be reached"
    CLOCK = "the clock jumped"

    @property
    def spares_the_router(self) -> bool:
        """True: loss seen under this fault proves nothing. False: the load was merely lower, loss still counts."""
        return self not in (Fault.UNDER_OFFERED, Fault.STRETCHED)

    @property
    def too_slow(self) -> bool:
        """The generator could not send what it was asked for, or only just: another one, or a lower load, would do."""
        return self in (Fault.UNDER_OFFERED, Fault.STRETCHED, Fault.CPU_BOUND)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with one trial, with its figures in words."""

    fault: Fault
    detail: str

    def __str__(self) -> str:
        return f"{self.fault.value}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one trial left: ``duration`` s asked, ``elapsed`` s of transmission really taken, counts per direction.

    ``started`` is Unix time in s. ``problems`` are those the generator itself saw; :func:`judge` adds the rest.
    ``readings`` are the generator's further figures (CPU in per cent, queue_full …), kept as evidence. ``latency``: of
    the directions that had probe frames.
    """

    load: Load
    duration: float
    elapsed: float
    started: float
    directions: tuple[DirectionCount, ...]
    problems: tuple[Problem, ...] = ()
    readings: Mapping[str, float] = field(default_factory=dict)
    latency: tuple[LatencyCount, ...] = ()


Measure = Callable[[Load, float], Outcome]
"""The one thing a method knows of the world: ``measure(load, duration in s) -> Outcome``."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a trial may be from what was asked before it is invalid.

    ``under``, ``over``: ratios of the intended count; ``late``: ratio of the trial's duration. The rate, count by time,
    may be less than asked by ``rate``; None: by the larger of ``under`` and ``late``, not by both. ``cpu``: per cent
    of a second that one of the generator's cores may be busy (a core of TRex that keeps up is idle between bursts;
    its manual wants less than 80 on average; one that falls behind reads 98 to 100).
    """

    under: float = 0.005
    over: float = 0.005
    late: float = 0.01
    cpu: float = 95.0
    rate: float | None = None

    @property
    def behind(self) -> float:
        """By how much the rate may be less than asked, as a ratio."""
        return max(self.under, self.late) if self.rate is None else self.rate


@dataclass(frozen=True, slots=True)
class Trial:
    """An outcome with what is wrong with it. ``number`` counts from 1 within a requirement; warm-up trials are 0.

    ``sent_for``: s that frames were really sent, by the testbed's clock; rates are counts divided by it. None: not known
    better than the duration asked for.
    """

    number: int
    outcome: Outcome
    problems: tuple[Problem, ...]
    sent_for: float | None = None

    @property
    def seconds(self) -> float:
        """Seconds that frames were sent: at least the duration asked for."""
        return max(self.outcome.duration, self.sent_for or 0.0)

    @property
    def offered(self) -> int:
        """Frames offered, all directions."""
        return sum(direction.offered for direction in self.outcome.directions)

    @property
    def forwarded(self) -> int:
        """Frames forwarded, all directions."""
        return sum(direction.forwarded for direction in self.outcome.directions)

    @property
    def intended(self) -> int:
        """Frames intended, all directions."""
        return sum(direction.intended for direction in self.outcome.directions)

    @property
    def lost(self) -> int:
        """Frames lost, all directions (a surplus in one direction does not make good a loss in the other)."""
        return sum(direction.lost for direction in self.outcome.directions)

    @property
    def valid(self) -> bool:
        """The load was put on the wire and the testbed saw nothing wrong."""
        return not self.problems

    @property
    def blames_router(self) -> bool:
        """Loss in this trial is the router's: valid, or only *less* was offered than asked (monotonic evidence)."""
        return not any(problem.fault.spares_the_router for problem in self.problems)

    def loss_ratio(self, in_total: bool) -> float:
        """Loss ratio of all directions together, or of the worst one."""
        if in_total:
            return self.lost / self.offered if self.offered else 0.0
        return max((direction.loss_ratio for direction in self.outcome.directions), default=0.0)

    def clear_loss(self, in_total: bool) -> float:
        """Lost frames as a ratio of those *intended*, where that is more than were offered.

        Of a few frames that a generator brought itself to send, one burst is much; of the load asked for it is not.
        """
        if in_total:
            return self.lost / max(self.offered, self.intended, 1)
        directions = self.outcome.directions
        return max(
            (direction.lost / max(direction.offered, direction.intended, 1) for direction in directions), default=0.0
        )


def judge(number: int, outcome: Outcome, tolerance: Tolerance, clock_speed: float = 1.0) -> Trial:
    """An outcome as a trial: adds the problems that its figures show.

    *clock_speed*: seconds of the testbed's clock per second of the wall (1 on every testbed but a simulated one).
    """
    found = list(outcome.problems)
    for direction in outcome.directions:
        name = f"port {direction.tx_port} to {direction.rx_port}"
        asked, sent = direction.intended, direction.offered
        if sent < asked * (1 - tolerance.under) - 1:
            share = 100 * sent / asked
            found.append(Problem(Fault.UNDER_OFFERED, f"{name}: {sent} of {asked} frames ({share:.2f} %)"))
        if sent > asked * (1 + tolerance.over) + 1:
            found.append(Problem(Fault.OVER_OFFERED, f"{name}: {sent} frames instead of {asked}"))
        if direction.surplus:
            found.append(Problem(Fault.SURPLUS, f"{name}: {direction.forwarded} received, {sent} sent"))
    # a simulated clock sends for exactly the duration, and the wall says nothing of it
    sent_for = outcome.duration
    if clock_speed == 1.0:
        sent_for = max(outcome.duration, outcome.elapsed - outcome.readings.get("elapsed_uncertainty", 0.0))
    for direction in outcome.directions:
        asked, sent = direction.intended, direction.offered
        if asked * (1 - tolerance.under) - 1 <= sent < asked * (1 - tolerance.behind) * sent_for / outcome.duration - 1:
            name = f"port {direction.tx_port} to {direction.rx_port}"
            found.append(Problem(Fault.UNDER_OFFERED, f"{name}: {sent} of {asked} frames, in {sent_for:.3f} s"))
    told = any(problem.fault is Fault.STRETCHED for problem in outcome.problems)
    if sent_for > outcome.duration * (1 + tolerance.late) and not told:
        found.append(Problem(Fault.STRETCHED, f"{sent_for:.2f} s instead of {outcome.duration:g} s"))
    if (busy := outcome.readings.get("cpu_util", 0.0)) > tolerance.cpu:
        found.append(Problem(Fault.CPU_BOUND, f"{busy:.0f} % of a second, where {tolerance.cpu:g} % leave it time"))
    return Trial(number, outcome, tuple(found), sent_for)
