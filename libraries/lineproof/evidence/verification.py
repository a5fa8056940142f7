"""Checks of a run's folder: is it as the run left it, do its records fit their schemas, is it signed?

Nothing is judged by what is derived from the records (Allure's results, the summary's page). The manifest has sums of
it too, and nobody but ``verify`` and ``signoff`` refuses a run because of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import TestbedError
from ..json_text import JsonError
from .integrity import CHANGED, MISSING, Alteration, Integrity, check_integrity
from .records import Manifest
from .run import kind_of
from .run_files import ENVIRONMENT_FILE, MANIFEST_FILE, SHEETS, SIGNATURE, derived_sums
from .signature import PublicKey, Signed, check_signature


@dataclass(frozen=True)
class VerifiedRun:
    """The state of one folder; ``problems``: alterations, and records that do not fit their schemas.

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
    found, present = check_integrity(folder), derived_sums(folder)
    if found.manifest is not None and (note := _not_summed(found.manifest, present)):
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
    derived = _derived_alterations(found, present)
    return VerifiedRun(found, (*found.altered, *wrong, *derived, *schema_problems(found)), signed)


def schema_problems(found: Integrity) -> Iterator[Alteration]:
    """Where the records of a run differ from their schemas; of a file that was altered nothing is said."""
    altered = {item.file for item in found.altered}
    single = {name: found.path / name for name in (ENVIRONMENT_FILE, MANIFEST_FILE) if name not in altered}
    lines = {**found.lines, **{name: [path.read_bytes()] for name, path in single.items() if path.is_file()}}
    for name in lines.keys() - altered:
        for number, line in enumerate(lines[name], 1):
            if words := _problem(line, name):
                yield Alteration(name, words, number)


def _problem(line: bytes, name: str) -> str:
    """Return why *line* is no record of the file *name*; empty if it is one."""
    kind = kind_of(line, name)
    try:
        kind.from_json(line)
    except JsonError as error:
        return f"is no record: {error}"
    except ValueError as error:
        return f"does not fit the schema {kind.schema}: {error}"
    return ""


def _derived_alterations(found: Integrity, present: Mapping[str, str]) -> Iterator[Alteration]:
    """Yield what was changed or removed since. *present*: the sums of now.

    What was added has no sum: it may be of a process that was killed.
    """
    for name, digest in found.manifest.derived.items() if found.manifest else ():
        if name not in present:
            yield Alteration(name, MISSING)
        elif present[name] != digest:
            yield Alteration(name, f"{CHANGED}: its SHA-256 was {digest}")


def _not_summed(manifest: Manifest, present: Mapping[str, str]) -> str:
    """Return what is derived of a closed run and has no sum at all, in words; "": nothing is."""
    listed, there = ({name.partition("/")[0] for name in names} for names in (manifest.derived, present))
    names = " and ".join(sorted(there - listed))
    return names and f"{names}: made from the records, and without sums in {MANIFEST_FILE}: not checked"
