"""``lineproof calibrate TESTBED``: what the generator itself sends and receives, the router bypassed."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from .. import __version__
from ..ceilings.calibration import FOLDER, Calibration, CeilingEntry, Watch, own_latency, write_calibration
from ..core.doubts import USABLE_SHARE
from ..core.goal import Goal
from ..core.traffic.profiles import PAIRS, Profile, Traffic
from ..core.trial import Fault, Load, Trial
from ..errors import LineproofError, TestbedError
from ..evidence.document import Code, Document, Items, Note, Part, Section, as_text
from ..files import check_writable
from ..generators.base import Probe
from ..methods.ceiling import find_ceiling
from ..methods.trials import CharacterisationEnded, CharacterisationTerms, TrialSeries, is_measured
from ..project import Project
from ..session.came_back import BYPASS_REMEDY, check_router_bypassed
from ..session.plan import Plan
from ..session.session import Session
from ..session.traffic import PROBE_PPS
from ..system.cpu_clock import cpu_times, steal_percent, steal_text
from ..testbed.settings import HardwareSettings
from ..units import counted, duration_text, si
from .arguments import add_plan_arguments, number, say

TRAFFIC = ("64b", "64b 1-flow", "imix", "1514b")
"""Measured by default: the smallest frames, the largest, a mix, and a single flow."""

GOAL = "standard"
"""The default goal: its risk and the length of its trials say how long the generator is watched."""

BYPASS_CHECK_PPS, BYPASS_CHECK_FRAMES = 100.0, 40
"""To check the bypass: frames/s, and how many to capture at each port; others (LLDP …) may be among them."""

LATENCY_LOAD_RATIO = 0.5
"""Load for latency as a ratio of the lossless ceiling: no queue builds up."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that the command takes."""
    parser.description = (
        "Measure what the traffic generator itself sends and receives, with the router bypassed. A verdict near or"
        " above that is INCONCLUSIVE, not FAIL."
    )
    add_plan_arguments(parser)
    parser.add_argument(
        "--traffic", nargs="+", metavar="WORDS", help=f"as sentences name it, each in quotes ({', '.join(TRAFFIC)})"
    )
    parser.add_argument("--unidirectional", action="store_true", help="measure only this (both)")
    parser.add_argument("--bidirectional", action="store_true", help="measure only this (both)")
    parser.add_argument(
        "--pairs", type=int, choices=range(1, PAIRS + 1), metavar="N", default=1, help="so many pairs of ports at once"
    )
    parser.add_argument("--duration", type=number(0.1, 600), default=1.0, help="seconds of each trial (1)")
    parser.add_argument(
        "--goal", default=GOAL, help=f"watch the generator's own loss for 1 / risk trials of this goal ({GOAL})"
    )
    parser.add_argument("--calibrations", type=Path, help=f"folder to write to (results/{FOLDER})")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print a line for each ceiling and write the file; returns 0.

    Raises LineproofError for problems with the files, the words or the testbed.
    """
    project = Project.find()
    # an earlier file is read too: one that is wrong would be found only when this one is to be written
    kept_in = arguments.calibrations or folder(project)
    plan = Plan.read(project, arguments.platform, arguments.software, arguments.testbed, arguments.goal, kept_in)
    profiles = [plan.catalogue.profile(words.split()) for words in arguments.traffic or TRAFFIC]
    if isinstance(plan.testbed, HardwareSettings):
        trex = plan.testbed.trex
        used = (trex.ports if trex else tuple(range(plan.testbed.generator.port_count)))[: 2 * arguments.pairs]
        for first, second in zip(used[::2], used[1::2], strict=True):
            _print(Note(f"A cable must go from the generator's port {first} to its port {second}, past the router."))
    count = plan.testbed.pair_count
    if arguments.pairs > count:
        raise TestbedError(f"testbed '{plan.testbed.testbed}' has {count} pair{'s' * (count > 1)} of ports")
    wanted = [both for both, only in ((False, arguments.unidirectional), (True, arguments.bidirectional)) if only]
    calibrate(plan, profiles, wanted or [False, True], arguments.pairs, arguments.duration, kept_in)
    return 0


def folder(project: Project) -> Path:
    """The default folder of calibrations: with the results."""
    return project.results / FOLDER


def calibrate(
    plan: Plan, profiles: Sequence[Profile], directions: Sequence[bool], pairs: int, duration: float, calibrations: Path
) -> None:
    """Measure each of *profiles* in each of *directions* (bidirectional or not) and write the file.

    What was measured is written, also if a user interrupts. Raises TestbedError, in the end for what was not measured.
    """
    ceilings: list[CeilingEntry] = []
    failed: list[str] = []
    check_writable(calibrations)  # a measurement that cannot be kept is not begun
    count = len(profiles) * len(directions)
    words = f"Watching it for {_watch_text(plan.goal)} each (1 / risk trials of goal '{plan.goal.goal}')"
    _print(Note(f"{counted(count, 'ceiling')}. {words} takes {_watch_text(plan.goal, count)} of traffic."))
    session = Session.start(plan, bypass=True, say=say)
    try:
        session.generator.connect()
        if session.simulated:
            _print(Note(f"SIMULATED: {session.simulation_text}; nothing here is a measurement of a generator."))
        _check_bypassed(session, pairs)
        try:
            for profile in profiles:
                for bidirectional in directions:
                    before = cpu_times()
                    try:
                        ceilings.append(_measure(session, profile, bidirectional, pairs, duration))
                    except TestbedError as error:
                        steal = steal_text(steal_percent(before, cpu_times()))
                        way = "bidirectional" if bidirectional else "unidirectional"
                        failed.append(f"{profile.name} {way}: {error} (CPU steal of this machine meanwhile: {steal})")
                        _print(Note(failed[-1]))
                        continue
                    _print(Note(_line(ceilings[-1])))
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
    finally:
        session.close()
    if failed:
        raise TestbedError(f"{len(failed)} of {counted(count, 'ceiling')} not known: {'; '.join(failed)}")


def _check_bypassed(session: Session, pairs: int = 1) -> None:
    """Raise TestbedError unless the frames that come back are those that were sent."""
    traffic = Traffic(session.plan.catalogue.profile(["64b", "1-flow"]), True, pairs=pairs)
    try:
        frames = session.traffic.capture(traffic, Load(BYPASS_CHECK_PPS), BYPASS_CHECK_FRAMES)
    except TestbedError as error:
        raise TestbedError(f"it is not known whether the router is bypassed: {error}; {BYPASS_REMEDY}") from error
    check_router_bypassed(frames, traffic.profile, session.traffic.directions(traffic), session.generator.ports)


def _measure(session: Session, profile: Profile, bidirectional: bool, pairs: int, duration: float) -> CeilingEntry:
    before, traffic = cpu_times(), session.traffic
    sent = Traffic(profile, bidirectional, pairs=pairs)
    traffic.put(sent)
    line = profile.line_rate_pps(session.plan.link_bps(pairs))
    if session.plan.warm_up:
        traffic.measure(Load(line), session.plan.warm_up)
    terms = CharacterisationTerms(session.plan.testbed.tolerances(), session.testbed.facts.clock_speed, _print_trial)
    ceiling = find_ceiling(traffic.measure, line, terms, duration)
    watched = _watch(session, USABLE_SHARE * ceiling.lossless, replace(terms, on_trial=lambda trial: None))
    load, latency = Load(LATENCY_LOAD_RATIO * ceiling.lossless), None
    try:
        traffic.put(sent, Probe(min(PROBE_PPS, load.pps / 10)))
        latency = own_latency(traffic.measure(load, duration))
    except LineproofError as error:  # these frames, or its card, have no probes
        _print(f"latency is not known: {error}")
    steal = steal_percent(before, cpu_times())
    names = ("line", "offered", "lossless", "received")
    return CeilingEntry(
        traffic=profile.name,
        mean_size=profile.mean_size,
        bidirectional=bidirectional,
        pairs=pairs,
        measured=datetime.now(UTC).replace(microsecond=0),
        **{f"{name}_pps": round(getattr(ceiling, name), 3) for name in names},
        trials=len(ceiling.trials),
        trial_duration=duration,
        steal_percent=None if steal is None else round(steal, 2),
        latency=latency,
        watched=watched,
    )


def watch_trials(goal: Goal) -> int:
    """Return the trials after which loss that was never seen comes in the next one with less than the goal's risk."""
    return math.ceil(1 / goal.risk - 1e-9)


