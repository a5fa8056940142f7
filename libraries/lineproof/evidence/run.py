"""The folder of one run: records appended as they happen, one manifest of sums at the end.

A line is on the disk when the call that wrote it returns, so a crash or a power cut loses nothing already measured.
Every line is chained to the one before (:mod:`.run_files`), and the environment has its own sum: a folder that was
never closed only lacks its manifest, and can be checked as well.

A run is named by its folder, a tag, or the beginning of its id. A tag is a file ``results/baselines/TAG`` with a line
for each run: the SHA-256 of its manifest and the manifest's path from ``results/``, as ``sha256sum --check`` reads
them. So it is always the same run that a tag names, or none.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from ..core.registry import is_installed
from ..errors import ConfigError, TestbedError, system_words
from ..files import append_line, is_folder, put_in_place, read_text, sync_folder, write_beside, write_whole
from ..simulation import simulation_signs
from ..visible import shortened
from .records import (
    EnvironmentRecord,
    InputRecord,
    Manifest,
    MarginRecord,
    MeasurementRecord,
    ReadingRecord,
    Record,
    RequirementRecord,
    TelemetryRecord,
    TrialRecord,
)
from .run_files import (
    ENVIRONMENT_FILE,
    INPUTS,
    LINES,
    MANIFEST_FILE,
    READINGS,
    RECORDS,
    REQUIREMENTS,
    RESULTS,
    TRIALS,
    Integrity,
    check_integrity,
    first_link,
    partial,
    sealed,
    sha256_of,
    sum_of_records,
    sums_of,
)

INSTEAD = "keep results elsewhere: robot --outputdir /another/folder, or --results /another/folder of a study"
"""The remedy where a run's folder cannot be written."""

STREAMS = "streams"
"""The folder among the inputs that has what the generator was told to send."""


def new_run_id(now: datetime) -> str:
    """Return a run's name: UTC to the second, then a random suffix. Sorts by time."""
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def execution_of(run: str) -> str:
    """Return the id of the execution of *run*: ``id`` of ``id``, ``id-2`` and so on; of another name, that name."""
    match = _RUN_ID.fullmatch(run)
    return match[1] if match else run


