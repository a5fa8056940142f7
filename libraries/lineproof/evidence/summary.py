"""The summary of runs: what was promised, what was measured, and the verdict of each sentence; and its page.

It is made of the records alone, also of those of a run that was killed. The page is in the folder of the execution's
first run.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, takewhile
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..core.goal import Goal
from ..core.registry import is_installed
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
from .rates import percent
from .records import UNJUDGED, VERDICTS, EnvironmentRecord
from .run import RecordedRun, methods_of, read_run
from .run_files import PAGE, REQUIREMENTS, RESULTS, STUDY_PAGE, partial
from .sentence_rows import SentenceRow, sentence_rows, unfinished_sentences

NOTHING = "–"
NOT_READ = "not read"
_NO_SPREAD = 1e-6
"""Half of an interval, as a share of its middle, that nobody wants to know."""

INCOMPLETE = "incomplete: run did not end"
STUDY = "study"
"""Key of a study's name in the environment record's extra data."""

DESCRIPTION = "description"
"""Key of the platform's description in the environment record's extra data."""


@dataclass(frozen=True)
class RunSummary:
    """One run. ``rows``: its sentences. ``facts``: name and words of what was tested, with what, by which goal.

    ``incomplete``: what the run lacks because it ended badly, in words. ``suite``: "" where nobody wrote it down.
    ``tables``: where those of a study are, and ``instead``: what the run has in place of sentences, or why it has none.
    """

    folder: Path
    suite: str
    simulated: bool
    facts: Mapping[str, str]
    rows: tuple[SentenceRow, ...]
    incomplete: tuple[str, ...] = ()
    tables: str = ""
    instead: str = ""

    @property
    def title(self) -> str:
        """``Suite: 8 PASS, 1 FAIL, 0 INCONCLUSIVE``, or what there is instead."""
        verdicts = Counter[str](row.record.counts_as for row in self.rows)
        outcome = self.instead or ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in VERDICTS)
        return f"{self.suite or self.folder.name}: {outcome}{' – INCOMPLETE' if self.incomplete else ''}"


@dataclass(frozen=True)
class ExecutionSummary:
    """The ``runs`` of an execution; ``unread``: why others are not among them; ``page``: the path of their page."""

    runs: tuple[RunSummary, ...]
    unread: tuple[str, ...] = ()
    page: str = ""

    @property
    def simulated(self) -> bool:
        """Return whether any of them is."""
        return any(run.simulated for run in self.runs)


def summarise(folder: Path) -> RunSummary:
    """The run in *folder*, closed or not. Raises ConfigError if it was altered, or is none."""
    return summary_of(read_run(folder))


def summary_of(run: RecordedRun) -> RunSummary:
    """Return the summary of *run*."""
    folder, environment, rows = run.path, run.environment, sentence_rows(run)
    suite = str(environment.extra.get("suite", "")) if environment else ""
    incomplete = _incomplete(environment, unfinished_sentences(run) if run.measurements is None else {})
    methods = () if rows or run.measurements is not None else methods_of(folder)
    facts, tables, instead = _facts(environment), "", ""
    if run.measurements is not None:  # the trials of a study are of its measurements, and have no verdicts
        page = f"{folder / STUDY_PAGE}, or " if (folder / STUDY_PAGE).is_file() else ""
        tables = f"Its tables: {page}lineproof study report {folder.name}\n"
        gaps = sum(record.value is None for record in run.measurements)
        instead = counted(len(run.measurements), "measurement") + (f", {gaps} without a value" if gaps else "")
    elif methods:
        facts["results"] = f"{', '.join(methods)} (in {RESULTS})"
        instead = f"{counted(len(methods), 'characterisation')}, no sentence"
    elif environment and (unjudged := environment.extra.get(UNJUDGED)) and not rows and not incomplete:
        instead = f"nothing was judged: {unjudged}"
    return RunSummary(folder, suite, run.simulated, facts, rows, tuple(incomplete), tables, instead)


def _facts(environment: EnvironmentRecord | None) -> dict[str, str]:
    if environment is None:
        return {}
    extra, versions = environment.extra, environment.versions
    facts = environment.router_facts
    described = str(extra.get(DESCRIPTION) or "")
    version = versions.get("router.version") or (facts.version if facts else None)
    return {
        "testbed": environment.testbed,
        "router": f"{environment.platform}{f' ({described})' if described else ''}",
        "software": f"{environment.software}, version {version or NOT_READ}",
        "firmware": (facts.firmware if facts else None) or NOT_READ,
        "generator": versions.get("generator.server") or NOT_READ,
        "goal": goal_words(extra.get("goal")),
    }


def goal_words(data: Any) -> str:
    """The goal of an environment's record in words, as ``'quick': trials of 1 s, …``; "" where there is none."""
    try:
        return str(Goal.model_validate(data)).removeprefix("goal ")
    except ValidationError:
        return str(data.get("goal", "")) if isinstance(data, Mapping) else ""


