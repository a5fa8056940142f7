"""Margin: how much more than its sentence a router carries, once the sentence has passed.

For a throughput a search upwards, which begins with what the verdict has proven. For ``forwards`` nothing is sent: the
verdict's own trials measured the rate at the maximum offered load (RFC 2285 3.6.2), and no higher load can be offered.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..core.goal import Goal
from ..core.trial import Load, Measure, Trial
from ..core.verdict import Verdict, clear_loss
from .search import CapacityBounds, SearchResult, search
from .trials import CharacterisationTerms

_NAME = "margin"
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Margin:
    """What is carried, as ratios to the sentence's threshold: 1.08 is 108 %.

    ``low``: the highest that is proven, at least the sentence itself; ``high``: the lowest that is not carried, None:
    all that was asked for is. ``reason``: what ended an unfinished search. ``search``: where there was one.
    """

    low: float
    high: float | None
    finished: bool = True
    reason: str = ""
    search: SearchResult | None = None

    @property
    def seconds(self) -> float:
        """Seconds of traffic."""
        return 0.0 if self.search is None else self.search.traffic

    def unproven(self, reason: str) -> Margin:
        """Without what was found: *reason* spoils all of it. The verdict stays."""
        return Margin(1.0, None, False, reason, self.search)


def search_margin(
    measure: Measure,
    goal: Goal,
    carried: Load,
    highest: Load,
    terms: CharacterisationTerms,
) -> Margin:
    """Search upwards from *carried*, the load of each port at which the sentence passed, to *highest*.

    *goal*: as in every search (:func:`.search`), with its own loss ratio. A search that ends early still has an upper
    bound where one trial lost so much that the goal forgives it nowhere.
    """
    if highest.pps <= carried.pps * (1 + _ROUNDING):
        return Margin(1.0, None)
    ratios = {_NAME: goal.loss_ratio}
    result = search(measure, goal, carried, highest, terms, ratios, carried=carried)
    bounds = result[_NAME]
    clear = [trial.outcome.load.pps for trial in result.trials if _is_clear(trial, goal, terms.in_total)]
    uppers = [pps for pps in (None if bounds.upper is None else bounds.upper.pps, *clear) if pps is not None]
    low = 1.0 if bounds.lower is None else max(1.0, bounds.lower.pps / carried.pps)
    above = [pps / carried.pps for pps in uppers if pps > low * carried.pps]
    reason = "" if bounds.finished else _unfinished(result, bounds, carried)
    return Margin(low, min(above, default=None), bounds.finished, reason, result)


def margin_of_forwarding(verdict: Verdict) -> Margin:
    """The interval of the forwarding rate that *verdict*'s trials measured, as a ratio of the threshold.

    Its lower end may be less than 1: the verdict is about the mean. One trial has no interval.
    """
    figures, threshold = verdict.figures, verdict.requirement.threshold_pps(verdict.link_bps)
    mean = figures["forwarded_pps"]
    low, high = figures.get("forwarded_pps_low", mean), figures.get("forwarded_pps_high", mean)
    return Margin(low / threshold, high / threshold)


def _is_clear(trial: Trial, goal: Goal, in_total: bool) -> bool:
    return trial.blames_router and clear_loss(goal, trial, in_total)


def _unfinished(result: SearchResult, bounds: CapacityBounds, carried: Load) -> str:
    """Why the search ended, and what single trials hint at."""
    hints = [f"{words} {100 * load.pps / carried.pps:.4g} %" for words, load in _hints(bounds) if load is not None]
    ended = result.ended.removeprefix("inconclusive: ")
    return f"{ended} (single trials: {', '.join(hints)})" if hints else ended


def _hints(bounds: CapacityBounds) -> tuple[tuple[str, Load | None], ...]:
    return ("good up to", bounds.good), ("bad from", bounds.bad)