class RunFolder:
    """Writes one run's folder; :meth:`close` ends it."""

    def __init__(self, path: Path, run_id: str) -> None:
        self.path = path
        self.run_id = run_id
        self.requirements = 0
        """The number of the last requirement; 0 before the first."""
        link = first_link(run_id)
        self._ends = dict.fromkeys(RECORDS, (b"", link, link))
        """By file: the line that may or may not be written, and the link of the next one without it and with it."""
        self._inputs: set[str] = set()

    @classmethod
    def create(cls, results: Path, run_id: str) -> RunFolder:
        """Make ``results/run_id``, or ``run_id-2`` and so on if it exists, with empty files of records.

        The runs of an execution share an id. Raises TestbedError if the folder cannot be made.
        """
        path = results / run_id
        try:
            for number in count(2):
                # Allure may have made the first one already
                path.mkdir(parents=True, exist_ok=True)
                try:
                    (path / RECORDS[0]).touch(exist_ok=False)
                    break
                except FileExistsError:
                    path = results / f"{run_id}-{number}"
            for file in RECORDS[1:]:
                (path / file).touch(exist_ok=False)
            for folder in (path, results):
                sync_folder(folder)
        except OSError as error:
            raise TestbedError(
                f"the run's folder {path} cannot be made: {system_words(error, path, INSTEAD)}"
            ) from None
        return cls(path, path.name)

    def next_requirement(self) -> int:
        """Return the number of the next requirement of this run, from 1."""
        self.requirements += 1
        return self.requirements

    def add(self, record: Record) -> None:
        """Append *record* to the file of its kind. Raises TestbedError if it cannot be written."""
        self._append(next(name for name, kinds in LINES.items() if type(record) in kinds), record.to_json())

    def add_input(self, name: str, content: bytes) -> None:
        """Keep a file that defines the run, once, under *name*, which may have folders. Raises TestbedError."""
        if name not in self._inputs:
            text = coded = None
            try:
                text = content.decode()
            except UnicodeDecodeError:
                coded = base64.b64encode(content).decode()
            self.add(InputRecord(self.run_id, name, text, coded))
            self._inputs.add(name)

    def add_streams(self, streams: Mapping[str, object]) -> str:
        """Keep what a generator was told to send, once; returns its name among the inputs. Raises TestbedError."""
        content = json.dumps(streams, sort_keys=True).encode()
        name = f"{STREAMS}/{hashlib.sha256(content).hexdigest()[:16]}.json"
        self.add_input(name, content)
        return name

    def write_environment(self, record: EnvironmentRecord) -> None:
        """Write or replace ``environment.json``. Raises TestbedError."""
        path = self.path / ENVIRONMENT_FILE
        write_whole(path, single_line(record), INSTEAD, fresh=partial(path))

    def add_telemetry(self, requirement: int, moment: str, texts: Mapping[str, str]) -> None:
        """Keep what the router or a process said at a *moment*: *texts* by command. Raises TestbedError."""
        if texts:
            self.add(TelemetryRecord(self.run_id, requirement, moment, dict(texts)))

    def close(self, environment: EnvironmentRecord | None = None) -> str:
        """Write *environment*, if there is one, then the manifest; returns the sum of the run's records.

        Harmless when repeated: the same files give the same text. After further records, close again. Raises
        TestbedError.
        """
        manifest = self.path / MANIFEST_FILE
        # while it is there, the run is being closed: without it and without a manifest, the manifest was removed
        write_beside(partial(manifest), manifest, b"", INSTEAD)
        if environment is not None:
            self.write_environment(environment)
        sums = sums_of(self.path)
        write_beside(partial(manifest), manifest, single_line(Manifest(self.run_id, sums)), INSTEAD)
        put_in_place(partial(manifest), manifest, INSTEAD)
        return sum_of_records(sums)

    def _append(self, name: str, data: Mapping[str, Any]) -> None:
        """Append a line. An interrupt may come at any moment: whether a line was written then is seen at the next."""
        path, (begun, without, link) = self.path / name, self._ends[name]
        if begun and not _ends_with(path, begun):
            link = without
        line, following = sealed(data, link)
        self._ends[name] = line, link, following
        append_line(path, line, INSTEAD)
        self._ends[name] = b"", following, following


def _ends_with(path: Path, line: bytes) -> bool:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - len(line)))
        return file.read() == line


def single_line(record: EnvironmentRecord | Manifest) -> bytes:
    """Return *record* as the one line of its file, with its own sum."""
    return sealed(record.to_json(), first_link(record.run))[0]


@dataclass(frozen=True)
class RecordedRun:
    """Everything a run's folder holds. ``notes``: what is missing or incomplete, in words.

    ``results``: margins, characterisations, measurements of a study.
    """

    path: Path
    trials: tuple[TrialRecord, ...]
    requirements: tuple[RequirementRecord, ...]
    environment: EnvironmentRecord
    notes: tuple[str, ...] = ()
    readings: tuple[ReadingRecord, ...] = ()
    results: tuple[Record, ...] = ()
    kept: tuple[InputRecord, ...] = ()

    @property
    def measured(self) -> tuple[MeasurementRecord, ...]:
        """The measurements of a study. Raises ConfigError if it is no run of one."""
        if not self.environment.study:
            raise ConfigError("is no run of a study", self.path)
        return tuple(record for record in self.results if isinstance(record, MeasurementRecord))

    @cached_property
    def margins(self) -> Mapping[int, MarginRecord]:
        """The searches for margins, by the number of their own trials."""
        return {record.number: record for record in self.results if isinstance(record, MarginRecord)}

    @cached_property
    def trials_by_number(self) -> Mapping[int, Sequence[TrialRecord]]:
        """The trials of each sentence or traffic, warm-ups too, by its number."""
        return _by_number(self.trials)

    @cached_property
    def readings_by_number(self) -> Mapping[int, Sequence[ReadingRecord]]:
        """The readings of the router of each sentence, by its number."""
        return _by_number(self.readings)

    @cached_property
    def inputs(self) -> Mapping[str, bytes]:
        """The files that define the run, and what was sent, by name."""
        return {record.name: record.content for record in self.kept}

    @property
    def testbed_kinds(self) -> frozenset[str]:
        """The kinds that its files of testbeds name."""
        texts = [content.decode(errors="replace") for name, content in self.inputs.items() if "/testbeds/" in name]
        return frozenset(kind for text in texts for kind in re.findall(r"(?m)^kind:\s*[\"']?(\w+)", text))

    @property
    def simulated(self) -> bool:
        """One sign says so: a record, a clock, versions, the kind of the testbed whose file is kept."""
        known = self.environment
        return (
            any(record.simulated for record in (known, *self.trials, *self.requirements))
            or known.clock_speed != 1
            or bool(known.simulated_because or simulation_signs(known.versions))
            or "simulated" in self.testbed_kinds
        )


