"""Runs a study: visits in their order, a session for each platform and software, every measurement kept at once."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..errors import BREAKDOWN_ERRORS, SentenceError, TestbedError, in_words
from ..evidence.environment import environment_record
from ..evidence.inputs import without_secrets
from ..evidence.recorder import Recorder
from ..evidence.records import EnvironmentRecord, MeasurementRecord
from ..evidence.resume import FINGERPRINTS
from ..evidence.run import new_run_id
from ..evidence.run_files import CHAINED
from ..evidence.summary import DESCRIPTION, STUDY
from ..files import read_file
from ..methods.budget import duration_text
from ..session.plan import Plan
from ..session.session import Session
from ..system.cpu_clock import cpu_times, steal_percent
from ..testbed.in_use import HeldTestbed
from ..testbed.lab.place import LABGRID
from .carrying import SESSIONS, Carried, OtherTestbed, check_versions
from .history import history_words
from .measuring import Listeners, Measured, measure_row, words_of
from .preparing import NOT_HERE, PreparedStudy
from .study import AT_LEAST, Step, Visit, left_of, visits_of

MOST_FAILURES = 3
"""Visits in a row that could not be begun end a study: the testbed does not answer."""

Say = Callable[[str], None]


@dataclass
class StudyRun:
    """One run of *prepared* in a folder of *results*. *carried*: an earlier run that is gone on with.

    *say* gets a line for each thing that happens. *run_id*: of its folder ("": a new one). ``folder``: of the run; None
    before it has begun. ``measured``: how many values it has, those that were carried over included.
    """

    prepared: PreparedStudy
    results: Path
    carried: Carried | None = None
    say: Say = lambda words: None
    run_id: str = ""
    _session: Session | None = field(default=None, repr=False)
    _key: tuple[object, ...] = ()
    _applied: str = ""
    _known: dict[str, Any] = field(default_factory=dict)
    _held: dict[str, HeldTestbed] = field(default_factory=dict)
    _noted: set[str] = field(default_factory=set)
    _failures: int = 0
    _current: str = ""
    measured: int = 0

    def __post_init__(self) -> None:
        self.folder: Path | None = None
        visits = visits_of(self.prepared.study)
        done = frozenset(self.carried.records) if self.carried else frozenset[Step]()
        self.visits = left_of(visits, done)
        self._known = self.carried.sessions if self.carried else {}
        left, carried = frozenset(step for visit in self.visits for step in visit.steps), self.carried
        self._history = carried.history(self.prepared.study, left) if carried else {}

    def run(self) -> Path:
        """Measure what is left; returns the run's folder. Raises TestbedError, after what was measured is kept."""
        for words in self.foreword():
            self.say(words)
        self._cpu = cpu_times()
        now = self.run_id or new_run_id(datetime.now(UTC))
        self._recorder = Recorder(self.results, now, self._environment(now), CHAINED)
        self.folder = folder = self._recorder.folder.path
        self.say(f"kept in {folder}")
        try:
            self._keep_inputs()
            if self.carried is not None:
                copied = self.carried.copy_to(self._recorder)
                self.measured = len(self.carried.records)
                self.say(f"run {self.carried.run_id} measured {copied}: carried over")
            for visit, left in _with_time_left(self.prepared, self.visits):
                self._visit(visit, left)
            self._current = ""
        finally:
            with contextlib.ExitStack() as stack:
                stack.callback(self._recorder.close, steal_percent(self._cpu, cpu_times()), self._current)
                stack.callback(self._give_back)
                stack.callback(self._close_session)
        return folder

    def foreword(self) -> tuple[str, ...]:
        """Return the words before anything starts: how long it takes, what will be gaps, what no longer holds."""
        prepared = self.prepared
        return prepared.budget_words(self.visits), *prepared.gap_words(self.visits), *history_words(self._history)

    def _environment(self, run: str) -> EnvironmentRecord:
        prepared, plan = self.prepared, self.prepared.plan
        # the baseline's plan: those of the others are with their measurements
        return environment_record(
            plan,
            run,
            simulated=any(each.testbed.kind == "simulated" for each in prepared.plans.values()),
            clock_speed=plan.clock_speed,
            extra={
                STUDY: prepared.study.study,
                "repeats": prepared.study.repeats,
                "suite": f"study {prepared.study.study}",
                DESCRIPTION: prepared.study.title,
                FINGERPRINTS: prepared.fingerprints(),
                **self._history,
            },
        )

    def _keep_inputs(self) -> None:
        for plan in {self.prepared.session_key(name): plan for name, plan in self.prepared.plans.items()}.values():
            self._recorder.keep_inputs(plan)
        path = self.prepared.path
        layer = "variables" if path.parent == self.prepared.project.studies.own else "packaged"
        text = without_secrets(read_file(path).decode(errors="replace"))
        self._recorder.folder.add_input(f"{layer}/studies/{path.name}", text.encode())

    def _visit(self, visit: Visit, left: str) -> None:
        """Set *visit*'s variant up and measure its rows; where that fails, each is a gap."""
        place = f", baseline {visit.turn}" if visit.turn else ""
        self.say(f"block {visit.block}{place}: {visit.variant} (about {left} left)")
        away = ""
        for step in visit.steps:
            self._current, started = str(step), time.time()
            number = self._recorder.number
            if gap := self.prepared.gap(step.variant, step.row) or away:
                excused = step.variant not in self.prepared.unknown
                self._keep(step, Measured(None, gap, excused=excused), started, 0)
                continue
            try:
                session = self._set_up(visit)
                self._failures = 0
                found = measure_row(session, self.prepared.study, step.row, step.variant, self._listeners(step))
            except (SentenceError, OtherTestbed):
                raise
            except BREAKDOWN_ERRORS as error:
                found = Measured(None, in_words(error))
                if self._session is None and self.prepared.study.variants[step.variant].testbed is not None:
                    # as a program that is not installed: the other variants need it not
                    away = f"{NOT_HERE}: {in_words(error)}"
                    found = Measured(None, away, excused=True)
                elif self._session is None:
                    self._count_failure(error)
            if found.value is None:
                # whatever is wrong with it: the next measurement has a new one
                self._close_after_gap()
            self._keep(step, found, started, self._recorder.number if self._recorder.number > number else 0)

    def _count_failure(self, error: Exception) -> None:
        self._failures += 1
        if not self.measured or self._failures >= MOST_FAILURES:
            if isinstance(error, TestbedError):
                # as it is: an error that is its own cause is a circle, in which Robot's report of it does not end
                raise error
            raise TestbedError(in_words(error)) from error

    def _keep(self, step: Step, found: Measured, started: float, number: int) -> None:
        study, plan = self.prepared.study, self.prepared.plans.get(step.variant)
        unit = study.unit_of(step.row)
        self._recorder.folder.add(
            MeasurementRecord(
                run=self._recorder.folder.run_id,
                simulated=self._recorder.environment.simulated,
                study=study.study,
                block=step.block,
                turn=step.turn,
                variant=step.variant,
                row=step.row,
                platform=study.platform_of(step.variant),
                software=plan.software_name if plan else study.variants[step.variant].software or "",
                sentence=words_of(study, step.row, step.variant),
                value=found.value,
                unit=unit,
                reason=found.reason,
                requirement=number,
                started=started,
                ended=time.time(),
                line=found.line,
                curve=found.curve,
                figures=found.figures,
                excused=found.excused,
            )
        )
        self.measured += found.value is not None
        sign = "≥ " if found.figures.get(AT_LEAST) else ""
        words = f"no value: {found.reason}" if found.value is None else f"{sign}{found.value:.5g} {unit}"
        self.say(f"  {step.row}: {words}")

    def _listeners(self, step: Step) -> Listeners:
        recorder, session = self._recorder, self._session
        if session is None:
            raise TestbedError("no testbed is open")
        return Listeners(
            lambda: recorder.begin(str(step)),
            lambda words, trial: recorder.keep_trial(words, trial, session),
            recorder.keep_reading,
        )

    # -- sessions ------------------------------------------------------------------------------------------------------

    def _set_up(self, visit: Visit) -> Session:
        """The session of a variant, opened if it is not, with its commands run. Raises TestbedError."""
        variant = visit.variant
        key = self.prepared.session_key(variant)
        if self._session is None or self._key != key:
            self._close_session()
            self._open(visit)
            self._key = key
        session = self._session
        if session is None:
            raise TestbedError("no testbed is open")
        if self._applied != variant:
            self._withdraw(session)
            self._applied = variant
            if commands := self.prepared.commands_of(variant):
                session.router.begin_changes()
                session.traffic.forget()  # it may forward other frames now
                session.router.driver.apply(commands)
        return session

    def _withdraw(self, session: Session) -> None:
        if self._applied and self.prepared.commands_of(self._applied):
            if kept := session.router.driver.withdraw():
                self.say(f"  {kept}")
            session.traffic.forget()
        self._applied = ""

    def _open(self, visit: Visit) -> None:
        bypass = self.prepared.study.bypass
        plan = self.prepared.plan_of(visit)
        session = Session.start(plan, bypass=bypass, held=self._testbed_of(plan), say=self.say)
        try:
            session.generator.connect()
            if bypass:
                self._recorder.mark_simulated(session.simulation_signs)
                self._note(session)
                self._session = session
                return
            session.router.connect()
            self._recorder.mark_simulated(session.simulation_signs)
            if undone := session.router.undo_leftover():
                self.say(f"  {undone}")
            session.router.configure()
            session.traffic.check_reachability()
            self._note(session)
        except BaseException:
            session.close()
            raise
        self._session = session

    def _testbed_of(self, plan: Plan) -> HeldTestbed:
        """The testbed of *plan*, which is had until the run ends: its variants are compared on one that nobody changed.

        Raises TestbedError.
        """
        name = plan.testbed.testbed
        if name not in self._held:
            self._held[name] = held = HeldTestbed.take(plan.testbed, self.say)
            recorder = self._recorder
            if held.lab and LABGRID not in recorder.environment.extra:
                extra = {**recorder.environment.extra, LABGRID: held.lab.record()}
                recorder.environment = replace(recorder.environment, extra=extra)
        return self._held[name]

    def _give_back(self) -> None:
        with contextlib.ExitStack() as stack:
            for held in self._held.values():
                stack.callback(held.close)

    def _note(self, session: Session) -> None:
        """Keep versions and configuration: of the first session as a run's, of each in the list of them.

        Raises OtherTestbed where an earlier one of the same, or the run that is gone on with, had other versions.
        """
        plan = session.plan
        bypass = self.prepared.study.bypass
        name = f"testbed {plan.testbed.testbed}" if bypass else f"{plan.platform.platform}, {plan.software_name}"
        versions = session.versions()
        if name in self._known:
            check_versions(name, self._known[name], versions)
        if name in self._noted:
            return
        configuration = {} if bypass else session.router.configuration()
        if not self._noted:
            self._recorder.keep_parts(session, versions, configuration)
        self._noted.add(name)
        self._known[name] = {"versions": versions, "configuration": configuration}
        recorder = self._recorder
        extra = {**recorder.environment.extra, SESSIONS: self._known}
        recorder.environment = replace(recorder.environment, extra=extra)
        recorder.folder.write_environment(recorder.environment)

    def _close_after_gap(self) -> None:
        try:
            self._close_session()
        except TestbedError as error:
            self.say(f"  {error}")

    def _close_session(self) -> None:
        session, self._session, self._applied, self._key = self._session, None, "", ()
        if session is not None:
            session.close()
            self._recorder.folder.add_telemetry(0, "logs", session.testbed.logs)


def _with_time_left(prepared: PreparedStudy, visits: tuple[Visit, ...]) -> Iterator[tuple[Visit, str]]:
    """Each visit with the time that is left when it begins: of the budget, corrected by how long it took so far."""
    began = time.monotonic()
    for place, visit in enumerate(visits):
        left = prepared.seconds(visits[place:])[1]
        # of those that were done, with the sessions that they opened: what is left counts the one that is open again
        spent, foreseen = time.monotonic() - began, prepared.seconds(visits[:place])[1]
        yield visit, duration_text(left * (spent / foreseen if foreseen > 0 and place else 1.0))
