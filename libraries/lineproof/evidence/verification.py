"""Checks of a run's folder: is it as the run left it, do its records fit their schemas, is it signed?

What is derived from the records (Allure's results, summaries, study pages) is no part of the manifest, as nothing is
judged by it: its sums are in ``derived.sha256``, as ``sha256sum`` writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import TestbedError
from ..files import write_whole
from ..json_text import JsonError
from .integrity import CHANGED, LARGEST_MANIFEST, MISSING, Alteration, Integrity, changed_words, check_integrity
from .records import (
    CharacterisationRecord,
    EnvironmentRecord,
    Manifest,
    MarginRecord,
    Record,
    UnderLoadRecord,
)
from .run import LINES
from .run_files import CHARACTERISATION as CHARACTERISATION_FOLDER
from .run_files import (
    DERIVED_SUMS,
    ENVIRONMENT_FILE,
    MANIFEST_FILE,
    SHEETS,
    SIGNATURE,
    STUDY_FORMS,
    SUMMARIES,
    partial,
    sha256_of,
)
from .signature import PublicKey, Signed, check_signature


@dataclass(frozen=True)
class VerifiedRun:
    """What was found of one folder; ``problems``: alterations, and records that do not fit their schemas.

    ``signed``: the signature over its manifest, if it has one that can be read.
    """

    found: Integrity
    problems: tuple[Alteration, ...]
    signed: Signed | None = None

    @property
    def records(self) -> int:
        """How many lines the files of records have together."""
        return sum(map(len, self.found.lines.values()))

    def refuse_problems(self) -> None:
        """Raise ConfigError naming the first problem, if there is one."""
        replace(self.found, altered=self.problems).refuse_altered()


def verify(folder: Path, key: PublicKey | None = None, signature: Path | None = None) -> VerifiedRun:
    """Compare the run in *folder* with its own sums and schemas, and its signature with *key*.

    *signature*: its file, ``manifest.json.minisig`` of the folder by default. Raises ConfigError for what is no run,
    and TestbedError where the library for *key* is missing.
    """
    found = check_integrity(folder)
    if note := derived_note(folder):
        found = replace(found, notes=(*found.notes, note))
    signed: Signed | None = None
    wrong: tuple[Alteration, ...] = ()
    try:
        signed, wrong = check_signature(folder, key, signature)
    except TestbedError as error:
        if key is not None:
            raise
        found = replace(found, notes=(*found.notes, f"{SIGNATURE} is not read: {error}"))
    sheets = [name for name in SHEETS if (folder / name).exists()]
    if sheets and not (folder / SIGNATURE).exists():
        words = f"{' and '.join(sheets)}: not checked, as no signature is over it; 'lineproof signoff' makes it again"
        found = replace(found, notes=(*found.notes, words))
    return VerifiedRun(found, (*found.altered, *wrong, *derived_alterations(folder), *schema_problems(found)), signed)


def schema_problems(found: Integrity) -> Iterator[Alteration]:
    """Where the records of a run differ from their schemas; of a file that was altered nothing is said."""
    altered = {item.file for item in found.altered}
    for name, kind in LINES.items():
        for number, line in enumerate(() if name in altered else found.lines[name], 1):
            if words := _problem(line, kind):
                yield Alteration(name, words, number)
    # figures for other programs are in the folder of results too
    results: tuple[type[Record], ...] = (UnderLoadRecord, MarginRecord, CharacterisationRecord)
    single: dict[str, tuple[type[Record], ...]] = {ENVIRONMENT_FILE: (EnvironmentRecord,), MANIFEST_FILE: (Manifest,)}
    for path in sorted((found.path / CHARACTERISATION_FOLDER).glob("*.json")):
        single[f"{CHARACTERISATION_FOLDER}/{path.name}"] = results
    for name, kinds in single.items():
        path = found.path / name
        if name not in altered and path.is_file():
            content = path.read_bytes()
            named = [each for each in kinds if len(kinds) == 1 or each.schema.encode() in content]
            if named and (words := _problem(content, named[0])):
                yield Alteration(name, words)


def _problem(text: bytes, kind: type[Record]) -> str:
    """Return why *text* is no record of *kind*; empty if it is one."""
    try:
        kind.from_json(text)
    except JsonError as error:
        return f"is no record: {error}"
    except ValueError as error:
        return f"does not fit the schema {kind.schema}: {error}"
    return ""


_LINE = re.compile(r"([0-9a-f]{64})  ((?:allure/)?[^/\n]+)\n")


def seal_derived(folder: Path) -> None:
    """Sum what the execution derived in *folder*, that of its first run, if the run was closed. Raises TestbedError."""
    if (folder / MANIFEST_FILE).is_file():
        allure = sorted(path.relative_to(folder).as_posix() for path in (folder / "allure").glob("*"))
        _write_sums(
            folder,
            {
                name: sha256_of(folder / name)
                for name in (*SUMMARIES, *STUDY_FORMS, *allure)
                if (folder / name).is_file()
            },
        )


def seal_forms(folder: Path) -> None:
    """Sum a study's results, just made again in *folder*; the sums of all else stay. Raises TestbedError."""
    _write_sums(folder, {**_listed(_sums_text(folder)), **{name: sha256_of(folder / name) for name in STUDY_FORMS}})


def has_sum(folder: Path, name: str) -> bool:
    """Return whether *name* has a sum there, which :func:`derived_alterations` compares."""
    return name in _listed(_sums_text(folder))


def _write_sums(folder: Path, sums: Mapping[str, str]) -> None:
    write_whole(folder / DERIVED_SUMS, _sums_content(sums), fresh=partial(folder / DERIVED_SUMS))


def _sums_content(sums: Mapping[str, str]) -> str:
    return "".join(f"{digest}  {name}\n" for name, digest in sums.items())


def _sums_text(folder: Path) -> str | None:
    """The content of its file of sums, "" without one; None: no run wrote that."""
    path = folder / DERIVED_SUMS
    if not path.exists() and not path.is_symlink():
        return ""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST_MANIFEST:
        return None
    return path.read_bytes().decode(errors="replace")


def _listed(text: str | None) -> dict[str, str]:
    return {name: digest for digest, name in _LINE.findall(text or "")}


def derived_note(folder: Path) -> str:
    """Return what is derived in *folder*, of a run that was closed, and has no sum, in words; "": nothing is."""
    if not (folder / MANIFEST_FILE).is_file() or (text := _sums_text(folder)) is None:
        return ""
    # the pages of a study are made again from its records
    listed = {"allure" if name.startswith("allure/") else name for name in _listed(text)}
    without = [name for name in (*SUMMARIES, "allure") if (folder / name).exists() and name not in listed]
    if not without:
        return ""
    state = "does not name" if text else "is missing:"
    return f"{DERIVED_SUMS} {state} {', '.join(without)}, by which nothing is judged: not checked"


def derived_alterations(folder: Path) -> Iterator[Alteration]:
    """Yield what was changed or removed since. What was added has no sum: it may be of a process that was killed."""
    text = _sums_text(folder)
    listed = _listed(text)
    if text is None or _sums_content(listed) != text:
        yield Alteration(DERIVED_SUMS, CHANGED)
    for name, digest in listed.items():
        file = folder / name
        if file.is_symlink() or not file.is_file():
            yield Alteration(name, MISSING)
        elif sha256_of(file) != digest:
            yield Alteration(name, changed_words(file, digest))
