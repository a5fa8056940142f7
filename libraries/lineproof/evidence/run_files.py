"""The files of a run's folder: names, records, sums, chains; and is a folder as the run left it?

Each line carries the SHA-256 of itself and that of the line before. It ends with ``, "previous": "…", "sha256": "…"}``.
``sha256`` is that of the line's bytes up to ``, "sha256"``, so that it covers ``previous``, which is the ``sha256`` of
the line before; of the first line, the SHA-256 of the run's id. A line that was edited is found by itself; one that was
removed, added or moved by the next.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..files import read_file
from ..json_text import parse_json
from . import records
from .records import Manifest

TRIALS = "trials.jsonl"
READINGS = "readings.jsonl"
REQUIREMENTS = "requirements.jsonl"
RESULTS = "results.jsonl"
INPUTS = "inputs.jsonl"
TELEMETRY = "telemetry.jsonl"
RECORDS = (TRIALS, READINGS, REQUIREMENTS, RESULTS, INPUTS, TELEMETRY)
"""Files of one record in each line, chained. Every run has all of them from its beginning."""

ENVIRONMENT_FILE = "environment.json"
"""One line with its own sum, like a first line of :data:`RECORDS`; it is replaced as a whole."""
MANIFEST_FILE = "manifest.json"
"""The same, with the sums of all others."""

LINES: Mapping[str, tuple[type[records.Record], ...]] = {
    TRIALS: (records.TrialRecord,),
    READINGS: (records.ReadingRecord,),
    REQUIREMENTS: (records.RequirementRecord,),
    RESULTS: (records.CharacterisationRecord, records.MarginRecord, records.MeasurementRecord),
    INPUTS: (records.InputRecord,),
    TELEMETRY: (records.TelemetryRecord,),
    ENVIRONMENT_FILE: (records.EnvironmentRecord,),
    MANIFEST_FILE: (Manifest,),
}
"""All that belongs to a run, which has no folders -> the kinds of its lines."""
KINDS = tuple(kind for kinds in LINES.values() for kind in kinds)

ALLURE = "allure"
PAGE = "summary.html"
"""In the folder of the execution's first run: the table of the sentences of all its runs."""
STUDY_PAGE = "study.html"
"""The results of a study."""

SIGNATURE = f"{MANIFEST_FILE}.minisig"
"""The signature over the manifest, where minisign looks for it."""
SHEETS = ("signoff.html", "signoff.pdf")
DRAFTS = ("signoff-draft.html", "signoff-draft.pdf")
"""The files that ``lineproof signoff`` makes: the sheet to sign, and one that is not to be signed."""


def partial(path: Path) -> Path:
    """Return where the new content of *path* is until it is whole. A crash may leave it."""
    return path.with_name(f".{path.name}.part")


BEING_WRITTEN = tuple(partial(Path(name)).name for name in (ENVIRONMENT_FILE, MANIFEST_FILE))
"""Files that a run that was killed may leave beside its own."""

_DERIVED_FILES = (PAGE, STUDY_PAGE, SIGNATURE, *SHEETS, *DRAFTS)
DERIVED = frozenset({ALLURE, *_DERIVED_FILES, *(partial(Path(name)).name for name in _DERIVED_FILES)})
"""Files and folders that can be made again from the records; nothing is judged by it."""


def entries(folder: Path) -> dict[str, bool]:
    """Return each name in *folder* that is not derived, and whether it is a regular file.

    No link is followed: neither a link nor a device is a file of a run. Raises ConfigError if it cannot be read.
    """
    try:
        with os.scandir(folder) as present:
            return {entry.name: entry.is_file(follow_symlinks=False) for entry in present if entry.name not in DERIVED}
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", folder) from None


