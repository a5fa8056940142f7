"""Prepares and runs a study: a plan for each variant, a session for each software, every measurement kept at once.

A run that goes on with an interrupted one copies what that measured with its trials, and does not repeat it. Nothing
else may differ: who looks at figures and then chooses other blocks, tolerances or published figures finds differences
that are none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from ..core.deciding import Budget
from ..core.router_facts import RouterSetUp
from ..core.sentence import parse_traffic
from ..errors import BREAKDOWN_ERRORS, ConfigError, SentenceError, TestbedError, in_words
from ..evidence.recorder import Recorder, code_identity, environment_record, host_facts
from ..evidence.records import EnvironmentRecord, MeasurementRecord
from ..evidence.resume import differences, fingerprints
from ..evidence.run import RecordedRun, find_one_run, new_run_id, read_run
from ..project import Project
from ..session.plan import Plan
from ..session.session import Session
from ..system.cpu_clock import cpu_times, steal_percent
from ..system.login import ENVIRONMENT, Secrets
from ..testbed.lab import LABGRID
from ..testbed.opening import HeldTestbed
from ..testbed.settings import HardwareSettings, SimulatedSettings
from ..testbed.waiting_time import WaitProgress
from ..units import counted, duration_text
from .cpu_time import RAMP, SPARE
from .measuring import RAMP_EDGE, Measured, check_router, check_row, goal_of_measurement, measure_row
from .results import REPEATS, UNCHECKED, grouped, study_of
from .study import (
    AT_LEAST,
    RAMP_STEPS,
    Step,
    Study,
    check_study,
    measured_of,
    placed,
    steps_of,
    words_of,
)

SESSION_SECONDS = {"simulated": 3.0, "netns": 5.0, "hardware": 15.0}
"""Real seconds to open and close a testbed of each kind, about."""

CODE = "code of Lineproof"
"""Key of its sum in the fingerprints."""

NOT_HERE = "not here"
"""How the reason begins for a variant whose own testbed is not here, or cannot be opened."""

SEARCH_TRIALS = 40
"""Trials of a search, about."""

READINGS_SECONDS = 0.2
"""Real seconds of a measurement beside its trials, about: streams, and readings of the router."""


@dataclass(frozen=True)
class PreparedStudy:
    """A study with everything that it needs, read and checked. ``plans``: of each variant that is here, by its name.

    ``gaps``: what need not be tried, by variant and row. Variants that are not here have a gap in each row.
    """

    project: Project
    study: Study
    path: Path
    plans: Mapping[str, Plan]
    gaps: Mapping[tuple[str, str], Measured] = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        """Return that of the baseline, or of the first variant: the goal is that of all, the testbed of most."""
        return self.plans.get(self.study.baseline or "") or next(iter(self.plans.values()))

    def session_key(self, variant: str) -> tuple[object, ...]:
        """Variants with the same share a session, one after the other; a simulated router is made for its commands."""
        plan = self.plans[variant]
        setups = plan.setups if isinstance(plan.testbed, SimulatedSettings) else ()
        box = plan.platform.platform, plan.software_name, plan.software.rx_queues
        return plan.testbed.testbed, *box, repr(setups)

    def made_by_hand(self, variant: str) -> tuple[str, ...]:
        """Return what a person makes a router of hardware for *variant*, in words: what takes longest to change first.

        Empty where nobody installs and starts it. The rest is done by command: a software's tuning, and the variant's
        commands.
        """
        plan, own = self.plans.get(variant), self.study.variants[variant]
        if plan is None or self.study.bypass or not isinstance(plan.testbed, HardwareSettings):
            return ()
        software = plan.software
        queues = 0 if software.tuning.queues else software.rx_queues or 0
        return (
            f"testbed '{plan.testbed.testbed}', {plan.platform.platform}",
            own.by_hand,
            f"{software.shell} {software.version}",
            software.about,
            f"interfaces {', '.join(software.interfaces)}",
            f"{counted(queues, 'receive queue')} of each port" if queues else "",
        )

    def steps_by_hand(self, steps: Sequence[Step]) -> list[str]:
        """Return what a person makes the router on hardware before *steps* and between them: a line for each."""
        made = [own for own in dict.fromkeys(self.made_by_hand(step.variant) for step in steps) if own]
        return [f"by hand, {place} of {len(made)}: {', '.join(filter(None, own))}" for place, own in enumerate(made, 1)]

    @property
    def steps(self) -> list[Step]:
        """All measurements in their order: the study's, and on hardware in the fewest steps by hand.

        All blocks of what a person has made are measured before the next is made.
        """
        steps = steps_of(self.study)
        made = {variant: self.made_by_hand(variant) for variant in self.study.variants}
        parts = {step.variant: [made[step.variant][:depth] for depth in range(7)] for step in steps}
        order = list(dict.fromkeys(part for own in parts.values() for part in own))
        return sorted(steps, key=lambda step: [order.index(part) for part in parts[step.variant]])

    def plan_of(self, step: Step) -> Plan:
        """The plan for a session: on a simulated testbed each has noise of its own, the same in each run."""
        plan = self.plans[step.variant]
        if not isinstance(plan.testbed, SimulatedSettings):
            return plan
        own = zlib.crc32("/".join(map(str, step.place)).encode())
        return replace(plan, testbed=plan.testbed.model_copy(update={"seed": plan.testbed.seed + own}))

    def identity(self) -> dict[str, str]:
        """Return all that must be the same for a run to be gone on with, by what people call it.

        The study's own part (what judges figures is a part of it), the files of its plans (SHA-256), and the machine.
        """
        no_figure = {"title": True, "about": True, "source": True, "parameter": True, "repeats": True, "tables": True}
        part = self.study.model_dump(mode="json", exclude={**no_figure, "published": {"explained"}})
        plan, host = self.plan, host_facts()
        known = {
            "testbed": plan.testbed.testbed,
            "goal": plan.goal.goal,
            "clock speed": f"{plan.clock_speed:g}",
            "number of blocks": str(self.study.repeats),
            "study file": hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest(),
            CODE: " ".join(map(str, code_identity().values())),
            # by which a figure would be another machine's
            "host": str(host["name"]),
            "CPU": str(host["cpu"]),
            "number of CPUs": str(host["cpus"]),
            "kernel": str(host["kernel"]),
        }
        for plan in self.plans.values():
            known |= fingerprints(plan)
        return known

    def seconds(self, steps: Sequence[Step]) -> float:
        """Return how long *steps* take, about: real seconds, with the sessions that they open."""
        tried = [step for step in steps if (step.variant, step.row) not in self.gaps]
        whole = sum((self._budget(step.variant, step.row) for step in tried), Budget())
        opened = (
            key for key, _ in groupby(self.session_key(step.variant) for step in steps if step.variant in self.plans)
        )
        kinds = {plan.testbed.testbed: plan.testbed.kind for plan in self.plans.values()}
        sessions = sum(SESSION_SECONDS[kinds[str(testbed)]] for testbed, *_ in opened)
        return whole.wall_seconds(self.plan.clock_speed) + len(steps) * READINGS_SECONDS + sessions

    def _budget(self, variant: str, row: str) -> Budget:
        """Return how long one measurement takes."""
        plan, measure = self.plans[variant], self.study.measures[row]
        warm_up, trial, steps = plan.warm_up, plan.goal.final_trial_duration, measure.steps or RAMP_STEPS
        known = {
            "ramp": (2 * RAMP_EDGE + steps * (self.study.seconds or 1.0), steps + 4),
            "throughput": (warm_up + SEARCH_TRIALS * trial, SEARCH_TRIALS),
            "sends": (warm_up + trial, 2),
            "cpu_time": (RAMP + trial + SPARE, 1),
        }
        if measure.kind not in known:
            return plan.budget([measured_of(self.study, row, variant, plan.catalogue)])
        seconds, trials = known[measure.kind]
        return Budget(seconds, seconds, trials)

    def budget_words(self, steps: Sequence[Step]) -> str:
        """How much is measured, and how long it takes, in words."""
        testbeds = dict.fromkeys(f"'{plan.testbed.testbed}'" for plan in self.plans.values())
        return (
            f"{counted(len(steps), 'measurement')} of {counted(len(self.study.measures), 'row')} on"
            f" {counted(len(self.study.variants), 'variant')} in {counted(self.study.repeats, 'block')} on testbed"
            f" {', '.join(testbeds)}: about {duration_text(self.seconds(steps))}"
        )

    def gap_words(self, steps: Sequence[Step]) -> list[str]:
        """Return the gaps of *steps* that will be, and why: a line for each reason, its variants, how many rows."""
        places = {(step.variant, step.row) for step in steps}
        reasons = grouped((gap.reason, place[0]) for place, gap in self.gaps.items() if place in places)
        listed = {
            reason: ", ".join(f"{name} ({counted(rows, 'row')})" for name, rows in Counter(variants).items())
            for reason, variants in reasons.items()
        }
        return [f"not measured: {variants}: {reason}" for reason, variants in listed.items()]


def prepare_study(
    project: Project,
    name: str,
    testbed: str | None,
    goal: str,
    repeats: int | None = None,
    secrets: Secrets = ENVIRONMENT,
) -> PreparedStudy:
    """Read and check everything of the study *name*. *repeats*: in place of the file's. Starts nothing.

    *testbed*: None for the study's own, or the simulated one. Raises ConfigError with file and remedy.
    """
    study = check_study(project, name)
    if repeats is not None:
        study = study.model_copy(update={"repeats": repeats})
    path = project.studies / f"{name}.yaml"
    testbed = testbed or study.testbed or "simulated"
    gaps: dict[tuple[str, str], Measured] = {}
    plans: dict[str, Plan] = {}
    for variant, own in study.variants.items():
        rows = study.rows_of(variant)
        if own.testbed is not None and not (project.testbeds / f"{own.testbed}.yaml").is_file():
            words = f"{NOT_HERE}: no file describes a testbed '{own.testbed}' (variables/testbeds)"
            gaps |= {(variant, row): Measured(None, words, excused=True) for row in rows}
            continue
        plans[variant] = plan = replace(_plan(project, study, variant, testbed, goal), secrets=secrets)
        for row in rows:
            with placed(path, f"row '{row}' of variant '{variant}': "):
                check_row(plan, study, row, variant)
            if gap := _gap(plan, study, row, variant):
                gaps[variant, row] = gap
    if all((variant, row) in gaps for variant in study.variants for row in study.rows_of(variant)):
        reasons = dict.fromkeys(gap.reason for gap in gaps.values())
        raise ConfigError(f"nothing can be measured: {'; '.join(reasons)}", path)
    return PreparedStudy(project, study, path, plans, gaps)


def _gap(plan: Plan, study: Study, row: str, variant: str) -> Measured | None:
    """Return a gap if nobody has to try *row* of *variant*.

    A simulated router would be the same with its commands as without them, or the generator of a study that bypasses
    the router cannot send its traffic.
    """
    own = study.variants[variant]
    if own.commands and "configured" not in own.model_fields_set and isinstance(plan.testbed, SimulatedSettings):
        words = (
            f"testbed '{plan.testbed.testbed}' is simulated, and the variant does not say what its commands make of the"
            " router; add 'configured', or measure it on another testbed"
        )
        return Measured(None, words)
    try:
        if study.bypass:
            plan.check_generator(parse_traffic(study.traffic_of(row, variant), plan.catalogue))
    except SentenceError as error:
        return Measured(None, str(error), excused=True)
    return None


def _plan(project: Project, study: Study, variant: str, testbed: str, goal: str) -> Plan:
    own = study.variants[variant]
    name = own.testbed or testbed
    other = f"--testbed {study.testbed}" if study.testbed not in (None, name) else "another testbed"
    instead = f"run the study on {other}"
    plan = Plan.read(project, study.platform_of(variant), own.software, name, goal, instead=instead)
    software, settings = plan.software, plan.testbed
    if own.rx_queues is not None:
        software = software.model_copy(update={"rx_queues": own.rx_queues})
        if isinstance(settings, SimulatedSettings):
            settings = settings.model_copy(update={"rx_queues": own.rx_queues})
    setups = (own.setup,) if own.model_fields_set & {"commands", "configured"} else ()
    goal_once = goal_of_measurement(plan.goal, study.seconds)
    return replace(plan, goal=goal_once, software=software, testbed=settings, setups=setups)


SESSIONS = "sessions"
"""Key of an environment's extra data: by platform and software, versions and configuration of the router."""

