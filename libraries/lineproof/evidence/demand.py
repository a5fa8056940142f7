"""What a sentence demands, as numbers of its record: enough of them to weigh its trials again."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.bounds import UNKNOWN, Limit
from ..core.doubts import OwnPart
from ..core.goal import Goal
from ..core.quantity import Promise, Quantity, Requirement, Scope
from ..core.registry import quantity_named
from ..core.trial import Trial
from ..core.units import RATE_UNITS, Unit, Value
from .rates import is_set_aside


@dataclass(frozen=True, slots=True)
class Demand:
    """``quantity`` of ``traffic`` must be ≥ (``at_least``) or ≤ ``number`` ``unit``, without SI prefix: 5e6 pps.

    ``quantity``: its name, as ``throughput``. ``pps``: a rate's threshold in frames/s, of one direction, or of all
    together where ``scope`` is ``in total``. ``load_pps``: the load of each sending port that the sentence names with
    ``at``; ``judged_pps``: the one that it was judged at. ``limit``: what a trial's figure is compared with, in the
    quantity's own unit. ``statistic``: of latency and packet delay variation, as ``p99``. ``window_s``: the seconds of
    ``for``; ``soak``: so many trials, 0 without it. ``pairs`` of ports that send.
    """

    quantity: str
    traffic: str
    at_least: bool
    number: float
    unit: str
    limit: float
    judged_pps: float
    scope: str = ""
    directions: int = 1
    pairs: int = 1
    pps: float | None = None
    load_pps: float | None = None
    statistic: str | None = None
    window_s: float | None = None
    soak: int = 0

    @classmethod
    def of(cls, requirement: Requirement, promise: Promise) -> Demand:
        """Return the demand of *requirement*, whose *promise* was judged."""
        threshold, named = requirement.threshold, requirement.named_load(promise.link_bps)
        return cls(
            quantity=requirement.quantity.name,
            traffic=requirement.traffic,
            at_least=requirement.at_least,
            number=threshold.number,
            unit=threshold.unit.value,
            limit=promise.limit.value,
            judged_pps=promise.load_pps,
            scope=requirement.scope.value,
            directions=requirement.directions,
            pairs=requirement.pairs,
            pps=requirement.threshold_pps(promise.link_bps) if threshold.unit in RATE_UNITS else None,
            load_pps=None if named is None else named.pps,
            statistic=None if requirement.statistic is None else requirement.statistic.name,
            window_s=requirement.duration_sum,
            soak=promise.soak,
        )

    def promise(self, goal: Goal, own: OwnPart, mean_size: float, link_bps: float) -> Promise:
        """Return the promise of then. Raises ConfigError where its quantity is not installed."""
        found = self.measures
        return Promise(
            quantity=found,
            # a throughput is at least its threshold, and loses at most the limit
            limit=Limit(self.limit, self.at_least and not found.threshold_is_load),
            goal=goal,
            load_pps=self.judged_pps,
            unit=Unit(self.unit),
            in_total=self.in_total,
            statistic=None if self.statistic is None else found.statistic(self.statistic),
            names_load=self.load_pps is not None,
            soak=self.soak,
            own=own,
            mean_size=mean_size,
            link_bps=link_bps,
            pairs=self.pairs,
        )

    @property
    def measures(self) -> Quantity:
        """The quantity. Raises ConfigError if it is not installed."""
        return quantity_named(self.quantity)

    @property
    def relation(self) -> str:
        """``≥`` or ``≤``."""
        return "≥" if self.at_least else "≤"

    @property
    def in_total(self) -> bool:
        """Return whether the threshold is of all directions together."""
        return self.scope == Scope.IN_TOTAL.value

    def text(self, number: float | None = None) -> str:
        """*number* (None: the threshold) with its unit, as ``5 Mpps``."""
        return str(Value(self.number if number is None else float(f"{number:.4g}"), Unit(self.unit)))

    def __str__(self) -> str:
        statistic = f"{self.statistic} " if self.statistic else ""
        return f"{statistic}{self.relation} {self.text()}{' ' + self.scope if self.scope else ''}"


def measured(promise: Promise, trial: Trial) -> float | None:
    """Return what *trial* measured, as people read it: the end that is worse for the router; None: nothing is known.

    Infinite where it has no end.
    """
    if not trial.outcome.directions or is_set_aside(trial):
        return None
    bounds = promise.quantity.shown(promise, [trial])
    if bounds == UNKNOWN:
        return None
    return bounds.low if promise.quantity.at_least else bounds.high
