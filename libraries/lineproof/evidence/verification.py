"""Checks of a run's folder: is it as the run left it, do its records fit their schemas, is it signed?

Nothing is judged by what is derived from the records (Allure's results, the summary's page). The manifest has sums of
it too, and nobody but ``verify`` and ``signoff`` refuses a run because of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import TestbedError
from ..json_text import JsonError
from .integrity import CHANGED, MISSING, Alteration, Integrity, check_integrity
from .run import kind_of
from .run_files import ENVIRONMENT_FILE, MANIFEST_FILE, SHEETS, SIGNATURE, derived_sums
from .signoff.signature import Signed, check_signature


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


def verify(folder: Path, key: str | None = None, signature: Path | None = None) -> VerifiedRun:
    """Compare the run in *folder* with its own sums and schemas, and its signature with *key*.

    *signature*: its file, ``manifest.json.minisig`` of the folder by default. Raises ConfigError for what is no run,
    and TestbedError where the library for *key* is missing.
    """
    found, present = check_integrity(folder), derived_sums(folder)
    notes, signed = list(found.notes), None
    wrong: tuple[Alteration, ...] = ()
    try:
        signed, wrong = check_signature(folder, key, signature)
    except TestbedError as error:
        if key is not None:
            raise
        notes.append(f"{SIGNATURE} is not read: {error}")
    unsigned = () if (folder / SIGNATURE).exists() else [name for name in SHEETS if (folder / name).exists()]
    if unsigned:
        notes.append(
            f"{' and '.join(unsigned)}: not checked, as no signature is over it; 'lineproof signoff' makes it again"
        )
    if found.manifest is not None:
        # what was added has no sum: it may be of a process that was killed
        sums = found.manifest.derived
        wrong += tuple(Alteration(name, MISSING) for name in sums if name not in present)
        changed = (name for name in sums if present.get(name, sums[name]) != sums[name])
        wrong += tuple(Alteration(name, f"{CHANGED}: its SHA-256 was {sums[name]}") for name in changed)
        listed, there = ({name.partition("/")[0] for name in names} for names in (sums, present))
        if names := " and ".join(sorted(there - listed)):
            notes.append(f"{names}: made from the records, and without sums in {MANIFEST_FILE}: not checked")
    found = replace(found, notes=tuple(notes))
    return VerifiedRun(found, (*found.altered, *wrong, *schema_problems(found)), signed)


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
