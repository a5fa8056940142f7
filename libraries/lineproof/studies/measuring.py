"""One measurement of a study on an open session: a row's kind becomes a method of the house, and its figure a value.

Nothing is judged. What the testbed may have spoilt, and what it does not know, is a gap.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import partial
from statistics import fmean
from typing import Any

from ..command_values import summarised
from ..core.deciding import TrialPlan
from ..core.doubts import with_doubts
from ..core.goal import Goal
from ..core.quantity import Requirement, TrafficWords
from ..core.router_facts import RouterFacts
from ..core.sentence import parse_traffic
from ..core.telemetry import Telemetry, unsent_by_interface
from ..core.trial import Load, Outcome, Problem, Trial, read_trial
from ..errors import SentenceError, TestbedError
from ..evidence.recorder import Recorder
from ..procedures.procedure import ProcedureRun
from ..procedures.ramp import BEHIND, RAMP, RampPhase, RampResult
from ..procedures.search import SearchResult, search
from ..procedures.trials import MOST_REPEATS, CharacterisationEnded, TrialSeries, is_measured
from ..session.cpu_time import cpu_time
from ..session.judging import AFTER, BEFORE, EndedTrial, Reading, figures_of, lost_neighbours, pauses, promised
from ..session.plan import Plan
from ..session.session import Session
from ..system.command_line import ShellCommands
from ..system.cpu_clock import cpu_times, steal_percent
from ..units import Layer, bits
from ..visible import shortened
from .study import (
    AT_LEAST,
    PAST_ROUTER,
    RAMP_STEPS,
    RATES,
    TRAFFIC_ALONE,
    Step,
    Study,
    StudyRow,
    measured_of,
    words_of,
)

FIGURES = {
    "forwards": ("forwarded_pps",),
    "cycles": ("cycles_per_packet",),
    "cycles_without_input": ("cycles_per_packet_without_input",),
    "vectors": ("vectors_per_call",),
    "energy": ("energy_uj_low", "energy_uj_high"),
    # the generator's histogram of latencies has two bounds
    "latency": ("latency_low_us", "latency_high_us"),
}
"""The figures whose mean is the value, by kind; the router's own counters have the others."""

RAMP_EDGE = 2.0
"""Seconds of a ramp's warm-up and of its hold."""


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


def goal_of_measurement(goal: Goal, seconds: float | None) -> Goal:
    """One trial of *seconds* (None: of the goal's duration) decides: repeats are the study's, not the goal's."""
    duration = seconds or goal.final_trial_duration
    once = {"bad_share": 0.999, "good_share": 0.001, "risk": 0.05, "budget": 1, "exceed_ratio": 0.0}
    times = {"final_trial_duration": duration, "duration_sum": duration, "longest_trial": duration}
    return goal.model_copy(update={**once, **times})


def check_row(plan: Plan, study: Study, row: str, variant: str) -> None:
    """Raise SentenceError if *row* cannot be measured on *variant* with *plan*."""
    kind = study.measures[row].kind
    if kind in TRAFFIC_ALONE:
        plan.check_pairs(parse_traffic(study.traffic_of(row, variant), plan.catalogue))
    else:
        plan.check_measurable(measured_of(study, row, variant, plan.catalogue))
    if kind in ("takes_in", "drops_sending") and plan.uncounted:
        raise SentenceError(f"'{words_of(study, row, variant)}': {plan.uncounted}")


def router_differences(session: Session, study: Study, variant: str) -> list[str]:
    """Return how the router of *session* differs from what *variant* says, as sentences.

    A simulated one shows version, workers and receive queues of its own, and nothing of a machine.
    """
    facts = session.router.facts
    if session.simulated:
        return list(facts.differences)
    commands = ShellCommands(session.router.shell, sudo=session.testbed.facts.router.sudo)
    settings = [
        f"'{line}' has no '{expected.pattern}' in its answer: {shortened(' '.join(answer.split())) or 'none'}"
        for line, expected in study.variants[variant].settings.items()
        if not expected.search(answer := commands.answer(line).stdout)
    ]
    return [*facts.differences, *fact_differences(facts, study.facts_of(variant)), *settings]


def fact_differences(facts: RouterFacts, expected: Mapping[str, float | str]) -> list[str]:
    """Return how *facts* differ from those *expected*, as sentences; one that the router does not report differs."""
    parts: list[Mapping[str, Any]] = [asdict(facts), facts.other]
    for nic in facts.nics:
        parts += [asdict(nic), nic.other]
    found = []
    for name, wanted in expected.items():
        shown = [str(part[name]) for part in parts if part.get(name) is not None]
        whole = re.compile(rf"(?<!\w){re.escape(str(wanted))}(?!\w)", re.IGNORECASE)
        wrong = (
            [value for value in shown if value != f"{wanted:g}"]
            if isinstance(wanted, float)
            else [value for value in shown if not whole.search(value)]
        )
        if wrong or not shown:
            found.append(f"'{name}': the study says {wanted}, the router reports {summarised(wrong) or 'none'}")
    return found


