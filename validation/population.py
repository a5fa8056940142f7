"""Made-up routers whose true capacity is known, judged by the product, and what became of them, as studies print it."""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from lineproof.core.deciding import TrialConditions, decide
from lineproof.core.goal import Goal
from lineproof.core.quantity import Promise
from lineproof.core.rule import Ruling
from lineproof.core.trial import Load, Measure, Tolerance, read_trial
from support.made_testbeds import CLEAN, LINE_PPS, goal_named, promised

from .noisy_router import NoisyRouter, RouterNoise

CONFIDENCE = 0.95

RATE = 5_000_000
"""Frames/s of the SLA."""

SPREAD = 0.02
"""SLAs lie within this ratio of the rate, so that no rule's steps lie well or badly by chance."""

NOISE = RouterNoise()


@dataclass(frozen=True, slots=True)
class RouterKind:
    """The part that routers share: noise, and the number of ``directions`` alike."""

    noise: RouterNoise = NOISE
    directions: int = 1

    def router(self, sla: float, ratio: float, seed: str) -> NoisyRouter:
        """Return a router with *ratio* of *sla* as capacity."""
        names = [seed, *(f"{seed} direction {number}" for number in range(1, self.directions))]
        return NoisyRouter(sla * ratio, names, self.noise)


class Judged(NamedTuple):
    """One verdict on a router of capacity / SLA *ratio*, and the seconds of traffic with the warm-up."""

    ratio: float
    ruling: Ruling
    traffic: float


class PassShare(NamedTuple):
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
        """Return its exact (Clopper-Pearson) confidence interval, 0..1; of none everything is possible."""
        if not self.of:
            return 0.0, 1.0
        from scipy.stats import binomtest  # takes a second

        found = binomtest(self.passed, self.of).proportion_ci(CONFIDENCE, method="exact")
        return float(found.low), float(found.high)


@dataclass(frozen=True, slots=True)
class Rulings:
    """The verdicts of many routers."""

    judged: tuple[Judged, ...]

    def share(self, ruling: Ruling) -> PassShare:
        """Return how many have this ruling."""
        return PassShare(sum(one.ruling is ruling for one in self.judged), len(self.judged))

    def __str__(self) -> str:
        words = str(self.share(Ruling.PASS))
        return words + (f" ({open_} INCONCLUSIVE)" if (open_ := self.share(Ruling.INCONCLUSIVE)).passed else "")


def sla_of(seed: int, number: int, rate: float = RATE) -> int:
    """Return the frames/s of router *number*."""
    return round(rate * (1 + random.Random(f"{seed} {number} sla").uniform(-SPREAD, SPREAD)))


@cache
def _promise(goal: str, rate: float, time: str) -> Promise:
    return promised(f"64b unidirectional ≥ {rate:.0f} pps{time}", goal)


def after_warm_up(promise: Promise, measure: Measure, ratio: float) -> Judged:
    """Return what the rule says of a testbed that was warmed up, with a router of capacity / SLA *ratio*."""
    warm_up = read_trial(0, measure(Load(promise.load_pps), promise.goal.warm_up), Tolerance())
    decision = decide(promise, measure, TrialConditions(), LINE_PPS, warm_up)
    traffic = promise.goal.warm_up + sum(trial.seconds.low for trial in decision.trials)
    return Judged(ratio, decision.ruling or Ruling.INCONCLUSIVE, traffic)


def judge(
    goal: str,
    number: int,
    ratio: float,
    kind: RouterKind = RouterKind(),
    seed: int = 1,
    time: str = "",
    runs: int = 1,
) -> Judged:
    """Return the verdict on router *number* with *ratio* of its SLA. *time*: " for 10 min". *runs*: all must pass."""
    sla = sla_of(seed, number)
    router = kind.router(sla, ratio, f"{seed} {number}")
    promise = replace(_promise(goal, RATE, time), load_pps=float(sla), own=CLEAN)
    judged = after_warm_up(promise, router.measure, ratio)
    for _ in range(1, runs):
        if judged.ruling is Ruling.PASS:
            router.begin_run()
            judged = after_warm_up(promise, router.measure, ratio)
    return judged._replace(traffic=router.traffic)


def rulings(goal: str, ratio: float, routers: int, *rest: Any, **more: Any) -> Rulings:
    """Return the verdicts on the first *routers* with this capacity; all else as of :func:`judge`."""
    return Rulings(tuple(judge(goal, number, ratio, *rest, **more) for number in range(routers)))


def goals() -> tuple[Goal, Goal]:
    """Return ``standard`` and ``quick``."""
    return goal_named("standard"), goal_named("quick")


class Claim(NamedTuple):
    """A claim, in words with its figures. *good*: by the figures, *shown*: by the bounds of their intervals."""

    words: str
    good: bool
    shown: bool


def claim(words: str, share: PassShare, least: float = 0.0, most: float = 1.0) -> Claim:
    """Return the claim that *share* is at least, or at most, so much."""
    low, high = share.bounds
    wanted = f"at least {100 * least:g} %" if least else f"at most {100 * most:g} %"
    return Claim(f"{words}: {share}, {wanted}", least <= share.ratio <= most, low >= least and high <= most)


def lowest(shares: Iterable[PassShare]) -> PassShare:
    """Return the lowest share."""
    return min(shares, key=lambda share: share.ratio)


def highest(shares: Iterable[PassShare]) -> PassShare:
    """Return the highest share."""
    return max(shares, key=lambda share: share.ratio)


def print_claims(found: list[Claim], routers: int) -> int:
    """Print what became of each claim; the exit status: 1 if one does not hold, else 0."""
    for claim in found:
        kept = "kept" if claim.shown else f"not shown with {routers} routers"
        print(f"{claim.words}: {kept if claim.good else 'NOT KEPT'}")
    return 0 if all(claim.good for claim in found) else 1


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table below its *title*."""
    print(f"{title}\n\n{table(head, rows)}\n", flush=True)


def options_of(name: str, doc: str) -> argparse.Namespace:
    """Return what the command line of a study says."""
    parser = argparse.ArgumentParser(prog=f"python -m validation.{name}", description=doc.partition("\n")[0])
    parser.add_argument("--routers", type=int, default=1000, metavar="N", help="made-up routers (default: 1000)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of all that is drawn (default: 1)")
    options = parser.parse_args()
    if options.routers < 20:
        parser.error(f"--routers {options.routers}: at least 20 are needed")
    return options


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as text; the first column is words, the others are figures."""
    lines = (head, *rows)
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )
