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
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from ..core.router_facts import RouterFacts, RouterSetUp
from ..core.sentence import parse_traffic
from ..errors import BREAKDOWN_ERRORS, ConfigError, SentenceError, TestbedError, in_words
from ..evidence.recorder import Recorder, code_identity, environment_record, host_facts
from ..evidence.records import EnvironmentRecord, MeasurementRecord
from ..evidence.resume import differences, fingerprints
from ..evidence.run import RecordedRun, new_run_id
from ..project import Project
from ..session.plan import Plan
from ..session.session import Session
from ..system.cpu_clock import cpu_times, steal_percent
from ..system.login import ENVIRONMENT, Secrets
from ..testbed.lab import LABGRID
from ..testbed.opening import HeldTestbed
from ..testbed.settings import HardwareSettings, SimulatedSettings
from ..testbed.waiting_time import Say, WaitProgress, silent
from ..units import counted, duration_text
from .measuring import Measured, check_router, check_row, goal_of_measurement, measure_row
from .results import PCIE, REPEATS, SESSIONS, UNCHECKED, grouped, study_of
from .study import AT_LEAST, RAMP_STEPS, Step, check_study, placed, steps_of

NOT_HERE = "not here"
"""How the reason begins for a variant whose own testbed is not here, or cannot be opened."""


class OtherRouter(TestbedError):
    """The router is not the one that a variant is measured on, or was measured on before."""


