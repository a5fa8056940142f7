"""The results of a study's run as files in its folder, and whether they say what its records say."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from ..errors import ConfigError
from ..evidence.environment import code_digest
from ..evidence.integrity import Alteration
from ..evidence.resume import FINGERPRINTS
from ..evidence.run import read_run
from ..evidence.run_files import MEASUREMENTS, STUDY_FORMS, partial
from ..evidence.verification import has_sum, seal_forms
from ..files import write_whole
from .forms import csv_text, markdown, text
from .history import read_results
from .page import page
from .preparing import CODE
from .results import StudyResults

FORMS = dict(zip(STUDY_FORMS, (text, page, csv_text, markdown), strict=True))
"""Each file of a run's folder, and what makes it."""


def write_results(found: StudyResults) -> Path:
    """Write every form into the run's folder, and their sums; returns the page. Raises TestbedError."""
    for name, form in FORMS.items():
        write_whole(found.folder / name, form(found), fresh=partial(found.folder / name))
    seal_forms(found.folder)
    return found.folder / "study.html"


_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)")

LARGEST_FORM = 64 * 2**20
"""Bytes. The page of a study of 100 blocks has less than one of these MB."""


def check_forms(folder: Path) -> tuple[tuple[Alteration, ...], tuple[str, ...]]:
    """Make each form in *folder* again from the records: which are not what these come to, and notes.

    The records must be as the run left them. Another Lineproof may write other words: what it made and nobody changed
    since, by its sums, is a note. Raises ConfigError if a form cannot be read.
    """
    present = [name for name in STUDY_FORMS if (folder / name).is_symlink() or (folder / name).exists()]
    if not present:
        return (), ()
    if not (folder / MEASUREMENTS).is_file():
        return tuple(Alteration(name, "was added: the run is no study's") for name in present), ()
    try:
        found, environment = read_results(folder), read_run(folder).environment
    except ConfigError as error:
        return (), (f"{' and '.join(present)}: not compared with the records: {error}",)
    differing = tuple(_differing(found, present))
    known = environment.extra.get(FINGERPRINTS) if environment else None
    made_by = known.get(CODE) if isinstance(known, dict) else None
    if made_by == code_digest():
        return differing, ()
    # a Lineproof that says which it was has also left sums, by which what somebody else changed is known
    wrong = tuple(item for item in differing if made_by is not None and not has_sum(folder, item.file))
    others = (f"{item}; another Lineproof made the run, with other words" for item in differing if item not in wrong)
    return wrong, tuple(others)


def _differing(found: StudyResults, names: list[str]) -> Iterator[Alteration]:
    for name in names:
        path = found.folder / name
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST_FORM:
            yield Alteration(name, "is no file that a study's run leaves")
            continue
        try:
            kept = path.read_bytes().decode(errors="replace")
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror}", path) from None
        if not _same(kept, FORMS[name](found)):
            yield Alteration(
                name, f"is not what the records come to; 'lineproof study report {found.folder.name}' makes it again"
            )


def _same(one: str, other: str) -> bool:
    """Return whether two forms say the same; numbers may differ by what two versions of a library round differently."""
    if one == other:
        return True
    ours, theirs = _NUMBER.split(one), _NUMBER.split(other)
    return len(ours) == len(theirs) and all(
        mine == yours or (place % 2 == 1 and math.isclose(float(mine), float(yours), rel_tol=1e-9))
        for place, (mine, yours) in enumerate(zip(ours, theirs, strict=True))
    )
