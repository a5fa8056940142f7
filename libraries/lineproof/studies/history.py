"""The history of a run: what it has of earlier runs, and what was chosen after these were seen.

In sentences, of the environment's extra data and the records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..evidence.inputs import unpacked_inputs
from ..evidence.records import MeasurementRecord
from ..evidence.run import read_run
from ..units import counted
from .results import StudyResults, results_of
from .study import Published, Study, load_study, visits_of

BLOCKS = "blocks_changed"
"""Key of an environment's extra data: each time that a run was gone on with for another number of blocks."""

JUDGED = "judged_by_changed"
"""Key there: each time that a run was gone on with for another tolerance, or other published figures."""

GAPS_REPEATED = "gaps_repeated"
"""Key there: each gap of an earlier run that was measured again, with its reason."""


def history_of(records: Sequence[MeasurementRecord], extra: Mapping[str, Any]) -> tuple[str, ...]:
    """The sentences about the run of *records*, whose environment has *extra*."""
    carried = Counter(record.carried_from for record in records if record.carried_from)
    return (
        *history_words(extra),
        *(
            f"{number} of {counted(len(records), 'measurement')} carried over from run {run}."
            for run, number in carried.items()
        ),
    )


def history_words(extra: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what *extra* says of other numbers of blocks, tolerances, published figures, and gaps measured again."""
    gaps = Counter(str(gap.get("run")) for gap in _items(extra, GAPS_REPEATED))
    return (
        *map(_blocks_words, _items(extra, BLOCKS)),
        *map(_judged_words, _items(extra, JUDGED)),
        *(
            f"{counted(number, 'gap')} of run {run} measured again; that run has what was found wrong with them."
            for run, number in gaps.items()
        ),
    )


def _blocks_words(change: Mapping[str, Any]) -> str:
    before, now, read = (change.get(key) for key in ("from", "to", "read"))
    raised = isinstance(before, int) and isinstance(now, int) and now > before
    return (
        f"WARNING: blocks were {'raised' if raised else 'lowered'} from {before} to {now} after"
        f" {f'the first {read} were' if read != 1 else 'the first was'} read: 95 % no longer holds."
    )


def judged_changes(before: Study, now: Study) -> Iterator[dict[str, object]]:
    """Return what of *now* judges figures unlike *before*: keys of the tolerance, the published figures."""
    then, mine = (study.published or Published(rows={}) for study in (before, now))
    old, new = then.tolerance.model_dump(), mine.tolerance.model_dump()
    yield from ({"changed": key, "from": old[key], "to": new[key]} for key in new if old[key] != new[key])
    if then.rows != mine.rows:
        yield {"changed": "figures"}


def _judged_words(change: Mapping[str, Any]) -> str:
    key, before, now, read = (change.get(key) for key in ("changed", "from", "to", "read"))
    what = "published figures were" if key == "figures" else f"tolerance ('{key}') was"
    values = "" if key == "figures" else f" from {before} to {now}"
    return f"WARNING: the {what} changed{values} after {counted(read if isinstance(read, int) else 0, 'measurement')}."


def _items(extra: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    found = extra.get(key)
    return (item for item in (found if isinstance(found, list) else ()) if isinstance(item, Mapping))


def study_of_run(folder: Path) -> Study:
    """The study that the run in *folder* has kept. Raises ConfigError."""
    found = sorted(unpacked_inputs(folder).glob("*/studies/*.yaml"))
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
    run = read_run(folder)
    records, environment = run.measured, run.environment
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