N = TypeVar("N", TrialRecord, ReadingRecord)


def _by_number(records: Iterable[N]) -> dict[int, list[N]]:
    by_number: dict[int, list[N]] = {}
    for record in records:
        by_number.setdefault(record.requirement, []).append(record)
    return by_number


def read_run(folder: Path) -> RecordedRun:
    """Read a run's folder, closed or not, that is as the run left it.

    A last line that a crash cut off is left out and noted. Raises ConfigError naming file and line of what was
    altered, added or removed since, and of any other error.
    """
    return recorded_run(check_integrity(folder))


def recorded_run(state: Integrity) -> RecordedRun:
    """Return the run that was checked, as :func:`read_run`."""
    state.refuse_altered()
    records, misfits = state.parsed()
    for first in misfits:
        raise ConfigError(first.finding, state.path / first.file, first.line)
    if not records[ENVIRONMENT_FILE]:
        # it is written before any record: a run that was killed before it has measured nothing
        raise ConfigError(f"has no {ENVIRONMENT_FILE}, which says what was tested", state.path)
    trials = _by_number(records[TRIALS])
    for number in {record.number for record in records[REQUIREMENTS]} & trials.keys():
        counts = [record.trial.outcome.directions for record in trials[number]]
        if len({tuple((row.tx_port, row.rx_port) for row in directions) for directions in counts}) > 1:
            raise ConfigError(f"the trials of sentence {number} have different directions", state.path / TRIALS)
    notes = [
        f"'{record.sentence}' has no figures: its quantity '{record.quantity}' is not installed"
        for record in records[REQUIREMENTS]
        if not is_installed(record.quantity)
    ]
    return RecordedRun(
        state.path,
        records[TRIALS],
        records[REQUIREMENTS],
        records[ENVIRONMENT_FILE][0],
        (*state.notes, *notes),
        records[READINGS],
        records[RESULTS],
        records[INPUTS],
    )


# -- names of runs -----------------------------------------------------------------------------------------------------


BASELINES = "baselines"
"""The folder of the tags, in the folder of results."""

_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
_RUN_ID = re.compile(r"(\d{8}T\d{6}Z-[0-9a-f]{6})(?:-(\d{1,6}))?")
_LINE = re.compile(rf"([0-9a-f]{{64}})  (\w[^/\n]*)/{re.escape(MANIFEST_FILE)}")


def find_one_run(name: str, beside: Path | None = None, having: str = REQUIREMENTS) -> Path:
    """Return the run that *name* stands for, as :func:`find_runs`. Raises ConfigError, also if there are several."""
    runs = find_runs(name, beside, having)
    if len(runs) != 1:
        listed = ", ".join(path.name for path in runs)
        raise ConfigError(f"'{shortened(name)}' stands for {len(runs)} runs ({listed}); expected the id of one")
    return runs[0]


