"""The preparation of a study: a plan for each variant, every row checked, and how long it will take."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..config import read_yaml
from ..core.sentence import parse, parse_traffic
from ..core.traffic.catalogue import Catalogue
from ..errors import ConfigError, SentenceError
from ..evidence.recorder import code_identity, host_facts
from ..evidence.resume import fingerprints
from ..methods.budget import Budget
from ..platforms import RouterSetup, named_file, read_platform
from ..project import Project
from ..session.cpu_time import RAMP, SPARE
from ..session.plan import Plan
from ..system.login import ENVIRONMENT, Secrets
from ..testbed.settings import SimulatedSettings
from ..units import counted, duration_text
from .measuring import RAMP_EDGE, TRAFFIC_ALONE, check_row, goal_of_measurement, sentence_of
from .study import RAMP_STEPS, Step, Study, read_study

SESSION_SECONDS = {"simulated": 3.0, "netns": 5.0, "hardware": 15.0}
"""Real seconds to open and close a testbed of each kind, about."""

SIMULATED = "simulated"
"""The testbed of a run, if neither it nor its study names one."""

CODE = "code of Lineproof"
"""Key of its sum in the fingerprints."""

_HOST = {"name": "host", "cpu": "CPU", "cpus": "number of CPUs", "kernel": "kernel"}
"""The host's facts by which a figure would be another machine's, and what they are called."""

NOT_HERE = "not here"
"""How the reason begins for a variant whose own testbed is not here, or cannot be opened."""

SEARCH_TRIALS = 40
"""Trials of a search, about."""

READINGS_SECONDS = 0.2
"""Real seconds of a measurement beside its trials, about: streams, and readings of the router."""


@dataclass(frozen=True, slots=True)
class Gap:
    """The reason why a row of a variant need not be tried. ``excused``: it is no failure, as of what is not here."""

    reason: str
    excused: bool = True


@dataclass(frozen=True)
class PreparedStudy:
    """A study with everything that it needs, read and checked. ``plans``: of each variant that is here, by its name.

    ``gaps``: by variant and row. Variants that are not here have a gap in each row.
    """

    project: Project
    study: Study
    path: Path
    plans: Mapping[str, Plan]
    gaps: Mapping[tuple[str, str], Gap] = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        """Return that of the baseline, or of the first variant: the goal is that of all, the testbed of most."""
        return self.plans.get(self.study.baseline or "") or next(iter(self.plans.values()))

    def session_key(self, variant: str) -> tuple[object, ...]:
        """Variants with the same share a session, one after the other."""
        plan = self.plans[variant]
        box = plan.platform.platform, plan.software_name, plan.software.rx_queues
        return plan.testbed.testbed, *box, self._started(variant)

    def _started(self, variant: str) -> tuple[tuple[str, object], ...]:
        """Return what a simulated router has to be configured as from its start, because its commands do not tell.

        It is so without commands, and where another variant has the same, as with another number of flows.
        """
        own = self.study.variants[variant]
        same = [each.configured for each in self.study.variants.values() if each.commands == own.commands]
        told = bool(own.commands) and all(each == own.configured for each in same)
        return () if told else tuple(sorted(own.configured.items(), key=str))

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
        part = self.study.model_dump(mode="json", exclude={"title", "about", "source", "parameter", "repeats"})
        if self.study.published is not None:
            del part["published"]["explained"]
        plan, host = self.plan, host_facts()
        known = {
            "testbed": plan.testbed.testbed,
            "goal": plan.goal.goal,
            "clock speed": f"{plan.clock_speed:g}",
            "number of blocks": str(self.study.repeats),
            "study file": hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest(),
            CODE: " ".join(map(str, code_identity().values())),
            **{words: str(host[name]) for name, words in _HOST.items()},
        }
        for plan in self.plans.values():
            known |= fingerprints(plan)
        return known

    def seconds(self, steps: Sequence[Step]) -> float:
        """Return how long *steps* take, about: real seconds, with the sessions that they open."""
        tried = [step for step in steps if (step.variant, step.row) not in self.gaps]
        whole = sum((self._budget(step.variant, step.row) for step in tried), Budget())
        here = [step.variant for step in steps if step.variant in self.plans]
        keys = [self.session_key(variant) for variant in here]
        opened = [name for name, key, before in zip(here, keys, [None, *keys], strict=False) if key != before]
        sessions = sum(SESSION_SECONDS[self.plans[variant].testbed.kind] for variant in opened)
        return whole.wall_seconds(self.plan.clock_speed) + len(steps) * READINGS_SECONDS + sessions

    def _budget(self, variant: str, row: str) -> Budget:
        """Return how long one measurement takes."""
        plan, measure = self.plans[variant], self.study.measures[row]
        warm_up, trial = plan.warm_up, plan.goal.final_trial_duration
        if measure.kind not in (*TRAFFIC_ALONE, "cpu_time"):
            return plan.budget([plan.requirement(sentence_of(self.study, row, variant))])
        steps = measure.steps or RAMP_STEPS
        seconds, trials = {
            "ramp": (2 * RAMP_EDGE + steps * (self.study.seconds or 1.0), steps + 4),
            "throughput": (warm_up + SEARCH_TRIALS * trial, SEARCH_TRIALS),
            "cpu_time": (RAMP + trial + SPARE, 1),
        }.get(measure.kind, (warm_up + trial, 2))
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
        known: dict[str, Counter[str]] = {}
        for place, gap in self.gaps.items():
            if place in places:
                known.setdefault(gap.reason, Counter())[place[0]] += 1
        names = {
            reason: ", ".join(f"{name} ({counted(rows, 'row')})" for name, rows in variants.items())
            for reason, variants in known.items()
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
    study = check_study(project, name)
    if repeats is not None:
        study = study.model_copy(update={"repeats": repeats})
    path = project.studies / f"{name}.yaml"
    testbed = testbed or study.testbed or SIMULATED
    gaps: dict[tuple[str, str], Gap] = {}
    plans: dict[str, Plan] = {}
    for name, own in study.variants.items():
        gap = None
        if own.testbed is not None and not (project.testbeds / f"{own.testbed}.yaml").is_file():
            gap = Gap(f"{NOT_HERE}: no file describes a testbed '{own.testbed}' (variables/testbeds)")
        else:
            plans[name] = plan = replace(_plan(project, study, name, testbed, goal), secrets=secrets)
            gap = _unknown_commands(plan, study, name)
        for row in study.rows_of(name):
            if name in plans:
                with _placed(path, f"row '{row}' of variant '{name}': "):
                    check_row(plans[name], study, row, name)
            if known := gap or (_refused(plans[name], study, row, name) if study.bypass else None):
                gaps[name, row] = known
    prepared = PreparedStudy(project, study, path, plans, gaps)
    if all((name, row) in gaps for name in study.variants for row in study.rows_of(name)):
        reasons = dict.fromkeys(gap.reason for gap in gaps.values())
        raise ConfigError(f"nothing can be measured: {'; '.join(reasons)}", path)
    if isinstance(prepared.plan.testbed, SimulatedSettings):
        # a simulated shell knows the commands of all variants that share its session
        setups: dict[object, tuple[RouterSetup, ...]] = {prepared.session_key(name): () for name in plans}
        for name in plans:
            if study.variants[name].configured:
                setups[prepared.session_key(name)] += (study.variants[name].setup,)
        told = {name: replace(plan, setups=setups[prepared.session_key(name)]) for name, plan in plans.items()}
        return replace(prepared, plans=told)
    return prepared


def _unknown_commands(plan: Plan, study: Study, variant: str) -> Gap | None:
    """Return a gap if a simulated router would be the same with the commands of *variant* as without them."""
    own = study.variants[variant]
    if not own.commands or own.configured or not isinstance(plan.testbed, SimulatedSettings):
        return None
    words = (
        f"testbed '{plan.testbed.testbed}' is simulated, and the variant does not say what its commands make of the"
        " router; add 'configured', or measure it on another testbed"
    )
    return Gap(words, excused=False)


def _refused(plan: Plan, study: Study, row: str, variant: str) -> Gap | None:
    """Return a gap if the testbed's generator cannot send *row* of a study that bypasses the router."""
    try:
        plan.check_generator(parse_traffic(sentence_of(study, row, variant), plan.catalogue))
    except SentenceError as error:
        return Gap(str(error))
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
    goal_once = goal_of_measurement(plan.goal, study.seconds)
    return replace(plan, goal=goal_once, software=software, testbed=settings)


