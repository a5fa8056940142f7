"""Recovery: how long a router still loses frames after an overload (RFC 2544 26.5).

A repetition overloads the router, halves the load without a pause, and reads the counts until well after the limit.
Deviations from the RFC: the overload is the load of the sentence, by default the testbed's maximum load (the RFC:
110 % of the throughput, or the maximum rate if that is lower); it lasts OVERLOAD_SECONDS unless the goal's trials are
longer (the RFC: at least 60 s, as with goal `rfc2544`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..counts.step_down import StepDown, TimeBounds
from ..counts.trial import Load, Measure, Outcome, Tolerance, Trial
from ..sla.goals import Goal
from ..sla.requirement import Requirement
from ..sla.verdict import Evidence, Ruling, Verdict, undivided
from ..units import si
from .phrases import percent, spoilt_trials_reason
from .sequential import TrialConditions, run_until_decided

OVERLOAD_SECONDS = 10.0
"""Seconds of overload, unless the goal's trials are longer."""

RFC_OVERLOAD_SECONDS = 60.0
"""The least overload of RFC 2544 26.5 in s."""

REDUCED_LOAD_SHARE = 0.5
"""The load after the overload, as a share of it (RFC 2544 26.5)."""

REPETITIONS = 5
"""With an exceed ratio of 0.2 or 0.3 one repetition may be bad: a burst of loss may have another cause."""

OVERLOAD_LOSS_RATIO = 0.01
"""A router that loses a smaller ratio of its frames in the first phase is not overloaded."""

MeasureStepDown = Callable[[Load, float, Load, float, float], StepDown]
"""``(first load, s, second load, s, s between two readings of the counts)``."""


@dataclass(frozen=True, slots=True)
class OverloadPhases:
    """Seconds of overload, of the reduced load, and between two readings of the counts."""

    overload: float
    after: float
    sample_interval: float

    @classmethod
    def of(cls, goal: Goal, limit: float) -> OverloadPhases:
        """The phases for *goal* and a *limit* in s: the reduced load lasts half of it longer than it, at least 2 s."""
        after = limit + max(2.0, limit / 2)
        return cls(max(OVERLOAD_SECONDS, goal.final_trial_duration), after, min(0.1, max(0.01, limit / 20)))

    @property
    def duration(self) -> float:
        """Seconds of a repetition."""
        return self.overload + self.after

    def goal_of_repetitions(self, goal: Goal) -> Goal:
        """*goal* with repetitions as its trials: its exceed ratio limits how many may be bad."""
        sizes = {"final_trial_duration": self.duration, "duration_sum": REPETITIONS * self.duration}
        return goal.model_copy(update={**sizes, "scout": 0.0, "clear_loss_ratio": None, "plan": {}})


def recovery(
    requirement: Requirement,
    load: Load,
    goal: Goal,
    step_down: MeasureStepDown,
    link_bps: float,
    conditions: TrialConditions,
    around: Callable[[Measure], Measure] = lambda measure: measure,
) -> Verdict:
    """Judge a ``recovers in ≤ …`` sentence, with *load* (frames/s into each port) as the overload.

    A repetition is good if the last frame was certainly lost within the limit, bad if one was certainly lost after it,
    in the worse direction; else, or if the router was not overloaded, it proves nothing. *around* wraps the
    measurement of each repetition.
    """
    limit, reduced = requirement.threshold.number, Load(load.pps * REDUCED_LOAD_SHARE)
    phases = OverloadPhases.of(goal, limit)
    goal = phases.goal_of_repetitions(goal)
    tolerance = conditions.tolerance
    step_downs: list[StepDown] = []

    def measure(overload: Load, duration: float) -> Outcome:
        found = step_down(overload, phases.overload, reduced, phases.after, phases.sample_interval)
        step_downs.append(found)
        return _with_recovery_time(found, worst_recovery(found, tolerance))

    def evidence_of(trial: Trial) -> Evidence:
        found = step_downs[trial.number - 1]
        bounds = worst_recovery(found, tolerance)
        if not trial.valid:
            return Evidence.NONE
        if bounds is None or why_unproven(found, bounds, load, tolerance):
            return Evidence.TOO_COARSE
        if bounds.low > limit:
            return Evidence.BAD
        return Evidence.GOOD if bounds.high <= limit else Evidence.TOO_COARSE

    found = run_until_decided(around(measure), load, goal, undivided(evidence_of), conditions)
    ruling, trials = found.ruling, found.trials
    inconclusive = (Evidence.NONE, Evidence.TOO_COARSE)
    conclusive = [step_downs[trial.number - 1] for trial in trials if evidence_of(trial) not in inconclusive]
    recoveries = [bounds for found in conclusive if (bounds := worst_recovery(found, tolerance))]
    if ruling is Ruling.INCONCLUSIVE:
        reason = _inconclusive_reason(trials, step_downs, load, limit, tolerance)
    else:
        bad = sum(evidence_of(trial).against_router for trial in trials)
        bad_text = f", {bad} of {len(conclusive)} repetitions beyond it" if bad and len(conclusive) > 1 else ""
        time = _recovery_text(recoveries)
        reason = f"the last frame was lost {time} after the overload had ended (limit {limit:g} s{bad_text})"
    reason += f"; {_loads_text(load, reduced, phases, step_downs)}"
    return Verdict(requirement, goal, ruling, reason, trials, link_bps, _figures(step_downs, recoveries, tolerance))