def find_runs(name: str, beside: Path | None = None, having: str = REQUIREMENTS) -> tuple[Path, ...]:
    """Return the folders of the runs that *name* stands for; *beside*: the folder of results to look in first.

    A folder is the run in it, or, if it is a folder of results, the runs of its newest execution that has ended and
    whose file *having* is not empty in one of them; without such a one, of its newest. Else a tag, also one in a folder
    of results beside those; else the beginning of the ids of one execution's runs. Raises ConfigError.
    """
    path = Path(name)
    if is_folder(path):
        executions = _executions(path)
        ended = [run for run, runs in executions.items() if _has_ended(runs, having)]
        return executions[max(ended or executions)] if executions else (path,)
    if path.parent.name == BASELINES and path.is_file():
        return _tagged(path)
    places = [place for place in (beside, Path("results")) if place is not None and is_folder(place)]
    for place in places if _TAG.fullmatch(name) else ():
        if os.path.lexists(place / BASELINES / name):
            return _tagged(place / BASELINES / name)
        begun = [runs for run, runs in _executions(place).items() if run.startswith(name)]
        if len(begun) > 1:
            raise ConfigError(f"{len(begun)} executions in {place} begin with '{name}'; expected more of the id")
        if begun:
            return begun[0]
        if _RUN_ID.fullmatch(name) and is_folder(place / name):
            return (place / name,)
        # the folders of results of a CI's pipelines lie side by side
        if len(tags := [*place.resolve().parent.glob(f"*/{BASELINES}/{name}")]) == 1:
            return _tagged(tags[0])
    where = " and ".join(map(str, places)) or "results (there is none here)"
    expected = "the folder of a run, the beginning of its id, or a tag that 'lineproof gate RUN --tag NAME' gave"
    problem = f"'{shortened(name)}' is no run, no tag and no beginning of a run's id in {where}"
    raise ConfigError(f"{problem}; expected {expected}")


def tag_runs(name: str, runs: Sequence[Path]) -> Path:
    """Give the closed *runs* of one folder of results the tag *name*; an earlier one is replaced. Returns its file.

    Raises ConfigError, TestbedError.
    """
    folders = {run.resolve().parent for run in runs}
    if len(folders) != 1:
        raise ConfigError(f"the runs of tag '{name}' are in {len(folders)} folders; expected one folder of results")
    path = folders.pop() / BASELINES / check_tag(name)
    lines = [f"{sha256_of(run / MANIFEST_FILE)}  {run.resolve().name}/{MANIFEST_FILE}\n" for run in runs]
    write_whole(path, "".join(lines))
    return path


def check_tag(name: str) -> str:
    """Return *name*, if a tag can have it. Raises ConfigError."""
    if not _TAG.fullmatch(name) or _RUN_ID.fullmatch(name):
        raise ConfigError(
            f"'{shortened(name)}' cannot be a tag; expected letters, digits, dots, hyphens, as 'release-24.03'"
        )
    return name


def _executions(results: Path) -> dict[str, tuple[Path, ...]]:
    """Return run id -> the runs of that execution: ``id``, ``id-2`` and so on."""
    executions: dict[str, list[tuple[int, Path]]] = {}
    for path in results.glob("*"):
        if (match := _RUN_ID.fullmatch(path.name)) and is_folder(path):
            executions.setdefault(match[1], []).append((int(match[2] or 1), path))
    return {run: tuple(path for _, path in sorted(paths)) for run, paths in executions.items()}


def _has_ended(runs: Sequence[Path], having: str) -> bool:
    is_closed = all((run / MANIFEST_FILE).is_file() for run in runs)
    return is_closed and any((run / having).is_file() and (run / having).stat().st_size for run in runs)


def _tagged(path: Path) -> tuple[Path, ...]:
    """Return the runs of the tag that is the file *path*, if they are those that were tagged."""
    results, runs = path.parents[1], []
    for number, line in enumerate(read_text(path, 64 << 10).splitlines() or [""], 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise ConfigError("is no line of a tag; expected a SHA-256 and RUN/manifest.json", path, number)
        run = results / match[2]
        if not is_folder(run) or sha256_of(run / MANIFEST_FILE) != match[1]:
            gone = "which was moved, altered or replaced; put the folder back as it was, or tag another run"
            raise ConfigError(f"names {run}, {gone}", path, number)
        runs.append(run)
    return tuple(runs)
