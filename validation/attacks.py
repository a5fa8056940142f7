"""Made-up routers and testbeds at the seam, with the rulings that are right: what a losing side would try.

``python -m validation.attacks [-v]`` exits 1 if a ruling is another one. Rulings: P, F, I as in a case's ``wanted``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle

from lineproof.commands.main import finish
from lineproof.core.doubts import OwnPart, with_doubts
from lineproof.core.foreign import IDLE_SECONDS, ForeignFrames
from lineproof.core.packet_cost import PacketCost, cost_readings
from lineproof.core.quantity import Promise
from lineproof.core.trial import DirectionCount, Fault, Load, Measure, Outcome, Tolerance, Trial, read_trial, unended
from lineproof.evidence.resume import UNREAD
from support.made_testbeds import (
    CLEAN,
    decided,
    down,
    fault,
    joined,
    powered,
    probe_frames,
    promised,
    recovering,
    router,
    slow,
    then,
    with_readings,
)

PPS = 5_000_000
UNWATCHED = OwnPart()
LOSSY = OwnPart(trials=30, lossy=8, most_lost=400)
NEAR_CEILING = OwnPart(trials=1000, lossless_pps=5.05e6, received_pps=5.05e6)

RATE = "64b unidirectional ≥ 5 Mpps"
LOSES = "64b unidirectional loses ≤ {}% at 5 Mpps"
FORWARDS = "64b unidirectional forwards ≥ 5 Mpps at 14.88 Mpps"
P99_10 = "64b unidirectional latency p99 ≤ 10 µs at 1 Mpps"
P99, P50, MAX = (f"64b unidirectional latency {name} ≤ 100 µs at 1 Mpps" for name in ("p99", "p50", "max"))
PDV = "64b unidirectional pdv p99 ≤ 50 µs at 1 Mpps"
REORDERS = "64b unidirectional reorders ≤ 0.1% at 1 Mpps"
SMALL, FINE = "64b unidirectional loses ≤ 0.01% at {}", "64b unidirectional reorders ≤ 0.01% at 1 Mpps"
CYCLES, GATHERS = "64b unidirectional costs ≤ 450 cycles/packet", "64b unidirectional gathers ≥ 200 vectors/call"
CYCLES_AT = f"{CYCLES} at 5 Mpps"
ENERGY, ABOVE_IDLE = "64b unidirectional costs ≤ 2 µJ/packet", "64b unidirectional costs ≤ 1 µJ/packet above idle"
ENERGY_AT = f"{ENERGY} at 5 Mpps"
RECOVERS = "64b unidirectional recovers in ≤ 2 s"

FORWARDS_OF_ALL = "64b unidirectional forwards ≥ 5 Mpps"
BOTH_FORWARD = "64b bidirectional forwards ≥ 10 Mpps in total at {} Mpps each way"
EACH_FORWARDS = "64b bidirectional forwards ≥ 5 Mpps each way at 14.88 Mpps each way"
BOTH_LOSE = "64b bidirectional loses ≤ {}% in total at 5 Mpps each way"
BUSY = (fault(Fault.CPU_BOUND),)
DOUBTS = (fault(Fault.DAMAGED, 25_000), fault(Fault.GENERATOR, 25_000))

OK, OK2, ONE_DEAD = router(), router(0.0, 0.0), router(*[0.0] * 15, 1.0)
FLAP = router(1.0, problems=(down(0),))
STRAY = joined(router(0.5), router(-2e-7))
FAST, MANY = probe_frames({10: 1900, 20: 100}), probe_frames({10: 20_000})
LATE, BLOATED = router(late=0.002, clock=0.001), router(backlog=lambda frames: frames // 100)
COPIES, COPIED = probe_frames({10: 349}, sent=1000, copies=175), probe_frames({10: 1000}, copies=300, received=1000)
ABOVE = router(1 - 5.01 / 14.88)
"""A router that forwards a little more than 5 Mpps of 14.88."""


def fiftieth(frames: int) -> int:
    """Return the foreign frames of a trial: 2 %."""
    return frames // 50


@dataclass(frozen=True)
class Case:
    """An attack: the rulings that are right, as initials, the sentence and the testbed."""

    name: str
    wanted: str
    sentence: str
    testbed: Measure
    goal: str = "standard"
    own: OwnPart = CLEAN
    warm_up: bool = False


def costly(cycles: float, vectors_per_call: float = 100.0, testbed: Measure = OK) -> Measure:
    """Return a router whose runtime counters show so many cycles per packet."""
    packets = 1_000_000
    cost = PacketCost("vpp_wk_0", packets, packets, cycles * packets, 0.0, packets, round(packets / vectors_per_call))
    return with_readings(testbed, cost_readings([cost]))


def probed(histogram: dict[int, int], lost: float = 0.0, **fields: int) -> Measure:
    """Return a router with probe frames."""
    return router(lost, probes=probe_frames(histogram, **fields))


def counted(change: Callable[[DirectionCount, float], DirectionCount], testbed: Measure = OK) -> Measure:
    """Return *testbed* whose one direction counts otherwise, by its count and the frames asked for."""

    def measure(load: Load, seconds: float) -> Outcome:
        outcome = testbed(load, seconds)
        return replace(outcome, directions=(change(outcome.directions[0], load.pps * seconds),))

    return measure


def overdriven(row: DirectionCount, asked: float) -> DirectionCount:
    """A generator that sends 0.45 % too much to a router that carries 0.05 % more than the load."""
    return replace(row, offered=round(asked * 1.0045), forwarded=round(asked * 1.0005))


def above(capacity: float, usual: Measure, beyond: Measure) -> Measure:
    """Return a testbed that is another one as soon as more comes than *capacity*."""
    return lambda load, seconds: (beyond if load.pps > capacity else usual)(load, seconds)


def queue_of_latency(capacity: float) -> Measure:
    """Return a router whose frames are all late as soon as more comes than it carries."""
    return above(capacity, probed({10: 2000}), probed({5000: 2000}))


def with_clock(testbed: Measure, clock: float, *errors: float) -> Measure:
    """Return *testbed*, whose sending takes longer by *errors* (s each, in turn) and is known to *clock* s."""
    turns = cycle(errors or (0.0,))

    def measure(load: Load, seconds: float) -> Outcome:
        outcome = testbed(load, seconds)
        readings = {**outcome.readings, "elapsed_uncertainty": clock}
        return replace(outcome, elapsed=seconds + next(turns), readings=readings)

    return measure


def of_known_loss() -> list[Case]:
    """Return attacks on what the counts say, by clock, load, direction and trial."""
    over_port_0 = joined(router(sent=1.006), router(0.5))
    return [
        Case("W1 0.3 % lost, 0.45 % oversent, rfc2544", "FI", RATE, router(0.003, sent=1.0045), "rfc2544"),
        Case("W1 10 ppm lost, clock ±1 ms of 60 s", "FI", RATE, router(1e-5, clock=0.001), "rfc2544", warm_up=True),
        Case("W1 60 ppm lost, clock ±4 ms of 60 s", "FI", RATE, router(6e-5, clock=0.004), "rfc2544", warm_up=True),
        Case("W1 0.15 % lost, clock ±3 ms", "FI", RATE, router(0.0015, clock=0.003), warm_up=True),
        Case("W1 0.18 % lost, clock ±4 ms, quick", "FI", RATE, router(0.0018, clock=0.004), "quick", warm_up=True),
        Case("W1 2 % lost, clock ±5 ms: certain all the same", "F", RATE, router(0.02, clock=0.005), warm_up=True),
        Case("W1 the load is carried, only the 0.45 % beyond it is lost", "I", RATE, counted(overdriven)),
        Case("W9 port 0 oversends 0.6 %, port 1 loses 50 %", "F", RATE, over_port_0),
        Case("W9 the same in 3 of 10 trials", "FI", RATE, then((2, OK2), (3, over_port_0), (1, OK2))),
        Case("W15 more than the load was sent, none lost", "P", RATE, router(sent=1.02)),
        Case("W10 −0.5 % at 200 kpps, queue of 4096", "FI", "64b unidirectional ≥ 200 kpps", slow(199e3)),
        Case("W10 the same, quick", "FI", "64b unidirectional ≥ 200 kpps", slow(199e3), "quick"),
        Case("W10 −0.7 % at 5 Mpps, queue of 100 000", "FI", RATE, slow(PPS * 0.993, 100_000)),
        Case("W10 bufferbloat: 3 % of each trial come after it", "FI", RATE, router(backlog=lambda n: n * 3 // 100)),
        Case("W10 bufferbloat: 0.7 %", "FI", RATE, router(backlog=lambda n: n * 7 // 1000)),
        Case("W13 +7 % behind a queue of 50 ms", "FI", "64b unidirectional ≥ 5.35 Mpps", slow(5.1e6, 255_000)),
        Case("stray frames beside 50 % loss", "F", RATE, STRAY),
        Case("the same in three trials", "F", RATE, then((2, OK2), (3, STRAY), (1, OK2))),
        Case("the same in total", "F", "64b bidirectional ≥ 10 Mpps in total", then((2, OK2), (3, STRAY), (1, OK2))),
        Case("the same, rfc2544", "F", RATE, STRAY, "rfc2544"),
        Case("1 % late, rfc2544", "FI", RATE, router(late=0.0099), "rfc2544"),
        Case("router 1 % slow behind a 1 % late generator", "FI", RATE, slow(4.955e6, 0, late=0.0099)),
        Case("a sound router", "P", RATE, OK2),
        Case("a slow router", "F", RATE, router(0.02, 0.0)),
        Case("every other trial loses 0.04 %", "F", RATE, then(*[(1, OK), (1, router(0.0004))] * 20)),
        Case("the first ms of each trial is lost", "F", RATE, router(0.001)),
        Case("0.19 % less sent, the router carries just that", "FI", RATE, slow(4.991e6, 0, sent=0.9981)),
        Case("20 % less sent in 3 trials", "FI", RATE, then((1, OK), (3, router(sent=0.8)), (1, OK))),
        Case("nothing offered, nothing forwarded", "I", RATE, router(sent=0.0)),
        Case("loses 1 % in 3 of 10 trials", "F", RATE, then((3, router(0.01)), (1, OK))),
        Case("8 ways, one loses 3 bursts", "P", RATE, then((3, router(*[0.0] * 7, 1e-4)), (1, router(*[0.0] * 8)))),
        Case("one of 2 directions loses each 3rd", "FI", RATE, then(*[(2, OK2), (1, router(0.0, 1e-4))] * 30)),
        Case("16 directions, one loses 0.5 %", "F", RATE, router(*[0.0] * 15, 0.005)),
        Case("loses 1.2 % three times, 0.9 % all", "PI", LOSES.format(1), then((1, OK), (3, router(0.012)), (1, OK))),
        Case("loses 1 %", "F", LOSES.format(0.1), then((1, router(0.001)), (4, router(0.05)), (1, router(0.001)))),
        Case("loses 1.01 %", "F", LOSES.format(1), router(0.0101)),
        Case("loses 0.99 %", "P", LOSES.format(1), router(0.0099)),
        Case("one of 16 directions dead", "P", BOTH_LOSE.replace(" l", " on 8 pairs l").format(7), ONE_DEAD),
        Case("one of 2 directions dead", "F", BOTH_LOSE.format(7), router(0.0, 1.0)),
        Case("surplus here, loss there", "FI", BOTH_LOSE.format(1), joined(router(0.04), router(-0.04))),
        Case("0.06 % lost in each 4th trial", "F", RATE, then(*[(3, OK), (1, router(0.03))] * 20)),
        Case("rfc2544: one frame of 300 millions", "F", RATE, router(1 / 3e8), "rfc2544"),
        Case("rfc2544 without loss", "P", RATE, OK, "rfc2544"),
        Case("line rate, the clocks differ by 200 ppm", "P", "64b unidirectional ≥ 100% line rate", OK),
        Case("line rate, −0.1 %", "F", "64b unidirectional ≥ 100% line rate", router(0.001)),
        Case("loses nothing of 98 % of the load", "FI", RATE, router(sent=0.98)),
        Case("loses ≤ 1 %: a stall at half the load is no good trial", "I", LOSES.format(1), router(sent=0.5)),
        Case("sends for half of the time: twice the load", "IP", RATE, router(late=-0.5)),
        Case("sends for half of the time, and loses 3 %", "I", RATE, router(0.03, late=-0.5)),
    ]


def of_the_testbed() -> list[Case]:
    """Return attacks by what the testbed did wrong: it may neither convict nor acquit."""
    half = router(0.5, problems=BUSY)
    clock = router(1.0, problems=(fault(Fault.CLOCK),))
    fcs = router(0.5, problems=(fault(Fault.DAMAGED, PPS / 2, 0),))
    after = router(0.01, problems=(fault(Fault.AFTER_ROUTER, PPS // 100, 0),))
    return [
        Case("W5 link down and all lost in 3 trials", "FI", RATE, then((3, FLAP), (1, OK))),
        Case("W5 the same after a good one", "FI", RATE, then((1, OK), (3, FLAP), (1, OK))),
        Case("W5 the clock jumped in 3 trials, all lost", "FI", RATE, then((1, OK), (3, clock), (1, OK))),
        Case("W5 the generator's CPU busy in 3 trials, half lost", "FI", RATE, then((1, OK), (3, half), (1, OK))),
        Case("W5 bad FCS of half the frames in 3 trials", "FI", RATE, then((1, OK), (3, fcs), (1, OK))),
        Case("W5 rfc2544: a link flap, half lost", "FI", RATE, router(0.5, problems=(down(0),)), "rfc2544"),
        Case("excused with all its loss, then only good ones", "FI", RATE, then((1, FLAP), (1, OK))),
        Case("link 0 down in each trial, direction 1 loses 1 %", "F", RATE, router(0.5, 0.01, problems=(down(0),))),
        Case("a link flap without a frame lost", "P", RATE, then((1, OK), (1, router(problems=(down(0),))), (1, OK))),
        Case("W8 1 % lost after the router, unwatched", "I", RATE, after, own=UNWATCHED),
        Case("W18 a lossy generator, 300 frames lost in each", "I", RATE, router(6e-5), own=LOSSY),
        Case("W18 the same, 1 % lost", "F", RATE, router(0.01), own=LOSSY),
        Case("W18 the same, nothing lost", "P", RATE, OK, own=LOSSY),
        Case("unwatched, 0.05 % lost", "I", RATE, router(0.0005), own=UNWATCHED),
        Case("unwatched, 1 % lost", "F", RATE, router(0.01), own=UNWATCHED),
        Case("unwatched, rfc2544, 10 ppm lost", "I", RATE, router(1e-5), "rfc2544", own=UNWATCHED),
        Case("W18 10 s by a queue, 1600 own frames", "PI", RATE, then((1, BLOATED), (1, router(3.2e-5))), own=LOSSY),
        Case("near the generator's ceiling, 2 % lost", "I", RATE, router(0.02), own=NEAR_CEILING),
        Case("near the generator's ceiling, nothing lost", "P", RATE, OK, own=NEAR_CEILING),
        Case("800 foreign frames a second, 800 lost", "FI", RATE, router(forwarded=lambda n: n, foreign=2801)),
        Case("40 foreign frames a second at 5 Mpps", "P", RATE, router(forwarded=lambda n: n, foreign=40)),
        Case("40 foreign frames a second, 300 lost", "F", RATE, router(6e-5, foreign=40)),
        Case("10 foreign frames a second at 100 kpps", "P", "64b unidirectional ≥ 100 kpps", router(foreign=10)),
        Case("10 foreign frames a second at 1 kpps", "I", "64b unidirectional ≥ 1 kpps", router(foreign=10)),
        Case("100 copies, 100 lost", "I", RATE, router(probes=probe_frames({10: 1000}, copies=1, received=1001))),
        Case("probes lost, frames not", "FI", RATE, router(probes=probe_frames({10: 900}, sent=1000))),
        Case("counters went back in 3", "PI", RATE, then((3, router(problems=(fault(Fault.COUNTERS),))), (1, OK))),
        Case("counters went back in all", "I", RATE, router(problems=(fault(Fault.COUNTERS),))),
        Case("two counts differ by 5 frames", "I", RATE, router(problems=(fault(Fault.MISCOUNTED, 5),))),
        Case("pause frames stopped the generator in each trial", "I", RATE, router(problems=(fault(Fault.PAUSED),))),
        Case("the generator paused the router", "I", RATE, router(0.01, problems=(fault(Fault.PAUSING, 5e4),))),
        Case("the same, 2 % lost", "F", RATE, router(0.02, problems=(fault(Fault.PAUSING, 5e4),))),
        Case("the neighbour lost in both, 3 % lost", "I", RATE, router(0.03, problems=(fault(Fault.NEIGHBOUR),))),
        Case("an uncertain clock that is no number", "I", RATE, router(clock=float("nan"))),
        Case("an elapsed time without end", "I", RATE, router(late=float("inf"))),
        Case("port 0 is busy, port 1 loses", "F", RATE, router(0.0, 0.03, problems=(fault(Fault.CPU_BOUND, None, 0),))),
        Case("two doubts together excuse 1 %", "I", RATE, router(0.01, problems=DOUBTS)),
        Case("two doubts together do not excuse 1.1 %", "F", RATE, router(0.011, problems=DOUBTS)),
    ]


def of_soaks() -> list[Case]:
    """Return attacks on sentences with ``for TIME``."""
    cases: Sequence[tuple[str, str, str, Measure]] = [
        ("W5 soak of 2 min, link down for 2 s", "FI", "2 min", then((60, OK), (2, FLAP), (1, OK))),
        ("W5 soak of 1 h, link down for 2 s", "FI", "60 min", then((1800, OK), (2, FLAP), (1, OK))),
        ("soak of 1 h, outage of 2 s, link up", "F", "60 min", then((1800, OK), (2, router(1.0)), (1, OK))),
        ("soak, a burst each second of half a minute", "F", "30 min", then((1000, OK), (30, router(1e-4)), (1, OK))),
        ("soak, the last six minutes lose 5 %", "F", "30 min", then((1441, OK), (1, router(0.0499)))),
        ("soak of 1 h, 40 ms of outage each minute", "P", "60 min", then(*[(59, OK), (1, router(0.04))] * 61)),
        ("soak of 1 h, 62 ms of outage each minute", "F", "60 min", then(*[(59, OK), (1, router(0.062))] * 61)),
        ("soak of 30 min, sound", "P", "30 min", OK2),
        ("soak of 20 s, 3 % lost once", "F", "20 s", then((5, OK), (1, router(0.03)), (1, OK))),
        ("soak of 20 s, 1 % lost once", "P", "20 s", then((5, OK), (1, router(0.01)), (1, OK))),
        ("soak of 20 s, 3 % lost in its last trial", "F", "20 s", then((19, OK), (1, router(0.03)))),
        ("soak of 10 min, the last trial loses 7 %", "F", "10 min", then((599, OK), (1, router(0.07)))),
        ("soak of 10 min, no link in its first trial", "I", "10 min", then((1, FLAP), (1, OK))),
        ("soak, one of 2 directions fails half way", "F", "10 min", then((300, OK2), (1, router(0.0, 0.001)))),
        ("soak of 10 min, a queue grows all the time", "I", "10 min", BLOATED),
    ]
    return [Case(name, wanted, f"{RATE} for {time}", testbed) for name, wanted, time, testbed in cases]


def of_latency() -> list[Case]:
    """Return attacks on percentiles, delay variation and order."""
    late_max = then((1, router(probes=FAST)), (4, probed({10: 900, 900_000: 100})), (1, router(probes=FAST)))
    once = then((1, router(probes=FAST)), (1, probed({10: 1999, 200: 1})), (1, router(probes=FAST)))
    slow_own = OwnPart(trials=1000, delay=500.0)
    return [
        Case("W7 0.9 % of the frames late, p99", "PI", P99, probed({10: 1982, 10_000: 18})),
        Case("10 foreign frames a second at 1 Mpps, max", "P", MAX, router(probes=FAST, foreign=10)),
        Case("2 % of the frames are foreign ones, p99", "I", P99, router(probes=FAST, foreign=fiftieth)),
        Case("the same, more than all came back, p50", "P", P50, router(-0.02, probes=FAST)),
        Case("2 % of the frames are foreign ones, reorders", "I", REORDERS, router(probes=MANY, foreign=fiftieth)),
        Case("p99, 0.1 % late", "P", P99, probed({10: 1998, 10_000: 2})),
        Case("p99, 3 % late", "F", P99, probed({10: 1940, 10_000: 60})),
        Case("W4 the generator alone has 500 µs", "I", P99_10, probed({20: 1950, 100: 50}), own=slow_own),
        Case("W4 the same, 2 ms: beyond its own delay", "F", P99_10, probed({2000: 2000}), own=slow_own),
        Case("max, four trials at 1 s", "F", MAX, late_max),
        Case("max, one probe at 200 µs", "F", MAX, once),
        Case("frames later than the histogram goes", "FI", P50, probed({10: 390, 20: 10}, sent=1000, received=1000)),
        Case("more in the histogram than came", "I", P99, probed({0: 10_000, 500: 50}, sent=1000, received=900)),
        Case("10 % of the probes lost, load not, p99", "FI", P99, probed({10: 900}, sent=1000)),
        Case("copies for lost probes, p99", "FI", P99, probed({10: 2000}, sent=2000, copies=1000)),
        Case("the load loses half, its probes nothing, p50", "F", P50, router(0.51, probes=FAST)),
        Case("the load loses 5 %, its probes nothing, p99", "F", P99, router(0.05, probes=FAST)),
        Case("the load loses 5 %, probes nothing, mean", "F", P99.replace("p99", "mean"), router(0.05, probes=FAST)),
        Case("the same with the link down", "I", P99, router(0.05, probes=FAST, problems=(down(),))),
        Case("all but the probes are lost", "F", P50, router(1.0, probes=FAST)),
        Case("bursts of 0.05 %, p99", "P", P99, then(*[(9, router(probes=FAST)), (1, router(5e-4, probes=FAST))] * 5)),
        Case("no probe came back at all", "FI", P99, probed({}, sent=1000)),
        Case("no probe was sent", "I", P99, OK),
        Case("link down, all late", "I", P99, router(probes=probe_frames({5000: 2000}), problems=(down(),))),
        Case("1 % less sent: the rest may be late", "I", P99.replace("99", "99.9"), router(sent=0.99, probes=MANY)),
        Case("one direction late", "F", "64b bidirectional latency p99 ≤ 100 µs at 1 Mpps each way", _late_direction),
        Case("late by the load added", "PI", P50, with_clock(queue_of_latency(1.0005e6), 0.005), warm_up=True),
        Case("late at the load itself, ±5 ms", "F", P50, with_clock(queue_of_latency(0.99e6), 0.005), warm_up=True),
        Case("pdv of a constant 80 µs", "P", PDV, probed({80: 2000})),
        Case("pdv, 5 % of the frames 900 µs later", "F", PDV, probed({80: 1900, 900: 100})),
        Case("pdv mean of a constant 80 µs", "P", "64b unidirectional pdv mean ≤ 50 µs at 1 Mpps", probed({80: 2000})),
        Case("pdv for 2 min, constant", "P", f"{PDV} for 2 min", probed({80: 2000})),
        Case("reorders nothing", "P", REORDERS, probed({10: 20_000})),
        Case("reorders 0.3 %", "F", REORDERS, probed({10: 20_000}, late=60)),
        Case("reorders 0.1 %", "FI", REORDERS, probed({10: 20_000}, late=20)),
        Case("reorders 0.05 %", "PI", REORDERS, probed({10: 20_000}, late=10)),
        Case("reorders: half of the probes lost", "FI", REORDERS, probed({10: 10_000}, sent=20_000)),
        Case("reorders: 1 % less sent", "I", REORDERS, router(sent=0.99, probes=MANY)),
        Case("reorders, busy CPU", "I", REORDERS, router(probes=replace(MANY, out_of_order=200), problems=BUSY)),
        Case("too few probes for 0.1 %", "I", REORDERS, probed({10: 500})),
    ]


def _late_direction(load: Load, seconds: float) -> Outcome:
    outcome = router(0.0, 0.0, probes=FAST)(load, seconds)
    late = replace(outcome.latency[1], histogram={10: 1000, 500: 1000})
    return replace(outcome, latency=(outcome.latency[0], late))


def of_other_quantities() -> list[Case]:
    """Return attacks on forwarding rates, cycles, energy and recovery."""
    watts, soon = 9.0, recovering(0.5, 0.6)
    return [
        Case("forwards, four trials at zero", "F", FORWARDS, then((1, ABOVE), (4, router(1.0)), (1, ABOVE))),
        Case("forwards a little more", "P", FORWARDS, ABOVE),
        Case("forwards 2 % less", "F", FORWARDS, router(1 - 4.9 / 14.88)),
        Case("forwards more, at first 2 % less", "P", FORWARDS_OF_ALL, then((1, router(1 - 4.9 / 14.88)), (1, ABOVE))),
        Case("forwards with a third of the load offered, none lost", "I", FORWARDS, router(sent=0.35)),
        Case("the same, 5 % lost", "I", FORWARDS, router(0.05, sent=0.35)),
        Case("forwards half, clock ±1 ms", "F", f"{FORWARDS_OF_ALL} at 5 Mpps", router(0.5, clock=0.001)),
        Case("forwards, the rest from a queue", "FI", FORWARDS, router(1 - 5.2 / 14.88, backlog=lambda n: n // 40)),
        Case("forwards each way, one way 10 % less", "F", EACH_FORWARDS, router(0.1, 1 - 4.5 / 14.88)),
        Case("one way 10 % less", "P", BOTH_FORWARD.format(14.88), router(1 - 6 / 14.88, 1 - 4.5 / 14.88)),
        Case("forwards in total, surplus for loss", "FI", BOTH_FORWARD.format(5), joined(router(0.2), router(-0.2))),
        Case("forwards: copies for lost frames", "FI", FORWARDS, router(1 - 5.2 / 14.88, probes=COPIES)),
        Case("forwards near the generator's own limit", "I", FORWARDS, router(1 - 4.99 / 14.88), own=NEAR_CEILING),
        Case("costs 400 cycles", "P", CYCLES, costly(400)),
        Case("costs 500 cycles", "F", CYCLES, costly(500)),
        Case("costs 500 cycles in 3 of 20 trials", "PI", CYCLES, then(*[(6, costly(400)), (1, costly(500))] * 9)),
        Case("no runtime counters", "I", CYCLES, OK),
        Case("costs 500 cycles at half of the named load", "I", CYCLES_AT, costly(500, testbed=router(sent=0.5))),
        Case("costs 400 cycles at half of the named load", "I", CYCLES_AT, costly(400, testbed=router(sent=0.5))),
        Case("400 cycles, 0.2 % late", "P", CYCLES_AT, costly(400, testbed=LATE), warm_up=True),
        Case("500 cycles, read too late", "I", CYCLES, costly(500, testbed=router(problems=(fault(Fault.COUNTERS),)))),
        Case("gathers 250 vectors", "P", GATHERS, costly(400, 250.0)),
        Case("gathers 150 vectors", "F", GATHERS, costly(400, 150.0)),
        Case("gathers 150 vectors at half of the load", "FI", GATHERS, costly(400, 150.0, testbed=router(sent=0.5))),
        Case("costs 1.8 µJ", "P", ENERGY_AT, powered(watts, 5.0)),
        Case("costs 2.2 µJ", "F", ENERGY_AT, powered(11.0, 5.0)),
        Case("costs 2 µJ by an uncertain meter", "I", ENERGY_AT, powered(10.0, 5.0)),
        Case("W16 the meter stands still", "I", ENERGY_AT, powered(watts, watts)),
        Case("W16 the same above idle", "I", f"{ABOVE_IDLE} at 5 Mpps", powered(watts, watts)),
        Case("no meter", "I", ENERGY_AT, OK),
        Case("a meter that shows no number", "I", ENERGY_AT, powered(float("nan"), 5.0)),
        Case("costs 0.8 µJ above idle", "P", f"{ABOVE_IDLE} at 5 Mpps", powered(9.0, 5.0)),
        Case("energy: half of the frames lost doubles it", "F", ENERGY_AT, powered(watts, 5.0, testbed=router(0.5))),
        Case("the same, link down", "I", ENERGY_AT, powered(watts, 5.0, testbed=router(0.5, problems=(down(),)))),
        Case("energy: a stall at the named load", "I", ENERGY_AT, powered(watts, 5.0, testbed=router(sent=0.5))),
        Case("energy: copies for lost frames", "I", ENERGY_AT, powered(watts, 5.0, testbed=router(probes=COPIED))),
        Case("recovers in 0.6 s", "P", RECOVERS, recovering(0.5, 0.6)),
        Case("recovers in 2.5 s", "F", RECOVERS, recovering(2.5, 2.6, lost_late=1e5)),
        Case("recovers in 1.9 to 2.1 s", "I", RECOVERS, recovering(1.9, 2.1)),
        Case("recovers, 8 ARP a second", "P", f"{RECOVERS} at 1 Mpps", budgeted(recovering(0.5, 0.6), 8)),
        Case("recovers, 10 ARP a second", "P", f"{RECOVERS} at 1 Mpps", budgeted(recovering(0.5, 0.6), 10)),
        Case("recovers, and loses 0.09 % at all times", "PI", RECOVERS, recovering(2.5, 2.6, 1e4, control_loss=0.0009)),
        Case("recovers with 2 % foreign frames", "I", RECOVERS, recovering(0.5, 0.6, foreign=fiftieth)),
        Case("recovers late after 5 % too much overload", "I", RECOVERS, recovering(2.5, 2.6, 1e5, sent=1.05)),
        Case("recovers after 5 % too little", "I", f"{RECOVERS} at 10 Mpps", recovering(0.5, 0.6, sent=0.95)),
        Case("recovers: its end was not seen", "I", RECOVERS, recovering(0.5, None)),
        Case("recovers, but was never overloaded", "I", RECOVERS, recovering(0.5, 0.6, overload_loss=0.001)),
        Case("late, but loses at half of the load anyway", "I", RECOVERS, recovering(2.5, 2.6, 1e5, control_loss=0.01)),
        Case("W18 recovers late by the generator's own loss", "I", RECOVERS, recovering(2.5, 2.6, 300), own=LOSSY),
        Case("W18 recovers late, more than the generator's own", "F", RECOVERS, recovering(2.5, 2.6, 1e5), own=LOSSY),
        Case("recovers late in 3 of 10", "FI", RECOVERS, then((1, soon), (3, recovering(2.5, 2.6, 1e5)), (1, soon))),
    ]


@dataclass(frozen=True)
class Resumed(Case):
    """An attack on ``-v RESUME:``. ``earlier``: the trials that run after run counted before it was ended in one more.

    ``None`` in place of a trial: the run was ended in it.
    """

    earlier: Sequence[Sequence[Measure | None]] = ()


def trials_of(case: Case, promise: Promise) -> list[Trial]:
    """Return the trials of earlier runs as :mod:`lineproof.evidence.resume` gives them out."""
    found: list[Trial] = []
    for number, run in enumerate(case.earlier if isinstance(case, Resumed) else ()):
        seconds = promise.quantity.trial_seconds(promise)
        last = read_trial(0, OK(Load(promise.load_pps), 1.5), Tolerance())  # the warm-up
        for testbed in run:
            if testbed is None:
                last = unended(last)
            else:
                last = read_trial(len(found) + 1, testbed(Load(promise.load_pps), seconds), Tolerance())
                last = with_doubts(last, promise.conditions, promise.quantity.doubts)
            found.append(replace(last, run=f"run {number}", problems=(*last.problems, UNREAD)))
    return found


def of_ended_runs() -> list[Case]:
    """Return attacks by ending a run, and honest ends of one."""
    end = None
    return [
        Resumed("Ctrl-C in the first trial, then a sound router", "P", RATE, OK, earlier=[[end]]),
        Resumed("the same, p99", "P", P99, probed({10: 1900, 20: 100}), earlier=[[end]]),
        Resumed("the same, quick", "P", RATE, OK, "quick", earlier=[[end]]),
        Resumed("the same, rfc2544, and a further run", "P", RATE, OK, "rfc2544", earlier=[[end], [OK]]),
        Resumed("Ctrl-C in the fourth trial, then a sound router", "P", RATE, OK, earlier=[[OK, OK, OK, end]]),
        Resumed("Ctrl-C, then a slow router", "F", RATE, router(0.02), earlier=[[OK, end]]),
        Case("all lost in each 8th trial", "F", RATE, then(*[(7, OK), (1, router(1.0))] * 9)),
        Resumed("the same, ended in each of them", "FI", RATE, OK, earlier=[[*[OK] * 7, end]] * 2),
        Resumed("all lost in each 5th trial, ended in each", "FI", RATE, OK, earlier=[[*[OK] * 4, end]] * 6),
        Case("soak of 2 min, an outage of 1 s", "F", f"{RATE} for 2 min", then((60, OK), (1, router(1.0)), (1, OK))),
        Resumed("the same, ended in it", "FI", f"{RATE} for 2 min", OK, earlier=[[*[OK] * 60, end]]),
    ]


def replaced(share: float, foreign: float) -> Measure:
    """Return a router that loses *share*, where *foreign* frames for each one asked for come back in their place."""

    def change(row: DirectionCount, asked: float) -> DirectionCount:
        others = round(asked * foreign)
        return replace(row, forwarded=row.offered - round(row.offered * share) + others, foreign=others)

    return counted(change)


def stacked(row: DirectionCount, asked: float) -> DirectionCount:
    """0.09 % less sent, 0.09 % in a queue that grows, 0.09 % of other origin: the router carries 0.27 % too little."""
    return replace(row, forwarded=row.offered, backlog=round(asked * 0.0009), foreign=round(asked * 0.0009))


def of_small_limits() -> list[Case]:
    """Return attacks on tolerances that are larger than what is promised, or add up."""
    ten, hundred = SMALL.format("10 kpps"), SMALL.format("100 kpps")
    three = counted(stacked, router(sent=0.9991))
    return [
        Case("loses 0.11 %, 10 foreign frames a second at 10 kpps", "FI", ten, replaced(0.0011, 0.001)),
        Case("loses 0.019 %, 10 foreign frames a second at 100 kpps", "FI", hundred, replaced(0.00019, 0.0001)),
        Case("loses 0.09 % behind a queue that grows by it", "FI", SMALL.format("1 Mpps"), slow(1e6 * 0.9991, 4096)),
        Case("three tolerances, 0.27 % too slow at 10 kpps", "FI", "64b unidirectional ≥ 10 kpps", three),
        Case("loses 0.009 %", "P", SMALL.format("1 Mpps"), router(0.00009)),
    ]


def oversent(ratio: float, testbed: Measure) -> Measure:
    """Return *testbed* by a generator that sends *ratio* of what is asked."""

    def measure(load: Load, seconds: float) -> Outcome:
        outcome = testbed(Load(load.pps * ratio), seconds)
        rows = tuple(replace(row, intended=round(load.pps * seconds)) for row in outcome.directions)
        return replace(outcome, load=load, directions=rows)

    return measure


def of_probe_shares() -> list[Case]:
    """Return attacks on shares of the probe frames, of which the session sends so many: 1022, 10 216."""
    spilling = above(1e6 * 1.0005, probed({10: 20_000}), probed({10: 20_000}, late=1000))
    some, fine = probe_frames({10: 1022}), probe_frames({10: 10_216})
    late = with_clock(router(probes=replace(some, out_of_order=4)), 0.001, 0.002)
    return [
        Case("the load loses half, its probes nothing, reorders", "FI", REORDERS, router(0.5, probes=some)),
        Case("all but the probes are lost, reorders", "FI", REORDERS, router(1.0, probes=some)),
        Case("reorders by the 1 % that was asked beyond it", "PI", REORDERS, with_clock(spilling, 0.005), warm_up=True),
        Case("reorders by 0.4 % that was sent beyond it", "I", REORDERS, oversent(1.004, spilling)),
        Case("reorders 0.4 %", "F", REORDERS, router(probes=replace(some, out_of_order=4))),
        Case("reorders 0.4 %, clock ±1 ms, 0.2 % late", "F", REORDERS, late, warm_up=True),
        Case("20 foreign frames at 1 Mpps, nothing reordered", "P", FINE, router(probes=fine, foreign=20)),
        Case("nothing reordered", "P", FINE, router(probes=fine)),
    ]


def of_ordinary_clocks() -> list[Case]:
    """Return sound routers on a clock of ± 1 ms that differs from trial to trial. p99 is the control."""
    cases = []
    for words, sentence in [
        ("p99", P99),
        ("max", MAX),
        ("mean", P99.replace("p99", "mean")),
        ("pdv max", PDV.replace("p99", "max")),
        ("max for 20 s", f"{MAX} for 20 s"),
    ]:
        testbed = with_clock(router(probes=probe_frames({10: 2000})), 0.001, -0.0008, 0.0009)
        cases.append(Case(f"{words}, clock ±1 ms", "P", sentence, testbed, warm_up=True))
    return cases


def of_rounding() -> list[Case]:
    """Return a generator that offers a third of what is to be forwarded, in trials of 1.7 s. All of it comes back."""
    first, rest = router(sent=0.3, backlog=lambda n: round(n * 0.00136)), router(sent=0.3)
    return [
        Case("a third offered, none lost, 1 s", "I", "64b unidirectional forwards ≥ 5 Mpps", rest),
        Case("the same, 1.7 s", "I", "64b unidirectional forwards ≥ 5 Mpps", then((1, first), (1, rest))),
    ]


def budgeted(testbed: Measure, a_second: int) -> Measure:
    """Return *testbed* with the foreign frames that are expected where so many a second came while nothing was sent."""
    foreign = ForeignFrames({1: round(a_second * IDLE_SECONDS)})
    return lambda load, seconds: foreign.with_budgets(testbed(load, seconds))


def ruling_of(case: Case) -> str:
    """Return the ruling of the product, and what its last trial was widened by."""
    promise = promised(case.sentence, case.goal, case.own)
    decision = decided(promise, case.testbed, case.warm_up, trials_of(case, promise))
    return "none" if decision.ruling is None else decision.ruling.value


def main() -> int:
    """Print each attack whose ruling is wrong (``-v``: all); 1 if there is one, else 0."""
    cases = [*of_known_loss(), *of_the_testbed(), *of_soaks(), *of_latency(), *of_other_quantities()]
    cases += [*of_ended_runs(), *of_small_limits(), *of_probe_shares(), *of_ordinary_clocks(), *of_rounding()]
    wrong = 0
    for case in cases:
        ruling = ruling_of(case)
        is_right = ruling[0] in case.wanted
        wrong += not is_right
        if not is_right or "-v" in sys.argv:
            print(f"{'right' if is_right else 'WRONG'}: {case.name}: {ruling}, wanted {case.wanted}")
    print(f"{len(cases) - wrong} of {len(cases)} right")
    return int(wrong > 0)


if __name__ == "__main__":
    finish(main)
