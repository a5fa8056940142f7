"""``costs ≤ 450 cycles/packet`` and ``gathers ≥ 200 vectors/call``, from VPP's runtime counters at a load.

As it is measured by hand: traffic runs, ``clear runtime``, wait, ``show runtime``. Read the counters only while frames
flow. Idle polling costs cycles too, and cannot be subtracted: at saturation VPP does not poll idly.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from ...core.bounds import UNKNOWN, Bounds
from ...core.packet_cost import PacketCost, cost_figures, cost_readings, packet_costs, read_costs, together
from ...core.phrases import between, mean_rate, median_words
from ...core.quantity import Instruments, Promise, Quantity, Reason
from ...core.rule import Ruling
from ...core.telemetry import Telemetry
from ...core.trial import DURING_READING, Fault, Load, Measure, Outcome, Problem, Trial
from ...core.units import Unit
from ...errors import TestbedError
from ...units import si

READING_OF = {
    Unit.CYCLES: "cycles_per_packet",
    Unit.CYCLES_WITHOUT_INPUT: "cycles_per_packet_without_input",
    Unit.VECTORS: "vectors_per_call",
}
"""The figure that a sentence bounds, as the name of the reading of a trial and of the figure of a verdict."""

SPARE_FACTOR = 2.0
"""A trial leaves so many times as long for the router's commands as they took in the trial before."""

SPARE_LEAST = 0.5
"""Seconds of the testbed's clock that it leaves at least: frames begin to flow meanwhile, too."""

MOST_SERIES = 11
"""Workers that a chart shows one by one: as many shapes of marks can be told apart."""

TIME_TOLERANCE = 0.1
"""Seconds by which the time that ``show runtime`` covers may differ from ours; it may have one decimal only."""


class Cycles(Quantity):
    """Processor cycles per packet, of all threads together."""

    name = "cycles"
    is_mean = True
    word = "costs"
    units: ClassVar[tuple[Unit, ...]] = (Unit.CYCLES, Unit.CYCLES_WITHOUT_INPUT)
    needs = frozenset({"runtime"})
    has_directions = False
    doubts = ()
    title = "Cost of a packet"
    example = "costs ≤ 450 cycles/packet"
    glossary: ClassVar[Mapping[str, str]] = {
        "cycles/packet": "steps of the processor for a frame",
        "vectors/call": "frames that the router's software takes at once",
    }

    def figures(self, promise: Promise, trials: Sequence[Trial], perfect: int = 0) -> tuple[Bounds, ...]:
        """Return the figure of all packets of a trial, of several the median; open where it is not known."""
        return (promise.limit.median([_cost(promise, trial) for trial in trials], perfect),)

    def measure(self, instruments: Instruments, promise: Promise) -> Measure:
        """Return a trial that clears and reads the runtime counters while it sends."""
        return _RuntimeTrials(instruments).measure

    def reason(self, promise: Promise, ruling: Ruling, trials: Sequence[Trial]) -> Reason:
        """Return the figure over all packets, the others of the same reading, and each thread."""
        readings = [costs for trial in trials if (costs := read_costs(trial.outcome.readings))]
        if not readings:
            return Reason("the router's runtime counters were not read")
        (whole,) = promise.figures(trials)
        if whole == UNKNOWN:
            return Reason("the cost of a packet at the load is not known")
        summary, details = _costs_words(readings, promise.unit, between(whole, promise.digits), median_words(trials))
        offered, forwarded = (si(mean_rate(trials, promise, name), "pps") for name in ("offered", "forwarded"))
        return Reason(f"{summary} at {forwarded} forwarded, {offered} offered", details)

    def named_figures(self, promise: Promise, trials: Sequence[Trial]) -> Mapping[str, float]:
        """Return the judged figure at the end that is worse for the router, and others over all packets."""
        figures = cost_figures([read_costs(trial.outcome.readings) for trial in trials])
        judged, (whole,) = READING_OF[promise.unit], promise.figures(trials)
        figures.pop(judged, None)
        return figures if whole == UNKNOWN else {**figures, judged: promise.limit.worse_end(whole)}

    def charted(self, promise: Promise, trial: Trial) -> Mapping[str, Bounds]:
        """Return the figure of all workers, and of each; of many workers the least and the greatest."""
        name = READING_OF[promise.unit]
        costs = read_costs(trial.outcome.readings)
        known = {cost.thread: cost.figures()[name] for cost in costs if name in cost.figures()}
        workers = {thread: Bounds(value, value) for thread, value in known.items() if math.isfinite(value)}
        if len(workers) > MOST_SERIES:
            values = [bounds.low for bounds in workers.values()]
            workers = {f"{len(workers)} workers: least to greatest": Bounds(min(values), max(values))}
        whole = self.shown(promise, [trial])
        return {**({} if whole == UNKNOWN else {"all workers": whole}), **(workers if len(known) > 1 else {})}

    def plain(self, promise: Promise, figure: str, load: str) -> str:
        """Return the work for a frame."""
        return f"To deliver a frame costs the router {figure}."


class Gathering(Cycles):
    """Packets per call of VPP's busiest graph node: how full its vectors are."""

    name = "gathers"
    word = "gathers"
    units = (Unit.VECTORS,)
    at_least = True
    title = "Packets of a vector"
    example = "gathers ≥ 200 vectors/call"

    def plain(self, promise: Promise, figure: str, load: str) -> str:
        """Return how many frames are handled at once."""
        return f"The router's software takes {figure}: many at once are cheaper."


