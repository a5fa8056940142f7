"""Made-up testbeds at the seam ``measure(load, seconds) -> Outcome``, and what the rule says of them.

Ports of direction *n* are *n* and its neighbour: 0 to 1, 1 to 0, 2 to 3, 3 to 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from lineproof.core.deciding import Decision, TrialConditions, decide
from lineproof.core.doubts import OwnPart
from lineproof.core.goal import Goal, read_goal
from lineproof.core.latency import LatencyCount, Resolution
from lineproof.core.quantity import Promise
from lineproof.core.rule import Ruling
from lineproof.core.sentence import parse
from lineproof.core.step_down import CountSnapshot, StepDown
from lineproof.core.trial import DirectionCount, Fault, Load, Measure, Outcome, Problem, Tolerance, Trial, read_trial
from lineproof.core.verdict import Verdict, verdict_of
from support.catalogue import CATALOGUE
from support.paths import VARIABLES

LINK_BPS = 10e9
LINE_PPS = LINK_BPS / 672
"""Frames/s of 64 bytes."""

CLEAN = OwnPart(trials=1000)
"""A generator that was watched for long, and lost nothing."""

RANK = {Ruling.FAIL: 0, Ruling.INCONCLUSIVE: 1, Ruling.PASS: 2}
"""From bad to good."""


@cache
def goal_named(name: str) -> Goal:
    return read_goal(VARIABLES / "goals", name)


def promised(sentence: str, goal: str | Goal = "standard", own: OwnPart = CLEAN) -> Promise:
    """Return *sentence* in numbers on ports of 10 Gbit/s, whose maximum load is line rate."""
    requirement = parse(sentence, CATALOGUE)
    load = requirement.quantity.load(requirement, LINK_BPS, Load(requirement.profile.line_rate_pps(LINK_BPS)))
    return requirement.promise(goal_named(goal) if isinstance(goal, str) else goal, load, LINK_BPS, own)


def decided(promise: Promise, testbed: Measure, warm_up: bool = False, earlier: Sequence[Trial] = ()) -> Decision:
    """Return what the rule says of *testbed*. *warm_up*: a trial before shows how much load and time a trial needs.

    *earlier*: trials of the runs that this one goes on with.
    """
    tolerance = Tolerance()
    first = None
    if warm_up:
        seconds = promise.quantity.trial_seconds(promise)
        first = read_trial(0, testbed(Load(promise.load_pps), seconds), tolerance)
    return decide(promise, testbed, TrialConditions(tolerance), LINE_PPS, first, earlier)


Count = int | Callable[[int], int] | None
"""A field of a direction, or a function of the frames offered."""


def router(
    *lost: float,
    sent: float = 1.0,
    late: float = 0.0,
    clock: float = 0.0,
    problems: tuple[Problem, ...] = (),
    readings: Mapping[str, float] | None = None,
    probes: LatencyCount | None = None,
    **counts: Count,
) -> Measure:
    """Return a testbed whose directions lose these shares of their frames (none: one direction that loses nothing).

    *sent*: frames offered, as a share of the load. *late*: ratio by which sending takes longer. *clock*: its end is
    known to so many s. *probes*: of every direction. *counts*: further fields of every direction.
    """

    def measure(load: Load, seconds: float) -> Outcome:
        intended = round(load.pps * seconds)
        offered = round(load.pps * seconds * sent)
        fields: dict[str, Any] = {name: value(offered) if callable(value) else value for name, value in counts.items()}
        ways = [
            DirectionCount(way, way ^ 1, intended, offered, round(offered * (1 - share)))
            for way, share in enumerate(lost or (0.0,))
        ]
        directions = tuple(replace(way, **fields) for way in ways)
        latency = (
            () if probes is None else tuple(replace(probes, tx_port=r.tx_port, rx_port=r.rx_port) for r in directions)
        )
        known = {**(readings or {}), "elapsed_uncertainty": clock}
        return Outcome(load, seconds, seconds * (1 + late), 0.0, directions, problems, known, latency)

    return measure


def joined(*testbeds: Measure) -> Measure:
    """Return a testbed whose direction *n* is the only one of the *n*-th of *testbeds*."""

    def measure(load: Load, seconds: float) -> Outcome:
        outcomes = [testbed(load, seconds) for testbed in testbeds]
        ways = list(enumerate(outcomes))
        directions = tuple(replace(outcome.directions[0], tx_port=way, rx_port=way ^ 1) for way, outcome in ways)
        probes = tuple(replace(one, tx_port=way, rx_port=way ^ 1) for way, outcome in ways for one in outcome.latency)
        return replace(outcomes[0], directions=directions, latency=probes)

    return measure


def then(*parts: tuple[int, Measure]) -> Measure:
    """Return a testbed that is each of *parts* for so many trials; the last one goes on."""
    left = [testbed for count, testbed in parts for _ in range(count)]
    last = parts[-1][1]
    return lambda load, seconds: (left.pop(0) if left else last)(load, seconds)


def slow(capacity: float, queue: int = 4096, late: float = 0.0, sent: float = 1.0) -> Measure:
    """Return a router that forwards so many frames/s, whose queue drains after sending."""

    def measure(load: Load, seconds: float) -> Outcome:
        offered = round(load.pps * seconds * sent)
        beyond = max(0, offered - round(capacity * seconds * (1 + late)))
        held = min(beyond, queue)
        row = DirectionCount(0, 1, round(load.pps * seconds), offered, offered - (beyond - held), backlog=held)
        return Outcome(load, seconds, seconds * (1 + late), 0.0, (row,))

    return measure


def probe_frames(
    histogram: Mapping[int, int], sent: int | None = None, copies: int = 0, received: int | None = None, late: int = 0
) -> LatencyCount:
    """Return probe frames: {lower end of TRex's bucket in µs: frames}. *late*: out of order."""
    timed = sum(histogram.values())
    most = float(Resolution.ONE_DIGIT.end(max(histogram, default=0)))
    came = timed if received is None else received
    return LatencyCount(0, 1, timed if sent is None else sent, came, most / 2, most, 5.0, histogram, late, copies)


def probe_group(
    histogram: Mapping[int, int], sent: int, received: int, maximum: float = 50.0, **more: Any
) -> dict[str, Any]:
    """Return one packet group of TRex's, as the client answers it: the coarse *histogram*; ``hdrh``: the fine one."""
    coarse = {str(key): frames for key, frames in histogram.items()}
    counts = {"tx_port": 0, "rx_port": 1, "sent": sent, "received": received, "mean": 50.0, "maximum": maximum}
    return {**counts, "histogram": coarse, "hdrh": "", **more}


def powered(watts: float, idle: float | None = None, error: float = 0.1, testbed: Measure | None = None) -> Measure:
    readings = {"power_watts": watts, "power_uncertainty_watts": error}
    if idle is not None:
        readings |= {"idle_power_watts": idle, "power_above_idle_uncertainty_watts": 2 * error}
    return with_readings(testbed or router(), readings)


def recovering(
    low: float,
    high: float | None,
    lost_late: float = 0.0,
    overload_loss: float = 0.3,
    control_loss: float = 0.0,
    sent: float = 1.0,
    foreign: Count = 0,
) -> Measure:
    """Return a router whose last frame after an overload was lost between *low* and *high* s (None: end not seen).

    *lost_late*: frames that certainly were lost after the limit. *sent*: of the overload, as a share of it.
    *foreign*: as of :func:`router`.
    """
    readings = {
        "timed": 1.0,
        "overload_loss.0": overload_loss,
        "control_loss.0": control_loss,
        "lost_late.0": lost_late,
        "recovery_low_s.0": low,
        "overload_sent.0": sent,
        **({} if high is None else {"recovery_high_s.0": high}),
    }
    return with_readings(router(overload_loss, foreign=foreign), readings)


def stepped(
    first: Load,
    seconds: float,
    second: Load,
    after: float,
    every: float,
    directions: int,
    lag: float,
    always: float,
    overload: float,
) -> StepDown:
    """Return counts of an overload of which the ratio *overload* is lost, and then a tenth for *lag* s.

    *always*: the ratio that is lost of the second load at any time. Without an overload no more than that is lost.
    """
    overloaded = first.pps > second.pps

    def at(time: float) -> CountSnapshot:
        before, later = seconds + min(time, 0), max(time, 0)
        lost = always * second.pps * later
        if overloaded:
            lost += overload * first.pps * before + 0.1 * second.pps * min(later, lag)
        offered = first.pps * before + second.pps * later
        return CountSnapshot((int(offered),) * directions, (int(offered - lost),) * directions)

    end, whole = at(after), seconds + after
    rows = (DirectionCount(at, 1 - at, end.offered[at], end.offered[at], end.forwarded[at]) for at in range(directions))
    samples = tuple(at(every * number) for number in range(1, int(after / every)))
    outcome = Outcome(first, whole, whole, 0.0, tuple(rows))
    return StepDown(outcome, second, at(-0.01), at(0.01), samples, (second.pps * 0.999, second.pps * 1.001))


def with_readings(testbed: Measure, readings: Mapping[str, float]) -> Measure:
    def measure(load: Load, seconds: float) -> Outcome:
        outcome = testbed(load, seconds)
        return replace(outcome, readings={**outcome.readings, **readings})

    return measure


def down(*ways: int) -> Problem:
    """Return that the link of these directions was down; without one: of all."""
    return Problem(Fault.LINK_DOWN, "for a test", directions=tuple((way, way ^ 1) for way in ways))


def fault(kind: Fault, frames: float | None = None, *ways: int) -> Problem:
    """Return a problem of these directions (none: of all) with the most frames that it concerns."""
    return Problem(kind, "for a test", frames, tuple((way, way ^ 1) for way in ways))


def verdict_on(sentence: str, testbed: Measure, goal: str = "quick", own: OwnPart = CLEAN) -> Verdict:
    """Return the verdict with its words."""
    requirement, promise = parse(sentence, CATALOGUE), promised(sentence, goal, own)
    decision = decided(promise, testbed)
    return verdict_of(decision, promise, requirement)
