"""Cost: processor cycles per forwarded packet at a load, from the router's own telemetry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import fmean

from ..counts.trial import Fault, Load, Measure, Outcome, Trial
from ..sla.goals import Goal
from ..sla.requirement import Requirement
from ..sla.verdict import Evidence, Ruling, Verdict, undivided
from ..units import si
from .phrases import rate_figures, spoilt_trials_reason
from .sequential import TrialConditions, run_until_decided

ReadCycles = Callable[[float], float]
"""Cycles per packet since the counters were cleared, from the router; its argument: seconds of traffic since then."""

CYCLES_READING = "cycles_per_packet"
"""The name of the reading of a trial and of the figure of a verdict."""


def cost(
    requirement: Requirement,
    load: Load,
    goal: Goal,
    measure: Measure,
    clear: Callable[[], None],
    read_cycles: ReadCycles,
    link_bps: float,
    conditions: TrialConditions,
) -> Verdict:
    """Judge a ``costs ≤ N cycles/packet`` sentence at *load*.

    Each trial clears the router's runtime counters, sends, and reads them; it is good if its cycles are within the
    threshold. Loss does not matter: cost is that of a forwarded packet.
    """
    cycles: list[float] = []

    def reading(asked: Load, duration: float) -> Outcome:
        clear()
        outcome = measure(asked, duration)
        # polling before the first frame and after the last is no cost of a packet
        cycles.append(read_cycles(duration))
        return replace(outcome, readings={**outcome.readings, CYCLES_READING: cycles[-1]})

    def evidence_of(trial: Trial) -> Evidence:
        # the seconds of traffic must be known, to leave out the polling before and after
        stretched = any(problem.fault is Fault.STRETCHED for problem in trial.problems)
        if stretched or not trial.blames_router:
            return Evidence.NONE
        cheap = cycles[trial.number - 1] <= requirement.threshold.number
        # at a lower load a packet costs more cycles: there only a cost within the threshold proves anything, unless
        # the sentence names the load
        if not trial.valid and (requirement.load is not None or not cheap):
            return Evidence.NONE
        return Evidence.GOOD if cheap else Evidence.BAD

    ruling, trials = run_until_decided(reading, load, goal, undivided(evidence_of), conditions)
    scope = " each way" if requirement.directions > 1 else ""
    conclusive = [cycles[trial.number - 1] for trial in trials if evidence_of(trial) is not Evidence.NONE] or cycles
    mean = fmean(conclusive)
    figures = rate_figures(requirement, trials, link_bps) | {CYCLES_READING: mean}
    reason = (
        spoilt_trials_reason(trials)
        if ruling is Ruling.INCONCLUSIVE
        else f"{mean:.4g} cycles per packet (trials from {min(conclusive):.4g} to {max(conclusive):.4g}) at"
        f" {si(figures['forwarded_pps'], 'pps')} forwarded{scope}, {si(figures['offered_pps'], 'pps')} offered"
    )
    return Verdict(requirement, goal, ruling, reason, trials, link_bps, figures)