def _incomplete(environment: EnvironmentRecord | None, unfinished: Mapping[tuple[str, str], int]) -> list[str]:
    words = [
        f"unfinished: {counted(trials, 'trial')} of '{sentence}', no verdict"
        for (_, sentence), trials in unfinished.items()
    ]
    if environment is None or environment.ended is None:
        return [INCOMPLETE, *(words or ["no trial of an unfinished sentence"])]
    return words


def summary(found: ExecutionSummary) -> Document:
    """Return a section for each run, which is the whole document of one run."""
    alone = len(found.runs) == 1
    title = found.runs[0].title if alone else f"Summary of {counted(len(found.runs), 'run')}"
    sections = [Section("" if alone else run.title, _parts(run)) for run in found.runs]
    commands = {"Next": next_command(found.runs), "Page": found.page}
    sections.append(
        Section(
            "", [*map(Note, found.unread), *(Code(f"{name}: {words}") for name, words in commands.items() if words)]
        )
    )
    return Document(title, sections, found.simulated)


def _parts(run: RunSummary) -> list[Part]:
    parts: list[Part] = [*(Note(words, strong=True) for words in run.incomplete), Facts(run.facts)]
    parts += [Code(run.tables)] if run.tables else []
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


def measured_text(row: SentenceRow) -> str:
    """Return what was measured of the sentence, in its unit: ``95% line rate, 0 % lost``."""
    demanded, endless = row.record.requirement, sum(not math.isfinite(value) for value in row.sample)
    if endless:
        return f"beyond any limit in {endless} of {counted(len(row.sample), 'trial')}"
    if row.measured is None:
        return NOTHING if is_installed(row.record.quantity) else f"{row.record.quantity} is not installed"
    words = demanded.text(row.measured.estimate)
    if demanded.quantity.threshold_is_load and row.lost is not None:
        words += f", {percent(row.lost)} lost"
    return words


def interval_text(row: SentenceRow) -> str:
    """The interval of :func:`measured_text`."""
    found, text = row.measured, row.record.requirement.text
    if found is None or not all(map(math.isfinite, row.sample)):
        return NOTHING
    if found.low is None or found.high is None:
        return "one trial"
    low, high = text(found.low), text(found.high)
    if low != high:
        return f"{low} to {high}"
    half = (found.high - found.low) / 2 / (abs(found.estimate) or 1.0)
    return f"±{percent(half)}" if half > _NO_SPREAD else "no spread"


def margin_text(row: SentenceRow) -> str:
    """By how much the sentence is kept: ``+8 % to +9 %``."""
    if row.margin is None or not all(map(math.isfinite, row.sample)):
        return "not searched" if row.is_carried else NOTHING
    low, high = row.margin
    # finer than a hundredth of a per cent is noise; adding 0 makes -0 a 0
    shown = [round(100 * end, 2) + 0.0 for end in (low, high) if end is not None]
    ends = [f"{end:+{'.3g' if abs(end) < 1000 else ',.0f'}} %" for end in shown]
    words = f"at least {ends[0]}" if high is None else " to ".join(dict.fromkeys(ends))
    return words if row.search is None or row.search.finished else f"{words}, unfinished"


def confidence_words(rows: Sequence[SentenceRow]) -> str:
    """``interval (95 %)``; without the figure where it is not the same of all *rows*."""
    found = {row.confidence for row in rows}
    return f"interval ({100 * found.pop():g} %)" if len(found) == 1 else "interval"


# -- an execution and its page -----------------------------------------------------------------------------------------


def execution_summary(execution: Path, known: Mapping[Path, RunSummary]) -> ExecutionSummary:
    """The summary of all runs of *execution*, as far as they can be read. *known*: those that were read before.

    They are in *execution*, then ``…-2`` and so on.
    """
    runs, unread = [], []
    others = (execution.with_name(f"{execution.name}-{number}") for number in count(2))
    for folder in takewhile(lambda folder: (folder / REQUIREMENTS).exists(), chain([execution], others)):
        try:
            runs.append(known.get(folder) or summarise(folder))
        except (LineproofError, OSError) as error:
            unread.append(in_words(error))
    page = page_name(execution) if runs else ""
    return ExecutionSummary(tuple(runs), tuple(unread), page)


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
        if run.incomplete or any(row.record.counts_as == Ruling.INCONCLUSIVE.value for row in run.rows):
            if run.tables:
                return f"the same study again, with --resume {run.folder.name} (a suite: -v RESUME:{run.folder.name})"
            suite = run.suite or "that it was"
            return f"robot -v RESUME:{run.folder.name}, the options of that run, and the suite {suite}"
    return ""


def page_name(execution: Path) -> str:
    """Return the path of the summary's page of *execution*, from the current folder if it lies below."""
    page, here = execution / PAGE, Path.cwd()
    return str(page.relative_to(here) if page.is_relative_to(here) else page)
