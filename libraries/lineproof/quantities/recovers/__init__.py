"""``recovers in ≤ 2 s``: how long a router still loses frames after an overload (RFC 2544 26.5).

A trial overloads the router, halves the load without a pause, and reads the counts until well after the limit. Before
the first one a *control* shows whether the router carries the halved load at all: one that does not has nothing to
come back to, and its loss proves nothing about recovery.

Deviations from the RFC: the overload is the load of the sentence, by default the testbed's maximum load (the RFC:
110 % of the throughput, or the maximum rate if that is lower); it lasts OVERLOAD_SECONDS unless the goal's trials are
longer (the RFC: at least 60 s, as with goal `rfc2544`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from ...core.bounds import UNKNOWN, Bounds
from ...core.doubts import GENTLE, USABLE_SHARE, foreign_frames, own_loss
from ...core.goal import Goal
from ...core.phrases import between, median_words, percent
from ...core.quantity import Instruments, Promise, Quantity, Reason
from ...core.rule import Ruling
from ...core.step_down import OVERLOAD_LOSS_RATIO, REDUCED_LOAD_SHARE, StepDown
from ...core.trial import Load, Measure, Outcome, Trial
from ...core.units import Unit
from ...units import si

OVERLOAD_SECONDS = 10.0
"""Seconds of overload, unless the goal's trials are longer."""

RFC_OVERLOAD_SECONDS = 60.0
"""The least overload of RFC 2544 26.5 in s."""

CONTROL_SECONDS = (1.0, 3.0)
"""Seconds of the control, before and after a change of the load to itself: it is measured as the trials are."""

TOO_SELDOM = "the generator reported its counts too seldom; expected a longer limit or a nearer generator"
"""Why a trial shows no time at all."""

SPOILT_CONTROL = "control_spoilt"
"""The reading that says that the control shows nothing: 1; else a trial has none."""


@dataclass(frozen=True, slots=True)
class OverloadPhases:
    """Seconds of overload, of the reduced load, and between two readings of the counts."""

    overload: float
    after: float
    sample_interval: float

    @classmethod
    def of(cls, goal: Goal, limit: float) -> OverloadPhases:
        """Return the phases for a *limit* in s: the reduced load lasts half of it longer than it, at least 2 s."""
        after = limit + max(2.0, limit / 2)
        return cls(max(OVERLOAD_SECONDS, goal.final_trial_duration), after, min(0.1, max(0.01, limit / 20)))

    @property
    def duration(self) -> float:
        """Seconds of a trial."""
        return self.overload + self.after


class Recovery(Quantity):
    """The time of the last lost frame of each direction after an overload, in s."""

    name = "recovers"
    word = "recovers"
    after = "in"
    units = (Unit.SECONDS,)
    needs = frozenset({"changing load"})
    has_total = False
    doubts = (own_loss, foreign_frames)
    title = "Recovery after an overload"
    example = "recovers in ≤ 2 s"

    def gentle_load(self, load: Load) -> Load:
        """Return the load after the overload: a router that an overload breaks must be whole at first."""
        return Load(load.pps * REDUCED_LOAD_SHARE)

    def trial_seconds(self, promise: Promise) -> float:
        """Return the seconds of both phases."""
        return OverloadPhases.of(promise.goal, promise.limit.value).duration

    def figures(self, promise: Promise, trials: Sequence[Trial], perfect: int = 0) -> tuple[Bounds, ...]:
        """Return the time of the last lost frame of each direction in s; of several trials their median."""
        return tuple(
            promise.limit.median([_time(promise, trial, place) for trial in trials], perfect)
            for place in _places(trials[0])
        )

    def measure(self, instruments: Instruments, promise: Promise) -> Measure:
        """Return a trial of both phases, whose readings say when the last frame of each direction was lost."""
        phases = OverloadPhases.of(promise.goal, promise.limit.value)
        control: dict[str, float] = {}

        def measure(overload: Load, seconds: float) -> Outcome:
            reduced = self.gentle_load(overload)
            if not control:
                before, after = CONTROL_SECONDS
                control.update(_control_readings(instruments.step_down(reduced, before, reduced, after, 0.1)))
            step = instruments.step_down(overload, phases.overload, reduced, phases.after, phases.sample_interval)
            readings = step_down_readings(step, promise.limit.value)
            for place, counts in enumerate(zip(step.before.offered, step.after.offered, strict=True)):
                readings[f"overload_sent.{place}"] = fmean(counts) / (overload.pps * phases.overload)
            return replace(step.outcome, readings={**step.outcome.readings, **control, **readings})

        return measure

    def reason(self, promise: Promise, ruling: Ruling, trials: Sequence[Trial]) -> Reason:
        """Return when the last frame was lost, and the loads of both phases."""
        worst = self.shown(promise, trials)
        phases = OverloadPhases.of(promise.goal, promise.limit.value)
        overload, reduced = Load(promise.load_pps), self.gentle_load(Load(promise.load_pps))
        shorter = (
            f" (RFC 2544 26.5 asks for {RFC_OVERLOAD_SECONDS:g} s)" if phases.overload < RFC_OVERLOAD_SECONDS else ""
        )
        lost = self.named_figures(promise, trials)["overload_loss_ratio"]
        loads = (
            f"{phases.overload:g} s at {si(overload.pps, 'pps')} into each port{shorter}, of which up to"
            f" {percent(max(0.0, lost))} were lost, then {phases.after:g} s at {si(reduced.pps, 'pps')}"
        )
        doubts = list(dict.fromkeys(filter(None, (why_unproven(promise, trial) for trial in trials))))
        sent = [_reading(trial, "overload_sent", place, 1.0) for trial in trials for place in _places(trial)]
        if max(sent) > 1 + GENTLE or (promise.names_load and min(sent) < 1 - GENTLE):
            doubts.append(f"the overload was {percent(min(sent))} to {percent(max(sent))} of the one asked for")
        if _is_near_ceiling(promise):
            doubts.append(promise.own.words)
        last = between(worst, lambda time: promise.digits(time, 3))
        summary = f"the last frame was lost {last} s after the overload had ended"
        summary = "when the last frame was lost is not known" if worst == UNKNOWN else summary + median_words(trials)
        return Reason(summary, (*doubts[:2], loads))

    def named_figures(self, promise: Promise, trials: Sequence[Trial]) -> Mapping[str, float]:
        """Return the bounds of the time in s, and the loss in the overload."""
        worst = self.shown(promise, trials)
        ends = {"recovery_low_s": worst.low, "recovery_high_s": worst.high}
        lost = [_reading(trial, "overload_loss", place) for trial in trials for place in _places(trial)]
        return {
            "reduced_load_pps": promise.load_pps * REDUCED_LOAD_SHARE,
            "overload_loss_ratio": max(lost, default=0.0),
            **{name: value for name, value in ends.items() if math.isfinite(value)},
        }

    def plain(self, promise: Promise, figure: str, load: str) -> str:
        """Return how long frames are lost."""
        return f"After an overload the router loses frames for {figure}."


