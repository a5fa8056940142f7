"""The files of an execution's summary, in the folder of its first run; the records make them again."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

from ..core.rule import Ruling
from ..errors import LineproofError, in_words
from ..files import write_whole
from .run_files import PAGE, REQUIREMENTS, partial
from .summary import ExecutionSummary, RunSummary, summarise
from .summary_forms import FORMS


def execution_runs(execution: Path) -> Iterator[Path]:
    """The folders of an execution's runs: *execution*, then ``…-2`` and so on."""
    for number in count(1):
        folder = execution if number == 1 else execution.with_name(f"{execution.name}-{number}")
        if not (folder / REQUIREMENTS).exists():
            return
        yield folder


def execution_summary(execution: Path, known: Mapping[Path, RunSummary]) -> ExecutionSummary:
    """The summary of all runs of *execution*, as far as they can be read. *known*: those that were read before."""
    runs, unread = [], []
    for folder in execution_runs(execution):
        try:
            runs.append(known.get(folder) or summarise(folder))
        except (LineproofError, OSError) as error:
            unread.append(in_words(error))
    page = page_name(execution) if runs else ""
    return ExecutionSummary(tuple(runs), tuple(unread), next_command(runs), page)


def write_forms(folder: Path, summary: ExecutionSummary) -> None:
    """Write every form into *folder*. Raises TestbedError."""
    for name, form in FORMS.items():
        write_whole(folder / name, form(summary), fresh=partial(folder / name))


@contextlib.contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """No two processes are in this block for the same *folder* at once, where its file system knows locks."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def next_command(runs: Sequence[RunSummary]) -> str:
    """Return the command that goes on with the first of *runs* that is incomplete or INCONCLUSIVE; "" if none is."""
    for run in runs:
        if run.incomplete or any(row.record.verdict == Ruling.INCONCLUSIVE.value for row in run.rows):
            suite = run.suite or "that it was"
            return run.resume or f"robot -v RESUME:{run.folder.name}, the options of that run, and the suite {suite}"
    return ""


def page_name(execution: Path) -> str:
    """Return the path of the summary's page of *execution*, from the current folder if it lies below."""
    page, here = execution / PAGE, Path.cwd()
    return str(page.relative_to(here) if page.is_relative_to(here) else page)