def _watch(session: Session, pps: float, terms: CharacterisationTerms) -> Watch:
    """Watch how often the generator loses frames itself at *pps*, and how many in the worst trial."""
    goal, series = session.plan.goal, TrialSeries(session.traffic.measure, terms)
    trials, seconds = watch_trials(goal), goal.final_trial_duration
    _print(f"watching it for {_watch_text(goal)} at {si(pps, 'pps')}")
    try:
        done = [series.run(Load(pps), seconds, is_measured) for _ in range(trials)]
    except CharacterisationEnded as error:
        raise TestbedError(f"the generator could not be watched: {error}") from error
    lost = [max(row.lost for row in trial.outcome.directions) for trial in done]
    lossy, most = sum(frames > 0 for frames in lost), max(lost)
    _print(f"it lost frames itself in {lossy} of {trials} trials{f', {most} frames in the worst' if most else ''}")
    return Watch(
        goal=goal.goal,
        load_pps=round(pps, 3),
        trials=trials,
        lossy=lossy,
        most_lost=most,
        trial_duration=seconds,
    )


def _watch_text(goal: Goal, times: int = 1) -> str:
    return duration_text(times * watch_trials(goal) * goal.final_trial_duration)


def _print_trial(trial: Trial) -> None:
    own = (Fault.UNDER_OFFERED, Fault.UNTIMED)
    problems = "".join(f"; {problem}" for problem in trial.problems if problem.fault not in own)
    load, share = si(trial.outcome.load.pps, "pps"), 100 * trial.offered / max(1, trial.intended)
    _print(f"trial {trial.number}: {load} asked of each port, {share:.2f} % sent, {trial.lost} lost{problems}")


def _line(found: CeilingEntry) -> str:
    share = 100 * found.lossless_pps / found.line_pps
    latency = f"; latency {found.latency}" if found.latency else ""
    return (
        f"{found.traffic} {found.direction}: offers {si(found.offered_pps, 'pps')} from each port, receives"
        f" {si(found.lossless_pps, 'pps')} whole ({share:.4g} % line rate){latency}; {found.trials} trials, CPU steal"
        f" {steal_text(found.steal_percent)}"
    )


def _print(part: str | Part) -> None:
    shown = Items([part]) if isinstance(part, str) else part
    print(as_text(Document("", [Section("", [shown])])), end="", flush=True)