def _with_recovery_time(found: StepDown, bounds: TimeBounds | None) -> Outcome:
    """The repetition's outcome with the bounds of its recovery time, if known, among the readings."""
    if bounds is None:
        return found.outcome
    readings = {"recovery_low_s": bounds.low, **({} if math.isinf(bounds.high) else {"recovery_high_s": bounds.high})}
    return replace(found.outcome, readings={**found.outcome.readings, **readings})


def worst_recovery(found: StepDown, tolerance: Tolerance) -> TimeBounds | None:
    """When the last frame was lost, in the slowest direction; None if a direction's counts do not show it."""
    recoveries = [
        found.recovery(direction, max(tolerance.under, tolerance.over)) for direction in range(len(found.after.offered))
    ]
    known = [bounds for bounds in recoveries if bounds is not None]
    if len(known) < len(recoveries):
        return None
    return TimeBounds(max(bounds.low for bounds in known), max(bounds.high for bounds in known))


def why_unproven(found: StepDown, bounds: TimeBounds, load: Load, tolerance: Tolerance) -> str:
    """Why a repetition proves nothing about recovery, in words; "" if it does. *load* is the overload."""
    directions = range(len(found.after.offered))
    loss = max(found.overload_loss_ratio(direction) for direction in directions)
    if loss < OVERLOAD_LOSS_RATIO:
        return (
            f"the router was not overloaded: of {si(load.pps, 'pps')} into each port it lost {percent(max(0.0, loss))},"
            f" less than {percent(OVERLOAD_LOSS_RATIO)}; expected traffic that it cannot carry, for example smaller"
            " frames, 'bidirectional' or '1-flow'"
        )
    if not found.sent[0] / (1 + tolerance.over) <= found.second.pps <= found.sent[1] / (1 - tolerance.under):
        return (
            f"the generator sent {si(found.sent[0], 'pps')} to {si(found.sent[1], 'pps')} after the overload instead of"
            f" {si(found.second.pps, 'pps')}; times are taken from its frame count, so they are unknown"
        )
    carried = min((1 - found.overload_loss_ratio(direction)) * load.pps for direction in directions)
    if math.isinf(bounds.high) and carried < found.second.pps:
        return (
            f"half of the overload, {si(found.second.pps, 'pps')}, is more than the {si(carried, 'pps')} that the"
            " router carried, so it may still be overloaded; expected 'at' about 110 % of its throughput"
        )
    return ""


def _inconclusive_reason(
    trials: Sequence[Trial], step_downs: Sequence[StepDown], load: Load, limit: float, tolerance: Tolerance
) -> str:
    if any(trial.problems for trial in trials):
        return spoilt_trials_reason(trials)
    for found in reversed(step_downs):
        bounds = worst_recovery(found, tolerance)
        if bounds is None:
            return (
                f"the generator reported its counts {len(found.samples)} times after the overload, which is too few;"
                " expected a longer limit or a nearer generator"
            )
        if reason := why_unproven(found, bounds, load, tolerance):
            return reason
        if bounds.low <= limit < bounds.high:
            return (
                f"the last frame was lost {bounds} after the overload had ended; the limit of {limit:g} s lies between:"
                " the counts show no more exact time"
            )
    return "the repetitions contradict each other"


def _recovery_text(recoveries: Sequence[TimeBounds]) -> str:
    widest = TimeBounds(max(bounds.low for bounds in recoveries), max(bounds.high for bounds in recoveries))
    return str(widest) if len(recoveries) == 1 else f"{widest} in the worst of {len(recoveries)} repetitions"


def _loads_text(load: Load, reduced: Load, phases: OverloadPhases, step_downs: Sequence[StepDown]) -> str:
    shorter = f" (RFC 2544 26.5 asks for {RFC_OVERLOAD_SECONDS:g} s)" if phases.overload < RFC_OVERLOAD_SECONDS else ""
    lost = max(
        found.overload_loss_ratio(direction) for found in step_downs for direction in range(len(found.after.offered))
    )
    return (
        f"{phases.overload:g} s at {si(load.pps, 'pps')} into each port{shorter}, of which up to"
        f" {percent(max(0.0, lost))} were lost, then {phases.after:g} s at {si(reduced.pps, 'pps')}"
    )


def _figures(
    step_downs: Sequence[StepDown], recoveries: Sequence[TimeBounds], tolerance: Tolerance
) -> dict[str, float]:
    directions = [(found, direction) for found in step_downs for direction in range(len(found.after.offered))]
    figures = {
        "reduced_load_pps": step_downs[-1].second.pps,
        "overload_loss_ratio": max(found.overload_loss_ratio(direction) for found, direction in directions),
    }
    known = [found for found in step_downs if worst_recovery(found, tolerance)]
    if known:
        figures["recovery_blur_frames"] = max(
            found.undetectable_loss(direction) for found in known for direction in range(len(found.after.offered))
        )
    if recoveries:
        figures["recovery_low_s"] = max(bounds.low for bounds in recoveries)
        if not math.isinf(high := max(bounds.high for bounds in recoveries)):
            figures["recovery_high_s"] = high
    return figures
