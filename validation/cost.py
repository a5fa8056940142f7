"""Seconds of traffic that a verdict needs, and how often it is wrong, beside FD.io CSIT's MLRsearch at the same load.

On made-up routers whose capacity is drawn: nine of ten anywhere within 10 % of their SLA, one of ten at half of it. A
verdict is wrong if a router that is more than 1 % too slow passes, or one that is more than 1 % faster does not.
MLRsearch is stopped as soon as CSIT's own library has classified the SLA's load for its goal NDR (csit,
docs/content/methodology/measurements/data_plane_throughput/mlr_search.md: trials of 1 s, duration sum 21 s, loss ratio
0, exceed ratio 0.5, half a second between trials that counts).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from statistics import fmean, quantiles

from MLRsearch import MeasurementResult
from MLRsearch.target_spec import TargetSpec
from MLRsearch.target_stat import TargetStat

from lineproof.commands.main import finish
from lineproof.core.rule import Ruling
from lineproof.core.trial import Load

from .population import (
    Claim,
    Judged,
    PassShare,
    RouterKind,
    Rulings,
    claim,
    judge,
    options_of,
    print_claims,
    print_table,
    sla_of,
)

WITHIN, FAR_BELOW, ONE_IN = 0.10, 0.5, 10
"""Every n-th router has FAR_BELOW of its SLA as capacity; the others are spread evenly WITHIN it."""

EDGE = 0.01
MOST_SECONDS = {"standard": 7.3, "quick": 3.9}
"""The most mean seconds of traffic for a verdict, the warm-up included."""

MOST_WRONG, WRONG = 0.01, ("wrong PASS", "no PASS")
"""The largest share of INCONCLUSIVE verdicts, and of wrong ones of either kind."""


def ratio_of(seed: int, number: int) -> float:
    """Return capacity / SLA of router *number*."""
    if number % ONE_IN == 0:
        return FAR_BELOW
    return 1 + random.Random(f"{seed} {number} ratio").uniform(-WITHIN, WITHIN)


def mlrsearch(number: int, ratio: float, seed: int) -> Judged:
    """Return the verdict of FD.io CSIT's library: PASS if it calls the SLA's load a lower bound."""
    sla = sla_of(seed, number)
    router, load = RouterKind().router(sla, ratio, f"{seed} {number}"), Load(sla)
    target = TargetSpec(
        loss_ratio=0.0,
        exceed_ratio=0.5,
        trial_duration=1.0,
        duration_sum=21.0,
        # of the search for other loads
        discrete_width=None,
        expansion_coefficient=2,
        fail_fast=False,
        preceding=None,
    )
    stat = TargetStat(target)
    router.measure(load, 1.0)
    while True:
        row = router.measure(load, 1.0).directions[0]
        stat.add(MeasurementResult(1.0, load.pps, row.offered, row.lost, duration_with_overheads=1.5))
        optimistic, pessimistic = stat.estimates()
        if optimistic == pessimistic:
            return Judged(ratio, Ruling.PASS if optimistic else Ruling.FAIL, router.traffic)


def costs(routers: int, seed: int) -> dict[str, list[Judged]]:
    """Return the verdicts of each rule on the same routers."""
    rules: dict[str, Callable[[int, float], Judged]] = {
        "standard": lambda number, ratio: judge("standard", number, ratio, seed=seed),
        "quick": lambda number, ratio: judge("quick", number, ratio, seed=seed),
        "rfc2544": lambda number, ratio: judge("rfc2544", number, ratio, seed=seed),
        "MLRsearch at the SLA": lambda number, ratio: mlrsearch(number, ratio, seed),
    }
    ratios = [ratio_of(seed, number) for number in range(routers)]
    return {name: [rule(number, ratio) for number, ratio in enumerate(ratios)] for name, rule in rules.items()}


def wrong(judged: Sequence[Judged]) -> tuple[PassShare, PassShare]:
    """Return the wrong PASSes of slow routers, and the verdicts on fast ones that are no PASS."""
    slow = [one.ruling is Ruling.PASS for one in judged if one.ratio < 1 - EDGE]
    fast = [one.ruling is not Ruling.PASS for one in judged if one.ratio > 1 + EDGE]
    return PassShare(sum(slow), len(slow)), PassShare(sum(fast), len(fast))


def rows_of(found: dict[str, list[Judged]]) -> list[list[str]]:
    """Return a row for each rule."""
    rows = []
    for name, judged in found.items():
        parts = [[one.traffic for one in judged if (one.ruling is Ruling.PASS) is passed] for passed in (True, False)]
        high = quantiles((one.traffic for one in judged), n=20, method="inclusive")[-1]
        seconds = [fmean(one.traffic for one in judged), *(fmean(part) if part else 0.0 for part in parts)]
        shares = *wrong(judged), Rulings(tuple(judged)).share(Ruling.INCONCLUSIVE)
        rows.append([name, *(f"{s:.2f}" for s in seconds), f"{high:.0f}", *map(str, shares)])
    return rows


def claims(found: dict[str, list[Judged]]) -> list[Claim]:
    """Return what must hold of the goals."""
    claimed = []
    for goal, most in MOST_SECONDS.items():
        mean, shares = fmean(one.traffic for one in found[goal]), wrong(found[goal])
        claimed += [
            Claim(f"{goal}: {mean:.2f} s of traffic for a verdict, at most {most:g}", mean <= most, mean <= most),
            claim(f"{goal}: INCONCLUSIVE", Rulings(tuple(found[goal])).share(Ruling.INCONCLUSIVE), most=MOST_WRONG),
            *(claim(f"{goal}: {words}", share, most=MOST_WRONG) for words, share in zip(WRONG, shares, strict=True)),
        ]
    return claimed


def main() -> int:
    """Print the table; 1 if a claim does not hold, else 0."""
    options = options_of("cost", __doc__ or "")
    found = costs(options.routers, options.seed)
    title = f"Traffic per verdict, and wrong verdicts ({options.routers} routers)"
    head = ["rule", "traffic s", "of a PASS", "of others", "95 % within", *WRONG, "INCONCLUSIVE"]
    print_table(title, head, rows_of(found))
    return print_claims(claims(found), options.routers)


if __name__ == "__main__":
    finish(main)
