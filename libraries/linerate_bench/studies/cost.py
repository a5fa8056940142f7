"""Seconds of traffic that each rule needs for a verdict, and how often it is wrong.

On simulated routers whose capacity is drawn: nine of ten anywhere within 10 % of their SLA, one of ten at half of it.
A verdict is wrong if a router that is more than 1 % too slow passes, or one that is more than 1 % faster does not.
``standard`` must need at most a tenth of the traffic of plain bisection and be wrong less often, and at most half of
that of FD.io CSIT's search without being wrong more often.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, quantiles

from linerate.project import Project
from linerate.stats import interval
from linerate.traffic.catalogue import Catalogue

from .characteristic import EDGE, PassShare, bound_text, options_of, write_plots
from .decision_rules import Rule, bisection_rule, mlrsearch_rule
from .router_population import Goals, RouterPopulation, RuleVerdict, all_rules, routers_for, table
from .study_plots import Curve, curves_plot

WITHIN = 0.10
FAR_BELOW = 0.5
ONE_IN = 10
"""Every n-th router has FAR_BELOW of its SLA as capacity; the others are spread evenly WITHIN it."""

OF_BISECTION, OF_MLRSEARCH = 0.1, 0.5
"""The most traffic that ``standard`` may need, of what those need."""

MARGIN = 0.01
"""``standard`` is not wrong more often if, by the intervals, at most this share more of the routers can be."""

STANDARD, BISECTION, MLRSEARCH = "`standard`", bisection_rule().name, mlrsearch_rule().name


@dataclass(frozen=True, slots=True)
class RuleCost:
    """The verdicts of one rule on its routers."""

    judged: tuple[RuleVerdict, ...]

    @property
    def mean(self) -> float:
        """Seconds of traffic per verdict."""
        return fmean(item.traffic for item in self.judged)

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which s of traffic the true mean lies, at 95 % confidence; anywhere where one router was tried."""
        found = interval([item.traffic for item in self.judged])
        return (0.0, math.inf) if found.low is None or found.high is None else (found.low, found.high)

    def mean_of(self, passed: bool) -> str:
        """Seconds of traffic per PASS, or per other verdict."""
        found = [item.traffic for item in self.judged if item.passed is passed]
        return f"{fmean(found):.1f}" if found else "–"

    @property
    def high(self) -> float:
        """Seconds of traffic that 95 % of the verdicts do not exceed."""
        return quantiles((item.traffic for item in self.judged), n=20, method="inclusive")[-1]

    @property
    def wrong_passes(self) -> PassShare:
        """Of the routers that are more than EDGE too slow, those that passed."""
        slow = [item for item in self.judged if item.ratio < 1 - EDGE]
        return PassShare(sum(item.passed for item in slow), len(slow))

    @property
    def wrong_fails(self) -> PassShare:
        """Of the routers that are more than EDGE faster than they must be, those that did not pass."""
        fast = [item for item in self.judged if item.ratio > 1 + EDGE]
        return PassShare(sum(not item.passed for item in fast), len(fast))

    @property
    def wrong(self) -> PassShare:
        """Both, of all that are outside EDGE."""
        slow, fast = self.wrong_passes, self.wrong_fails
        return PassShare(slow.passed + fast.passed, slow.of + fast.of)


def ratio_of(seed: int, number: int) -> float:
    """Capacity / SLA of router *number*."""
    if number % ONE_IN == 0:
        return FAR_BELOW
    return 1 + random.Random(f"{seed} {number} ratio").uniform(-WITHIN, WITHIN)  # noqa: S311


def costs(population: RouterPopulation, rules: Sequence[Rule], routers: int, seed: int) -> Mapping[str, RuleCost]:
    """Each rule on its routers."""
    return {
        rule.name: RuleCost(
            tuple(
                population.judge(rule, number, ratio_of(seed, number)) for number in range(routers_for(rule, routers))
            )
        )
        for rule in rules
    }


@dataclass(frozen=True, slots=True)
class Claim:
    """What must hold, in words with its figures. *good*: by the figures, *shown*: by the bounds of their intervals."""

    words: str
    good: bool
    shown: bool


def claims(found: Mapping[str, RuleCost]) -> list[Claim]:
    """What must hold of ``standard``."""
    ours, theirs, mlr = found[STANDARD], found[BISECTION], found[MLRSEARCH]
    high, wrong = ours.bounds[1], ours.wrong.bounds[1]
    found_claims = []
    for other, most in ((theirs, OF_BISECTION), (mlr, OF_MLRSEARCH)):
        ratio, name = ours.mean / other.mean, BISECTION if other is theirs else MLRSEARCH
        words = f"standard needs {ratio:.3f} of the traffic of {name} (at most {most:g})"
        found_claims.append(Claim(words, ratio <= most, high <= most * other.bounds[0]))
    less = f"and is wrong less often: {ours.wrong} against {theirs.wrong}"
    no_more = f"and is not wrong more often: {ours.wrong} against {mlr.wrong}"
    return [
        found_claims[0],
        Claim(less, ours.wrong.ratio < theirs.wrong.ratio, wrong < theirs.wrong.bounds[0]),
        found_claims[1],
        Claim(no_more, ours.wrong.ratio <= mlr.wrong.ratio, wrong <= mlr.wrong.bounds[0] + MARGIN),
    ]


def text_of(found: Mapping[str, RuleCost], markdown: bool) -> str:
    """A row for each rule."""
    rows = [
        [
            name,
            str(len(cost.judged)),
            f"{cost.mean:.1f}",
            cost.mean_of(True),
            cost.mean_of(False),
            f"{cost.high:.0f}",
            str(cost.wrong_passes),
            str(cost.wrong_fails),
            cost.wrong.interval,
        ]
        for name, cost in found.items()
    ]
    head = [
        "rule",
        "routers",
        "mean s",
        "of a PASS",
        "of a FAIL",
        "95 % within s",
        "wrong PASS",
        "wrong FAIL",
        "wrong in all",
    ]
    return table(head, rows, markdown)


def plots(found: Mapping[str, RuleCost]) -> dict[str, str]:
    """Traffic by capacity, as SVG."""
    bands = [-0.1 + 0.02 * step for step in range(10)]
    drawn = []
    for name, cost in found.items():
        points = [
            (100 * (band + 0.01), fmean(inside))
            for band in bands
            if (inside := [item.traffic for item in cost.judged if band <= item.ratio - 1 < band + 0.02])
        ]
        drawn.append(Curve(name, [x for x, _ in points], [y for _, y in points]))
    figure = curves_plot(
        drawn, "Traffic per verdict", "true capacity above the SLA [%]", "traffic [s]", logarithmic="y"
    )
    return {"cost.svg": figure}


def main(argv: list[str]) -> int:
    """Print the table; 1 if a claim does not hold, else 0 (or too few routers prove it)."""
    options = options_of(argv, "cost", __doc__ or "")
    project = Project.find(options.root)
    population = RouterPopulation(Catalogue.read(project.profiles), options.seed)
    found = costs(population, all_rules(Goals.read(project)), options.routers, options.seed)
    heading = "### " if options.markdown else ""
    print(f"{heading}Traffic per verdict, and wrong verdicts\n\n{text_of(found, options.markdown)}\n")
    write_plots(options.plots, plots(found))
    found_claims = claims(found)
    for claim in found_claims:
        result = bound_text(claim.good, claim.shown, options.routers)
        print(f"{'- ' if options.markdown else ''}{claim.words}: {result}")
    return 0 if all(claim.good for claim in found_claims) else 1
