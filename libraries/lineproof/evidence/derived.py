"""The sums of what is derived from a run: Allure's results, summaries (whole after the last suite only), study pages.

Nothing is judged by them, so that they are no part of the manifest. ``derived.sha256`` is as ``sha256sum`` writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..files import write_whole
from .integrity import CHANGED, LARGEST_MANIFEST, MISSING, Alteration, changed_words
from .run_files import DERIVED_SUMS, MANIFEST_FILE, STUDY_FORMS, SUMMARIES, partial, sha256_of

_LINE = re.compile(r"([0-9a-f]{64})  ((?:allure/)?[^/\n]+)\n")


def seal_derived(folder: Path) -> None:
    """Sum what the execution derived in *folder*, that of its first run, if the run was closed. Raises TestbedError."""
    if (folder / MANIFEST_FILE).is_file():
        allure = sorted(path.relative_to(folder).as_posix() for path in (folder / "allure").glob("*"))
        _write_sums(
            folder,
            {
                name: sha256_of(folder / name)
                for name in (*SUMMARIES, *STUDY_FORMS, *allure)
                if (folder / name).is_file()
            },
        )


def seal_forms(folder: Path) -> None:
    """Sum a study's results, just made again in *folder*; the sums of all else stay. Raises TestbedError."""
    _write_sums(folder, {**_listed(_sums_text(folder)), **{name: sha256_of(folder / name) for name in STUDY_FORMS}})


def has_sum(folder: Path, name: str) -> bool:
    """Return whether *name* has a sum there, which :func:`derived_alterations` compares."""
    return name in _listed(_sums_text(folder))


def _write_sums(folder: Path, sums: Mapping[str, str]) -> None:
    write_whole(folder / DERIVED_SUMS, _sums_content(sums), fresh=partial(folder / DERIVED_SUMS))


def _sums_content(sums: Mapping[str, str]) -> str:
    return "".join(f"{digest}  {name}\n" for name, digest in sums.items())


def _sums_text(folder: Path) -> str | None:
    """The content of its file of sums, "" without one; None: no run wrote that."""
    path = folder / DERIVED_SUMS
    if not path.exists() and not path.is_symlink():
        return ""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST_MANIFEST:
        return None
    return path.read_bytes().decode(errors="replace")


def _listed(text: str | None) -> dict[str, str]:
    return {name: digest for digest, name in _LINE.findall(text or "")}


def derived_note(folder: Path) -> str:
    """Return what is derived in *folder*, of a run that was closed, and has no sum, in words; "": nothing is."""
    if not (folder / MANIFEST_FILE).is_file() or (text := _sums_text(folder)) is None:
        return ""
    # the pages of a study are made again from its records
    listed = {"allure" if name.startswith("allure/") else name for name in _listed(text)}
    without = [name for name in (*SUMMARIES, "allure") if (folder / name).exists() and name not in listed]
    if not without:
        return ""
    state = "does not name" if text else "is missing:"
    return f"{DERIVED_SUMS} {state} {', '.join(without)}, by which nothing is judged: not checked"


def derived_alterations(folder: Path) -> Iterator[Alteration]:
    """Yield what was changed or removed since. What was added has no sum: it may be of a process that was killed."""
    text = _sums_text(folder)
    listed = _listed(text)
    if text is None or _sums_content(listed) != text:
        yield Alteration(DERIVED_SUMS, CHANGED)
    for name, digest in listed.items():
        file = folder / name
        if file.is_symlink() or not file.is_file():
            yield Alteration(name, MISSING)
        elif sha256_of(file) != digest:
            yield Alteration(name, changed_words(file, digest))
