"""Writes what a session measures to the records of its run's folder, trial by trial."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import psutil

from .. import __version__
from ..core.deciding import KEEPS
from ..core.quantity import Requirement, TrafficWords
from ..core.router_facts import RouterSetUp
from ..core.rule import Ruling
from ..core.step_down import StepDown
from ..core.traffic.catalogue import Catalogue
from ..core.traffic.profiles import Profile
from ..core.trial import Problem, Tolerance, Trial
from ..core.verdict import Verdict
from ..files import read_file
from ..session.judging import EndedTrial, Listener, Reading
from ..session.plan import Plan
from ..session.session import Session
from ..system import children
from .inputs import input_files, traffic_files, without_secrets
from .records import (
    EnvironmentRecord,
    KnownAfterwards,
    MarginRecord,
    ReadingRecord,
    RequirementRecord,
    TrialRecord,
)
from .run import RunFolder

R = TypeVar("R", TrialRecord, ReadingRecord, MarginRecord, RequirementRecord)


class Recorder:
    """Writes one run. Each call's record is on the disk when the call returns."""

    def __init__(self, results: Path, run_id: str, environment: EnvironmentRecord) -> None:
        self.folder = RunFolder.create(results, run_id)
        self.environment = replace(environment, run=self.folder.run_id)
        self.folder.write_environment(self.environment)
        self._passed: dict[tuple[str, bool, int], float] = {}
        """Profile, both directions or one, pairs -> the highest load of each port in frames/s that passed."""
        self._started = 0.0
        self.test = ""
        self._about: Mapping[str, Any] = {}
        self._trials: list[Trial] = []
        """The trials of the current sentence, as they were kept."""
        self._catalogue: Catalogue | None = None
        self._kept_traffic: set[str] = set()
        self._streams: tuple[Mapping[str, object], str] = {}, ""
        """The last streams, and the file that they are kept in."""
        self._telemetry: list[tuple[str, Mapping[str, str]]] = []
        """Moment, and texts by command, of the current sentence, until its verdict is known."""

    @property
    def number(self) -> int:
        """The number of the current sentence within the run; 0 before the first."""
        return self.folder.requirements

    def keep_inputs(self, plan: Plan) -> None:
        """Keep the files of *plan*; those of its traffic as soon as it is used."""
        for named in input_files(plan).items():
            self.keep_file(*named)
        self._catalogue = plan.catalogue

    def keep_file(self, name: str, path: Path) -> None:
        """Keep the text file *path* as the input *name*, without what looks like a secret."""
        self.folder.add_input(name, without_secrets(name, read_file(path).decode(errors="replace")).encode())

    def amend(self, extra: Mapping[str, Any], **changes: Any) -> None:
        """Add *extra* data and *changes* to the record of the environment."""
        self.environment = replace(self.environment, extra={**self.environment.extra, **extra}, **changes)
        self.folder.write_environment(self.environment)

    def keep_parts(self, session: Session, versions: Mapping[str, str], configuration: RouterSetUp) -> None:
        """Add the generator and the router of *session* to the environment, with *versions* and *configuration*."""
        generator, router = session.generator, session.router
        limits, calibration = generator.known_limits, generator.headroom
        self.amend(
            {} if calibration is None else {"calibration": calibration.record()},
            router_configuration=configuration,
            host_key=router.host_key,
            generator_card={} if limits is None else limits.record(),
            versions=dict(versions),
            ports=tuple(generator.ports),
            router_facts=None if generator.bypassed or router.is_black_box else router.facts,
            interfaces={str(port): name for port, name in session.interfaces.items()},
        )

    def mark_simulated(self, signs: Sequence[str]) -> None:
        """Let every record say from now on that it is simulated, and the environment why, if there are *signs*."""
        if signs and self.environment.simulated_because != tuple(signs):
            self.amend({}, simulated=True, simulated_because=tuple(signs))

    def begin(self, test: str, **about: Any) -> None:
        """Begin the records of a sentence of *test*. *about*: what its requirement's record says of the test."""
        self._keep_telemetry()
        self.folder.next_requirement()
        self._started, self.test, self._trials, self._about = time.time(), test, [], about

    def keep_trial(
        self,
        requirement: TrafficWords,
        trial: Trial,
        session: Session,
        evidence: str = "",
        step_down: StepDown | None = None,
    ) -> None:
        """Append one trial of the current sentence or traffic (number 0: warm-up), measured on *session*.

        *evidence*: what the trial shows ("": it is not judged). *step_down*: the counts while its load changed.
        """
        streams = session.generator.streams
        self._keep_traffic(requirement.profile)
        # a generator has the same object until it is told to send something else
        if streams is not self._streams[0]:
            self._streams = streams, self.folder.add_streams(streams) if streams else ""
        self._add(
            TrialRecord,
            requirement=self.number,
            test=self.test,
            sentence=requirement.sentence,
            trial=trial,
            streams=self._streams[1],
            evidence=evidence,
            step_down=step_down,
        )
        self._trials.append(trial)
        lost_nothing = trial.is_clean and trial.lost == 0 and trial.offered > 0
        if trial.number and (evidence == KEEPS or (lost_nothing and not evidence)):
            key = _traffic(requirement)
            self._passed[key] = max(self._passed.get(key, 0.0), trial.outcome.load.pps)

    def _keep_traffic(self, profile: Profile) -> None:
        if self._catalogue is not None and profile.name not in self._kept_traffic:
            self._kept_traffic.add(profile.name)
            for name, content in traffic_files(profile, self._catalogue).items():
                self.folder.add_input(name, content)

    def listener(self, requirement: Requirement, session: Session) -> Listener:
        """Return a listener that records what happens in the current sentence, judged on *session*."""
        step_down: StepDown | None = None

        def hear(event: EndedTrial | Reading | StepDown) -> None:
            nonlocal step_down
            if isinstance(event, Reading):
                self._add(ReadingRecord, requirement=self.number, reading=event)
                if event.telemetry is not None:
                    self._telemetry.append((event.moment, event.telemetry.raw))
            elif isinstance(event, StepDown):
                step_down = event  # of the next trial
            else:
                evidence = "" if event.standing is None else event.standing.last
                self.keep_trial(requirement, event.trial, session, evidence, step_down)
                step_down = None

        return hear

    def highest_passed(self, requirement: Requirement) -> float | None:
        """Return the highest load per port at which a trial of its traffic kept its limit, or unjudged lost nothing."""
        return self._passed.get(_traffic(requirement))

    def keep_texts(self, moment: str, texts: Mapping[str, str]) -> None:
        """Keep what the router reported at a *moment*, as ``under load``, unless the sentence is a PASS."""
        self._telemetry.append((moment, texts))

    def keep_margin(self, requirement: int, sentence: str, **bounds: Any) -> MarginRecord:
        """Keep the *bounds* of the margin of sentence *requirement* under the search's number; return the record."""
        return self._add(
            MarginRecord, number=self.number, requirement=requirement, test=self.test, sentence=sentence, **bounds
        )

    def keep_verdict(self, verdict: Verdict, tolerance: Tolerance) -> RequirementRecord:
        """Append the requirement's record, and return it. *tolerance*: of its trials."""
        requirement, promise = verdict.requirement, verdict.promise
        self._keep_traffic(requirement.profile)
        record = self._add(
            RequirementRecord,
            number=self.number,
            test=self.test,
            sentence=requirement.sentence,
            verdict=verdict.ruling.value,
            message=verdict.message,
            goal=promise.goal,
            quantity=requirement.quantity.name,
            profile=requirement.profile.name,
            mean_size=requirement.profile.mean_size,
            link_bps=promise.link_bps,
            load_pps=promise.load_pps,
            cores=requirement.cores,
            trials=tuple(trial.number for trial in self._trials if trial.number),
            started=self._started,
            ended=time.time(),
            tolerance=tolerance,
            own_part=promise.own,
            evidence=verdict.evidence,
            known_afterwards=self._known_afterwards(verdict.trials),
            other_tries=verdict.tries,
            begins_at_1=verdict.begins_at_1,
            runs=verdict.runs,
            ledgers=verdict.ledgers,
            why=None if verdict.ruling is Ruling.PASS else verdict.why,
            deviations=verdict.deviations,
            breakdown=verdict.breakdown,
            **self._about,
        )
        if verdict.ruling is Ruling.PASS:
            self._telemetry.clear()
        self._keep_telemetry()
        return record

    def _add(self, kind: type[R], **fields: Any) -> R:
        """Append a record of this *kind* and run, and return it."""
        record = kind(run=self.folder.run_id, simulated=self.environment.simulated, **fields)
        self.folder.add(record)
        return record

    def _keep_telemetry(self) -> None:
        while self._telemetry:
            self.folder.add_telemetry(self.number, *self._telemetry.pop(0))

    def _known_afterwards(self, trials: Sequence[Trial]) -> tuple[KnownAfterwards, ...]:
        """Return the problems of *trials* that are not in their records."""
        kept = {trial.number: len(trial.problems) for trial in self._trials}
        afterwards: dict[tuple[Problem, ...], list[int]] = {}
        for trial in trials:
            if problems := trial.problems[kept.get(trial.number, 0) :]:
                afterwards.setdefault(problems, []).append(trial.number)
        return tuple(KnownAfterwards(tuple(numbers), problems) for problems, numbers in afterwards.items())

    def carry(self, record: TrialRecord) -> None:
        """Copy a trial of an earlier run, whose streams are kept here too, into the current sentence's records."""
        self.folder.add(replace(record, run=self.folder.run_id, requirement=self.number))
        self._trials.append(record.trial)

    def close(
        self,
        cpu_steal_percent: float | None = None,
        interrupted: str = "",
        unjudged: str = "",
        afterwards: Sequence[str] = (),
    ) -> str:
        """Note the end and write the manifest; returns the sum of the records.

        *interrupted*: the sentence that has no verdict because the run ended in it. *unjudged*: why the suite's
        set-up failed, or tests that have no verdict. *afterwards*: what was found when the router was restored.
        """
        self._keep_telemetry()
        if afterwards:
            configuration = replace(self.environment.router_configuration, afterwards=tuple(afterwards))
            self.environment = replace(self.environment, router_configuration=configuration)
        ended = replace(
            self.environment,
            ended=time.time(),
            cpu_steal_percent=cpu_steal_percent,
            interrupted=interrupted,
            unjudged=unjudged,
        )
        return self.folder.close(ended)


