"""A generator without a router: what it sends when it is asked for line rate, and whether that is fit for a line."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from ..core.quantity import TrafficWords
from ..core.trial import Load, Trial
from ..procedures.procedure import ProcedureRun
from ..procedures.trials import CharacterisationEnded, is_measured
from ..stats import mean_interval
from ..system.cpu_clock import cpu_times, steal_percent
from ..units import Layer, bits, line_rate_pps
from .study import LINK

OFFERED, RECEIVED, FRAME, DIRECTIONS = "offered_pps", "received_pps", "frame_bytes", "directions"
CPU, CORE_SHARE, STEAL = "cpu_seconds_per_mframe", "core_share", "steal_percent"
"""Names of figures. Rates are of the worse direction, frames/s.
``core_share``: 0..1, of the cores that the sender may use; ``steal_percent``: where that is on this machine."""


def sending_figures(run: ProcedureRun, traffic: TrafficWords) -> dict[str, float]:
    """Return what is offered when line rate is asked for of *traffic*.

    Raises TestbedError, CharacterisationEnded for trials that prove nothing.
    """
    session, plan, line = run.session, run.session.plan, run.line(traffic)
    is_here = plan.testbed.kind == "netns"
    # a TRex that falls behind sends on until it has sent all: line rate would take it minutes
    sends_all = plan.testbed.kind == "netns" and plan.testbed.generator == "trex"
    session.traffic.put(traffic)
    run.begin(traffic)
    if plan.warm_up and not sends_all:
        run.measure(Load(line), plan.warm_up)
    loads = [pps for pps in (50e3 * 2**number for number in range(30)) if sends_all and pps < line]
    best = dict[str, float]()
    with run.series(traffic) as trials:
        for pps in (*loads, line):
            before = cpu_times()
            # what is not sent as asked is what is measured, not a spoilt trial
            trial = trials.run(Load(pps), plan.goal.final_trial_duration, is_measured)
            steal = steal_percent(before, cpu_times()) if is_here else None
            figures = _figures(trial, traffic.profile.mean_size, is_here) | ({} if steal is None else {STEAL: steal})
            best = max(best or figures, figures, key=lambda one: one[OFFERED])
            if figures[OFFERED] < 0.97 * pps:
                break
    if trials.ended:
        raise CharacterisationEnded(trials.ended)
    return best


def _figures(trial: Trial, frame_bytes: float, is_here: bool) -> dict[str, float]:
    directions, seconds, readings = trial.outcome.directions, max(trial.seconds.high, 1e-9), trial.outcome.readings
    figures = {
        OFFERED: min(row.offered for row in directions) / seconds,
        RECEIVED: min(row.forwarded for row in directions) / seconds,
        FRAME: frame_bytes,
        DIRECTIONS: float(len(directions)),
    }
    used, cores = readings.get("sender_cpu_seconds"), readings.get("sender_cores", float(len(directions)))
    if used is None:
        # TRex reports the load of its busiest core, for a whole period after 2.5 s
        share = readings.get("cpu_util", 0.0) / 100 if trial.outcome.duration >= 2.5 else 0.0
    else:
        # both directions' senders are on this machine
        cores = min(cores, float(len(os.sched_getaffinity(0)))) if is_here else cores
        share = used / seconds / cores
    if share > 0:
        figures |= {CORE_SHARE: share, CPU: 1e6 * share * seconds * cores / max(1, trial.offered)}
    return figures


# -- the fitness of a generator for a line: by the interval of its repeats, and never unfit where others took its CPU


LINES = {"1 Gbit/s": 1e9, "10 Gbit/s": 10e9}
"""The lines that are asked about, bit/s of L1."""

FITNESS: Mapping[bool | None, str] = {True: "fit", False: "not fit", None: "not proven"}
"""The verdicts on a generator, a size and a line."""


@dataclass(frozen=True)
class SenderFigures:
    """The medians of the *figures* of each repeat of a row on a generator, by name.

    ``received``: the median share of the offered frames, 0..1. ``fits``: by line, as in FITNESS.
    """

    medians: Mapping[str, float]
    received: float
    fits: Mapping[str, bool | None]

    @classmethod
    def of(cls, figures: Sequence[Mapping[str, float]]) -> SenderFigures:
        """Return medians over the repeats' *figures*, of which there is one at least."""
        names = dict.fromkeys(name for repeat in figures for name in repeat)
        medians = {name: median(repeat[name] for repeat in figures if name in repeat) for name in names}
        received = median(one[RECEIVED] / one[OFFERED] if one[OFFERED] else 0.0 for one in figures)
        return cls(medians, received, {name: fit(figures, link) for name, link in LINES.items()})

    def gbps(self, layer: Layer) -> float:
        """Return the Gbit/s at *layer*."""
        return self.medians[OFFERED] * bits(self.medians[FRAME], layer) / 1e9


def fit(figures: Sequence[Mapping[str, float]], link_bps: float) -> bool | None:
    """Return the verdict on the repeats' *figures* for a line of *link_bps*, as in FITNESS."""
    # a clock may be a little slow, and a measurement, too
    needed = 0.99 * line_rate_pps(link_bps, figures[0][FRAME])
    offered = mean_interval([repeat[OFFERED] for repeat in figures])
    # two that are equal by chance have an interval of 0
    if len(figures) < 3 or offered.low is None or offered.high is None:
        return None
    if offered.low >= needed:
        # what a port only counts as sent fills no line
        return all(repeat[RECEIVED] >= 0.99 * repeat[OFFERED] for repeat in figures) or None
    might = offered.high >= needed or any(one[LINK] < link_bps or _possible(one) >= needed for one in figures)
    return None if might else False


def _possible(figures: Mapping[str, float]) -> float:
    """Return the frames/s that would be offered with the CPU that others took; infinite if not known."""
    pps = figures[OFFERED] / max(1e-9, 1 - figures.get(STEAL, 0.0) / 100)
    share = figures.get(CORE_SHARE)
    if share is None:
        return math.inf
    # nothing keeps a sender from so much of its cores; iperf3 waits a little
    return pps if share >= 0.85 else pps / share
