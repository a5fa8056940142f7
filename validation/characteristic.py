"""How often the rule passes a router, by its true capacity, and what it costs beside Wald's bound.

The claims at the end can fail (exit status 1): ``standard`` and ``quick`` are as sharp as their page says, few verdicts
are INCONCLUSIVE, and no test needs much fewer trials. Where the noise is another one, tables say what is left of that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import product

from lineproof.commands.main import finish
from lineproof.core.rule import Ruling, Shares

from .noisy_router import DIP_EVERY, STUTTER_EVERY
from .population import (
    NOISE,
    Claim,
    RouterKind,
    Rulings,
    claim,
    goals,
    highest,
    lowest,
    options_of,
    print_claims,
    print_table,
    rulings,
)

GRID = (-0.03, -0.02, -0.01, -0.005, -0.0025, -0.0016, 0.0, 0.0025, 0.005, 0.0075, 0.01, 0.02, 0.03)
"""Capacity / SLA - 1."""

DIPS = f"10 % slower in 1 of {DIP_EVERY} trials"
NOISES = {
    "as assumed": NOISE,
    "correlated from trial to trial (0.9)": replace(NOISE, correlation=0.9),
    "each run differs by 0.3 %": replace(NOISE, run=0.003),
    "each run differs by 0.5 %": replace(NOISE, run=0.005),
    "falls by 1 % in the first minute": replace(NOISE, fall=0.01),
    "two levels 2 % apart, for 2 min each": replace(NOISE, step=0.02),
    DIPS: replace(NOISE, dip=0.10),
    "a burst exactly every 10 s": replace(NOISE, every=10.0, periodic=True),
    "a burst exactly every 3 s": replace(NOISE, every=3.0, periodic=True),
    "generator sends 0.15 % less": replace(NOISE, unsent=0.0015),
    f"generator sends 1 % less in every {STUTTER_EVERY}th trial": replace(NOISE, stutter=0.01),
}
"""Capacity is what the router settles at: the lower one of two levels, and where a falling one ends."""

SOAK, DAYS = " for 10 min", 3
CORNERS = (-0.01, 0.0, 0.005, 0.01)
"""Capacity / SLA - 1 of the tables that take long."""
INTERVALS = (2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 200.0)
"""Seconds between the bursts that a fast enough router loses."""

MOST_OF_WALD = 1.1

Edges = Mapping[tuple[str, int, float], tuple[Rulings, Rulings]]
"""By goal, directions and noise: the verdicts at -1 % and +1 %."""


def exact(shares: Shares, share: float) -> tuple[float, float, float]:
    """Return the shares of PASS and FAIL and the mean trials of one direction whose trials miss with this *share*.

    By the evidence alone (sentence 4 of the rule), without the loss of all trials together.
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
    """Return the fewest mean trials of any test with these errors, of the sound and of the slow router (Wald, 1945)."""

    def distance(x: float, y: float) -> float:
        x, y = min(max(x, 1e-12), 1 - 1e-12), min(max(y, 1e-12), 1 - 1e-12)
        return x * math.log(x / y) + (1 - x) * math.log((1 - x) / (1 - y))

    return (
        distance(wrong_fail, 1 - wrong_pass) / distance(sound, slow),
        distance(wrong_pass, 1 - wrong_fail) / distance(slow, sound),
    )


def wald_rows() -> list[tuple[str, tuple[float, float, float, float], float]]:
    """Return of each goal its mean trials and Wald's bound at its two shares, and the worse ratio of both."""
    found = []
    for goal in goals():
        shares = goal.shares()
        passed, _, sound = exact(shares, shares.good_share)
        _, right, slow = exact(shares, shares.bad_share)
        # a test that may be wrong as often as this one is, INCONCLUSIVE ones counted as wrong
        least = wald(shares.good_share, 1 - passed, shares.bad_share, 1 - right)
        found.append((goal.goal, (sound, least[0], slow, least[1]), max(sound / least[0], slow / least[1])))
    return found


def edges(routers: int, seed: int) -> Edges:
    """Return the verdicts 1 % beside the SLA, for directions and noise."""
    return {
        (goal, ways, sigma): tuple(  # type: ignore[misc]
            rulings(goal, ratio, routers, RouterKind(replace(NOISE, capacity=sigma), ways), seed)
            for ratio in (0.99, 1.01)
        )
        for goal, ways, sigma in product(("standard", "quick"), (1, 2, 4, 8), (0.003, 0.006))
    }


