"""The folder of one run: records appended as they happen, one manifest of sums at the end.

A line is on the disk when the call that wrote it returns, so a crash or a power cut loses nothing already measured.
Every line is chained to the one before (:mod:`.chain`), and the environment has its own sum: a folder that was never
closed only lacks its manifest, and can be checked as well.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from ..config import parse_yaml
from ..core.registry import is_installed
from ..errors import ConfigError, TestbedError, in_words, system_words
from ..files import append_line, put_in_place, read_file, sync_folder, write_beside, write_whole
from ..simulation.habits import simulation_signs
from ..visible import shortened
from .chain import first_link, sealed
from .integrity import Integrity, check_integrity, read_manifest
from .records import (
    SIMULATED_BECAUSE,
    CharacterisationRecord,
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
    UnderLoadRecord,
)
from .run_files import (
    CHAINED,
    ENVIRONMENT_FILE,
    INPUTS,
    MANIFEST_FILE,
    MEASUREMENTS,
    PAGE,
    READINGS,
    RECORDS,
    REQUIREMENTS,
    RESULTS,
    TELEMETRY,
    TRIALS,
    derived_sums,
    partial,
    sum_of_records,
    sums_of,
)

LINES: Mapping[str, tuple[type[Record], ...]] = {
    TRIALS: (TrialRecord,),
    READINGS: (ReadingRecord,),
    REQUIREMENTS: (RequirementRecord,),
    RESULTS: (CharacterisationRecord, MarginRecord, UnderLoadRecord),
    INPUTS: (InputRecord,),
    TELEMETRY: (TelemetryRecord,),
    MEASUREMENTS: (MeasurementRecord,),
    ENVIRONMENT_FILE: (EnvironmentRecord,),
    MANIFEST_FILE: (Manifest,),
}
"""File of a run -> the kinds of its lines."""

INSTEAD = "keep results elsewhere: -v RESULTS:/another/folder, or --results /another/folder of a study"
"""What to do where a run's folder cannot be written."""

STREAMS = "streams"
"""Of the names of inputs, the folder of what the generator was told to send."""
_INPUT_NAME = re.compile(rf"(?:variables|packaged|calibrations|files|programs|{STREAMS})(?:/[^/\0]{{1,255}}){{1,8}}")

_LARGEST_TESTBED = 1 << 20
"""Bytes."""


def new_run_id(now: datetime) -> str:
    """A run's name: UTC to the second, then a random suffix. Sorts by time."""
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


@dataclass(frozen=True, slots=True)
class _Chain:
    """Where a file of records ends: the ``link`` that its next line carries, and its ``size`` in bytes."""

    link: str
    size: int = 0


class RunFolder:
    """Writes one run's folder. Use as a context manager, or call :meth:`close`."""

    def __init__(self, path: Path, run_id: str) -> None:
        self.path = path
        self.run_id = run_id
        self._requirements = 0
        self._chains = dict.fromkeys(CHAINED, _Chain(first_link(run_id)))
        self._begun: dict[str, tuple[bytes, _Chain]] = {}
        self._inputs: set[str] = set()

    @classmethod
    def create(cls, results: Path, run_id: str, files: Sequence[str] = RECORDS) -> RunFolder:
        """Make ``results/run_id``, or ``run_id-2`` and so on if it exists, with empty *files* of records.

        The runs of an execution share an id. Raises TestbedError if the folder cannot be made.
        """
        number, path = 1, results / run_id
        try:
            results.mkdir(parents=True, exist_ok=True)
            while True:
                # Allure may have made the first one already
                with contextlib.suppress(FileExistsError):
                    path.mkdir()
                try:
                    (path / files[0]).touch(exist_ok=False)
                    break
                except FileExistsError:
                    number += 1
                    path = results / f"{run_id}-{number}"
            for file in files[1:]:
                (path / file).touch(exist_ok=False)
            for folder in (path, results):
                sync_folder(folder)
        except OSError as error:
            raise TestbedError(
                f"the run's folder {path} cannot be made: {system_words(error, path, INSTEAD)}"
            ) from None
        return cls(path, path.name)

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

    def copy_missing(self, other: Path) -> None:
        """Copy the inputs that the run in *other* has and this one lacks. Raises ConfigError, TestbedError."""
        for name, content in read_inputs(other).items():
            self.add_input(name, content)

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
        """Append a line. An interrupt may come at any moment: what was written then is seen at the next line."""
        chain, path = self._after_interrupt(name), self.path / name
        line, link = sealed(data, chain.link)
        self._begun[name] = line, _Chain(link, chain.size + len(line))
        append_line(path, line, INSTEAD)
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


