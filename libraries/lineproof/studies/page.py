"""The page of a study in its run's folder."""

from __future__ import annotations

from pathlib import Path

from ..evidence.document import Figure, as_page
from ..evidence.run import seal_derived
from ..evidence.run_files import SIGNATURE, STUDY_PAGE, partial
from ..files import write_whole
from .fitness import senders_of
from .forms import LINE_RATE, document
from .pictures import pictures_of, sender_pictures
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
    """Write the page into the run's folder, with its sum in the manifest of a run that nobody signed; returns it.

    Raises ConfigError, TestbedError.
    """
    path = found.folder / STUDY_PAGE
    write_whole(path, page(found), fresh=partial(path))
    if not (found.folder / SIGNATURE).exists():
        seal_derived(found.folder)
    return path
