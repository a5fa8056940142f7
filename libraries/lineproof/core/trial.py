"""One trial: intended, offered and forwarded frames. Counts are kept, rates are derived from them.

Terms: RFC 2285 3.5 (intended load, offered load), RFC 2544 26.1 (trial), RFC 9971 (trial duration, loss ratio).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from .latency import LatencyCount


@dataclass(frozen=True, slots=True)
class Load:
    """An intended load: ``pps`` frames/s of **each** sending port (all streams of the profile together)."""

    pps: float

    def __post_init__(self) -> None:
        if not self.pps > 0:
            raise ValueError(f"a load is a positive number of frames per second, not {self.pps}")


@dataclass(frozen=True, slots=True)
class DirectionCount:
    """Counts of one direction in one trial.

    ``intended``: load x duration; ``offered``: really sent; ``forwarded``: received on the expected port. Bytes are L2
    with FCS. ``backlog``: frames that were under way when the counters were last read during sending, and came back
    later (None: not known): a queue that grows hides a shortage. ``foreign``: the most frames of other origin among
    those forwarded (:mod:`.foreign`); as many lost frames may be hidden by them.
    """

    tx_port: int
    rx_port: int
    intended: int
    offered: int
    forwarded: int
    offered_bytes: int = 0
    forwarded_bytes: int = 0
    backlog: int | None = None
    foreign: int = 0

    @property
    def sustained(self) -> int:
        """Frames surely forwarded while frames were sent: none that came out of a queue afterwards, none of others."""
        return max(0, self.forwarded - (self.backlog or 0) - self.foreign)

    @property
    def unsent(self) -> int:
        """Frames that the generator did not send: never the router's loss."""
        return max(0, self.intended - self.offered)

    @property
    def lost(self) -> int:
        """Frames that did not come back; 0 where there is a :attr:`surplus`."""
        return max(0, self.offered - self.forwarded)

    @property
    def surplus(self) -> int:
        """Frames received beyond those offered and the foreign ones that are expected."""
        return max(0, self.forwarded - self.offered - self.foreign)

    @property
    def loss_ratio(self) -> float:
        """Lost / offered, 0..1 (RFC 9971). 0 where nothing was offered."""
        return self.lost / self.offered if self.offered else 0.0


class Fault(Enum):
    """What the testbed can do wrong in a trial."""

    UNDER_OFFERED = "the generator sent less than was asked"
    STRETCHED = "the generator took longer than the trial's duration"
    CPU_BOUND = "the generator's CPU was too busy"
    OVER_OFFERED = "the generator sent more than was asked"
    SURPLUS = "more frames came back than were sent"
    FOREIGN = "frames of other origin may hide lost ones"
    LINK_DOWN = "a link was down"
    BACKLOG = "too many frames were still under way when sending ended"
    COUNTERS = "counters went backwards or could not be read"
    MISCOUNTED = "two counts of the same frames differ"
    READING = "what is read while frames flow was not"
    PAUSED = "pause frames stopped the generator"
    PAUSING = "the generator stopped the router with pause frames"
    GENERATOR = "the generator reported an error"
    ROUTER = "the router restarted or could not be reached"
    CLOCK = "the clock jumped"

    @property
    def excuses_router(self) -> bool:
        """True: loss under this fault proves nothing. False: loss still counts, as where the load was lower."""
        return self not in (Fault.UNDER_OFFERED, Fault.STRETCHED, Fault.PAUSED, Fault.BACKLOG, Fault.FOREIGN)

    @property
    def generator_too_slow(self) -> bool:
        """The generator could not send the intended load, or only just: use another one, or a lower load."""
        return self in (Fault.UNDER_OFFERED, Fault.STRETCHED, Fault.CPU_BOUND)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with one trial, with its figures in words.

    It explains at most ``frames`` lost frames of each direction (None: any number), where it concerns the direction:
    ``directions`` are pairs of sending and receiving port (empty: all of them).
    """

    fault: Fault
    detail: str
    frames: int | None = None
    directions: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        return f"{self.fault.value}: {self.detail}"

    def explains(self, direction: DirectionCount) -> float:
        """The most lost frames of *direction* that it explains; infinite: any number."""
        if not self.fault.excuses_router:
            return 0
        if self.directions and (direction.tx_port, direction.rx_port) not in self.directions:
            return 0
        return math.inf if self.frames is None else self.frames


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one trial: intended ``duration`` s, ``elapsed`` s of transmission, counts per direction.

    ``started``: Unix time in s. ``problems``: those that the generator saw; :func:`assess_trial` adds others.
    ``readings``: further figures of the generator (CPU in per cent, queue_full …). ``latency``: of the directions with
    probe frames. ``counters``: raw counters by moment: ``before``, ``ended`` (the end of sending), ``after`` (the
    drain); keys like ``0.opackets``. Empty: not read.
    """

    load: Load
    duration: float
    elapsed: float
    started: float
    directions: tuple[DirectionCount, ...]
    problems: tuple[Problem, ...] = ()
    readings: Mapping[str, float] = field(default_factory=dict)
    latency: tuple[LatencyCount, ...] = ()
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


