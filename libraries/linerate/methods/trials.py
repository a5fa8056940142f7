"""Trials of a characterisation: numbered, judged, on record, the spoilt ones repeated a bounded number of times.

A characterisation asks how much a router carries, where a sentence asks whether it carries enough. It must not fail
for want of time: whatever ends it early, what was found by then is its result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..counts.trial import Load, Measure, Outcome, Tolerance, Trial, judge
from ..errors import LinerateError
from .phrases import testbed_reason

BREAKDOWNS = (LinerateError, OSError, LookupError, ValueError, TypeError, ArithmeticError, RuntimeError)
"""What a testbed may raise when it breaks down. Not Exception: Robot stops a run by raising one of its own."""


class Ended(Exception):
    """The characterisation ends here, with what it has. Its text says why, for the reader of the result."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """No trial is begun that would end after ``traffic`` s of traffic, or after ``wall`` s by the wall's clock.

    None: no limit. ``now`` tells the wall's time in s.
    """

    traffic: float | None = None
    wall: float | None = None
    now: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for every trial of a characterisation. ``on_trial`` sees each trial at once, before the next begins.

    ``invalid_trials``: how often in a row a trial that the testbed spoilt is repeated. ``in_total``: loss is that of both
    directions together, else that of the worse one.
    """

    tolerance: Tolerance = field(default_factory=Tolerance)
    clock_speed: float = 1.0
    on_trial: Callable[[Trial], None] = lambda trial: None
    invalid_trials: int = 3
    in_total: bool = False
    deadline: Deadline = field(default_factory=Deadline)


def broke_down(error: Exception) -> str:
    """How a characterisation ends where the testbed raised *error*."""
    words = str(error) if isinstance(error, LinerateError) else f"{type(error).__name__}: {error}"
    return f"inconclusive: the testbed broke down: {words}"


def ending(ended: str, trials: Sequence[Trial]) -> str:
    """How a characterisation *ended*, where one that was over before its first trial is inconclusive."""
    if trials or not ended or ended.startswith("inconclusive: "):
        return ended
    return f"inconclusive: nothing was tried; {ended}"


def per_direction(trials: Sequence[Trial]) -> str:
    """`` each way`` where the traffic of *trials* was bidirectional: their loads are of each port."""
    return " each way" if any(len(trial.outcome.directions) > 1 for trial in trials) else ""


def is_valid(trial: Trial) -> bool:
    """The load was put on the wire and the testbed saw nothing wrong."""
    return trial.valid


class Trials:
    """Runs trials one after another, and keeps them. ``done``: all of them; ``traffic``: their seconds together."""

    def __init__(self, measure: Measure, terms: Terms) -> None:
        self._measure, self.terms = measure, terms
        self.done: list[Trial] = []
        self.traffic = 0.0
        self._began = terms.deadline.now()

    def run(self, load: Load, duration: float, tells: Callable[[Trial], bool] = is_valid) -> Trial:
        """A trial of *duration* s at *load* that *tells* something.

        Raises Ended where the deadline is reached, the testbed spoils one repetition after another, or breaks down.
        """
        return self.take(lambda: self._measure(load, duration), duration, tells)

    def take(self, measured: Callable[[], Outcome], duration: float, tells: Callable[[Trial], bool]) -> Trial:
        """:meth:`run` for an outcome that is measured otherwise (a burst), within about *duration* s."""
        spoilt: list[Trial] = []
        while len(spoilt) <= self.terms.invalid_trials:
            self._check_deadline(duration)
            try:
                outcome = measured()
            except BREAKDOWNS as error:
                raise Ended(broke_down(error)) from error
            trial = judge(len(self.done) + 1, outcome, self.terms.tolerance, self.terms.clock_speed)
            self.done.append(trial)
            self.traffic += outcome.duration
            self.terms.on_trial(trial)
            if tells(trial):
                return trial
            spoilt.append(trial)
        raise Ended(f"inconclusive: {testbed_reason(spoilt)}")

    def loss(self, trial: Trial) -> float:
        """The loss ratio (0..1) of *trial* as these terms count it."""
        return trial.loss_ratio(self.terms.in_total)

    def _check_deadline(self, duration: float) -> None:
        deadline = self.terms.deadline
        if deadline.traffic is not None and self.traffic + duration > deadline.traffic:
            raise Ended(
                f"deadline: {self.traffic:g} of {deadline.traffic:g} s of traffic were sent, and the next trial takes"
                f" {duration:g} s"
            )
        # a simulated clock's trial takes less of the wall's time
        spent = deadline.now() - self._began
        if deadline.wall is not None and spent + duration / self.terms.clock_speed > deadline.wall:
            raise Ended(f"deadline: {spent:.0f} of {deadline.wall:g} s have passed, and a trial takes {duration:g} s")
