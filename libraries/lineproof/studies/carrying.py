"""Going on with a study that was interrupted: what an earlier run measured is copied with its trials, not repeated.

Nothing else may differ: who looks at figures and then chooses other blocks, tolerances or published figures finds
differences that are none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import TestbedError
from ..evidence.recorder import Recorder
from ..evidence.records import MeasurementRecord, TrialRecord
from ..evidence.resume import differences
from ..evidence.run import read_run
from ..units import counted
from .preparing import PreparedStudy
from .study import Step

SESSIONS = "sessions"
"""Key of an environment's extra data: by platform and software, versions and configuration of the router."""

_STATES = ("generator.leftover", "generator.force", "generator.promiscuous", "router.rx placement")
"""Keys that stand among the versions, and may differ between two sessions of one run."""


class OtherTestbed(TestbedError):
    """A study that is not the one measured before: nothing may be added to those measurements."""


@dataclass(frozen=True)
class Carried:
    """The measurements of run *run_id* that have a value; gaps are measured again."""

    run_id: str
    inputs: Mapping[str, bytes]
    records: Mapping[Step, MeasurementRecord]
    trials: Mapping[int, Sequence[TrialRecord]]
    sessions: Mapping[str, Any]

    @classmethod
    def of(cls, folder: Path, prepared: PreparedStudy) -> Carried:
        """Return what the run in *folder* measured of *prepared*.

        Raises ConfigError, TestbedError naming what has changed.
        """
        run = read_run(folder)
        name = run.environment.run
        if (study := run.environment.study) != prepared.study.study:
            of = f"of study '{study}'" if study else "of no study"
            raise TestbedError(
                f"run '{name}' is {of}, and cannot go on as '{prepared.study.study}'; expected a run of that"
            )
        if apart := differences(run.environment.fingerprints, prepared.identity()):
            raise TestbedError(
                f"run '{name}' cannot be resumed: {'; '.join(apart)}; go on with its own options, or"
                " run the study again, without --resume"
            )
        kept = [record for record in run.measured if record.value is not None]
        known = {Step(record.block, record.turn, record.variant, record.row): record for record in kept}
        sessions = run.environment.extra.get(SESSIONS)
        return cls(name, run.inputs, known, run.trials_by_number, sessions if isinstance(sessions, Mapping) else {})

    def copy_to(self, recorder: Recorder) -> str:
        """Copy everything into *recorder*'s run; returns how much it was, in words."""
        folder = recorder.folder
        for named in self.inputs.items():
            folder.add_input(*named)
        for record in self.records.values():
            number = folder.next_requirement() if record.requirement else 0
            for trial in self.trials.get(record.requirement, ()):
                folder.add(replace(trial, run=folder.run_id, requirement=number))
            origin = record.carried_from or self.run_id
            folder.add(replace(record, run=folder.run_id, requirement=number, carried_from=origin))
        return counted(len(self.records), "measurement")


def check_versions(name: str, before: Mapping[str, Any], now: Mapping[str, str]) -> None:
    """Refuse a session *name* whose router or generator reports other versions *now* than in the session *before*.

    *before*: as an environment has it. Raises OtherTestbed naming both.
    """
    then = before.get("versions")
    then = {key: value for key, value in then.items() if key not in _STATES} if isinstance(then, Mapping) else {}
    if apart := differences(then, {key: value for key, value in now.items() if key not in _STATES}):
        raise OtherTestbed(
            f"{name} is not what was measured before: {'; '.join(apart)}; run the study again, without --resume"
        )
