"""Recovery: how long a router still loses frames after an overload (RFC 2544 26.5).

A repetition overloads the router, halves the load without a pause, and reads the counts until well after the limit.
Before the first one a trial shows whether the router carries the halved load at all (the *control*): one that does not
has nothing to come back to, and its loss proves nothing about recovery.

Deviations from the RFC: the overload is the load of the sentence, by default the testbed's maximum load (the RFC:
110 % of the throughput, or the maximum rate if that is lower); it lasts OVERLOAD_SECONDS unless the goal's trials are
longer (the RFC: at least 60 s, as with goal `rfc2544`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from ..core.goals import FORGIVEN, Goal
from ..core.requirement import Requirement
from ..core.step_down import StepDown, TimeBounds
from ..core.trial import Load, Measure, Outcome, Tolerance, Trial, assess_trial
from ..core.verdict import Evidence, Ruling, Verdict, undivided
from ..units import si
from .phrases import percent, spoilt_trials_reason
from .sequential import TrialConditions, contradicts, run_until_decided

OVERLOAD_SECONDS = 10.0
"""Seconds of overload, unless the goal's trials are longer."""

RFC_OVERLOAD_SECONDS = 60.0
"""The least overload of RFC 2544 26.5 in s."""

REDUCED_LOAD_SHARE = 0.5
"""The load after the overload, as a share of it (RFC 2544 26.5)."""

CONTROL_SECONDS = (1.0, 3.0)
"""Seconds of the control, before and after a change of the load to itself: it is measured as the repetitions are."""

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
        return goal.model_copy(update={**sizes, "scout": sum(CONTROL_SECONDS), "clear_loss_ratio": None, "plan": {}})


def reduced_load(overload: Load) -> Load:
    """The load after *overload*."""
    return Load(overload.pps * REDUCED_LOAD_SHARE)


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
    in a direction that carried the reduced load before; else, or if the router was not overloaded, it proves nothing.
    Of all repetitions together, no more frames may be lost after the limit than the goal forgives: its share of all of
    them, whatever a repetition proves besides. *around* wraps the measurement of each repetition.
    """
    limit, reduced = requirement.threshold.number, reduced_load(load)
    phases = OverloadPhases.of(goal, limit)
    goal = phases.goal_of_repetitions(goal)
    tolerance = conditions.tolerance
    step_downs: list[StepDown] = []

    def measure(overload: Load, duration: float) -> Outcome:
        if not step_downs:
            step_downs.append(step_down(reduced, CONTROL_SECONDS[0], reduced, CONTROL_SECONDS[1], 0.1))
            return step_downs[0].outcome
        found = step_down(overload, phases.overload, reduced, phases.after, phases.sample_interval)
        step_downs.append(found)
        return _with_recovery_time(found, worst_recovery(found, tolerance))

    @cache
    def control() -> Trial:
        return assess_trial(1, step_downs[0].outcome, tolerance, conditions.clock_speed)

    def carried_before(direction: int) -> bool:
        allowed = max(goal.loss_ratio, FORGIVEN)
        return control().valid and control().outcome.directions[direction].loss_ratio <= allowed

    def evidence_of(trial: Trial) -> Evidence:
        if trial.number == 1:
            return Evidence.SCOUT
        found = step_downs[trial.number - 1]
        times = recovery_times(found, tolerance)
        if not trial.valid:
            return Evidence.NONE
        if times is None or why_unproven(found, load, tolerance):
            return Evidence.TOO_COARSE
        if any(time.low > limit and carried_before(direction) for direction, time in enumerate(times)):
            return Evidence.BAD
        return Evidence.GOOD if max(time.high for time in times) <= limit else Evidence.TOO_COARSE

    def late_loss_of(trials: Sequence[Trial]) -> tuple[float, ...]:
        """Of each direction, the frames lost after the limit / those sent then in all repetitions of the plan."""
        measured = [
            (step_downs[trial.number - 1], tuple(map(trial.explained, trial.outcome.directions)))
            for trial in trials[1:]
        ]
        return _late_loss(
            [(found, explained) for found, explained in measured if _is_timed(found, tolerance)],
            limit,
            tolerance,
            goal.plan_for(1).most_trials,
        )

    def keeps(trials: Sequence[Trial]) -> bool:
        return max(late_loss_of(trials), default=0.0) <= goal.forgiven_loss_ratio

    rule = undivided(evidence_of)
    decision = run_until_decided(around(measure), load, goal, rule, conditions, goal.scout, keeps)
    ruling, trials = decision.ruling, decision.trials
    late, repetitions = late_loss_of(trials), step_downs[1:]
    inconclusive = (Evidence.NONE, Evidence.TOO_COARSE, Evidence.SCOUT)
    conclusive = [step_downs[trial.number - 1] for trial in trials if evidence_of(trial) not in inconclusive]
    recoveries = [bounds for found in conclusive if (bounds := worst_recovery(found, tolerance))]
    too_much = [place for place, ratio in enumerate(late) if ratio > goal.forgiven_loss_ratio]
    whole = contradicts(ruling, goal, trials, rule) or ruling is Ruling.INCONCLUSIVE
    if whole:
        ruling = Ruling.FAIL if any(map(carried_before, too_much)) else Ruling.INCONCLUSIVE
    if ruling is Ruling.INCONCLUSIVE:
        carried = all(carried_before(place) for place in range(len(step_downs[0].after.offered)))
        doubt = "" if carried else _control_reason(control(), reduced)
        reason = _inconclusive_reason(trials[1:], repetitions, load, limit, tolerance, doubt)
        reason = doubt if doubt and too_much else reason
    elif whole:
        allowed = percent(goal.forgiven_loss_ratio)
        reason = (
            f"lost at least {percent(max(late))} of the frames sent later than {limit:g} s after the overload had"
            f" ended, in {len(repetitions)} repetitions; the goal forgives at most {allowed} of them, for a burst from"
            " another cause"
        )
    else:
        bad = sum(evidence_of(trial).against_router for trial in trials)
        bad_text = f", {bad} of {len(conclusive)} repetitions beyond it" if bad and len(conclusive) > 1 else ""
        bad_text += f", with {percent(max(late))} of the frames sent after it lost" if bad else ""
        time = _recovery_text(recoveries)
        reason = f"the last frame was lost {time} after the overload had ended (limit {limit:g} s{bad_text})"
    reason += f"; {_loads_text(load, reduced, phases, repetitions)}"
    figures = _figures(repetitions, recoveries, tolerance) | {"late_loss_ratio": max(late, default=0.0)}
    return Verdict(requirement, goal, ruling, reason, trials, link_bps, figures)


def _with_recovery_time(found: StepDown, bounds: TimeBounds | None) -> Outcome:
    """The repetition's outcome with the bounds of its recovery time, if known, among the readings."""
    if bounds is None:
        return found.outcome
    readings = {"recovery_low_s": bounds.low, **({} if math.isinf(bounds.high) else {"recovery_high_s": bounds.high})}
    return replace(found.outcome, readings={**found.outcome.readings, **readings})