def step_down_readings(measured: StepDown, limit: float) -> dict[str, float]:
    """Return the readings of a trial: of each direction when its last frame was lost, and what the overload lost.

    And how many frames certainly were lost later than *limit* s after it.
    """
    readings = {"timed": float(measured.is_timed)}
    for place in range(len(measured.after.offered)):
        readings[f"overload_loss.{place}"] = measured.overload_loss_ratio(place)
        readings[f"lost_late.{place}"] = measured.lost_after(limit, place)
        if (time := measured.recovery(place)) is not None:
            readings[f"recovery_low_s.{place}"] = time.low
            if math.isfinite(time.high):
                readings[f"recovery_high_s.{place}"] = time.high
    return readings


def _control_readings(measured: StepDown) -> dict[str, float]:
    spoilt = any(problem.frames is None for problem in measured.outcome.problems)
    directions = enumerate(measured.outcome.directions)
    losses = {f"control_loss.{place}": 1.0 if spoilt else row.loss_ratio for place, row in directions}
    return losses | {SPOILT_CONTROL: 1.0} if spoilt else losses


def _places(trial: Trial) -> range:
    return range(len(trial.outcome.directions))


def _reading(trial: Trial, name: str, place: int, default: float = 0.0) -> float:
    return trial.outcome.readings.get(f"{name}.{place}", default)


def _time(promise: Promise, trial: Trial, place: int) -> Bounds:
    """Return when the last frame of a direction was lost in *trial*, in s."""
    row = trial.outcome.directions[place]
    low = _reading(trial, "recovery_low_s", place, math.nan)
    if math.isnan(low) or why_unproven(promise, trial):
        return UNKNOWN
    high = _reading(trial, "recovery_high_s", place, math.inf)
    carried = _reading(trial, "control_loss", place) <= promise.goal.forgiven
    may_be_own = 0 < trial.cost(row) >= _reading(trial, "lost_late", place)
    sent = _reading(trial, "overload_sent", place, 1.0)
    may_be_own |= _is_near_ceiling(promise) or sent > 1 + GENTLE
    # as large a share as without an overload, twice for chance, is no loss of the overload's
    after = OverloadPhases.of(promise.goal, promise.limit.value).after * promise.load_pps * REDUCED_LOAD_SHARE
    steady = 2 * _reading(trial, "control_loss", place) * after
    may_be_own |= 0 < steady >= _reading(trial, "lost_late", place)
    too_little = promise.names_load and sent < 1 - GENTLE
    return Bounds(
        low if carried and not may_be_own else 0.0,
        math.inf if too_little or trial.hidden(row) > 0 else max(low, high),
    )


def _is_near_ceiling(promise: Promise) -> bool:
    """Return whether the generator itself may lose frames at the load after the overload."""
    return promise.load_pps * REDUCED_LOAD_SHARE > USABLE_SHARE * promise.own.lossless_pps


def why_unproven(promise: Promise, trial: Trial) -> str:
    """Return why *trial* proves nothing about recovery, in words; "" if it does."""
    readings = trial.outcome.readings
    if not any(name.startswith("recovery_low_s") for name in readings):
        return TOO_SELDOM
    loss = max(_reading(trial, "overload_loss", place) for place in _places(trial))
    if loss < OVERLOAD_LOSS_RATIO:
        return (
            f"the router was not overloaded: of {si(promise.load_pps, 'pps')} into each port it lost"
            f" {percent(max(0.0, loss))}, less than {percent(OVERLOAD_LOSS_RATIO)}; expected traffic that it cannot"
            " carry, for example smaller frames, 'bidirectional' or '1-flow'"
        )
    if not readings.get("timed"):
        return "the generator did not send at the reduced load, and its count of frames is the clock: times are unknown"
    if readings.get(SPOILT_CONTROL):
        return (
            "the testbed spoilt the measurement without an overload, so what the router loses at half of it anyway is"
            " not known, and loss after an overload proves nothing"
        )
    losses = [_reading(trial, "control_loss", place) for place in _places(trial)]
    if min(losses) > promise.goal.forgiven:
        return (
            f"before any overload the router lost {percent(max(losses))} of half of it, so the same loss after it"
            " proves nothing; expected 'at' about 110 % of its throughput"
        )
    return ""


RECOVERY = Recovery()