Measure = Callable[[Load, float], Outcome]
"""All that a method knows of the testbed: ``measure(load, duration in s) -> Outcome``."""

During = Callable[[Callable[[float], None]], None]
"""What is done in a trial while frames are sent. Its argument waits so many s of the testbed's clock."""

MeasureDuring = Callable[[Load, float, During], Outcome]
"""A trial with something to be done during it (see :meth:`~lineproof.generators.base.Generator.measure`)."""

DURING_READING = "during_ended"
"""The reading of such a trial that says when it was done: s of the testbed's clock since the start was requested. What
is below the trial's duration was done before the last frame was sent."""


HOST_COUNTS = "host_counts"
"""The reading of a trial whose frames no generator counted by itself: 1 where the counts of the host that sends and
receives stand alone, 0 where a switch counted the same. A trial without this reading was counted by its generator."""


APART = "apart"
"""The reading of a trial that says how many seconds apart its directions began, at least. A trial without it: not
known to have begun apart."""


HIDDEN = "hidden."
"""Readings of a trial, by receiving port: the most lost frames in whose place others came, as its card shows them."""


LEAST_OFFERED = 0.998
"""The share of a sentence's load that a trial must certainly have offered to count for the router."""

FOREIGN_SHARE = 0.001
"""The most frames of other origin in a trial, as a share of the frames offered: as many lost ones may be hidden."""

LARGEST_RATE_SHORTFALL = 0.02
"""The most by which the rate of a generator that sends late frames may be below what was asked, as a ratio."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a trial may differ from what was intended before it is invalid.

    ``under``, ``over``: ratios of the intended count; ``late``: ratio of the trial duration. ``cpu``: per cent of a
    second that one of the generator's cores may be busy (TRex's manual: less than 80 on average; a core that is too
    slow shows 98 to 100). ``ends_in_time``: the generator itself ends a trial with its duration, so a late message of
    the end says nothing about the rate; else (TRex) it sends all frames, and takes longer.
    """

    under: float = 0.005
    over: float = 0.005
    late: float = 0.01
    cpu: float = 95.0
    ends_in_time: bool = False

    @property
    def rate_shortfall(self) -> float:
        """Ratio by which frames/s may be lower than asked."""
        found = max(self.under, self.late)
        return found if self.ends_in_time else min(found, max(self.under, LARGEST_RATE_SHORTFALL))


