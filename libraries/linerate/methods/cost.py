"""Cost: processor cycles per forwarded packet at a load, from the router's own telemetry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import fmean

from ..counts.trial import Fault, Load, Measure, Outcome, Trial
from ..sla.goals import Goal
from ..sla.requirement import Requirement
from ..sla.verdict import Evidence, Ruling, Verdict
from ..units import si
from .phrases import rate_figures, testbed_reason
from .sequential import Conditions, until_decided

ReadCycles = Callable[[float], float]
"""Cycles per packet since the last clear, from the router, told for how many seconds of that frames came."""

CYCLES = "cycles_per_packet"
"""The reading of a trial, and the figure of a verdict, that tell it."""


def cost(
    requirement: Requirement,
    load: Load,
    goal: Goal,
    measure: Measure,
    clear: Callable[[], None],
    read_cycles: ReadCycles,
    link_bps: float,
    conditions: Conditions,
) -> Verdict:
    """Judge a ``costs ≤ N cycles/packet`` sentence at *load*.

    Each trial clears the router's runtime counters, sends, and reads them; a trial is good when its cycles are within
    the threshold. Loss does not spoil it: cost is what a forwarded packet takes.
    """
    cycles: list[float] = []

    def reading(asked: Load, duration: float) -> Outcome:
        clear()
        outcome = measure(asked, duration)
        # the time before the first frame and after the last is the testbed's, not the packets'
        cycles.append(read_cycles(duration))
        return replace(outcome, readings={**outcome.readings, CYCLES: cycles[-1]})

    def weigh(trial: Trial) -> Evidence:
        # how long frames came must be known, to leave out the polling before and after
        stretched = any(problem.fault is Fault.STRETCHED for problem in trial.problems)
        if stretched or not trial.blames_router:
            return Evidence.NONE
        cheap = cycles[trial.number - 1] <= requirement.threshold.number
        # a packet costs more when there are fewer of them: dear at less than the load proves nothing, cheap does,
        # but not where the sentence names the load
        if not trial.valid and (requirement.load is not None or not cheap):
            return Evidence.NONE
        return Evidence.GOOD if cheap else Evidence.BAD

    ruling, trials = until_decided(reading, load, goal, weigh, conditions)
    scope = " each way" if requirement.directions > 1 else ""
    telling = [cycles[trial.number - 1] for trial in trials if weigh(trial) is not Evidence.NONE] or cycles
    mean = fmean(telling)
    figures = rate_figures(requirement, trials, link_bps) | {CYCLES: mean}
    reason = (
        testbed_reason(trials)
        if ruling is Ruling.INCONCLUSIVE
        else f"{mean:.4g} cycles per packet (trials from {min(telling):.4g} to {max(telling):.4g}) at"
        f" {si(figures['forwarded_pps'], 'pps')} forwarded{scope}, {si(figures['offered_pps'], 'pps')} offered"
    )
    return Verdict(requirement, goal, ruling, reason, trials, link_bps, figures)
