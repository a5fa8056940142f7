"""``python -m linerate study cost``: seconds of traffic that each rule needs for a verdict, and how often it is wrong.

On simulated routers whose capacity is drawn: nine of ten anywhere within 10 % of their SLA, one of ten at half of it.
A verdict is wrong where a router that is more than 1 % too slow passes, or one that is more than 1 % faster does not.
``standard`` must need at most a tenth of the traffic of plain bisection and be wrong less often, and at most half of
that of FD.io CSIT's search without being wrong more often.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, quantiles

from ..profiles import Catalogue
from ..project import Project
from .characteristic import EDGE, Share, options_of, write
from .population import Goals, Judged, Population, all_rules, sample, table
from .rules import Rule, bisection, mlrsearch
from .study_plots import Curve, curves_plot

WITHIN = 0.10
FAR_BELOW = 0.5
ONE_IN = 10
"""One router of so many has FAR_BELOW of the capacity it should have, the others are WITHIN of it, evenly."""

OF_BISECTION, OF_MLRSEARCH = 0.1, 0.5
"""The most traffic that ``standard`` may need, of what those need."""

STANDARD, BISECTION, MLRSEARCH = "`standard`", bisection().name, mlrsearch().name


@dataclass(frozen=True, slots=True)
class Cost:
    """What one rule made of its routers."""

    judged: tuple[Judged, ...]

    @property
    def mean(self) -> float:
        """Seconds of traffic per verdict."""
        return fmean(item.traffic for item in self.judged)

    def mean_of(self, passed: bool) -> str:
        """Seconds of traffic per PASS, or per other verdict."""
        found = [item.traffic for item in self.judged if item.passed is passed]
        return f"{fmean(found):.1f}" if found else "–"

    @property
    def high(self) -> float:
        """Seconds of traffic that 95 % of the verdicts do not exceed."""
        return quantiles((item.traffic for item in self.judged), n=20, method="inclusive")[-1]

    @property
    def wrong_passes(self) -> Share:
        """Of the routers that are more than EDGE too slow, those that passed."""
        slow = [item for item in self.judged if item.ratio < 1 - EDGE]
        return Share(sum(item.passed for item in slow), len(slow))

    @property
    def wrong_fails(self) -> Share:
        """Of the routers that are more than EDGE faster than they must be, those that did not pass."""
        fast = [item for item in self.judged if item.ratio > 1 + EDGE]
        return Share(sum(not item.passed for item in fast), len(fast))

    @property
    def wrong(self) -> Share:
        """Both, of all that are outside EDGE."""
        slow, fast = self.wrong_passes, self.wrong_fails
        return Share(slow.passed + fast.passed, slow.of + fast.of)


def ratio_of(seed: int, number: int) -> float:
    """Capacity / SLA of router *number*."""
    if number % ONE_IN == 0:
        return FAR_BELOW
    return 1 + random.Random(f"{seed} {number} ratio").uniform(-WITHIN, WITHIN)  # noqa: S311


def costs(population: Population, rules: Sequence[Rule], routers: int, seed: int) -> Mapping[str, Cost]:
    """Each rule on its routers."""
    return {
        rule.name: Cost(
            tuple(population.judge(rule, number, ratio_of(seed, number)) for number in range(sample(rule, routers)))
        )
        for rule in rules
    }


def claims(found: Mapping[str, Cost]) -> list[tuple[str, bool]]:
    """What must hold, in words with its figures, and whether it does."""
    ours, theirs, mlr = found[STANDARD], found[BISECTION], found[MLRSEARCH]
    of_bisection, of_mlrsearch = ours.mean / theirs.mean, ours.mean / mlr.mean
    return [
        (
            f"standard needs {of_bisection:.3f} of the traffic of {BISECTION} (at most {OF_BISECTION:g})",
            of_bisection <= OF_BISECTION,
        ),
        (
            f"and is wrong less often: {ours.wrong} against {theirs.wrong}",
            ours.wrong.ratio < theirs.wrong.ratio,
        ),
        (
            f"standard needs {of_mlrsearch:.3f} of the traffic of {MLRSEARCH} (at most {OF_MLRSEARCH:g})",
            of_mlrsearch <= OF_MLRSEARCH,
        ),
        (
            f"and is not wrong more often: {ours.wrong} against {mlr.wrong}",
            ours.wrong.ratio <= mlr.wrong.ratio,
        ),
    ]


def text_of(found: Mapping[str, Cost], markdown: bool) -> str:
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


def plots(found: Mapping[str, Cost]) -> dict[str, str]:
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
    """Print the table; 0 where every claim holds, else 1."""
    options = options_of(argv, "cost", __doc__ or "")
    project = Project.find(options.root)
    population = Population(Catalogue.read(project.profiles), options.seed)
    found = costs(population, all_rules(Goals.read(project)), options.routers, options.seed)
    heading = "### " if options.markdown else ""
    print(f"{heading}Traffic per verdict, and wrong verdicts\n\n{text_of(found, options.markdown)}\n")
    write(options.plots, plots(found))
    said = claims(found)
    for words, good in said:
        print(f"{'- ' if options.markdown else ''}{words}: {'kept' if good else 'NOT KEPT'}")
    return 0 if all(good for _, good in said) else 1
