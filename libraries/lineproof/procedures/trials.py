"""Trials of a procedure: numbered, doubted, recorded; those that decide nothing are repeated a few times.

A procedure measures how much a router carries; a sentence, whether it carries enough. Both ask the same bounds: what is
carried is so at the worse end of its loss, what is not at the better end. Whatever ends a procedure early, its result
is what was measured until then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..core.bounds import Bounds
from ..core.doubts import OF_FRAMES, Conditions, Doubt, OwnPart, queues, sent_less, sent_more, with_doubts
from ..core.trial import Fault, Load, Measure, Tolerance, Trial, read_trial
from ..core.verdict import Deviation
from ..documents.document import Column
from ..errors import BREAKDOWN_ERRORS, in_words
from ..units import counted

TAKEN_AT_ITS_WORD = OwnPart(trials=math.inf)
"""A generator that nobody watched: a procedure blames no router, so its loss is not doubted for that alone."""

UNWATCHED = Conditions(math.inf, resolution=1e-3, unseen=1e-5, risk=0.05, own=TAKEN_AT_ITS_WORD)

Cells = Mapping[Column, str]
"""The cells of a row by their columns."""


class CharacterisationEnded(Exception):
    """Ends a procedure with the result so far. Its text says why."""


def check_deadline(deadline: float, traffic: float, duration: float) -> None:
    """Raise CharacterisationEnded if a trial of *duration* s after *traffic* s would end after *deadline* s."""
    if traffic + duration > deadline:
        raise CharacterisationEnded(
            f"deadline: {traffic:g} of {round(deadline, 1):g} s of traffic were sent, and the next trial takes"
            f" {duration:g} s"
        )


def breakdown_text(error: Exception) -> str:
    """Return the ending of a procedure that *error* of the testbed ended."""
    return f"inconclusive: the testbed broke down: {in_words(error)}"


def loss_bounds(trial: Trial) -> Bounds:
    """Return the ends of the loss ratio (0..1) of *trial*, of the worst direction."""
    losses = [(trial.lost_frames(row), max(1, row.offered)) for row in trial.outcome.directions]
    ends = [(lost.low / frames, lost.high / frames) for lost, frames in losses] or [(0.0, math.inf)]
    return Bounds(max(low for low, _ in ends), max(high for _, high in ends))


def worst_rate(trial: Trial, frames: str) -> float:
    """Return the mean rate in frames/s of the counts *frames* of *trial*, of the direction with least."""
    return min((getattr(row, frames) for row in trial.outcome.directions), default=0) / (trial.seconds.high or 1e-9)


def is_decided(loss: Bounds, most: float) -> bool:
    """Return whether *loss* is certainly at most *most*, or certainly more."""
    return loss.high <= most or loss.low > most


def is_measured(trial: Trial) -> bool:
    """Return whether *trial* shows what the generator itself does: nothing went wrong but what it reports of itself."""
    own = (Fault.GENERATOR, Fault.QUEUES, Fault.OVER_OFFERED, Fault.OWN_LOSS, Fault.UNWATCHED)
    return all(problem.fault.generator_too_slow or problem.fault in own for problem in trial.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureResult:
    """The result of the traffic *sentence*; of several, ``value`` is what differs, in words.

    ``trials``, why it ``ended`` early ("": it did not), ``deviations``. ``figures`` by name are for programs, loads in
    frames/s into each port; ``rows`` of a table for people.
    """

    sentence: str = ""
    value: str = ""
    trials: tuple[Trial, ...] = ()
    ended: str = ""
    deviations: tuple[Deviation, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)
    rows: Sequence[Cells] = ()

    @property
    def seconds(self) -> float:
        """Return the seconds of its traffic."""
        return sum(trial.outcome.duration for trial in self.trials)

    @property
    def scope(self) -> str:
        """Return `` each way`` if the traffic was bidirectional: loads are of each sending port."""
        return " each way" if any(len(trial.outcome.directions) > 1 for trial in self.trials) else ""


@dataclass
class TrialSeries:
    """Runs trials one after another and keeps them (``done``). ``traffic``: their sum in s.

    A block ``with`` it ends where the procedure does; ``ended`` says why, "" if it came to its end. ``on_trial`` is
    called after each trial, before the next; ``deadline``: none starts that would end after so many s of traffic.
    ``longest_trial``: s to which a trial grows whose clock or queues may hide a shortage. ``conditions``: what trials
    are held against, but for the load, which is that of each trial within the ``tolerance``. ``sentence``: the words of
    their traffic.
    """

    measure: Measure
    tolerance: Tolerance = field(default_factory=Tolerance)
    clock_speed: float = 1.0
    on_trial: Callable[[Trial], None] = lambda trial: None
    deadline: float = math.inf
    longest_trial: float = 10.0
    conditions: Conditions = UNWATCHED
    sentence: str = ""
    done: list[Trial] = field(default_factory=list, init=False)
    traffic: float = field(default=0.0, init=False)
    ended: str = field(default="", init=False)
    _least: float = field(default=0.0, init=False)

    def __enter__(self) -> TrialSeries:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        is_end = isinstance(error, CharacterisationEnded)
        self.ended = str(error) if is_end else ""
        if is_end and not self.done and not self.ended.startswith("inconclusive: "):
            self.ended = f"inconclusive: nothing was tried; {error}"
        return is_end

    def as_fields(self, deviations: Sequence[Deviation] = ()) -> dict[str, Any]:
        """Return traffic, trials, ending and *deviations* as a result has them."""
        own = {"sentence": self.sentence, "trials": tuple(self.done), "ended": self.ended}
        return {**own, "deviations": tuple(deviations)}

    def run(
        self,
        load: Load,
        duration: float,
        decides: Callable[[Trial], bool],
        measure: Measure | None = None,
        doubts: Sequence[Doubt] = (),
        repeats: int = 3,
    ) -> Trial:
        """Return the first trial at *load* that *decides*, of *duration* s or longer.

        None does whose frames came back changed: that is no matter of the load. A trial whose clock or queues leave
        open what was lost makes those that follow longer, up to ``longest_trial``; one so long that only queues leave
        open is returned. With a *measure* of its own (a burst, for example) it is of about *duration* s, and has
        *doubts* of its own. Raises CharacterisationEnded at the deadline, after 1 + *repeats* spoilt trials in a row,
        or if the testbed breaks down.
        """
        for _ in range(1 + repeats):
            seconds = duration if measure else max(duration, self._least)
            check_deadline(self.deadline, self.traffic, seconds)
            try:
                outcome = (measure or self.measure)(load, seconds)
            except BREAKDOWN_ERRORS as error:
                raise CharacterisationEnded(breakdown_text(error)) from error
            trial = read_trial(len(self.done) + 1, outcome, self.tolerance, self.clock_speed)
            conditions = replace(self.conditions, load_pps=load.pps)
            trial = with_doubts(trial, conditions, doubts) if measure else self._doubted(trial, conditions)
            self.done.append(trial)
            self.traffic += trial.outcome.duration
            self.on_trial(trial)
            if decides(trial) and all(problem.fault is not Fault.CHANGED for problem in trial.problems):
                return trial
            if not measure:
                self._learn(trial)
                is_queued = bool(trial.problems) and all(problem.fault is Fault.QUEUES for problem in trial.problems)
                if is_queued and trial.outcome.duration >= self.longest_trial:
                    return trial
        raise CharacterisationEnded(f"inconclusive: {_spoilt_text(trial, 1 + repeats)}")

    def shows_loss(self, trial: Trial, but: Sequence[Fault] = ()) -> bool:
        """Return whether the missing frames of *trial* are those that the router lost, but for the resolution.

        Frames that were not offered, or are still in queues, are not missing. *but*: faults that are expected.
        """
        not_missing = (*but, Fault.UNDER_OFFERED, Fault.UNTIMED, Fault.STRETCHED, Fault.PAUSED, Fault.QUEUES)
        problems = (problem for problem in trial.problems if problem.fault not in not_missing)
        counted = replace(trial, problems=tuple(problems))
        return trial.offered > 0 and all(
            (counted.cost(row) if row.lost else 0.0) + counted.hidden(row) <= self.conditions.resolution * row.offered
            for row in trial.outcome.directions
        )

    def _doubted(self, trial: Trial, conditions: Conditions) -> Trial:
        trial = with_doubts(trial, conditions, (*OF_FRAMES, queues))
        trial = with_doubts(trial, replace(conditions, resolution=self.tolerance.under), (sent_less,))
        most = conditions.load_pps * (1 + self.tolerance.over)
        return with_doubts(trial, replace(conditions, load_pps=most), (sent_more,))

    def _learn(self, trial: Trial) -> None:
        """Make trials so long that neither clock nor queues can hide a shortage, where nothing else is wrong."""
        if any(problem.fault not in (Fault.UNDER_OFFERED, Fault.UNTIMED, Fault.QUEUES) for problem in trial.problems):
            return
        directions = trial.outcome.directions
        seconds = (trial.seconds.high - trial.seconds.low) / self.tolerance.under
        share = max((row.backlog or 0) / max(1, row.offered) for row in directions) / self.conditions.resolution
        if share > 1:
            seconds = max(seconds, trial.outcome.duration * share)
        if seconds:
            # to a tenth of a second, which reads better
            longer = math.ceil(12.5 * seconds) / 10
            self._least = max(self._least, min(self.longest_trial, longer))


def _spoilt_text(last: Trial, count: int) -> str:
    """Return why *count* trials in a row decide nothing: the problems of the *last*, and the remedy."""
    tried = f"{counted(count, 'trial')}{' in a row' * (count > 1)} decided nothing"
    if not (problems := last.problems):
        return tried
    slow = any(problem.fault.generator_too_slow for problem in problems if problem.fault is not Fault.UNTIMED)
    is_changed = any(problem.fault is Fault.CHANGED for problem in problems)
    remedy = "use a faster generator, or state a load it can send" if slow else "fix the testbed and run again"
    remedy = "look at what the router does to the frames" if is_changed else remedy
    return f"{tried}: {'; '.join(map(str, problems))}; {remedy}"
