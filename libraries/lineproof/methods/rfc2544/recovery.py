"""RFC 2544 26.5 system recovery: how long a router still loses frames after an overload."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

from ...core.bounds import Bounds
from ...core.phrases import between, percent
from ...core.step_down import MIN_SAMPLES, OVERLOAD_LOSS_RATIO, REDUCED_LOAD_SHARE, StepDown
from ...core.trial import Load, Outcome, Trial
from ...units import si
from ..deviations import TRIALS_OF_SECTION_23, DeviatingResult, Deviation
from ..trials import CharacterisationEnded, CharacterisationTerms, TrialSeries
from . import deviation_of_short_trials

OVERLOAD_FACTOR = 1.1
"""The overload as a multiple of the throughput; the maximum rate of the medium if that is less."""

INTERVAL = 0.1
"""Seconds between two readings of the counts."""

MeasureStepDown = Callable[[Load, float, Load, float, float], StepDown]
"""``(first load, s, second load, s, s between two readings of the counts)``."""


@dataclass(frozen=True, slots=True)
class RecoveryResult(DeviatingResult):
    """``times``: the recovery time of each repetition; without an upper bound if frames were lost to the end.

    ``overload`` and ``reduced`` are loads of each port. ``after``: s of the reduced load.
    """

    size: int
    overload: Load
    reduced: Load
    times: tuple[Bounds, ...]
    after: float
    trials: tuple[Trial, ...]
    ended: str
    deviations: tuple[Deviation, ...]

    @property
    def mean(self) -> Bounds | None:
        """The reported figure; None if a repetition did not recover, or there is none."""
        if not self.times or any(math.isinf(time.high) for time in self.times):
            return None
        return Bounds(fmean(time.low for time in self.times), fmean(time.high for time in self.times))

    @property
    def found(self) -> str:
        """Return what was found, in words, without the deviations."""
        mean = f"{_text(self.mean)} in the mean" if self.mean is not None else "no mean"
        found = (
            f"{self.size} bytes: recovery from {si(self.overload.pps, 'pps')} to {si(self.reduced.pps, 'pps')}"
            f" each port in {mean} ({', '.join(map(_text, self.times)) or 'not measured'})"
        )
        return f"{found}; {self.ended}" if self.ended else found


def recovery(
    step_down: MeasureStepDown,
    size: int,
    throughput: Load,
    line_pps: float,
    terms: CharacterisationTerms,
    repeats: int = 3,
    overload_for: float = 60.0,
    after: float = 20.0,
) -> RecoveryResult:
    """Overload for *overload_for* s at 110 % of *throughput*, halve the load, and see when the last frame is lost.

    Counts are read every INTERVAL s during the *after* s of the lower load. *line_pps*: line rate in frames/s. If the
    router loses no frames in the overload, for example because it carries line rate, ``ended`` says so.
    """
    if min(repeats, overload_for) <= 0 or after < MIN_SAMPLES * INTERVAL:
        raise ValueError(f"recovery needs repetitions, times above 0 s, and at least {MIN_SAMPLES} readings of counts")
    overload = Load(min(throughput.pps * OVERLOAD_FACTOR, line_pps))
    reduced = Load(overload.pps * REDUCED_LOAD_SHARE)
    trials = TrialSeries(lambda load, duration: measure_once(), terms)
    seen: list[StepDown] = []

    def measure_once() -> Outcome:
        seen.append(step_down(overload, overload_for, reduced, after, INTERVAL))
        return seen[-1].outcome

    times: list[Bounds] = []
    with trials:
        while len(times) < repeats:
            trials.run_measured(
                measure_once,
                overload_for + after,
                lambda trial: trial.is_clean and _worst_recovery(seen[-1]) is not None,
            )
            span = _worst_recovery(seen[-1])
            if unproven := _why_unproven(seen[-1], overload):
                raise CharacterisationEnded(unproven)
            times += [span] if span else []
    known = [found for found in seen if _worst_recovery(found)]
    blur = max(
        (found.undetectable_loss(direction) for found in known for direction in range(len(found.after.offered))),
        default=0.0,
    )
    done = f"bounds of it, from counts of every {INTERVAL:g} s or so; loss of less than {blur:.0f} frames is not seen"
    deviations = (
        Deviation("RFC 2544 26.5", "the time of the last frame lost", done),
        *TRIALS_OF_SECTION_23,
        *deviation_of_short_trials(overload_for, "RFC 2544 26.5", 60.0),
    )
    return RecoveryResult(size, overload, reduced, tuple(times), after, tuple(trials.done), trials.ended, deviations)


def _text(time: Bounds) -> str:
    return f"{between(time, '{:.3g}'.format)} s"


def _worst_recovery(found: StepDown) -> Bounds | None:
    """Return when the last frame was lost, in the slowest direction; None if a direction's counts do not show it."""
    times = [found.recovery(place) for place in range(len(found.after.offered))]
    known = [time for time in times if time is not None]
    if len(known) < len(times):
        return None
    return Bounds(max(time.low for time in known), max(time.high for time in known))


def _why_unproven(found: StepDown, overload: Load) -> str:
    """Return why a repetition proves nothing about recovery, in words; "" if it does."""
    loss = max(found.overload_loss_ratio(place) for place in range(len(found.after.offered)))
    if loss < OVERLOAD_LOSS_RATIO:
        return (
            f"the router was not overloaded: of {si(overload.pps, 'pps')} into each port it lost"
            f" {percent(max(0.0, loss))}, less than {percent(OVERLOAD_LOSS_RATIO)}; expected traffic that it cannot"
            " carry, for example smaller frames, 'bidirectional' or '1-flow'"
        )
    if not found.is_timed:
        return (
            f"the generator sent {si(found.sent[0], 'pps')} to {si(found.sent[1], 'pps')} after the overload instead of"
            f" {si(found.second.pps, 'pps')}; times are taken from its frame count, so they are unknown"
        )
    return ""
