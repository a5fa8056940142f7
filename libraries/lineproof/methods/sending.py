"""Sending: one trial at a load, without a promise: what was offered, what came back, and the ports' own counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..core.phrases import percent
from ..core.trial import DirectionCount
from ..units import si
from .deviations import DeviatingResult


@dataclass(frozen=True, slots=True)
class SendingResult(DeviatingResult):
    """The one trial of it, in frames; sums are of all directions. Its problems change no count."""

    @property
    def directions(self) -> Sequence[DirectionCount]:
        """Return the counts of each direction."""
        return self.trials[0].outcome.directions

    @property
    def offered(self) -> int:
        """Return how many frames were really sent."""
        return self.trials[0].offered

    @property
    def forwarded(self) -> int:
        """Return how many came back at the expected ports."""
        return self.trials[0].forwarded

    @property
    def lost(self) -> int:
        """Return how many of those offered did not."""
        return self.trials[0].lost

    @property
    def counters(self) -> Mapping[str, int]:
        """Return by how much the generator's own counters rose; keys like ``0.opackets``. Empty: they were not read."""
        before, after = (self.trials[0].outcome.counters.get(moment, {}) for moment in ("before", "after"))
        return {name: count - before.get(name, 0) for name, count in after.items()}

    @property
    def problems(self) -> Sequence[str]:
        """Return what the testbed did wrong meanwhile, in words."""
        return [str(problem) for problem in self.trials[0].problems]

    @property
    def _found(self) -> str:
        trial = self.trials[0]
        load = f"{trial.outcome.duration:g} s at {si(trial.outcome.load.pps, 'pps')}{self.scope}"
        ratio = percent(self.lost / self.offered) if self.offered else "nothing was offered"
        counts = f"offered {self.offered}, forwarded {self.forwarded}, lost {self.lost} ({ratio})"
        return "; ".join([load, counts, *self.problems])
