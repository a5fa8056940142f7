"""The study that a run's folder holds: its file, its number of blocks, and the results of its records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..evidence.inputs import unpacked_inputs
from ..evidence.run import RecordedRun, read_run
from ..units import counted
from .results import StudyResults, results_of
from .study import Study, load_study, steps_of

REPEATS = "repeats"
"""Key of an environment's extra data: the number of blocks."""


def study_of(run: RecordedRun) -> Study:
    """Return the study that *run* has kept, with its number of blocks. Raises ConfigError."""
    kept = sorted(unpacked_inputs(run).glob("*/studies/*.yaml"))
    if not kept:
        raise ConfigError("keeps no file of a study in its inputs; expected the folder of a study's run", run.path)
    repeats = run.environment.extra.get(REPEATS)
    study = load_study(kept[0])
    return study.model_copy(update={"repeats": repeats}) if isinstance(repeats, int) else study


def read_results(folder: Path) -> StudyResults:
    """Return what the run in *folder* found, closed or not. Raises ConfigError if it is no study's, or was altered."""
    run = read_run(folder)
    records, environment, study = run.measured, run.environment, study_of(run)
    carried = Counter(record.carried_from for record in records if record.carried_from)
    total = counted(len(records), "measurement")
    said = (f"{number} of {total} carried over from run {origin}." for origin, number in carried.items())
    return replace(
        results_of(study, records, len(steps_of(study))),
        run=environment.run,
        folder=folder,
        testbed=environment.testbed,
        machine=_machine_words(environment.host),
        history=tuple(said),
    )


def _machine_words(host: Mapping[str, Any]) -> str:
    """Return processor, number of CPUs, kernel and system of a record's *host*, as far as they are known."""
    cpus = host.get("cpus")
    parts = (
        host.get("cpu"),
        counted(cpus, "CPU") if isinstance(cpus, int) else "",
        f"kernel {host['kernel']}" if host.get("kernel") else "",
        host.get("system"),
    )
    return ", ".join(str(part) for part in parts if part)
