"""Ramp: a warm-up, a load that rises from zero to line rate, then a hold; where does the router fall behind?

This is the second method of the published reviews. There the load rises smoothly and rates are read from the
generator's display each second; here it rises in steps, each a trial, so that every figure is a count.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate, pairwise
from typing import Any, Literal

from ...core.phrases import percent
from ...core.trial import Load, Trial
from ...core.verdict import Deviation
from ...documents.chart import LOST_COLOUR, SIGNS, Chart, linear, scaled
from ...documents.document import Column, Note, Table
from ...session.traffic import PROBE_PPS
from ...units import si
from ..procedure import EACH, Procedure, ProcedureRun, figure, rows_of
from ..trials import ProcedureResult, worst_rate

BEHIND = 0.001
"""The ratio of offered frames that may be lost, or by which queues may grow, before a router counts as behind."""

Phase = Literal["warm-up", "ramp", "hold"]


@dataclass(frozen=True, slots=True)
class RampStep:
    """One trial of the ramp, with its mean rates in frames/s, of the worse direction.

    ``behind``: it lost, or its queues grew by, more than BEHIND.
    """

    phase: Phase
    trial: Trial
    offered_pps: float
    forwarded_pps: float
    loss_ratio: float
    behind: bool

    @classmethod
    def of(cls, phase: Phase, trial: Trial) -> RampStep:
        """Return *trial* as a step. What came out of a queue after the end of sending was not forwarded at its rate."""
        directions = trial.outcome.directions
        forwarded = min(row.forwarded - (row.backlog or 0) for row in directions) / trial.seconds.high
        missing = max((row.lost + (row.backlog or 0)) / max(1, row.offered) for row in directions)
        offered, lost = worst_rate(trial, "offered"), trial.loss_ratio(in_total=False)
        return cls(phase, trial, offered, forwarded, lost, missing > BEHIND)

    @property
    def load(self) -> Load:
        """The load asked for, of each sending port."""
        return self.trial.outcome.load


@dataclass(frozen=True, slots=True, kw_only=True)
class RampResult(ProcedureResult):
    """A ramp to ``target`` per cent of ``line_pps`` (frames/s of one port)."""

    line_pps: float
    target: float
    steps: tuple[RampStep, ...]

    @property
    def rise(self) -> tuple[RampStep, ...]:
        """The steps whose load rises."""
        return tuple(step for step in self.steps if step.phase == "ramp")

    @property
    def saturation(self) -> RampStep | None:
        """The step of the rise from which on the router stays behind, the hold included; None if there is none."""
        first = None
        for step in self.steps:
            # the warm-up is no step of the rise
            first = (first or step) if step.behind and step.phase != "warm-up" else None
        return first if first is not None and first.phase == "ramp" else None

    @property
    def ceiling_pps(self) -> float | None:
        """The most that the generator offered in steps where it offered less than was asked; None: in none."""
        slow = (step for step in self.steps if any(problem.fault.generator_too_slow for problem in step.trial.problems))
        return max((step.offered_pps for step in slow), default=None)

    @property
    def findings(self) -> Iterator[str]:
        """Yield what was found, as texts."""
        if self.saturation:
            load, share = self.saturation.load.pps, 100 * self.saturation.load.pps / self.line_pps
            scope = " (the worse direction)" if self.scope else ""
            yield f"saturated at {si(load, 'pps')} ({share:.4g} % line rate) into each port{scope}"
        else:
            reached = max((step.load.pps for step in self.steps), default=0.0)
            yield f"no saturation up to {si(reached, 'pps')}" if self.steps else "no step was measured"
        if self.ceiling_pps is not None:
            yield f"the generator offered no more than {si(self.ceiling_pps, 'pps')}, less than was asked"
        yield (
            "saturation is the lowest load of the ramp from which on every step, the hold included, lost more than"
            f" {percent(BEHIND)} of the frames offered, or let its queues grow by so many"
        )

    @property
    def edges(self) -> list[float]:
        """The seconds of traffic at which steps begin, and the last one ends."""
        return [0.0, *accumulate(step.trial.outcome.duration for step in self.steps)]


# -- the keyword, its document and its chart ---------------------------------------------------------------------------


def ramp(
    run: ProcedureRun,
    traffic: str,
    steps: int = 100,
    step: timedelta = timedelta(seconds=1),
    warm_up: timedelta = timedelta(seconds=5),
    hold: timedelta = timedelta(seconds=5),
) -> RampResult:
    """Raise the load from nothing to the testbed's maximum in *steps* trials of *step*, then hold it.

    *warm_up* before, *hold* after the rise. The result is also kept as the JSON that trex-loadtest-viz draws.
    Example:
    | Ramp    64b 1-flow unidirectional    steps=10    step=500 ms
    """
    known, seconds = run.traffic(traffic), step.total_seconds()
    line, highest = run.line(known), run.put(known, warm_up=False)
    target = min(100.0, 100 * highest.pps / line)
    top = line * target / 100

    def equal_parts(phase: Phase, pps: float, whole: timedelta) -> list[tuple[Phase, float, float]]:
        count = math.ceil(whole / step - 1e-9)
        return [(phase, pps, whole.total_seconds() / max(1, count))] * count

    rise: list[tuple[Phase, float, float]] = [("ramp", top * (number + 1) / steps, seconds) for number in range(steps)]
    before = equal_parts("warm-up", min(PROBE_PPS, line / 100), warm_up)
    phases = [*before, *rise, *equal_parts("hold", top, hold)]
    run.announce(len(phases), sum(lasting for *_, lasting in phases))
    done: list[RampStep] = []
    with run.series(known) as trials:
        for phase, pps, lasting in phases:
            # a step where the generator sent less is kept
            done.append(RampStep.of(phase, trials.run(Load(pps), lasting, trials.shows_loss)))
    rows = [
        {
            Column("phase", left=True): step.phase,
            Column("load", EACH): figure(step.load),
            Column("load", "% of line"): figure(step.load, ".2f", 100 / line),
            Column("offered", "frames/s"): figure(step.offered_pps),
            Column("forwarded", "frames/s"): figure(step.forwarded_pps),
            Column("lost"): percent(step.loss_ratio),
            Column("router is", left=True): "behind" if step.behind else "",
        }
        for step in done
    ]
    pauses_between_steps = Deviation(
        "method 2 of the published reviews",
        "a load that rises without a pause, with rates read from the generator's display each second",
        "a staircase of trials; traffic pauses between them so that each one's frames are counted to the last, and the"
        " router's buffers are empty when the next begins",
    )
    fields = trials.as_fields([pauses_between_steps])
    return RampResult(line_pps=line, target=target, steps=tuple(done), rows=rows, **fields)


def _parts(run: ProcedureRun, results: Sequence[RampResult]) -> Sequence[Note | Table]:
    """Return a row for each step, below the findings."""
    return [*(Note(finding) for result in results for finding in result.findings), *rows_of(run, results)]


def _picture(run: ProcedureRun, results: Sequence[RampResult]) -> str:
    """Return offered and forwarded rate over the seconds of the ramp, with the saturation point."""
    (result,) = results
    steps, edges = result.steps, result.edges
    across = linear("seconds of traffic (it pauses between the steps)", max(edges[-1], 1e-9))
    up = scaled("rate, each port", "pps", 1.08 * max([step.offered_pps for step in steps], default=1.0) or 1.0)
    plot = Chart(run.title, across, up, run.session.simulated)
    ends = [(edge, step) for both, step in zip(pairwise(edges), steps, strict=True) for edge in both]
    plot.curve([(edge, step.offered_pps) for edge, step in ends], "offered", dashes="2 3")
    plot.curve([(edge, step.forwarded_pps) for edge, step in ends], "forwarded", colour=SIGNS[0].colour)
    for edge, (before, after) in zip(edges[1:], pairwise(steps), strict=False):
        if before.phase is not after.phase:
            plot.curve([(edge, -math.inf), (edge, math.inf)], "", dashes="1 4")
            plot.caption((edge, math.inf), f"{after.phase} begins")
    if result.saturation is not None:
        edge = edges[steps.index(result.saturation)]
        plot.curve([(edge, -math.inf), (edge, math.inf)], "saturation", None, LOST_COLOUR, "9 4")
    return plot.svg()


def _loadtest(run: ProcedureRun, results: Sequence[RampResult]) -> dict[str, Any]:
    """Return the ramp as JSON data. Ports are numbered from 0, in the order in which the testbed uses them.

    ``profile_file`` is the name of the traffic: results with the same words come into the same graph. An entry is
    one second: the step that is under way in the middle of it.
    """
    (result,) = results
    steps, edges, traffic = result.steps, result.edges, run.traffic(run.words)
    ways = [(row.tx_port, row.rx_port) for step in steps[:1] for row in step.trial.outcome.directions]
    ports = {port: number for number, port in enumerate(dict.fromkeys(port for way in ways for port in way))}

    def entry(step: RampStep) -> dict[str, Any]:
        """Return the rates of *step* by port, in frames/s and per cent of line rate."""
        seconds, directions, percent = step.trial.seconds.high, step.trial.outcome.directions, 100 / result.line_pps
        entry: dict[str, Any] = {"phase": "rampup" if step.phase == "ramp" else step.phase}
        for port, number in ports.items():
            out = sum(row.offered for row in directions if row.tx_port == port) / seconds
            back = sum(row.forwarded for row in directions if row.rx_port == port) / seconds
            rates = {"tx_pps": out, "rx_pps": back, "tx_util": percent * out, "rx_util": percent * back}
            entry[str(number)] = rates
        return entry

    under_way = (steps[bisect_right(edges, second + 0.5) - 1] for second in range(round(edges[-1])))
    lasted = {"warm-up": 0.0, "ramp": 0.0, "hold": 0.0}
    for step in steps:
        lasted[step.phase] += step.trial.outcome.duration
    slow = next((step.load.pps for step in steps if step.phase == "warm-up"), 0.0)
    return {
        "vars": {
            "profile_file": traffic.profile.name,
            "unidirectional": not traffic.bidirectional,
            "warmup_mult": si(slow, "pps").replace(" ", ""),
            "warmup_duration": lasted["warm-up"],
            "rampup_target": result.target,
            "rampup_duration": lasted["ramp"],
            "hold_duration": lasted["hold"],
            "simulated": run.session.simulated,
            "deviations": list(map(str, result.deviations)),
        },
        "stats": {str(second): entry(step) for second, step in enumerate(under_way)},
    }


RAMP = Procedure(
    "Ramp", "ramp", ramp, may_be_nothing=("warm_up", "hold"), parts=_parts, picture=_picture, loadtest=_loadtest
)
