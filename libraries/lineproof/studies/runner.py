"""Runs a study: each measurement in its order, a session for each platform and software, and every one kept at once.

A run that goes on with an interrupted one copies what that measured with its trials, and does not repeat it. Nothing
else may differ: who looks at figures and then chooses other blocks, tolerances or published figures finds differences
that are none.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..core.router_facts import RouterSetUp
from ..errors import BREAKDOWN_ERRORS, SentenceError, TestbedError, in_words
from ..evidence.recorder import Recorder, environment_record
from ..evidence.records import EnvironmentRecord, MeasurementRecord
from ..evidence.resume import differences
from ..evidence.run import RecordedRun, find_one_run, new_run_id, read_run
from ..project import Project
from ..session.plan import Plan
from ..session.session import Session
from ..system.cpu_clock import cpu_times, steal_percent
from ..system.login import ENVIRONMENT, Secrets
from ..testbed.in_use import HeldTestbed
from ..testbed.lab.place import LABGRID
from ..units import counted
from .measuring import Measured, measure_row, words_of
from .preparing import NOT_HERE, Gap, PreparedStudy, prepare_study
from .results import REPEATS, study_of
from .study import AT_LEAST, Step, steps_of

SESSIONS = "sessions"
"""Key of an environment's extra data: by platform and software, versions and configuration of the router."""

_STATES = ("generator.leftover", "generator.force", "generator.promiscuous", "router.rx placement")
"""Keys that stand among the versions, and may differ between two sessions of one run."""

MOST_FAILURES = 3
"""Measurements in a row that could not be begun end a study: the testbed does not answer."""


class OtherTestbed(TestbedError):
    """A study that is not the one measured before: nothing may be added to those measurements."""


@dataclass(frozen=True)
class Carried:
    """The measurements of *run* that have a value, by their place; gaps are measured again."""

    run: RecordedRun
    records: Mapping[Step, MeasurementRecord]

    @classmethod
    def of(cls, folder: Path, prepared: PreparedStudy) -> Carried:
        """Return what the run in *folder* measured of *prepared*.

        Raises ConfigError, TestbedError naming what has changed.
        """
        run, name = read_run(folder), prepared.study.study
        then = run.environment
        if then.study != name:
            of = f"of study '{then.study}'" if then.study else "of no study"
            raise TestbedError(f"run '{then.run}' is {of}, and cannot go on as '{name}'; expected a run of that")
        if apart := differences(then.fingerprints, prepared.identity()):
            raise TestbedError(
                f"run '{then.run}' cannot be resumed: {'; '.join(apart)}; go on with its own options, or"
                " run the study again, without --resume"
            )
        kept = (record for record in run.measured if record.value is not None)
        return cls(run, {Step(record.block, record.turn, record.variant, record.row): record for record in kept})

    def copy_to(self, recorder: Recorder) -> str:
        """Copy everything into *recorder*'s run; returns how much it was, in words."""
        folder = recorder.folder
        for named in self.run.inputs.items():
            folder.add_input(*named)
        for record in self.records.values():
            number = folder.next_requirement() if record.requirement else 0
            for trial in self.run.trials_by_number.get(record.requirement, ()):
                folder.add(replace(trial, run=folder.run_id, requirement=number))
            origin = record.carried_from or self.run.environment.run
            folder.add(replace(record, run=folder.run_id, requirement=number, carried_from=origin))
        return counted(len(self.records), "measurement")