_STATES = ("generator.leftover", "generator.force", "generator.promiscuous", "router.rx placement")
"""Keys that stand among the versions, and may differ between two sessions of one run."""

MOST_FAILURES = 3
"""Measurements in a row that could not be begun end a study: the testbed does not answer."""


BETWEEN_LOOKS = 10.0
"""Seconds between two looks at a router that a person works on."""


class OtherRouter(TestbedError):
    """The router is not the one that a variant is measured on."""


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
        if prepared.study.baselines and len(run.measured) >= len(prepared.steps):
            raise TestbedError(
                f"run '{then.run}' is complete, and its differences were seen: what is measured after that finds"
                " differences that are none; run the study again, without --resume"
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
        self.steps = [step for step in prepared.steps if step not in done]
        self.wait = 3600.0
        """Seconds that a step by hand may take."""
        self._session: Session | None = None
        self._key: tuple[object, ...] = ()
        self._made: tuple[object, ...] | None = None
        self._applied = self._current = ""
        extra = carried.run.environment.extra if carried else {}
        self._known: dict[str, Any] = dict(extra.get(SESSIONS, {}))
        self._unchecked: dict[str, Any] = dict(extra.get(UNCHECKED, {}))
        self._held: dict[str, HeldTestbed] = {}
        self._noted: set[str] = set()
        self._away: dict[tuple[int, str, str], Measured] = {}
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
        """Return the words before anything starts: how long it takes, what will be gaps, what is done by hand."""
        prepared, steps = self.prepared, self.steps
        return prepared.budget_words(steps), *prepared.gap_words(steps), *prepared.steps_by_hand(steps)

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
                **({"resumed_from": self.carried.run.environment.run} if self.carried else {}),
                **{REPEATS: prepared.study.repeats, SESSIONS: self._known, UNCHECKED: self._unchecked},
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
        self._current, started, number = str(step), time.time(), self._recorder.number
        measured = self.prepared.gaps.get((step.variant, step.row)) or self._away.get(step.place)
        if measured is None:
            try:
                session = self._set_up(step)
                self._failures = 0
                measured = measure_row(session, self.prepared.study, step, self._recorder)
            except (SentenceError, OtherTestbed, OtherRouter):
                raise
            except BREAKDOWN_ERRORS as error:
                is_open = self._session is not None
                measured = Measured(None, in_words(error)) if is_open else self._not_opened(step, error)
            if measured.value is None:
                # whatever is wrong with it: the next measurement has a new session
                try:
                    self._close_session()
                except TestbedError as error:
                    self.say(f"  {error}")
        self._keep(step, measured, started, self._recorder.number if self._recorder.number > number else 0)

    def _not_opened(self, step: Step, error: Exception) -> Measured:
        """Return the gap of a session that could not be opened. Raises TestbedError if that is the testbed of most."""
        if self.prepared.study.variants[step.variant].testbed is not None:
            # as a program that is not installed: the other variants need it not
            self._away[step.place] = Measured(None, f"{NOT_HERE}: {in_words(error)}", excused=True)
            return self._away[step.place]
        self._failures += 1
        if self.measured and self._failures < MOST_FAILURES:
            return Measured(None, in_words(error))
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
        """Return the session of a variant, set up and checked; where a person has to make the router, wait for that.

        That is done once the router has restarted, and is what the variant says. Raises TestbedError.
        """
        made, before = self.prepared.made_by_hand(step.variant), self._made
        if not made or before in (None, made):
            session, self._made = self._session_of(step), made or before
            return session
        self._close_session()
        needed = ", ".join(filter(None, made))
        self.say(f"BY HAND: make the router {needed}; restart it once it is so")
        progress = WaitProgress("the router", self.wait, self.say)
        while True:
            try:
                session, self._made = self._session_of(step, progress), made
                return session
            except TestbedError as error:
                self._close_session()
                if progress.is_over:
                    waited = duration_text(self.wait)
                    raise OtherRouter(f"within {waited} the router was not made {needed}: {error}") from None
                progress.note(str(error))
                time.sleep(BETWEEN_LOOKS)

    def _session_of(self, step: Step, progress: WaitProgress | None = None) -> Session:
        """Return the session of a variant, opened if it is not, with its commands run. *progress*: as of :meth:`_open`.

        Raises OtherRouter if the router is not what the variant says, else TestbedError.
        """
        variant, key, session = step.variant, self.prepared.session_key(step.variant), self._session
        if session is None or self._key != key or session.router.restarts:
            self._close_session()
            session = self._open(step, progress)
        if self._applied != variant:
            self._withdraw(session)
            self._applied = variant
            if commands := self.prepared.study.variants[variant].commands:
                session.router.begin_changes()
                session.traffic.forget()  # it may forward other frames now
                session.router.driver.apply(commands)
            if not self.prepared.study.bypass:
                self._check_router(session, variant)
        return session

    def _check_router(self, session: Session, variant: str) -> None:
        """Raise OtherRouter if the router is not that of *variant*; keep what could not be checked."""
        differs, unchecked = check_router(session, self.prepared.study, variant)
        if differs:
            raise OtherRouter(f"the router is not that of variant '{variant}': {'; '.join(differs)}")
        if unchecked and self._unchecked.get(variant) != unchecked:
            self._unchecked[variant] = unchecked
            self._recorder.amend({UNCHECKED: self._unchecked})

    def _withdraw(self, session: Session) -> None:
        if self._applied and self.prepared.study.variants[self._applied].commands:
            if kept := session.router.driver.withdraw():
                self.say(f"  {kept}")
                self._afterwards.append(f"after '{self._applied}': {kept}")
            session.traffic.forget()
        self._applied = ""

    def _open(self, step: Step, progress: WaitProgress | None = None) -> Session:
        """Open the session of *step*. *progress*: of waiting for a router that has to restart meanwhile."""
        bypass, plan = self.prepared.study.bypass, self.prepared.plan_of(step)
        session = Session.start(plan, bypass=bypass, held=self._testbed_of(plan), say=self.say)
        self._session, self._key = session, self.prepared.session_key(step.variant)
        try:
            if not bypass:
                session.router.connect()
            if progress is not None and (uptime := session.router.watch.read().uptime or 0.0) > progress.waited:
                raise OtherRouter(f"it is up for {uptime:.0f} s, and has not restarted since")
            session.generator.connect()
            self._recorder.mark_simulated(session.simulation_signs)
            if not bypass:
                if undone := session.router.undo_leftover():
                    self.say(f"  {undone}")
                session.router.configure()
                session.traffic.check_reachability()
            self._note(session)
        except BaseException:
            self._close_session()
            raise
        return session

    def _testbed_of(self, plan: Plan) -> HeldTestbed:
        """The testbed of *plan*, which is had until the run ends: its variants are compared on one that nobody changed.

        Raises TestbedError.
        """
        name = plan.testbed.testbed
        if name not in self._held:
            self._held[name] = held = HeldTestbed(plan.testbed, self.say)
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

    def _close_session(self) -> None:
        session, self._session, self._applied, self._key = self._session, None, "", ()
        if session is not None:
            try:
                session.close()
            finally:
                self._afterwards += session.router.afterwards
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