def recovery_times(found: StepDown, tolerance: Tolerance) -> tuple[TimeBounds, ...] | None:
    """When the last frame of each direction was lost; None if a direction's counts do not show it."""
    directions = range(len(found.after.offered))
    times = [found.recovery(direction, max(tolerance.under, tolerance.over)) for direction in directions]
    known = tuple(time for time in times if time is not None)
    return known if len(known) == len(times) else None


def worst_recovery(found: StepDown, tolerance: Tolerance) -> TimeBounds | None:
    """When the last frame was lost, in the slowest direction; None if a direction's counts do not show it."""
    times = recovery_times(found, tolerance)
    if times is None:
        return None
    return TimeBounds(max(time.low for time in times), max(time.high for time in times))


def why_unproven(found: StepDown, load: Load, tolerance: Tolerance) -> str:
    """Why a repetition proves nothing about recovery, in words; "" if it does. *load* is the overload."""
    directions = range(len(found.after.offered))
    loss = max(found.overload_loss_ratio(direction) for direction in directions)
    if loss < OVERLOAD_LOSS_RATIO:
        return (
            f"the router was not overloaded: of {si(load.pps, 'pps')} into each port it lost {percent(max(0.0, loss))},"
            f" less than {percent(OVERLOAD_LOSS_RATIO)}; expected traffic that it cannot carry, for example smaller"
            " frames, 'bidirectional' or '1-flow'"
        )
    if not _is_timed(found, tolerance):
        return (
            f"the generator sent {si(found.sent[0], 'pps')} to {si(found.sent[1], 'pps')} after the overload instead of"
            f" {si(found.second.pps, 'pps')}; times are taken from its frame count, so they are unknown"
        )
    return ""


def _is_timed(found: StepDown, tolerance: Tolerance) -> bool:
    """Return whether the generator sent at the reduced load, so that its count of frames is a clock."""
    return found.sent[0] / (1 + tolerance.over) <= found.second.pps <= found.sent[1] / (1 - tolerance.under)


def _late_loss(
    measured: Sequence[tuple[StepDown, tuple[float, ...]]], limit: float, tolerance: Tolerance, planned: int
) -> tuple[float, ...]:
    """Of each direction, the frames certainly lost later than *limit* s after the overload / those sent then, 0..1.

    *measured*: repetitions, and the frames of each direction that a problem of the testbed explains. Of fewer than
    *planned*, as if the others lost none.
    """
    ratios = []
    for direction in range(len(measured[0][0].after.offered) if measured else 0):
        rows = [
            (max(0.0, lost - explained[direction]), offered)
            for found, explained in measured
            for lost, offered in [found.lost_after(limit, direction, max(tolerance.under, tolerance.over))]
        ]
        offered = sum(offered for _, offered in rows) * max(1.0, planned / len(rows))
        ratios.append(sum(lost for lost, _ in rows) / max(1.0, offered))
    return tuple(ratios)


def _control_reason(control: Trial, reduced: Load) -> str:
    if not control.valid:
        problems = "; ".join(map(str, control.problems))
        return f"frames were lost beyond the limit, and the trial before any overload was not valid: {problems}"
    return (
        f"before any overload the router lost {percent(control.loss_ratio(False))} of {si(reduced.pps, 'pps')}, half of"
        " the overload, so the same loss after it proves nothing; expected 'at' about 110 % of its throughput"
    )


def _inconclusive_reason(
    trials: Sequence[Trial],
    step_downs: Sequence[StepDown],
    load: Load,
    limit: float,
    tolerance: Tolerance,
    doubt: str,
) -> str:
    """*doubt*: why late loss proves nothing; "" if it does."""
    if any(trial.problems for trial in trials):
        return spoilt_trials_reason(trials)
    for found in reversed(step_downs):
        bounds = worst_recovery(found, tolerance)
        if bounds is None:
            return (
                f"the generator reported its counts {len(found.samples)} times after the overload, which is too few;"
                " expected a longer limit or a nearer generator"
            )
        if reason := why_unproven(found, load, tolerance):
            return reason
        if doubt and bounds.low > limit:
            return doubt
        if bounds.low <= limit < bounds.high:
            return (
                f"the last frame was lost {bounds} after the overload had ended, by which a limit of {limit:g} s may be"
                " kept or missed: the counts show no more exact time"
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
