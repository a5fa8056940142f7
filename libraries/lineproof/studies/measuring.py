"""One measurement of a study on an open session: a row's kind becomes a method of the house, and its figure a value.

Nothing is judged: a demand that every router keeps stands in for the sentence's, so that the methods of sentences
give their figure, with their checks of the testbed. What they call INCONCLUSIVE is a gap.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from ..core.causes import unsent_by_interface
from ..core.goal import Goal
from ..core.quantity import Requirement, TrafficWords
from ..core.rule import Ruling
from ..core.sentence import parse_traffic
from ..core.telemetry import Telemetry
from ..core.traffic.profiles import Profile
from ..core.trial import Load, Outcome, Trial
from ..core.verdict import Verdict
from ..errors import SentenceError, TestbedError
from ..methods.ramp import BEHIND, RampPhase, RampResult
from ..methods.trials import (
    MOST_REPEATS,
    CharacterisationEnded,
    CharacterisationTerms,
    TrialSeries,
    ending_text,
    is_measured,
)
from ..session.characterising import Characteriser
from ..session.cpu_time import cpu_time
from ..session.judging import Judge
from ..session.plan import Plan
from ..session.router_watch import Reading
from ..session.session import Session
from ..system.cpu_clock import cpu_times, steal_percent
from ..units import Layer, bits
from .study import AT_LEAST, PAST_ROUTER, RAMP_STEPS, RATES, Study, StudyRow

RAMP_EDGE = 2.0
"""Seconds of a ramp's warm-up and of its hold."""

TRAFFIC_ALONE = ("ramp", "throughput", *PAST_ROUTER)
"""Kinds whose measurement is no sentence with a demand."""

_DEMANDS = {
    "forwards": "forwards ≥ 1 pps",
    "takes_in": "forwards ≥ 1 pps",
    "drops_sending": "forwards ≥ 1 pps",
    "cycles": "costs ≤ 999999999999 cycles/packet",
    "cycles_without_input": "costs ≤ 999999999999 cycles/packet without input",
    "vectors": "gathers ≥ 0.000001 vectors/call",
    "energy": "costs ≤ 999999999999 µJ/packet",
    "cpu_time": "forwards ≥ 1 pps",
}
"""Demands that every router keeps."""