@dataclass(frozen=True, slots=True)
class Trial:
    """An outcome and its problems. ``number`` counts from 1 within a requirement; warm-up trials are 0.

    ``sent_for``: s that frames were sent at least, by the testbed's clock; None: the intended duration.
    ``sent_for_at_most``: the latest that the sending can have ended; None: as ``sent_for``. ``needed_pps``: the load of
    the sentence, frames/s of each port; what was offered beyond it may be lost (None: not judged at a load).
    """

    number: int
    outcome: Outcome
    problems: tuple[Problem, ...]
    sent_for: float | None = None
    sent_for_at_most: float | None = None
    needed_pps: float | None = None

    @property
    def least_seconds(self) -> float:
        """The fewest seconds that frames can have been sent, at least the intended duration."""
        return max(self.outcome.duration, self.sent_for or 0.0)

    @property
    def seconds(self) -> float:
        """The most seconds that frames can have been sent; rates are counts divided by it."""
        return max(self.least_seconds, self.sent_for_at_most or 0.0)

    def shortfall(self, pps: float) -> float:
        """Ratio by which the worst direction may have been offered less than *pps* frames/s; 0: certainly not."""
        # rounding may cost one frame
        rates = [(direction.offered + 1) / max(self.seconds, 1e-9) for direction in self.outcome.directions]
        return max(0.0, 1 - min(rates, default=0.0) / pps)

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
        """Frames lost, all directions (a surplus in one does not cancel a loss in another)."""
        return sum(direction.lost for direction in self.outcome.directions)

    @property
    def valid(self) -> bool:
        """The load was sent, and the testbed saw nothing wrong."""
        return not self.problems

    @property
    def blames_router(self) -> bool:
        """Loss in this trial is the router's: valid, or only *less* was offered than intended."""
        return not any(problem.fault.excuses_router for problem in self.problems)

    def explained(self, direction: DirectionCount) -> float:
        """The most lost frames of *direction* that the trial's problems explain together."""
        return sum(problem.explains(direction) for problem in self.problems)

    def loss_ratio(self, in_total: bool) -> float:
        """Loss ratio of all directions together, or of the worst one."""
        if in_total:
            return self.lost / self.offered if self.offered else 0.0
        return max((direction.loss_ratio for direction in self.outcome.directions), default=0.0)

    def certain_loss_ratio(self, in_total: bool) -> float:
        """As :meth:`loss_ratio`, of the lost frames that no problem explains: the router lost them in any case."""
        if not in_total:
            return max(self.certain_loss_ratios, default=0.0)
        return math.fsum(map(self.certain_loss, self.outcome.directions)) / max(1, self.offered)

    def certain_loss(self, direction: DirectionCount) -> float:
        """Lost frames of *direction* that no problem explains, and that were not offered beyond the sentence's load."""
        beyond = 0
        if self.needed_pps is not None:
            beyond = max(0, math.floor(direction.offered - self.needed_pps * self.least_seconds))
        return max(0.0, direction.lost - self.explained(direction) - beyond)

    def possible_loss(self, direction: DirectionCount) -> float:
        """As :meth:`certain_loss`, with the lost frames that others may hide: no more of *direction* are lost."""
        return self.certain_loss(direction) + self.outcome.readings.get(f"{HIDDEN}{direction.rx_port}", 0.0)

    def possible_loss_ratios(self, in_total: bool) -> tuple[float, ...]:
        """:meth:`possible_loss` of each direction as a ratio, or of all together."""
        rows = self.outcome.directions
        if in_total:
            return (math.fsum(map(self.possible_loss, rows)) / max(1, self.offered),)
        return tuple(self.possible_loss(row) / max(1, row.offered) for row in rows)

    @property
    def hidden_text(self) -> str:
        """Where others may have come in the place of lost frames, in words; "": nowhere."""
        found = {row: self.possible_loss(row) - self.certain_loss(row) for row in self.outcome.directions}
        return "; ".join(
            f"{Fault.FOREIGN.value}: port {row.rx_port} received {count:.0f} multicast or broadcast frames that may be"
            f" in the place of as many from port {row.tx_port}"
            for row, count in found.items()
            if count
        )

    @property
    def certain_loss_ratios(self) -> tuple[float, ...]:
        """:meth:`certain_loss_ratio` of each direction."""
        return tuple(self.certain_loss(item) / max(1, item.offered) for item in self.outcome.directions)

    def clear_loss(self, in_total: bool) -> float:
        """Frames that the router lost in any case as a ratio of the *intended* ones, where these are more than offered.

        Where a generator sent only a few frames, a small burst of loss must not look like a high ratio.
        """
        rows = [(self.certain_loss(item), max(1, item.offered, item.intended)) for item in self.outcome.directions]
        if in_total:
            return sum(lost for lost, _ in rows) / max(1, sum(frames for _, frames in rows))
        return max((lost / frames for lost, frames in rows), default=0.0)


