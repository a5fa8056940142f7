"""One measurement of a study on an open session: a row's kind becomes a method of the house, and its figure a value.

Nothing is judged. What the testbed may have spoilt, and what it does not know, is a gap.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
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
from ..core.sentence import parse_traffic
from ..core.telemetry import Telemetry, unsent_by_interface
from ..core.trial import Load, Problem, Trial, read_trial
from ..errors import SentenceError, TestbedError
from ..evidence.recorder import Recorder
from ..procedures.procedure import ProcedureRun
from ..procedures.ramp import BEHIND, RAMP, RampResult
from ..procedures.search import search
from ..procedures.trials import MOST_REPEATS, CharacterisationEnded
from ..session.judging import AFTER, BEFORE, EndedTrial, Reading, figures_of, lost_neighbours, pauses, promised
from ..session.plan import Plan
from ..session.session import Session
from ..system.command_line import ShellCommands
from ..visible import shortened
from .cpu_time import cpu_time
from .senders import DIRECTIONS, OFFERED, sending_figures
from .study import AT_LEAST, LINE, LINK, RAMP_STEPS, Step, Study, StudyRow, rate_units


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of a measurement: a ``value``, or None and the ``reason``.

    ``curve``: of a ramp, offered and forwarded at each step. Both in the row's unit. ``figures``: others, by name; of a
    rate always LINE and LINK. ``excused``: a gap that is no failure.
    """

    value: float | None
    reason: str = ""
    curve: tuple[tuple[float, float], ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    excused: bool = False


def goal_of_measurement(goal: Goal, seconds: float | None) -> Goal:
    """Return *goal* with one trial of *seconds* (None: its own): repeats are the study's, not the goal's."""
    duration = seconds or goal.final_trial_duration
    once = {"bad_share": 0.999, "good_share": 0.001, "risk": 0.05, "budget": 1, "exceed_ratio": 0.0}
    times = {"final_trial_duration": duration, "duration_sum": duration, "longest_trial": duration}
    return goal.model_copy(update={**once, **times})


def check_row(plan: Plan, study: Study, row: str, variant: str) -> None:
    """Raise SentenceError if *row* cannot be measured on *variant* with *plan*."""
    measure = study.measures[row]
    if measure.how.measured is None:
        plan.check_pairs(parse_traffic(study.traffic_of(row, variant), plan.catalogue))
    else:
        plan.check_measurable(study.measured_of(row, variant, plan.catalogue))
    if measure.kind in ("takes_in", "drops_sending") and plan.uncounted:
        raise SentenceError(f"'{study.sentence_of(row, variant)}': {plan.uncounted}")


def check_router(session: Session, study: Study, variant: str) -> tuple[list[str], dict[str, str]]:
    """Compare the router of *session* with what *variant* says.

    Return how it differs, as sentences, and what could not be checked: the name of a fact, or a command -> why. The
    machine of a simulated router is that of no study.
    """
    facts, software = session.router.facts, session.plan.software
    parts: list[Mapping[str, Any]] = [asdict(facts), facts.other]
    for nic in facts.nics:
        parts += [asdict(nic), nic.other]
    differs, unchecked = list(facts.differences), dict[str, str]()
    for name, stated, reported in (
        ("version", software.version, facts.version or facts.os or facts.kernel),
        ("workers", software.workers, facts.workers),
        ("receive queues", software.rx_queues, any(nic.rx_queues for nic in facts.nics)),
    ):
        if stated and not reported:
            unchecked[name] = "the router does not report it"
    for name, expected in study.facts_of(variant).items():
        shown = [str(part[name]) for part in parts if part.get(name) is not None]
        whole = re.compile(rf"(?<!\w){re.escape(str(expected))}(?!\w)", re.IGNORECASE)
        is_number = isinstance(expected, float)
        wrong = [value for value in shown if not (value == f"{expected:g}" if is_number else whole.search(value))]
        if session.simulated and (not shown or "simulated" in "".join(wrong).lower()):
            unchecked[name] = "a simulated router does not have it"
        elif wrong or not shown:
            differs.append(f"'{name}': the study says {expected}, the router reports {summarised(wrong) or 'none'}")
    commands = ShellCommands(session.router.shell, sudo=session.testbed.facts.router.sudo)
    for line, pattern in study.variants[variant].settings.items():
        answer = commands.answer(line)
        if pattern.search(answer.stdout):
            continue
        if session.simulated and (answer.status or "simulated" in answer.stdout.lower()):
            unchecked[line] = "a simulated router does not know it"
        else:
            said = shortened(" ".join(answer.stdout.split())) or "none"
            differs.append(f"'{line}' has no '{pattern.pattern}' in its answer: {said}")
    return differs, unchecked


def measure_row(session: Session, study: Study, step: Step, recorder: Recorder) -> Measured:
    """Measure *step* on *session*; *recorder* keeps its trials.

    The goal is that of :func:`goal_of_measurement`. Raises TestbedError, SentenceError for what could not be begun;
    what could not be proven has a reason.
    """
    one = _Measurement(session, study, step, recorder)
    methods = {"ramp": one.of_ramp, "throughput": one.of_search, "cpu_time": one.of_cpu_time, "sends": one.of_sender}
    try:
        return methods.get(one.row.kind, one.of_quantity)()
    except CharacterisationEnded as error:
        return Measured(None, str(error), figures=one.line_figures)


class _Measurement(ProcedureRun):
    """A step of a study as the run of a procedure: what it begins and keeps is of that step."""

    def __init__(self, session: Session, study: Study, step: Step, recorder: Recorder) -> None:
        def keep(sent: TrafficWords, trial: Trial) -> None:
            recorder.keep_trial(sent, trial, session)

        traffic_words = study.traffic_of(step.row, step.variant)
        super().__init__(session, lambda traffic: recorder.begin(str(step)), keep, words=traffic_words)
        self.study, self.step, self.recorder = study, step, recorder
        self.plan, self.row, self.sent_words = session.plan, study.measures[step.row], self.traffic(traffic_words)
        self.link, self.line_pps = self.link_bps(self.sent_words), self.line(self.sent_words)
        self.line_figures = {LINE: self.line_pps, LINK: self.link} if self.row.is_rate else {}

    def of_ramp(self) -> Measured:
        """Return the load at which the router falls behind."""
        self.router_problem()  # a reading to compare with at the end
        step, edge = timedelta(seconds=self.study.seconds or 1.0), timedelta(seconds=2)
        result = RAMP.measure(self, self.words, self.row.steps or RAMP_STEPS, step, edge, edge)
        self._check_ending(result.ended)
        trials = [step.trial for step in result.rise]
        curve = tuple((self._rate(trial_pps(trial, False)), self._rate(trial_pps(trial, True))) for trial in trials)
        return self._measured(knee_pps(result, self.sent_words.directions), {}, result.saturation is None, curve)

    def of_search(self) -> Measured:
        """Return the highest load without loss."""
        self.router_problem()  # a reading to compare with at the end
        result = search(self, self.words, {"NDR": 0.0})
        bounds = result["NDR"]
        self._check_ending(result.ended)
        if bounds.lower is None:
            raise CharacterisationEnded("no load was carried without loss")
        return self._measured(self.sent_words.directions * bounds.lower.pps, {}, bounds.upper is None)

    def of_sender(self) -> Measured:
        """Return what the generator offers."""
        self.session.traffic.put(self.sent_words)
        self.begin(self.sent_words)
        figures = sending_figures(self.session, self.sent_words, partial(self.on_trial, self.sent_words))
        return self._measured(figures[OFFERED] * figures[DIRECTIONS], figures)

    def of_cpu_time(self) -> Measured:
        """Return the CPU time of a frame."""
        requirement = self._requirement()
        self.session.traffic.put_for(requirement)
        self.begin(requirement)
        seconds = self.plan.goal.final_trial_duration
        value, figures = cpu_time(self.session, requirement, seconds, partial(self.on_trial, requirement))
        return Measured(value, figures=figures)

    def of_quantity(self) -> Measured:
        """Return the figure of a quantity, or of the router's own counters, in the first trial that shows it.

        Raises TestbedError where the testbed breaks down, or a counter of the router began anew.
        """
        session, requirement, names = self.session, self._requirement(), self.row.how.figures
        hear = self.recorder.listener(requirement, session)
        warm_up = session.prepare(requirement)
        self.begin(requirement)
        promise = promised(session, requirement)
        loads = TrialPlan(promise, self.line_pps, session.clock_speed == 1 and not session.tolerance.ends_in_time)
        if warm_up is not None:
            hear(EndedTrial(warm_up))
            loads.learn(warm_up)
        measure = session.measure_of(promise, hear)

        def reading(moment: str) -> Telemetry:
            hear(Reading(moment, telemetry := session.read(moment)))
            return telemetry

        session.examine(True)
        try:
            for number in range(1, 2 + MOST_REPEATS):
                before = reading(BEFORE)
                outcome = measure(Load(loads.pps), loads.seconds)
                trial = read_trial(number, outcome, session.tolerance, session.clock_speed)
                trial = with_doubts(trial, promise.conditions, promise.quantity.doubts)
                hear(EndedTrial(trial))
                after, interfaces = reading(AFTER), session.interfaces
                lost = lost_neighbours([trial], after, interfaces, requirement.profile)
                paused = pauses([trial], before, after, interfaces, self.link)
                figures = figures_of(promise, [trial])
                lacking = [name for name in names if not math.isfinite(figures.get(name, math.inf))]
                problem = _spoilt((*trial.problems, *lost, *paused))
                if lacking and not problem:
                    problem = "; ".join([f"the trial gave no {' and '.join(lacking)}", *map(str, trial.problems)])
                if not problem:
                    break
                loads.learn(trial)
            else:
                raise CharacterisationEnded(problem)
        finally:
            session.examine(False)
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
        all_figures = {**figures, **({AT_LEAST: 1.0} if at_least else {}), **self.line_figures}
        return Measured(self._rate(value) if self.row.is_rate else value, "", curve, all_figures)

    def _rate(self, pps: float) -> float:
        """Return *pps* frames/s in the unit of the row."""
        return pps / rate_units(self.line_pps, self.link)[self.study.unit_of(self.step.row)]

    def _requirement(self) -> Requirement:
        return self.study.measured_of(self.step.row, self.step.variant, self.plan.catalogue)

    def _check_ending(self, ended: str) -> None:
        """Raise CharacterisationEnded where a procedure has *ended* early, or something happened to the router."""
        if problems := "; ".join(filter(None, (ended, self.router_problem()))):
            raise CharacterisationEnded(problems)


def knee_pps(result: RampResult, directions: int) -> float:
    """Return where a ramp's router falls behind, in frames/s of all *directions* together.

    It is between the last step that kept up and the first that did not, and what came back of that one is the best
    guess: so the figure does not depend on where the steps are. Without saturation: the highest load that was offered.
    """
    if result.saturation is None:
        return directions * max((step.offered_pps for step in result.rise), default=0.0)
    kept_up = result.rise[: result.rise.index(result.saturation)]
    low = directions * kept_up[-1].offered_pps if kept_up else 0.0
    behind = result.saturation.trial
    return max(low, min(trial_pps(behind, True), trial_pps(behind, False)))


def trial_pps(trial: Trial, forwarded: bool) -> float:
    """Return the frames/s of *trial*, all directions together: *forwarded*, or offered."""
    return (trial.forwarded if forwarded else trial.offered) / trial.seconds.high


def _spoilt(problems: Sequence[Problem]) -> str:
    """Return what may have cost or hidden any number of frames, in words; "": nothing. A load not reached may."""
    faults = [problem for problem in problems if not problem.fault.generator_too_slow]
    unbounded = (problem for problem in faults if problem.frames is None)
    return "; ".join(str(problem) for problem in unbounded if problem.fault.may_cost or problem.fault.may_hide)


def was_all_offered(measure: StudyRow, pps: float, offered_pps: float) -> bool:
    """Return whether *pps* is only what was offered at most: less was lost than a ramp allows.

    Then it is no limit of the router. At a load that the row names it is neither.
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
