"""Saturate: the forwarding rate at maximum offered load (RFC 2285 3.6.2), in repeated trials."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from ..core.goals import Goal
from ..core.requirement import Requirement
from ..core.trial import Load, Measure, Trial
from ..core.verdict import (
    Evidence,
    EvidenceRule,
    Ruling,
    Verdict,
    forwarded_pps,
    forwarding_rule,
    offered_pps,
    on_the_whole,
    sustained_mean,
)
from ..stats import Interval, IntervalMethod, interval
from ..stats.summary import confidence_text
from ..units import si
from .phrases import (
    backlog_text,
    foreign_frames_text,
    forwarded_by_direction,
    forwarded_by_pair,
    rate_figures,
    rate_in_all_units,
    set_aside_text,
    spoilt_trials_reason,
)
from .sequential import Lengthening, TrialConditions, run_until_decided

FULL_LOAD_TOLERANCE = 0.001
"""If the generator offers less than was asked by more than this ratio, the reason names its ceiling."""


def saturate(
    requirement: Requirement, load: Load, goal: Goal, measure: Measure, link_bps: float, conditions: TrialConditions
) -> Verdict:
    """Judge a ``forwards`` sentence at *load* (frames/s into each port), the most that the generator is asked for.

    Frames that a queue holds when a trial ends do not count. Where the generator cannot tell how many, trials are
    longer at low thresholds (:class:`.sequential.Lengthening`).

    The figures include the mean and, in ``forwarded_pps_low`` and ``…_high``, its interval at the goal's confidence, as
    for a number of trials fixed beforehand (one trial has no interval). The verdict does not use it.
    """
    least = requirement.threshold_load(link_bps).pps
    threshold = requirement.judged_pps(link_bps)

    def rule_of(goal: Goal) -> EvidenceRule:
        return forwarding_rule(requirement, link_bps, goal.final_trial_duration)

    def usable_of(trials: Sequence[Trial]) -> list[Trial]:
        """Those that are good or bad, whatever else was wrong; those that prove nothing are in no mean."""
        kinds = [(trial, on_the_whole(rule_of(goal)(trial))) for trial in trials]
        weighed = [trial for trial, kind in kinds if kind is not Evidence.NONE]
        return weighed or [trial for trial in trials if trial.blames_router] or list(trials)

    def keeps(trials: Sequence[Trial]) -> bool:
        return sustained_mean(usable_of(trials), requirement) >= threshold * (1 - 1e-9)

    lengthening = Lengthening(rule_of, least, subtracts=True)
    found = run_until_decided(measure, load, goal, rule_of(goal), conditions, keeps=keeps, lengthening=lengthening)
    ruling, trials, goal = found.ruling, found.trials, found.goal
    evidence_of = rule_of(goal)
    usable = usable_of(trials)
    rates = [forwarded_pps(trial, requirement) for trial in usable]
    offered = [offered_pps(trial, requirement) for trial in usable]
    spread_of_mean = interval(rates, goal.confidence)
    figures = rate_figures(requirement, usable, link_bps) | {
        "forwarded_pps_min": min(rates),
        "forwarded_pps_max": max(rates),
    }
    if spread_of_mean.low is not None and spread_of_mean.high is not None:
        figures |= {"forwarded_pps_low": spread_of_mean.low, "forwarded_pps_high": spread_of_mean.high}
    if ruling is Ruling.INCONCLUSIVE:
        reason = spoilt_trials_reason(trials)
        if max(offered) < threshold:
            reason = (
                f"the generator offered {si(max(offered), 'pps')} (forwarded: {si(max(rates), 'pps')}), less than the"
                f" {si(threshold, 'pps')} to be forwarded; use a faster generator"
            )
    else:
        mean = sustained_mean(usable, requirement)
        margin = 100 * (mean / threshold - 1)
        spread = _interval_text(spread_of_mean)
        if spread_of_mean.method is not IntervalMethod.CONSTANT:
            spread += f"; trials from {si(min(rates), 'pps')} to {si(max(rates), 'pps')}"
        if below := sum(on_the_whole(evidence_of(trial)).against_router for trial in usable):
            spread += f"; {below} of {len(usable)} trials below the threshold"
        asked = load.pps * (requirement.directions if requirement.in_total else 1)
        reason = (
            f"forwarded {rate_in_all_units(mean, requirement, link_bps)} at {_offered_text(fmean(offered), asked)}"
            f" ({margin:+.2f} % against the threshold; {spread})"
        )
        reason += forwarded_by_pair(requirement, usable)
        if ruling is Ruling.PASS:
            reason += set_aside_text(trials, evidence_of)
        if ruling is Ruling.PASS:
            reason += backlog_text(goal, usable, least) + foreign_frames_text(usable)
        if ruling is Ruling.FAIL:
            worst = min(usable, key=lambda trial: forwarded_pps(trial, requirement))
            reason += f"; its worst trial {forwarded_by_direction(worst)}" if forwarded_by_direction(worst) else ""
    return Verdict(requirement, goal, ruling, reason, trials, link_bps, figures)


def _interval_text(found: Interval) -> str:
    """The interval, its method, and what that assumes."""
    if found.low is None or found.high is None or found.half_width is None:
        return "one trial has no interval"
    if found.method is IntervalMethod.CONSTANT:
        return "no spread: all trials forwarded as much"
    how = f"{found.method.value}; {found.explanation.partition('; ')[2]}".removesuffix("; ")
    if found.method in (IntervalMethod.BCA, IntervalMethod.PERCENTILE):
        # not symmetrical about the mean
        words = f"{si(found.low, 'pps', 5)} to {si(found.high, 'pps', 5)}"
    else:
        words = f"± {si(found.half_width, 'pps', 3)}"
    return f"{confidence_text(found.confidence)} interval {words} ({how})"


def _offered_text(offered: float, asked: float) -> str:
    words = f"{si(offered, 'pps')} offered"
    if offered >= asked * (1 - FULL_LOAD_TOLERANCE):
        return words
    return f"{words}, the generator's ceiling ({100 * offered / asked:.3g} % of the {si(asked, 'pps')} asked for)"
