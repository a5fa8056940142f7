"""Cost: processor cycles per packet at a load, from the router's own telemetry, cleared and read while frames flow.

As it is measured by hand: traffic runs, ``clear runtime``, wait, ``show runtime``. A reading that also covered seconds
without frames would hold their polling, which no arithmetic takes off again: at saturation there is none of it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ..core.goals import Goal
from ..core.packet_cost import PacketCost, cost_figures, packet_costs, together
from ..core.requirement import Requirement, Unit
from ..core.telemetry import Telemetry
from ..core.trial import DURING_READING, Fault, Load, Measure, MeasureDuring, Outcome, Problem, Trial
from ..core.verdict import Evidence, Ruling, Verdict, undivided
from ..errors import TestbedError
from ..units import si
from .phrases import rate_figures, set_aside_text, spoilt_trials_reason
from .sequential import TrialConditions, contradicts, run_until_decided

READING_OF = {
    Unit.CYCLES: "cycles_per_packet",
    Unit.CYCLES_WITHOUT_INPUT: "cycles_per_packet_without_input",
    Unit.VECTORS: "vectors_per_call",
}
"""What a sentence bounds, as the name of the reading of a trial and of the figure of a verdict."""

SPARE_FACTOR = 2.0
"""A trial leaves so many times as long for the router's commands as they took in the trial before."""

SPARE_LEAST = 0.5
"""Seconds of the testbed's clock that it leaves at least: frames begin to flow meanwhile, too."""

TIME_TOLERANCE = 0.1
"""Seconds by which the time that ``show runtime`` covers may differ from ours; it may have one decimal only."""


@dataclass(frozen=True, slots=True)
class RuntimeCounters:
    """The router's runtime counters: *clear* them, *read* them (both raise TestbedError), *keep* a trial's reading."""

    clear: Callable[[], None]
    read: Callable[[], Telemetry]
    keep: Callable[[Telemetry], None] = lambda telemetry: None


def cost(
    requirement: Requirement,
    load: Load,
    goal: Goal,
    measure: MeasureDuring,
    runtime: RuntimeCounters,
    link_bps: float,
    conditions: TrialConditions,
    around: Callable[[Measure], Measure] = lambda measure: measure,
) -> Verdict:
    """Judge a sentence about cycles per packet, or vectors per call, at *load*.

    Each trial clears and reads the runtime counters while it sends; it is good if its figure is within the threshold.
    Loss does not matter. The reading covers the goal's trial duration and the trial counts for so much; it
    sends longer, for the router's commands. *around* wraps the measurement of each trial.
    """
    readings = _RuntimeTrials(measure, runtime, conditions.clock_speed)
    within = _within(requirement)

    def evidence_of(trial: Trial) -> Evidence:
        found = together(readings.costs[trial.number - 1])
        # a few frames that the generator lost or got twice change no cost
        spoilt = any(item.fault.excuses_router and item.frames is None for item in trial.problems)
        value = None if found is None else found.figures().get(READING_OF[requirement.threshold.unit])
        if value is None or spoilt or not 0 <= value < math.inf:
            return Evidence.NONE
        cheap = within(value)
        # at a lower load vectors are emptier and a packet costs more cycles: there only a figure within the threshold
        # proves anything, unless the sentence names the load
        lower = any(not item.fault.excuses_router for item in trial.problems)
        if lower and (requirement.load is not None or not cheap):
            return Evidence.NONE
        return Evidence.GOOD if cheap else Evidence.BAD

    def conclusive(trials: Sequence[Trial]) -> list[tuple[PacketCost, ...]]:
        return [readings.costs[trial.number - 1] for trial in trials if evidence_of(trial) is not Evidence.NONE]

    def keeps(trials: Sequence[Trial]) -> bool:
        whole = together(row for costs in conclusive(trials) for row in costs)
        return whole is None or within(whole.figures().get(READING_OF[requirement.threshold.unit], math.nan))

    rule = undivided(evidence_of)
    found = run_until_decided(around(readings.measure), load, goal, rule, conditions, keeps=keeps)
    ruling, trials = found.ruling, found.trials
    counted = conclusive(trials)
    figures = rate_figures(requirement, trials, link_bps) | cost_figures(counted or readings.costs)
    whole = together(row for costs in counted for row in costs)
    if ruling is Ruling.INCONCLUSIVE or whole is None:
        return Verdict(requirement, goal, ruling, spoilt_trials_reason(trials), trials, link_bps, figures)
    scope = " each way" if requirement.directions > 1 else ""
    reason = (
        f"{_costs_text(counted, requirement.threshold.unit)} at {si(figures['forwarded_pps'], 'pps')} forwarded{scope},"
        f" {si(figures['offered_pps'], 'pps')} offered"
    )
    if contradicts(ruling, goal, trials, rule):
        reason = f"{reason}; the goal forgives bad trials, but not a mean over all packets beyond the threshold"
    if ruling is Ruling.PASS:
        reason += set_aside_text(trials, rule)
    return Verdict(requirement, goal, ruling, reason, trials, link_bps, figures)


def _within(requirement: Requirement) -> Callable[[float], bool]:
    limit = requirement.threshold.number
    return (lambda value: value >= limit) if requirement.at_least else (lambda value: value <= limit)


