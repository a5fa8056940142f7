"""The preparation of a study: a plan for each variant, every row checked, and how long it will take."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..config import read_yaml
from ..core.sentence import parse, parse_traffic
from ..core.traffic.catalogue import Catalogue
from ..errors import ConfigError, SentenceError
from ..evidence.environment import code_digest
from ..evidence.resume import fingerprints
from ..methods.budget import WALL_SECONDS_PER_TRIAL, duration_text
from ..platforms import CommandPair, Platform, Software, Tuning, named_file, read_platform
from ..project import Project
from ..session.cpu_time import RAMP, SPARE
from ..session.plan import Plan
from ..system.login import ENVIRONMENT, Secrets
from ..testbed.settings import SimulatedSettings
from ..units import counted
from .measuring import RAMP_EDGE, check_row, goal_of_measurement, refused_row, sentence_of
from .study import RAMP_STEPS, Study, Visit, read_study, visits_of

SESSION_SECONDS = {"simulated": 3.0, "netns": 5.0, "hardware": 15.0}
"""Real seconds to open and close a testbed of each kind, about."""

SIMULATED = "simulated"
"""The testbed of a run, if neither it nor its study names one."""

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

    ``absent``: of the others, why they are not. ``refused``: by variant and row, why the testbed's generator cannot
    send that; of a study that bypasses the router alone. ``unknown``: by variant, why a simulated router does not know
    its commands.
    """

    project: Project
    study: Study
    path: Path
    plans: Mapping[str, Plan]
    absent: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[tuple[str, str], str] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        """Return that of the baseline, or of the first variant: the goal is that of all, the testbed of most."""
        return self.plans.get(self.study.baseline or "") or next(iter(self.plans.values()))

    def gap(self, variant: str, row: str) -> str:
        """Why *row* of *variant* need not be tried here; ""."""
        return self.absent.get(variant) or self.unknown.get(variant) or self.refused.get((variant, row), "")

    def session_key(self, variant: str) -> tuple[object, ...]:
        """Variants with the same share a session, one after the other."""
        plan = self.plans[variant]
        software = plan.software.model_dump_json(include={"tuning", "rx_queues"})
        return plan.testbed.testbed, plan.platform.platform, plan.software_name, software, self._started(variant)

    def _started(self, variant: str) -> tuple[tuple[str, object], ...]:
        """Return what a simulated router has to be configured as from its start, because its commands do not tell.

        It is so without commands, and where another variant has the same, as with another number of flows.
        """
        own = self.study.variants[variant]
        same = [each.configured for each in self.study.variants.values() if each.commands == own.commands]
        told = bool(own.commands) and all(each == own.configured for each in same)
        return () if told else tuple(sorted(own.configured.items(), key=str))

    def plan_of(self, visit: Visit) -> Plan:
        """The plan for a visit's session: on a simulated testbed each has noise of its own, the same in each run."""
        plan = self.plans[visit.variant]
        if not isinstance(plan.testbed, SimulatedSettings):
            return plan
        own = zlib.crc32(f"{visit.block}/{visit.turn}/{visit.variant}".encode())
        return replace(plan, testbed=plan.testbed.model_copy(update={"seed": plan.testbed.seed + own}))

    def commands_of(self, variant: str) -> tuple[CommandPair, ...]:
        """Return what is run on the router for a variant."""
        return self.study.variants[variant].commands

    def fingerprints(self) -> dict[str, str]:
        """SHA-256 of all that defines the measurements: the study's own part, and the files of its plans."""
        part = self.study.model_dump_json(exclude={"title", "about", "source", "published", "parameter", "repeats"})
        found = {"study file": hashlib.sha256(part.encode()).hexdigest(), CODE: code_digest()}
        for plan in self.plans.values():
            found |= fingerprints(plan)
        return found

    def seconds(self, visits: Sequence[Visit]) -> tuple[float, float]:
        """Return how long *visits* take, about: seconds of the testbed's traffic, and real ones with its sessions."""
        traffic, beside, trials, measurements = 0.0, 0.0, 0, 0
        goal = self.plan.goal
        for visit in visits:
            for row in visit.rows:
                measure = self.study.measures[row]
                measurements += 1
                if self.gap(visit.variant, row):
                    continue
                if measure.kind == "ramp":
                    steps = measure.steps or RAMP_STEPS
                    traffic += 2 * RAMP_EDGE + steps * (self.study.seconds or 1.0)
                    trials += steps + 4
                elif measure.kind == "cpu_time":
                    traffic += RAMP + goal.final_trial_duration + SPARE
                    trials += 1
                elif measure.kind == "throughput":
                    traffic += self.plan.warm_up + SEARCH_TRIALS * goal.final_trial_duration
                    trials += SEARCH_TRIALS
                else:
                    least, idle = self.plans[visit.variant].power_seconds if measure.kind == "energy" else (0.0, 0.0)
                    traffic += self.plan.warm_up + max(goal.final_trial_duration, least)
                    beside += idle
                    trials += 2
        real = (traffic + beside) / self.plan.clock_speed + trials * WALL_SECONDS_PER_TRIAL
        real += measurements * READINGS_SECONDS
        opened = sum(SESSION_SECONDS[self.plans[variant].testbed.kind] for variant in self._opened(visits))
        return traffic, real + opened

    def _opened(self, visits: Sequence[Visit]) -> list[str]:
        """The variants for which a testbed is opened, as often as it is."""
        here = [visit.variant for visit in visits if visit.variant in self.plans]
        keys = [self.session_key(variant) for variant in here]
        return [name for name, now, before in zip(here, keys, [None, *keys], strict=False) if now != before]

    def budget_words(self, visits: Sequence[Visit]) -> str:
        """How much is measured, and how long it takes, in words."""
        measurements = sum(len(visit.rows) for visit in visits)
        traffic, real = self.seconds(visits)
        plan = self.plan
        clock = "" if plan.clock_speed == 1 else f", at {plan.clock_speed:g} times real time"
        blocks, of_all = (len({visit.block for visit in some}) for some in (visits, visits_of(self.study)))
        left = f"{blocks} of " if blocks < of_all else ""
        testbeds = list(dict.fromkeys(f"'{each.testbed.testbed}'" for each in self.plans.values()))
        return (
            f"{counted(measurements, 'measurement')} of {counted(len(self.study.measures), 'row')} on"
            f" {counted(len(self.study.variants), 'variant')} in {left}{counted(of_all, 'block')},"
            f" {counted(len(self._opened(visits)), 'session')} on testbed{'s' * (len(testbeds) > 1)}"
            f" {', '.join(testbeds)}:"
            f" {duration_text(traffic)} of traffic{clock}, about {duration_text(real)} in all"
        )

    def gap_words(self, visits: Sequence[Visit]) -> list[str]:
        """Return the gaps of *visits* that will be, and why: a line for each reason, its variants, how many rows."""
        found: dict[str, dict[str, set[str]]] = {}
        for visit in visits:
            for row in visit.rows:
                if reason := self.gap(visit.variant, row):
                    found.setdefault(reason, {}).setdefault(visit.variant, set()).add(row)
        names = {
            reason: ", ".join(f"{name} ({counted(len(rows), 'row')})" for name, rows in variants.items())
            for reason, variants in found.items()
        }
        return [f"not measured: {listed}: {reason}" for reason, listed in names.items()]


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
    check_study(project, name)
    study = read_study(project.studies, name)
    if repeats is not None:
        study = study.model_copy(update={"repeats": repeats})
    path = project.studies / f"{name}.yaml"
    testbed = testbed or study.testbed or SIMULATED
    absent = dict(_absent(project, study))
    if len(absent) == len(study.variants):
        raise ConfigError(f"no variant is here: {'; '.join(dict.fromkeys(absent.values()))}", path)
    here = [variant for variant in study.variants if variant not in absent]
    plans = {variant: _plan(project, study, variant, testbed, goal, path) for variant in here}
    plans = {variant: replace(plan, secrets=secrets) for variant, plan in plans.items()}
    refused: dict[tuple[str, str], str] = {}
    for variant, plan in plans.items():
        for row in study.rows_of(variant):
            try:
                check_row(plan, study, row, variant)
            except SentenceError as error:
                raise ConfigError(f"row '{row}' of variant '{variant}': {error}", path) from None
            if study.bypass and (reason := refused_row(plan, study, row, variant)):
                refused[variant, row] = reason
    unknown = {
        variant: reason for variant, plan in plans.items() if (reason := _unknown_commands(plan, study, variant))
    }
    prepared = PreparedStudy(project, study, path, plans, absent, refused, unknown)
    if all(prepared.gap(variant, row) for variant in plans for row in study.rows_of(variant)):
        reasons = dict.fromkeys([*unknown.values(), *refused.values()])
        raise ConfigError(f"nothing can be measured: {'; '.join(reasons)}", path)
    if isinstance(prepared.plan.testbed, SimulatedSettings):
        # a simulated shell knows the commands of all variants that share its session
        setups = {
            key: tuple(
                study.variants[each].setup
                for each in plans
                if prepared.session_key(each) == key and study.variants[each].configured
            )
            for key in map(prepared.session_key, plans)
        }
        known = {each: replace(plan, setups=setups[prepared.session_key(each)]) for each, plan in plans.items()}
        prepared = replace(prepared, plans=known)
    return prepared


