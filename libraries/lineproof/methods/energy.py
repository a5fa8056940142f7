"""Energy: joules per forwarded packet at a load, from the figures of a power meter while frames flow.

Energy per packet is power / forwarding rate of all directions together, so 19 W and 15.1 Mpps are 1.26 µJ. It grows as
the load falls, because a router draws most of its power idle: compare energies at equal loads, or those above idle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from ..core.goals import Goal
from ..core.requirement import Requirement, Unit
from ..core.trial import Load, Measure, Trial
from ..core.verdict import Evidence, Ruling, Verdict, undivided
from ..units import si
from .phrases import rate_figures, set_aside_text, spoilt_trials_reason
from .sequential import TrialConditions, contradicts, run_until_decided

POWER, IDLE_POWER = "power_watts", "idle_power_watts"
UNCERTAINTY = "power_uncertainty_watts"
ABOVE_IDLE_UNCERTAINTY = "power_above_idle_uncertainty_watts"
"""Readings of a trial: the mean power while frames flowed, that before the sentence's first trial, and by how much both
may be wrong by the meter's own statement."""


@dataclass(frozen=True, slots=True)
class Energy:
    """µJ per forwarded packet of one trial, and the ``low`` and ``high`` ends of what the meter leaves open."""

    value: float
    low: float
    high: float


def energy_of(trial: Trial, unit: Unit) -> Energy | None:
    """The energy that *unit* asks for; None where the trial has no such figure, or forwarded nothing."""
    known, forwarded = trial.outcome.readings, trial.forwarded
    certain = forwarded - sum(direction.foreign for direction in trial.outcome.directions)
    if certain <= 0 or POWER not in known:
        return None
    watts, uncertainty = known[POWER], known.get(UNCERTAINTY, 0.0)
    if unit is Unit.MICROJOULES_ABOVE_IDLE:
        if IDLE_POWER not in known:
            return None
        watts -= known[IDLE_POWER]
        uncertainty = known.get(ABOVE_IDLE_UNCERTAINTY, 0.0)
    if not math.isfinite(watts) or not 0 <= uncertainty < math.inf:
        return None
    return Energy(
        1e6 * watts * trial.least_seconds / forwarded,
        1e6 * max(0.0, watts - uncertainty) * trial.least_seconds / forwarded,
        1e6 * (watts + uncertainty) * trial.seconds / certain,
    )