def single_line(record: EnvironmentRecord | Manifest) -> bytes:
    """Return *record* as the one line of its file, with its own sum."""
    return sealed(record.to_json(), first_link(record.run))[0]


def seal_derived(folder: Path) -> None:
    """Add the sums of what the execution derived in *folder*, of its first run, if that was closed, to its manifest.

    Raises ConfigError, TestbedError.
    """
    path = folder / MANIFEST_FILE
    if path.is_file() and (found := read_manifest(path)):
        # what a kill leaves of it is named as what is derived, which is no part of the run
        write_whole(path, single_line(replace(found, derived=derived_sums(folder))), fresh=partial(folder / PAGE))


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
            or any(testbed_kind(*named) == "simulated" for named in read_inputs(self.path).items())
        )


N = TypeVar("N", TrialRecord, ReadingRecord)


def _by_number(records: Sequence[N]) -> dict[int, list[N]]:
    found: dict[int, list[N]] = {}
    for record in records:
        found.setdefault(record.requirement, []).append(record)
    return found


def testbed_kind(name: str, content: bytes) -> str:
    """Return the kind of testbed that the input *name* describes; "" if it is no testbed's file."""
    if "/testbeds/" not in name or len(content) > _LARGEST_TESTBED:
        return ""
    with contextlib.suppress(ConfigError):
        data, _ = parse_yaml(content.decode(errors="replace"), Path(name))
        return str(data.get("kind") or "") if isinstance(data, dict) else ""
    return ""


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
    trials = _records(folder / TRIALS, found.lines[TRIALS])
    readings = _records(folder / READINGS, found.lines[READINGS])
    requirements = _records(folder / REQUIREMENTS, found.lines[REQUIREMENTS])
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
        measurements = _records(folder / MEASUREMENTS, found.lines[MEASUREMENTS])
    results = _records(folder / RESULTS, found.lines[RESULTS])
    margins = {item.number: item for item in results if isinstance(item, MarginRecord)}
    return RecordedRun(folder, trials, requirements, environment, notes, readings, margins, measurements)


def methods_of(folder: Path) -> tuple[str, ...]:
    """The methods of the characterisations of the run in *folder*, which :func:`read_run` has read."""
    lines = read_lines(folder / RESULTS)
    return tuple(item.method for item in _records(folder / RESULTS, lines) if isinstance(item, CharacterisationRecord))


def read_inputs(folder: Path) -> dict[str, bytes]:
    """The files that define the run in *folder*, and what was sent, by name. Raises ConfigError."""
    path, found = folder / INPUTS, {}
    records: tuple[InputRecord, ...] = _records(path, read_lines(path))
    for record in records:
        name = record.name
        try:
            if not _INPUT_NAME.fullmatch(name) or {".", ".."} & {*name.split("/")}:
                raise ValueError("it is no path within the inputs")
            if (record.text is None) == (record.base64 is None):
                raise ValueError("expected either text or base64")
            text, coded = record.text, record.base64 or ""
            found[name] = base64.b64decode(coded, validate=True) if text is None else text.encode()
        except ValueError as error:
            words = f"has an input '{shortened(name)}' that cannot be read: {in_words(error)}"
            raise ConfigError(words, path) from None
    return found


def read_lines(path: Path) -> list[bytes]:
    """The whole lines of *path*; none without it. Raises ConfigError."""
    return read_file(path).split(b"\n")[:-1] if path.is_file() else []


def kind_of(line: bytes, name: str) -> type[Record]:
    """Return the kind that *line* of the file *name* must be: the one whose schema it begins with, or the first one."""
    kinds = LINES[name]
    return next((kind for kind in kinds if line.startswith(f'{{"schema": "{kind.schema}"'.encode())), kinds[0])


def _records(path: Path, lines: Sequence[bytes]) -> tuple[Any, ...]:
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(kind_of(line, path.name).from_json(line))
        except ValueError as error:
            raise ConfigError(f"is no record: {error}", path, number) from None
    return tuple(found)
