"""Where the promises stop being true: routers and generators whose noise is another one than the plans assume.

Capacity is here what the router settles at: the lower one of two levels, and where a falling one ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lineproof.core.goal import Goal
from lineproof.core.trial import Tolerance
from lineproof.core.verdict import Ruling
from lineproof.traffic.catalogue import Catalogue

from .decision_rules import Rule, goal_rule, repeated_rule
from .noisy_router import GeneratorNoise
from .router_population import NOISE, RouterKind, RouterPopulation, table
from .shares import PassShare

CAPACITIES = (-0.01, 0.0, 0.005, 0.01)

EDGES: Mapping[float, tuple[float, float]] = {-0.01: (0.0, 0.01), 0.01: (0.99, 1.0)}
"""The least and the most share that may pass at the edges, whatever the goal."""

SOAK = 600.0
RUNS = 3
STRICT = 0.0005
"""The ``under`` of a testbed whose generator must send all."""

AS_ASSUMED = "as assumed"
CORRELATED = "correlated from trial to trial (0.9)"
RUN_TO_RUN = "each run differs by 0.5 %"
FALLING = "falls by 1 % in the first minute"
LEVELS = "two levels 2 % apart, for 2 min each"
BURSTS = "a burst exactly every 10 s"
SLOW_GENERATOR = "generator sends 0.15 % less"

NOISES: Mapping[str, RouterKind] = {
    AS_ASSUMED: RouterKind(),
    CORRELATED: RouterKind(replace(NOISE, correlation=0.9)),
    "each run differs by 0.3 %": RouterKind(replace(NOISE, run=0.003)),
    RUN_TO_RUN: RouterKind(replace(NOISE, run=0.005)),
    FALLING: RouterKind(replace(NOISE, fall=0.01)),
    LEVELS: RouterKind(replace(NOISE, step=0.02)),
    BURSTS: RouterKind(replace(NOISE, every=10.0, periodic=True)),
    "a burst exactly every 5 s": RouterKind(replace(NOISE, every=5.0, periodic=True)),
    "a burst exactly every 3 s": RouterKind(replace(NOISE, every=3.0, periodic=True)),
    "generator sends 0.1 % less": RouterKind(generator=GeneratorNoise(slow=0.001)),
    SLOW_GENERATOR: RouterKind(generator=GeneratorNoise(slow=0.0015)),
    "generator sends 0.3 % less": RouterKind(generator=GeneratorNoise(slow=0.003)),
    "generator sends 1 % less in every 5th trial": RouterKind(generator=GeneratorNoise(stutter=0.01)),
}


@dataclass(frozen=True, slots=True)
class Rulings:
    """PASS and INCONCLUSIVE verdicts at one capacity."""

    passed: PassShare
    inconclusive: PassShare

    def __str__(self) -> str:
        return f"{self.passed}{f' ({self.inconclusive} inconclusive)' if self.inconclusive.passed else ''}"


def judge_at_capacities(catalogue: Catalogue, seed: int, kind: RouterKind, rule: Rule, routers: int) -> list[Rulings]:
    """The verdicts of *rule* on so many *routers* of that *kind*, for each of CAPACITIES."""
    population = RouterPopulation(catalogue, seed, kind=kind)
    found = []
    for capacity in CAPACITIES:
        rulings = [population.judge(rule, number, 1 + capacity).ruling for number in range(routers)]
        found.append(
            Rulings(
                PassShare(rulings.count(Ruling.PASS), routers), PassShare(rulings.count(Ruling.INCONCLUSIVE), routers)
            )
        )
    return found


def other_noises(catalogue: Catalogue, seed: int, goal: Goal, routers: int) -> Mapping[str, list[Rulings]]:
    """The verdicts of *goal* under each of NOISES."""
    return {
        words: judge_at_capacities(catalogue, seed, kind, goal_rule(goal), routers) for words, kind in NOISES.items()
    }


def remedies(
    catalogue: Catalogue, seed: int, goal: Goal, without_loss: Goal, routers: int
) -> Mapping[tuple[str, str], list[Rulings]]:
    """The verdicts of what a contract can ask for in place of one verdict of *goal*, by noise and remedy."""
    repeats = repeated_rule(goal_rule(goal), RUNS)
    soak = goal_rule(goal.as_soak(SOAK), f"`{goal.goal}` for {SOAK / 60:g} min")
    strict = goal_rule(goal, f"`{goal.goal}`, `under: {STRICT:g}`", Tolerance(under=STRICT))
    asked = (
        (AS_ASSUMED, repeats),
        (AS_ASSUMED, soak),
        (RUN_TO_RUN, repeats),
        (CORRELATED, soak),
        (FALLING, soak),
        (LEVELS, soak),
        (BURSTS, goal_rule(without_loss)),
        (SLOW_GENERATOR, strict),
    )
    return {
        (words, rule.name): judge_at_capacities(catalogue, seed, NOISES[words], rule, routers) for words, rule in asked
    }


def breaks(goal: Goal, capacity: float, found: PassShare) -> bool:
    """Whether *found* routers of that *capacity* above the SLA break a promise of *goal*, by their whole interval."""
    low, high = found.bounds
    promised = [item for item in goal.promises if item.capacity == capacity and item.burst_every is None]
    bounds = [(item.at_least or 0.0, 1.0 if item.at_most is None else item.at_most) for item in promised]
    bounds += [EDGES[capacity]] if capacity in EDGES else []
    return any(high < least or low > most for least, most in bounds)


def noises_table(goal: Goal, found: Mapping[str, Sequence[Rulings]], markdown: bool) -> str:
    """Routers passed, by noise and capacity; what breaks a promise is marked."""
    rows = [[words, *_cells(goal, row, markdown)] for words, row in found.items()]
    return table(["noise", *_HEAD], rows, markdown)


def remedies_table(goal: Goal, found: Mapping[tuple[str, str], Sequence[Rulings]], markdown: bool) -> str:
    """The same, by noise and remedy."""
    rows = [[words, rule, *_cells(goal, row, markdown)] for (words, rule), row in found.items()]
    return table(["noise", "asked for", *_HEAD], rows, markdown)


_HEAD = [f"{100 * capacity:+g} %" if capacity else "at the SLA" for capacity in CAPACITIES]


def _cells(goal: Goal, row: Sequence[Rulings], markdown: bool) -> list[str]:
    cells = []
    for capacity, rulings in zip(CAPACITIES, row, strict=True):
        broken = breaks(goal, capacity, rulings.passed)
        mark = "**" if markdown else "!"
        cells.append(f"{mark}{rulings}{mark}" if broken else str(rulings))
    return cells
