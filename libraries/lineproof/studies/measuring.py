"""One measurement of a study on an open session: a row's kind becomes a procedure's trials, and their figure a value.

Nothing is judged. What the testbed may have spoilt, and what it does not know, is a gap.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from statistics import fmean
from typing import Any

from ..command_values import summarised
from ..core.doubts import Conditions
from ..core.goal import Goal
from ..core.quantity import Requirement, TrafficWords
from ..core.sentence import parse_traffic
from ..core.telemetry import Telemetry, unsent_by_interface
from ..core.trial import Load, Outcome, Problem, Trial
from ..core.verdict import figures_of
from ..errors import SentenceError, TestbedError
from ..evidence.recorder import Recorder
from ..procedures.procedure import ProcedureRun
from ..procedures.ramp import BEHIND, RAMP, RampResult
from ..procedures.trials import CharacterisationEnded
from ..session.judging import AFTER, BEFORE, EndedTrial, Reading, lost_neighbours, pauses, promised
from ..session.plan import Plan
from ..session.session import Session
from ..system.command_line import ShellCommands
from ..visible import shortened
from .cpu_time import cpu_time
from .senders import DIRECTIONS, OFFERED, sending_figures
from .study import AT_LEAST, LINE, LINK, Step, Study, StudyRow, rate_units


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
    if measure.how.measured is not None:
        plan.check_measurable(study.measured_of(row, variant, plan.catalogue))
    else:
        plan.check_pairs(parse_traffic(study.traffic_of(row, variant), plan.catalogue))
    if measure.kind in ("takes_in", "drops_sending") and plan.uncounted:
        raise SentenceError(f"'{study.sentence_of(row, variant)}': {plan.uncounted}")


def check_router(session: Session, study: Study, variant: str) -> tuple[list[str], dict[str, str]]:
    """Compare the router of *session* with what *variant* says.

    Return how it differs, as sentences, and what could not be checked: the name of a fact, or a command -> why. The
    machine of a simulated router is that of no study.
    """
    facts, software = session.router.facts, session.plan.software
    parts: list[Mapping[str, Any]] = [asdict(facts), facts.other]
    parts += [part for nic in facts.nics for part in (asdict(nic), nic.other)]
    stated = {
        "version": (software.version, facts.version or facts.os or facts.kernel),
        "workers": (software.workers, facts.workers),
        "receive queues": (software.rx_queues, any(nic.rx_queues for nic in facts.nics)),
    }
    unreported = "the router does not report it"
    unchecked = {name: unreported for name, (says, reports) in stated.items() if says and not reports}
    differs = list(facts.differences)
    for name, expected in study.facts_of(variant).items():
        shown = [str(part[name]) for part in parts if part.get(name) is not None]
        # a number is all of it, a text a whole word in it
        exact = f"{expected:g}" if isinstance(expected, float) else rf".*(?<!\w){re.escape(expected)}(?!\w).*"
        wrong = [value for value in shown if not re.fullmatch(exact, value, re.IGNORECASE)]
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
    methods = {"ramp": one.of_ramp, "cpu_time": one.of_cpu_time, "sends": one.of_sender}
    try:
        return methods.get(one.row.kind, one.of_quantity)()
    except CharacterisationEnded as error:
        return Measured(None, str(error).removeprefix("inconclusive: "), figures=one.line_figures)


class _Measurement(ProcedureRun):
    """A step of a study as the run of a procedure: what it begins and keeps is of that step."""

    def __init__(self, session: Session, study: Study, step: Step, recorder: Recorder) -> None:
        def keep(sent: TrafficWords, trial: Trial) -> None:
            recorder.keep_trial(sent, trial, session)

        traffic_words = study.traffic_of(step.row, step.variant)
        super().__init__(session, lambda traffic: recorder.begin(str(step)), keep, words=traffic_words)
        self.study, self.step, self.recorder = study, step, recorder
        self.row, self.sent_words = study.measures[step.row], self.traffic(traffic_words)
        self.line_pps, link = self.line(self.sent_words), self.link_bps(self.sent_words)
        self.line_figures = {LINE: self.line_pps, LINK: link} if self.row.is_rate else {}
        self.unit_pps = rate_units(self.line_pps, link).get(study.unit_of(step.row), 1.0)
        """Frames/s that one of the row's unit is; 1 where that is no rate."""

    def of_ramp(self) -> Measured:
        """Return the load at which the router falls behind."""
        self.router_problem()  # a reading to compare with at the end
        step, edge = timedelta(seconds=self.study.seconds or 1.0), timedelta(seconds=2)
        result = RAMP.measure(self, self.words, self.row.steps, step, edge, edge)
        if problems := "; ".join(filter(None, (result.ended, self.router_problem()))):
            raise CharacterisationEnded(problems)
        rates = [trial_pps(step.trial) for step in result.rise]
        curve = tuple((offered / self.unit_pps, forwarded / self.unit_pps) for offered, forwarded in rates)
        return self._measured(knee_pps(result, self.sent_words.directions), {}, result.saturation is None, curve)

    def of_sender(self) -> Measured:
        """Return what the generator offers."""
        figures = sending_figures(self, self.sent_words)
        return self._measured(figures[OFFERED] * figures[DIRECTIONS], figures)

    def of_cpu_time(self) -> Measured:
        """Return the CPU time of a frame."""
        return self._measured(*cpu_time(self, self._requirement()))

    def of_quantity(self) -> Measured:
        """Return the figure of a quantity, or of the router's own counters, in the first trial that shows it."""
        session, names, interfaces = self.session, self.row.how.figures, self.session.interfaces
        requirement = self._requirement()
        hear, readings = self.recorder.listener(requirement, session), dict[str, Telemetry]()
        warm_up = session.prepare(requirement)
        self.begin(requirement)
        if warm_up is not None:
            hear(EndedTrial(warm_up))
        promise = promised(session, requirement)
        measure = session.measure_of(promise, hear)

        def read(moment: str) -> None:
            readings[moment] = session.read(moment)
            hear(Reading(moment, readings[moment]))

        def between_readings(load: Load, seconds: float) -> Outcome:
            read(BEFORE)
            outcome = measure(load, seconds)
            read(AFTER)
            return outcome

        def shown_afterwards(trial: Trial, conditions: Conditions) -> Iterator[Problem]:
            before, after, link = readings[BEFORE], readings[AFTER], self.link_bps(requirement)
            yield from lost_neighbours([trial], after, interfaces, requirement.profile)
            yield from pauses([trial], before, after, interfaces, link)

        def shows_it(trial: Trial) -> bool:
            figures = figures_of(promise, [trial])
            is_known = all(math.isfinite(figures.get(name, math.inf)) for name in names)
            return is_known and not any(map(_may_spoil, trial.problems))

        session.examine(True)
        with self.series(requirement) as trials:
            load, seconds = Load(promise.load_pps), promise.quantity.trial_seconds(promise)
            doubts = *promise.quantity.doubts, shown_afterwards
            trial = trials.run(load, seconds, shows_it, between_readings, doubts)
        session.examine(False)
        if trials.ended:
            raise CharacterisationEnded(trials.ended)
        figures = figures_of(promise, [trial])
        if names:
            value = fmean(figures[name] for name in names)
        else:
            value = _counted(session, self.row.kind, readings[BEFORE], readings[AFTER]) / trial.seconds.high
        return self._measured(value, figures, was_all_offered(self.row, value, figures["offered_pps"]))

    def _requirement(self) -> Requirement:
        return self.study.measured_of(self.step.row, self.step.variant, self.session.plan.catalogue)

    def _measured(
        self,
        value: float,
        figures: Mapping[str, float],
        at_least: bool = False,
        curve: tuple[tuple[float, float], ...] = (),
    ) -> Measured:
        """Return *value*, a rate in frames/s; *at_least*: it is only what was offered most."""
        bound = {AT_LEAST: 1.0} if at_least else {}
        return Measured(value / self.unit_pps, "", curve, {**figures, **bound, **self.line_figures})


