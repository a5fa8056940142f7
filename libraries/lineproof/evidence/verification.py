"""Is a run's folder as the run left it, do its records fit their schemas, is its signature good?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import TestbedError
from ..json_text import parse_json
from .derived import derived_alterations, derived_note
from .integrity import Alteration, Integrity, check_integrity
from .records import CHARACTERISATION, ENVIRONMENT, MANIFEST, MARGIN, UNDER_LOAD, why_unfit
from .run import LINES
from .run_files import CHARACTERISATION as CHARACTERISATION_FOLDER
from .run_files import ENVIRONMENT_FILE, MANIFEST_FILE, SHEETS, SIGNATURE
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
    single = {ENVIRONMENT_FILE: ENVIRONMENT, MANIFEST_FILE: MANIFEST}
    for path in sorted((found.path / CHARACTERISATION_FOLDER).glob("*.json")):
        single[f"{CHARACTERISATION_FOLDER}/{path.name}"] = CHARACTERISATION
    for name, kind in single.items():
        path = found.path / name
        if name not in altered and path.is_file():
            content = path.read_bytes()
            if kind == CHARACTERISATION:
                kind = next((other for other in (UNDER_LOAD, MARGIN) if other.encode() in content), kind)
            # figures for other programs are in that folder too
            if (kind != CHARACTERISATION or CHARACTERISATION.encode() in content) and (
                words := _problem(content, kind)
            ):
                yield Alteration(name, words)


def _problem(text: bytes, kind: str) -> str:
    """Why *text* is no record of *kind*; empty if it is one."""
    try:
        words = why_unfit(parse_json(text, own=True), kind)
    except ValueError as error:
        return f"is no record: {error}"
    return words and f"does not fit the schema {kind}: {words}"