def sums_of(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each of the run's own files but the manifest, by name in order."""
    present = entries(folder)
    return {name: sha256_of(folder / name) for name in sorted(LINES) if name != MANIFEST_FILE and present.get(name)}


def sum_of_records(sums: Mapping[str, str]) -> str:
    """Return one sum over all *sums* of a run's files, which names the run.

    It is what ``sha256sum environment.json *.jsonl | sha256sum`` prints in the run's folder.
    """
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file. Raises ConfigError if it cannot be read."""
    return hashlib.sha256(read_file(path)).hexdigest()


# -- the chain of a file of records ------------------------------------------------------------------------------------


_OWN = b', "sha256": "'
_END = b'"}'
_TAIL = len(_OWN) + 64 + len(_END)


def first_link(run: str) -> str:
    """Return what the first line of each file of *run* carries as ``previous``."""
    return hashlib.sha256(run.encode(errors="surrogatepass")).hexdigest()


def sealed(data: Mapping[str, Any], previous: str) -> tuple[bytes, str]:
    """Return *data* as a line that follows one with the sum *previous*, and its own sum.

    Raises ValueError if a number is not finite. Half a character, as of a file's name that is not UTF-8, becomes a
    question mark.
    """
    text = json.dumps({**data, "previous": previous}, ensure_ascii=False, allow_nan=False)
    body = text.encode(errors="replace")[:-1]
    own = hashlib.sha256(body).hexdigest()
    return body + _OWN + own.encode() + _END + b"\n", own


def breaks(lines: Sequence[bytes], run: str) -> list[tuple[int, str]]:
    """Return which *lines* of a file of *run*, without their newlines, are not as they were written, and why.

    They are counted from 1. Of the line after one that was changed, nothing shows what it followed. Takes linear time.
    """
    broken: list[tuple[int, str]] = []
    before: str | None = first_link(run)
    start = 0
    for number, line in enumerate(lines, 1):
        own = _own_sum(line)
        if own is None:
            broken.append((number, f"was changed (bytes {start + 1} to {start + len(line)} of the file)"))
        elif before is not None and not line[:-_TAIL].endswith(f', "previous": "{before}"'.encode()):
            place = f"line {number - 1}" if number > 1 else "the beginning of this run"
            broken.append((number, f"does not follow {place}: lines were removed, added or moved here"))
        before = own
        start += len(line) + 1
    return broken


def _own_sum(line: bytes) -> str | None:
    """Return the sum of *line*; None if it says another one, or none."""
    own = hashlib.sha256(line[:-_TAIL]).hexdigest()
    return own if line[-_TAIL:] == _OWN + own.encode() + _END else None


# -- is a folder as the run left it? It is checked before it is believed -----------------------------------------------

LARGEST = 512 * 2**20
"""Bytes of one file; 24 h of trials of a second are some 200 MB."""

CHANGED, MISSING, ADDED = "was changed", "is missing", "was added"


@dataclass(frozen=True, slots=True)
class Alteration:
    """A file of a run's folder that is not as the run left it, and of a file of records the line, from 1."""

    file: str
    finding: str
    line: int | None = None

    def __post_init__(self) -> None:
        # somebody else may have chosen the name
        if not self.file.isprintable():
            object.__setattr__(self, "file", ascii(self.file))

    def __str__(self) -> str:
        return f"{self.file}{f':{self.line}' if self.line else ''} {self.finding}"


@dataclass(frozen=True, slots=True)
class Integrity:
    """The state of the run in ``path``.

    ``altered``: everything that was changed, added or removed. ``notes``: what a crash has left, in words. ``lines``:
    those of each file, whole ones only. ``sums``: of its files. ``manifest``: None: it was never closed.
    """

    path: Path
    altered: tuple[Alteration, ...]
    notes: tuple[str, ...]
    lines: Mapping[str, Sequence[bytes]]
    sums: Mapping[str, str]
    manifest: Manifest | None

    @property
    def sum_of_records(self) -> str:
        """The sum over all files of the run, by which it is named."""
        return sum_of_records(self.sums)

    @property
    def records(self) -> int:
        """The number of lines of all files of records together."""
        return sum(len(lines) for name, lines in self.lines.items() if name in RECORDS)

    def refuse_altered(self) -> None:
        """Raise ConfigError naming the first alteration, if there is one."""
        if self.altered:
            first, *more = self.altered
            others = f" (and {len(more)} more)" if more else ""
            raise ConfigError(
                f"{first.finding}{others}; what was altered proves nothing: use the folder as the run left it"
                f" ('lineproof verify {self.path}' names every alteration)",
                self.path / first.file,
                first.line,
            )

    def parsed(self) -> tuple[dict[str, tuple[Any, ...]], tuple[Alteration, ...]]:
        """Return the records of each file, and where lines do not fit their schemas; of an altered file neither."""
        altered, misfits = {alteration.file for alteration in self.altered}, list[Alteration]()
        records: dict[str, list[Any]] = {name: [] for name in self.lines}
        for name in [name for name in self.lines if name not in altered]:
            for number, line in enumerate(self.lines[name], 1):
                said = (kind for kind in LINES[name] if line.startswith(b'{"schema": "%b"' % kind.schema.encode()))
                kind = next(said, LINES[name][0])
                try:
                    records[name].append(kind.from_json(line))
                except ValueError as error:
                    misfits.append(Alteration(name, f"does not fit the schema {kind.schema}: {error}", number))
        return {name: tuple(kept) for name, kept in records.items()}, tuple(misfits)


def check_integrity(folder: Path) -> Integrity:
    """Compare the run in *folder* with its own sums. Takes time linear in its bytes.

    Raises ConfigError if it is no folder of a run, or a file cannot be read.
    """
    if not folder.is_dir():
        raise ConfigError("is no folder; expected the folder of one run, as results/<run id>", folder)
    present = entries(folder)
    if not present.keys() & LINES.keys():
        if (folder / ALLURE).is_dir():
            raise ConfigError("holds no run: nothing was measured, as the set-up failed or was interrupted", folder)
        raise ConfigError("holds no run; expected the folder of one run, as results/<run id>", folder)
    contents = {name: read_file(folder / name, LARGEST) for name in LINES if present.get(name)}
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items() if name != MANIFEST_FILE}
    notes: list[str] = []
    altered = [
        Alteration(name, "is no regular file; the files of a run are neither links nor devices")
        for name in sorted(present)
        if name in LINES and not present[name]
    ]
    said, environment = _single(contents.get(ENVIRONMENT_FILE, b""))
    run = str(said.get("run", folder.resolve().name))
    lines: dict[str, list[bytes]] = {}
    for name in RECORDS:
        # every record ends with a newline
        *lines[name], rest = contents.get(name, b"").split(b"\n")
        if rest:
            notes.append(f"{name}: the last line is incomplete and left out ({len(rest)} bytes)")
        altered += [Alteration(name, problem, line) for line, problem in breaks(lines[name], run)]
    if ENVIRONMENT_FILE in contents and not environment:
        altered.append(Alteration(ENVIRONMENT_FILE, f"{CHANGED}: it does not have its own sum"))
    manifest = None
    if MANIFEST_FILE in contents:
        with suppress(ValueError):
            manifest = Manifest.from_json(b"".join(_single(contents[MANIFEST_FILE])[1]))
        if manifest is None:
            altered.append(Alteration(MANIFEST_FILE, f"{CHANGED}: it is no manifest of a run"))
            manifest = Manifest(run, sums)
    elif BEING_WRITTEN[1] not in present and said.get("ended") is not None:
        altered.append(Alteration(MANIFEST_FILE, f"{MISSING}, though the run was closed"))
    else:
        notes.append(f"{MANIFEST_FILE} is missing: the run was never closed")
    begun, named = ENVIRONMENT_FILE in present or any(lines.values()), {alteration.file for alteration in altered}
    differences = _differences(present, begun, sums, manifest, notes)
    altered += [alteration for alteration in differences if alteration.file not in named]
    return Integrity(folder, tuple(altered), tuple(notes), {**lines, ENVIRONMENT_FILE: environment}, sums, manifest)


