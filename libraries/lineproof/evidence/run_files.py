"""The files of a run's folder: their names, which of them belong to the run, and their sums."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from ..errors import ConfigError

TRIALS = "trials.jsonl"
REQUIREMENTS = "requirements.jsonl"
READINGS = "readings.jsonl"
FILES = "files.jsonl"
"""The run's other files with their sums, in the order in which they were written."""
RECORDS = (TRIALS, READINGS, REQUIREMENTS, FILES)
"""Files of one record in each line, chained."""

MEASUREMENTS = "measurements.jsonl"
"""Those of a study; other runs have none."""
CHAINED = (*RECORDS, MEASUREMENTS)

INPUTS = "inputs"
STREAMS = "streams"
ENVIRONMENT_FILE = "environment.json"
TELEMETRY = "telemetry"
CHARACTERISATION = "characterisation"
MANIFEST_FILE = "manifest.json"
SUMS = "SHA256SUMS"
PAGE = "summary.html"
SUMMARIES = ("summary.txt", PAGE, "summary.csv", "summary.md")
"""In the folder of the execution's first run: the table of the sentences of all its runs."""

STUDY_FORMS = ("study.txt", "study.html", "study.csv", "study.md")
"""The results of a study."""

DERIVED_SUMS = "derived.sha256"
"""Beside the summaries: the sums of them and of Allure's results, after the last suite."""


SIGNATURE = f"{MANIFEST_FILE}.minisig"
"""The signature over the manifest, where minisign looks for it."""
SHEETS = ("signoff.html", "signoff.pdf")
DRAFTS = ("signoff-draft.html", "signoff-draft.pdf")
"""What ``lineproof signoff`` makes: the sheet to sign, and one that is not to be signed."""


def partial(path: Path) -> Path:
    """Where the new content of *path* is until it is whole. A crash may leave it."""
    return path.with_name(f".{path.name}.part")


_DERIVED_FILES = (*SUMMARIES, *STUDY_FORMS, DERIVED_SUMS, SIGNATURE, *SHEETS, *DRAFTS)
DERIVED = frozenset({"allure", *_DERIVED_FILES, *(partial(Path(name)).name for name in _DERIVED_FILES)})
"""What can be made again from the records; it is not in the manifest."""


def is_partial(name: str) -> bool:
    """Return whether a file of this *name*, its folders before it, is one of :func:`partial`."""
    last = name.rpartition("/")[2]
    return last.startswith(".") and last.endswith(".part")


def entries(folder: Path) -> Iterator[tuple[str, bool]]:
    """Each file of *folder* that belongs to the run, by its name with ``/``, and whether it is a regular file.

    No link is followed: neither a link nor a device is a file of a run. Raises ConfigError if a folder cannot be read.
    """
    todo = [""]
    while todo:
        inside = todo.pop()
        try:
            with os.scandir(folder / inside) as found:
                for entry in found:
                    name = f"{inside}{entry.name}"
                    if name in DERIVED:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(f"{name}/")
                    else:
                        yield name, entry.is_file(follow_symlinks=False)
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror}", folder / inside) from None


def summed_files(folder: Path) -> tuple[str, ...]:
    """The names of the files that the manifest lists: all of the run but the manifest and its sum."""
    own = {MANIFEST_FILE, SUMS, partial(Path(MANIFEST_FILE)).name, partial(Path(SUMS)).name}
    return tuple(sorted(name for name, regular in entries(folder) if regular and name not in own))


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file. Raises ConfigError if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path) from None
