"""The files of a run's folder: their names, the records in each, their sums, and the chain of a file of records.

Each line carries the SHA-256 of itself and that of the line before. It ends with ``, "previous": "…", "sha256": "…"}``.
``sha256`` is that of the line's bytes up to ``, "sha256"``, so that it covers ``previous``, which is the ``sha256`` of
the line before; of the first line, the SHA-256 of the run's id. A line that was edited is found by itself; one that was
removed, added or moved by the next.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
    RESULTS: (records.CharacterisationRecord, records.MarginRecord, records.MeasurementRecord),
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
        with os.scandir(folder) as present:
            return {entry.name: entry.is_file(follow_symlinks=False) for entry in present if entry.name not in DERIVED}
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


# -- the chain of a file of records ------------------------------------------------------------------------------------


_OWN = b', "sha256": "'
_END = b'"}'
_TAIL = len(_OWN) + 64 + len(_END)


def first_link(run: str) -> str:
    """Return what the first line of each file of *run* carries as ``previous``."""
    return hashlib.sha256(run.encode(errors="surrogatepass")).hexdigest()


def sealed(data: Mapping[str, Any], previous: str) -> tuple[bytes, str]:
    """Return *data* as a line that follows one with the sum *previous*, and its own sum.

    Raises ValueError if a number is not finite. Half a character, as of a file's name that is not UTF-8, becomes a
    question mark.
    """
    text = json.dumps({**data, "previous": previous}, ensure_ascii=False, allow_nan=False)
    body = text.encode(errors="replace")[:-1]
    own = hashlib.sha256(body).hexdigest()
    return body + _OWN + own.encode() + _END + b"\n", own


def breaks(lines: Sequence[bytes], run: str) -> list[tuple[int, str]]:
    """Return which *lines* of a file of *run*, without their newlines, are not as they were written, and why.

    They are counted from 1. Of the line after one that was changed, nothing shows what it followed. Takes linear time.
    """
    broken: list[tuple[int, str]] = []
    before: str | None = first_link(run)
    start = 0
    for number, line in enumerate(lines, 1):
        own = _own_sum(line)
        if own is None:
            broken.append((number, f"was changed (bytes {start + 1} to {start + len(line)} of the file)"))
        elif before is not None and not line[:-_TAIL].endswith(f', "previous": "{before}"'.encode()):
            place = f"line {number - 1}" if number > 1 else "the beginning of this run"
            broken.append((number, f"does not follow {place}: lines were removed, added or moved here"))
        before = own
        start += len(line) + 1
    return broken


def _own_sum(line: bytes) -> str | None:
    """Return the sum of *line*; None if it says another one, or none."""
    own = hashlib.sha256(line[:-_TAIL]).hexdigest()
    return own if line[-_TAIL:] == _OWN + own.encode() + _END else None
