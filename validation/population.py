"""How the rule judges made-up routers: tables of those that it passes, and claims about them that can fail.

``python -m validation.population [--routers N] [--seed S] STUDY`` exits 1 if a claim does not hold. The studies are in
``population.yaml``: ``characteristic`` (by capacity, directions, noise, bursts; soaks, runs on three days),
``ordinary`` (what ordinary testbeds do to a verdict), ``percentiles`` (of latency).
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import yaml

from lineproof.commands.main import finish
from lineproof.core.deciding import TrialConditions, decide
from lineproof.core.latency import LatencyCount, Resolution
from lineproof.core.quantity import Promise
from lineproof.core.rule import Ruling
from lineproof.core.trial import DirectionCount, Load, Measure, Outcome, Tolerance, read_trial
from support.made_testbeds import CLEAN, LINE_PPS, goal_named, promised

from .made_up import Bed, Noise, Router, Testbed, watched

CONFIDENCE = 0.95
RATE = 5_000_000
"""Frames/s of the SLA."""
SPREAD = 0.02
"""SLAs lie within this ratio of the rate, so that no rule's steps lie well or badly by chance."""
LIMIT, LATENCY_LOAD = 100, 1_000_000
"""µs and frames/s of a sentence on latency."""


class Judged(NamedTuple):
    """One verdict on a router that is sound or not, and the seconds of traffic with the warm-up."""

    is_sound: bool
    ruling: Ruling
    traffic: float

    @property
    def words(self) -> frozenset[str]:
        """The words of a claim that are true of the verdict. One that is neither right nor wrong is INCONCLUSIVE."""
        good, bad = (Ruling.PASS, Ruling.FAIL) if self.is_sound else (Ruling.FAIL, Ruling.PASS)
        words = {good: "right", bad: "wrong"}
        return frozenset({self.ruling.value, words.get(self.ruling, "")})


class Share(NamedTuple):
    """*number* of *of* routers."""

    number: int
    of: int

    @property
    def ratio(self) -> float:
        """The share, 0..1; 0 of none."""
        return self.number / self.of if self.of else 0.0

    @property
    def bounds(self) -> tuple[float, float]:
        """The exact (Clopper-Pearson) confidence interval, 0..1; of none everything is possible."""
        if not self.of:
            return 0.0, 1.0
        from scipy.stats import binomtest  # takes a second

        interval = binomtest(self.number, self.of).proportion_ci(CONFIDENCE, method="exact")
        return float(interval.low), float(interval.high)

    def __str__(self) -> str:
        return f"{100 * self.ratio:.4g} %" if self.of else "–"


def share(judged: Iterable[Judged], word: str) -> Share:
    """Return how many verdicts are ``PASS``, ``FAIL``, ``INCONCLUSIVE``, ``right`` or ``wrong``."""
    matches = [word in one.words for one in judged]
    return Share(sum(matches), len(matches))


def sla_of(seed: int, number: int) -> int:
    """Return the frames/s of router *number*."""
    return round(RATE * (1 + random.Random(f"{seed} {number} sla").uniform(-SPREAD, SPREAD)))


@cache
def _promise(goal: str, words: str) -> Promise:
    return promised(f"64b unidirectional {words}", goal)


def after_warm_up(promise: Promise, measure: Measure, is_sound: bool) -> Judged:
    """Return what the rule says of a testbed that was warmed up."""
    warm_up = read_trial(0, measure(Load(promise.load_pps), promise.goal.warm_up), Tolerance())
    decision = decide(promise, measure, TrialConditions(), LINE_PPS, warm_up)
    traffic = promise.goal.warm_up + sum(trial.seconds.low for trial in decision.trials)
    return Judged(is_sound, decision.ruling or Ruling.INCONCLUSIVE, traffic)


