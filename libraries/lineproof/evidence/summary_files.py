"""The files of an execution's summary, in the folder of its first run; the records make them again."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

from ..errors import LineproofError, in_words
from ..files import write_whole
from .run_files import REQUIREMENTS, partial
from .summary import INCOMPLETE, ExecutionSummary, RunSummary, summarise
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
    return ExecutionSummary(tuple(runs), tuple(unread), next_command(execution, runs))


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


def next_command(execution: Path, runs: Sequence[RunSummary]) -> str:
    """What to do next with the *runs* of *execution*: go on with one that did not end, else make the report."""
    for run in runs:
        if INCOMPLETE in run.incomplete:
            suite = run.suite or "that it was"
            return run.resume or f"robot -v RESUME:{run.folder.name}, the options of that run, and the suite {suite}"
    return f"lineproof report {shlex.quote(_short(execution))}" if runs else ""


def _short(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
