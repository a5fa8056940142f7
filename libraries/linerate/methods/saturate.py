"""Saturate: the forwarding rate at maximum offered load (RFC 2285 3.6.2), repeated, as the sentence asks."""

from __future__ import annotations

from statistics import fmean

from ..counts.trial import Load, Measure
from ..sla.goals import Goal
from ..sla.requirement import Requirement
from ..sla.verdict import Ruling, Verdict, forwarded_pps, offered_pps, weigh_forwarding
from ..stats import Interval, IntervalMethod, interval
from ..stats.summary import confidence_text
from ..units import si
from .phrases import by_pair, forwarded_by_direction, rate_figures, rate_text, testbed_reason
from .sequential import Conditions, until_decided

CEILING = 0.001
"""A generator that offers less than was asked by more than this ratio has its ceiling named."""


def saturate(
    requirement: Requirement, load: Load, goal: Goal, measure: Measure, link_bps: float, conditions: Conditions
) -> Verdict:
    """Judge a ``forwards`` sentence: *load* (frames/s into each port) is the most that the generator is asked for.

    What a buffer holds when a trial ends comes back too, and counts: at low thresholds trials are as long as the goal's
    ``buffer_frames`` need (:meth:`~linerate.sla.goals.Goal.at`).

    Among the figures are the mean and, in ``forwarded_pps_low`` and ``…_high``, its interval at the goal's confidence,
    found as if the number of trials had been fixed before (one trial has none). The verdict does not use it.
    """
    least = requirement.threshold_load(link_bps).pps
    goal = goal.at(least)
    weigh = weigh_forwarding(requirement, link_bps)
    ruling, trials = until_decided(measure, load, goal, weigh, conditions)
    telling = [trial for trial in trials if trial.blames_router] or list(trials)
    rates = [forwarded_pps(trial, requirement) for trial in telling]
    offered = [offered_pps(trial, requirement) for trial in telling]
    found = interval(rates, goal.confidence)
    figures = rate_figures(requirement, trials, link_bps) | {
        "forwarded_pps_min": min(rates),
        "forwarded_pps_max": max(rates),
    }
    if found.low is not None and found.high is not None:
        figures |= {"forwarded_pps_low": found.low, "forwarded_pps_high": found.high}
    threshold = requirement.threshold_pps(link_bps)
    if ruling is Ruling.INCONCLUSIVE:
        reason = testbed_reason(trials)
        if max(offered) < threshold:
            reason = (
                f"the generator offered {si(max(offered), 'pps')} (forwarded: {si(max(rates), 'pps')}), less than the"
                f" {si(threshold, 'pps')} that are to come back; use a faster generator"
            )
    else:
        mean = figures["forwarded_pps"]
        margin = 100 * (mean / threshold - 1)
        spread = _interval_words(found)
        if found.method is not IntervalMethod.CONSTANT:
            spread += f"; trials from {si(min(rates), 'pps')} to {si(max(rates), 'pps')}"
        if below := sum(weigh(trial).against for trial in telling):
            # a mean above the threshold must not hide what the verdict goes by
            spread += f"; {below} of {len(telling)} trials below the threshold"
        asked = load.pps * (requirement.directions if requirement.in_total else 1)
        reason = (
            f"forwarded {rate_text(mean, requirement, link_bps)} at {_offered_words(fmean(offered), asked)}"
            f" ({margin:+.2f} % against the threshold; {spread})"
        )
        reason += by_pair(requirement, telling)
        if ruling is Ruling.PASS and goal.unseen(least):
            reason += f"; {goal.unseen(least)}"
        if ruling is Ruling.FAIL:
            worst = min(telling, key=lambda trial: forwarded_pps(trial, requirement))
            reason += f"; its worst trial {forwarded_by_direction(worst)}" if forwarded_by_direction(worst) else ""
    return Verdict(requirement, goal, ruling, reason, trials, link_bps, figures)


def _interval_words(found: Interval) -> str:
    """The interval, the way it was found, and what that presumes."""
    if found.low is None or found.high is None or found.half_width is None:
        return "one trial has no interval"
    if found.method is IntervalMethod.CONSTANT:
        return "no spread: all trials forwarded as much"
    how = f"{found.method.value}; {found.words.partition('; ')[2]}".removesuffix("; ")
    if found.method in (IntervalMethod.BCA, IntervalMethod.PERCENTILE):
        # not symmetrical about the mean
        words = f"{si(found.low, 'pps', 5)} to {si(found.high, 'pps', 5)}"
    else:
        words = f"± {si(found.half_width, 'pps', 3)}"
    return f"{confidence_text(found.confidence)} interval {words} ({how})"


def _offered_words(offered: float, asked: float) -> str:
    words = f"{si(offered, 'pps')} offered"
    if offered >= asked * (1 - CEILING):
        return words
    return f"{words}, the generator's ceiling ({100 * offered / asked:.3g} % of the {si(asked, 'pps')} asked for)"