def noisy(
    seed: int, number: int, goal: str, ratio: float, directions: int = 1, time: str = "", runs: int = 1, **noise: Any
) -> Judged:
    """Return the verdict on router *number* with *ratio* of its SLA. *time*: "for 10 min"; *runs*: all must pass."""
    sla = sla_of(seed, number)
    router = Router(sla * ratio, f"{seed} {number}", Noise(**noise), directions)
    promise = replace(_promise(goal, f"≥ {RATE} pps {time}"), load_pps=float(sla), own=CLEAN)
    judged = after_warm_up(promise, router.measure, ratio >= 1)
    for _ in range(1, runs):
        if judged.ruling is Ruling.PASS:
            router.begin_run()
            judged = after_warm_up(promise, router.measure, ratio >= 1)
    return judged._replace(traffic=router.traffic)


def on_testbed(seed: int, number: int, goal: str, ratio: float, directions: int = 1, **bed: Any) -> Judged:
    """Return the verdict on a router of capacity / SLA *ratio* whose testbed has faults."""
    name, faults = f"{seed} {number}", Bed(**bed)
    own = watched(name, faults, goal_named(goal).final_trial_duration)
    testbed = Testbed(name, Router(RATE * ratio, name, Noise(), directions), faults)
    return after_warm_up(replace(_promise(goal, f"≥ {RATE} pps"), own=own), testbed.measure, ratio >= 1)


