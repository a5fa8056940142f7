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

GROWTH = 4.0
"""A step upwards that meets no limit makes the next one so many times as large."""

ONE_LOAD = 0.4
"""The largest share of the budget that one load may take."""


@dataclass(frozen=True, slots=True)
class Margin:
    """What is carried, as ratios to the sentence's threshold: 1.08 is 108 %.

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

    ``promise_at(pps)``: the sentence at another load. *deadline*: s of traffic of all trials together.
    """
    if highest.pps <= carried.pps * (1 + _ROUNDING):
        return Margin(1.0, None)
    return _Ascent(promise_at, carried, highest, measure, conditions, line_pps, deadline).margin()


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


class _Ascent:
    """The loads that were asked, in frames/s of each port: ``low`` passed, ``high`` failed (None: none did)."""

    def __init__(
        self,
        promise_at: Callable[[float], Promise],
        carried: Load,
        highest: Load,
        measure: Measure,
        conditions: TrialConditions,
        line_pps: float,
        deadline: float,
    ) -> None:
        self._promise_at, self._measure, self._line = promise_at, measure, line_pps
        self._sentence, self._highest = carried.pps, highest.pps
        self._low, self._high = carried.pps, math.inf
        self._width = promise_at(carried.pps).goal.width
        self._step = self._width
        self._rate: float | None = None
        """What the last trial above the limit forwarded; None: tried already."""
        self._conditions = replace(conditions, on_trial=self._on_trial)
        self._listener, self._trials = conditions.on_trial, list[Trial]()
        self._deadline, self._spent, self._spent_here = deadline, 0.0, 0.0

    def margin(self) -> Margin:
        """Ask until the bounds are close, all that can be sent passed, or the budget is used up."""
        load, open_at = self._highest, list[float]()
        while True:
            try:
                ruling = self._ruling(load)
            except CharacterisationEnded as spent:
                return self._margin(False, str(spent))
            except BREAKDOWN_ERRORS as error:
                return self._margin(False, breakdown_text(error).removeprefix("inconclusive: "))
            if ruling is Ruling.INCONCLUSIVE:
                open_at.append(load)
            if self._low >= self._highest * (1 - _ROUNDING) or self._high <= self._low * (1 + self._width + _ROUNDING):
                return self._margin(True, "")
            following = self._next(load, ruling, open_at)
            if following is None:
                words = ", ".join(percent(item / self._sentence) for item in open_at)
                return self._margin(False, f"at {words} the testbed could prove neither")
            load = following

    def _ruling(self, load: float) -> Ruling:
        promise = self._promise_at(load)
        promise = replace(promise, soak=0, goal=promise.goal.model_copy(update={"runs": 1}))
        self._spent_here = 0.0
        try:
            decision = decide(promise, self._within_budget, self._conditions, self._line)
        except _LoadSpent:
            return Ruling.INCONCLUSIVE
        if decision.ruling is Ruling.PASS:
            self._low = max(self._low, load)
        elif decision.ruling is Ruling.FAIL:
            self._high = min(self._high, load)
            self._rate = _carried_rate(promise, decision)
        return decision.ruling or Ruling.INCONCLUSIVE

    def _next(self, load: float, ruling: Ruling, open_at: list[float]) -> float | None:
        """Return the next load: around the rate that was forwarded, then in growing steps, then between the bounds."""
        low, top = self._low, min(self._high, self._highest)
        if ruling is Ruling.FAIL:
            self._step = self._width
        if self._rate is not None:
            below, above = self._rate * (1 - 0.49 * self._width), self._rate * (1 + 0.49 * self._width)
            if ruling is Ruling.FAIL and low * (1 + _ROUNDING) < below < top:
                return below
            self._rate = None
            if low * (1 + _ROUNDING) < above < top:
                return above
        following = max([low, *(item for item in open_at if item > low)]) * (1 + self._step)
        self._step *= GROWTH
        if following < top * (1 - _ROUNDING):
            return following
        middle = (low + top) / 2
        is_near_open = any(abs(item / middle - 1) < self._width / 2 for item in open_at)
        return None if is_near_open or middle < low * (1 + self._width / 4) else middle

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
        self._trials.append(replace(trial, number=len(self._trials) + 1))
        self._listener(self._trials[-1], standing)

    def _margin(self, finished: bool, reason: str) -> Margin:
        high = None if self._high == math.inf else self._high / self._sentence
        return Margin(self._low / self._sentence, high, finished, reason, tuple(self._trials))


def _carried_rate(promise: Promise, decision: Decision) -> float:
    """Return the load of each port, in frames/s, of which no more would be lost than is promised, as trials hint."""
    trials, forgiven = decision.trials, promise.limit.value
    rows = zip(*(trial.outcome.directions for trial in trials), strict=True)
    seconds = sum(trial.seconds.high for trial in trials) or 1e-9
    rates = [sum(row.sustained for row in column) / seconds for column in rows]
    together = promise.in_total and forgiven > 0
    return of_directions(rates, together) / (len(rates) if together else 1) / (1 - forgiven)