def assess_trial(
    number: int, outcome: Outcome, tolerance: Tolerance, clock_speed: float = 1.0, needed: Load | None = None
) -> Trial:
    """The outcome as a trial, with the problems that its figures show.

    *clock_speed*: seconds of the testbed's clock per real second (1 except on a simulated testbed). *needed*: the load
    that it must certainly have offered (LEAST_OFFERED of it), even if the sending ended as late as it can have.
    """
    found = list(outcome.problems)
    paused = any(problem.fault is Fault.PAUSED for problem in found)
    earliest = latest = ended = outcome.duration
    uncertain = outcome.readings.get("elapsed_uncertainty", 0.0)
    if clock_speed == 1.0:  # a simulated clock sends for exactly the duration; real time has no meaning there
        ended = max(outcome.duration, outcome.elapsed - uncertain)
        if not tolerance.ends_in_time:
            earliest, latest = ended, max(outcome.duration, outcome.elapsed + uncertain)
    late = ended > outcome.duration * (1 + tolerance.late)
    if not math.isfinite(outcome.elapsed + uncertain):
        found.append(Problem(Fault.CLOCK, "how long the sending took is not known"))
    elif clock_speed == 1.0 and outcome.elapsed + uncertain < outcome.duration * (1 - tolerance.late):
        found.append(
            Problem(Fault.OVER_OFFERED, f"{outcome.elapsed:.2f} s of sending instead of {outcome.duration:g} s")
        )
    apart = f"; the directions began {seconds:.3f} s apart" if (seconds := outcome.readings.get(APART, 0.0)) else ""
    for direction in outcome.directions:
        name = f"port {direction.tx_port} to {direction.rx_port}"
        intended, offered = direction.intended, direction.offered
        asked = intended * (1 - tolerance.rate_shortfall) * earliest / outcome.duration - 1
        if offered < intended * (1 - tolerance.under) - 1 or (intended and not offered):
            share = 100 * offered / intended
            found.append(Problem(Fault.UNDER_OFFERED, f"{name}: {offered} of {intended} frames ({share:.2f} %)"))
        elif offered < asked:
            share = 100 * offered / intended * outcome.duration / earliest
            words = f"{offered} of {intended} frames, in {earliest:.3f} s instead of {outcome.duration:g} s{apart}"
            found.append(Problem(Fault.UNDER_OFFERED, f"{name}: {share:.2f} % of the rate ({words})"))
        elif needed is not None and offered + 1 < LEAST_OFFERED * needed.pps * latest:
            words = f"{name}: {offered} frames in up to {latest:.3f} s, expected {needed.pps * latest:.0f}{apart}"
            found.append(Problem(Fault.UNDER_OFFERED, words))
        if offered > intended * (1 + tolerance.over) + 1:
            found.append(Problem(Fault.OVER_OFFERED, f"{name}: {offered} frames instead of {intended}"))
        if direction.surplus:
            words = f"{name}: {direction.forwarded} received, {offered} sent"
            ports = ((direction.tx_port, direction.rx_port),)
            found.append(Problem(Fault.SURPLUS, words, direction.surplus, ports))
        if direction.foreign > FOREIGN_SHARE * offered:
            found.append(Problem(Fault.FOREIGN, f"{name}: up to {direction.foreign} of {direction.forwarded} frames"))
    if late and not any(problem.fault is Fault.STRETCHED for problem in outcome.problems):
        found.append(Problem(Fault.STRETCHED, f"{ended:.2f} s instead of {outcome.duration:g} s"))
    if not (busy := outcome.readings.get("cpu_util", 0.0)) <= tolerance.cpu:
        found.append(Problem(Fault.CPU_BOUND, f"{busy:.0f} % of a second, at most {tolerance.cpu:g} % is allowed"))
    if paused:
        # the router, or its card, asked the generator to wait: that is no limit of the generator's
        found = [problem for problem in found if not problem.fault.generator_too_slow]
    return Trial(number, outcome, tuple(found), earliest, latest, None if needed is None else needed.pps)
