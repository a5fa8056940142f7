"""Is a run's folder as the run left it? Its chains of records, its files, its manifest: checked before it is believed.

Names in ``files.jsonl`` and in the manifest are compared with those of the folder. No file is opened because its name
stands there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..json_text import parse_json
from .chain import breaks
from .records import FileRecord
from .run_files import (
    CHAINED,
    ENVIRONMENT_FILE,
    FILES,
    MANIFEST_FILE,
    RECORDS,
    SUMS,
    entries,
    is_partial,
    partial,
    sha256_of,
)

LARGEST_MANIFEST = 64 * 2**20
"""Bytes. A run of 24 h that reads the router at each trial has 100 000 files, of about 150 bytes each here."""

LARGEST_RECORDS = 512 * 2**20
"""Bytes of one file of records; 24 h of trials of a second are some 200 MB."""

CHANGED, MISSING, ADDED = "was changed", "is missing", "was added"


@dataclass(frozen=True, slots=True)
class Alteration:
    """What is not as the run left it: a file of its folder, words, and of a file of records the line, from 1."""

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
    """What was found of the run in ``path``.

    ``altered``: everything that was changed, added or removed. ``notes``: what a crash has left, in words. ``lines``:
    those of each file of records, whole ones only. ``files``: how many the run has. ``manifest``: the SHA-256 of
    manifest.json; None: the run was never closed.
    """

    path: Path
    altered: tuple[Alteration, ...]
    notes: tuple[str, ...]
    lines: Mapping[str, Sequence[bytes]]
    files: int
    manifest: str | None

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


@dataclass(frozen=True)
class _Journal:
    """``files.jsonl``: sum and size of each file, as it was written last; ``last`` one, and its sum ``before`` that."""

    sums: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    last: str = ""
    before: str | None = None


def check_integrity(folder: Path) -> Integrity:
    """Compare the run in *folder* with its own sums. Takes time linear in its bytes.

    Raises ConfigError if it is no folder of a run, or a file cannot be read.
    """
    if not folder.is_dir():
        raise ConfigError("is no folder; expected the folder of one run, as results/<run id>", folder)
    found = dict(entries(folder))
    present = {name for name, regular in found.items() if regular}
    if not found.keys() & {*CHAINED, ENVIRONMENT_FILE, MANIFEST_FILE}:
        if (folder / "allure").is_dir():
            raise ConfigError("holds no run: nothing was measured, as the set-up failed or was interrupted", folder)
        raise ConfigError("holds no run; expected the folder of one run, as results/<run id>", folder)
    notes: list[str] = []
    altered = [
        Alteration(name, "is no regular file; the files of a run are neither links nor devices")
        for name in sorted(found.keys() - present)
    ]
    environment = _environment(folder, present)
    lines = {name: _lines(folder / name, notes) if name in present else [] for name in CHAINED}
    for name, content in lines.items():
        altered += [Alteration(name, words, line) for line, words in breaks(content, environment["run"])]
    journal = None
    if not any(item.file == FILES for item in altered):
        try:
            journal = _read_journal(lines[FILES])
        except ValueError as error:
            altered.append(Alteration(FILES, f"has a line that is no record: {error}"))
    closed = MANIFEST_FILE in present
    listed = _read_manifest(folder) if closed else {}
    known = {**(listed or {}), **(journal.sums if journal else {})}
    names = sorted(present - {MANIFEST_FILE, SUMS})
    # what nobody listed may be anything, and of any size
    sums = {name: sha256_of(folder / name) if name in known or name in CHAINED else "" for name in names}
    differences: list[Alteration] = []
    if journal is not None:
        differences += _against_journal(folder, journal, sums, closed, notes)
    if closed:
        differences += _against_manifest(folder, listed, sums)
    else:
        differences += _never_closed(environment, present, notes)
    named = {item.file for item in altered}
    # both lists may name a file: the first one says more
    first = {item.file: item for item in reversed(differences)}
    altered += [first[name] for name in dict.fromkeys(item.file for item in differences) if name not in named]
    manifest = sha256_of(folder / MANIFEST_FILE) if closed else None
    return Integrity(folder, tuple(altered), tuple(notes), lines, len(sums), manifest)


def sums_content(sums: Mapping[str, str], manifest: str) -> bytes:
    """The content of ``SHA256SUMS``, with names as the disk has them. *manifest*: the sum of manifest.json."""
    text = "".join(f"{digest}  {name}\n" for name, digest in {**sums, MANIFEST_FILE: manifest}.items())
    return text.encode(errors="surrogateescape")


def _environment(folder: Path, present: set[str]) -> dict[str, Any]:
    """``run``, else the folder's name, and ``ended``, as environment.json says them; it may say anything."""
    found: Any = None
    if ENVIRONMENT_FILE in present:
        try:
            found = parse_json((folder / ENVIRONMENT_FILE).read_bytes(), own=True)
        except (OSError, ValueError):
            found = None
    said = found if isinstance(found, dict) else {}
    return {"run": str(said.get("run", folder.resolve().name)), "ended": said.get("ended")}


