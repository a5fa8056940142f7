"""Trials of a characterisation: numbered, judged, recorded; spoilt ones are repeated a limited number of times.

A characterisation measures how much a router carries; a sentence, whether it carries enough. Whatever ends a
characterisation early, its result is what was found until then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..core.trial import Load, Measure, Outcome, Tolerance, Trial, assess_trial
from ..errors import BREAKDOWN_ERRORS, in_words
from .phrases import spoilt_trials_reason


class CharacterisationEnded(Exception):
    """Ends a characterisation with the result found so far. Its text says why."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """No trial starts that would end after ``traffic`` s of traffic or ``wall`` s of wall-clock time (None: no limit).

    ``now`` returns the wall-clock time in s.
    """

    traffic: float | None = None
    wall: float | None = None
    now: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class CharacterisationTerms:
    """The settings of every trial of a characterisation. ``on_trial`` is called after each trial, before the next.

    ``invalid_trials``: how often in a row a spoilt trial is repeated. ``in_total``: loss is that of both directions
    together, else that of the worse one.
    """

    tolerance: Tolerance = field(default_factory=Tolerance)
    clock_speed: float = 1.0
    on_trial: Callable[[Trial], None] = lambda trial: None
    invalid_trials: int = 3
    in_total: bool = False
    deadline: Deadline = field(default_factory=Deadline)


def breakdown_text(error: Exception) -> str:
    """The text of a characterisation that *error* of the testbed ended."""
    return f"inconclusive: the testbed broke down: {in_words(error)}"


def ending_text(ended: str, trials: Sequence[Trial]) -> str:
    """The text *ended*, marked as inconclusive if the characterisation ended before its first trial."""
    if trials or not ended or ended.startswith("inconclusive: "):
        return ended
    return f"inconclusive: nothing was tried; {ended}"


def per_direction(trials: Sequence[Trial]) -> str:
    """`` each way`` if the traffic of *trials* was bidirectional: loads are of each sending port."""
    return " each way" if any(len(trial.outcome.directions) > 1 for trial in trials) else ""


def is_valid(trial: Trial) -> bool:
    """Return whether the full load was sent and the testbed found no problem."""
    return trial.valid


class TrialSeries:
    """Runs trials one after another and keeps them (``done``). ``traffic``: their sum in s."""

    def __init__(self, measure: Measure, terms: CharacterisationTerms) -> None:
        self._measure, self.terms = measure, terms
        self.done: list[Trial] = []
        self.traffic = 0.0
        self._began = terms.deadline.now()

    def run(self, load: Load, duration: float, is_conclusive: Callable[[Trial], bool] = is_valid) -> Trial:
        """The first trial of *duration* s at *load* that *is_conclusive*.

        Raises CharacterisationEnded at the deadline, after too many spoilt trials, or if the testbed breaks down.
        """
        return self.run_measured(lambda: self._measure(load, duration), duration, is_conclusive)

    def run_measured(
        self, measure_once: Callable[[], Outcome], duration: float, is_conclusive: Callable[[Trial], bool]
    ) -> Trial:
        """:meth:`run` with a measurement of its own (for example a burst) of about *duration* s."""
        spoilt: list[Trial] = []
        while len(spoilt) <= self.terms.invalid_trials:
            self._check_deadline(duration)
            try:
                outcome = measure_once()
            except BREAKDOWN_ERRORS as error:
                raise CharacterisationEnded(breakdown_text(error)) from error
            trial = assess_trial(len(self.done) + 1, outcome, self.terms.tolerance, self.terms.clock_speed)
            self.done.append(trial)
            self.traffic += outcome.duration
            self.terms.on_trial(trial)
            if is_conclusive(trial):
                return trial
            spoilt.append(trial)
        raise CharacterisationEnded(f"inconclusive: {spoilt_trials_reason(spoilt)}")

    def loss(self, trial: Trial) -> float:
        """The loss ratio (0..1) of *trial*, by ``in_total`` of the terms."""
        return trial.loss_ratio(self.terms.in_total)

    def _check_deadline(self, duration: float) -> None:
        deadline = self.terms.deadline
        if deadline.traffic is not None and self.traffic + duration > deadline.traffic:
            raise CharacterisationEnded(
                f"deadline: {self.traffic:g} of {deadline.traffic:g} s of traffic were sent, and the next trial takes"
                f" {duration:g} s"
            )
        # with a simulated clock a trial takes less wall-clock time
        spent = deadline.now() - self._began
        if deadline.wall is not None and spent + duration / self.terms.clock_speed > deadline.wall:
            raise CharacterisationEnded(
                f"deadline: {spent:.0f} of {deadline.wall:g} s have passed, and a trial takes {duration:g} s"
            )
