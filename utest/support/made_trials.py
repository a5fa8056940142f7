"""Made-up trials with a figure for every quantity, and runs of them as Hypothesis or a seed picks them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from hypothesis import strategies as st

from lineproof.core.bounds import Bounds
from lineproof.core.deciding import Asked
from lineproof.core.doubts import OwnPart, with_doubts
from lineproof.core.goal import Goal
from lineproof.core.latency import LatencyCount
from lineproof.core.packet_cost import PacketCost, cost_readings
from lineproof.core.quantity import Promise
from lineproof.core.rule import Ruling
from lineproof.core.trial import DirectionCount, Fault, Load, Outcome, Problem, Trial
from support.made_testbeds import CLEAN, goal_named, promised

FRAMES = 100_000
"""Frames of each direction in a trial of 1 s."""

IDLE_WATTS = 6.0
"""The power that a router draws for each direction without traffic, in W."""

SENTENCES = {
    "throughput": ("≥ 100 kpps",),
    "loses": ("loses ≤ 0.1% at 100 kpps", "loses ≤ 5% at 100 kpps"),
    "forwards": ("forwards ≥ 95 kpps at 100 kpps", "forwards ≥ 95 kpps"),
    "cycles": ("costs ≤ 450 cycles/packet", "costs ≤ 450 cycles/packet at 100 kpps"),
    "gathers": ("gathers ≥ 200 vectors/call", "gathers ≥ 200 vectors/call at 100 kpps"),
    "energy": ("costs ≤ 100 µJ/packet", "costs ≤ 40 µJ/packet above idle at 100 kpps"),
    "latency": tuple(f"latency {name} ≤ 100 µs at 100 kpps" for name in ("p50", "p99", "max", "mean")),
    "pdv": tuple(f"pdv {name} ≤ 100 µs at 100 kpps" for name in ("p90", "max", "mean")),
    "recovers": ("recovers in ≤ 2 s",),
    "reorders": ("reorders ≤ 1% at 100 kpps",),
}
"""Sentences of every quantity, by name."""

LOSSY, UNWATCHED = OwnPart(trials=30, lossy=8, most_lost=40), OwnPart()


@dataclass(frozen=True)
class Way:
    """One direction of a trial. ``late`` of 1000 probe frames need 500 µs or more; ``recovery`` s."""

    offered: int = FRAMES
    lost: int = 0
    foreign: int = 0
    backlog: int = 0
    late: int = 0
    probes_lost: int = 0
    copies: int = 0
    disorder: int = 0
    recovery: tuple[float, float] = (0.4, 0.5)
    slower: int = 0

    def probes(self, tx_port: int, rx_port: int) -> LatencyCount:
        early = max(0, 1000 - self.late - self.probes_lost) + self.copies
        histogram = {10 if not self.slower else 200: early, 500 if not self.slower else 900: self.late}
        received = sum(histogram.values())
        return LatencyCount(tx_port, rx_port, 1000, received, 15.0, 1000.0, 10.0, histogram, self.disorder, self.copies)


@dataclass(frozen=True)
class Made:
    """One trial: its ways, its problems (indexes of ways in place of ports), and what else was read."""

    ways: tuple[Way, ...]
    problems: tuple[tuple[Fault, float | None, tuple[int, ...], float], ...] = ()
    seconds: tuple[float, float] = (1.0, 1.0)
    watts: float = 9.0
    watts_error: float = 0.1
    cycles: float = 400.0
    vectors: float = 250.0
    order: tuple[int, ...] = field(default=())
    """The place of each way; empty: as they stand."""

    def trial(self, number: int = 1) -> Trial:
        """Return it as the product sees it."""
        outcome = self.outcome(Load(FRAMES), 1.0)
        return Trial(number, outcome, outcome.problems, Bounds(*self.seconds))

    def outcome(self, load: Load, seconds: float) -> Outcome:
        """Return what is measured at *load* for so many *seconds*: its frames are shares of those."""
        order, scale = self.order or tuple(range(len(self.ways))), load.pps * seconds / FRAMES
        ports = [(place, place + 8) for place in order]
        rows, probes, readings = [], [], {"timed": 1.0, **self._figures(len(self.ways))}
        for place, index in enumerate(sorted(range(len(self.ways)), key=lambda index: order[index])):
            way, ends = self.ways[index], ports[index]
            counts = (way.offered, max(0, way.offered - way.lost), way.backlog, way.foreign)
            offered, came, held, foreign = (round(scale * count) for count in counts)
            rows.append(DirectionCount(*ends, round(scale * FRAMES), offered, came, backlog=held, foreign=foreign))
            probes.append(way.probes(*ends))
            readings |= {f"overload_loss.{place}": 0.3, f"control_loss.{place}": 0.0, f"lost_late.{place}": 1e4}
            readings |= {f"recovery_low_s.{place}": way.recovery[0], f"recovery_high_s.{place}": way.recovery[1]}
        problems = tuple(
            Problem(fault, "made up", frames, tuple(ports[way] for way in ways), delay)
            for fault, frames, ways, delay in self.problems
        )
        low, high = self.seconds
        readings["elapsed_uncertainty"] = seconds * (high - low) / 2
        elapsed = seconds * (low + high) / 2
        return Outcome(load, seconds, elapsed, 0.0, tuple(rows), problems, readings, tuple(probes))

    def _figures(self, ways: int) -> dict[str, float]:
        packets = FRAMES * ways
        cost = PacketCost(
            "vpp_wk_0", packets, packets, self.cycles * packets, 0.0, packets, round(packets / self.vectors)
        )
        power = {"power_watts": self.watts * ways, "power_uncertainty_watts": self.watts_error * ways}
        idle = {"idle_power_watts": IDLE_WATTS * ways, "power_above_idle_uncertainty_watts": self.watts_error * ways}
        return {**power, **idle, **cost_readings([cost])}


BAD = {
    "lossy": Made((Way(lost=40_000, probes_lost=400),)),
    "late": Made((Way(late=600, slower=1),)),
    "out of order": Made((Way(disorder=600),)),
    "copies": Made((Way(copies=600),)),
    "slow to recover": Made((Way(recovery=(5.0, 6.0)),)),
    "power": Made((Way(),), watts=900.0),
    "cycles": Made((Way(),), cycles=4000.0, vectors=20.0),
}
"""Trials of routers that are bad in one way."""

FAILED_BY = {
    **dict.fromkeys(("throughput", "loses", "forwards"), "lossy"),
    **{"latency": "late", "pdv": "late", "reorders": "out of order", "recovers": "slow to recover"},
    **{"energy": "power", "cycles": "cycles", "gathers": "cycles"},
}
"""The way of :data:`BAD` that fails a quantity, by name."""


def ruling_of(promise: Promise, made: Sequence[Made]) -> Ruling:
    """Return the ruling on trials that were made; too few of them: INCONCLUSIVE."""
    asked = Asked(promise)
    for number, one in enumerate(made, 1):
        trial = with_doubts(one.trial(number), promise.conditions, promise.quantity.doubts)
        if (ruling := asked.add(trial).rule.ruling) is not None:
            return ruling
    return Ruling.INCONCLUSIVE


def goals() -> list[tuple[Goal, str]]:
    standard, quick, strict = (goal_named(name) for name in ("standard", "quick", "rfc2544"))
    one_second = strict.model_copy(update={"final_trial_duration": 1.0})
    few = standard.model_copy(update={"budget": 12})
    window = standard.model_copy(update={"budget": 10})
    return [(standard, ""), (quick, ""), (one_second, ""), (few, ""), (window, " for 25 s")]


Pick = Callable[[Sequence[Any]], Any]
"""Chooses one of some values: ``random.Random.choice``, or Hypothesis."""


def picked(make: Callable[..., Any], *arguments: object) -> st.SearchStrategy[Any]:
    """Return the values that *make* comes to where Hypothesis picks: its first argument is a Pick."""
    # Hypothesis keeps strategies for integers, and makes those of values anew
    return st.composite(lambda draw: make(lambda values: values[draw(st.integers(0, len(values) - 1))], *arguments))()


def promise_of(pick: Pick, name: str) -> Promise:
    """Return a sentence of the quantity *name* under some goal, with some generator."""
    goal, time = pick(goals())
    words, own = pick(SENTENCES[name]), pick([CLEAN, CLEAN, LOSSY, UNWATCHED])
    promise = promised(f"64b unidirectional {words}{time if name != 'recovers' else ''}", goal, own)
    return replace(promise, in_total=promise.quantity.has_total and pick([False, True]))


def _way(pick: Pick) -> Way:
    """Return counts of a direction, more often good than bad."""
    foreign, low = pick([0, 0, 0, 3, 500]), pick([0.4, 0.4, 1.9, 2.5])
    return Way(
        offered=pick([FRAMES, FRAMES, FRAMES, FRAMES, FRAMES - 300, FRAMES + 400, FRAMES // 2]),
        lost=pick([0, 0, 0, 0, 1, 50, 200, 3000, 40_000, FRAMES, -foreign]),
        foreign=foreign,
        backlog=pick([0, 0, 50, 5000]),
        late=pick([0, 0, 2, 10, 30, 600]),
        probes_lost=pick([0, 0, 0, 1, 100]),
        copies=pick([0, 0, 0, 1, 30]),
        disorder=pick([0, 0, 0, 5, 40]),
        recovery=(low, low + pick([0.1, 0.2, 5.0])),
    )


def problem_of(pick: Pick, directions: int) -> tuple[Fault, float | None, tuple[int, ...], float]:
    """Return a thing that the testbed did wrong."""
    fault = pick([fault for fault in Fault if fault is not Fault.UNENDED])
    return fault, pick([0.0, 1.0, 300.0, None]), pick([(), (0,), (directions - 1,)]), pick([0.0, 450.0])


def _trial(pick: Pick, directions: int) -> Made:
    return Made(
        tuple(_way(pick) for _ in range(directions)),
        tuple(problem_of(pick, directions) for _ in range(pick([0, 0, 1, 2]))),
        pick([(1.0, 1.0), (1.0, 1.0), (0.999, 1.001), (0.99, 1.01)]),
        pick([9.0, 9.9, 11.0, IDLE_WATTS]),
        cycles=pick([400.0, 449.0, 500.0]),
        vectors=pick([250.0, 190.0]),
    )


def run_of(pick: Pick) -> list[Made]:
    """Return 30 trials of one to three directions, the same few kinds over and over."""
    directions = pick([1, 2, 3])
    kinds = [_trial(pick, directions) for _ in range(pick([1, 2, 3, 4]))]
    return [pick([*kinds, *[Made((Way(),) * directions)] * 3]) for _ in range(30)]


promises = partial(picked, promise_of)
problems = partial(picked, problem_of)
runs = partial(picked, run_of)