def claims(
    found: Edges, at: Mapping[tuple[str, float], Rulings], bursts: Rulings, soaks: Mapping[str, Rulings]
) -> list[Claim]:
    """Return what must hold."""
    claimed = []
    for goal in ("standard", "quick"):
        of_goal = [pair for key, pair in found.items() if key[0] == goal]
        slow, fast = ([pair[edge] for pair in of_goal] for edge in (0, 1))
        where = f"{goal}, 1 to 8 directions, noise 0.3 and 0.6 %, the worst of {len(of_goal)}"
        claimed += [
            claim(f"{where}, +1 %, PASS", lowest(one.share(Ruling.PASS) for one in fast), least=0.99),
            claim(f"{where}, -1 %, PASS", highest(one.share(Ruling.PASS) for one in slow), most=0.01),
            claim(f"{where}, ±1 %, open", highest(one.share(Ruling.INCONCLUSIVE) for one in slow + fast), most=0.01),
        ]
    claimed += [
        claim("standard at the SLA, PASS", at["standard", 0.0].share(Ruling.PASS), most=0.05),
        claim("standard, +0.5 %, PASS", at["standard", 0.005].share(Ruling.PASS), least=0.99),
        claim("standard, +5 %, a burst each 10 s, PASS", bursts.share(Ruling.PASS), least=0.98),
        claim("quick, -0.16 %, PASS", at["quick", -0.0016].share(Ruling.PASS), most=0.05),
        claim(f"standard{SOAK}, +1 %, PASS", soaks["+1 %"].share(Ruling.PASS), least=0.95),
        claim(f"standard{SOAK}, -1 %, FAIL", soaks["-1 %"].share(Ruling.FAIL), least=0.99),
        claim(f"standard{SOAK}, {DIPS}, PASS", soaks["dips"].share(Ruling.PASS), most=0.01),
    ]
    for goal, _, ratio in wald_rows():
        is_kept = ratio <= MOST_OF_WALD
        claimed.append(Claim(f"{goal}: {ratio:.3f} of Wald's bound, at most {MOST_OF_WALD:g}", is_kept, is_kept))
    return claimed


def main() -> int:
    """Print the tables; 1 if a claim does not hold, else 0."""
    options = options_of("characteristic", __doc__ or "")
    routers, seed = options.routers, options.seed
    fewer, half = max(20, routers // 5), max(20, routers // 2)

    near = edges(half, seed)
    rows = [
        [
            f"{ways}, {100 * sigma:.1f} %",
            *(str(part) for goal in ("standard", "quick") for part in near[goal, ways, sigma]),
        ]
        for ways, sigma in product((1, 2, 4, 8), (0.003, 0.006))
    ]
    head = ["directions, noise", *(f"{goal} {edge} %" for goal in ("standard", "quick") for edge in ("-1", "+1"))]
    print_table(f"Routers passed 1 % beside the SLA, {half} of each", head, rows)
    names = "standard", "quick", "rfc2544"
    at = {(goal, offset): rulings(goal, 1 + offset, routers, seed=seed) for goal in names for offset in GRID}
    rows = [[f"{100 * offset:+g} %", *(str(at[goal, offset]) for goal in names)] for offset in GRID]
    print_table("Routers passed by capacity", ["capacity / SLA", *names], rows)
    bursts = {
        (goal, every): rulings(goal, 1.05, routers, RouterKind(replace(NOISE, every=every)), seed)
        for goal, every in product(names, INTERVALS)
    }
    rows = [[f"{every:g} s", *(str(bursts[goal, every]) for goal in names)] for every in INTERVALS]
    print_table("Routers passed at +5 % that lose a burst", ["every", *names], rows)
    few = max(20, routers // 20)
    once, often = [("", 1, "")], [(SOAK, 1, f",{SOAK}"), ("", DAYS, f", on {DAYS} days")]
    slow_ones = [*NOISES][:2] + [*NOISES][3:7]
    for title, number, shown, asked in (
        ("Other noise", fewer, [*NOISES], once),
        ("Asked for more", few, slow_ones, often),
    ):
        rows = []
        for noise, (time, runs, words) in product(shown, asked):
            kind = RouterKind(NOISES[noise])
            cells = [str(rulings("standard", 1 + offset, number, kind, seed, time, runs)) for offset in CORNERS]
            rows.append([f"{noise}{words}", *cells])
        head = ["noise", *(f"{100 * offset:+g} %" for offset in CORNERS)]
        print_table(f"{title}: routers passed by standard, {number} of each", head, rows)
    trials = [[goal, *(f"{figure:.2f}" for figure in figures)] for goal, figures, _ in wald_rows()]
    title = "Mean trials of one direction at the goal's own two shares, and Wald's bound"
    print_table(title, ["goal", "good share", "bound", "bad share", "bound"], trials)
    soaks = {
        "+1 %": rulings("standard", 1.01, few, seed=seed, time=SOAK),
        "-1 %": rulings("standard", 0.99, few, seed=seed, time=SOAK),
        "dips": rulings("standard", 1.05, few, RouterKind(NOISES[DIPS]), seed, SOAK),
    }
    return print_claims(claims(near, at, bursts["standard", 10.0], soaks), routers)


if __name__ == "__main__":
    finish(main)
