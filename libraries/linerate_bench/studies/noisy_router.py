"""A simulated router with noise, for studies of decision rules. Pure and seeded: no process, no clock, no frames.

Three things make a verdict hard: the capacity differs a little from trial to trial, now and then a burst of frames is
lost, and a buffer hides the first frames of a shortage.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from linerate.counts.trial import DirectionCount, Load, Outcome


@dataclass(frozen=True, slots=True)
class RouterNoise:
    """How noisy a router is.

    ``capacity``: relative standard deviation of its capacity from trial to trial. ``burst``: frames lost in a row, once
    in ``every`` s of traffic on average (a Poisson process). ``buffer``: frames beyond the capacity that each trial can
    leave in the router, and that come back when it has ended.
    """

    capacity: float = 0.003
    burst: int = 500
    every: float = 50.0
    buffer: int = 4096


class NoisyRouter:
    """One router of a true *capacity* in frames/s, behind a perfect generator, in one direction.

    The noise of trial *n* depends on *seed* and on the traffic before it, and not on the loads: two rules that begin
    with trials of the same lengths see the same router. ``traffic``: s of traffic so far.
    """

    def __init__(self, capacity: float, seed: str, noise: RouterNoise) -> None:
        self.capacity = capacity
        self.traffic = 0.0
        self._noise = noise
        # nothing secret is drawn here
        self._jitter = random.Random(f"{seed} capacity")  # noqa: S311
        self._bursts = random.Random(f"{seed} bursts")  # noqa: S311
        self._until_burst = self._gap()

    def measure(self, load: Load, duration: float) -> Outcome:
        """A trial of *duration* s at *load*."""
        self.traffic += duration
        offered = round(load.pps * duration)
        capacity = self.capacity * max(0.0, self._jitter.gauss(1.0, self._noise.capacity))
        burst = min(offered, self._noise.burst * self._bursts_within(duration))
        # frames that a burst took need neither capacity nor buffer
        shortage = max(0, offered - burst - round(capacity * duration) - self._noise.buffer)
        count = DirectionCount(0, 1, offered, offered, offered - burst - shortage)
        return Outcome(load, duration, duration, self.traffic, (count,))

    def _gap(self) -> float:
        return self._bursts.expovariate(1 / self._noise.every)

    def _bursts_within(self, duration: float) -> int:
        found = 0
        while self._until_burst < duration:
            found += 1
            self._until_burst += self._gap()
        self._until_burst -= duration
        return found