def _traffic(sent: TrafficWords) -> tuple[str, bool, int]:
    return sent.profile.name, sent.bidirectional, sent.pairs


# -- the environment of a run on this machine: host, Python and packages -----------------------------------------------


def environment_record(plan: Plan, run: str, **fields: Any) -> EnvironmentRecord:
    """Return the record of the environment of a run of *plan* that begins now. *fields*: all others."""
    return EnvironmentRecord(
        run=run,
        testbed=plan.testbed.testbed,
        platform=plan.platform.platform,
        software=plan.software_name,
        started=time.time(),
        host=host_facts(),
        code=code_identity(),
        goal=plan.goal,
        **fields,
    )


def code_identity(folder: Path = Path(__file__).parents[1]) -> dict[str, Any]:
    """Return which Lineproof this is: ``version``, and of a git checkout ``commit`` and whether it is ``dirty``.

    ``dirty``: tracked files differ from the commit. Both are ``unknown`` where the code is in no checkout, or git does
    not answer. *folder*: that of the package.
    """
    identity = {"version": __version__, "commit": "unknown", "dirty": "unknown"}
    # installed into an environment inside another project's checkout, the code is not that project's
    if _git(folder, "ls-files", "--error-unmatch", "__init__.py") is None:
        return identity
    described = _git(folder, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    if described is None:
        return identity
    return {**identity, "commit": described.removesuffix("-dirty"), "dirty": described.endswith("-dirty")}


def _git(folder: Path, *arguments: str) -> str | None:
    """Return the output of git in *folder*; None if it failed."""
    try:
        # a repository's own settings may name a program to run: this one is not needed
        result = children.run(["git", "-C", str(folder), "-c", "core.fsmonitor=false", *arguments], 5.0)
    except (OSError, children.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def host_facts() -> dict[str, Any]:
    """Return this machine: name, operating system, kernel, CPU, number of CPUs, load, memory in bytes, Python.

    ``load``: how many programs wanted a CPU in the minute before.
    """
    system, cpu = platform.system(), platform.machine()
    with contextlib.suppress(OSError):  # of a small container
        system = platform.freedesktop_os_release()["PRETTY_NAME"]
    with contextlib.suppress(OSError):
        named = re.search(r"^model name\s*: (.+)", Path("/proc/cpuinfo").read_text(errors="replace"), re.MULTILINE)
        cpu = named[1] if named else cpu
    return {
        "name": platform.node(),
        "system": system,
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": cpu,
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "memory_bytes": psutil.virtual_memory().total,
        "python": platform.python_version(),
        "python_implementation": sys.implementation.name,
    }
