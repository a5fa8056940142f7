"""Seconds of traffic and of real time that each rule needs for a verdict, and how often it is wrong.

On simulated routers whose capacity is drawn: nine of ten anywhere within 10 % of their SLA, one of ten at half of it.
A verdict is wrong if a router that is more than 1 % too slow passes, or one that is more than 1 % faster does not.
``standard`` must need at most a tenth of the traffic of plain bisection and be wrong less often, and not more than
MLRsearch that stops when it has classified the SLA's load, without being wrong more often.

Real time counts the same for every rule: its traffic, and for each trial WALL_SECONDS_PER_TRIAL, the drain's QUIET_TIME
if frames are missing; SET_UP for the sentence.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, quantiles

from lineproof.commands.ending import finish
from lineproof.core.goal import Goal
from lineproof.project import Project
from lineproof.stats import interval
from lineproof.traffic.catalogue import Catalogue

from .characteristic import EDGE, options_of
from .decision_rules import Rule, bisection_rule, mlrsearch_rule
from .plan import bad_share, pass_share, wald_bound
from .router_population import NOISE, Goals, RouterPopulation, RuleVerdict, all_rules, table
from .shares import Claim, PassShare, print_claims

WITHIN = 0.10
FAR_BELOW = 0.5
ONE_IN = 10
"""Every n-th router has FAR_BELOW of its SLA as capacity; the others are spread evenly WITHIN it."""

OF_BISECTION, OF_MLRSEARCH = 0.1, 1.0
"""The most traffic that ``standard`` may need, of what those need."""

MOST_MEAN, MOST_OF_PASS = 7.56, 11.3
"""The most seconds of traffic that ``standard`` may need for a verdict, and for a PASS."""

MARGIN = 0.01
"""``standard`` is not wrong more often if, by the intervals, at most this share more of the routers can be."""

SOUND = 0.005
"""Capacity above the SLA, as a ratio, of the sound routers of Wald's bound."""

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
        return _bounds([item.traffic for item in self.judged])

    def of_passed(self, passed: bool) -> list[RuleVerdict]:
        """Those that passed, or the others."""
        return [item for item in self.judged if item.passed is passed]

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


def _bounds(seconds: Sequence[float]) -> tuple[float, float]:
    found = interval(list(seconds)) if seconds else None
    return (0.0, math.inf) if found is None or found.low is None or found.high is None else (found.low, found.high)


def _mean_text(seconds: Sequence[float]) -> str:
    return f"{fmean(seconds):.1f}" if seconds else "–"


def ratio_of(seed: int, number: int) -> float:
    """Capacity / SLA of router *number*."""
    if number % ONE_IN == 0:
        return FAR_BELOW
    return 1 + random.Random(f"{seed} {number} ratio").uniform(-WITHIN, WITHIN)


def costs(population: RouterPopulation, rules: Sequence[Rule], routers: int, seed: int) -> Mapping[str, RuleCost]:
    """Each rule on its routers."""
    return {
        rule.name: RuleCost(tuple(population.judge(rule, number, ratio_of(seed, number)) for number in range(routers)))
        for rule in rules
    }


def claims(found: Mapping[str, RuleCost]) -> list[Claim]:
    """What must hold of ``standard``."""
    ours, theirs, mlr = found[STANDARD], found[BISECTION], found[MLRSEARCH]
    high, wrong = ours.bounds[1], ours.wrong.bounds[1]
    passes = [item.traffic for item in ours.of_passed(True)]
    of_pass = fmean(passes) if passes else 0.0
    found_claims = []
    for other, most in ((theirs, OF_BISECTION), (mlr, OF_MLRSEARCH)):
        ratio, name = ours.mean / other.mean, BISECTION if other is theirs else MLRSEARCH
        words = f"standard needs {ratio:.3f} of the traffic of {name} (at most {most:g})"
        found_claims.append(Claim(words, ratio <= most, high <= most * other.bounds[0]))
    less = f"and is wrong less often: {ours.wrong} against {theirs.wrong}"
    no_more = f"and is not wrong more often: {ours.wrong} against {mlr.wrong}"
    return [
        Claim(
            f"standard needs {ours.mean:.2f} s of traffic for a verdict (at most {MOST_MEAN:g})",
            ours.mean <= MOST_MEAN,
            high <= MOST_MEAN,
        ),
        Claim(
            f"and {of_pass:.2f} s for a PASS (at most {MOST_OF_PASS:g})",
            of_pass <= MOST_OF_PASS,
            _bounds(passes)[1] <= MOST_OF_PASS,
        ),
        found_claims[0],
        Claim(less, ours.wrong.ratio < theirs.wrong.ratio, wrong < theirs.wrong.bounds[0]),
        found_claims[1],
        Claim(no_more, ours.wrong.ratio <= mlr.wrong.ratio, wrong <= mlr.wrong.bounds[0] + MARGIN),
    ]


def text_of(found: Mapping[str, RuleCost], markdown: bool) -> str:
    """A row for each rule."""
    rows = []
    for name, cost in found.items():
        passed, others = cost.of_passed(True), cost.of_passed(False)
        rows.append(
            [
                name,
                f"{cost.mean:.2f}",
                *(_mean_text([item.traffic for item in part]) for part in (passed, others)),
                f"{cost.high:.0f}",
                *(_mean_text([item.real for item in part]) for part in (cost.judged, passed, others)),
                str(cost.wrong_passes),
                str(cost.wrong_fails),
                cost.wrong.interval,
            ]
        )
    each = ["of a PASS", "of a FAIL"]
    head = ["rule", "traffic s", *each, "95 % within", "real s", *each, "wrong PASS", "wrong FAIL", "wrong in all"]
    return table(head, rows, markdown)


def wald_table(goals: Sequence[Goal], markdown: bool) -> str:
    """The trials of each goal's plan, and the fewest that any plan needs which is wrong as rarely as it is.

    That is Wald's bound for telling routers at the SLA from those that are SOUND faster, one direction.
    """
    rows = []
    for goal in goals:
        plan, duration = goal.plan_for(1), goal.final_trial_duration
        sound, slow = bad_share(SOUND, NOISE, duration), bad_share(0.0, NOISE, duration)
        (passed, trials), (wrong, more) = pass_share(plan, sound), pass_share(plan, slow)
        least, least_more = wald_bound(sound, 1 - passed, slow, wrong)
        rows.append([f"`{goal.goal}`", f"{more:.1f}", f"{least_more:.1f}", f"{trials:.1f}", f"{least:.1f}"])
    at_sound = f"at {100 * SOUND:+g} %"
    return table(["trials", "at the SLA", "Wald's bound", at_sound, "Wald's bound"], rows, markdown)


def main() -> int:
    """Print the tables; 1 if a claim does not hold, else 0 (or too few routers prove it)."""
    options = options_of("cost", __doc__ or "")
    project = Project.find(options.root)
    population, goals = RouterPopulation(Catalogue.read(project.profiles), options.seed), Goals.read(project)
    found = costs(population, all_rules(goals), options.routers, options.seed)
    heading = "### " if options.markdown else ""
    print(f"{heading}Traffic and real time per verdict, and wrong verdicts ({options.routers} routers)\n")
    print(f"{text_of(found, options.markdown)}\n")
    print(f"{heading}Trials on average, and Wald's lower bound\n")
    print(f"{wald_table((goals.quick, goals.standard), options.markdown)}\n")
    return print_claims(claims(found), options.routers, options.markdown)


if __name__ == "__main__":
    finish(main)