def measure_row(session: Session, study: Study, step: Step, recorder: Recorder) -> Measured:
    """Measure *step* on *session*, whose plan has the goal of :func:`goal_of_measurement`.

    Raises TestbedError, SentenceError for what could not be begun; what could not be proven has a reason.
    """
    measurement = _Measurement(session, study, step, recorder)
    kinds = {
        "ramp": measurement.of_ramp,
        "throughput": measurement.of_search,
        "cpu_time": measurement.of_cpu_time,
        **dict.fromkeys(PAST_ROUTER, measurement.of_sender),
    }
    return kinds.get(measurement.row.kind, measurement.of_quantity)()


class _Measurement:
    """One measurement, whose trials *recorder* keeps."""

    def __init__(self, session: Session, study: Study, step: Step, recorder: Recorder) -> None:
        self.session, self.study, self.step, self.recorder = session, study, step, recorder
        self.row, self.words = study.measures[step.row], study.traffic_of(step.row, step.variant)
        self.traffic = parse_traffic(self.words, session.plan.catalogue)
        self.directions = self.traffic.directions
        self.is_rate = self.row.kind in RATES
        self.link_bps = session.plan.link_bps(self.traffic.pairs)
        self.line = self._rate(self.traffic.profile.line_rate_pps(self.link_bps)) if self.is_rate else None

    def of_ramp(self) -> Measured:
        """Return the load at which the router falls behind."""
        steps, run = self.row.steps or RAMP_STEPS, self._run()
        step, edge = (timedelta(seconds=seconds) for seconds in (self.study.seconds or 1.0, RAMP_EDGE))
        result = RAMP.measure(run, self.words, steps, step, edge, edge)
        ended = self._ended(run, result)
        rise = [step.trial for step in result.steps if step.phase is RampPhase.RISE]
        curve = tuple((self._rate(trial_pps(trial, False)), self._rate(trial_pps(trial, True))) for trial in rise)
        if ended:
            return Measured(None, ended, self.line, curve)
        return self._measured(knee_pps(result, self.directions), {}, result.saturation is None, curve)

    def of_search(self) -> Measured:
        """Return the highest load without loss."""
        run = self._run()
        result = search(run, self.words, {"NDR": 0.0})
        ended, bounds = self._ended(run, result), result["NDR"]
        if ended or bounds.lower is None:
            return Measured(None, ended or "no load was carried without loss", self.line)
        return self._measured(self.directions * bounds.lower.pps, {}, bounds.upper is None)

    def of_sender(self) -> Measured:
        """Return what the generator offers."""
        self.session.traffic.put(self.traffic)
        self._begin()
        try:
            figures = sending_figures(self.session, self.traffic, partial(self._keep, self.traffic))
        except CharacterisationEnded as error:
            return Measured(None, str(error), self.line)
        return self._measured(figures[OFFERED] * figures[DIRECTIONS], figures)

    def of_cpu_time(self) -> Measured:
        """Return the CPU time of a frame."""
        requirement = measured_of(self.study, self.step.row, self.step.variant, self.session.plan.catalogue)
        self.session.traffic.put_for(requirement)
        self._begin()
        seconds = self.session.plan.goal.final_trial_duration
        measured = cpu_time(self.session, requirement, seconds, partial(self._keep, requirement))
        return Measured(measured.value, measured.reason, None, (), measured.figures)

    def of_quantity(self) -> Measured:
        """Return the figure of a quantity, or of the router's own counters, in the first trial that shows it.

        Raises TestbedError where the testbed breaks down, or a counter of the router began anew.
        """
        session = self.session
        requirement = measured_of(self.study, self.step.row, self.step.variant, session.plan.catalogue)
        hear, interfaces = self.recorder.listener(requirement, session), session.interfaces
        names = FIGURES.get(self.row.kind, ())
        warm_up = session.prepare(requirement)
        self._begin()
        promise = promised(session, requirement)
        is_timed = session.clock_speed == 1 and not session.tolerance.ends_in_time
        loads = TrialPlan(promise, requirement.profile.line_rate_pps(self.link_bps), is_timed)
        if warm_up is not None:
            hear(EndedTrial(warm_up))
            loads.learn(warm_up)
        measure = session.measure_of(promise, hear)
        session.examine(True)
        try:
            for number in range(1, 2 + MOST_REPEATS):
                before = session.read(BEFORE)
                hear(Reading(BEFORE, before))
                outcome = measure(Load(loads.pps), loads.seconds)
                trial = read_trial(number, outcome, session.tolerance, session.clock_speed)
                trial = with_doubts(trial, promise.conditions, promise.quantity.doubts)
                hear(EndedTrial(trial))
                after = session.read(AFTER)
                hear(Reading(AFTER, after))
                known = lost_neighbours([trial], after, interfaces, requirement.profile)
                paused = pauses([trial], before, after, interfaces, self.link_bps)
                figures = figures_of(promise, [trial])
                lacking = [name for name in names if not math.isfinite(figures.get(name, math.inf))]
                gap = _spoilt((*trial.problems, *known, *paused))
                if not gap and not lacking:
                    break
                loads.learn(trial)
        finally:
            session.examine(False)
        if gap or lacking:
            words = "; ".join([f"the trial gave no {' and '.join(lacking)}", *map(str, trial.problems)])
            return Measured(None, gap or words, self.line)
        if names:
            value = fmean(figures[name] for name in names)
        else:
            value = _counted(session, self.row.kind, before, after) / trial.seconds.high
        return self._measured(value, figures, was_all_offered(self.row, value, figures["offered_pps"]))

    def _measured(
        self,
        value: float,
        figures: Mapping[str, float],
        at_least: bool = False,
        curve: tuple[tuple[float, float], ...] = (),
    ) -> Measured:
        """Return *value*, a rate in frames/s; *at_least*: it is only what was offered most."""
        more = {AT_LEAST: 1.0} if at_least else {}
        if self.is_rate:
            more |= {LINE: self.traffic.profile.line_rate_pps(self.link_bps), LINK: self.link_bps}
        return Measured(self._rate(value) if self.is_rate else value, "", self.line, curve, {**figures, **more})

    def _rate(self, pps: float) -> float:
        """Return *pps* frames/s in the unit of the row."""
        unit, profile = self.study.unit_of(self.step.row), self.traffic.profile
        if unit == "percent of line":
            return 100 * pps / profile.line_rate_pps(self.link_bps)
        if unit == "Gbit/s":
            return pps * bits(profile.mean_size, Layer.L1) / 1e9
        return pps / {"pps": 1.0, "kpps": 1e3, "Mpps": 1e6}[unit]

    def _begin(self) -> None:
        self.recorder.begin(str(self.step))

    def _keep(self, words: Requirement | TrafficWords, trial: Trial) -> None:
        self.recorder.keep_trial(words, trial, self.session)

    def _run(self) -> ProcedureRun:
        run = ProcedureRun(self.session, lambda traffic: self._begin(), self._keep)
        run.router_problem()  # a reading to compare with at the end
        return run

    def _ended(self, run: ProcedureRun, result: RampResult | SearchResult) -> str:
        """Return why *result* is no figure; "": it is one."""
        return "; ".join(filter(None, (result.ended, run.router_problem())))


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


