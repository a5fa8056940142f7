"""Verify: is the load of the sentence carried within the goal? A known threshold needs no search."""

from __future__ import annotations

from ..counts.trial import Load, Measure, Trial
from ..sla.goals import Goal
from ..sla.requirement import Quantity, Requirement
from ..sla.verdict import Evidence, Ruling, Verdict, forwarded_pps, offered_pps, tally, weigh_loss
from ..units import si
from .phrases import by_direction, by_pair, percent, rate_figures, rate_text, testbed_reason
from .sequential import Conditions, until_decided

BUSY = 80.0
"""Per cent of the generator's CPU beyond which a failure names it."""


def verify(
    requirement: Requirement, load: Load, goal: Goal, measure: Measure, link_bps: float, conditions: Conditions
) -> Verdict:
    """Judge a throughput or a loss sentence at *load* (frames/s into each sending port) under *goal*.

    At low rates trials are as long as the goal's ``buffer_frames`` need (:meth:`~linerate.sla.goals.Goal.at`).
    """
    goal = goal.at(load.pps)
    weigh = weigh_loss(goal, requirement.in_total)
    ruling, trials = until_decided(measure, load, goal, weigh, conditions, goal.scout)
    weighed = [trial for trial in trials if weigh(trial) is not Evidence.SCOUT]
    # what the testbed spoilt says nothing of the router, so it is in no figure of it
    telling = [trial for trial in weighed if trial.blames_router]
    offered, lost = sum(trial.offered for trial in telling), sum(trial.lost for trial in telling)
    worst = max((trial.loss_ratio(requirement.in_total) for trial in telling), default=0.0)
    figures = rate_figures(requirement, weighed, link_bps) | {
        "offered_frames": float(offered),
        "lost_frames": float(lost),
        "worst_loss_ratio": worst,
    }
    if ruling is Ruling.INCONCLUSIVE:
        reason = testbed_reason(weighed)
    elif ruling is Ruling.PASS:
        least = min(offered_pps(trial, requirement) for trial in telling if weigh(trial) is Evidence.GOOD)
        reason = f"lost {lost} of {offered} frames at {rate_text(least, requirement, link_bps)} offered"
        bad = [trial for trial in telling if weigh(trial).against]
        if bad:
            allowed = goal.exceed_ratio * goal.duration_sum
            reason += (
                f", in {len(bad)} of {len(telling)} trials ({tally(trials, weigh).bad:g} s; the goal allows"
                f" {allowed:g} s), at most {percent(worst)}"
            )
        reason += by_pair(requirement, telling)
        if goal.whole:
            reason += f"; {sum(trial.outcome.duration for trial in telling):g} s of trials"
        unseen = goal.unseen(load.pps)
        reason += f"; {unseen}" if unseen else ""
        lost = sum(trial.lost for trial in trials[: len(trials) - len(weighed)])
        if lost:
            reason += f"; a scout of {goal.scout:g} s before them lost {lost} frames, which is not weighed"
    else:
        reason = _failure(requirement, goal, telling, link_bps)
    return Verdict(requirement, goal, ruling, reason, trials, link_bps, figures)


def _failure(requirement: Requirement, goal: Goal, telling: list[Trial], link_bps: float) -> str:
    worst = max(telling, key=lambda trial: trial.loss_ratio(requirement.in_total))
    loss = worst.loss_ratio(requirement.in_total)
    offered, forwarded = offered_pps(worst, requirement), forwarded_pps(worst, requirement)
    found = tally(telling, weigh_loss(goal, requirement.in_total))
    less = any(not problem.fault.spares_the_router for problem in worst.problems)
    lower = " (less than was asked for, which already proves it)" if less else ""
    margin = ""
    if requirement.quantity is Quantity.THROUGHPUT:
        margin = f", {100 * (forwarded / requirement.threshold_pps(link_bps) - 1):+.1f} % against the threshold"
    busy = max((trial.outcome.readings.get("cpu_util", 0.0) for trial in telling), default=0.0)
    strained = f"; the generator's CPU was {busy:.0f} % busy, which may be a cause" if busy > BUSY else ""
    counted = f"{found.bad:g} s of trials lost more than the goal allows, {found.good:g} s did not"
    if found.clear and goal.clear_loss_ratio is not None:
        counted = f"one trial that loses more than {percent(goal.clear_loss_ratio)} decides"
    directions = f"; its worst trial {by_direction(worst)}" if by_direction(worst) else ""
    return (
        f"lost {percent(loss)} at {si(offered, 'pps')} offered{lower} (goal: {percent(goal.loss_ratio)});"
        f" forwarded {rate_text(forwarded, requirement, link_bps)}{margin}; {counted}{directions}{strained}"
        f"{by_pair(requirement, telling)}"
    )
