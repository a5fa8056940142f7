"""Checks of a run's folder: is it as the run left it, do its records fit their schemas, is it signed?

Nothing is judged by what was made from the records (Allure's results, the summary's page): it has no sums, and can be
made again.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ...errors import TestbedError
from ..integrity import Alteration, Integrity, check_integrity
from ..run_files import ALLURE, PAGE, SHEETS, SIGNATURE, STUDY_PAGE
from .signature import Signed, check_signature


def verify(folder: Path, key: str | None = None, signature: Path | None = None) -> tuple[Integrity, Signed | None]:
    """Return the state of the run in *folder* with all that was altered, and its signature, checked with *key*.

    Records that do not fit their schemas count as altered. *signature*: its file, ``manifest.json.minisig`` of the
    folder by default; None is returned without one that can be read. Raises ConfigError for what is no run, and
    TestbedError where the library for *key* is missing.
    """
    run = check_integrity(folder)
    notes, signed, wrong = list(run.notes), None, tuple[Alteration, ...]()
    try:
        signed, wrong = check_signature(folder, key, signature)
    except TestbedError as error:
        if key is not None:
            raise
        notes.append(f"{SIGNATURE} is not read: {error}")
    derived = ALLURE, PAGE, STUDY_PAGE, *(() if (folder / SIGNATURE).exists() else SHEETS)
    if names := " and ".join(name for name in derived if (folder / name).exists()):
        notes.append(f"{names}: not checked; made from the records, which can make it again")
    return replace(run, altered=(*run.altered, *wrong, *run.parsed()[1]), notes=tuple(notes)), signed