def _unknown_commands(plan: Plan, study: Study, variant: str) -> str:
    """Why a simulated router would be the same with the commands of *variant* as without them; "": it is not."""
    own = study.variants[variant]
    if not own.commands or own.configured or not isinstance(plan.testbed, SimulatedSettings):
        return ""
    return (
        f"testbed '{plan.testbed.testbed}' is simulated, and the variant does not say what its commands make of the"
        " router; add 'configured', or measure it on another testbed"
    )


def _absent(project: Project, study: Study) -> Iterator[tuple[str, str]]:
    """The variants whose own testbed has no file, and a sentence about it."""
    for variant, own in study.variants.items():
        if own.testbed is not None and not (project.testbeds / f"{own.testbed}.yaml").is_file():
            yield variant, f"{NOT_HERE}: no file describes a testbed '{own.testbed}' (variables/testbeds)"


def _plan(project: Project, study: Study, variant: str, testbed: str, goal: str, path: Path) -> Plan:
    own = study.variants[variant]
    name = own.testbed or testbed
    other = f"--testbed {study.testbed}" if study.testbed not in (None, name) else "another testbed"
    instead = f"run the study on {other}"
    plan = Plan.read(project, study.platform_of(variant), own.software, name, goal, instead=instead)
    if own.commands and plan.software.shell == "none":
        raise ConfigError(f"variant '{variant}' has commands, and nobody logs in to a black box; remove them", path)
    software = _tuned(plan.software, own.tuning, variant, path)
    settings = plan.testbed
    if own.rx_queues is not None:
        software = software.model_copy(update={"rx_queues": own.rx_queues})
        if isinstance(settings, SimulatedSettings):
            settings = settings.model_copy(update={"rx_queues": own.rx_queues})
    goal_once = goal_of_measurement(plan.goal, study.seconds)
    return replace(plan, goal=goal_once, software=software, testbed=settings)


