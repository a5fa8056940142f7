"""The summary of runs as a document, and its files: in the folder of the execution's first run.

The records make them again.
"""

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
from ..units import counted
from .document import (
    Cell,
    Code,
    Column,
    Document,
    Facts,
    Note,
    Part,
    Section,
    Table,
    as_page,
    data_cells,
    verdict_cell,
)
from .run_files import PAGE, REQUIREMENTS, partial
from .sentence_rows import SentenceRow
from .summary import (
    ExecutionSummary,
    RunSummary,
    confidence_words,
    interval_text,
    margin_text,
    measured_text,
    summarise,
)


def summary(found: ExecutionSummary) -> Document:
    """Return a section for each run, which is the whole document of one run."""
    alone = len(found.runs) == 1
    title = found.runs[0].title if alone else f"Summary of {counted(len(found.runs), 'run')}"
    sections = [Section("" if alone else run.title, _parts(run)) for run in found.runs]
    commands = [f"{name}: {words}" for name, words in (("Next", found.next), ("Page", found.page)) if words]
    sections.append(Section("", [*map(Note, found.unread), *map(Code, commands)]))
    return Document(title, sections, found.simulated)


def _parts(run: RunSummary) -> list[Part]:
    parts: list[Part] = [*(Note(words, strong=True) for words in run.incomplete), Facts(run.facts)]
    parts += [Code(run.study.text)] if run.study else []
    parts += [Table.of([_row(run, row) for row in run.rows])] if run.rows else []
    return [*parts, Code(f"Evidence: {run.folder}")]


def _row(run: RunSummary, row: SentenceRow) -> dict[Column, Cell]:
    """Return what people read, then figures as numbers in the sentence's unit, without SI prefix."""
    record, demanded, margin = row.record, row.record.requirement, row.margin or (None, None)
    measured = row.measured if row.sample else None
    people = {
        Column("test", left=True, only="page"): Cell(record.test),
        Column("promised", left=True, key="sentence"): Cell(record.sentence),
        Column("measured", left=True, only="people"): Cell(measured_text(row)),
        Column(confidence_words(run.rows), left=True, only="people"): Cell(interval_text(row)),
        Column("margin", left=True, only="people"): Cell(margin_text(row)),
        Column("verdict", left=True): verdict_cell(record.verdict),
    }
    data = {
        "quantity": record.quantity,
        "statistic": demanded.statistic and demanded.statistic.name,
        "relation": demanded.relation,
        "promised": demanded.threshold.number,
        "unit": demanded.threshold.unit.value,
        "scope": demanded.scope.value,
        "measured": measured and measured.estimate,
        "low": measured and measured.low,
        "high": measured and measured.high,
        "confidence": row.confidence,
        "trials": len(row.sample),
        "set_aside": row.set_aside,
        "loss_ratio": row.lost,
        "margin_low_percent": None if margin[0] is None else 100 * margin[0],
        "margin_high_percent": None if margin[1] is None else 100 * margin[1],
        **{name: run.facts.get(name) for name in ("testbed", "router", "software", "firmware")},
        "goal": record.goal,
        "simulated": record.simulated,
        "incomplete": "; ".join(run.incomplete),
    }
    return data_cells({"run": record.run, "suite": run.suite}) | people | data_cells(data)


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


def write_page(folder: Path, found: ExecutionSummary) -> None:
    """Write the page into *folder*. Raises TestbedError."""
    write_whole(folder / PAGE, as_page(summary(found)), fresh=partial(folder / PAGE))


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
