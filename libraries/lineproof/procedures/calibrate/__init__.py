"""The generator's own ceilings: how much it sends and receives, measured with the router bypassed.

The first trial asks for line rate: what is *offered* and *received* then. If frames are lost, a short search finds the
highest *lossless* load: whatever was offered came back. Loads are of each sending port; of two directions the worse one
counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

from ... import __version__
from ...ceilings import Calibration, CeilingEntry, Watch, own_latency, write_calibration
from ...core.doubts import USABLE_SHARE
from ...core.goal import Goal
from ...core.traffic.profiles import Profile, Traffic
from ...core.trial import Fault, Load, Trial
from ...documents.document import Code, Document, Items, Note, Part, Section, as_text
from ...errors import LineproofError, TestbedError
from ...files import check_writable
from ...generators.base import Probe
from ...session.came_back import BYPASS_REMEDY, check_router_bypassed
from ...session.plan import Plan
from ...session.session import Session
from ...session.traffic import PROBE_PPS
from ...system.cpu_clock import cpu_times, steal_percent
from ...testbed.settings import HardwareSettings
from ...units import counted, duration_text, si
from ..trials import TrialSeries, is_measured, worst_rate

SEARCH_WIDTH = 0.01
"""Relative width of a search."""

LOWEST_SHARE = 1e-3
"""The lowest load searched, as a share of line rate: a testbed that fails there is broken, not slow."""


def calibrate(
    plan: Plan,
    profiles: Sequence[Profile],
    directions: Sequence[bool],
    pairs: int,
    duration: float,
    calibrations: Path,
    say: Callable[[str], None],
) -> None:
    """Measure each of *profiles* in each of *directions* (bidirectional or not) and write the file.

    What was measured is written, also if a user interrupts. Raises TestbedError, in the end for what was not measured.
    """
    if isinstance(plan.testbed, HardwareSettings):
        trex = plan.testbed.trex
        used = (trex.ports if trex else tuple(range(plan.testbed.generator.port_count)))[: 2 * pairs]
        for first, second in zip(used[::2], used[1::2], strict=True):
            _print(Note(f"A cable must go from the generator's port {first} to its port {second}, past the router."))
    if pairs > plan.testbed.pair_count:
        raise TestbedError(f"testbed '{plan.testbed.testbed}' has {counted(plan.testbed.pair_count, 'pair')} of ports")
    ceilings, failed = list[CeilingEntry](), list[str]()
    check_writable(calibrations)  # a measurement that cannot be kept is not begun
    count, goal = len(profiles) * len(directions), plan.goal
    announcement = f"Watching it for {_watch_text(goal)} each (1 / risk trials of goal '{goal.goal}')"
    _print(Note(f"{counted(count, 'ceiling')}. {announcement} takes {_watch_text(goal, count)} of traffic."))
    with closing(Session.start(plan, bypass=True, say=say)) as session:
        session.generator.connect()
        if session.simulated:
            _print(Note(f"SIMULATED: {session.simulation_text}; nothing here is a measurement of a generator."))
        _check_bypassed(session, pairs)
        try:
            for profile, bidirectional in product(profiles, directions):
                sent, before = Traffic(profile, bidirectional, pairs=pairs), cpu_times()
                try:
                    ceilings.append(_measure(session, sent, duration))
                    _print(Note(f"{_line(ceilings[-1])}; {_steal_since(before)}"))
                except TestbedError as error:
                    failed.append(f"{sent.traffic}: {error} ({_steal_since(before)})")
                    _print(Note(failed[-1]))
        finally:
            if ceilings:
                content = Calibration(
                    testbed=plan.testbed.testbed,
                    platform=plan.platform.platform,
                    kind=plan.testbed.kind,
                    link_bps=plan.fastest,
                    simulated=session.simulated,
                    lineproof=__version__,
                    versions=dict(session.generator.versions),
                    ceilings=tuple(ceilings),
                )
                _print(Code(f"kept in {write_calibration(calibrations, content)}"))
    if failed:
        raise TestbedError(f"{len(failed)} of {counted(count, 'ceiling')} not known: {'; '.join(failed)}")


def _steal_since(before: Mapping[str, float]) -> str:
    """Return the CPU time that another machine of the host took since *before*, in words: a cause of loss."""
    steal = steal_percent(before, cpu_times())
    return f"CPU steal of this machine meanwhile: {'not known' if steal is None else f'{steal:.1f} %'}"


def _check_bypassed(session: Session, pairs: int = 1) -> None:
    """Raise TestbedError unless the frames that come back are those that were sent."""
    traffic = Traffic(session.plan.catalogue.profile(["64b", "1-flow"]), True, pairs=pairs)
    try:
        # so many that others (LLDP …) may be among them
        frames = session.traffic.capture(traffic, Load(100.0), 40)
    except TestbedError as error:
        raise TestbedError(f"it is not known whether the router is bypassed: {error}; {BYPASS_REMEDY}") from error
    check_router_bypassed(frames, traffic.profile, session.traffic.directions(traffic), session.generator.ports)


def _measure(session: Session, sent: Traffic, duration: float) -> CeilingEntry:
    traffic, line = session.traffic, sent.profile.line_rate_pps(session.plan.link_bps(sent.pairs))
    traffic.put(sent)
    if session.plan.warm_up:
        traffic.measure(Load(line), session.plan.warm_up)
    terms = traffic.measure, session.plan.testbed.tolerances(), session.testbed.facts.clock_speed
    rates = find_ceiling(TrialSeries(*terms, _print_trial), line, duration)
    watched = _watch(session.plan.goal, USABLE_SHARE * rates["lossless_pps"], TrialSeries(*terms))
    load, latency = Load(rates["lossless_pps"] / 2), None  # at which no queue builds up
    try:
        traffic.put(sent, Probe(min(PROBE_PPS, load.pps / 10)))
        latency = own_latency(traffic.measure(load, duration))
    except LineproofError as error:  # these frames, or its card, have no probes
        _print(f"latency is not known: {error}")
    return CeilingEntry(
        traffic=sent.profile.name,
        bidirectional=sent.bidirectional,
        pairs=sent.pairs,
        measured=datetime.now(UTC).replace(microsecond=0),
        **{name: round(pps, 3) for name, pps in rates.items()},
        trial_duration=duration,
        latency=latency,
        watched=watched,
    )


def _watch(goal: Goal, pps: float, series: TrialSeries) -> Watch:
    """Watch how often the generator loses frames itself at *pps*, and how many in the worst trial."""
    trials, seconds = watch_trials(goal), goal.final_trial_duration
    _print(f"watching it for {_watch_text(goal)} at {si(pps, 'pps')}")
    with series:
        done = [series.run(Load(pps), seconds, is_measured) for _ in range(trials)]
    if series.ended:
        raise TestbedError(f"the generator could not be watched: {series.ended}")
    lost = [max(row.lost for row in trial.outcome.directions) for trial in done]
    lossy, most = sum(frames > 0 for frames in lost), max(lost)
    _print(f"it lost frames itself in {lossy} of {trials} trials{f', {most} frames in the worst' if most else ''}")
    counts = {"trials": trials, "lossy": lossy, "most_lost": most}
    return Watch(goal=goal.goal, load_pps=round(pps, 3), trial_duration=seconds, **counts)


def watch_trials(goal: Goal) -> int:
    """Return the trials after which loss that was never seen comes in the next one with less than the goal's risk."""
    return math.ceil(1 / goal.risk - 1e-9)


