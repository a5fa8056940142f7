"""Going on with a study that was interrupted: what an earlier run measured is copied with its trials, not repeated."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import ConfigError, TestbedError
from ..evidence.environment import code_identity, host_facts
from ..evidence.recorder import Recorder
from ..evidence.records import EnvironmentRecord, MeasurementRecord, TrialRecord
from ..evidence.resume import FINGERPRINTS
from ..evidence.run import read_run
from ..evidence.summary import STUDY
from ..units import counted
from .history import BLOCKS, GAPS_REPEATED, JUDGED, judged_changes, study_of_run
from .preparing import CODE, PreparedStudy
from .study import Step, Study

SESSIONS = "sessions"
"""Key of an environment's extra data: by platform and software, versions and configuration of the router."""

_STATES = ("generator.leftover", "generator.force", "generator.promiscuous", "router.rx placement")
"""What stands among the versions, and may differ between two sessions of one run."""

_HOST = {"name": "host", "cpu": "CPU", "cpus": "number of CPUs", "kernel": "kernel"}
"""Of the host's facts, those by which a figure would be another machine's, and what they are called."""


class OtherTestbed(TestbedError):
    """A study that is not the one measured before: nothing may be added to those measurements."""


@dataclass(frozen=True)
class Carried:
    """The measurements of run *run_id* in *folder* that have a value; gaps are measured again."""

    run_id: str
    folder: Path
    records: Mapping[Step, MeasurementRecord]
    trials: Mapping[int, Sequence[TrialRecord]]
    environment: EnvironmentRecord
    gaps: Mapping[Step, str]
    """Its measurements without a value, and why: of those that are no more than what is not here, none."""
    study: Study
    """As it was then."""

    def history(self, study: Study, again: Container[Step]) -> dict[str, object]:
        """For the environment of a run of *study*: what a reader must know of this one, and of those before.

        *again*: what is measured in it.
        """
        extra, read = self.environment.extra, {step.block for step in self.records}
        before, known = extra.get("repeats"), {key: _listed(extra, key) for key in (BLOCKS, JUDGED, GAPS_REPEATED)}
        if read and isinstance(before, int) and before != study.repeats:
            known[BLOCKS].append({"run": self.run_id, "from": before, "to": study.repeats, "read": len(read)})
        if read:
            seen = {"run": self.run_id, "read": len(self.records)}
            known[JUDGED] += [{**change, **seen} for change in judged_changes(self.study, study)]
        known[GAPS_REPEATED] += [
            {"run": self.run_id, "measurement": str(step), "reason": reason}
            for step, reason in self.gaps.items()
            if step in again
        ]
        return {"resumed_from": self.run_id, SESSIONS: self.sessions, **{key: own for key, own in known.items() if own}}

    @property
    def sessions(self) -> dict[str, Any]:
        """Return those of its environment, each with the run that opened it."""
        found = self.environment.extra.get(SESSIONS)
        return {
            name: {"carried_from": self.run_id, **session}
            for name, session in (found if isinstance(found, Mapping) else {}).items()
        }

    @classmethod
    def of(cls, folder: Path, prepared: PreparedStudy) -> Carried:
        """Return what the run in *folder* measured of *prepared*.

        Raises ConfigError, TestbedError naming what has changed.
        """
        run = read_run(folder)
        environment = run.environment
        if environment is None:
            raise ConfigError("has no environment.json, so nothing can be carried over from it", folder)
        if (study := environment.extra.get(STUDY)) != prepared.study.study:
            of = f"of study '{study}'" if study else "of no study"
            raise TestbedError(
                f"run '{environment.run}' is {of}, and cannot go on as '{prepared.study.study}'; expected a run of that"
            )
        found = run.measured
        plan, host = prepared.plan, host_facts()
        goal = environment.extra.get("goal")
        differences = [
            f"{name} was '{then}' and is '{now}'"
            for name, then, now in (
                ("testbed", environment.testbed, plan.testbed.testbed),
                ("goal", goal.get("goal") if isinstance(goal, Mapping) else None, plan.goal.goal),
                ("clock speed", environment.clock_speed, plan.clock_speed),
                *((words, environment.host.get(name), host[name]) for name, words in _HOST.items()),
            )
            if then != now
        ]
        differences += _changed(environment, prepared.fingerprints())
        if differences:
            raise TestbedError(
                f"run '{environment.run}' cannot be resumed: {'; '.join(differences)}; go on with its own options, or"
                " run the study again, without --resume"
            )
        wanted = {step_of(record): record for record in found if record.value is not None}
        gaps = {step_of(record): record.reason for record in found if record.value is None and not record.excused}
        return cls(environment.run, folder, wanted, run.trials_by_number, environment, gaps, study_of_run(folder))

    def copy_to(self, recorder: Recorder) -> str:
        """Copy everything into *recorder*'s run; returns how much it was, in words."""
        folder = recorder.folder
        folder.copy_missing(self.folder)
        for record in self.records.values():
            number = folder.next_requirement() if record.requirement else 0
            for trial in self.trials.get(record.requirement, ()):
                folder.add(replace(trial, run=folder.run_id, requirement=number))
            origin = record.carried_from or self.run_id
            folder.add(replace(record, run=folder.run_id, requirement=number, carried_from=origin))
        return counted(len(self.records), "measurement")


def step_of(record: MeasurementRecord) -> Step:
    """Which measurement of a study's order it is. Raises ConfigError for a turn that no study has."""
    match record.turn:
        case "first" | "" | "last" as turn:
            return Step(record.block, turn, record.variant, record.row)
    raise ConfigError(f"'{record.turn}' is no turn of a baseline; expected 'first', 'last' or nothing")


def check_versions(name: str, before: Mapping[str, Any], now: Mapping[str, str]) -> None:
    """Refuse a session *name* whose router or generator reports other versions *now* than in the session *before*.

    *before*: as an environment has it. Raises OtherTestbed naming both.
    """
    then = before.get("versions")
    then = then if isinstance(then, Mapping) else {}
    differences = [
        f"{key} was '{then.get(key, 'nothing')}' and is '{now.get(key, 'nothing')}'"
        for key in sorted((then.keys() | now.keys()) - set(_STATES))
        if then.get(key) != now.get(key)
    ]
    if differences:
        run = before.get("carried_from")
        raise OtherTestbed(
            f"{name} is not what {f'run {run}' if run else 'this run'} measured: {'; '.join(differences)}; run the"
            " study again, without --resume"
        )


def _listed(extra: Mapping[str, Any], key: str) -> list[object]:
    found = extra.get(key)
    return list(found) if isinstance(found, list) else []


def _changed(before: EnvironmentRecord, now: Mapping[str, str]) -> list[str]:
    kept = before.extra.get(FINGERPRINTS)
    known = kept if isinstance(kept, Mapping) else {}
    found = [f"the {name} has changed" for name in sorted(now) if name != CODE and known.get(name) != now[name]]
    if known.get(CODE) != now[CODE]:
        then, mine = _lineproof(before.code), _lineproof(code_identity())
        found.append(
            f"it was made by '{then}', and this is '{mine}'" if then != mine else f"the code of {mine} has changed"
        )
    return found


def _lineproof(code: Mapping[str, Any]) -> str:
    changed = ", changed" if code.get("dirty") is True else ""
    return f"Lineproof {code.get('version')}, commit {str(code.get('commit'))[:12]}{changed}"
