"""Runs of a small study that nothing was measured in: their folders, as a real one leaves them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from lineproof.evidence.recorder import Recorder
from lineproof.evidence.run_files import CHAINED
from lineproof.project import Project
from lineproof.studies.carrying import SESSIONS, Carried
from lineproof.studies.preparing import PreparedStudy, prepare_study
from lineproof.studies.runner import StudyRun
from support.evidence_builders import RUN
from support.study_builders import SMALL, measurements

VERSIONS = {"generator.server": "v3.08", "router.version": "v26.10", "router.rx placement": "one queue"}
NAME = "netgate6100, vpp"


def prepared_in(folder: Path, repeats: int | None = None, text: str = SMALL) -> PreparedStudy:
    path = folder / "variables" / "studies" / "small.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return prepare_study(Project(folder), "small", "simulated", "quick", repeats)


def kept(
    prepared: PreparedStudy, folder: Path, values: tuple[float | None, ...] = (33.4, 33.6), **changed: Any
) -> Carried:
    """The run RUN of *prepared* with *values* of the baseline, as the next one finds it. *changed*: its environment."""
    run = StudyRun(prepared, folder)
    environment = run._environment(RUN)
    sessions = {SESSIONS: {NAME: {"versions": VERSIONS, "configuration": {}}}}
    extra = {**environment.extra, **sessions, **changed.pop("extra", {})}
    changed = {key: {**getattr(environment, key), **value} for key, value in changed.items()}
    recorder = Recorder(folder, RUN, replace(environment, extra=extra, **changed), CHAINED)
    run._recorder = recorder
    run._keep_inputs()
    for record in measurements(prepared.study, {"vpp": values}):
        recorder.folder.add_measurement(replace(record, run=RUN, requirement=0))
    recorder.close()
    return Carried.of(folder / RUN, prepared)
