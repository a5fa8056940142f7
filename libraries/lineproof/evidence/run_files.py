"""The files of a run's folder: their names, the records in each, which of them belong to the run, and their sums."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from ..errors import ConfigError
from ..files import read_file
from . import records

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
    RESULTS: (
        *(records.CharacterisationRecord, records.MarginRecord, records.UnderLoadRecord),
        records.MeasurementRecord,
    ),
    INPUTS: (records.InputRecord,),
    TELEMETRY: (records.TelemetryRecord,),
    ENVIRONMENT_FILE: (records.EnvironmentRecord,),
    MANIFEST_FILE: (records.Manifest,),
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
        with os.scandir(folder) as found:
            return {item.name: item.is_file(follow_symlinks=False) for item in found if item.name not in DERIVED}
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
