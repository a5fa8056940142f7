"""Verify: does the router carry the sentence's load within the goal? A known threshold needs no search."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.goals import Goal
from ..core.requirement import Quantity, Requirement
from ..core.trial import Load, Measure, Trial
from ..core.verdict import (
    Evidence,
    EvidenceRule,
    Ruling,
    Verdict,
    forwarded_pps,
    loss_rule,
    offered_pps,
    on_the_whole,
    weigh,
    whole_loss_ratio,
)
from ..units import si
from .phrases import (
    backlog_text,
    bad_by_direction,
    excused_text,
    foreign_frames_text,
    forwarded_by_pair,
    lost_by_direction,
    percent,
    rate_figures,
    rate_in_all_units,
    set_aside_text,
    spoilt_trials_reason,
)
from .sequential import Lengthening, TrialConditions, contradicts, run_until_decided

BUSY_CPU_PERCENT = 80.0
"""Above this CPU load of the generator, in per cent, a failure mentions it."""


def verify(
    requirement: Requirement, load: Load, goal: Goal, measure: Measure, link_bps: float, conditions: TrialConditions
) -> Verdict:
    """Judge a throughput or a loss sentence at *load* (frames/s into each sending port) under *goal*.

    Trials grow until queues hide no more than the goal's resolution (:class:`.sequential.Lengthening`).
    """
    load = requirement.within_clocks(load, link_bps)
    shortest = goal.final_trial_duration

    def rule_of(goal: Goal) -> EvidenceRule:
        return loss_rule(goal, requirement.in_total, shortest)

    def evidence_of(trial: Trial) -> Evidence:
        return on_the_whole(rule(trial))

    def usable_of(trials: Sequence[Trial]) -> list[Trial]:
        """Those that are in figures of the router: no scouts, and none that the testbed spoilt."""
        kinds = [(trial, evidence_of(trial)) for trial in trials]
        return [
            trial
            for trial, evidence in kinds
            if evidence is not Evidence.SCOUT and (trial.blames_router or evidence.against_router)
        ]

    def whole_of(trials: Sequence[Trial]) -> float:
        """The certain loss ratio of all trials that are good or bad; those that prove nothing do not dilute it."""
        weighed = [trial for trial in trials if (kind := evidence_of(trial)) is Evidence.GOOD or kind.against_router]
        return whole_loss_ratio(weighed, requirement.in_total and goal.loss_ratio > 0)

    def keeps(trials: Sequence[Trial]) -> bool:
        return whole_of(trials) <= goal.forgiven_loss_ratio

    rule = rule_of(goal)
    found = run_until_decided(
        measure, load, goal, rule, conditions, goal.scout, keeps, load, Lengthening(rule_of, load.pps)
    )
    ruling, trials, goal = found.ruling, found.trials, found.goal
    rule = rule_of(goal)
    counted = [trial for trial in trials if evidence_of(trial) is not Evidence.SCOUT]
    usable = usable_of(trials)
    offered, lost = sum(trial.offered for trial in usable), sum(trial.lost for trial in usable)
    worst = max((trial.loss_ratio(requirement.in_total) for trial in usable), default=0.0)
    figures = rate_figures(requirement, counted, link_bps) | {
        "offered_frames": float(offered),
        "lost_frames": float(lost),
        "worst_loss_ratio": worst,
    }
    if contradicts(ruling, goal, trials, rule):
        reason = (
            f"lost {percent(whole_of(trials))} of all frames of its trials, {lost} of {offered}; the goal forgives bad"
            f" trials, but at most {percent(goal.forgiven_loss_ratio)} of all frames"
        )
    elif ruling is Ruling.INCONCLUSIVE:
        reason = spoilt_trials_reason(counted)
    elif ruling is Ruling.PASS:
        least = min(offered_pps(trial, requirement) for trial in usable if trial.valid)
        excused = excused_text(usable)
        reason = (
            f"lost {lost} of {offered} frames{excused} at {rate_in_all_units(least, requirement, link_bps)} offered"
        )
        bad = [trial for trial in usable if evidence_of(trial).against_router]
        if bad:
            reason += f", in {len(bad)} of {len(usable)} trials, at most {percent(worst)}"
            reason += bad_by_direction(usable, weigh(goal, trials, rule).tally)
        reason += forwarded_by_pair(requirement, usable)
        if goal.whole:
            reason += f"; {sum(trial.outcome.duration for trial in usable):g} s of trials"
        reason += set_aside_text(counted, rule)
        reason += found.extra_text + backlog_text(goal, usable, load.pps) + foreign_frames_text(usable)
        lost = sum(trial.lost for trial in trials if evidence_of(trial) is Evidence.SCOUT)
        if lost:
            reason += f"; a scout of {goal.scout:g} s before them lost {lost} frames, which does not count"
    else:
        reason = _failure_reason(requirement, goal, usable, link_bps)
    return Verdict(requirement, goal, ruling, reason, trials, link_bps, figures)


def _failure_reason(requirement: Requirement, goal: Goal, usable: list[Trial], link_bps: float) -> str:
    worst = max(usable, key=lambda trial: trial.loss_ratio(requirement.in_total))
    loss = worst.loss_ratio(requirement.in_total)
    offered, forwarded = offered_pps(worst, requirement), forwarded_pps(worst, requirement)
    weighed = weigh(goal, usable, loss_rule(goal, requirement.in_total))
    found = weighed.tally
    less = any(not problem.fault.excuses_router for problem in worst.problems)
    lower = " (less than was asked for, which already proves the FAIL)" if less else ""
    margin = ""
    if requirement.quantity is Quantity.THROUGHPUT:
        margin = f", {100 * (forwarded / requirement.threshold_pps(link_bps) - 1):+.1f} % against the threshold"
    busy = max((trial.outcome.readings.get("cpu_util", 0.0) for trial in usable), default=0.0)
    strained = f"; the generator's CPU was {busy:.0f} % busy, which may be a cause" if busy > BUSY_CPU_PERCENT else ""
    counted = f"{found.bad} of {found.bad + found.good} trials lost more than the goal allows"
    if weighed.bad_window is not None and goal.window is not None:
        counted = (
            f"{weighed.bad_window:g} s of trials within {goal.window:g} s lost more than the goal allows ({counted})"
        )
    if found.clear and goal.clear_loss_ratio is not None:
        counted = f"one trial that loses more than {percent(goal.clear_loss_ratio)} decides"
    directions = f"; its worst trial {lost_by_direction(worst)}" if lost_by_direction(worst) else ""
    return (
        f"lost {percent(loss)} at {si(offered, 'pps')} offered{lower} (goal: {percent(goal.loss_ratio)});"
        f" forwarded {rate_in_all_units(forwarded, requirement, link_bps)}{margin}; {counted}{directions}{strained}"
        f"{forwarded_by_pair(requirement, usable)}"
    )