def check_study(project: Project, name: str) -> Study:
    """Return the study *name* with its platforms and traffic words, without a testbed.

    Raises ConfigError with file, line and key.
    """
    study, path = read_study(project.studies, name), project.studies / f"{name}.yaml"
    catalogue = Catalogue.read(project.profiles)
    if study.testbed is not None:
        with _placed(path, "", "testbed"):
            named_file(project.testbeds, study.testbed, "testbed")
    for variant, own in study.variants.items():
        box, place = study.platform_of(variant), ("variants", variant)
        with _placed(path, "", *(place if own.platform else ()), "platform"):
            named_file(project.platforms, box, "platform")
        softwares = read_platform(project.platforms, box).software
        if own.software is not None and own.software not in softwares:
            words = f"'{box}' has no software '{own.software}'; known: {', '.join(softwares)}"
            raise _wrong(path, words, *place, "software")
        software = softwares[own.software or next(iter(softwares))]
        if own.commands and software.shell == "none":
            raise _wrong(path, "nobody logs in to a black box; remove them", *place, "commands")
        for row in study.rows_of(variant):
            here = f"row '{row}' of variant '{variant}': "
            with _placed(
                path, here, *((*place, "traffic") if own.traffic else ("measures", row, study.measures[row].kind))
            ):
                parse_traffic(study.traffic_of(row, variant), catalogue)
            if study.measures[row].at is not None:
                with _placed(path, here, "measures", row, "at"):
                    parse(sentence_of(study, row, variant), catalogue)
    return study


@contextmanager
def _placed(path: Path, words: str, *place: str) -> Iterator[None]:
    """Raise what is wrong meanwhile as an error of the study in *path*, at the key *place*, after *words*."""
    try:
        yield
    except (ConfigError, SentenceError) as error:
        raise _wrong(path, f"{words}{error}", *place) from None


def _wrong(path: Path, words: str, *place: str) -> ConfigError:
    key = f"'{'.'.join(place)}': " if place else ""
    return ConfigError(f"{key}{words}", path, read_yaml(path)[1].get(place, 1) if place else None)
