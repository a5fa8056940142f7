"""Is a run's folder as the run left it? Its chains of records, its files, its manifest: checked before it is believed.

Names in the manifest are compared with those of the folder. No file is opened because its name stands there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..files import read_file
from ..json_text import parse_json
from .records import Manifest
from .run_files import (
    ALLURE,
    BEING_WRITTEN,
    ENVIRONMENT_FILE,
    LINES,
    MANIFEST_FILE,
    RECORDS,
    breaks,
    entries,
    sum_of_records,
)

LARGEST = 512 * 2**20
"""Bytes of one file; 24 h of trials of a second are some 200 MB."""

CHANGED, MISSING, ADDED = "was changed", "is missing", "was added"


@dataclass(frozen=True, slots=True)
class Alteration:
    """A thing not as the run left it: a file of its folder, words, and of a file of records the line, from 1."""

    file: str
    words: str
    line: int | None = None

    def __post_init__(self) -> None:
        # somebody else may have chosen the name
        if not self.file.isprintable():
            object.__setattr__(self, "file", ascii(self.file))

    def __str__(self) -> str:
        return f"{self.file}{f':{self.line}' if self.line else ''} {self.words}"


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
        """One sum over all its files, which names the run."""
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
                f"{first.words}{others}; what was altered proves nothing: use the folder as the run left it"
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
    present: Mapping[str, bool], begun: bool, sums: Mapping[str, str], manifest: Manifest | None, notes: list[str]
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
