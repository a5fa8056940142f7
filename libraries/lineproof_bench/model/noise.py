"""Seeded noise of a modelled router: its present capacity, and when it loses a burst of frames."""

from __future__ import annotations

import math
import random
from dataclasses import replace

from lineproof.simulation import Noise

from .schema import RouterModel

_SLOWEST = 0.1
"""The least capacity that is drawn, as a share of the nominal one."""

_INSTANT = 1e-6
"""Seconds: smaller differences are rounding in sums of clock readings."""

_HALF = 0.5
"""Frames: fewer are none."""

_CYCLES = ("packet", "byte", "input", "call", "shared", "duplex", "layer", "crossing", "crossing_far")
_LIMITS = ("port_mpps", "tx_mpps")


class ModelNoise:
    """The noise of one bench. Times are seconds of traffic; pauses and the moments of reading do not count."""

    def __init__(self, noise: Noise, seed: int) -> None:
        self._noise = noise
        self._jitter, self._bursts = random.Random(seed), random.Random(seed + 1)  # noqa: S311
        self._factor = 1.0
        self._warm = 0.0
        self._until_burst = self._draw_gap()
        self._burst_left = 0.0

    @property
    def in_burst(self) -> bool:
        """Return whether a burst of frames is being lost."""
        return self._burst_left > 0

    def new_trial(self, spread: float) -> None:
        """Draw the capacity of a trial. *spread*: the router's own, where the testbed asks for none."""
        if capacity := self._noise.capacity or spread:
            self._factor = max(_SLOWEST, self._jitter.gauss(1.0, capacity))

    def cool_down(self) -> None:
        """Let the router warm up again: it was configured."""
        self._warm = 0.0

    def next_change(self, pps: float) -> float:
        """Return the seconds of traffic of *pps* frames/s until something changes; inf for never."""
        if pps <= 0:
            return math.inf
        burst = self._burst_left / pps if self.in_burst else self._until_burst
        return min(
            burst, self._noise.warm_up.seconds - self._warm if self._noise.warm_up and self._warming else math.inf
        )

    def advance(self, seconds: float, pps: float) -> None:
        """Pass *seconds* with traffic of *pps* frames/s, at most up to the next change."""
        if pps <= 0:
            return
        self._warm += seconds
        if self.in_burst:
            self._burst_left -= seconds * pps
            if self._burst_left < _HALF:
                self._burst_left, self._until_burst = 0.0, self._draw_gap()
            return
        self._until_burst -= seconds
        if self._noise.bursts and self._until_burst < _INSTANT:
            self._burst_left = float(self._noise.bursts.packets)

    def apply(self, model: RouterModel) -> RouterModel:
        """Return *model* with every cost divided, and every limit multiplied, by the present share of its capacity."""
        share = self._factor * (1 - self._noise.warm_up.dip if self._noise.warm_up and self._warming else 1.0)
        if share == 1.0:
            return model
        cost, nic = model.software.cost, model.nic
        locks = tuple(lock.model_copy(update={"cycles": lock.cycles / share}) for lock in cost.locks)
        slower = cost.model_copy(update={"locks": locks} | {name: getattr(cost, name) / share for name in _CYCLES})
        limits = {name: getattr(nic, name) * share for name in _LIMITS if getattr(nic, name)}
        if nic.pcie:
            limits["pcie"] = nic.pcie.model_copy(update={"gbps": nic.pcie.gbps * share})
        return replace(
            model,
            nic=nic.model_copy(update={"queue_ns": nic.queue_ns / share, **limits}),
            software=model.software.model_copy(update={"cost": slower}),
        )

    @property
    def _warming(self) -> bool:
        return bool(self._noise.warm_up and self._warm < self._noise.warm_up.seconds - _INSTANT)

    def _draw_gap(self) -> float:
        return self._bursts.expovariate(1 / self._noise.bursts.every) if self._noise.bursts else math.inf
