"""``costs ≤ 2 µJ/packet``: power divided by the rate of the forwarded frames, all directions together.

So 19 W and 15.1 Mpps are 1.26 µJ. It grows as the load falls, because a router draws most of its power idle: compare
energies at equal loads, or those above idle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import ClassVar

from ...core.bounds import UNKNOWN, Bounds
from ...core.doubts import OF_FRAMES
from ...core.phrases import between, mean_rate, median_words
from ...core.quantity import Instruments, Promise, Quantity, Reason
from ...core.rule import Ruling
from ...core.trial import ABOVE_IDLE_UNCERTAINTY, IDLE_POWER, POWER, UNCERTAINTY, Measure, Trial
from ...core.units import Unit
from ...units import si


class Energy(Quantity):
    """The energy per forwarded packet in µJ, with or without what the router draws idle."""

    name = "energy"
    is_mean = True
    word = "costs"
    units: ClassVar[tuple[Unit, ...]] = (Unit.MICROJOULES, Unit.MICROJOULES_ABOVE_IDLE)
    needs = frozenset({"power"})
    has_directions = False
    doubts = OF_FRAMES
    title = "Energy of a packet"
    example = "costs ≤ 2 µJ/packet"

    def figures(self, promise: Promise, trials: Sequence[Trial], perfect: int = 0) -> tuple[Bounds, ...]:
        """Return the energy per packet in µJ; of several trials their median."""
        return (promise.limit.median([_energy(promise, trial) for trial in trials], perfect),)

    def needs_meter(self, unit: Unit) -> bool:
        """Return whether the power that the router draws idle must be known, which none declares."""
        return unit is Unit.MICROJOULES_ABOVE_IDLE

    def measure(self, instruments: Instruments, promise: Promise) -> Measure:
        """Return a trial whose readings have the power that was drawn meanwhile."""
        return instruments.powered()

    def reason(self, promise: Promise, ruling: Ruling, trials: Sequence[Trial]) -> Reason:
        """Return the energy per packet, the power and the rate."""
        figures = self.named_figures(promise, trials)
        if POWER not in figures:
            return Reason("no power was measured")
        (whole,) = promise.figures(trials)
        power = f"{figures[POWER]:.4g} W"
        power += f" ± {figures[UNCERTAINTY]:.2g} W" if figures.get(UNCERTAINTY) else ""
        power += f" ({figures[IDLE_POWER]:.4g} W idle)" if IDLE_POWER in figures else ""
        summary = f"{between(whole, promise.digits)} {promise.unit.value}{median_words(trials)} at"
        summary = "the energy of a packet is not known:" if whole == UNKNOWN else summary
        rate = si(mean_rate(trials, replace(promise, in_total=True), "forwarded"), "pps")
        still = "the meter shows no more under load than idle, within its uncertainty; does it measure this router?"
        details = (still,) if any(_stands_still(trial) for trial in trials) else ()
        return Reason(f"{summary} {rate} forwarded, {power}", details)

    def named_figures(self, promise: Promise, trials: Sequence[Trial]) -> Mapping[str, float]:
        """Return mean powers in W, and the bounds of the energy in µJ."""
        figures = {}
        for name in (POWER, IDLE_POWER, UNCERTAINTY):
            if known := [trial.outcome.readings[name] for trial in trials if name in trial.outcome.readings]:
                figures[name] = fmean(known)
        above = "_above_idle" if promise.unit is Unit.MICROJOULES_ABOVE_IDLE else ""
        (whole,) = promise.figures(trials)
        ends = {f"energy{above}_uj_low": whole.low, f"energy{above}_uj_high": whole.high}
        return {**figures, **{name: value for name, value in ends.items() if math.isfinite(value)}}

    def plain(self, promise: Promise, figure: str, load: str) -> str:
        """Return the energy that a frame takes."""
        return f"To deliver a frame costs the router {figure}, {load}."


def _energy(promise: Promise, trial: Trial) -> Bounds:
    """Return the energy per packet of *trial* in µJ."""
    watts = _watts(trial, promise.unit)
    if watts is None:
        return UNKNOWN
    least, most = watts.low * trial.seconds.low, watts.high * trial.seconds.high
    parts = [trial.forwarded_frames(row) for row in trial.outcome.directions]
    fewest, greatest = sum(part.low for part in parts), sum(part.high for part in parts)
    low = 1e6 * least / greatest if greatest else (math.inf if least else 0.0)
    high = 1e6 * most / fewest if fewest else math.inf
    if promise.is_below_load(trial):
        # at the load itself a packet takes less, if not what it takes above idle; a named load is the one that counts
        is_open = promise.names_load or promise.unit is Unit.MICROJOULES_ABOVE_IDLE
        low, high = 0.0, math.inf if is_open else high
    elif promise.is_above_load(trial):
        high = math.inf
    return Bounds(low, max(low, high))


def _watts(trial: Trial, unit: Unit) -> Bounds | None:
    """Return the power that *unit* asks for; None where it is not known.

    A meter that shows no more under load than idle may stand still: there is no upper end.
    """
    known = trial.outcome.readings
    watts, uncertainty = known.get(POWER, math.nan), known.get(UNCERTAINTY, 0.0)
    idle = known.get(IDLE_POWER)
    if unit is Unit.MICROJOULES_ABOVE_IDLE:
        watts, uncertainty = watts - (math.nan if idle is None else idle), known.get(ABOVE_IDLE_UNCERTAINTY, 0.0)
    if not math.isfinite(watts) or known[POWER] <= 0 or not 0 <= uncertainty < math.inf:
        return None
    low = max(0.0, watts - uncertainty)
    return Bounds(low, math.inf if _stands_still(trial) else max(low, watts + uncertainty))


def _stands_still(trial: Trial) -> bool:
    """Return whether the meter shows no more under load than idle."""
    known = trial.outcome.readings
    if POWER not in known or IDLE_POWER not in known:
        return False
    return known[POWER] <= known[IDLE_POWER] + known.get(ABOVE_IDLE_UNCERTAINTY, 0.0)


ENERGY = Energy()