class StudyRun:
    """A run of the study *name* with all that it needs, read and checked. It starts nothing before :meth:`run`.

    *testbed*: None for the study's own, or the simulated one. *repeats*: None for those of *earlier*, or of the file.
    *earlier*: a run that this one goes on with; its gaps are tried again. *say* gets a line for all that happens.

    ``plans``: of each variant that is here, by its name. ``gaps``: what need not be tried, by variant and row: each row
    of a variant that is not here. ``steps``: what is left to measure.

    Raises ConfigError with file and remedy; TestbedError that names what is not as it was in *earlier*.
    """

    def __init__(
        self,
        project: Project,
        name: str,
        testbed: str | None = None,
        goal: str = "standard",
        repeats: int | None = None,
        earlier: RecordedRun | None = None,
        secrets: Secrets = ENVIRONMENT,
        say: Say = silent,
    ) -> None:
        self.project, self.earlier, self.say = project, earlier, say
        if earlier is not None and earlier.environment.study:
            repeats = repeats or study_of(earlier).repeats
        study = check_study(project, name)
        self.study = study if repeats is None else study.model_copy(update={"repeats": repeats})
        self.path = project.studies / f"{name}.yaml"
        self.plans: dict[str, Plan] = {}
        self.gaps: dict[tuple[str, str], Measured] = {}
        for variant in self.study.variants:
            self._prepare(variant, testbed or self.study.testbed or "simulated", goal, secrets)
        if all((variant, row) in self.gaps for variant in self.study.variants for row in self.study.rows_of(variant)):
            reasons = dict.fromkeys(gap.reason for gap in self.gaps.values())
            raise ConfigError(f"nothing can be measured: {'; '.join(reasons)}", self.path)
        self._kept: dict[Step, MeasurementRecord] = {}
        self._sessions: dict[str, Any] = {}
        self._unchecked: dict[str, Any] = {}
        if earlier is not None:
            self._go_on_with(earlier)
        self.steps = [step for step in self._order() if step not in self._kept]
        self._measured = len(self._kept)
        self._held: dict[str, HeldTestbed] = {}
        self._session: Session | None = None
        self._key: tuple[object, ...] = ()
        self._applied = ""
        """The variant whose commands the router has."""
        self._made: tuple[str, ...] = ()
        """The steps that a person has taken on the router."""
        self._failures = self._restarts = 0
        self._afterwards: list[str] = []

    def _prepare(self, variant: str, testbed: str, goal: str, secrets: Secrets) -> None:
        study, own, rows = self.study, self.study.variants[variant], self.study.rows_of(variant)
        if own.testbed is not None and not (self.project.testbeds / f"{own.testbed}.yaml").is_file():
            gap = Measured(None, f"{NOT_HERE}: no file describes a testbed '{own.testbed}'", excused=True)
            self.gaps |= dict.fromkeys(((variant, row) for row in rows), gap)
            return
        name = own.testbed or testbed
        other = f"--testbed {study.testbed}" if study.testbed not in (None, name) else "another testbed"
        instead = f"run the study on {other}"
        plan = Plan.read(self.project, study.platform_of(variant), own.software, name, goal, instead=instead)
        software, settings = plan.software, plan.testbed
        if own.rx_queues is not None:
            software = software.model_copy(update={"rx_queues": own.rx_queues})
            if isinstance(settings, SimulatedSettings):
                settings = settings.model_copy(update={"rx_queues": own.rx_queues})
        self.plans[variant] = plan = replace(
            plan,
            goal=goal_of_measurement(plan.goal, study.seconds),
            software=software,
            testbed=settings,
            setups=(own.setup,) if own.model_fields_set & {"commands", "configured"} else (),
            secrets=secrets,
        )
        is_unknown = own.commands and "configured" not in own.model_fields_set
        for row in rows:
            with placed(self.path, f"row '{row}' of variant '{variant}': "):
                check_row(plan, study, row, variant)
            if is_unknown and isinstance(settings, SimulatedSettings):
                # it would be the same with its commands as without them
                self.gaps[variant, row] = Measured(
                    None,
                    f"testbed '{name}' is simulated, and the variant does not say what its commands make of the router;"
                    " add 'configured', or measure it on another testbed",
                )
            elif study.bypass:
                try:
                    plan.check_generator(parse_traffic(study.traffic_of(row, variant), plan.catalogue))
                except SentenceError as error:
                    self.gaps[variant, row] = Measured(None, str(error), excused=True)

    @property
    def plan(self) -> Plan:
        """Return that of the baseline, or of the first variant: the goal is that of all, the testbed of most."""
        return self.plans.get(self.study.baseline or "") or next(iter(self.plans.values()))

    def made_by_hand(self, variant: str) -> tuple[str, ...]:
        """Return the steps by which a person makes a router that *variant*, the longest one first.

        Empty where nobody installs and starts it. The rest is done by command: a software's tuning, and the variant's
        commands.
        """
        plan = self.plans.get(variant)
        if plan is None or self.study.bypass or not isinstance(plan.testbed, HardwareSettings):
            return ()
        software = plan.software
        queues = 0 if software.tuning.queues else software.rx_queues or 0
        return (
            f"testbed '{plan.testbed.testbed}', {plan.platform.platform}",
            self.study.variants[variant].by_hand,
            f"{software.shell} {software.version}",
            software.about,
            f"interfaces {', '.join(software.interfaces)}",
            f"{counted(queues, 'receive queue')} of each port" if queues else "",
        )

    def _order(self) -> list[Step]:
        """Return all measurements in their order: the study's, and on hardware in the fewest steps by hand.

        All blocks of what a person has made are measured before the next is made.
        """
        steps = steps_of(self.study)
        made = {variant: self.made_by_hand(variant) for variant in self.study.variants}
        parts = {step.variant: [made[step.variant][:depth] for depth in range(7)] for step in steps}
        order = list(dict.fromkeys(part for own in parts.values() for part in own))
        return sorted(steps, key=lambda step: [order.index(part) for part in parts[step.variant]])

    def foreword(self) -> Iterator[str]:
        """Yield the words before anything starts: how much, how long, what will be gaps, what is done by hand."""
        study, testbeds = self.study, dict.fromkeys(f"'{plan.testbed.testbed}'" for plan in self.plans.values())
        yield (
            f"{counted(len(self.steps), 'measurement')} of {counted(len(study.measures), 'row')} on"
            f" {counted(len(study.variants), 'variant')} in {counted(study.repeats, 'block')} on testbed"
            f" {', '.join(testbeds)}: about {duration_text(self._seconds())}"
        )
        for reason, variants in grouped((gap.reason, variant) for (variant, _), gap in self.gaps.items()).items():
            yield f"not measured: {', '.join(dict.fromkeys(variants))}: {reason}"
        made = [own for own in dict.fromkeys(self.made_by_hand(step.variant) for step in self.steps) if own]
        for place, own in enumerate(made, 1):
            yield f"by hand, {place} of {len(made)}: {', '.join(filter(None, own))}"

    def _seconds(self) -> float:
        """Return how long the steps take, about: real seconds, with the sessions that they open."""
        seconds, last = 0.0, None
        for step in self.steps:
            if (step.variant, step.row) in self.gaps:
                continue
            plan, measure = self.plans[step.variant], self.study.measures[step.row]
            trial = plan.goal.final_trial_duration
            trials = {"ramp": (measure.steps or RAMP_STEPS) + 2, "throughput": 40}.get(measure.kind, 2)
            # beside traffic: a pause before each trial, readings of the router, and a session to open and close
            seconds += trials * (trial / plan.clock_speed + 0.1) + 0.2
            if last != (last := self._session_key(step.variant)):
                seconds += {"simulated": 3.0, "netns": 5.0}.get(plan.testbed.kind, 15.0)
        return seconds

    # -- an earlier run ------------------------------------------------------------------------------------------------

    def _identity(self) -> dict[str, str]:
        """Return all that must be the same for a run to be gone on with, by what people call it.

        The study's own part (what judges figures is a part of it), the files of its plans (SHA-256), and the machine.
        """
        no_figure = dict.fromkeys(("title", "about", "source", "parameter", "repeats", "tables"), True)
        part = self.study.model_dump(mode="json", exclude={**no_figure, "published": {"explained"}})
        host = host_facts()
        return {
            f"study {self.study.study}": hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest(),
            "number of blocks": str(self.study.repeats),
            "code of Lineproof": " ".join(map(str, code_identity().values())),
            # by which a figure would be another machine's
            **{f"host's {name}": str(host[name]) for name in ("name", "cpu", "cpus", "kernel")},
            **{name: value for plan in self.plans.values() for name, value in fingerprints(plan).items()},
        }

    def _go_on_with(self, earlier: RecordedRun) -> None:
        then = earlier.environment
        if apart := differences(then.fingerprints, self._identity()):
            reason = f"cannot be resumed: {'; '.join(apart)}; go on with its own options, or run the study again"
            raise TestbedError(f"run '{then.run}' {reason}")
        if self.study.baselines and len(earlier.measured) >= len(steps_of(self.study)):
            raise TestbedError(
                f"run '{then.run}' is complete, and its differences were seen: what is measured after that finds"
                " differences that are none; run the study again, without --resume"
            )
        self._sessions, self._unchecked = dict(then.extra[SESSIONS]), dict(then.extra[UNCHECKED])
        for record in earlier.measured:
            if record.value is not None:
                self._kept[Step(record.block, record.turn, record.variant, record.row)] = record

    def _carry(self, earlier: RecordedRun) -> None:
        """Copy the values of *earlier* with their trials and inputs; each names the run that measured it."""
        folder, origin = self._recorder.folder, earlier.environment.run
        for named in earlier.inputs.items():
            folder.add_input(*named)
        for record in self._kept.values():
            number = folder.next_requirement() if record.requirement else 0
            for trial in earlier.trials_by_number.get(record.requirement, ()):
                folder.add(replace(trial, run=folder.run_id, requirement=number))
            carried_from = record.carried_from or origin
            folder.add(replace(record, run=folder.run_id, requirement=number, carried_from=carried_from))
        self.say(f"run {origin} measured {counted(len(self._kept), 'measurement')}: carried over")

    # -- measuring -----------------------------------------------------------------------------------------------------

    def run(self, results: Path, run_id: str = "", wait: float = 3600.0) -> Path:
        """Measure what is left in a run's folder of *results*, and return it. *wait*: most s of a step by hand.

        *run_id*: of the folder; "": a new one. Raises TestbedError, after what was measured is kept.
        """
        for line in self.foreword():
            self.say(line)
        cpu, run_id, self._wait, step = cpu_times(), run_id or new_run_id(datetime.now(UTC)), wait, None
        self._recorder = Recorder(results, run_id, self._environment(run_id))
        folder = self._recorder.folder.path
        self.say(f"kept in {folder}")
        try:
            for plan in {self._session_key(name): plan for name, plan in self.plans.items()}.values():
                self._recorder.keep_inputs(plan)
            layer = "variables" if self.path.parent == self.project.studies.own else "packaged"
            self._recorder.keep_file(f"{layer}/studies/{self.path.name}", self.path)
            if self.earlier is not None:
                self._carry(self.earlier)
            for (block, turn, variant), steps in groupby(self.steps, key=lambda step: step.place):
                self.say(f"block {block}{f', baseline {turn}' if turn else ''}: {variant}")
                for step in steps:
                    self._measure(step)
            step = None
        finally:
            if step is not None and self._measured:
                self.say(f"what was measured is in {folder}; go on with --resume {folder.name}")
            with contextlib.ExitStack() as stack:
                steal, current = steal_percent(cpu, cpu_times()), str(step or "")
                stack.callback(self._recorder.close, steal, current, afterwards=self._afterwards)
                for held in self._held.values():
                    stack.callback(held.close)
                stack.callback(self._close_session)
        return folder

    def _environment(self, run: str) -> EnvironmentRecord:
        study, plan = self.study, self.plan
        extra = {REPEATS: study.repeats, SESSIONS: self._sessions, UNCHECKED: self._unchecked}
        # the baseline's plan: those of the others are with their measurements
        return environment_record(
            plan,
            run,
            simulated=any(plan.testbed.kind == "simulated" for plan in self.plans.values()),
            clock_speed=plan.clock_speed,
            study=study.study,
            suite=f"study {study.study}",
            description=study.title,
            fingerprints=self._identity(),
            extra={**extra, "resumed_from": self.earlier.environment.run} if self.earlier else extra,
        )

    def _measure(self, step: Step) -> None:
        """Measure *step* on its variant, and keep the value, or why there is none."""
        study, plan, recorder = self.study, self.plans.get(step.variant), self._recorder
        started, before = time.time(), recorder.number
        measured = self.gaps.get((step.variant, step.row)) or self._tried(step)
        unit, is_value = study.unit_of(step.row), measured.value is not None
        recorder.folder.add(
            MeasurementRecord(
                run=recorder.folder.run_id,
                simulated=recorder.environment.simulated,
                study=study.study,
                platform=study.platform_of(step.variant),
                software=plan.software_name if plan else study.variants[step.variant].software or "",
                sentence=study.sentence_of(step.row, step.variant),
                unit=unit,
                requirement=recorder.number if recorder.number > before else 0,
                started=started,
                ended=time.time(),
                **asdict(step),
                **asdict(measured),
            )
        )
        self._measured += is_value
        sign = "≥ " if measured.figures.get(AT_LEAST) else ""
        self.say(
            f"  {step.row}: {f'{sign}{measured.value:.5g} {unit}' if is_value else f'no value: {measured.reason}'}"
        )

    def _tried(self, step: Step) -> Measured:
        """Return the result of *step*, or a gap. Raises TestbedError if nothing can be measured any more."""
        try:
            session = self._set_up(step)
            self._failures = 0
            measured = measure_row(session, self.study, step, self._recorder)
        except (SentenceError, OtherRouter):
            raise
        except BREAKDOWN_ERRORS as error:
            measured = Measured(None, in_words(error)) if self._session else self._not_opened(step, error)
        if measured.value is None:
            # whatever is wrong with it: the next measurement has a new session
            try:
                self._close_session()
            except TestbedError as error:
                self.say(f"  {error}")
        return measured

    def _not_opened(self, step: Step, error: Exception) -> Measured:
        """Return the gap of a session that could not be opened. Raises TestbedError on the testbed of most."""
        if self.study.variants[step.variant].testbed is not None:
            # as a program that is not installed: the other variants need it not
            gap = Measured(None, f"{NOT_HERE}: {in_words(error)}", excused=True)
            rows = dict.fromkeys(((step.variant, row) for row in self.study.rows_of(step.variant)), gap)
            self.gaps = {**rows, **self.gaps}
            return gap
        self._failures += 1
        # a testbed that does not answer thrice in a row will not
        if self._measured and self._failures < 3:
            return Measured(None, in_words(error))
        if isinstance(error, TestbedError):
            # as it is: an error that is its own cause is a circle, in which Robot's report of it does not end
            raise error
        raise TestbedError(in_words(error)) from error

    # -- sessions ------------------------------------------------------------------------------------------------------

    def _session_key(self, variant: str) -> tuple[object, ...]:
        """Return what variants have in common that share a session; a simulated router is made for its commands."""
        plan = self.plans[variant]
        setups = plan.setups if isinstance(plan.testbed, SimulatedSettings) else ()
        return plan.testbed.testbed, plan.platform.platform, plan.software_name, plan.software.rx_queues, repr(setups)

    def _set_up(self, step: Step) -> Session:
        """Return the session of a variant, set up and checked.

        Where a person has to make the router, wait for that: it is done once the router has restarted, and is what the
        variant says. Raises TestbedError.
        """
        made = self.made_by_hand(step.variant)
        if not made or self._made in ((), made):
            session, self._made = self._session_of(step), made or self._made
            return session
        self._close_session()
        needed, progress = ", ".join(filter(None, made)), WaitProgress("the router", self._wait, self.say)
        self.say(f"BY HAND: make the router {needed}; restart it once it is so")
        while True:
            try:
                session, self._made = self._session_of(step, progress), made
                return session
            except TestbedError as error:
                self._close_session()
                if progress.is_over:
                    waited = duration_text(self._wait)
                    raise OtherRouter(f"within {waited} the router was not made {needed}: {error}") from None
                progress.note(str(error))
                time.sleep(10.0)  # a person works on it

    def _session_of(self, step: Step, progress: WaitProgress | None = None) -> Session:
        """Return the session of a variant, opened if it is not, with its commands run.

        *progress*: as of :meth:`_open`. Raises OtherRouter if the router is not what the variant says, else
        TestbedError.
        """
        study, variant, session = self.study, step.variant, self._session
        if session is None or self._key != self._session_key(variant) or session.router.restarts != self._restarts:
            self._close_session()
            session = self._open(step, progress)
        if self._applied == variant:
            return session
        self._withdraw(session)
        self._applied = variant
        if commands := study.variants[variant].commands:
            session.router.begin_changes()
            session.router.driver.apply(commands)
            if self._restart(session):
                session.router.driver.apply(commands)  # what the restart took away
            session.traffic.forget()  # it may forward other frames now
        if not study.bypass:
            differs, unchecked = check_router(session, study, variant)
            if differs:
                raise OtherRouter(f"the router is not that of variant '{variant}': {'; '.join(differs)}")
            if unchecked and self._unchecked.get(variant) != unchecked:
                self._unchecked[variant] = unchecked
                self._recorder.amend({UNCHECKED: self._unchecked})
        return session

    def _withdraw(self, session: Session) -> None:
        """Undo what the last variant's commands did. Raises TestbedError."""
        if self._applied and self.study.variants[self._applied].commands:
            if left := session.router.driver.withdraw():
                self.say(f"  {left}")
                self._afterwards.append(f"after '{self._applied}': {left}")
            self._restart(session)
            session.traffic.forget()

    def _restart(self, session: Session) -> bool:
        """Restart the router where the commands of its variant ask for it; return whether they do.

        Raises TestbedError if it does not come back.
        """
        if not (command := self.study.variants[self._applied].restart) or session.simulated:
            return False
        self.say(f"  restarting the router: {command}")
        session.router.watch.read()  # to compare with
        if not session.router.restart(command, partial(session.router.configure, links_moved=True), self._wait):
            raise TestbedError(f"'{command}': the router was not back within {duration_text(self._wait)}")
        self._restarts = session.router.restarts
        return True

    def _open(self, step: Step, progress: WaitProgress | None) -> Session:
        """Open the session of *step*. *progress*: of waiting for a router that has to restart meanwhile.

        A simulated testbed has noise of its own in each place, the same in each run.
        """
        bypass, plan, recorder = self.study.bypass, self.plans[step.variant], self._recorder
        if isinstance(plan.testbed, SimulatedSettings):
            seed = plan.testbed.seed + zlib.crc32("/".join(map(str, step.place)).encode())
            plan = replace(plan, testbed=plan.testbed.model_copy(update={"seed": seed}))
        name = plan.testbed.testbed
        if name not in self._held:
            # until the run ends: its variants are compared on a testbed that nobody changed
            self._held[name] = held = HeldTestbed(plan.testbed, self.say)
            if held.lab and LABGRID not in recorder.environment.extra:
                recorder.amend({LABGRID: held.lab.record()})
        session = Session.start(plan, bypass=bypass, held=self._held[name], say=self.say)
        self._session, self._key, self._restarts = session, self._session_key(step.variant), 0
        try:
            if not bypass:
                session.router.connect()
            if progress is not None and (uptime := session.router.watch.read().uptime or 0.0) > progress.waited:
                raise OtherRouter(f"it is up for {uptime:.0f} s, and has not restarted since")
            session.generator.connect()
            recorder.mark_simulated(session.simulation_signs)
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

    def _note(self, session: Session) -> None:
        """Keep versions and configuration of the session.

        Of the first session they are the run's, of each platform and software in a list. Raises OtherRouter where they
        have other versions than before, in this run or the one that is gone on with.
        """
        bypass, plan, recorder = self.study.bypass, session.plan, self._recorder
        name = f"testbed {plan.testbed.testbed}" if bypass else f"{plan.platform.platform}, {plan.software_name}"
        versions, is_first = session.versions(), not recorder.environment.versions
        if (noted := self._sessions.get(name)) is not None:
            # what stands among the versions, and may differ between two sessions
            states = "generator.leftover", "generator.force", "generator.promiscuous", "router.rx placement"
            both = ({**known, **dict.fromkeys(states)} for known in (noted["versions"], versions))
            if apart := differences(*both):
                raise OtherRouter(f"{name} is not what was measured before: {'; '.join(apart)}; run the study again")
        if noted is None or is_first:
            configuration = RouterSetUp() if bypass else session.router.configuration()
            if is_first:
                recorder.keep_parts(session, versions, configuration)
            self._sessions[name] = {"versions": versions, "configuration": asdict(configuration)}
            self._sessions[name] |= pcie_links(plan, session.router.facts)
            recorder.amend({SESSIONS: self._sessions})

    def _close_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with contextlib.ExitStack() as stack:
                stack.callback(self._closed, session)
                stack.callback(session.close)
                if self._applied and self.study.variants[self._applied].restart:
                    self._withdraw(session)

    def _closed(self, session: Session) -> None:
        self._applied, self._key = "", ()
        self._afterwards += session.router.afterwards
        self._recorder.folder.add_telemetry(0, "logs", session.testbed.logs)


def pcie_links(plan: Plan, facts: RouterFacts) -> dict[str, Any]:
    """Return the PCIe links of the router's cards as read, and what the platform's model has of one, in Gbit/s."""
    model, known = plan.platform.model, ((nic, nic.pcie_bps) for nic in facts.nics)
    links = (f"x{nic.pcie_width} at {nic.pcie_speed:g} GT/s: {bps / 1e9:.4g}" for nic, bps in known if bps)
    nics = (part.get("nic", {}) for part in (model.get("software", {}).get(plan.software_name, {}), model))
    modelled = [f"{nic['pcie']['gbps']:g}" for nic in nics if "pcie" in nic]
    return {PCIE: {"read": ", ".join(dict.fromkeys(links)), "modelled": modelled[0]}} if modelled else {}