def _cost(promise: Promise, trial: Trial) -> Bounds:
    """Return the figure of all packets of *trial*.

    At a lower load vectors are emptier and a packet costs more cycles; what the testbed lost changes no cost. Packets
    that the router dropped are cheap: at the worse end those that it forwarded bear the cost.
    """
    whole = together(read_costs(trial.outcome.readings))
    value = None if whole is None else whole.figures().get(READING_OF[promise.unit])
    # a few frames that the generator lost or got twice change no cost
    doubts = (problem.fault for problem in trial.problems if problem.frames is None)
    is_spoilt = any(fault not in (Fault.READING, Fault.PAUSED) for fault in doubts)
    if whole is None or value is None or not 0 < value < math.inf or is_spoilt:
        return UNKNOWN
    few, most = promise.goal.forgiven * whole.packets, value
    if whole.dropped > few and not promise.limit.at_least:
        most = value * whole.packets / max(whole.packets - whole.dropped, math.ulp(1.0))
    is_above, is_below = promise.is_above_load(trial), promise.is_below_load(trial)
    if is_below and (is_above or promise.names_load):
        return UNKNOWN
    if is_above:
        return Bounds(0.0, value) if promise.limit.at_least else Bounds(value, math.inf)
    if not is_below:
        return Bounds(value, most)
    return Bounds(value, math.inf) if promise.limit.at_least else Bounds(0.0, most)


class _RuntimeTrials:
    """Trials with a reading of the router's runtime counters that lies in the seconds of traffic."""

    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments
        # a simulation that does not say its speed is taken for real time
        self._speed = instruments.clock_speed if math.isfinite(instruments.clock_speed) else 1.0
        self._spare: float | None = None

    def measure(self, load: Load, duration: float) -> Outcome:
        """Measure a trial whose reading covers *duration* s. Raises TestbedError, also if the router is silent."""
        runtimes, failed = list[Telemetry](), list[TestbedError]()

        def during(wait: Callable[[float], None]) -> None:
            try:
                self._instruments.clear_runtime()
                wait(duration)
                runtimes.append(self._instruments.read_runtime())
            except TestbedError as error:  # of the router: the generator did not fail
                failed.append(error)

        spare = self._rehearsed() if self._spare is None else self._spare
        # to a tenth of a second, which reads better
        sent = math.ceil(10 * (duration + spare)) / 10
        outcome = self._instruments.measure(load, sent, during)
        if failed:
            raise failed[0]
        for telemetry in runtimes:
            self._instruments.keep_runtime(telemetry)
        took = outcome.readings.get(DURING_READING, 0.0)
        # an answer that came late once need not make every later trial long
        self._spare = max(spare / 2, SPARE_LEAST + SPARE_FACTOR * (took - duration))
        costs = packet_costs(runtimes[0]) if runtimes else ()
        covered = runtimes[0].since_clear if runtimes else 0.0
        unusable = _why_unusable(costs, covered, duration, took, outcome.duration)
        counts = {} if unusable else {**cost_readings(costs), **cost_figures([costs])}
        readings = {**outcome.readings, **counts, "runtime_seconds": covered}
        unread = (Problem(Fault.READING, unusable),) if unusable else ()
        return replace(outcome, readings=readings, problems=(*outcome.problems, *unread))

    def _rehearsed(self) -> float:
        """Return the seconds of the testbed's clock to leave for the router's commands, by how long they take now."""
        began = time.monotonic()
        self._instruments.clear_runtime()
        self._instruments.read_runtime()
        return SPARE_LEAST + SPARE_FACTOR * (time.monotonic() - began) * self._speed


def _why_unusable(costs: Sequence[PacketCost], covered: float, duration: float, took: float, sent: float) -> str:
    """Return why a reading proves nothing; "" if it does. *covered*: s since the clear, by the router.

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


def _costs_words(
    readings: Sequence[Sequence[PacketCost]], unit: Unit, figure_of_all: str, median: str
) -> tuple[str, tuple[str, ...]]:
    """Return *figure_of_all* in words, and lines: the other figures of *readings*, their spread and each thread."""
    of_threads = [row for costs in readings for row in costs]
    judged, whole = READING_OF[unit], together(of_threads)
    values = {} if whole is None else {name: _cycles(value) for name, value in whole.figures().items()}
    reasons = {
        "cycles_per_packet": "{} cycles per packet with polling",
        "cycles_per_packet_without_input": "{} without the input node",
        "vectors_per_call": "{} vectors per call",
    }
    if unit is Unit.CYCLES_WITHOUT_INPUT:
        reasons |= {judged: "{} cycles per packet without input", "cycles_per_packet": "{} with it"}
    others = ", ".join(reasons[name].format(value) for name, value in values.items() if name != judged)

    def figure(costs: Iterable[PacketCost]) -> float | None:
        whole = together(costs)
        return None if whole is None else whole.figures().get(judged)

    judged_figures = [value for costs in readings if (value := figure(costs)) is not None]
    names = list(dict.fromkeys(row.thread for row in of_threads))
    threads = [(name, figure(row for row in of_threads if row.thread == name)) for name in names if len(names) > 1]
    least, most = _cycles(min(judged_figures)), _cycles(max(judged_figures))
    together_words = "of all trials together: " if len(readings) > 1 else ""
    details = [f"{together_words}{others}" if others else "", f"trials from {least} to {most}" if least != most else ""]
    details += [f"{name}: {_cycles(value)}" for name, value in threads if value is not None]
    if whole is not None and whole.dropped:
        details.append(f"the router dropped {whole.dropped:,.0f} of {whole.packets:,.0f} packets: those cost less")
    return reasons[judged].format(figure_of_all) + median, tuple(filter(None, details))


def _cycles(number: float) -> str:
    return f"{number:.0f}" if number >= 1000 else f"{number:.4g}"


CYCLES = Cycles()
GATHERING = Gathering()
