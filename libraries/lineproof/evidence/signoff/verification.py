"""Checks of a run's folder: is it as the run left it, do its records fit their schemas, is it signed?

Nothing is judged by what is derived from the records (Allure's results, the summary's page). The manifest has sums of
it too, and nobody but ``verify`` and ``signoff`` refuses a run because of them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ...errors import TestbedError
from ..integrity import CHANGED, MISSING, Alteration, Integrity, check_integrity
from ..run_files import MANIFEST_FILE, SHEETS, SIGNATURE, derived_sums
from .signature import Signed, check_signature


def verify(folder: Path, key: str | None = None, signature: Path | None = None) -> tuple[Integrity, Signed | None]:
    """Return the state of the run in *folder* with all that was altered, and its signature, checked with *key*.

    Records that do not fit their schemas count as altered. *signature*: its file, ``manifest.json.minisig`` of the
    folder by default; None is returned without one that can be read. Raises ConfigError for what is no run, and
    TestbedError where the library for *key* is missing.
    """
    run, present = check_integrity(folder), derived_sums(folder)
    notes, signed, wrong = list(run.notes), None, tuple[Alteration, ...]()
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
    if run.manifest is not None:
        # what was added has no sum: it may be of a process that was killed
        sums = run.manifest.derived
        wrong += tuple(Alteration(name, MISSING) for name in sums if name not in present)
        changed = (name for name in sums if present.get(name, sums[name]) != sums[name])
        wrong += tuple(Alteration(name, f"{CHANGED}: its SHA-256 was {sums[name]}") for name in changed)
        listed, there = ({name.partition("/")[0] for name in names} for names in (sums, present))
        if names := " and ".join(sorted(there - listed)):
            notes.append(f"{names}: made from the records, and without sums in {MANIFEST_FILE}: not checked")
    return replace(run, altered=(*run.altered, *wrong, *run.parsed()[1]), notes=tuple(notes)), signed
