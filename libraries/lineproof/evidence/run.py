"""The folder of one run: records appended as they happen, SHA-256 sums at the end.

A line is on the disk when the call that wrote it returns, so a crash or a power cut loses nothing already measured.
Every line is chained to the one before (:mod:`.chain`), and ``files.jsonl`` has the sum of every other file before it
takes its name: a folder that was never closed only lacks its manifest, and can be checked as well.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from ..config import read_yaml
from ..core.registry import is_installed
from ..errors import ConfigError, TestbedError, system_words
from ..files import append_line, put_in_place, read_file, sync_folder, write_beside
from ..simulation.habits import simulation_signs
from .chain import first_link, sealed
from .integrity import Integrity, check_integrity, sums_content
from .records import (
    FILE_ENDING,
    SIMULATED_BECAUSE,
    EnvironmentRecord,
    FileRecord,
    Manifest,
    MarginRecord,
    MeasurementRecord,
    ReadingRecord,
    Record,
    RequirementRecord,
    TrialRecord,
    json_bytes,
)
from .run_files import (
    CHAINED,
    CHARACTERISATION,
    ENVIRONMENT_FILE,
    FILES,
    INPUTS,
    MANIFEST_FILE,
    MEASUREMENTS,
    READINGS,
    RECORDS,
    REQUIREMENTS,
    STREAMS,
    SUMS,
    TELEMETRY,
    TRIALS,
    partial,
    sha256_of,
    summed_files,
)
from .started_as import elsewhere

R = TypeVar("R", bound=Record)

LINES: Mapping[str, type[Record]] = {
    TRIALS: TrialRecord,
    READINGS: ReadingRecord,
    REQUIREMENTS: RequirementRecord,
    FILES: FileRecord,
    MEASUREMENTS: MeasurementRecord,
}
"""File of records -> their kind."""


def new_run_id(now: datetime) -> str:
    """A run's name: UTC to the second, then a random suffix. Sorts by time. *now* needs a time zone."""
    if now.tzinfo is None:
        raise ValueError("a run id needs a time with a time zone, as datetime.now(UTC)")
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


@dataclass(frozen=True, slots=True)
class _Chain:
    """Where a file of records ends: the ``link`` that its next line carries, and its ``size`` in bytes."""

    link: str
    size: int = 0


