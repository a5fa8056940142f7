"""Recovery: how long a router goes on losing frames once an overload has ended (RFC 2544 26.5).

A repetition overloads the router, halves the load without a pause, and looks at the counts until well after the limit.
Departures from the RFC: the overload is the load of the sentence, by default the most that the testbed's generator is
asked for (the RFC: 110 % of the throughput, or the maximum rate, whichever is lower), and lasts OVERLOAD s unless the
goal's trials are longer (the RFC: at least 60 s, as with goal `rfc2544`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..counts.step_down import Span, StepDown
from ..counts.trial import Load, Measure, Outcome, Tolerance, Trial
from ..sla.goals import Goal
from ..sla.requirement import Requirement
from ..sla.verdict import Evidence, Ruling, Verdict
from ..units import si
from .phrases import percent, testbed_reason
from .sequential import Conditions, until_decided

OVERLOAD = 10.0
"""Seconds of overload where the goal's trials are not longer."""

LETTER = 60.0
"""Seconds of overload that RFC 2544 26.5 asks for, at least."""

REDUCED = 0.5
"""The load afterwards, as a share of the overload (RFC 2544 26.5)."""

REPEATS = 5
"""Repetitions: with an exceed ratio of 0.2 or 0.3 one of them may be bad, for a burst of loss that had other causes."""

OVERLOADED = 0.01
"""The share of its frames that a router must lose in the first phase before it counts as overloaded."""

StepsDown = Callable[[Load, float, Load, float, float], StepDown]
"""``(first load, s, second load, s, s between two looks)``."""


@dataclass(frozen=True, slots=True)
class Phases:
    """Seconds of overload, of the reduced load, and between two looks at the counts."""

    overload: float
    after: float
    every: float

    @classmethod
    def of(cls, goal: Goal, limit: float) -> Phases:
        """What *goal* and a *limit* in s ask for: the reduced load goes on for half the limit, 2 s at least, beyond."""
        after = limit + max(2.0, limit / 2)
        return cls(max(OVERLOAD, goal.final_trial_duration), after, min(0.1, max(0.01, limit / 20)))

    @property
    def whole(self) -> float:
        """Seconds of a repetition."""
        return self.overload + self.after

    def goal(self, goal: Goal) -> Goal:
        """*goal* with repetitions as its trials: its exceed ratio says how many of them may be bad."""
        sizes = {"final_trial_duration": self.whole, "duration_sum": REPEATS * self.whole}
        return goal.model_copy(update={**sizes, "scout": 0.0, "clear_loss_ratio": None})


def recovery(
    requirement: Requirement,
    load: Load,
    goal: Goal,
    step_down: StepsDown,
    link_bps: float,
    conditions: Conditions,
    around: Callable[[Measure], Measure] = lambda measure: measure,
) -> Verdict:
    """Judge a ``recovers in ≤ …`` sentence, with *load* (frames/s into each port) as the overload.

    A repetition is good where the last frame was surely lost within the limit, bad where one was surely lost after it,
    in the worse direction; else, or where the router was not overloaded, it proves nothing. *around* is put about each
    repetition.
    """
    limit, second = requirement.threshold.number, Load(load.pps * REDUCED)
    phases = Phases.of(goal, limit)
    goal = phases.goal(goal)
    tolerance = conditions.tolerance
    seen: list[StepDown] = []

    def measure(first: Load, duration: float) -> Outcome:
        found = step_down(first, phases.overload, second, phases.after, phases.every)
        seen.append(found)
        return _told(found, worst(found, tolerance))

    def weigh(trial: Trial) -> Evidence:
        found = seen[trial.number - 1]
        span = worst(found, tolerance)
        if not trial.valid:
            return Evidence.NONE
        if span is None or unproven(found, span, load, tolerance):
            return Evidence.UNTOLD
        if span.low > limit:
            return Evidence.BAD
        return Evidence.GOOD if span.high <= limit else Evidence.UNTOLD

    ruling, trials = until_decided(around(measure), load, goal, weigh, conditions)
    silent = (Evidence.NONE, Evidence.UNTOLD)
    telling = [seen[trial.number - 1] for trial in trials if weigh(trial) not in silent]
    spans = [span for found in telling if (span := worst(found, tolerance))]
    if ruling is Ruling.INCONCLUSIVE:
        reason = _why_not(trials, seen, load, limit, tolerance)
    else:
        bad = sum(weigh(trial).against for trial in trials)
        told = _widest(spans)
        within = f", {bad} of {len(telling)} repetitions beyond it" if bad and len(telling) > 1 else ""
        reason = f"the last frame was lost {told} after the overload had ended (limit {limit:g} s{within})"
    reason += f"; {_terms(load, second, phases, seen)}"
    return Verdict(requirement, goal, ruling, reason, trials, link_bps, _figures(seen, spans, tolerance))


