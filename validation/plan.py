"""Computes a goal's sequential plan from its promises, by dynamic programming.

A trial is bad with a probability that follows from the router's capacity and noise. Working backwards from the longest
sequence of trials, each state (good trials, bad trials) gets the cheapest of PASS, FAIL and one more trial; wrong
verdicts have a price. The prices are raised and lowered until every promise is kept, and the cheapest such plan wins.
The cost counted is the mean number of trials over the routers of :mod:`.cost`.

With several directions each is judged by itself, and a sound router must not fail in any of them, so each of them may
fail the less often.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

from lineproof.commands.ending import finish
from lineproof.core.goal import Goal, Promise, read_goal
from lineproof.core.sequential_plan import SequentialPlan
from lineproof.project import Project

from .noisy_router import RouterNoise
from .router_population import FAST, NOISE, RATE, table

DIRECTIONS = (1, 2, 4, 8, 16)
HORIZON = 1.5
"""The most trials of a plan last so many times the duration sum of the goal."""

PRICE_STEPS = 150
CAPACITIES = tuple(-0.05 + 0.15 * (step + 0.5) / 40 for step in range(40))
"""Capacities above the SLA, as ratios, over which the number of trials is averaged; below them a clear fail decides."""


def bad_share(capacity: float, noise: RouterNoise, duration: float) -> float:
    """How probable a bad trial of *duration* s is, 0..1, for a router of *capacity* above the SLA (ratio)."""
    hidden = noise.buffer / (RATE * duration)
    too_slow = NormalDist().cdf(((1 - hidden) / (1 + capacity) - 1) / noise.capacity)
    return 1 - (1 - too_slow) * math.exp(-duration / noise.every)


@dataclass(frozen=True, slots=True)
class Bound:
    """Routers pass with at least, or at most, ``share``. ``bads``: how probable a bad trial is, for each direction."""

    bads: tuple[float, ...]
    share: float
    at_least: bool

    @property
    def bad(self) -> float:
        """Of the direction that the promise is about."""
        return self.bads[0]

    @property
    def most_wrong(self) -> float:
        """The most wrong verdicts, 0..1."""
        return 1 - self.share if self.at_least else self.share

    def wrong(self, plan: SequentialPlan) -> float:
        """The share of wrong verdicts with *plan*, 0..1."""
        passed = shared_pass_share(plan, self.bads)
        return 1 - passed if self.at_least else passed


def noise_of(promise: Promise) -> RouterNoise:
    """The noise of the routers that *promise* is about."""
    return NOISE if promise.burst_every is None else RouterNoise(every=promise.burst_every)


def bounds_of(promises: Iterable[Promise], duration: float, directions: int) -> list[Bound]:
    """What a plan must keep with so many *directions*.

    Sound ones are all alike. Only one direction is too slow, or loses more bursts than usual. Where such a router must
    not pass, the others are perfect, so that it is this direction that fails; otherwise they are FAST.
    """
    found = []
    for promise in promises:
        bad = bad_share(promise.capacity, noise_of(promise), duration)
        sound = bad if promise.burst_every is None else bad_share(FAST, NOISE, duration)
        if promise.at_most is not None:
            found.append(Bound((bad,), promise.at_most, at_least=False))
        elif promise.at_least is not None:
            found.append(Bound((bad, *(sound,) * (directions - 1)), promise.at_least, at_least=True))
    return found


def pass_share(plan: SequentialPlan, bad: float) -> tuple[float, float]:
    """The share of routers that pass, 0..1, and the mean number of trials, if each is bad with probability *bad*."""
    states, passed, trials = {(0, 0): 1.0}, 0.0, 0.0
    while states:
        following: dict[tuple[int, int], float] = {}
        for (good, spoilt), share in states.items():
            if plan.passes(good, spoilt):
                passed += share
            elif not plan.fails(good, spoilt):
                trials += share
                for state, chance in (((good + 1, spoilt), 1 - bad), ((good, spoilt + 1), bad)):
                    following[state] = following.get(state, 0.0) + share * chance
        states = following
    return passed, trials


def shared_pass_share(plan: SequentialPlan, bads: Sequence[float]) -> float:
    """The share of routers that pass, 0..1, if the trials of their directions are bad with probabilities *bads*.

    A PASS needs all directions at once: one that could pass goes on meanwhile, and may fail yet. With more trials a
    direction may have more bad ones, so all can pass for the first time only at the trials where this number grows.
    For the first of those at which they do, directions are not independent; but for any set of those at which they do,
    whatever happens at the others, they are (inclusion and exclusion).
    """
    numbers = Counter(bads)
    allowed = {good + level: level for level, good in enumerate(plan.good_for_pass)}
    stops = sorted(allowed.items())

    def from_stop(place: int, before: int, shares: Mapping[float, Sequence[float]], sign: int) -> float:
        if place == len(stops):
            return 0.0
        trial, most = stops[place]
        now = {bad: _advance(plan, bad, share, before, trial) for bad, share in shares.items()}
        passing = {bad: share[: most + 1] for bad, share in now.items()}
        passed = math.prod(math.fsum(passing[bad]) ** number for bad, number in numbers.items())
        later = from_stop(place + 1, trial, now, sign) + from_stop(place + 1, trial, passing, -sign)
        return sign * passed + later

    return from_stop(0, 0, dict.fromkeys(numbers, (1.0,)), 1)


def _advance(plan: SequentialPlan, bad: float, shares: Sequence[float], before: int, trials: int) -> Sequence[float]:
    """The shares of directions with 0, 1, 2 … bad trials after *trials* of them; those that failed are left out."""
    for trial in range(before + 1, trials + 1):
        stay = [*(share * (1 - bad) for share in shares), 0.0]
        spoilt = [0.0, *(share * bad for share in shares)]
        shares = [
            0.0 if plan.fails(trial - level, level) else first + second
            for level, (first, second) in enumerate(zip(stay, spoilt, strict=True))
        ]
    return shares


def design(promises: Sequence[Promise], duration: float, most_trials: int, directions: int) -> SequentialPlan | None:
    """The plan with the fewest trials on average that keeps the *promises*; None if none was found."""
    bounds = bounds_of(promises, duration, directions)
    routers = [bad_share(capacity, NOISE, duration) for capacity in CAPACITIES]
    prices = [20.0] * len(bounds)
    best: tuple[float, SequentialPlan] | None = None
    for step in range(PRICE_STEPS):
        plan = _cheapest(routers, bounds, prices, most_trials)
        if plan is None:
            return None
        wrong = [bound.wrong(plan) for bound in bounds]
        if all(found <= bound.most_wrong for found, bound in zip(wrong, bounds, strict=True)):
            cost = sum(pass_share(plan, bad)[1] for bad in routers)
            if best is None or cost < best[0]:
                best = cost, plan
        speed = 0.5 / (1 + step / 30)
        for place, (found, bound) in enumerate(zip(wrong, bounds, strict=True)):
            excess = math.log(max(found, 1e-9) / bound.most_wrong)
            prices[place] *= math.exp(speed * min(2.0, max(-1.0, excess + 0.05 * (excess > 0))))
    return None if best is None else best[1]


def _cheapest(
    routers: Sequence[float], bounds: Sequence[Bound], prices: Sequence[float], most_trials: int
) -> SequentialPlan | None:
    """The plan that costs least if a trial costs 1 and each wrong verdict its price; None if it is no plan."""
    values: dict[tuple[int, int], float] = {}
    passing: dict[int, int] = {}
    failing: dict[int, int] = {}
    for trials in range(most_trials, -1, -1):
        for bad in range(trials + 1):
            good = trials - bad
            wrong_pass, wrong_fail = (
                sum(
                    price * bound.bad**bad * (1 - bound.bad) ** good
                    for price, bound in zip(prices, bounds, strict=True)
                    if bound.at_least is at_least
                )
                for at_least in (False, True)
            )
            value = min(wrong_pass, wrong_fail)
            if trials < most_trials:
                one_more = sum(share**bad * (1 - share) ** good for share in routers) / len(routers)
                one_more += values[good + 1, bad] + values[good, bad + 1]
                if one_more < value:
                    values[good, bad] = one_more
                    continue
            values[good, bad] = value
            if wrong_pass < wrong_fail:
                passing[bad] = min(good, passing.get(bad, good))
            else:
                failing[bad] = max(good, failing.get(bad, good))
    most_bad = next((bad for bad in range(most_trials + 1) if bad not in passing), most_trials)
    if not most_bad or not passing[0]:
        return None
    return SequentialPlan(
        good_for_pass=tuple(passing[bad] for bad in range(most_bad)),
        good_for_fail=tuple(failing.get(bad) for bad in range(most_bad)),
    )


def plans_for(goal: Goal) -> Mapping[int, SequentialPlan | None]:
    """The plan of *goal* for each number of DIRECTIONS; None where its promises cannot be kept."""
    duration = goal.final_trial_duration
    most_trials = round(HORIZON * goal.duration_sum / duration)
    return {number: design(goal.promises_for(number), duration, most_trials, number) for number in DIRECTIONS}


def wald_bound(sound: float, wrong_fail: float, slow: float, wrong_pass: float) -> tuple[float, float]:
    """The fewest trials on average that any plan needs for a sound, and for a too slow router (Wald 1945).

    *sound*, *slow*: how probable a bad trial is; *wrong_fail*, *wrong_pass*: the share of wrong verdicts, 0..1.
    """

    def information(first: float, second: float) -> float:
        return first * math.log(first / second) + (1 - first) * math.log((1 - first) / (1 - second))

    return (
        information(wrong_fail, 1 - wrong_pass) / information(sound, slow),
        information(wrong_pass, 1 - wrong_fail) / information(slow, sound),
    )


def main() -> int:
    """Print the plans of each goal with promises; 1 if its file has others, or if they cannot be kept, else 0."""
    parser = argparse.ArgumentParser(prog="python -m validation.plan", description=__doc__)
    parser.add_argument("goals", nargs="*", default=["quick", "standard"], metavar="GOAL", help="(default: both)")
    parser.add_argument("--root", type=Path, help="the project's folder, the one with variables/ (default: found)")
    options = parser.parse_args()
    project, same = Project.find(options.root), True
    for name in options.goals:
        goal = read_goal(project.goals, name)
        found = plans_for(goal)
        rows = [[str(number), _yaml(plan)] for number, plan in found.items()]
        print(f"{name}:\n\n{table(['directions', 'plan'], rows, markdown=False)}\n")
        as_kept = all(plan is not None and goal.plan.get(number) == plan for number, plan in found.items())
        print(f"the file {'has these plans' if as_kept else 'has OTHER plans'}\n")
        same = same and as_kept
    return 0 if same else 1


def _yaml(plan: SequentialPlan | None) -> str:
    if plan is None:
        return "none keeps the promises"
    fails = ", ".join("~" if most is None else str(most) for most in plan.good_for_fail)
    return f"{{good_for_pass: [{', '.join(map(str, plan.good_for_pass))}], good_for_fail: [{fails}]}}"


if __name__ == "__main__":
    finish(main)
