"""Is a run's folder as the run left it, do its records fit their schemas, is its signature good?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import TestbedError
from .derived import derived_alterations, derived_note
from .integrity import Alteration, Integrity, check_integrity
from .record_schemas import schema_problems
from .run_files import SHEETS, SIGNATURE
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
