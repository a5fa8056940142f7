"""How often each rule passes a router, by its true capacity.

The operating characteristic of a test: the probability of a PASS against capacity / SLA, on simulated routers with
noise, the same ones for each rule. Each goal must keep its promises, for several directions too (:mod:`.promises`), and
``standard`` must pass at least 99 % of the routers that are 1 % faster than their SLA, and at most 1 % of those that
are 1 % slower. Where the noise is another one, tables say what is left of that (:mod:`.noises`).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lineproof.commands.ending import finish
from lineproof.core.goal import Goal
from lineproof.project import Project
from lineproof.traffic.catalogue import Catalogue

from .decision_rules import Rule, bisection_rule, goal_rule, mlrsearch_rule
from .noises import noises_table, other_noises, remedies, remedies_table
from .promises import check_promises, promise_claims, promises_table
from .router_population import (
    FAST,
    NOISE,
    Goals,
    RouterKind,
    RouterPopulation,
    all_rules,
    count_passes,
    table,
)
from .shares import Claim, PassShare, print_claims

GRID = (-0.03, -0.02, -0.015, -0.01, -0.0075, -0.005, -0.0025, 0.0, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03)
"""Capacity / SLA - 1."""

EDGE = 0.01
LEAST_ABOVE, MOST_BELOW = 0.99, 0.01
"""How many of the routers that are EDGE faster must pass, and how many of those that are EDGE slower may."""

RATES = (5e6, 1e6, 500e3, 200e3, 100e3, 50e3, 20e3)
"""SLAs in frames/s at which a buffer is tried."""

INTERVALS = (1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 200.0)
"""Seconds between the bursts that a fast enough router loses."""

FEWER = 5
"""Buffers, bursts and other noises are tried on one router in so many."""

SOAKS = 20
"""A soak, of many trials, on one in so many."""

Curves = Mapping[str, Mapping[float, PassShare]]
"""By rule, by capacity / SLA - 1."""


def characteristic(
    population: RouterPopulation, rules: Sequence[Rule], routers: int, grid: Sequence[float] = GRID
) -> Curves:
    """How many routers pass by each rule at each capacity of the *grid*."""
    return {
        rule.name: {offset: PassShare(count_passes(population, rule, 1 + offset, routers), routers) for offset in grid}
        for rule in rules
    }


def sharpness(found: Curves) -> Claim:
    """That ``standard`` passes routers that are EDGE faster, and not those EDGE slower, as often as required."""
    curve = found["`standard`"]
    above, below = curve[EDGE], curve[-EDGE]
    return Claim(
        f"standard: {above} passed at +1 % (at least {100 * LEAST_ABOVE:g} % must), {below} at -1 % (at most"
        f" {100 * MOST_BELOW:g} % may)",
        above.ratio >= LEAST_ABOVE and below.ratio <= MOST_BELOW,
        above.bounds[0] >= LEAST_ABOVE and below.bounds[1] <= MOST_BELOW,
    )


def whole_table(found: Curves, markdown: bool) -> str:
    """Pass probability by capacity, a column for each rule."""
    grid = list(next(iter(found.values())))
    rows = [
        [f"{100 * offset:+g} %" if offset else "0 %", *(str(curve[offset]) for curve in found.values())]
        for offset in grid
    ]
    return table(["capacity / SLA", *found], rows, markdown)


def edge_table(found: Curves, markdown: bool) -> str:
    """What counts, with intervals."""
    rows = [[name, str(c[EDGE].of), c[-EDGE].interval, c[EDGE].interval] for name, c in found.items()]
    head = ["rule", "routers", f"passed at {-100 * EDGE:+g} %", f"passed at {100 * EDGE:+g} %"]
    return table(head, rows, markdown)


def low_rate_rules(goals: Goals) -> tuple[Rule, ...]:
    """Rules to try a buffer on."""
    return (
        goal_rule(goals.standard),
        goal_rule(goals.standard, backlog_known=False),
        goal_rule(goals.quick),
        bisection_rule(),
        mlrsearch_rule(),
    )


def low_rates(catalogue: Catalogue, seed: int, rules: Sequence[Rule], routers: int) -> Mapping[float, Curves]:
    """The characteristic at -1 %, at the SLA and at +1 % for SLAs of other rates."""
    return {
        rate: characteristic(RouterPopulation(catalogue, seed, rate), rules, routers, (-EDGE, 0.0, EDGE))
        for rate in RATES
    }


def low_rates_table(found: Mapping[float, Curves], standard: Goal, markdown: bool) -> str:
    """Passed at -1 % / at the SLA / at +1 %, by rate; and how much of a trial fits in the buffer.

    Where the backlog is not known, *standard* has longer trials for every router, else only where one shows.
    """
    names = list(next(iter(found.values())))
    rows = []
    for rate, curves in found.items():
        goal = standard.for_load(rate)
        cells = [" / ".join(map(str, curves[name].values())) for name in names]
        hidden = f"{100 * standard.hidden_shortage(rate):.2g} %"
        rows.append([f"{rate / 1e3:g} kpps", hidden, f"{goal.final_trial_duration:g} s", *cells])
    return table(["SLA", "in the buffer", "trials, backlog not known", *names], rows, markdown)


def bursts(catalogue: Catalogue, seed: int, rules: Sequence[Rule], routers: int) -> Mapping[float, Curves]:
    """The pass rates of routers that are fast enough but lose bursts, by the seconds between bursts."""
    return {
        every: characteristic(
            RouterPopulation(catalogue, seed, kind=RouterKind(replace(NOISE, every=every))), rules, routers, (FAST,)
        )
        for every in INTERVALS
    }


def bursts_table(found: Mapping[float, Curves], markdown: bool) -> str:
    """Routers passed, by seconds between bursts."""
    names = list(next(iter(found.values())))
    rows = [[f"{every:g} s", *(str(curves[name][FAST]) for name in names)] for every, curves in found.items()]
    return table(["a burst every", *names], rows, markdown)


def options_of(name: str, doc: str) -> argparse.Namespace:
    """What the command line of a study of rules says."""
    parser = argparse.ArgumentParser(prog=f"python -m validation.{name}", description=doc.partition("\n")[0])
    parser.add_argument("--routers", type=int, default=1000, metavar="N", help="simulated routers (default: 1000)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of all that is drawn (default: 1)")
    parser.add_argument("--markdown", action="store_true", help="print the tables as in docs/methodology/")
    parser.add_argument("--root", type=Path, help="the project's folder, the one with variables/ (default: found)")
    options = parser.parse_args()
    if options.routers < SOAKS:
        parser.error(f"--routers {options.routers}: at least {SOAKS} are needed")
    return options


def main() -> int:
    """Print the tables; 1 if a goal does not keep a promise, or ``standard`` is not as sharp as required, else 0."""
    options = options_of("characteristic", __doc__ or "")
    project, routers, seed, markdown = Project.find(options.root), options.routers, options.seed, options.markdown
    goals, catalogue = Goals.read(project), Catalogue.read(project.profiles)
    fewer = routers // FEWER

    def section(title: str, text: str) -> None:
        print(f"{'### ' if markdown else ''}{title}\n\n{text}\n")

    checks = [item for goal in (goals.quick, goals.standard) for item in check_promises(catalogue, seed, goal, routers)]
    section("Promises: routers passed, with 95 % interval", promises_table(checks, markdown))
    found = characteristic(RouterPopulation(catalogue, seed), all_rules(goals), routers)
    section("Told apart at 1 %: routers passed, with 95 % interval", edge_table(found, markdown))
    section("The whole curve: routers passed", whole_table(found, markdown))
    for goal in (goals.standard, goals.quick):
        noises = other_noises(catalogue, seed, goal, fewer)
        section(
            f"Other noise: routers passed by {goal.goal}, {fewer} of each; marked: a promise that is broken",
            noises_table(goal, noises, markdown),
        )
    asked = remedies(catalogue, seed, goals.standard, goals.rfc2544, routers // SOAKS)
    section(
        f"What to ask for then: routers passed, {routers // SOAKS} of each",
        remedies_table(goals.standard, asked, markdown),
    )
    low = low_rates(catalogue, seed, low_rate_rules(goals), fewer)
    section(
        f"Buffers: routers passed at -1 % / at the SLA / at +1 %, by rate ({fewer} routers)",
        low_rates_table(low, goals.standard, markdown),
    )
    bursting = bursts(catalogue, seed, all_rules(goals), fewer)
    section(
        f"Bursts: routers passed that are {100 * FAST:g} % faster than their SLA, by how often they lose one",
        bursts_table(bursting, markdown),
    )
    return print_claims([*promise_claims(checks), sharpness(found)], routers, markdown)


if __name__ == "__main__":
    finish(main)
