"""What a generator sends by itself, with the router bypassed: a trial that asks for line rate, and what it offered.

The figures beside the value say whether the sender had the CPU that it needed: how much of its cores it got, and what
the hypervisor withheld. :mod:`.fitness` reads them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from ..core.quantity import TrafficWords
from ..core.trial import Load, Outcome, Trial
from ..methods.trials import CharacterisationTerms, TrialSeries, is_measured
from ..session.session import Session
from ..system.cpu_clock import cpu_times, steal_percent
from ..units import Layer, bits

FIRST_PPS = 50e3
"""Frames/s of the first load of a generator that sends all frames of a trial, however late."""

KEPT = 0.97
"""The share of a load that has to be offered for twice the load to be tried."""

LOAD_SECONDS = 2.5
"""Seconds of the shortest trial in which TRex reports the load of its cores for a whole period."""

OFFERED, RECEIVED, LINK = "offered_pps", "received_pps", "link_bps"
FRAME, DIRECTIONS = "frame_bytes", "directions"
L1, L2 = "l1_bps", "l2_bps"
CPU, CORE_SHARE, STEAL, IDLE = "cpu_seconds_per_mframe", "core_share", "steal_percent", "idle_cpus"
"""Names of figures. Rates are of the worse direction, frames/s, but ``l1_bps`` and ``l2_bps``, which are of all.
``core_share``: 0..1, of the cores that the sender may use; ``idle_cpus``: of this machine, where it is the sender."""


def sending_figures(
    session: Session, traffic: TrafficWords, begin: Callable[[], None], keep: Callable[[Trial], None]
) -> dict[str, float]:
    """Return what is offered when line rate is asked for. *begin*: called before the first trial, *keep* after each.

    Raises TestbedError, CharacterisationEnded for trials that prove nothing.
    """
    session.traffic.put(traffic.profile, traffic.bidirectional, pairs=traffic.pairs)
    begin()
    plan, here = session.plan, session.plan.testbed.kind == "netns"
    terms = CharacterisationTerms(plan.testbed.tolerances(), session.testbed.facts.clock_speed, keep)
    seconds, line = plan.goal.final_trial_duration, traffic.profile.line_rate_pps(session.link_bps)
    if plan.warm_up and not _sends_all(session):
        session.traffic.measure(Load(line), plan.warm_up)
    spent: dict[str, float] = {}

    def measure(load: Load, duration: float) -> Outcome:
        before = cpu_times()
        outcome = session.traffic.measure(load, duration)
        if here:
            spent.clear()
            spent.update(_machine(before))
        return outcome

    series, best = TrialSeries(measure, terms), dict[str, float]()
    pps = min(FIRST_PPS, line) if _sends_all(session) else line
    while True:
        # what is not sent as asked is what is measured, not a spoilt trial
        trial = series.run(Load(pps), seconds, is_measured)
        found = {**_figures(trial, traffic, session.link_bps, here), **spent}
        best = max(best or found, found, key=lambda each: each[OFFERED])
        if pps >= line or found[OFFERED] < KEPT * pps:
            return best
        pps = min(2 * pps, line)


def _sends_all(session: Session) -> bool:
    """A TRex that falls behind sends on until it has sent all: line rate would take it minutes."""
    testbed = session.plan.testbed
    return testbed.kind == "netns" and testbed.generator == "trex"


def _figures(trial: Trial, traffic: TrafficWords, link_bps: float, here: bool) -> dict[str, float]:
    rows, seconds, size = trial.outcome.directions, max(trial.seconds.high, 1e-9), traffic.profile.mean_size
    readings = trial.outcome.readings
    found = {
        OFFERED: min(row.offered for row in rows) / seconds,
        RECEIVED: min(row.forwarded for row in rows) / seconds,
        LINK: link_bps,
        FRAME: size,
        DIRECTIONS: float(len(rows)),
        L1: trial.offered / seconds * bits(size, Layer.L1),
        L2: trial.offered / seconds * bits(size, Layer.L2),
    }
    # TRex reports the load of its busiest core
    used = readings.get("sender_cpu_seconds")
    reported = readings.get("cpu_util", 0.0) / 100 if trial.outcome.duration >= LOAD_SECONDS else 0.0
    cores = readings.get("sender_cores", float(len(rows)))
    if here and used is not None:
        # both directions' senders are on this machine
        cores = min(cores, float(len(os.sched_getaffinity(0))))
    share = reported if used is None else used / seconds / cores
    if share > 0:
        found[CORE_SHARE] = share
        if trial.offered:
            found[CPU] = share * seconds * cores / trial.offered * 1e6
    return found


def _machine(before: Mapping[str, float]) -> dict[str, float]:
    """Steal and idle CPUs of this machine since *before*, as far as it reports them."""
    after = cpu_times()
    found, steal = dict[str, float](), steal_percent(before, after)
    if steal is not None:
        found[STEAL] = steal
    spent = sum(after[name] - before[name] for name in after if name in before and not name.startswith("guest"))
    if spent > 0:
        found[IDLE] = (os.cpu_count() or 1) * (after.get("idle", 0.0) - before.get("idle", 0.0)) / spent
    return found
