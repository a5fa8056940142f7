"""The sums of what is derived from a run: Allure's results and the summaries, whole after the last suite only.

Nothing is judged by them, so that they are no part of the manifest. ``derived.sha256`` is as ``sha256sum`` writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..files import write_whole
from .integrity import CHANGED, LARGEST_MANIFEST, MISSING, Alteration, changed_words
from .run_files import DERIVED_SUMS, MANIFEST_FILE, SUMMARIES, partial, sha256_of

_LINE = re.compile(r"([0-9a-f]{64})  ((?:allure/)?[^/\n]+)\n")


def seal_derived(folder: Path) -> None:
    """Sum what the execution derived in *folder*, that of its first run, if the run was closed. Raises TestbedError."""
    if (folder / MANIFEST_FILE).is_file():
        paths = [*(folder / name for name in SUMMARIES), *sorted((folder / "allure").glob("*"))]
        sums = {path.relative_to(folder).as_posix(): sha256_of(path) for path in paths if path.is_file()}
        text = "".join(f"{digest}  {name}\n" for name, digest in sums.items())
        write_whole(folder / DERIVED_SUMS, text, fresh=partial(folder / DERIVED_SUMS))


def derived_note(folder: Path) -> str:
    """That what is derived has no sums, in words; "": it has, or there is nothing."""
    if (folder / DERIVED_SUMS).exists() or not (folder / MANIFEST_FILE).is_file():
        return ""
    if not any((folder / name).exists() for name in (*SUMMARIES, "allure")):
        return ""
    return f"{DERIVED_SUMS} is missing: summaries and allure/, by which nothing is judged, are not checked"


def derived_alterations(folder: Path) -> Iterator[Alteration]:
    """What was changed or removed since. What was added has no sum: it may be of a process that was killed."""
    path = folder / DERIVED_SUMS
    if not path.exists() and not path.is_symlink():
        return
    if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST_MANIFEST:
        yield Alteration(DERIVED_SUMS, CHANGED)
        return
    text = path.read_bytes().decode(errors="replace")
    listed = {name: digest for digest, name in _LINE.findall(text)}
    if "".join(f"{digest}  {name}\n" for name, digest in listed.items()) != text:
        yield Alteration(DERIVED_SUMS, CHANGED)
    for name, digest in listed.items():
        file = folder / name
        if file.is_symlink() or not file.is_file():
            yield Alteration(name, MISSING)
        elif sha256_of(file) != digest:
            yield Alteration(name, changed_words(file, digest))