class RunFolder:
    """Writes one run's folder. Use as a context manager, or call :meth:`close`.

    *instead*: what to do where it cannot be written.
    """

    def __init__(self, path: Path, run_id: str, instead: str = "") -> None:
        self.path = path
        self.run_id = run_id
        self._instead = instead or elsewhere()
        self._requirements = 0
        self._chains = dict.fromkeys(CHAINED, _Chain(first_link(run_id)))
        self._begun: dict[str, tuple[bytes, _Chain]] = {}

    @classmethod
    def create(cls, results: Path, run_id: str, files: Sequence[str] = RECORDS, instead: str = "") -> RunFolder:
        """Make ``results/run_id``, or ``run_id-2`` and so on if it exists, with empty *files* of records.

        The runs of an execution share an id. Raises TestbedError if the folder cannot be made.
        """
        number, path = 1, results / run_id
        try:
            while True:
                try:
                    (path / TELEMETRY).mkdir(parents=True)
                    break
                except FileExistsError:
                    if not path.exists():  # it is the folder of results that is none
                        raise
                    number += 1
                    path = results / f"{run_id}-{number}"
            for file in files:
                (path / file).touch(exist_ok=False)
            for folder in (path, results):
                sync_folder(folder)
        except OSError as error:
            raise TestbedError(
                f"the run's folder {path} cannot be made: {system_words(error, path, instead or elsewhere())}"
            ) from None
        return cls(path, path.name, instead)

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def next_requirement(self) -> int:
        """The number of the next requirement of this run, from 1."""
        self._requirements += 1
        return self._requirements

    def add(self, record: Record) -> None:
        """Append *record* to the file of its kind. Raises TestbedError if it cannot be written."""
        self._append(next(file for file, kind in LINES.items() if type(record) is kind), record.to_json())

    def add_input(self, name: str, content: bytes) -> None:
        """Keep a file that defines the run, as ``inputs/NAME``; *name* may have folders. Raises TestbedError."""
        self._replace(f"{INPUTS}/{name}", content)

    def add_streams(self, streams: Mapping[str, object]) -> str:
        """Keep what a generator was told to send, once; returns the file's name. Raises TestbedError."""
        content = json.dumps(streams, sort_keys=True).encode()
        name = f"{STREAMS}/{hashlib.sha256(content).hexdigest()[:16]}.json.gz"
        if not (self.path / name).exists():
            self._replace(name, gzip.compress(content, mtime=0))
        return name

    def copy_missing(self, other: Path) -> None:
        """Copy inputs and streams that the run in *other* has and this one lacks. Raises TestbedError."""
        for path in sorted(item for folder in (INPUTS, STREAMS) for item in (other / folder).rglob("*")):
            name = path.relative_to(other).as_posix()
            if path.is_file() and not (self.path / name).exists():
                self._replace(name, path.read_bytes())

    def write_environment(self, record: EnvironmentRecord) -> None:
        """Write or replace ``environment.json``."""
        self._replace(ENVIRONMENT_FILE, json.dumps(record.to_json(), indent=2, ensure_ascii=False, allow_nan=False))

    def add_telemetry(self, requirement: int, name: str, text: str) -> Path:
        """Keep the router's output, as ``telemetry/003-show-runtime.txt``; a second text of a name gets a number."""
        stem = f"{requirement:03d}-{_slug(name) or 'text'}"
        taken = {path.stem for path in (self.path / TELEMETRY).glob("*")}
        free, count = stem, 1
        while free in taken:
            count += 1
            free = f"{stem}-{count}"
        self._replace(f"{TELEMETRY}/{free}.txt", text)
        return self.path / TELEMETRY / f"{free}.txt"

    def add_result(self, requirement: int, name: str, text: str) -> Path:
        """Keep a characterisation's result, as ``characterisation/003-search.json``; *name* with its ending."""
        stem, _, ending = name.rpartition(".")
        file = f"{CHARACTERISATION}/{requirement:03d}-{_slug(stem) or 'result'}.{ending}"
        self._replace(file, text)
        return self.path / file

    def close(self, environment: EnvironmentRecord | None = None) -> str:
        """Write *environment*, if there is one, then the manifest of all files; returns its SHA-256.

        Harmless when repeated: the same files give the same text. After further records, close again. Raises
        TestbedError.
        """
        manifest, sums = self.path / MANIFEST_FILE, self.path / SUMS
        # while it is there, the run is being closed: without it and without a manifest, the manifest was removed
        write_beside(partial(manifest), manifest, b"", self._instead)
        if environment is not None:
            self.write_environment(environment)
        listed = {name: sha256_of(self.path / name) for name in summed_files(self.path)}
        data = Manifest(self.run_id, "sha256", listed).to_json()
        content = json_bytes(json.dumps(data, indent=2, ensure_ascii=False))
        write_beside(partial(manifest), manifest, content, self._instead)
        digest = hashlib.sha256(content).hexdigest()
        write_beside(partial(sums), sums, sums_content(listed, digest), self._instead)
        put_in_place(partial(sums), sums, self._instead)
        put_in_place(partial(manifest), manifest, self._instead)
        return digest

    def _append(self, name: str, data: Mapping[str, Any]) -> None:
        """Append a line. An interrupt may come at any moment: what was written then is seen at the next line."""
        chain = self._after_interrupt(name)
        line, link = sealed(data, chain.link)
        self._begun[name] = line, _Chain(link, chain.size + len(line))
        append_line(self.path / name, line, self._instead)
        self._after_interrupt(name)

    def _after_interrupt(self, name: str) -> _Chain:
        """Where the file ends: after the line that was begun last, if that is in it."""
        if name in self._begun:
            line, chain = self._begun[name]
            with (self.path / name).open("rb") as file:
                file.seek(self._chains[name].size)
                if file.read(len(line) + 1) == line:
                    self._chains[name] = chain
        return self._chains[name]

    def _replace(self, name: str, text: str | bytes) -> None:
        path, content = self.path / name, json_bytes(text) if isinstance(text, str) else text
        fresh, before = partial(path), self._after_interrupt(FILES)
        record = FileRecord(self.run_id, name, len(content), hashlib.sha256(content).hexdigest())
        try:
            write_beside(fresh, path, content, self._instead)
            self.add(record)
            put_in_place(fresh, path, self._instead)
        except BaseException:  # an interrupt, too: the list of files and the folder must agree
            if self._after_interrupt(FILES) != before and fresh.exists():
                put_in_place(fresh, path, self._instead)
            fresh.unlink(missing_ok=True)
            raise