def _watch_text(goal: Goal, times: int = 1) -> str:
    return duration_text(times * watch_trials(goal) * goal.final_trial_duration)


def _print_trial(trial: Trial) -> None:
    own = (Fault.UNDER_OFFERED, Fault.UNTIMED)
    problems = "".join(f"; {problem}" for problem in trial.problems if problem.fault not in own)
    load, share = si(trial.outcome.load.pps, "pps"), 100 * trial.offered / max(1, trial.intended)
    _print(f"trial {trial.number}: {load} asked of each port, {share:.2f} % sent, {trial.lost} lost{problems}")


def _line(entry: CeilingEntry) -> str:
    share = 100 * entry.lossless_pps / entry.line_pps
    latency = f"; latency {entry.latency}" if entry.latency else ""
    return (
        f"{entry.traffic} {entry.direction}: offers {si(entry.offered_pps, 'pps')} from each port, receives"
        f" {si(entry.lossless_pps, 'pps')} whole ({share:.4g} % line rate){latency}"
    )


def _print(part: str | Part) -> None:
    shown = Items([part]) if isinstance(part, str) else part
    print(as_text(Document("", [Section("", [shown])])), end="", flush=True)


# -- the search for the ceilings ---------------------------------------------------------------------------------------


def find_ceiling(trials: TrialSeries, line: float, duration: float = 1.0) -> Mapping[str, float]:
    """Return *line* rate and what the generator of *trials* carries, in frames/s of each port, named as in its file.

    Each trial takes *duration* s. Raises TestbedError if the testbed spoils its trials or breaks down, and if not even
    LOWEST_SHARE of line rate is carried.
    """
    measured: list[Trial] = []

    def is_lossless(pps: float) -> bool:
        # one trial without loss may be luck; what is not sent or not received is the ceiling, not a spoilt trial
        for _ in range(2):
            measured.append(trials.run(Load(pps), duration, is_measured))
            if not _came_back_whole(measured[-1]):
                return False
        return True

    with trials:
        lossless = line
        if not is_lossless(line):
            lossless = _highest(is_lossless, line, worst_rate(measured[0], "forwarded"))
    if trials.ended:
        raise TestbedError(f"the generator could not be calibrated: {trials.ended}")
    least, first = LOWEST_SHARE * line, measured[0]
    offered, received = worst_rate(first, "offered"), worst_rate(first, "forwarded")
    if offered < least:
        said = [f"the generator sends {si(offered, 'pps')} of {si(line, 'pps')}", *map(str, first.problems)]
        raise TestbedError("; ".join(said))
    if not lossless:
        raise TestbedError(f"with the router bypassed frames are lost even at {si(least, 'pps')}; fix cables and ports")
    # what comes back is what was offered, which may be less than was asked for
    whole = min(worst_rate(trial, "offered") for trial in measured if trial.outcome.load.pps == lossless)
    rates = {"offered_pps": offered, "lossless_pps": min(whole, lossless), "received_pps": received}
    return {"line_pps": line, **{name: min(pps, line) for name, pps in rates.items()}}


def _highest(holds: Callable[[float], bool], high: float, guess: float) -> float:
    """Return the highest load below *high* that *holds* (*high* does not); 0 if none from LOWEST_SHARE of it on does.

    It is halved until it is known to SEARCH_WIDTH; *guess* is tried first.
    """
    least, low, pps = LOWEST_SHARE * high, 0.0, min(guess, high * (1 - SEARCH_WIDTH))
    while pps >= least and high - low > SEARCH_WIDTH * high * (1 + 1e-9):
        low, high = (pps, high) if holds(pps) else (low, pps)
        pps = (low + high) / 2
    return low


def _came_back_whole(trial: Trial) -> bool:
    return not trial.lost and all(problem.fault is not Fault.GENERATOR for problem in trial.problems)