class StudyRun:
    """One run of *prepared* in a folder of *results*. *carried*: an earlier run that is gone on with.

    ``say`` gets a line for each thing that happens. ``run_id``: of its folder ("": a new one). ``folder``: of the
    run; None before it has begun. ``measured``: how many values it has, with those that were carried over.
    """

    def __init__(self, prepared: PreparedStudy, results: Path, carried: Carried | None = None) -> None:
        self.prepared, self.results, self.carried = prepared, results, carried
        self.say: Callable[[str], None] = lambda words: None
        self.run_id = ""
        self.folder: Path | None = None
        self.measured = 0
        done = carried.records if carried else {}
        self.steps = [step for step in steps_of(prepared.study) if step not in done]
        self._session: Session | None = None
        self._key: tuple[object, ...] = ()
        self._applied = self._current = ""
        self._known: dict[str, Any] = dict(carried.run.environment.extra.get(SESSIONS, {})) if carried else {}
        self._held: dict[str, HeldTestbed] = {}
        self._noted: set[str] = set()
        self._away: dict[tuple[int, str, str], Gap] = {}
        self._failures = 0
        self._afterwards: list[str] = []

    def run(self) -> Path:
        """Measure what is left; returns the run's folder. Raises TestbedError, after what was measured is kept."""
        for words in self.foreword():
            self.say(words)
        self._cpu = cpu_times()
        now = self.run_id or new_run_id(datetime.now(UTC))
        self._recorder = Recorder(self.results, now, self._environment(now))
        self.folder = folder = self._recorder.folder.path
        self.say(f"kept in {folder}")
        try:
            self._keep_inputs()
            if self.carried is not None:
                copied = self.carried.copy_to(self._recorder)
                self.measured = len(self.carried.records)
                self.say(f"run {self.carried.run.environment.run} measured {copied}: carried over")
            for before, step in zip([None, *self.steps], self.steps, strict=False):
                if before is None or before.place != step.place:
                    turn = f", baseline {step.turn}" if step.turn else ""
                    self.say(f"block {step.block}{turn}: {step.variant}")
                self._measure(step)
            self._current = ""
        finally:
            with contextlib.ExitStack() as stack:
                steal = steal_percent(self._cpu, cpu_times())
                stack.callback(self._recorder.close, steal, self._current, afterwards=self._afterwards)
                for held in self._held.values():
                    stack.callback(held.close)
                stack.callback(self._close_session)
        return folder

    def foreword(self) -> tuple[str, ...]:
        """Return the words before anything starts: how long it takes, what will be gaps."""
        return self.prepared.budget_words(self.steps), *self.prepared.gap_words(self.steps)

    def _environment(self, run: str) -> EnvironmentRecord:
        prepared, plan = self.prepared, self.prepared.plan
        # the baseline's plan: those of the others are with their measurements
        return environment_record(
            plan,
            run,
            simulated=any(each.testbed.kind == "simulated" for each in prepared.plans.values()),
            clock_speed=plan.clock_speed,
            study=prepared.study.study,
            suite=f"study {prepared.study.study}",
            description=prepared.study.title,
            fingerprints=prepared.identity(),
            extra={
                REPEATS: prepared.study.repeats,
                **({"resumed_from": self.carried.run.environment.run, SESSIONS: self._known} if self.carried else {}),
            },
        )

    def _keep_inputs(self) -> None:
        for plan in {self.prepared.session_key(name): plan for name, plan in self.prepared.plans.items()}.values():
            self._recorder.keep_inputs(plan)
        path = self.prepared.path
        layer = "variables" if path.parent == self.prepared.project.studies.own else "packaged"
        self._recorder.keep_file(f"{layer}/studies/{path.name}", path)

    def _measure(self, step: Step) -> None:
        """Set the variant of *step* up and measure it; where that fails, it is a gap."""
        self._current, started = str(step), time.time()
        number = self._recorder.number
        if gap := self.prepared.gaps.get((step.variant, step.row)) or self._away.get(step.place):
            self._keep(step, Measured(None, gap.reason, excused=gap.excused), started, 0)
            return
        try:
            session = self._set_up(step)
            self._failures = 0
            measured = measure_row(session, self.prepared.study, step, self._recorder)
        except (SentenceError, OtherTestbed):
            raise
        except BREAKDOWN_ERRORS as error:
            measured = Measured(None, in_words(error))
            if self._session is None and self.prepared.study.variants[step.variant].testbed is not None:
                # as a program that is not installed: the other variants need it not
                self._away[step.place] = gap = Gap(f"{NOT_HERE}: {in_words(error)}")
                measured = Measured(None, gap.reason, excused=True)
            elif self._session is None:
                self._count_failure(error)
        if measured.value is None:
            # whatever is wrong with it: the next measurement has a new session
            try:
                self._close_session()
            except TestbedError as error:
                self.say(f"  {error}")
        self._keep(step, measured, started, self._recorder.number if self._recorder.number > number else 0)

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
                platform=study.platform_of(step.variant),
                software=plan.software_name if plan else study.variants[step.variant].software or "",
                sentence=words_of(study, step.row, step.variant),
                unit=unit,
                requirement=number,
                started=started,
                ended=time.time(),
                **asdict(step),
                **asdict(found),
            )
        )
        self.measured += found.value is not None
        sign = "≥ " if found.figures.get(AT_LEAST) else ""
        words = f"no value: {found.reason}" if found.value is None else f"{sign}{found.value:.5g} {unit}"
        self.say(f"  {step.row}: {words}")

    # -- sessions ------------------------------------------------------------------------------------------------------

    def _set_up(self, step: Step) -> Session:
        """The session of a variant, opened if it is not, with its commands run. Raises TestbedError."""
        variant = step.variant
        key = self.prepared.session_key(variant)
        if self._session is None or self._key != key:
            self._close_session()
            self._session, self._key = self._open(step), key
        session = self._session
        if self._applied != variant:
            self._withdraw(session)
            self._applied = variant
            if commands := self.prepared.study.variants[variant].commands:
                session.router.begin_changes()
                session.traffic.forget()  # it may forward other frames now
                session.router.driver.apply(commands)
        return session

    def _withdraw(self, session: Session) -> None:
        if self._applied and self.prepared.study.variants[self._applied].commands:
            if kept := session.router.driver.withdraw():
                self.say(f"  {kept}")
                self._afterwards.append(f"after '{self._applied}': {kept}")
            session.traffic.forget()
        self._applied = ""

    def _open(self, step: Step) -> Session:
        bypass = self.prepared.study.bypass
        plan = self.prepared.plan_of(step)
        session = Session.start(plan, bypass=bypass, held=self._testbed_of(plan), say=self.say)
        try:
            session.generator.connect()
            if not bypass:
                session.router.connect()
            self._recorder.mark_simulated(session.simulation_signs)
            if not bypass:
                if undone := session.router.undo_leftover():
                    self.say(f"  {undone}")
                session.router.configure()
                session.traffic.check_reachability()
            self._note(session)
        except BaseException:
            self._close(session)
            raise
        return session

    def _testbed_of(self, plan: Plan) -> HeldTestbed:
        """The testbed of *plan*, which is had until the run ends: its variants are compared on one that nobody changed.

        Raises TestbedError.
        """
        name = plan.testbed.testbed
        if name not in self._held:
            self._held[name] = held = HeldTestbed.take(plan.testbed, self.say)
            recorder = self._recorder
            if held.lab and LABGRID not in recorder.environment.extra:
                recorder.amend({LABGRID: held.lab.record()})
        return self._held[name]

    def _note(self, session: Session) -> None:
        """Keep versions and configuration: of the first session as a run's, of each in the list of them.

        Raises OtherTestbed where an earlier one of the same, or the run that is gone on with, had other versions.
        """
        plan = session.plan
        bypass = self.prepared.study.bypass
        name = f"testbed {plan.testbed.testbed}" if bypass else f"{plan.platform.platform}, {plan.software_name}"
        versions = session.versions()
        before, now = (
            {key: value for key, value in known.items() if key not in _STATES}
            for known in (self._known.get(name, {}).get("versions", versions), versions)
        )
        if apart := differences(before, now):
            raise OtherTestbed(
                f"{name} is not what was measured before: {'; '.join(apart)}; run the study again, without --resume"
            )
        if name in self._noted:
            return
        configuration = RouterSetUp() if bypass else session.router.configuration()
        if not self._noted:
            self._recorder.keep_parts(session, versions, configuration)
        self._noted.add(name)
        self._known[name] = {"versions": versions, "configuration": asdict(configuration)}
        self._recorder.amend({SESSIONS: self._known})

    def _close(self, session: Session) -> None:
        try:
            session.close()
        finally:
            self._afterwards += session.router.afterwards

    def _close_session(self) -> None:
        session, self._session, self._applied, self._key = self._session, None, "", ()
        if session is not None:
            self._close(session)
            self._recorder.folder.add_telemetry(0, "logs", session.testbed.logs)


def study_run(
    project: Project,
    name: str,
    testbed: str | None,
    goal: str,
    results: Path,
    repeats: int | None = None,
    resume: str | None = None,
    secrets: Secrets = ENVIRONMENT,
) -> StudyRun:
    """Return the run of study *name*, read and checked. *resume*: the run in *results* that it goes on with.

    *repeats*: None for those of that run, or of the file. Raises ConfigError, TestbedError.
    """
    resumed = find_one_run(resume, results) if resume else None
    repeats = repeats or (study_of(read_run(resumed)).repeats if resumed else None)
    prepared = prepare_study(project, name, testbed, goal, repeats, secrets)
    return StudyRun(prepared, results, Carried.of(resumed, prepared) if resumed else None)