def _differences(
    present: Mapping[str, bool],
    begun: bool,
    sums: Mapping[str, str],
    manifest: Manifest | None,
    notes: list[str],
) -> Iterator[Alteration]:
    """Yield the files that were added, removed or changed. *begun*: the run has more than its empty files."""
    for name in sorted(present.keys() - LINES.keys()):
        if manifest is None and name in BEING_WRITTEN:
            notes.append(f"{name} is what the run was writing when it was killed")
        else:
            yield Alteration(name, ADDED)
    if manifest is None:
        # the files are made first, then the environment, and records only after that
        yield from (Alteration(name, MISSING) for name in (ENVIRONMENT_FILE, *RECORDS) if begun and name not in present)
        return
    for name in sorted(manifest.files.keys() | sums.keys()):
        if name not in sums:
            yield Alteration(name, MISSING)
        elif name not in manifest.files:
            yield Alteration(name, ADDED)
        elif sums[name] != manifest.files[name]:
            yield Alteration(name, f"{CHANGED}: its SHA-256 was {manifest.files[name]}")


def _single(content: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Return the data of a file of one line, which may say anything, and the line; none if it lacks its own sum."""
    with suppress(ValueError):
        data = parse_json(content)
        if isinstance(data, dict):
            is_whole = content.endswith(b"\n") and not breaks([content[:-1]], str(data.get("run")))
            return data, [content[:-1]] if is_whole else []
    return {}, []
