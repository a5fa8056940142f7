"""Margin: how much more than its sentence a router carries, once the sentence has passed.

For a throughput the same rule is asked at higher loads, within a small budget of traffic. For ``forwards`` nothing is
sent: the verdict's own trials measured the rate at the maximum offered load (RFC 2285 3.6.2), and no higher load can be
offered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...core.deciding import MISSES, Decision, Standing, TrialConditions, decide
from ...core.doubts import USABLE_SHARE
from ...core.phrases import of_directions, percent
from ...core.quantity import Promise, Requirement, TrafficWords
from ...core.rule import Ruling
from ...core.trial import Fault, Load, Outcome, Trial
from ...core.verdict import Verdict
from ...errors import BREAKDOWN_ERRORS
from ...session.judging import promised
from ..procedure import SENDABLE, ProcedureRun
from ..trials import CharacterisationEnded, breakdown_text, check_deadline, worst_rate

OWN_LIMIT, LINE_RATE, NAMED_LOAD = "the generator's limit", "line rate", "the load that it is judged at"
"""Ends of what can be asked for."""


@dataclass(frozen=True, slots=True)
class Margin:
    """The carried load, as ratios to the sentence's threshold: 1.08 is 108 %.

    ``low``: the highest that passed, at least the sentence itself; ``high``: the lowest that failed, None: all that was
    asked for passed. ``reason``: what ended it early. ``limit``: what ``low`` is, where no more can be asked for.
    ``trials``: at higher loads.
    """

    low: float
    high: float | None
    reason: str = ""
    limit: str = ""
    trials: tuple[Trial, ...] = ()

    @property
    def figures(self) -> dict[str, Any]:
        """Return the fields of its record; ``seconds`` of traffic."""
        figures = {name: getattr(self, name) for name in ("low", "high", "reason", "limit")}
        return {**figures, "seconds": _traffic(self.trials)}


def margin(run: ProcedureRun, requirement: Requirement) -> Margin:
    """Return how much more than *requirement*, which has just passed, is carried, by the same rule at higher loads.

    To what the ports can send within their clocks, and the generator without loss of its own: loss beyond that would
    not be the router's. A router that restarted meanwhile makes nothing of it certain. The first load is the highest,
    or what the generator sends instead, a tenth less where its cores are too slow for it; then those around the rate
    that was forwarded there, then those below, in growing steps, until the goal's width.
    """
    session, link_bps, deadline = run.session, run.session.plan.link_bps(requirement.pairs), run.deadline
    traffic = TrafficWords(requirement.profile, requirement.bidirectional, requirement.traffic, pairs=requirement.pairs)
    carried = requirement.within_clocks(requirement.threshold_load(link_bps), link_bps)
    can_send = min(session.plan.maximum_load(traffic).pps, USABLE_SHARE * session.own_part(traffic).lossless_pps)
    highest = requirement.within_clocks(Load(can_send), link_bps)
    limit = LINE_RATE if highest.pps < can_send else OWN_LIMIT
    if highest.pps <= carried.pps * (1 + 1e-6):
        # a sentence may ask for more than searches do
        return Margin(1.0, None, limit=limit if highest.pps >= carried.pps * (1 - 1e-6) else NAMED_LOAD)
    run.put(traffic, warm_up=False)
    trials: list[Trial] = []

    def within_deadline(load: Load, duration: float) -> Outcome:
        check_deadline(deadline, run.sent, duration)
        return run.measure(load, duration)

    def on_trial(trial: Trial, standing: Standing) -> None:
        trials.append(replace(trial, number=len(trials) + 1))
        run.keep(traffic, trials[-1])
        # those at this load are numbered from 1
        until_pass = _traffic(trials[-trial.number :]) + standing.rule.trials_left * trial.outcome.duration
        # the trials of one load may take three quarters of the deadline until they pass
        is_too_long = standing.rule.cannot_pass or until_pass > 0.75 * deadline
        # a trial that misses may be the first of a FAIL, which is soon found
        if standing.rule.ruling is None and standing.last != MISSES and is_too_long:
            raise _LoadSpent

    conditions = TrialConditions(session.tolerance, session.clock_speed, on_trial, session.examine)
    width, reason = session.plan.goal.width, ""
    low, high, top, step = carried.pps, math.inf, math.inf, width
    most = load = highest.pps
    hints = list[float]()
    while not reason:
        begin = len(trials)
        promise = promised(session, requirement, Load(load))
        promise = replace(promise, soak=0, goal=promise.goal.model_copy(update={"runs": 1}))
        try:
            decision = decide(promise, within_deadline, conditions, run.line(traffic))
        except _LoadSpent:
            decision = None
        except (CharacterisationEnded, *BREAKDOWN_ERRORS) as error:
            is_deadline = isinstance(error, CharacterisationEnded)
            reason = str(error) if is_deadline else breakdown_text(error).removeprefix("inconclusive: ")
            break
        if decision is not None and decision.ruling is Ruling.PASS:
            low, top = load, high if top < load else top
        elif decision is not None and decision.ruling is Ruling.FAIL:
            high, top, rate = load, min(top, load), _carried_rate(promise, decision)
            hints = [rate * (1 + 0.49 * width), rate * (1 - 0.49 * width)]
        elif _is_too_slow(trials[begin:]) or worst_rate(trials[-1], "offered") < load * (1 - width):
            is_less = _is_too_slow(trials[begin:]) or most < highest.pps
            share = SENDABLE if is_less else 1 - 0.49 * width
            most, limit = max(low, share * min(load, worst_rate(trials[-1], "offered"))), OWN_LIMIT
            if most > low:
                load = most
                continue
        else:
            top = min(top, load)
        if low >= most or high <= low * (1 + width + 1e-6):
            break
        # a load near one that was asked at shows nothing new
        asked, near = (low, high, top), 0.4 * width
        hints = [pps for pps in hints if low < pps < high and min(abs(pps / at - 1) for at in asked) > near]
        if hints:
            load = hints.pop()
        elif top <= low * (1 + width + 1e-6):
            reason = f"from {percent(top / carried.pps)} on the testbed could prove neither"
        else:
            load, step = max((low + top) / 2, top / (1 + step)), 2 * step
    session.examine(False)
    if problem := run.router_problem():
        return Margin(1.0, None, problem, trials=tuple(trials))  # the verdict stays
    end = None if high == math.inf else high / carried.pps
    ends_at = limit if low >= most else ""
    return Margin(low / carried.pps, end, reason, ends_at, tuple(trials))


def margin_of_forwarding(verdict: Verdict) -> Margin:
    """Return the forwarding rate that *verdict*'s trials measured, as a ratio of the threshold.

    Its lower end may be less than 1: the verdict is about the mean. One trial has no interval. Where all that was
    offered came back, the rate is that of the generator, and the router may carry more.
    """
    requirement, figures = verdict.requirement, verdict.figures
    threshold, mean = requirement.threshold_pps(verdict.promise.link_bps), figures["forwarded_pps"]
    low, high = figures.get("forwarded_pps_low", mean), figures.get("forwarded_pps_high", mean)
    trials = verdict.trials
    if sum(trial.lost for trial in trials) <= verdict.promise.goal.forgiven * sum(trial.offered for trial in trials):
        limit = OWN_LIMIT if requirement.named_load(verdict.promise.link_bps) is None else NAMED_LOAD
        return Margin(low / threshold, None, limit=limit)
    return Margin(low / threshold, high / threshold)


class _LoadSpent(Exception):
    """Ends the trials at one load, which took its share of the deadline."""


def _traffic(trials: Sequence[Trial]) -> float:
    return sum(trial.outcome.duration for trial in trials)


def _is_too_slow(trials: Sequence[Trial]) -> bool:
    slow = Fault.UNSENT, Fault.STRETCHED, Fault.CPU_BOUND
    return any(problem.fault in slow for trial in trials for problem in trial.problems)


def _carried_rate(promise: Promise, decision: Decision) -> float:
    """Return the load of each port, in frames/s, of which the rate that was carried is all but the promised loss."""
    trials, forgiven = decision.trials, promise.limit.value
    by_direction = zip(*(trial.outcome.directions for trial in trials), strict=True)
    seconds = sum(trial.seconds.high for trial in trials) or 1e-9
    rates = [sum(row.sustained for row in column) / seconds for column in by_direction]
    return of_directions(rates, promise.in_total) / (len(rates) if promise.in_total else 1) / (1 - forgiven)
