"""A simulated router with noise, for studies of decision rules. Pure and seeded: no process, no clock, no frames.

Three things make a verdict hard: the capacity differs a little from trial to trial, now and then a burst of frames is
lost, and a buffer hides the first frames of a shortage. Further noise is for the question where a verdict stops being
as good as it says: capacity that is correlated, differs from run to run, falls, or steps between two levels; bursts in
step with the trials; a generator that sends less than it is asked for, always or now and then.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from lineproof.core.trial import DirectionCount, Load, Outcome

FALL_SECONDS = 60.0
"""Seconds of traffic after which a capacity that falls has settled."""

DIP_EVERY = 20
"""Trials of which one is slower, at random."""

LEVEL_SECONDS = 120.0
"""Seconds of traffic that one of two levels lasts on average."""

STUTTER_EVERY = 5
"""Trials of which the generator stutters in one."""


@dataclass(frozen=True, slots=True)
class RouterNoise:
    """How noisy a router is; all of capacity in ratios of it.

    ``capacity``: standard deviation from trial to trial. ``burst``: frames lost in a row, once in ``every`` s of
    traffic on average (a Poisson process; ``periodic``: exactly). ``buffer``: frames beyond the capacity that each
    trial can leave in the router, and that come back when it has ended.

    ``correlation`` of one trial's capacity with the next's (AR(1), 0..1). ``run``: standard deviation of an offset that
    a whole run has in common. ``fall``: how much faster the router is at first; it falls evenly for FALL_SECONDS.
    ``step``: how much faster it is half of the time, for LEVEL_SECONDS each time on average. ``dip``: how much slower
    it is in one of DIP_EVERY trials. ``unsent``, ``stutter``: ratios that the generator does not send of what it is
    asked for, in all trials and in each STUTTER_EVERY-th.
    """

    capacity: float = 0.003
    burst: int = 500
    every: float = 50.0
    buffer: int = 4096
    periodic: bool = False
    correlation: float = 0.0
    run: float = 0.0
    fall: float = 0.0
    step: float = 0.0
    dip: float = 0.0
    unsent: float = 0.0
    stutter: float = 0.0


class NoisyDirection:
    """One direction of a true *capacity* in frames/s; what is drawn depends on *seed* and the traffic before."""

    def __init__(self, capacity: float, seed: str, noise: RouterNoise) -> None:
        self._capacity, self._noise = capacity, noise
        self._jitter = random.Random(f"{seed} capacity")
        self._bursts = random.Random(f"{seed} bursts")
        self._slow_changes = random.Random(f"{seed} changes")
        self._deviation = self._offset = 0.0
        self._until_burst = self._bursts.uniform(0, noise.every) if noise.periodic else self._gap()
        self._is_high, self._until_step = False, 0.0
        self.begin_run()

    def begin_run(self) -> None:
        """Another run of the same router: another offset and level, nothing correlated with the last run."""
        self._offset = self._slow_changes.gauss(0.0, self._noise.run)
        self._deviation = self._jitter.gauss(0.0, self._noise.capacity) if self._noise.correlation else 0.0
        self._is_high = self._slow_changes.random() < 0.5
        self._until_step = self._slow_changes.expovariate(1 / LEVEL_SECONDS)

    def forward(self, offered: int, duration: float, began: float) -> tuple[int, int]:
        """Frames forwarded of those *offered*, *began* s of traffic after the begin of the run.

        And how many of them were still in the buffer when the sending ended.
        """
        capacity = self._capacity * max(0.0, 1.0 + self._next_deviation() + self._slow_change(began, duration))
        burst = min(offered, self._noise.burst * self._bursts_within(duration))
        # frames that a burst took need neither capacity nor buffer
        beyond = max(0, offered - burst - round(capacity * duration))
        buffered = min(beyond, self._noise.buffer)
        return offered - burst - beyond + buffered, buffered

    def _next_deviation(self) -> float:
        kept = self._noise.correlation
        self._deviation = kept * self._deviation + math.sqrt(1 - kept**2) * self._jitter.gauss(
            0.0, self._noise.capacity
        )
        return self._deviation

    def _slow_change(self, began: float, duration: float) -> float:
        noise, found = self._noise, self._offset
        if noise.dip and self._slow_changes.random() < 1 / DIP_EVERY:
            found -= noise.dip
        if noise.fall:
            found += noise.fall * max(0.0, 1 - (began + duration / 2) / FALL_SECONDS)
        if noise.step:
            while self._until_step < duration:
                self._is_high = not self._is_high
                self._until_step += self._slow_changes.expovariate(1 / LEVEL_SECONDS)
            self._until_step -= duration
            found += noise.step * self._is_high
        return found

    def _gap(self) -> float:
        return self._noise.every if self._noise.periodic else self._bursts.expovariate(1 / self._noise.every)

    def _bursts_within(self, duration: float) -> int:
        found = 0
        while self._until_burst < duration:
            found += 1
            self._until_burst += self._gap()
        self._until_burst -= duration
        return found


class NoisyRouter:
    """A router with *capacity* frames/s in each of its independent directions, which draw by *seeds*.

    The noise of trial *n* depends on the traffic before it, and not on the loads: two rules that begin with trials of
    the same lengths see the same router. ``traffic``: s of it so far; ``trials``: their number.
    """

    def __init__(self, capacity: float, seeds: Sequence[str], noise: RouterNoise) -> None:
        self.traffic = 0.0
        self.trials = 0
        self._directions, self._noise = [NoisyDirection(capacity, seed, noise) for seed in seeds], noise
        self._run_began = 0.0

    def begin_run(self) -> None:
        """Another run of the same router, on another day."""
        self._run_began = self.traffic
        for direction in self._directions:
            direction.begin_run()

    def measure(self, load: Load, duration: float) -> Outcome:
        """A trial of *duration* s at *load* into each direction's port."""
        began = self.traffic - self._run_began
        self.traffic += duration
        self.trials += 1
        intended = round(load.pps * duration)
        unsent = self._noise.unsent + self._noise.stutter * (self.trials % STUTTER_EVERY == 0)
        offered = intended - round(unsent * intended)
        counts = []
        for port, direction in enumerate(self._directions):
            forwarded, backlog = direction.forward(offered, duration, began)
            # port 0 sends to port 1 and back, port 2 to port 3 …
            counts.append(DirectionCount(port, port ^ 1, intended, offered, forwarded, backlog=backlog))
        return Outcome(load, duration, duration, self.traffic, tuple(counts))