_FIGURES = {
    "forwards": ("forwarded_pps",),
    "cycles": ("cycles_per_packet",),
    "cycles_without_input": ("cycles_per_packet_without_input",),
    "vectors": ("vectors_per_call",),
    "energy": ("energy_uj_low", "energy_uj_high"),
}
"""The figures of a verdict whose mean is the value."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of a measurement: a ``value``, or None and the ``reason``. ``line``: one direction's line rate.

    ``curve``: of a ramp, offered and forwarded at each step. All in the row's unit. ``figures``: others, by name.
    ``excused``: a gap that is no failure.
    """

    value: float | None
    reason: str = ""
    line: float | None = None
    curve: tuple[tuple[float, float], ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    excused: bool = False


@dataclass(frozen=True)
class Listeners:
    """Where a measurement's trials and readings go."""

    begin: Callable[[], None] = lambda: None
    on_trial: Callable[[Requirement | TrafficWords, Trial], None] = lambda words, trial: None
    on_reading: Callable[[Reading], None] = lambda reading: None


def sentence_of(study: Study, row: str, variant: str) -> str:
    """The words of a measurement: traffic, direction, and what is measured of it; of a demand, one that all keep."""
    measure, traffic = study.measures[row], study.traffic_of(row, variant)
    if measure.kind in TRAFFIC_ALONE:
        return traffic
    demand = _DEMANDS.get(measure.kind) or f"latency {measure.statistic or 'p50'} ≤ 999999999 µs"
    # both directions are added where rates have them
    scope = " in total" if "bidirectional" in traffic.split() and measure.kind in RATES else ""
    return f"{traffic} {demand}{scope}{f' at {measure.at}' if measure.at else ''}"


def words_of(study: Study, row: str, variant: str) -> str:
    """A measurement in words for records and people: without the demand that stands in."""
    measure = study.measures[row]
    kind = f"latency {measure.statistic or 'p50'}" if measure.kind == "latency" else measure.kind.replace("_", " ")
    return f"{kind} of {study.traffic_of(row, variant)}{f' at {measure.at}' if measure.at else ''}"


def goal_of_measurement(goal: Goal, seconds: float | None) -> Goal:
    """One trial of *seconds* (None: of the goal's duration) decides: repeats are the study's, not the goal's."""
    duration = seconds or goal.final_trial_duration
    once = {"bad_share": 0.999, "good_share": 0.001, "risk": 0.05, "budget": 1, "exceed_ratio": 0.0}
    times = {"final_trial_duration": duration, "duration_sum": duration, "longest_trial": duration}
    return goal.model_copy(update={**once, **times})


def check_row(plan: Plan, study: Study, row: str, variant: str) -> None:
    """Raise SentenceError if *row* cannot be measured on *variant* with *plan*."""
    sentence = sentence_of(study, row, variant)
    if study.measures[row].kind in TRAFFIC_ALONE:
        plan.check_pairs(parse_traffic(sentence, plan.catalogue))
    else:
        plan.requirement(sentence)
    if study.measures[row].kind in ("takes_in", "drops_sending") and plan.uncounted:
        raise SentenceError(f"'{sentence}': {plan.uncounted}")


def measure_row(session: Session, study: Study, row: str, variant: str, listeners: Listeners) -> Measured:
    """Measure *row* of *variant* on *session*, whose plan has the goal of :func:`goal_of_measurement`.

    Raises TestbedError, SentenceError for what could not be begun; what could not be proven has a reason.
    """
    measure, words = study.measures[row], sentence_of(study, row, variant)
    if measure.kind == "ramp":
        return _ramp(session, study, measure, study.unit_of(row), words, listeners)
    if measure.kind in PAST_ROUTER:
        return _sending(session, study.unit_of(row), words, listeners)
    if measure.kind == "throughput":
        return _search(session, study.unit_of(row), words, listeners)
    if measure.kind == "cpu_time":
        return _cpu_time(session, words, listeners)
    return _judged(session, measure, study.unit_of(row), words, listeners)


def _cpu_time(session: Session, words: str, listeners: Listeners) -> Measured:
    requirement = session.plan.requirement(words)
    session.traffic.put_for(requirement)
    listeners.begin()
    seconds = session.plan.goal.final_trial_duration
    found = cpu_time(session, requirement, seconds, lambda trial: listeners.on_trial(requirement, trial))
    return Measured(found.value, found.reason, None, (), found.figures)


def rate_value(pps: float, unit: str, profile: Profile, link_bps: float) -> float:
    """*pps* frames/s of *profile* in a rate's *unit*."""
    if unit == "percent of line":
        return 100 * pps / profile.line_rate_pps(link_bps)
    if unit == "Gbit/s":
        return pps * bits(profile.mean_size, Layer.L1) / 1e9
    return pps / {"pps": 1.0, "kpps": 1e3, "Mpps": 1e6}[unit]


def _characteriser(session: Session, listeners: Listeners) -> Characteriser:
    return Characteriser(session, lambda traffic: listeners.begin(), listeners.on_trial)


def _ramp(session: Session, study: Study, measure: StudyRow, unit: str, words: str, listeners: Listeners) -> Measured:
    characteriser = _characteriser(session, listeners)
    traffic = characteriser.traffic(words)
    characteriser.router_problem()
    result = characteriser.ramp(words, measure.steps or RAMP_STEPS, study.seconds or 1.0, RAMP_EDGE, RAMP_EDGE)
    problem = characteriser.router_problem()
    ended = "; ".join(filter(None, (ending_text(result.ended, result.trials), problem)))
    directions = len(session.traffic.directions(traffic.bidirectional, traffic.pairs))

    def value(pps: float) -> float:
        return rate_value(pps, unit, traffic.profile, session.link_bps)

    rise = [step for step in result.steps if step.phase is RampPhase.RISE]
    curve = tuple((value(trial_pps(step.trial, False)), value(trial_pps(step.trial, True))) for step in rise)
    line = value(traffic.profile.line_rate_pps(session.link_bps))
    if ended:
        return Measured(None, ended, line, curve)
    figures = {AT_LEAST: 1.0} if result.saturation is None else {}
    return Measured(value(knee_pps(result, directions)), "", line, curve, figures)


def knee_pps(result: RampResult, directions: int) -> float:
    """Where a ramp's router falls behind, in frames/s of all *directions* together.

    It is between the last step that kept up and the first that did not, and what came back of that one is the best
    guess: so the figure does not depend on where the steps are. Without saturation: the highest load that was offered.
    """
    if result.saturation is None:
        rise = (step.offered_pps for step in result.steps if step.phase is RampPhase.RISE)
        return directions * max(rise, default=0.0)
    low = 0.0 if result.kept_up is None else directions * result.kept_up.offered_pps
    behind = result.saturation.trial
    return max(low, min(trial_pps(behind, True), trial_pps(behind, False)))


def trial_pps(trial: Trial, forwarded: bool) -> float:
    """Frames/s of *trial*, all directions together: *forwarded*, or offered."""
    return (trial.forwarded if forwarded else trial.offered) / trial.seconds.high


def _search(session: Session, unit: str, words: str, listeners: Listeners) -> Measured:
    characteriser = _characteriser(session, listeners)
    traffic = characteriser.traffic(words)
    characteriser.router_problem()
    result = characteriser.search(words, {"NDR": 0.0})
    problem = characteriser.router_problem()
    bounds = result.bounds[0]
    line = rate_value(traffic.profile.line_rate_pps(session.link_bps), unit, traffic.profile, session.link_bps)
    ended = "; ".join(filter(None, (ending_text(result.ended, result.trials), problem)))
    if ended or bounds.lower is None:
        return Measured(None, ended or "no load was carried without loss", line)
    directions = len(session.traffic.directions(traffic.bidirectional, traffic.pairs))
    figures = {AT_LEAST: 1.0} if bounds.upper is None else {}
    value = rate_value(directions * bounds.lower.pps, unit, traffic.profile, session.link_bps)
    return Measured(value, "", line, (), figures)


def _sending(session: Session, unit: str, words: str, listeners: Listeners) -> Measured:
    traffic = parse_traffic(words, session.plan.catalogue)
    line = rate_value(traffic.profile.line_rate_pps(session.link_bps), unit, traffic.profile, session.link_bps)
    try:
        found = sending_figures(session, traffic, listeners.begin, lambda trial: listeners.on_trial(traffic, trial))
    except CharacterisationEnded as error:
        return Measured(None, str(error), line)
    value = rate_value(found[OFFERED] * found[DIRECTIONS], unit, traffic.profile, session.link_bps)
    return Measured(value, "", line, (), found)


def _judged(session: Session, measure: StudyRow, unit: str, words: str, listeners: Listeners) -> Measured:
    requirement = session.plan.requirement(words)
    session.power.check(requirement)
    session.traffic.put_for(requirement)
    listeners.begin()
    if (warm := session.traffic.warm_up(requirement)) is not None:
        listeners.on_trial(requirement, warm)
    read: dict[str, Telemetry] = {}
    judge = Judge(
        session,
        on_trial=lambda trial, so_far: listeners.on_trial(requirement, trial),
        on_telemetry=read.__setitem__,
        on_reading=listeners.on_reading,
    )
    for _ in range(1 + MOST_REPEATS):
        verdict = judge.judge(requirement)
        if not (spoilt := _spoilt(verdict.trials)):
            break
    line = None
    if measure.kind in RATES:
        pps = requirement.profile.line_rate_pps(session.link_bps)
        line = rate_value(pps, unit, requirement.profile, session.link_bps)
    # a router that forwards nothing at all breaks every demand, and is no gap
    if spoilt or verdict.ruling is Ruling.INCONCLUSIVE:
        return Measured(None, spoilt or str(verdict.reason), line)
    try:
        value = _value(session, measure, verdict, read)
    except TestbedError as error:
        return Measured(None, str(error), line)
    figures = dict(verdict.figures)
    if was_all_offered(measure, value, figures.get("offered_pps", math.inf)):
        figures[AT_LEAST] = 1.0
    if measure.kind in RATES:
        value = rate_value(value, unit, requirement.profile, session.link_bps)
    return Measured(value, "", line, (), figures)


def _spoilt(trials: Sequence[Trial]) -> str:
    """Return what may have cost or hidden any number of frames, in words; "": nothing. A load not reached may."""
    faults = [problem for trial in trials for problem in trial.problems if not problem.fault.generator_too_slow]
    spoilt = [item for item in faults if item.frames is None and (item.fault.may_cost or item.fault.may_hide)]
    return "; ".join(map(str, spoilt))


def was_all_offered(measure: StudyRow, pps: float, offered_pps: float) -> bool:
    """Return whether *pps* is no limit of the router, but what was offered at most: less was lost than a ramp allows.

    At a load that the row names it is neither.
    """
    limited = measure.kind in ("forwards", "takes_in") and measure.at is None
    return limited and pps >= offered_pps * (1 - BEHIND)


def _value(session: Session, measure: StudyRow, verdict: Verdict, read: Mapping[str, Telemetry]) -> float:
    """Return the verdict's figure, or that of the router's counters; rates in frames/s. Raises TestbedError."""
    if measure.kind in ("takes_in", "drops_sending"):
        return _counted(session, measure.kind, read) / sum(trial.seconds.high for trial in verdict.trials)
    # the generator's histogram of latencies has two bounds
    names = _FIGURES.get(measure.kind, ("latency_low_us", "latency_high_us"))
    found = [verdict.figures[name] for name in names if math.isfinite(verdict.figures.get(name, math.inf))]
    if len(found) < len(names):
        raise TestbedError(f"the trials gave no {' and '.join(names)}: {verdict.reason.summary}")
    return fmean(found)


def _counted(session: Session, kind: str, read: Mapping[str, Telemetry]) -> float:
    if "before" not in read or "after" not in read:
        raise TestbedError("the router was not read before and after the trial")
    before, after, names = read["before"], read["after"], session.interfaces.values()
    if kind == "takes_in":
        return sum(after.interfaces[name].rx_packets - before.interfaces[name].rx_packets for name in names)
    return sum(unsent_by_interface(after.causes, name) - unsent_by_interface(before.causes, name) for name in names)


FIRST_PPS = 50e3
"""Frames/s of the first load of a generator that sends all frames of a trial, however late."""

KEPT = 0.97
"""The share of a load that has to be offered for twice the load to be tried."""

LOAD_SECONDS = 2.5
"""Seconds of the shortest trial in which TRex reports the load of its cores for a whole period."""

OFFERED, RECEIVED, LINK = "offered_pps", "received_pps", "link_bps"
FRAME, DIRECTIONS = "frame_bytes", "directions"
L1, L2 = "l1_bps", "l2_bps"
CPU, CORE_SHARE, STEAL = "cpu_seconds_per_mframe", "core_share", "steal_percent"
"""Names of figures. Rates are of the worse direction, frames/s, but ``l1_bps`` and ``l2_bps``, which are of all.
``core_share``: 0..1, of the cores that the sender may use; ``steal_percent``: where that is on this machine."""


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
        nonlocal spent
        before = cpu_times()
        outcome = session.traffic.measure(load, duration)
        if here:
            steal = steal_percent(before, cpu_times())
            spent = {STEAL: steal} if steal is not None else {}
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