def energy(
    requirement: Requirement,
    load: Load,
    goal: Goal,
    measure: Measure,
    meter: str,
    link_bps: float,
    conditions: TrialConditions,
) -> Verdict:
    """Judge a ``costs ≤ N µJ/packet`` sentence at *load*; *measure* adds the meter's figures to each trial's readings.

    A trial is good if the energy per packet is within the threshold even where the meter reads as much too little as
    it may, and bad if it is beyond it even where it reads too much; between the two it proves nothing. *meter*: what
    it is, for the reason.
    """
    threshold, unit = requirement.threshold.number, requirement.threshold.unit

    def shown(trial: Trial) -> Energy | None:
        """The energy of a trial that says something of the router, even if the meter leaves open what."""
        found = energy_of(trial, unit)
        spoilt = any(item.fault.excuses_router and item.frames is None for item in trial.problems)
        if found is None or spoilt or _shows_no_load(trial, unit):
            return None
        # at a lower load a packet takes more energy: there only one within the threshold proves anything
        lower = any(not item.fault.excuses_router for item in trial.problems)
        return None if lower and (requirement.load is not None or found.high > threshold) else found

    def evidence_of(trial: Trial) -> Evidence:
        found = shown(trial)
        if found is None or found.low <= threshold < found.high:
            return Evidence.NONE
        return Evidence.GOOD if found.high <= threshold else Evidence.BAD

    def mean_of(trials: Sequence[Trial]) -> Energy | None:
        found = [item for trial in trials if (item := energy_of(trial, unit)) is not None]
        if not found:
            return None
        return Energy(*(fmean(getattr(item, name) for item in found) for name in ("value", "low", "high")))

    def counted(trials: Sequence[Trial]) -> list[Trial]:
        return [trial for trial in trials if shown(trial) is not None]

    def keeps(trials: Sequence[Trial]) -> bool:
        whole = mean_of(counted(trials))
        return whole is None or whole.high <= threshold

    rule = undivided(evidence_of)
    found = run_until_decided(measure, load, goal, rule, conditions, keeps=keeps)
    ruling, trials = found.ruling, found.trials
    usable = counted(trials) or list(trials)
    figures = rate_figures(requirement, usable, link_bps) | _figures(usable)
    whole = mean_of(usable)
    if whole is None:
        return Verdict(requirement, goal, Ruling.INCONCLUSIVE, spoilt_trials_reason(trials), trials, link_bps, figures)
    contradiction = contradicts(ruling, goal, trials, rule)
    if contradiction and whole.low <= threshold:
        ruling = Ruling.INCONCLUSIVE
    if ruling is Ruling.INCONCLUSIVE:
        reason = spoilt_trials_reason(trials)
        if any(_shows_no_load(trial, unit) for trial in usable):
            reason = (
                f"{_power_text(figures)}: the meter shows no more under load than idle, within its uncertainty; does it"
                f" measure this router, and anew? {meter}"
            )
        elif whole.low <= threshold < whole.high:
            reason = (
                f"{_text(whole, unit)}: the meter's uncertainty leaves open whether that is at most {threshold:g};"
                f" use a better meter, or another threshold; {meter}"
            )
        return Verdict(requirement, goal, ruling, reason, trials, link_bps, figures)
    rate = fmean(trial.forwarded / trial.seconds for trial in usable)
    reason = f"{_text(whole, unit)}: {_power_text(figures)} while {si(rate, 'pps')} were forwarded in total; {meter}"
    if ruling is Ruling.FAIL and whole.low <= threshold:
        beyond = sum(evidence_of(trial) is Evidence.BAD for trial in usable)
        reason += f"; {beyond} of {len(usable)} trials are certainly beyond {threshold:g}"
    if contradiction:
        reason += "; the goal forgives bad trials, but not a mean beyond the threshold"
    if ruling is Ruling.PASS:
        reason += set_aside_text(trials, rule)
    return Verdict(requirement, goal, ruling, reason, trials, link_bps, figures)


def _shows_no_load(trial: Trial, unit: Unit) -> bool:
    """Return whether nothing above idle is certain: the meter may stand still, or measure another device."""
    found = energy_of(trial, unit)
    return unit is Unit.MICROJOULES_ABOVE_IDLE and found is not None and found.low <= 0


def _figures(trials: Sequence[Trial]) -> dict[str, float]:
    """Mean powers in W, and energies in µJ per packet."""
    found: dict[str, float] = {}
    for name in (POWER, IDLE_POWER, UNCERTAINTY):
        if known := [trial.outcome.readings[name] for trial in trials if name in trial.outcome.readings]:
            found[name] = fmean(known)
    for unit, name in ((Unit.MICROJOULES, "energy_uj"), (Unit.MICROJOULES_ABOVE_IDLE, "energy_above_idle_uj")):
        if energies := [item for trial in trials if (item := energy_of(trial, unit)) is not None]:
            found |= {f"{name}{end}": fmean(getattr(item, key) for item in energies) for end, key in _ENDS}
    return found


_ENDS = (("", "value"), ("_low", "low"), ("_high", "high"))


def _text(found: Energy, unit: Unit) -> str:
    words = f"{found.value:.4g} {unit.value}"
    return words if found.low == found.high else f"{words} ({found.low:.4g} to {found.high:.4g})"


def _power_text(figures: dict[str, float]) -> str:
    words = f"{figures[POWER]:.4g} W"
    if figures.get(UNCERTAINTY):
        words += f" ± {figures[UNCERTAINTY]:.2g} W"
    return words + (f" ({figures[IDLE_POWER]:.4g} W idle)" if IDLE_POWER in figures else "")
