"""What a sentence demands, as numbers of its record, and what a trial measured of it in the same unit."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..core.latency import Statistic
from ..core.requirement import ENERGY_UNITS, RATE_UNITS, Quantity, Requirement, Scope, Unit, Value
from ..core.trial import Trial
from ..methods.cost import READING_OF
from ..methods.energy import energy_of
from ..units import Rate


@dataclass(frozen=True, slots=True)
class Demand:
    """``quantity`` of ``traffic`` must be ≥ (``at_least``) or ≤ ``number`` ``unit``, without SI prefix: 5e6 pps.

    ``quantity``: ``throughput``, or the sentence's word, as ``forwards``. ``pps``: a rate's threshold in frames/s, of
    one direction, or of all together where ``scope`` is ``in total``. ``load_pps``: the load of each sending port that
    the sentence names with ``at``. ``statistic``: of latency and packet delay variation, as ``p99``. ``window_s``: the
    seconds of ``for``.
    """

    quantity: str
    traffic: str
    at_least: bool
    number: float
    unit: str
    scope: str = ""
    directions: int = 1
    pps: float | None = None
    load_pps: float | None = None
    statistic: str | None = None
    window_s: float | None = None

    @classmethod
    def of(cls, requirement: Requirement, link_bps: float) -> Demand:
        """The demand of *requirement* on ports of *link_bps* (L1 bit/s)."""
        threshold, named = requirement.threshold, requirement.named_load(link_bps)
        return cls(
            quantity=requirement.quantity.value,
            traffic=requirement.traffic,
            at_least=requirement.at_least,
            number=threshold.number,
            unit=threshold.unit.value,
            scope=requirement.scope.value,
            directions=requirement.directions,
            pps=requirement.threshold_pps(link_bps) if threshold.unit in RATE_UNITS else None,
            load_pps=None if named is None else named.pps,
            statistic=None if requirement.statistic is None else requirement.statistic.name,
            window_s=requirement.duration_sum,
        )

    @property
    def relation(self) -> str:
        """``≥`` or ``≤``."""
        return "≥" if self.at_least else "≤"

    @property
    def in_total(self) -> bool:
        """Whether the threshold is of all directions together."""
        return self.scope == Scope.IN_TOTAL.value

    def text(self, number: float | None = None) -> str:
        """*number* (None: the threshold) with its unit, as ``5 Mpps``."""
        return str(Value(self.number if number is None else float(f"{number:.4g}"), Unit(self.unit)))

    def __str__(self) -> str:
        statistic = f"{self.statistic} " if self.statistic else ""
        return f"{statistic}{self.relation} {self.text()}{' ' + self.scope if self.scope else ''}"

    def measured(self, trial: Trial, mean_size: float, link_bps: float) -> float | None:
        """What *trial* says of the quantity, in ``unit``; None: nothing. Of several directions the worst one's.

        Of a throughput: the forwarding rate. Of bounds (recovery, packet delay variation) the one that a router must
        keep, the upper one; infinite where it is not known. ``mean_size`` in bytes with FCS.
        """
        found = self._figure(trial, mean_size, link_bps)
        return None if found is None or math.isnan(found) else found

    def _figure(self, trial: Trial, mean_size: float, link_bps: float) -> float | None:
        quantity, known = Quantity(self.quantity), trial.outcome.readings
        if quantity in (Quantity.THROUGHPUT, Quantity.FORWARDING_RATE):
            return self._in_unit(self._forwarded(trial), mean_size, link_bps)
        if quantity is Quantity.LOSS:
            return 100 * trial.loss_ratio(self.in_total)
        if quantity in (Quantity.COST, Quantity.GATHERING):
            unit = Unit(self.unit)
            if unit not in ENERGY_UNITS:
                return known.get(READING_OF[unit])
            return None if (energy := energy_of(trial, unit)) is None else energy.value
        if quantity is Quantity.RECOVERY:
            seconds = known.get("recovery_high_s", math.inf if "recovery_low_s" in known else None)
            return seconds if seconds is None or self.unit == Unit.SECONDS.value else 1e6 * seconds
        return self._time(trial, quantity is Quantity.DELAY_VARIATION)

    def _forwarded(self, trial: Trial) -> float:
        rates = [row.forwarded / trial.seconds for row in trial.outcome.directions if trial.seconds]
        return math.fsum(rates) if self.in_total else min(rates, default=math.nan)

    def _in_unit(self, pps: float, mean_size: float, link_bps: float) -> float:
        unit = Unit(self.unit)
        if unit not in (Unit.PERCENT_LINE, Unit.BPS_L1, Unit.BPS_L2):
            return pps
        rate = Rate(pps, mean_size, link_bps)
        return {Unit.PERCENT_LINE: rate.percent, Unit.BPS_L1: rate.l1_bps, Unit.BPS_L2: rate.l2_bps}[unit]

    def _time(self, trial: Trial, variation: bool) -> float | None:
        """The upper bound of the statistic in µs; of the mean latency what the generator says, which is exact."""
        if not variation and self.statistic == "mean":
            return max((count.mean for count in trial.outcome.latency), default=None)
        statistic = Statistic.read(self.statistic or "max", variation)
        spreads = [count.spread(trial.seconds) for count in trial.outcome.latency]
        found = [bounds.high for spread in spreads if spread and (bounds := spread.bounds(statistic))]
        if len(found) == len(spreads):
            return max(found, default=None)
        return None
