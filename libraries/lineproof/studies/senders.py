"""A generator without a router: what it sends when it is asked for line rate, and whether that is fit for a line."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from ..core.quantity import TrafficWords
from ..core.trial import Load, Outcome, Trial
from ..procedures.trials import TrialSeries, is_measured
from ..session.session import Session
from ..stats import mean_interval
from ..system.cpu_clock import cpu_times, steal_percent
from ..units import Layer, bits, line_rate_pps
from .study import LINK

OFFERED, RECEIVED, FRAME, DIRECTIONS = "offered_pps", "received_pps", "frame_bytes", "directions"
CPU, CORE_SHARE, STEAL = "cpu_seconds_per_mframe", "core_share", "steal_percent"
"""Names of figures. Rates are of the worse direction, frames/s.
``core_share``: 0..1, of the cores that the sender may use; ``steal_percent``: where that is on this machine."""


def sending_figures(session: Session, traffic: TrafficWords, keep: Callable[[Trial], None]) -> dict[str, float]:
    """Return what is offered when line rate is asked for of *traffic*, which is on the ports.

    *keep*: called after each trial. Raises TestbedError, CharacterisationEnded for trials that prove nothing.
    """
    plan, testbed = session.plan, session.plan.testbed
    is_here = testbed.kind == "netns"
    seconds, line = plan.goal.final_trial_duration, traffic.profile.line_rate_pps(plan.link_bps(traffic.pairs))
    # a TRex that falls behind sends on until it has sent all: line rate would take it minutes
    sends_all = testbed.kind == "netns" and testbed.generator == "trex"
    if plan.warm_up and not sends_all:
        session.traffic.measure(Load(line), plan.warm_up)
    steal: float | None = None

    def measure(load: Load, duration: float) -> Outcome:
        nonlocal steal
        before = cpu_times()
        outcome = session.traffic.measure(load, duration)
        steal = steal_percent(before, cpu_times()) if is_here else None
        return outcome

    series = TrialSeries(measure, testbed.tolerances(), session.testbed.facts.clock_speed, keep)
    best = dict[str, float]()
    pps = min(50e3, line) if sends_all else line
    while True:
        # what is not sent as asked is what is measured, not a spoilt trial
        trial = series.run(Load(pps), seconds, is_measured)
        figures = _figures(trial, traffic.profile.mean_size, is_here) | ({} if steal is None else {STEAL: steal})
        best = max(best or figures, figures, key=lambda one: one[OFFERED])
        if pps >= line or figures[OFFERED] < 0.97 * pps:
            return best
        pps = min(2 * pps, line)


def _figures(trial: Trial, frame_bytes: float, is_here: bool) -> dict[str, float]:
    rows, seconds, readings = trial.outcome.directions, max(trial.seconds.high, 1e-9), trial.outcome.readings
    figures = {
        OFFERED: min(row.offered for row in rows) / seconds,
        RECEIVED: min(row.forwarded for row in rows) / seconds,
        FRAME: frame_bytes,
        DIRECTIONS: float(len(rows)),
    }
    used, cores = readings.get("sender_cpu_seconds"), readings.get("sender_cores", float(len(rows)))
    if used is None:
        # TRex reports the load of its busiest core, for a whole period after 2.5 s
        share = readings.get("cpu_util", 0.0) / 100 if trial.outcome.duration >= 2.5 else 0.0
    else:
        if is_here:
            # both directions' senders are on this machine
            cores = min(cores, float(len(os.sched_getaffinity(0))))
        share = used / seconds / cores
    if share > 0:
        figures[CORE_SHARE] = share
        if trial.offered:
            figures[CPU] = share * seconds * cores / trial.offered * 1e6
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
        """Return that of the repeats' *figures*, of which there is one at least."""
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
