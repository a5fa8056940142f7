"""Margin: how much more than its sentence a router carries, once the sentence has passed.

For a throughput the same rule is asked at higher loads, within a small budget of traffic. For ``forwards`` nothing is
sent: the verdict's own trials measured the rate at the maximum offered load (RFC 2285 3.6.2), and no higher load can be
offered.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..core.deciding import Decision, Standing, TrialConditions, decide
from ..core.phrases import of_directions, percent
from ..core.quantity import Promise
from ..core.rule import Ruling
from ..core.trial import Load, Measure, Outcome, Trial
from ..core.verdict import Verdict
from ..errors import BREAKDOWN_ERRORS
from .trials import CharacterisationEnded, breakdown_text, check_deadline

_ROUNDING = 1e-6

ONE_LOAD = 0.4
"""The largest share of the budget that one load may take."""


@dataclass(frozen=True, slots=True)
class Margin:
    """The carried load, as ratios to the sentence's threshold: 1.08 is 108 %.

    ``low``: the highest that passed, at least the sentence itself; ``high``: the lowest that failed, None: all that was
    asked for passed. ``reason``: what ended it early. ``trials``: at higher loads.
    """

    low: float
    high: float | None
    finished: bool = True
    reason: str = ""
    trials: tuple[Trial, ...] = ()

    @property
    def seconds(self) -> float:
        """Seconds of traffic."""
        return sum(trial.outcome.duration for trial in self.trials)

    def unproven(self, reason: str) -> Margin:
        """Without what was found: *reason* spoils all of it. The verdict stays."""
        return Margin(1.0, None, False, reason, self.trials)


def find_margin(
    promise_at: Callable[[float], Promise],
    carried: Load,
    highest: Load,
    measure: Measure,
    conditions: TrialConditions,
    line_pps: float,
    deadline: float = math.inf,
) -> Margin:
    """Ask at loads from *carried*, of each port, at which the sentence passed, to *highest*, until the goal's width.

    ``promise_at(pps)``: the sentence at another load. *deadline*: s of traffic of all trials together. The first load
    is the highest; then those around the rate that was forwarded there, then those in the middle of what is open.
    """
    if highest.pps <= carried.pps * (1 + _ROUNDING):
        return Margin(1.0, None)
    width, budget = promise_at(carried.pps).goal.width, _Budget(measure, conditions, deadline)
    low, high, top, load = carried.pps, math.inf, highest.pps, highest.pps
    hints, open_at = list[float](), list[float]()

    def margin(finished: bool, reason: str) -> Margin:
        end = None if high == math.inf else high / carried.pps
        return Margin(low / carried.pps, end, finished, reason, tuple(budget.trials))

    def is_open(pps: float) -> bool:
        return any(abs(pps / other - 1) < width / 2 for other in open_at)

    while True:
        promise = promise_at(load)
        promise = replace(promise, soak=0, goal=promise.goal.model_copy(update={"runs": 1}))
        try:
            decision = budget.decide(promise, line_pps)
        except CharacterisationEnded as spent:
            return margin(False, str(spent))
        except BREAKDOWN_ERRORS as error:
            return margin(False, breakdown_text(error).removeprefix("inconclusive: "))
        if decision is not None and decision.ruling is Ruling.PASS:
            low = load
        else:
            top = min(top, load)
            if decision is not None and decision.ruling is Ruling.FAIL:
                high, rate = load, _carried_rate(promise, decision)
                hints = [rate * (1 + 0.49 * width), rate * (1 - 0.49 * width)]
            else:
                open_at.append(load)
        if low >= top * (1 - _ROUNDING) or high <= low * (1 + width + _ROUNDING):
            return margin(True, "")
        if top <= low * (1 + width):
            return margin(False, f"from {percent(top / carried.pps)} on the testbed could prove neither")
        hints = [pps for pps in hints if low * (1 + _ROUNDING) < pps < high and not is_open(pps)]
        load = hints.pop() if hints else (low + top) / 2


def margin_of_forwarding(verdict: Verdict) -> Margin:
    """The interval of the forwarding rate that *verdict*'s trials measured, as a ratio of the threshold.

    Its lower end may be less than 1: the verdict is about the mean. One trial has no interval.
    """
    figures, threshold = verdict.figures, verdict.requirement.threshold_pps(verdict.link_bps)
    mean = figures["forwarded_pps"]
    low, high = figures.get("forwarded_pps_low", mean), figures.get("forwarded_pps_high", mean)
    return Margin(low / threshold, high / threshold)


class _LoadSpent(Exception):
    """Ends the trials at one load, which took its share of the budget."""


class _Budget:
    """Trials at one load after another, in *deadline* s of traffic."""

    def __init__(self, measure: Measure, conditions: TrialConditions, deadline: float) -> None:
        self._measure, self._deadline, self._listener = measure, deadline, conditions.on_trial
        self._conditions = replace(conditions, on_trial=self._on_trial)
        self._spent = self._spent_here = 0.0
        self.trials: list[Trial] = []

    def decide(self, promise: Promise, line_pps: float) -> Decision | None:
        """Return the rule's answer at one load; None if it takes too much of the budget."""
        self._spent_here = 0.0
        try:
            return decide(promise, self._within_budget, self._conditions, line_pps)
        except _LoadSpent:
            return None

    def _within_budget(self, load: Load, duration: float) -> Outcome:
        check_deadline(self._deadline, self._spent, duration)
        # a load has one trial at least, however long it is
        if self._spent_here and self._spent_here + duration > ONE_LOAD * self._deadline:
            raise _LoadSpent
        outcome = self._measure(load, duration)
        self._spent += outcome.duration
        self._spent_here += outcome.duration
        return outcome

    def _on_trial(self, trial: Trial, standing: Standing) -> None:
        self.trials.append(replace(trial, number=len(self.trials) + 1))
        self._listener(self.trials[-1], standing)


def _carried_rate(promise: Promise, decision: Decision) -> float:
    """Return the load of each port, in frames/s, of which no more would be lost than is promised, as trials hint."""
    trials, forgiven = decision.trials, promise.limit.value
    rows = zip(*(trial.outcome.directions for trial in trials), strict=True)
    seconds = sum(trial.seconds.high for trial in trials) or 1e-9
    rates = [sum(row.sustained for row in column) / seconds for column in rows]
    together = promise.in_total and forgiven > 0
    return of_directions(rates, together) / (len(rates) if together else 1) / (1 - forgiven)
