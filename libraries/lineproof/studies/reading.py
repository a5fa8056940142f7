"""The results of a run's folder: its study is the copy that it keeps, so that a report needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..evidence.run import read_measurements, read_run
from ..evidence.run_files import INPUTS
from ..units import counted
from .history import history_of
from .order import visits_of
from .results import StudyResults, results_of
from .study import Study, load_study


def study_of_run(folder: Path) -> Study:
    """The study that the run in *folder* has kept. Raises ConfigError."""
    found = sorted((folder / INPUTS).glob("*/studies/*.yaml"))
    if not found:
        raise ConfigError("keeps no file of a study in its inputs; expected the folder of a study's run", folder)
    return load_study(found[0])


def repeats_of_run(folder: Path) -> int | None:
    """How many blocks the run in *folder* was to have; None: it does not say. Raises ConfigError."""
    environment = read_run(folder).environment
    found = environment.extra.get("repeats") if environment is not None else None
    return found if isinstance(found, int) else None


def read_results(folder: Path) -> StudyResults:
    """Return what the run in *folder* found, closed or not. Raises ConfigError if it is no study's, or was altered."""
    records = read_measurements(folder)
    environment = read_run(folder).environment
    study = study_of_run(folder)
    if environment is not None and isinstance(repeats := environment.extra.get("repeats"), int):
        study = study.model_copy(update={"repeats": repeats})
    planned = sum(len(visit.rows) for visit in visits_of(study))
    name, testbed = (environment.run, environment.testbed) if environment else (folder.name, "")
    machine = machine_words(environment.host) if environment else ""
    found = results_of(study, records, run=name, folder=folder, testbed=testbed, planned=planned, machine=machine)
    return replace(found, history=history_of(records, environment.extra if environment else {}))


def machine_words(host: Mapping[str, Any]) -> str:
    """Processor, number of CPUs, kernel and system of a record's *host*, as far as they are known."""
    cpus = host.get("cpus")
    parts = (
        host.get("cpu"),
        counted(cpus, "CPU") if isinstance(cpus, int) else "",
        f"kernel {host['kernel']}" if host.get("kernel") else "",
        host.get("system"),
    )
    return ", ".join(str(part) for part in parts if part)
