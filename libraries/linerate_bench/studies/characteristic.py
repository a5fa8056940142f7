"""How often each rule passes a router, by its true capacity.

The operating characteristic of a test: the probability of a PASS against capacity / SLA, on simulated routers with
noise, the same ones for each rule. The goal ``standard`` must pass at least 99 % of the routers that are 1 % faster
than their SLA, and at most 1 % of those that are 1 % slower.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from scipy.stats import binomtest

from linerate.project import Project
from linerate.sla.goals import Goal
from linerate.traffic.catalogue import Catalogue

from .decision_rules import Rule, bisection_rule, goal_rule, mlrsearch_rule
from .router_population import (
    FAST,
    NOISE,
    SLOW_RULE_SHARE,
    Goals,
    RouterPopulation,
    all_rules,
    count_passes,
    routers_for,
    table,
)
from .study_plots import Curve, curves_plot

GRID = (-0.03, -0.02, -0.015, -0.01, -0.0075, -0.005, -0.0025, 0.0, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03)
"""Capacity / SLA - 1."""

EDGE = 0.01
LEAST_ABOVE, MOST_BELOW = 0.99, 0.01
"""How many of the routers that are EDGE faster must pass, and how many of those that are EDGE slower may."""

RATES = (5e6, 1e6, 500e3, 200e3, 100e3, 50e3, 20e3)
"""SLAs in frames/s at which a buffer is tried."""

INTERVALS = (1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 200.0)
"""Seconds between the bursts that a fast enough router loses."""

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class PassShare:
    """*passed* of *of* routers."""

    passed: int
    of: int

    @property
    def ratio(self) -> float:
        """The share, 0..1; 0 of none."""
        return self.passed / self.of if self.of else 0.0

    def __str__(self) -> str:
        return f"{100 * self.ratio:.4g} %" if self.of else "–"

    @property
    def bounds(self) -> tuple[float, float]:
        """Its exact (Clopper-Pearson) confidence interval, 0..1; of none everything is possible."""
        if not self.of:
            return 0.0, 1.0
        found = binomtest(self.passed, self.of).proportion_ci(CONFIDENCE, method="exact")
        return float(found.low), float(found.high)

    @property
    def interval(self) -> str:
        """With its :attr:`bounds`."""
        low, high = self.bounds
        return f"{self} ({100 * low:.3g} … {100 * high:.3g})" if self.of else str(self)


Curves = Mapping[str, Mapping[float, PassShare]]
"""By rule, by capacity / SLA - 1."""


def characteristic(
    population: RouterPopulation, rules: Sequence[Rule], routers: int, grid: Sequence[float] = GRID
) -> Curves:
    """How many routers pass by each rule at each capacity of the *grid*."""
    return {
        rule.name: {
            offset: PassShare(
                count_passes(population, rule, 1 + offset, routers_for(rule, routers)), routers_for(rule, routers)
            )
            for offset in grid
        }
        for rule in rules
    }


def is_sharp(found: Curves, rule: str = "`standard`") -> bool:
    """Whether *rule* passes routers that are EDGE faster, and not those EDGE slower, as often as required."""
    return found[rule][EDGE].ratio >= LEAST_ABOVE and found[rule][-EDGE].ratio <= MOST_BELOW


def is_proven(found: Curves, rule: str = "`standard`") -> bool:
    """Whether the number of routers proves it: the bounds of the intervals keep it too."""
    return found[rule][EDGE].bounds[0] >= LEAST_ABOVE and found[rule][-EDGE].bounds[1] <= MOST_BELOW


def bound_text(good: bool, proven: bool, routers: int) -> str:
    """What became of a bound: *good* by the figures themselves, *proven* by their intervals."""
    if not good:
        return "NOT KEPT"
    return "kept" if proven else f"not shown with {routers} routers"


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
    short = goals.standard.model_copy(update={"longest_trial": None})
    return (
        goal_rule(goals.standard),
        goal_rule(short, "`standard`, not lengthened"),
        goal_rule(goals.quick),
        bisection_rule(),
        mlrsearch_rule(),
    )


def low_rates(catalogue: Catalogue, seed: int, rules: Sequence[Rule], routers: int) -> Mapping[float, Curves]:
    """The characteristic at -1 % and +1 % for SLAs of other rates."""
    return {
        rate: characteristic(RouterPopulation(catalogue, seed, rate), rules, routers, (-EDGE, EDGE)) for rate in RATES
    }


def low_rates_table(found: Mapping[float, Curves], standard: Goal, markdown: bool) -> str:
    """Passed at -1 % / at +1 %, by rate; and what a trial of the goal does not see."""
    names = list(next(iter(found.values())))
    rows = []
    for rate, curves in found.items():
        goal = standard.for_load(rate)
        cells = [f"{curves[name][-EDGE]} / {curves[name][EDGE]}" for name in names]
        hidden = f"{100 * standard.hidden_shortage(rate):.2g} %"
        rows.append([f"{rate / 1e3:g} kpps", hidden, f"{goal.final_trial_duration:g} s", *cells])
    return table(["SLA", "hidden in 1 s", "trials of `standard`", *names], rows, markdown)


def bursts(catalogue: Catalogue, seed: int, rules: Sequence[Rule], routers: int) -> Mapping[float, Curves]:
    """The pass rates of routers that are fast enough but lose bursts, by the seconds between bursts."""
    return {
        every: characteristic(
            RouterPopulation(catalogue, seed, noise=replace(NOISE, every=every)), rules, routers, (FAST,)
        )
        for every in INTERVALS
    }


def bursts_table(found: Mapping[float, Curves], markdown: bool) -> str:
    """Routers passed, by seconds between bursts."""
    names = list(next(iter(found.values())))
    rows = [[f"{every:g} s", *(str(curves[name][FAST]) for name in names)] for every, curves in found.items()]
    return table(["a burst every", *names], rows, markdown)


def plots(found: Curves, low: Mapping[float, Curves]) -> dict[str, str]:
    """The figures as SVG, by file name."""
    whole = [
        Curve(name, [100 * offset for offset in curve], [100 * share.ratio for share in curve.values()])
        for name, curve in found.items()
    ]
    slow = [
        Curve(name, [rate / 1e3 for rate in low], [100 * curves[name][-EDGE].ratio for curves in low.values()])
        for name in next(iter(low.values()))
    ]
    return {
        "operating-characteristic.svg": curves_plot(
            whole, "Operating characteristic", "true capacity above the SLA [%]", "routers passed [%]", marks=(-1, 1)
        ),
        "buffer.svg": curves_plot(
            slow, "Routers 1 % too slow, by rate", "SLA [kpps]", "routers passed [%]", logarithmic="x"
        ),
    }


def write_plots(folder: Path | None, figures: Mapping[str, str]) -> None:
    """Write *figures* into *folder*, if there is one."""
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name, svg in figures.items():
        (folder / name).write_text(svg, encoding="utf-8")


def options_of(argv: list[str], name: str, doc: str) -> argparse.Namespace:
    """What the command line of a study of rules says."""
    parser = argparse.ArgumentParser(prog=f"linerate study {name}", description=doc.partition("\n")[0])
    parser.add_argument("--routers", type=int, default=1000, metavar="N", help="simulated routers (default: 1000)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of all that is drawn (default: 1)")
    parser.add_argument("--markdown", action="store_true", help="print the tables as in docs/methodology/")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="write the figures there, as SVG")
    parser.add_argument("--root", type=Path, help="the project's folder, the one with variables/ (default: found)")
    options = parser.parse_args(argv)
    if options.routers < SLOW_RULE_SHARE:
        parser.error(f"--routers {options.routers}: at least {SLOW_RULE_SHARE} are needed")
    return options


def main(argv: list[str]) -> int:
    """Print the tables; 1 if ``standard`` is not as sharp as required, else 0 (or too few routers prove it)."""
    options = options_of(argv, "characteristic", __doc__ or "")
    project = Project.find(options.root)
    goals, catalogue = Goals.read(project), Catalogue.read(project.profiles)
    found = characteristic(RouterPopulation(catalogue, options.seed), all_rules(goals), options.routers)
    fewer = max(SLOW_RULE_SHARE, options.routers // 5)
    low = low_rates(catalogue, options.seed, low_rate_rules(goals), fewer)
    bursting = bursts(catalogue, options.seed, all_rules(goals), fewer)
    heading = "### " if options.markdown else ""
    print(f"{heading}Told apart at 1 %: routers passed, with 95 % interval\n\n{edge_table(found, options.markdown)}\n")
    print(f"{heading}The whole curve: routers passed\n\n{whole_table(found, options.markdown)}\n")
    print(f"{heading}Buffers: routers passed at -1 % / at +1 %, by rate ({fewer} routers)\n")
    print(f"{low_rates_table(low, goals.standard, options.markdown)}\n")
    print(
        f"{heading}Bursts: routers passed that are {100 * FAST:g} % faster than their SLA, by how often they lose one\n"
    )
    print(f"{bursts_table(bursting, options.markdown)}\n")
    write_plots(options.plots, plots(found, low))
    good = is_sharp(found)
    print(
        f"standard: {found['`standard`'][EDGE]} passed at +1 % (at least {100 * LEAST_ABOVE:g} % must),"
        f" {found['`standard`'][-EDGE]} at -1 % (at most {100 * MOST_BELOW:g} % may):"
        f" {bound_text(good, is_proven(found), options.routers)}."
    )
    return 0 if good else 1