def _tuned(software: Software, tuning: Tuning, variant: str, path: Path) -> Software:
    """*software* with a variant's *tuning* over its own. Raises ConfigError where it takes none."""
    if tuning == Tuning():
        return software
    before, own = software.tuning.model_dump(exclude_unset=True), tuning.model_dump(exclude_unset=True)
    for key in ("sysctls", "offloads"):
        if key in before and key in own:
            own[key] = {**before[key], **own[key]}
    try:
        return Software.model_validate({**software.model_dump(), "tuning": {**before, **own}})
    except ValueError as error:
        words = str(error).split("Value error, ")[-1].split(" [type=")[0]
        raise ConfigError(f"variant '{variant}': {words}", path) from None


def check_study(project: Project, name: str) -> None:
    """Read the study *name* with its platforms and traffic words, without a testbed.

    Raises ConfigError with file, line and key.
    """
    study, path = read_study(project.studies, name), project.studies / f"{name}.yaml"
    catalogue = Catalogue.read(project.profiles)
    if study.testbed is not None:
        try:
            named_file(project.testbeds, study.testbed, "testbed")
        except ConfigError as error:
            raise _wrong(path, str(error), "testbed") from None
    boxes: dict[str, Platform] = {}
    for variant, own in study.variants.items():
        box, place = study.platform_of(variant), ("variants", variant)
        if box not in boxes:
            try:
                boxes[box] = read_platform(project.platforms, box)
            except ConfigError as error:
                if (project.platforms / f"{box}.yaml").is_file():
                    raise
                raise _wrong(path, str(error), *(place if own.platform else ()), "platform") from None
        found = boxes[box]
        if own.software is not None and own.software not in found.software:
            known = ", ".join(found.software)
            raise _wrong(path, f"'{box}' has no software '{own.software}'; known: {known}", *place, "software")
        software = found.software[own.software or next(iter(found.software))]
        if own.commands and software.shell == "none":
            raise _wrong(path, "nobody logs in to a black box; remove them", *place, "commands")
        try:
            _tuned(software, own.tuning, variant, path)
        except ConfigError as error:
            raise _wrong(path, str(error).removeprefix(f"{path}: "), *place, "tuning") from None
        for row in study.rows_of(variant):
            try:
                parse_traffic(study.traffic_of(row, variant), catalogue)
            except SentenceError as error:
                where = (*place, "traffic") if own.traffic else ("measures", row, study.measures[row].kind)
                raise _wrong(path, f"row '{row}' of variant '{variant}': {error}", *where) from None
            if study.measures[row].at is not None:
                try:
                    parse(sentence_of(study, row, variant), catalogue)
                except SentenceError as error:
                    raise _wrong(path, f"row '{row}' of variant '{variant}': {error}", "measures", row, "at") from None


def _wrong(path: Path, words: str, *place: str) -> ConfigError:
    """An error of the study in *path* at the key *place*."""
    return ConfigError(f"'{'.'.join(place)}': {words}", path, read_yaml(path)[1].get(place, 1))