def _lines(path: Path, notes: list[str]) -> list[bytes]:
    """The whole lines: every record ends with a newline, so that a rest after the last one is incomplete."""
    try:
        if path.stat().st_size > LARGEST_RECORDS:
            raise ConfigError(f"is larger than {LARGEST_RECORDS >> 20} MB, which no run writes", path)
        *whole, rest = path.read_bytes().split(b"\n")
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path) from None
    if rest:
        notes.append(f"{path.name}: the last line is incomplete and left out ({len(rest)} bytes)")
    return whole


def _read_journal(lines: Sequence[bytes]) -> _Journal:
    """Raises ValueError."""
    sums: dict[str, str] = {}
    sizes: dict[str, int] = {}
    last, before = "", None
    for line in lines:
        record = FileRecord.from_json(line)
        last = record.name
        before = sums.get(last)
        sums[last], sizes[last] = record.content_sha256, record.bytes
    return _Journal(sums, sizes, last, before)


def _against_journal(
    folder: Path, journal: _Journal, sums: Mapping[str, str], closed: bool, notes: list[str]
) -> Iterator[Alteration]:
    """Yield what differs from the run's own list of its files.

    A line is written just before its file takes its name: a crash comes between the last line and that file.
    """
    others = [name for name in sums if name not in CHAINED and not is_partial(name)]
    if not journal.sums:
        if others:
            yield Alteration(FILES, f"{MISSING} or empty, though the run has other files")
        return
    for name in RECORDS:
        if name not in sums:
            yield Alteration(name, MISSING)
    for name, digest in journal.sums.items():
        if sums.get(name) == digest:
            continue
        if name == journal.last and sums.get(name) == journal.before and not closed:
            notes.append(f"{name} is not the last one: the run was killed while it wrote it")
        else:
            words = changed_words(folder / name, digest, journal.sizes[name]) if name in sums else MISSING
            yield Alteration(name, words)
    for name in sums:
        if is_partial(name) and not closed:
            notes.append(f"{name} is what the run was writing when it was killed")
        elif name not in journal.sums and name not in CHAINED:
            yield Alteration(name, ADDED)


def changed_words(path: Path, digest: str, size: int | None = None) -> str:
    """Return that the file *path* is another one than that with the sum *digest* and, if it is known, *size* in bytes.

    A sum does not show which bytes differ. It shows which copy is the right one.
    """
    now = path.stat().st_size
    sizes = "" if size is None else f"it has {now} bytes, and had {size}; "
    sizes = f"as many bytes ({size}) and not the same; " if now == size else sizes
    return f"{CHANGED}: {sizes}its SHA-256 was {digest}"


def _read_manifest(folder: Path) -> dict[str, str] | None:
    """The sums that the manifest lists; None: it is no manifest. Raises ConfigError if it cannot be read."""
    path = folder / MANIFEST_FILE
    try:
        if path.stat().st_size > LARGEST_MANIFEST:
            return None
        listed = parse_json(path.read_bytes(), own=True)["files"]
        found = {str(name): str(digest) for name, digest in listed.items()}
        sums_content(found, "")  # names that no disk has
        return found
    except OSError as error:
        raise ConfigError(f"is no manifest of a run: {error.strerror}", path) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _against_manifest(folder: Path, listed: Mapping[str, str] | None, sums: Mapping[str, str]) -> Iterator[Alteration]:
    if listed is None:
        yield Alteration(MANIFEST_FILE, f"{CHANGED}: it is no manifest of a run")
        return
    for name in sorted(listed.keys() | sums.keys()):
        if sums.get(name) != listed.get(name):
            changed = changed_words(folder / name, listed[name]) if name in listed and name in sums else ""
            yield Alteration(name, changed or (ADDED if name in sums else MISSING))
    path = folder / SUMS
    if path.is_symlink() or not path.is_file():
        yield Alteration(SUMS, MISSING)
        return
    expected = sums_content(listed, sha256_of(folder / MANIFEST_FILE))
    found = path.read_bytes() if path.stat().st_size <= 2 * LARGEST_MANIFEST else b""
    if found != expected:
        right = expected.splitlines()[-1] in found.splitlines()
        other = f"its sum in {SUMS} is another"
        yield Alteration(SUMS, CHANGED) if right else Alteration(MANIFEST_FILE, f"{CHANGED}: {other}")


def _never_closed(environment: Mapping[str, Any], present: set[str], notes: list[str]) -> Iterator[Alteration]:
    closing = partial(Path(MANIFEST_FILE)).name in present
    if not closing and (environment["ended"] is not None or SUMS in present):
        yield Alteration(MANIFEST_FILE, f"{MISSING}, though the run was closed")
    else:
        notes.append(f"{MANIFEST_FILE} is missing: the run was never closed")
