"""Made-up routers of known capacity, and the testbeds between them and the rule. Seeded: no process, clock or frame."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace

from lineproof.core.doubts import OwnPart
from lineproof.core.trial import DirectionCount, Fault, Load, Outcome
from support.made_testbeds import down, fault

FALL_SECONDS, LEVEL_SECONDS = 60.0, 120.0
"""Seconds of traffic: a falling capacity has settled, one of two levels ends on average."""
DIP_EVERY, STUTTER_EVERY = 20, 5
"""One of so many trials is slower, at random; in one the generator sends less."""
OWN_BURST = 200
"""Frames that a generator loses at once."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Why two trials of one router differ. Changes of capacity are ratios of it."""

    capacity: float = 0.003  # standard deviation from trial to trial
    burst: int = 500  # frames lost in a row
    every: float = 50.0  # seconds of traffic between bursts on average (a Poisson process)
    periodic: bool = False  # the time between bursts is always the same
    buffer: int = 4096  # frames beyond the capacity that come back after each trial
    correlation: float = 0.0  # of one trial's capacity with the next one's (AR(1), 0 to 1)
    run: float = 0.0  # standard deviation of an offset that all trials of a run have in common
    fall: float = 0.0  # so much faster at first; falls evenly for FALL_SECONDS
    step: float = 0.0  # so much faster for half of the time, LEVEL_SECONDS each time on average
    dip: float = 0.0  # so much slower in one of DIP_EVERY trials
    unsent: float = 0.0  # share of the load that the generator does not send
    stutter: float = 0.0  # the same in each STUTTER_EVERY-th trial only


@dataclass(frozen=True, slots=True)
class Bed:
    """The ordinary faults of a testbed."""

    clock: float = 0.0  # seconds to which the time of sending is known
    late: float = 0.0  # ratio by which sending takes longer
    arp: float = 0.0  # foreign frames a second that the card does not tell apart
    busy: float = 0.0  # share of trials in which a CPU is busy
    dropped: int = 0  # frames lost then
    own: float = math.inf  # seconds between bursts that the generator itself loses
    flap: int = 0  # number of the trial in which a link is down for a second
    latency: float = 50e-6  # seconds
    watched: int = 30  # trials of the generator alone, each as long as the goal's


class Direction:
    """One direction of a true *capacity* in frames/s; its draws depend on *seed* and the traffic before."""

    def __init__(self, capacity: float, seed: str, noise: Noise) -> None:
        self._capacity, self._noise = capacity, noise
        self._jitter, self._bursts, self._changes = (
            random.Random(f"{seed} {use}") for use in ("capacity", "bursts", "changes")
        )
        self._until_burst = self._bursts.uniform(0, noise.every) if noise.periodic else self._gap()
        self.begin_run()

    def begin_run(self) -> None:
        """Draw another offset and level, and forget the deviation of the last run's trials."""
        self._offset = self._changes.gauss(0.0, self._noise.run)
        self._deviation = self._jitter.gauss(0.0, self._noise.capacity) if self._noise.correlation else 0.0
        self._is_high = self._changes.random() < 0.5
        self._until_step = self._changes.expovariate(1 / LEVEL_SECONDS)

    def forward(self, offered: int, seconds: float, began: float) -> tuple[int, int]:
        """Return the frames forwarded of those *offered*, and how many of them came after the sending.

        *began*: seconds of traffic since the begin of the run.
        """
        kept = self._noise.correlation
        drawn = self._jitter.gauss(0.0, self._noise.capacity)
        self._deviation = kept * self._deviation + math.sqrt(1 - kept**2) * drawn
        capacity = self._capacity * max(0.0, 1.0 + self._deviation + self._change(began, seconds))
        lost = 0
        while self._until_burst < seconds:
            lost += self._noise.burst
            self._until_burst += self._gap()
        self._until_burst -= seconds
        lost = min(offered, lost)
        # frames that a burst took need neither capacity nor buffer
        beyond = max(0, offered - lost - round(capacity * seconds))
        buffered = min(beyond, self._noise.buffer)
        return offered - lost - beyond + buffered, buffered

    def _change(self, began: float, seconds: float) -> float:
        noise, change = self._noise, self._offset
        if noise.dip and self._changes.random() < 1 / DIP_EVERY:
            change -= noise.dip
        if noise.fall:
            change += noise.fall * max(0.0, 1 - (began + seconds / 2) / FALL_SECONDS)
        if noise.step:
            while self._until_step < seconds:
                self._is_high = not self._is_high
                self._until_step += self._changes.expovariate(1 / LEVEL_SECONDS)
            self._until_step -= seconds
            change += noise.step * self._is_high
        return change

    def _gap(self) -> float:
        return self._noise.every if self._noise.periodic else self._bursts.expovariate(1 / self._noise.every)


