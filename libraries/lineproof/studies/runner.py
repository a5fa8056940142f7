"""Prepares and runs a study: a plan for each variant, a session for each software, every measurement kept at once."""

from __future__ import annotations

import contextlib
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
from ..evidence.recorder import Recorder, environment_record
from ..evidence.records import MeasurementRecord
from ..evidence.run import new_run_id
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
from .results import PCIE, REPEATS, SESSIONS, UNCHECKED, grouped
from .study import AT_LEAST, Step, check_study, placed, steps_of


class OtherRouter(TestbedError):
    """The router is not the one that a variant is measured on."""


class StudyRun:
    """A run of the study *name* with all that it needs, read and checked. It starts nothing before :meth:`run`.

    *testbed*: None for the study's own, or the simulated one. *repeats*: None for those of the file. *say* gets a line
    for all that happens.

    ``plans``: of each variant that is here, by its name. ``gaps``: what need not be tried, by variant and row: each row
    of a variant that is not here. ``steps``: what is measured, in its order.

    Raises ConfigError with file and remedy.
    """

    def __init__(
        self,
        project: Project,
        name: str,
        testbed: str | None = None,
        goal: str = "standard",
        repeats: int | None = None,
        secrets: Secrets = ENVIRONMENT,
        say: Say = silent,
    ) -> None:
        self.project, self.say, self.path = project, say, project.studies / f"{name}.yaml"
        study = check_study(project, name)
        self.study = study if repeats is None else study.model_copy(update={"repeats": repeats})
        self.plans: dict[str, Plan] = {}
        self.gaps: dict[tuple[str, str], Measured] = {}
        for variant in study.variants:
            self._prepare(variant, testbed or study.testbed or "simulated", goal, secrets)
        if all((variant, row) in self.gaps for variant in study.variants for row in study.rows_of(variant)):
            reasons = dict.fromkeys(gap.reason for gap in self.gaps.values())
            raise ConfigError(f"nothing can be measured: {'; '.join(reasons)}", self.path)
        self.steps = self._order()
        self._held: dict[str, HeldTestbed] = {}
        self._session: Session | None = None
        self._key: tuple[object, ...] = ()
        self._applied = ""
        """The variant whose commands the router has."""
        self._made: tuple[str, ...] = ()
        """The steps that a person has taken on the router."""
        self._measured = self._failures = self._restarts = 0
        self._extra: dict[str, Any] = {REPEATS: self.study.repeats, SESSIONS: {}, UNCHECKED: {}}
        self._afterwards: list[str] = []

    def _prepare(self, variant: str, testbed: str, goal: str, secrets: Secrets) -> None:
        """Read the plan of *variant*, and note which of its rows are gaps."""
        study, own, name = self.study, self.study.variants[variant], self.study.variants[variant].testbed or testbed
        if own.testbed is not None and not (self.project.testbeds / f"{own.testbed}.yaml").is_file():
            self._leave_out(variant, f"no file describes a testbed '{own.testbed}'")
            return
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
        for row in study.rows_of(variant):
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

    def _leave_out(self, variant: str, why: str) -> Measured:
        """Make each row of *variant* a gap, which is no failure; returns it."""
        gap = Measured(None, f"not here: {why}", excused=True)
        self.gaps = {**{(variant, row): gap for row in self.study.rows_of(variant)}, **self.gaps}
        return gap

    @property
    def plan(self) -> Plan:
        """Return the plan of the baseline, or of the first variant: all have its goal, most its testbed."""
        return self.plans.get(self.study.baseline or "") or next(iter(self.plans.values()))

    def made_by_hand(self, variant: str) -> tuple[str, ...]:
        """Return the steps by which a person makes a router that *variant*, the longest one first.

        Empty where nobody installs and starts it. The rest is done by command: a software's tuning, and the variant's
        commands.
        """
        plan = self.plans.get(variant)
        if plan is None or self.study.bypass or not isinstance(plan.testbed, HardwareSettings):
            return ()
        software, queues = plan.software, 0 if plan.software.tuning.queues else plan.software.rx_queues or 0
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

        All blocks of what a person has made are measured before the next is made, the baseline's first.
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
            if (step.variant, step.row) not in self.gaps:
                plan, measure = self.plans[step.variant], self.study.measures[step.row]
                trials = measure.steps + 2 if measure.kind == "ramp" else 2
                # beside traffic: a pause before each trial, readings of the router, and a session to open and close
                seconds += trials * (plan.goal.final_trial_duration / plan.clock_speed + 0.1) + 0.2
                if last != (last := self._session_key(step.variant)):
                    seconds += {"simulated": 3.0, "netns": 5.0}.get(plan.testbed.kind, 15.0)
        return seconds

    # -- measuring -----------------------------------------------------------------------------------------------------

    def run(self, results: Path, run_id: str = "", wait: float = 3600.0) -> Path:
        """Measure all steps in a run's folder of *results*, and return it. *wait*: most s of a step by hand.

        *run_id*: of the folder; "": a new one. Raises TestbedError, after what was measured is kept.
        """
        for line in self.foreword():
            self.say(line)
        study, cpu, step = self.study, cpu_times(), None
        self._wait = wait
        environment = environment_record(
            self.plan,  # the baseline's: those of the others are with their measurements
            run_id or new_run_id(datetime.now(UTC)),
            simulated=any(plan.testbed.kind == "simulated" for plan in self.plans.values()),
            clock_speed=self.plan.clock_speed,
            study=study.study,
            suite=f"study {study.study}",
            description=study.title,
            extra=self._extra,
        )
        self._recorder = Recorder(results, environment.run, environment)
        folder = self._recorder.folder.path
        self.say(f"kept in {folder}")
        try:
            for plan in {self._session_key(name): plan for name, plan in self.plans.items()}.values():
                self._recorder.keep_inputs(plan)
            layer = "variables" if self.path.parent == self.project.studies.own else "packaged"
            self._recorder.keep_file(f"{layer}/studies/{self.path.name}", self.path)
            for (block, turn, variant), steps in groupby(self.steps, key=lambda step: step.place):
                self.say(f"block {block}{f', baseline {turn}' if turn else ''}: {variant}")
                for step in steps:
                    self._measure(step)
            step = None
        finally:
            if step is not None and self._measured:
                self.say(f"what was measured is in {folder}")
            with contextlib.ExitStack() as stack:
                steal, current = steal_percent(cpu, cpu_times()), str(step or "")
                stack.callback(self._recorder.close, steal, current, afterwards=self._afterwards)
                for held in self._held.values():
                    stack.callback(held.close)
                stack.callback(self._close_session)
        return folder

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
            return self._leave_out(step.variant, in_words(error))
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

        *progress*: of waiting for a router that has to restart meanwhile. Raises OtherRouter if the router is not what
        the variant says, else TestbedError.
        """
        variant, session = step.variant, self._session
        if session is None or self._key != self._session_key(variant) or session.router.restarts != self._restarts:
            self._close_session()
            session = self._open(step, progress)
        if self._applied == variant:
            return session
        self._withdraw(session)
        self._applied = variant
        if commands := self.study.variants[variant].commands:
            session.router.begin_changes()
            session.router.driver.apply(commands)
            if self._restart(session):
                session.router.driver.apply(commands)  # what the restart took away
            session.traffic.forget()  # it may forward other frames now
        if not self.study.bypass:
            differs, unchecked = check_router(session, self.study, variant)
            if differs:
                raise OtherRouter(f"the router is not that of variant '{variant}': {'; '.join(differs)}")
            if unchecked and self._extra[UNCHECKED].get(variant) != unchecked:
                self._amend(UNCHECKED, variant, unchecked)
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
        """Open the session of *step*, and keep its versions; *progress* as of :meth:`_session_of`.

        A simulated testbed has noise of its own in each block and turn, the same in each run.
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
        """Keep versions and configuration of each platform and software; those of the first are the run's."""
        bypass, plan, versions = self.study.bypass, session.plan, session.versions()
        name = f"testbed {plan.testbed.testbed}" if bypass else f"{plan.platform.platform}, {plan.software_name}"
        if name not in self._extra[SESSIONS]:
            configuration = RouterSetUp() if bypass else session.router.configuration()
            if not self._extra[SESSIONS]:
                self._recorder.keep_parts(session, versions, configuration)
            noted = {"versions": versions, "configuration": asdict(configuration)}
            self._amend(SESSIONS, name, noted | pcie_links(plan, session.router.facts))

    def _amend(self, key: str, name: str, value: object) -> None:
        self._extra[key][name] = value
        self._recorder.amend({key: self._extra[key]})

    def _close_session(self) -> None:
        """Close the session, with the commands undone that hold from a restart on."""
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