def late_frames(seed: int, number: int, goal: str, ratio: float, percentile: int, probes: int) -> Judged:
    """Return the verdict on a percentile of latency. *ratio*: frames beyond the limit / those that may be."""
    import numpy as np

    draw = np.random.default_rng((seed, number))

    def measure(load: Load, seconds: float) -> Outcome:
        frames, sent = round(load.pps * seconds), round(probes * seconds)
        slow = int(draw.binomial(sent, ratio * (1 - percentile / 100)))
        histogram = {LIMIT // 2: sent - slow, 2 * LIMIT: slow}
        count = LatencyCount(0, 1, sent, sent, 60.0, 200.0, 50.0, histogram, resolution=Resolution.THREE_DIGITS)
        return Outcome(load, seconds, seconds, 0.0, (DirectionCount(0, 1, frames, frames, frames),), latency=(count,))

    words = f"latency p{percentile} ≤ {LIMIT} µs at {LATENCY_LOAD} pps"
    return after_warm_up(_promise(goal, words), measure, ratio < 1)


JUDGES: Mapping[str, Callable[..., Judged]] = {one.__name__: one for one in (noisy, on_testbed, late_frames)}


@dataclass(frozen=True)
class Table:
    """A table of the file: rows and columns by name, each with the arguments of *judge* that it stands for.

    Several mappings in place of one are all their combinations. ``one_in``: of the routers asked for, one in so many.
    ``shown``: the words whose shares are in a cell. ``traffic``: columns of which the mean seconds are shown.
    """

    title: str
    judge: str
    rows: Sequence[Mapping[str, Mapping[str, Any]]]
    columns: Sequence[Mapping[str, Mapping[str, Any]]]
    one_in: int = 1
    shown: Sequence[str] = ("PASS",)
    traffic: Sequence[str] = ()

    def judged(self, routers: int, seed: int) -> dict[tuple[str, str], list[Judged]]:
        """Judge the routers of each cell, and print the table."""
        number, cells = max(20, routers // self.one_in), {}
        columns = list(combined(self.columns))
        lines = []
        for row, of_row in combined(self.rows):
            for column, of_column in columns:
                arguments = {**of_row, **of_column}
                cells[row, column] = [JUDGES[self.judge](seed, one, **arguments) for one in range(number)]
            seconds = (fmean(one.traffic for one in cells[row, column]) for column in self.traffic)
            lines.append(
                [row, *(self._cell(cells[row, name]) for name, _ in columns), *(f"{mean:.1f} s" for mean in seconds)]
            )
        head = ["", *(name for name, _ in columns), *(f"traffic, {column}" for column in self.traffic)]
        print_table(f"{self.title}, {number} of each: {', '.join(self.shown)}", head, lines)
        return cells

    def _cell(self, judged: Sequence[Judged]) -> str:
        shares = ", ".join(str(share(judged, word)) for word in self.shown)
        undecided = share(judged, Ruling.INCONCLUSIVE.value)
        return f"{shares} ({undecided} INCONCLUSIVE)" if undecided.number and len(self.shown) == 1 else shares


def combined(axes: Sequence[Mapping[str, Mapping[str, Any]]]) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yield each combination of one entry of every mapping: its name and its arguments."""
    for parts in product(*(axis.items() for axis in axes)):
        arguments = {key: value for _, given in parts for key, value in given.items()}
        yield ", ".join(name for name, _ in parts if name), arguments


class Claim(NamedTuple):
    """A claim with its figures. *good*: by the figures, *shown*: by the bounds of their intervals."""

    text: str
    good: bool
    shown: bool


def claim(text: str, of: Share, least: float = 0.0, most: float = 1.0) -> Claim:
    """Return the claim that a share is at least, or at most, so much."""
    low, high = of.bounds
    wanted = f"at least {100 * least:g} %" if least else f"at most {100 * most:g} %"
    return Claim(f"{text}: {of}, {wanted}", least <= of.ratio <= most, low >= least and high <= most)


def claim_of(
    cells: Mapping[tuple[str, str, str], Sequence[Judged]],
    about: Sequence[str],
    word: str,
    rows: Sequence[str] = (),
    columns: str = "",
    mean: bool = False,
    **bounds: float,
) -> Claim:
    """Return a claim of the file: on the worst of its cells, or on all together (*mean*).

    *about*: tables. *rows*: all if there is none. *columns*: how the names of these begin.
    """
    chosen = [
        judged
        for (table, row, column), judged in cells.items()
        if table in about and column.startswith(columns) and (not rows or row in rows)
    ]
    shares = [share(judged, word) for judged in chosen]
    worst = (min if "least" in bounds else max)(shares, key=lambda one: one.ratio)
    text = f"{', '.join(part for part in (*about, columns, *rows) if part)}: {word}"
    if mean:
        text += f", {worst} in the worst of {len(shares)}, of all"
        worst = Share(sum(one.number for one in shares), sum(one.of for one in shares))
    return claim(text, worst, **bounds)


def print_claims(claims: Sequence[Claim], routers: int) -> int:
    """Print what became of each claim; the exit status: 1 if one does not hold, else 0."""
    for one in claims:
        kept = "kept" if one.shown else f"not shown with {routers} routers"
        print(f"{one.text}: {kept if one.good else 'NOT KEPT'}")
    return int(not all(one.good for one in claims))


def print_table(title: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """Print a table below its *title*; the first column is words, the others are figures."""
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    print(f"{title}\n")
    for first, *others in (head, *lines):
        print("  ".join([first.ljust(widths[0]), *map(str.rjust, others, widths[1:])]))
    print(flush=True)


def options_of(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Return what the command line of a study says."""
    parser.add_argument("--routers", type=int, default=1000, metavar="N", help="made-up routers (default: 1000)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of all that is drawn (default: 1)")
    options = parser.parse_args()
    if options.routers < 20:
        parser.error(f"--routers {options.routers}: at least 20 are needed")
    return options


def main() -> int:
    """Print the tables of a study; 1 if a claim does not hold, else 0."""
    studies = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))["studies"]
    parser = argparse.ArgumentParser(
        prog="python -m validation.population", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("study", choices=studies, metavar="STUDY", help=", ".join(studies))
    options = options_of(parser)
    study = studies[options.study]
    cells = {
        (name, *place): judged
        for name, table in study["tables"].items()
        for place, judged in Table(name, **table).judged(options.routers, options.seed).items()
    }
    return print_claims([claim_of(cells, **one) for one in study["claims"]], options.routers)


if __name__ == "__main__":
    finish(main)