class Router:
    """A router with *capacity* frames/s in each of its independent directions.

    The noise of trial *n* depends on the traffic before it, and not on the loads: two rules that begin with trials of
    the same lengths see the same router. ``traffic``: s of it so far.
    """

    def __init__(self, capacity: float, seed: str, noise: Noise, directions: int = 1) -> None:
        self.traffic, self._run_began, self._trials, self._noise = 0.0, 0.0, 0, noise
        seeds = [seed, *(f"{seed} direction {number}" for number in range(1, directions))]
        self._directions = [Direction(capacity, own, noise) for own in seeds]

    def begin_run(self) -> None:
        """Begin another run of the same router, on another day."""
        self._run_began = self.traffic
        for direction in self._directions:
            direction.begin_run()

    def measure(self, load: Load, seconds: float) -> Outcome:
        """Return a trial of so many *seconds* at *load* into each direction's port."""
        began = self.traffic - self._run_began
        self.traffic += seconds
        self._trials += 1
        intended = round(load.pps * seconds)
        offered = intended - round(
            (self._noise.unsent + self._noise.stutter * (self._trials % STUTTER_EVERY == 0)) * intended
        )
        counts = []
        for port, direction in enumerate(self._directions):
            forwarded, backlog = direction.forward(offered, seconds, began)
            # port 0 sends to port 1 and back, port 2 to port 3 …
            counts.append(DirectionCount(port, port ^ 1, intended, offered, forwarded, backlog=backlog))
        return Outcome(load, seconds, seconds, self.traffic, tuple(counts))


class Testbed:
    """A *router* behind a generator and a network with the faults of *bed*."""

    def __init__(self, seed: str, router: Router, bed: Bed) -> None:
        self._bed, self._random, self._trials, self._router = bed, random.Random(seed), 0, router

    def measure(self, load: Load, seconds: float) -> Outcome:
        """Measure one trial."""
        bed, draw = self._bed, self._random
        self._trials += 1
        time = seconds * (1 + bed.late)
        outcome = self._router.measure(Load(load.pps / (1 + bed.late)), time)
        is_busy, is_flapping = draw.random() < bed.busy, self._trials == bed.flap
        problems = (fault(Fault.CPU_BOUND),) * is_busy + (down(0),) * is_flapping
        counts = tuple(self._spoilt(count, time, is_busy, is_flapping) for count in outcome.directions)
        elapsed = time + draw.uniform(-bed.clock, bed.clock)
        return Outcome(load, seconds, elapsed, 0.0, counts, problems, {"elapsed_uncertainty": bed.clock})

    def _spoilt(self, count: DirectionCount, time: float, is_busy: bool, is_flapping: bool) -> DirectionCount:
        bed = self._bed
        lost = own_loss(self._random, time, bed.own) + bed.dropped * is_busy
        if is_flapping and count.tx_port == 0:
            lost = round(min(1.0, 1 / time) * count.offered)
        foreign = round(bed.arp * time)
        came = max(0, count.forwarded - lost) + foreign
        under_way = (count.backlog or 0) + round(count.offered / time * bed.latency)
        return replace(count, forwarded=came, foreign=2 * foreign, backlog=under_way)


def own_loss(draw: random.Random, seconds: float, every: float) -> int:
    """Return the frames that a generator loses in so many *seconds*, in bursts at random."""
    if math.isinf(every):
        return 0
    return OWN_BURST * sum(draw.random() < seconds / 1000 / every for _ in range(1000))


def watched(seed: str, bed: Bed, seconds: float) -> OwnPart:
    """Return what a watch of the generator alone sees, in trials of so many *seconds*."""
    draw = random.Random(f"{seed} watched")
    lost = [own_loss(draw, seconds, bed.own) for _ in range(bed.watched)]
    return OwnPart(trials=bed.watched, lossy=sum(frames > 0 for frames in lost), most_lost=max(lost, default=0))
