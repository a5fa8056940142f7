"""How often a percentile of latency is judged right, by how many frames are late and how many probe frames a trial has.

The claims at the end can fail (exit status 1): at most 5 % wrong anywhere; with 2000 probe frames a trial ``standard``
is right of 90 % where the share of late frames is 20 % from the limit's, with 10 000 of 95 % at 10 %; ``quick`` of 65 %
and 75 %. The others are INCONCLUSIVE.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from lineproof.commands.main import finish
from lineproof.core.latency import LatencyCount, Resolution
from lineproof.core.rule import Ruling
from lineproof.core.trial import DirectionCount, Load, Outcome
from support.made_testbeds import promised

from .population import (
    Claim,
    Judged,
    PassShare,
    Rulings,
    after_warm_up,
    claim,
    highest,
    lowest,
    options_of,
    print_claims,
    print_table,
)

LIMIT, LOAD = 100, 1_000_000
"""µs and frames/s of the sentence."""

GRID = (0.5, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 2.0)
"""Share of late frames / the limit's: 1 is 1 % of the frames for p99."""

PROBES = (("p90", 1000), ("p99", 2000), ("p99", 10_000))
"""Percentiles, and probe frames of a trial; a sentence sends the fewest of each."""

CLAIMED = ((2000, 0.2, {"standard": 0.90, "quick": 0.65}), (10_000, 0.1, {"standard": 0.95, "quick": 0.75}))
"""Probe frames of a trial, distance from the limit's share, and the verdicts that are right at least."""


def judge(goal: str, percentile: str, probes: int, late: float, seed: Sequence[int]) -> Judged:
    """Return the verdict on a router of which the share *late* of the frames takes longer than the limit."""
    draw = np.random.default_rng(seed)

    def measure(load: Load, seconds: float) -> Outcome:
        frames, sent = round(load.pps * seconds), round(probes * seconds)
        slow = int(draw.binomial(sent, late))
        rows = {LIMIT // 2: sent - slow, 2 * LIMIT: slow}
        fine = Resolution.THREE_DIGITS
        count = LatencyCount(0, 1, sent, sent, 60.0, 200.0, 50.0, rows, resolution=fine)
        return Outcome(load, seconds, seconds, 0.0, (DirectionCount(0, 1, frames, frames, frames),), latency=(count,))

    promise = promised(f"64b unidirectional latency {percentile} ≤ {LIMIT} µs at {LOAD} pps", goal)
    return after_warm_up(promise, measure, late)


def claims(found: Mapping[tuple[str, str, int, float], Rulings]) -> list[Claim]:
    """Return what must hold."""
    claimed = []
    for goal in ("standard", "quick"):
        wrong = highest(_wrong(rulings, key[-1]) for key, rulings in found.items() if key[0] == goal)
        claimed.append(claim(f"{goal}, wrong at the worst share of late frames", wrong, most=0.05))
        for probes, distance, least in CLAIMED:
            near = ((found[goal, "p99", probes, 1 + way * distance], 1 + way) for way in (-1, 1))
            words = f"{goal}, {probes} probe frames, right {100 * distance:g} % beside the limit"
            claimed.append(claim(words, lowest(_right(rulings, ratio) for rulings, ratio in near), least[goal]))
    return claimed


def _right(rulings: Rulings, ratio: float) -> PassShare:
    return rulings.share(Ruling.PASS if ratio < 1 else Ruling.FAIL)


def _wrong(rulings: Rulings, ratio: float) -> PassShare:
    return rulings.share(Ruling.FAIL if ratio < 1 else Ruling.PASS)


def main() -> int:
    """Print the tables; 1 if a claim does not hold, else 0."""
    options = options_of("percentiles", __doc__ or "")
    found = {
        (goal, percentile, probes, ratio): Rulings(
            tuple(
                judge(goal, percentile, probes, ratio * (1 - float(percentile[1:]) / 100), (options.seed, number))
                for number in range(options.routers)
            )
        )
        for goal, (percentile, probes), ratio in product(("standard", "quick"), PROBES, GRID)
    }
    for goal in ("standard", "quick"):
        head = ["late frames / the limit's", *(f"{percentile}, {probes}" for percentile, probes in PROBES)]
        rows = [[f"{ratio:g}", *(_cell(found[goal, *column, ratio], ratio) for column in PROBES)] for ratio in GRID]
        print_table(f"{goal}: right, wrong", head, rows)
    return print_claims(claims(found), options.routers)


def _cell(rulings: Rulings, ratio: float) -> str:
    return f"{_right(rulings, ratio)}, {_wrong(rulings, ratio)}"


if __name__ == "__main__":
    finish(main)
