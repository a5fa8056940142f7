"""Sound and slow routers on ordinary, imperfect testbeds: how often the rule decides.

The claims at the end can fail (exit status 1): with a clock known to 1 ms, frames of others, a generator that is a
little late, busy at times, or known to lose a burst each 30 s, at most 1 % of the verdicts on routers that are 1 % too
slow, 1 % or 5 % faster, are INCONCLUSIVE or wrong; with a clock known to 5 ms at most 5 % are INCONCLUSIVE.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace

from lineproof.commands.main import finish
from lineproof.core.doubts import OwnPart
from lineproof.core.rule import Ruling
from lineproof.core.trial import DirectionCount, Fault, Load, Outcome
from support.made_testbeds import down, fault, goal_named, promised

from .population import (
    NOISE,
    RATE,
    Claim,
    Judged,
    RouterKind,
    Rulings,
    after_warm_up,
    options_of,
    print_claims,
    print_table,
)

OWN_BURST = 200
"""Frames that a generator loses at once."""


@dataclass(frozen=True, slots=True)
class Bed:
    """The ordinary faults of a testbed.

    ``clock``: the sending time is known to so many s. ``late``: ratio by which it takes longer. ``arp``: foreign frames
    a second that the card does not tell apart. ``busy``: share of trials with a busy CPU, which loses ``dropped``
    frames in them. ``own``: seconds between bursts that the generator loses itself. ``flap``: the trial in which a link
    is down for a second. ``latency`` in s. ``watched``: trials of the goal's length in which the generator alone was.
    """

    clock: float = 0.0
    late: float = 0.0
    arp: float = 0.0
    busy: float = 0.0
    dropped: int = 0
    own: float = math.inf
    flap: int = 0
    latency: float = 50e-6
    watched: int = 30
    directions: int = 1


EVERYTHING = Bed(clock=0.001, late=0.002, arp=10, busy=0.02)
ORDINARY = {
    "exact": Bed(),
    "clock ±1 ms": Bed(clock=0.001),
    "0.2 % late": Bed(late=0.002),
    "10 ARP a second": Bed(arp=10),
    "CPU busy in 2 %": Bed(busy=0.02),
    "CPU busy in 2 %, 1000 lost then": Bed(busy=0.02, dropped=1000),
    "latency 1 ms": Bed(latency=1e-3),
    "latency 3 ms": Bed(latency=3e-3),
    "all: ±1 ms, 0.2 % late, 10 ARP, CPU 2 %": EVERYTHING,
    "all, 2 directions": replace(EVERYTHING, directions=2),
    "all, 8 directions": replace(EVERYTHING, directions=8),
    "all, generator loses a burst each 30 s": replace(EVERYTHING, own=30.0),
}
BAD_CLOCKS = {"clock ±5 ms": Bed(clock=0.005), "all, ±5 ms": replace(EVERYTHING, clock=0.005)}
OTHERS = {
    "latency 20 ms": Bed(latency=20e-3),
    "link flap of 1 s in trial 5": Bed(flap=5),
    "generator loses a burst each 10 s": Bed(own=10.0),
    "generator loses a burst each 3 s": Bed(own=3.0),
    "generator not watched": Bed(watched=0),
}
"""Testbeds on which a sound router may be INCONCLUSIVE: all that is claimed of them is that no verdict is wrong."""

RATIOS = (0.99, 1.01, 1.05)
MOST_WRONG, MOST_UNTIMED = 0.01, 0.05


class Testbed:
    """A generator that sends through a router, and the faults of *bed*."""

    def __init__(self, seed: str, ratio: float, bed: Bed) -> None:
        self._bed, self._random, self._trials = bed, random.Random(seed), 0
        self._router = RouterKind(NOISE, bed.directions).router(RATE, ratio, seed)

    def measure(self, load: Load, seconds: float) -> Outcome:
        """Measure one trial."""
        bed, draw = self._bed, self._random
        self._trials += 1
        time = seconds * (1 + bed.late)
        outcome = self._router.measure(Load(load.pps / (1 + bed.late)), time)
        is_busy, is_flapping = draw.random() < bed.busy, self._trials == bed.flap
        problems = (fault(Fault.CPU_BOUND),) * is_busy + (down(0),) * is_flapping
        rows = tuple(self._spoilt(row, time, is_busy, is_flapping) for row in outcome.directions)
        elapsed = time + draw.uniform(-bed.clock, bed.clock)
        readings = {"elapsed_uncertainty": bed.clock}
        return Outcome(load, seconds, elapsed, 0.0, rows, problems, readings)

    def _spoilt(self, row: DirectionCount, time: float, is_busy: bool, is_flapping: bool) -> DirectionCount:
        bed = self._bed
        lost = OWN_BURST * own_bursts(self._random, time, bed.own) + bed.dropped * is_busy
        if is_flapping and row.tx_port == 0:
            lost = round(min(1.0, 1 / time) * row.offered)
        foreign = round(bed.arp * time)
        came = max(0, row.forwarded - lost) + foreign
        under_way = (row.backlog or 0) + round(row.offered / time * bed.latency)
        return replace(row, forwarded=came, foreign=2 * foreign, backlog=under_way)


def own_bursts(draw: random.Random, seconds: float, every: float) -> int:
    """Return how many bursts come in so many *seconds*, at random."""
    if math.isinf(every):
        return 0
    return sum(draw.random() < seconds / 1000 / every for _ in range(1000))


def watched(seed: str, bed: Bed, seconds: float) -> OwnPart:
    """Return what a watch of the generator alone sees, in trials of so many *seconds*."""
    draw = random.Random(f"{seed} watched")
    lost = [OWN_BURST * own_bursts(draw, seconds, bed.own) for _ in range(bed.watched)]
    return OwnPart(trials=bed.watched, lossy=sum(frames > 0 for frames in lost), most_lost=max(lost, default=0))


def judge(goal: str, bed: Bed, ratio: float, seed: str) -> Judged:
    """Return the verdict of *goal* on a router with this capacity / SLA."""
    own = watched(seed, bed, goal_named(goal).final_trial_duration)
    promise = promised(f"64b unidirectional ≥ {RATE} pps", goal, own)
    return after_warm_up(promise, Testbed(seed, ratio, bed).measure, ratio)


def claims(found: dict[tuple[str, str, float], Rulings]) -> list[Claim]:
    """Return what must hold: few wrong verdicts anywhere, few that are INCONCLUSIVE on ordinary testbeds."""
    claimed = []
    for goal in ("standard", "quick"):
        rows = {key: rulings for key, rulings in found.items() if key[0] == goal}
        undecided = [rows[key].share(Ruling.INCONCLUSIVE) for key in rows if key[1] in ORDINARY]
        untimed = [rows[key].share(Ruling.INCONCLUSIVE) for key in rows if key[1] in BAD_CLOCKS]
        wrong = [rows[key].share(Ruling.PASS if key[2] < 1 else Ruling.FAIL) for key in rows]
        for words, shares, most in (
            ("INCONCLUSIVE on an ordinary testbed", undecided, MOST_WRONG),
            ("INCONCLUSIVE with a clock of ±5 ms", untimed, MOST_UNTIMED),
            ("wrong on any testbed", wrong, MOST_WRONG),
        ):
            worst, all_of = max(share.ratio for share in shares), sum(share.of for share in shares)
            mean = sum(share.passed for share in shares) / all_of
            text = f"{goal}: {words}: {100 * mean:.2f} % of {all_of}, {100 * worst:.3g} % of the worst kind"
            claimed.append(Claim(f"{text}, at most {100 * most:g} %", mean <= most, worst <= most))
    return claimed


def main() -> int:
    """Print the tables; 1 if a claim does not hold, else 0."""
    options = options_of("ordinary", __doc__ or "")
    routers = max(20, options.routers // 5)
    found: dict[tuple[str, str, float], Rulings] = {}
    for goal in ("standard", "quick"):
        rows = []
        for name, bed in {**ORDINARY, **BAD_CLOCKS, **OTHERS}.items():
            cells = []
            for ratio in RATIOS:
                seeds = [f"{options.seed} {number}" for number in range(routers)]
                rulings = Rulings(tuple(judge(goal, bed, ratio, seed) for seed in seeds))
                found[goal, name, ratio] = rulings
                cells.append(str(rulings))
            seconds = sum(one.traffic for one in rulings.judged) / routers
            rows.append([name, *cells, f"{seconds:.1f} s"])
        title = f"Routers passed by {goal}, {routers} of each, and traffic of the sound ones"
        print_table(title, ["testbed", "-1 %", "+1 %", "+5 %", "traffic"], rows)
    return print_claims(claims(found), routers)


if __name__ == "__main__":
    finish(main)
