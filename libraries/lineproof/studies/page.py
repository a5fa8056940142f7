"""The page of a study in its run's folder, and whether it is what the records come to."""

from __future__ import annotations

from pathlib import Path

from ..errors import ConfigError
from ..evidence.document import Figure, as_page
from ..evidence.environment import code_digest
from ..evidence.integrity import Alteration
from ..evidence.resume import FINGERPRINTS
from ..evidence.run import read_run
from ..evidence.run_files import MEASUREMENTS, STUDY_PAGE, partial
from ..files import read_file, write_whole
from .fitness import senders_of
from .forms import LINE_RATE, document
from .pictures import pictures_of, sender_pictures
from .preparing import CODE
from .recorded import read_results
from .results import StudyResults


def drawn(found: StudyResults) -> dict[str, list[Figure]]:
    """Return the pictures of each row, and those of generators."""
    pictures = {row: pictures_of(found, row, cells) for row, cells in found.rows()}
    pictures[LINE_RATE] = sender_pictures(found, senders_of(found))
    return {part: [Figure(svg, title) for title, svg in each] for part, each in pictures.items()}


def page(found: StudyResults) -> str:
    """Return the results as a page with their pictures."""
    return as_page(document(found, drawn(found)))


def write_page(found: StudyResults) -> Path:
    """Write the page into the run's folder; returns it. Raises TestbedError."""
    path = found.folder / STUDY_PAGE
    write_whole(path, page(found), fresh=partial(path))
    return path


LARGEST_PAGE = 64 * 2**20
"""Bytes. The page of a study of 100 blocks has less than one of these MB."""


def check_page(folder: Path) -> tuple[tuple[Alteration, ...], tuple[str, ...]]:
    """Make the page in *folder* again from the records: whether it is not what these come to, and notes.

    The records must be as the run left them. Another Lineproof may write other words, which is a note.
    """
    path = folder / STUDY_PAGE
    if path.is_symlink() or not (folder / MEASUREMENTS).is_file():
        return (Alteration(STUDY_PAGE, "was added: no study's run leaves it"),), ()
    try:
        text = read_file(path, LARGEST_PAGE).decode(errors="replace")
        found, environment = read_results(folder), read_run(folder).environment
    except ConfigError as error:
        return (), (f"{STUDY_PAGE}: not compared with the records: {error}",)
    if text == page(found):
        return (), ()
    again = f"'lineproof study report {folder.name}' makes it again"
    other = Alteration(STUDY_PAGE, f"is not what the records come to; {again}")
    known = environment.extra.get(FINGERPRINTS) if environment else None
    if isinstance(known, dict) and known.get(CODE) == code_digest():
        return (other,), ()
    return (), (f"{other}; another Lineproof made the run, with other words",)