class _RuntimeTrials:
    """Trials with a reading of *runtime* that lies in the seconds of traffic. ``costs``: of each trial, by thread."""

    def __init__(self, measure: MeasureDuring, runtime: RuntimeCounters, clock_speed: float) -> None:
        self._measure, self._runtime = measure, runtime
        # a simulation that does not say its speed is taken for real time
        self._speed = clock_speed if math.isfinite(clock_speed) else 1.0
        self._spare: float | None = None
        self.costs: list[tuple[PacketCost, ...]] = []

    def measure(self, load: Load, duration: float) -> Outcome:
        """One trial whose reading covers *duration* s. Raises TestbedError, also if the router does not answer."""
        found: list[Telemetry] = []

        def during(wait: Callable[[float], None]) -> None:
            with _past_the_generator():
                self._runtime.clear()
            wait(duration)
            with _past_the_generator():
                found.append(self._runtime.read())

        spare = self._rehearsed() if self._spare is None else self._spare
        # to a tenth of a second, which reads better
        sent = math.ceil(10 * (duration + spare)) / 10
        try:
            outcome = self._measure(load, sent, during)
        except _RouterFailed as failed:
            raise failed.error from failed.error.__cause__
        for telemetry in found:
            self._runtime.keep(telemetry)
        took = outcome.readings.get(DURING_READING, 0.0)
        # an answer that came late once need not make every later trial long
        self._spare = max(spare / 2, SPARE_LEAST + SPARE_FACTOR * (took - duration))
        costs = packet_costs(found[0]) if found else ()
        covered = found[0].since_clear if found else 0.0
        unusable = _why_unusable(costs, covered, duration, took, outcome.duration)
        self.costs.append(() if unusable else costs)
        readings = {**outcome.readings, **cost_figures([costs]), "runtime_seconds": covered}
        problems = outcome.problems
        if unusable and not any(unusable == problem.detail for problem in problems):  # a record has it already
            problems = (*problems, Problem(Fault.READING, unusable))
        return replace(outcome, readings=readings, problems=problems)

    def _rehearsed(self) -> float:
        """Seconds of the testbed's clock to leave for the router's commands, by how long they take now."""
        began = time.monotonic()
        self._runtime.clear()
        self._runtime.read()
        return SPARE_LEAST + SPARE_FACTOR * (time.monotonic() - began) * self._speed


def _why_unusable(costs: Sequence[PacketCost], covered: float, duration: float, took: float, sent: float) -> str:
    """Why a reading proves nothing; "" if it does. *covered*: s since the clear, by the router.

    *took*: s from the start of traffic to the reading (0: there is none), *sent*: s of traffic.
    """
    if not took:
        return "the router was not read, because a port of the generator sent no frame"
    if took >= sent:
        return (
            f"'show runtime' was answered {took:.1f} s after the start of {sent:g} s of traffic, perhaps after its end"
        )
    if not duration - TIME_TOLERANCE <= covered <= took + TIME_TOLERANCE:
        return (
            f"'show runtime' covers {covered:.1f} s, expected {duration:g} to {took:.1f} s since 'clear runtime';"
            " somebody else clears it, or the router's clock is wrong"
        )
    if not costs:
        return "'show runtime' shows no packets on any thread; check that the traffic reaches the router"
    return ""


class _RouterFailed(Exception):
    """Carries an *error* of the router past the generator, which did not fail."""

    def __init__(self, error: TestbedError) -> None:
        super().__init__(str(error))
        self.error = error


@contextmanager
def _past_the_generator() -> Iterator[None]:
    try:
        yield
    except TestbedError as error:
        raise _RouterFailed(error) from error


def _costs_text(readings: Sequence[Sequence[PacketCost]], unit: Unit) -> str:
    """All *readings* in words: over all packets, the spread of the readings, and each thread if there are several.

    The figure of *unit* leads; the spread and the threads are its own.
    """
    rows = [row for costs in readings for row in costs]
    judged, whole = READING_OF[unit], together(rows)
    if whole is None:
        return "no packets"
    values = {name: _cycles(value) for name, value in whole.figures().items()}
    words = {
        "cycles_per_packet": "{} with it" if unit is Unit.CYCLES_WITHOUT_INPUT else "{} cycles per packet",
        "cycles_per_packet_without_input": "{} without the input node",
        "vectors_per_call": "{} vectors per call",
    }
    lead = "{} cycles per packet without input" if unit is Unit.CYCLES_WITHOUT_INPUT else words[judged]
    others = ", ".join(words[name].format(value) for name, value in values.items() if name != judged)

    def figure(costs: Iterable[PacketCost]) -> float | None:
        found = together(costs)
        return None if found is None else found.figures().get(judged)

    each = [value for costs in readings if (value := figure(costs)) is not None]
    spread = f"trials from {_cycles(min(each))} to {_cycles(max(each))}"
    names = list(dict.fromkeys(row.thread for row in rows))
    threads = [(name, figure(row for row in rows if row.thread == name)) for name in names if len(names) > 1]
    shown = ", ".join(f"{name} {_cycles(value)}" for name, value in threads if value is not None)
    return f"{lead.format(values[judged])} ({'; '.join(filter(None, (others, spread, shown)))})"


def _cycles(number: float) -> str:
    return f"{number:.0f}" if number >= 1000 else f"{number:.4g}"
