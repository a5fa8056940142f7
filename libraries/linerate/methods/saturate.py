"""Saturate: the forwarding rate at maximum offered load (RFC 2285 3.6.2), repeated, as the sentence asks."""

from __future__ import annotations

from ..goals import Goal
from ..requirement import Requirement
from ..trial import Load, Measure
from ..units import si
from ..verdict import Ruling, Verdict, forwarded_pps, offered_pps, weigh_forwarding
from .reasons import bench_reason, forwarded_by_way, rate_figures, rate_text
from .sequential import Conditions, until_decided


def saturate(
    requirement: Requirement, load: Load, goal: Goal, measure: Measure, link_bps: float, conditions: Conditions
) -> Verdict:
    """Judge a ``forwards`` sentence: *load* (frames/s into each port) is the most that the generator is asked for.

    What a buffer holds when a trial ends comes back too, and counts: at low thresholds trials are as long as the goal's
    ``buffer_frames`` need (:meth:`~linerate.goals.Goal.at`).
    """
    least = requirement.threshold_load(link_bps).pps
    goal = goal.at(least)
    weigh = weigh_forwarding(requirement, link_bps)
    ruling, trials = until_decided(measure, load, goal, weigh, conditions)
    telling = [trial for trial in trials if trial.blames_router] or list(trials)
    rates = [forwarded_pps(trial, requirement) for trial in telling]
    offered = [offered_pps(trial, requirement) for trial in telling]
    figures = rate_figures(requirement, trials, link_bps) | {
        "forwarded_pps_min": min(rates),
        "forwarded_pps_max": max(rates),
    }
    threshold = requirement.threshold_pps(link_bps)
    if ruling is Ruling.INCONCLUSIVE:
        reason = bench_reason(trials)
        if max(offered) < threshold:
            reason = (
                f"the generator offered {si(max(offered), 'pps')} (forwarded: {si(max(rates), 'pps')}), less than the"
                f" {si(threshold, 'pps')} that are to come back; use a faster generator"
            )
    else:
        mean = figures["forwarded_pps"]
        margin = 100 * (mean / threshold - 1)
        spread = f"trials from {si(min(rates), 'pps')} to {si(max(rates), 'pps')}"
        reason = (
            f"forwarded {rate_text(mean, requirement, link_bps)} at {si(sum(offered) / len(offered), 'pps')} offered"
            f" ({margin:+.2f} % against the threshold; {spread})"
        )
        if ruling is Ruling.PASS and goal.unseen(least):
            reason += f"; {goal.unseen(least)}"
        if ruling is Ruling.FAIL:
            worst = min(telling, key=lambda trial: forwarded_pps(trial, requirement))
            reason += f"; its worst trial {forwarded_by_way(worst)}" if forwarded_by_way(worst) else ""
    return Verdict(requirement, goal, ruling, reason, trials, link_bps, figures)
