"""Verify: is the load of the sentence carried within the goal? A known threshold needs no search."""

from __future__ import annotations

from ..goals import Goal
from ..requirement import Requirement
from ..trial import Load, Measure, Trial
from ..units import si
from ..verdict import Evidence, Ruling, Verdict, forwarded_pps, offered_pps, tally, weigh_loss
from .reasons import bench_reason, percent, rate_figures, rate_text
from .sequential import Conditions, until_decided


def verify(
    requirement: Requirement, load: Load, goal: Goal, measure: Measure, link_bps: float, conditions: Conditions
) -> Verdict:
    """Judge a throughput or a loss sentence at *load* (frames/s into each sending port) under *goal*."""
    weigh = weigh_loss(goal, requirement.in_total)
    ruling, trials = until_decided(measure, load, goal, weigh, conditions)
    worst = max(trials, key=lambda trial: trial.loss_ratio(requirement.in_total))
    offered, lost = sum(trial.offered for trial in trials), sum(trial.lost for trial in trials)
    figures = rate_figures(requirement, trials, link_bps) | {
        "offered_frames": float(offered),
        "lost_frames": float(lost),
        "worst_loss_ratio": worst.loss_ratio(requirement.in_total),
    }
    if ruling is Ruling.INCONCLUSIVE:
        reason = bench_reason(trials)
    elif ruling is Ruling.PASS:
        good = [trial for trial in trials if weigh(trial) is Evidence.GOOD]
        least = min(offered_pps(trial, requirement) for trial in good)
        reason = f"lost {lost} of {offered} frames at {rate_text(least, requirement, link_bps)} offered"
    else:
        reason = _failure(requirement, goal, trials, worst, link_bps)
    return Verdict(requirement, goal, ruling, reason, trials, link_bps, figures)


def _failure(requirement: Requirement, goal: Goal, trials: tuple[Trial, ...], worst: Trial, link_bps: float) -> str:
    loss = worst.loss_ratio(requirement.in_total)
    offered, forwarded = offered_pps(worst, requirement), forwarded_pps(worst, requirement)
    found = tally(trials, weigh_loss(goal, requirement.in_total))
    lower = "" if worst.valid else " (less than was asked for, which already proves it)"
    return (
        f"lost {percent(loss)} at {si(offered, 'pps')} offered{lower} (goal: {percent(goal.loss_ratio)});"
        f" forwarded {rate_text(forwarded, requirement, link_bps)}; {found.bad:g} s of trials lost frames,"
        f" {found.good:g} s did not"
    )
