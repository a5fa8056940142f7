"""Whether each goal keeps its promises, for 1, 2, 4 and 8 directions: by its plan exactly, and by the code on routers.

The share of routers that pass by the plan alone can be computed. The simulated routers check the code that judges, and
what it asks for besides the plan. In a router of several directions sound ones are all alike; only one is too slow or
loses more bursts, and the others are FAST.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lineproof.core.goal import Goal, Promise
from lineproof.traffic.catalogue import Catalogue

from .decision_rules import goal_rule
from .plan import bad_share, bounds_of, noise_of, shared_pass_share
from .router_population import FAST, NOISE, RouterKind, RouterPopulation, count_passes, table
from .shares import Claim, PassShare, bound_text

DIRECTIONS = (1, 2, 4, 8)

FEWER = 2
"""Several directions take longer to simulate, and are tried on one router in so many."""

_NOTHING = 1e-5

CERTAIN = 0.9999
"""Confidence with which the code and the plan differ: of 100 comparisons one in 100 studies does so by chance."""


@dataclass(frozen=True, slots=True)
class PromiseCheck:
    """Routers of so many *directions* under *goal*: the share that passes by the plan, 0..1, and by the code."""

    goal: str
    promise: Promise
    directions: int
    by_plan: float
    found: PassShare

    @property
    def kept(self) -> bool:
        """By the plan exactly, and not broken by the code beyond what chance explains."""
        (low, high), promise = self.found.bounds, self.promise
        if promise.at_most is not None:
            return self.by_plan <= promise.at_most and low <= promise.at_most
        return promise.at_least is None or (self.by_plan >= promise.at_least and high >= promise.at_least)

    @property
    def shown(self) -> bool:
        """By the whole interval of what the code passes."""
        (low, high), promise = self.found.bounds, self.promise
        if promise.at_most is not None:
            return high <= promise.at_most
        return promise.at_least is None or low >= promise.at_least

    @property
    def agrees(self) -> bool:
        """Whether the code passes what the plan says; fewer where frames lost in all trials make it stricter."""
        low, high = self.found.bounds_at(CERTAIN)
        return self.by_plan >= low and (self.by_plan <= high or self.promise.at_most is not None)


def check_promises(catalogue: Catalogue, seed: int, goal: Goal, routers: int) -> list[PromiseCheck]:
    """Every promise of *goal* on so many *routers* (FEWER of several directions) for each number of DIRECTIONS."""
    found = []
    for directions in DIRECTIONS:
        promises = goal.promises_for(directions)
        bounds = bounds_of(promises, goal.final_trial_duration, directions)
        others = bad_share(FAST, NOISE, goal.final_trial_duration)
        for promise, bound in zip(promises, bounds, strict=True):
            alike = bound.at_least and promise.burst_every is None
            kind = RouterKind(noise_of(promise), directions, sound=None if alike else FAST)
            bads = bound.bads if bound.at_least else (bound.bad, *(others,) * (directions - 1))
            number = routers if directions == 1 else routers // FEWER
            population = RouterPopulation(catalogue, seed, kind=kind)
            passed = count_passes(population, goal_rule(goal), 1 + promise.capacity, number)
            share = shared_pass_share(goal.plan_for(directions), bads)
            found.append(PromiseCheck(goal.goal, promise, directions, share, PassShare(passed, number)))
    return found


def words_of(promise: Promise) -> str:
    """The routers that *promise* is about."""
    words = f"{100 * promise.capacity:+g} %" if promise.capacity else "at the SLA"
    return words if promise.burst_every is None else f"{words}, a burst per {promise.burst_every:g} s"


def bound_of(promise: Promise) -> str:
    """Its bound."""
    if promise.at_most is not None:
        return f"≤ {100 * promise.at_most:g} %"
    return f"≥ {100 * (promise.at_least or 0):g} %"


def promises_table(found: Sequence[PromiseCheck], markdown: bool) -> str:
    """A row for each promise; by number of directions what the code passed, and what passes by the plan."""
    rows = []
    for goal, promise in dict.fromkeys((item.goal, item.promise) for item in found):
        checks = [item for item in found if (item.goal, item.promise) == (goal, promise)]
        result = bound_text(all(item.kept for item in checks), all(item.shown for item in checks), checks[0].found.of)
        exact = ", ".join(f"{100 * item.by_plan:.4g}" if item.by_plan > _NOTHING else "0" for item in checks)
        intervals = {item.directions: item.found.interval for item in checks}
        cells = [intervals.get(number, "–") for number in DIRECTIONS]
        rows.append([f"`{goal}` {words_of(promise)}", bound_of(promise), *cells, f"{exact} %", result])
    head = ["routers", "promise", *(f"{number} direction{'s' * (number > 1)}" for number in DIRECTIONS)]
    return table([*head, "by the plan", ""], rows, markdown)


def promise_claims(found: Sequence[PromiseCheck]) -> list[Claim]:
    """That each goal keeps its promises, and that the code does what the plan says."""
    claims = []
    for goal in dict.fromkeys(item.goal for item in found):
        checks = [item for item in found if item.goal == goal]
        broken = [f"{words_of(item.promise)} with {item.directions}" for item in checks if not item.kept]
        words = f"{goal} keeps its promises" + (f" (broken: {'; '.join(broken)})" if broken else "")
        claims.append(Claim(words, not broken, all(item.shown for item in checks)))
        others = [f"{words_of(item.promise)} with {item.directions}" for item in checks if not item.agrees]
        words = f"{goal} passes what its plan says" + (f" (not so: {'; '.join(others)})" if others else "")
        claims.append(Claim(words, not others, not others))
    return claims