@dataclass(frozen=True)
class RecordedRun:
    """Everything a run's folder holds. ``notes``: what is missing or incomplete, in words.

    ``margins``: the searches for margins, by the number of their own trials. ``measurements``: None: it is no study's.
    """

    path: Path
    trials: tuple[TrialRecord, ...]
    requirements: tuple[RequirementRecord, ...]
    environment: EnvironmentRecord | None
    notes: tuple[str, ...] = ()
    readings: tuple[ReadingRecord, ...] = ()
    margins: Mapping[int, MarginRecord] = field(default_factory=dict)
    measurements: tuple[MeasurementRecord, ...] | None = None

    @property
    def measured(self) -> tuple[MeasurementRecord, ...]:
        """The measurements of a study. Raises ConfigError if it is no run of one."""
        if self.measurements is None:
            raise ConfigError("is no run of a study: it has no measurements.jsonl", self.path)
        return self.measurements

    @cached_property
    def trials_by_number(self) -> Mapping[int, Sequence[TrialRecord]]:
        """The trials of each sentence or traffic, warm-ups too, by its number."""
        return _by_number(self.trials)

    @cached_property
    def readings_by_number(self) -> Mapping[int, Sequence[ReadingRecord]]:
        """The readings of the router of each sentence, by its number."""
        return _by_number(self.readings)

    @property
    def simulated(self) -> bool:
        """Return whether one sign says so: a record, a clock, versions, the kind of the testbed whose file is kept."""
        known = self.environment
        timed: tuple[EnvironmentRecord | TrialRecord, ...] = (*filter(None, (known,)), *self.trials)
        return (
            any(record.simulated or record.clock_speed != 1 for record in timed)
            or any(record.simulated for record in self.requirements)
            or (known is not None and bool(known.extra.get(SIMULATED_BECAUSE) or simulation_signs(known.versions)))
            or any(map(_is_simulated, self.path.glob(f"{INPUTS}/*/testbeds/*.yaml")))
        )


N = TypeVar("N", TrialRecord, ReadingRecord)


def _by_number(records: Sequence[N]) -> dict[int, list[N]]:
    found: dict[int, list[N]] = {}
    for record in records:
        found.setdefault(record.requirement, []).append(record)
    return found


def _is_simulated(testbed: Path) -> bool:
    """Return whether the file *testbed* says that it is of ``kind: simulated``."""
    with contextlib.suppress(ConfigError):
        data, _ = read_yaml(testbed)
        return isinstance(data, dict) and data.get("kind") == "simulated"
    return False


def read_run(folder: Path) -> RecordedRun:
    """Read a run's folder, closed or not, that is as the run left it.

    A last line that a crash cut off is left out and noted. Raises ConfigError naming file and line of what was
    altered, added or removed since, and of any other error.
    """
    return recorded_run(check_integrity(folder))


def recorded_run(found: Integrity) -> RecordedRun:
    """The run that was *found*, as :func:`read_run`."""
    found.refuse_altered()
    folder = found.path
    trials = _records(folder / TRIALS, found.lines[TRIALS], TrialRecord)
    readings = _records(folder / READINGS, found.lines[READINGS], ReadingRecord)
    requirements = _records(folder / REQUIREMENTS, found.lines[REQUIREMENTS], RequirementRecord)
    environment, notes = None, found.notes
    path = folder / ENVIRONMENT_FILE
    if path.exists():
        try:
            environment = EnvironmentRecord.from_json(read_file(path))
        except ValueError as error:
            raise ConfigError(f"is no record of a run's environment: {error}", path) from None
    else:
        notes = (*notes, f"{ENVIRONMENT_FILE} is missing: versions and host are not known")
    notes += tuple(
        f"'{record.sentence}' has no figures: its quantity '{record.quantity}' is not installed"
        for record in requirements
        if not is_installed(record.quantity)
    )
    measurements = None
    if (folder / MEASUREMENTS).is_file():
        measurements = _records(folder / MEASUREMENTS, found.lines[MEASUREMENTS], MeasurementRecord)
    margins = dict(_margins(folder))
    return RecordedRun(folder, trials, requirements, environment, notes, readings, margins, measurements)


def _margins(folder: Path) -> Iterator[tuple[int, MarginRecord]]:
    for path in sorted((folder / CHARACTERISATION).glob(f"*{FILE_ENDING}")):
        try:
            yield int(path.name.partition("-")[0]), MarginRecord.from_json(read_file(path))
        except ValueError as error:
            raise ConfigError(f"is no record of a margin: {error}", path) from None


def _records(path: Path, lines: Sequence[bytes], kind: type[R]) -> tuple[R, ...]:
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(kind.from_json(line))
        except ValueError as error:
            raise ConfigError(f"is no record: {error}", path, number) from None
    return tuple(found)


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:80]
