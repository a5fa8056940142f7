"""How long sentences take: seconds of traffic until a PASS, and at most."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from operator import add

from ..core.quantity import Promise

WALL_SECONDS_PER_TRIAL = 0.1
"""Wall-clock seconds of a trial beyond its traffic, about: the pause before it, and 0.02 s of the client;
1.2 to 2 s more if frames are missing."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds of traffic on the testbed's clock, warm-up included, and the number of trials."""

    until_pass: float = 0.0
    """Until a PASS without a bad trial."""
    at_most: float = 0.0
    """If every trial is needed, and each is as long as clock or queues may make it."""
    trials: int = 0
    """Until that PASS, warm-up included."""
    beside: float = 0.0
    """Seconds of the testbed's clock beside the traffic: for the power that is drawn without."""

    @classmethod
    def of(cls, promise: Promise, warm_up: float, least_trial: float = 0.0, beside: float = 0.0) -> Budget:
        """Return the budget of one sentence. *least_trial*: s that each of its trials lasts at least."""
        trial = max(promise.quantity.trial_seconds(promise), least_trial)
        shares = promise.goal.shares(promise.soak)
        longest = trial if promise.soak else max(trial, promise.goal.longest_trial)
        return cls(
            until_pass=warm_up + shares.fewest_trials * trial,
            at_most=warm_up + shares.most_trials * longest,
            trials=shares.fewest_trials + bool(warm_up),
            beside=beside,
        )

    def __add__(self, other: Budget) -> Budget:
        """Return the budget of both, one after the other."""
        return Budget(*map(add, astuple(self), astuple(other)))

    def wall_seconds(self, clock_speed: float) -> float:
        """Wall-clock seconds until a PASS."""
        return (self.until_pass + self.beside) / clock_speed + self.trials * WALL_SECONDS_PER_TRIAL