def _spoilt(problems: Sequence[Problem]) -> str:
    """Return what may have cost or hidden any number of frames, in words; "": nothing. A load not reached may."""
    faults = [problem for problem in problems if not problem.fault.generator_too_slow]
    spoilt = [item for item in faults if item.frames is None and (item.fault.may_cost or item.fault.may_hide)]
    return "; ".join(map(str, spoilt))


def was_all_offered(measure: StudyRow, pps: float, offered_pps: float) -> bool:
    """Return whether *pps* is no limit of the router, but what was offered at most: less was lost than a ramp allows.

    At a load that the row names it is neither.
    """
    limited = measure.kind in ("forwards", "takes_in") and measure.at is None
    return limited and pps >= offered_pps * (1 - BEHIND)


def _counted(session: Session, kind: str, before: Telemetry, after: Telemetry) -> float:
    names = session.interfaces.values()
    if kind == "takes_in":
        rises = [after.interfaces[name].rx_packets - before.interfaces[name].rx_packets for name in names]
    else:
        pairs = [(unsent_by_interface(before.causes, name), unsent_by_interface(after.causes, name)) for name in names]
        rises = [now - then for then, now in pairs]
    if min(rises, default=0) < 0:
        raise TestbedError("a counter of the router began anew in the trial")
    return sum(rises)


FIRST_PPS = 50e3
"""Frames/s of the first load of a generator that sends all frames of a trial, however late."""

KEPT = 0.97
"""The share of a load that has to be offered for twice the load to be tried."""

LOAD_SECONDS = 2.5
"""Seconds of the shortest trial in which TRex reports the load of its cores for a whole period."""

OFFERED, RECEIVED, LINE, LINK = "offered_pps", "received_pps", "line_pps", "link_bps"
FRAME, DIRECTIONS = "frame_bytes", "directions"
CPU, CORE_SHARE, STEAL = "cpu_seconds_per_mframe", "core_share", "steal_percent"
"""Names of figures. Rates are of the worse direction, frames/s.
``core_share``: 0..1, of the cores that the sender may use; ``steal_percent``: where that is on this machine."""


def sending_figures(session: Session, traffic: TrafficWords, keep: Callable[[Trial], None]) -> dict[str, float]:
    """Return what is offered when line rate is asked for of *traffic*, which is on the ports.

    *keep*: called after each trial. Raises TestbedError, CharacterisationEnded for trials that prove nothing.
    """
    plan, here = session.plan, session.plan.testbed.kind == "netns"
    seconds, link_bps = plan.goal.final_trial_duration, plan.link_bps(traffic.pairs)
    line = traffic.profile.line_rate_pps(link_bps)
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

    series = TrialSeries(measure, plan.testbed.tolerances(), session.testbed.facts.clock_speed, keep)
    best = dict[str, float]()
    pps = min(FIRST_PPS, line) if _sends_all(session) else line
    while True:
        # what is not sent as asked is what is measured, not a spoilt trial
        trial = series.run(Load(pps), seconds, is_measured)
        found = {**_figures(trial, traffic, link_bps, here), **spent}
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
