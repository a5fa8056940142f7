"""Seconds of traffic that a verdict needs, beside FD.io CSIT's MLRsearch at the same load and beside Wald's bound.

On made-up routers whose capacity is drawn: nine of ten anywhere within 10 % of their SLA, one of ten at half of it. A
verdict is wrong if a router that is more than 1 % too slow passes, or one that is more than 1 % faster does not.
MLRsearch is stopped as soon as CSIT's own library has classified the SLA's load for its goal NDR (csit,
docs/content/methodology/measurements/data_plane_throughput/mlr_search.md: trials of 1 s, duration sum 21 s, loss ratio
0, exceed ratio 0.5, half a second between trials that counts).
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Sequence
from functools import partial
from statistics import fmean, quantiles

from MLRsearch import MeasurementResult
from MLRsearch.target_spec import TargetSpec
from MLRsearch.target_stat import TargetStat

from lineproof.commands.main import finish
from lineproof.core.rule import Ruling, Shares
from lineproof.core.trial import Load
from support.made_testbeds import goal_named

from .made_up import Noise, Router
from .population import Claim, Judged, Share, claim, noisy, options_of, print_claims, print_table, share, sla_of

WITHIN, FAR_BELOW, ONE_IN = 0.10, 0.5, 10
"""Every n-th router has FAR_BELOW of its SLA as capacity; the others are spread evenly WITHIN it."""
EDGE = 0.01
MOST_SECONDS = {"standard": 7.3, "quick": 3.9}
"""The most mean seconds of traffic for a verdict, the warm-up included."""
MOST_WRONG, WRONG = 0.01, ("wrong PASS", "no PASS")
"""The largest share of INCONCLUSIVE verdicts, and of wrong ones of either kind."""
MOST_OF_WALD = 1.1


def ratio_of(seed: int, number: int) -> float:
    """Return capacity / SLA of router *number*."""
    if number % ONE_IN == 0:
        return FAR_BELOW
    return 1 + random.Random(f"{seed} {number} ratio").uniform(-WITHIN, WITHIN)


def mlrsearch(seed: int, number: int, ratio: float) -> Judged:
    """Return the verdict of FD.io CSIT's library: PASS if it calls the SLA's load a lower bound."""
    sla = sla_of(seed, number)
    router, load = Router(sla * ratio, f"{seed} {number}", Noise()), Load(sla)
    of_searches = {"discrete_width": None, "expansion_coefficient": 2, "fail_fast": False, "preceding": None}
    target = TargetSpec(loss_ratio=0.0, exceed_ratio=0.5, trial_duration=1.0, duration_sum=21.0, **of_searches)
    stat = TargetStat(target)
    router.measure(load, 1.0)
    while True:
        row = router.measure(load, 1.0).directions[0]
        stat.add(MeasurementResult(1.0, load.pps, row.offered, row.lost, duration_with_overheads=1.5))
        optimistic, pessimistic = stat.estimates()
        if optimistic == pessimistic:
            return Judged(ratio >= 1, Ruling.PASS if optimistic else Ruling.FAIL, router.traffic)


def wrong(judged: Sequence[Judged], ratios: Sequence[float]) -> tuple[Share, Share]:
    """Return the wrong PASSes of slow routers, and the verdicts on fast ones that are no PASS."""
    passed = [one.ruling is Ruling.PASS for one in judged]
    slow = [is_pass for is_pass, ratio in zip(passed, ratios, strict=True) if ratio < 1 - EDGE]
    fast = [not is_pass for is_pass, ratio in zip(passed, ratios, strict=True) if ratio > 1 + EDGE]
    return Share(sum(slow), len(slow)), Share(sum(fast), len(fast))


def line_of(name: str, judged: Sequence[Judged], ratios: Sequence[float]) -> list[str]:
    """Return the line of a rule in the table."""
    seconds = [one.traffic for one in judged]
    parts = [[one.traffic for one in judged if (one.ruling is Ruling.PASS) is passed] for passed in (True, False)]
    means = [fmean(seconds), *(fmean(part) if part else 0.0 for part in parts)]
    high = quantiles(seconds, n=20, method="inclusive")[-1]
    shares = *wrong(judged, ratios), share(judged, "INCONCLUSIVE")
    return [name, *(f"{mean:.2f}" for mean in means), f"{high:.0f}", *map(str, shares)]


def claims_of(goal: str, judged: Sequence[Judged], ratios: Sequence[float]) -> list[Claim]:
    """Return what must hold of *goal*."""
    mean, most = fmean(one.traffic for one in judged), MOST_SECONDS[goal]
    return [
        Claim(f"{goal}: {mean:.2f} s of traffic for a verdict, at most {most:g}", mean <= most, mean <= most),
        claim(f"{goal}: INCONCLUSIVE", share(judged, "INCONCLUSIVE"), most=MOST_WRONG),
        *(claim(f"{goal}: {kind}", of, most=MOST_WRONG) for kind, of in zip(WRONG, wrong(judged, ratios), strict=True)),
    ]


def exact(shares: Shares, share: float) -> tuple[float, float, float]:
    """Return the shares of PASS and FAIL, and the mean trials, of one direction.

    *share*: of its trials that miss. By the evidence alone (sentence 4 of the rule), without the loss of all trials
    together.
    """
    up, down = shares.kept_weight(), shares.missed_weight()
    enough = math.log(1 / shares.risk)
    states, passed, failed, mean = {0: 1.0}, 0.0, 0.0, 0.0  # bad trials so far: probability
    for trials in range(1, shares.budget + 1):
        following: dict[int, float] = {}
        for before, weight in states.items():
            for bad, chance in ((before, 1 - share), (before + 1, share)):
                evidence, part = (trials - bad) * up - bad * down, weight * chance
                if evidence >= enough:
                    passed, mean = passed + part, mean + part * trials
                elif -evidence >= enough:
                    failed, mean = failed + part, mean + part * trials
                elif trials == shares.budget:
                    mean += part * trials
                else:
                    following[bad] = following.get(bad, 0.0) + part
        states = following
    return passed, failed, mean


def wald(sound: float, wrong_fail: float, slow: float, wrong_pass: float) -> tuple[float, float]:
    """Return the fewest mean trials of a test with these errors, of a sound and a slow router (Wald, 1945)."""

    def distance(x: float, y: float) -> float:
        x, y = min(max(x, 1e-12), 1 - 1e-12), min(max(y, 1e-12), 1 - 1e-12)
        return x * math.log(x / y) + (1 - x) * math.log((1 - x) / (1 - y))

    return (
        distance(wrong_fail, 1 - wrong_pass) / distance(sound, slow),
        distance(wrong_pass, 1 - wrong_fail) / distance(slow, sound),
    )


def beside_wald(goal: str) -> tuple[list[str], Claim]:
    """Return the line of *goal* in the table of mean trials, and that these are few enough."""
    shares = goal_named(goal).shares()
    passed, _, sound = exact(shares, shares.good_share)
    _, right, slow = exact(shares, shares.bad_share)
    # a test that may be wrong as often as this one is, INCONCLUSIVE ones counted as wrong
    bounds = wald(shares.good_share, 1 - passed, shares.bad_share, 1 - right)
    ratio = max(sound / bounds[0], slow / bounds[1])
    is_kept = ratio <= MOST_OF_WALD
    text = f"{goal}: {ratio:.3f} of Wald's bound, at most {MOST_OF_WALD:g}"
    return [goal, *(f"{mean:.2f}" for mean in (sound, bounds[0], slow, bounds[1]))], Claim(text, is_kept, is_kept)


def main() -> int:
    """Print the tables; 1 if a claim does not hold, else 0."""
    summary = (__doc__ or "").splitlines()[0]
    options = options_of(argparse.ArgumentParser(prog="python -m validation.cost", description=summary))
    goals = ("standard", "quick", "rfc2544")
    rules: dict[str, Callable[..., Judged]] = {goal: partial(noisy, goal=goal) for goal in goals}
    rules["MLRsearch at the SLA"] = mlrsearch
    ratios = [ratio_of(options.seed, number) for number in range(options.routers)]
    judged = {
        name: [rule(options.seed, number, ratio=ratio) for number, ratio in enumerate(ratios)]
        for name, rule in rules.items()
    }
    head = ["rule", "traffic s", "of a PASS", "of others", "95 % within", *WRONG, "INCONCLUSIVE"]
    lines = [line_of(name, verdicts, ratios) for name, verdicts in judged.items()]
    print_table(f"Traffic per verdict, and wrong verdicts ({options.routers} routers)", head, lines)
    wald_lines, wald_claims = zip(*map(beside_wald, MOST_SECONDS), strict=True)
    title = "Mean trials of one direction at the goal's own two shares, and Wald's bound"
    print_table(title, ["goal", "good share", "bound", "bad share", "bound"], wald_lines)
    claims = [one for goal in MOST_SECONDS for one in claims_of(goal, judged[goal], ratios)]
    return print_claims([*claims, *wald_claims], options.routers)


if __name__ == "__main__":
    finish(main)