def knee_pps(result: RampResult, directions: int) -> float:
    """Return where a ramp's router falls behind, in frames/s of all *directions* together.

    It is between the last step that kept up and the first that did not, and what came back of that one is the best
    guess: so the figure does not depend on where the steps are. Without saturation: the highest load that was offered.
    """
    if result.saturation is None:
        return directions * max((step.offered_pps for step in result.rise), default=0.0)
    kept_up = result.rise[: result.rise.index(result.saturation)]
    low = directions * kept_up[-1].offered_pps if kept_up else 0.0
    return max(low, min(trial_pps(result.saturation.trial)))


def trial_pps(trial: Trial) -> tuple[float, float]:
    """Return the frames/s of *trial* that were offered and forwarded, all directions together."""
    return trial.offered / trial.seconds.high, trial.forwarded / trial.seconds.high


def _may_spoil(problem: Problem) -> bool:
    """Return whether *problem* may have cost or hidden any number of frames. A load that was not reached may."""
    fault = problem.fault
    return not fault.generator_too_slow and problem.frames is None and (fault.may_cost or fault.may_hide)


def was_all_offered(measure: StudyRow, pps: float, offered_pps: float) -> bool:
    """Return whether *pps* is only what was offered at most: less was lost than a ramp allows.

    Then it is no limit of the router. At a load that the row names it is neither.
    """
    limited = measure.kind in ("forwards", "takes_in") and measure.at is None
    return limited and pps >= offered_pps * (1 - BEHIND)


def _counted(session: Session, kind: str, before: Telemetry, after: Telemetry) -> float:
    """Return the frames that the router's interfaces took in, or sent in vain. Raises TestbedError."""

    def count(reading: Telemetry, name: str) -> int:
        taken = kind == "takes_in"
        return reading.interfaces[name].rx_packets if taken else unsent_by_interface(reading.causes, name)

    rises = [count(after, name) - count(before, name) for name in session.interfaces.values()]
    if min(rises, default=0) < 0:
        raise TestbedError("a counter of the router began anew in the trial")
    return sum(rises)