def _told(found: StepDown, span: Span | None) -> Outcome:
    """The repetition's outcome with its recovery time among the readings, where it is told."""
    if span is None:
        return found.outcome
    bounds = {"recovery_low_s": span.low, **({} if math.isinf(span.high) else {"recovery_high_s": span.high})}
    return replace(found.outcome, readings={**found.outcome.readings, **bounds})


def worst(found: StepDown, tolerance: Tolerance) -> Span | None:
    """When the last frame was lost in the direction that took longest; None where a direction does not tell."""
    spans = [
        found.recovery(direction, max(tolerance.under, tolerance.over)) for direction in range(len(found.after.offered))
    ]
    known = [span for span in spans if span is not None]
    if len(known) < len(spans):
        return None
    return Span(max(span.low for span in known), max(span.high for span in known))


def unproven(found: StepDown, span: Span, load: Load, tolerance: Tolerance) -> str:
    """Why a repetition says nothing of recovery, in words; "" where it does. *load* is the overload."""
    directions = range(len(found.after.offered))
    most = max(found.overloaded(direction) for direction in directions)
    if most < OVERLOADED:
        return (
            f"the router was not overloaded: of {si(load.pps, 'pps')} into each port it lost {percent(max(0.0, most))},"
            f" and {percent(OVERLOADED)} would be needed; expected traffic that it cannot carry, as smaller"
            " frames, 'bidirectional' or '1-flow'"
        )
    if not found.sent[0] / (1 + tolerance.over) <= found.second.pps <= found.sent[1] / (1 - tolerance.under):
        return (
            f"the generator sent {si(found.sent[0], 'pps')} to {si(found.sent[1], 'pps')} after the overload instead of"
            f" {si(found.second.pps, 'pps')}, and its count is the clock"
        )
    carried = min((1 - found.overloaded(direction)) * load.pps for direction in directions)
    if math.isinf(span.high) and carried < found.second.pps:
        return (
            f"half of it, {si(found.second.pps, 'pps')}, is more than the {si(carried, 'pps')} that the router carried"
            " of it, so it may well be overloaded still; expected 'at' some 110 % of its throughput"
        )
    return ""


def _why_not(trials: Sequence[Trial], seen: Sequence[StepDown], load: Load, limit: float, tolerance: Tolerance) -> str:
    if any(trial.problems for trial in trials):
        return testbed_reason(trials)
    for found in reversed(seen):
        span = worst(found, tolerance)
        if span is None:
            return (
                f"the generator told its counts {len(found.samples)} times after the overload, which is too seldom;"
                " expected a longer limit or a nearer generator"
            )
        if reason := unproven(found, span, load, tolerance):
            return reason
        if span.low <= limit < span.high:
            return (
                f"the last frame was lost {span} after the overload had ended; the limit of {limit:g} s lies within:"
                " the counts cannot tell it more exactly"
            )
    return "the repetitions contradict each other"


def _widest(spans: Sequence[Span]) -> str:
    widest = Span(max(span.low for span in spans), max(span.high for span in spans))
    return str(widest) if len(spans) == 1 else f"{widest} in the worst of {len(spans)} repetitions"


def _terms(load: Load, second: Load, phases: Phases, seen: Sequence[StepDown]) -> str:
    shorter = f" (RFC 2544 26.5 asks for {LETTER:g} s)" if phases.overload < LETTER else ""
    lost = max(found.overloaded(direction) for found in seen for direction in range(len(found.after.offered)))
    return (
        f"{phases.overload:g} s at {si(load.pps, 'pps')} into each port{shorter}, of which up to"
        f" {percent(max(0.0, lost))} were lost, then {phases.after:g} s at {si(second.pps, 'pps')}"
    )


def _figures(seen: Sequence[StepDown], spans: Sequence[Span], tolerance: Tolerance) -> dict[str, float]:
    directions = [(found, direction) for found in seen for direction in range(len(found.after.offered))]
    figures = {
        "reduced_load_pps": seen[-1].second.pps,
        "overload_loss_ratio": max(found.overloaded(direction) for found, direction in directions),
    }
    told = [found for found in seen if worst(found, tolerance)]
    if told:
        figures["recovery_blur_frames"] = max(
            found.blur(direction) for found in told for direction in range(len(found.after.offered))
        )
    if spans:
        figures["recovery_low_s"] = max(span.low for span in spans)
        if not math.isinf(high := max(span.high for span in spans)):
            figures["recovery_high_s"] = high
    return figures
