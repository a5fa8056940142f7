"""The summary of runs: what was tested, and of each sentence what was promised and what is carried.

It is made of the records alone, also of those of a run that was killed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain, count, takewhile
from pathlib import Path
from types import MappingProxyType

from ..core.rule import Ruling
from ..errors import LineproofError, in_words
from ..units import counted
from .document import Cell, Code, Column, Document, Facts, Note, Part, Section, Table, verdict_cell
from .records import CharacterisationRecord, EnvironmentRecord
from .run import RecordedRun, read_run
from .run_files import PAGE, REQUIREMENTS, RESULTS, STUDY_PAGE
from .sentence_rows import SentenceRow, figure_heading, sentence_rows, table_of_sentences, unfinished_sentences

_BUSY_STEAL = 2.0
"""Per cent of a machine's CPU time that may be withheld without a word: 20 ms of a trial of a second."""


@dataclass(frozen=True)
class RunSummary:
    """A run with its sentences. ``facts``: name and words of what was tested, with what, by which goal, and when.

    ``incomplete``: what the run lacks because it ended badly, in words. ``instead``: what the run has in place of
    sentences, or why it has none; ``tables``: where those of a study are.
    """

    run: RecordedRun
    rows: tuple[SentenceRow, ...]
    facts: Mapping[str, str]
    incomplete: tuple[str, ...] = ()
    instead: str = ""
    tables: str = ""

    @property
    def title(self) -> str:
        """``Suite: 8 PASS, 1 FAIL, 0 INCONCLUSIVE``, or what there is instead."""
        name = self.run.environment.suite or self.run.path.name
        verdicts = Counter[str](row.record.counts_as for row in self.rows)
        outcome = self.instead or ", ".join(f"{verdicts[ruling.value]} {ruling.value}" for ruling in Ruling)
        return f"{name}: {outcome}{' – INCOMPLETE' if self.incomplete else ''}"


@dataclass(frozen=True)
class ExecutionSummary:
    """The ``runs`` of an execution; ``unread``: why others are not among them; ``page``: the path of their page."""

    runs: tuple[RunSummary, ...]
    unread: tuple[str, ...] = ()
    page: str = ""


def summary_of(run: RecordedRun) -> RunSummary:
    """Return the summary of *run*, closed or not."""
    environment, rows, instead, tables = run.environment, sentence_rows(run), "", ""
    begun = {} if environment.study else unfinished_sentences(run)
    lacks = [f"unfinished: {counted(trials, 'trial')} of '{name}', no verdict" for (_, name), trials in begun.items()]
    if environment.ended is None:
        lacks = ["incomplete: run did not end", *(lacks or ["no trial of an unfinished sentence"])]
    facts = _facts(environment)
    if environment.study:  # the trials of a study are of its measurements, and have no verdicts
        page = f"{run.path / STUDY_PAGE}, or " if (run.path / STUDY_PAGE).is_file() else ""
        tables = f"Its tables: {page}lineproof study report {run.path.name}\n"
        gaps = sum(record.value is None for record in run.measured)
        instead = counted(len(run.measured), "measurement") + (f", {gaps} without a value" if gaps else "")
    elif not rows and (methods := [item.method for item in run.results if isinstance(item, CharacterisationRecord)]):
        facts["results"] = f"{', '.join(dict.fromkeys(methods))} (in {RESULTS})"
        instead = f"{counted(len(methods), 'characterisation')}, no sentence"
    elif not rows and not lacks:
        instead = ": ".join(filter(None, ("nothing was judged", environment.unjudged)))
    return RunSummary(run, rows, facts, tuple(lacks), instead, tables)


def execution_summary(execution: Path, known: Mapping[Path, RunSummary] = MappingProxyType({})) -> ExecutionSummary:
    """Return the summary of the runs in *execution*, ``…-2`` and so on, as far as they can be read.

    *known*: by folder, those that need not be read again.
    """
    runs, unread = [], []
    others = (execution.with_name(f"{execution.name}-{number}") for number in count(2))
    for folder in takewhile(lambda folder: (folder / REQUIREMENTS).exists(), chain([execution], others)):
        try:
            runs.append(known.get(folder) or summary_of(read_run(folder)))
        except (LineproofError, OSError) as error:
            unread.append(in_words(error))
    return ExecutionSummary(tuple(runs), tuple(unread), page_name(execution) if runs else "")


def _facts(environment: EnvironmentRecord) -> dict[str, str]:
    described, versions, router = environment.description, environment.versions, environment.router_facts
    version = versions.get("router.version") or (router and router.version)
    moments = (environment.started, environment.ended)
    times = [f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M:%S} UTC" for moment in moments if moment]
    facts = {
        "router": f"{environment.platform}{f' ({described})' if described else ''}",
        "software": f"{environment.software}{f', version {version}' if version else ''}",
        "firmware": router and router.firmware,
        "testbed": environment.testbed,
        "generator": versions.get("generator.server"),
        "goal": str(environment.goal or "").removeprefix("goal "),
        "when": " to ".join(times),
        "clock": "" if environment.clock_speed == 1 else f"{environment.clock_speed:g} times as fast as real time",
        "SLA": environment.sla,
    }
    return {name: str(words) for name, words in facts.items() if words}


# -- the document ------------------------------------------------------------------------------------------------------


def summary(found: ExecutionSummary) -> Document:
    """Return a section for each run, which is the whole document of one run, and sentences of several side by side."""
    alone = len(found.runs) == 1
    title = found.runs[0].title if alone else f"Summary of {counted(len(found.runs), 'run')}"
    sections, test = [], Column("test", left=True, on_page=True)
    for run in found.runs:
        heading = figure_heading(run.rows)
        table = table_of_sentences([{test: Cell(row.record.test), **row.cells(heading)} for row in run.rows])
        sections.append(Section("" if alone else run.title, [*head(run), *[table] * bool(run.rows), evidence(run)]))
    sections += [*side_by_side(found.runs), last_section(found)]
    figures = [_figures(run, row) for run in found.runs for row in run.rows]
    return Document(title, sections, any(run.run.simulated for run in found.runs), {"sentences": figures})


def head(run: RunSummary) -> list[Part]:
    """Return what *run* lacks, what was found at its end, and what was tested when."""
    environment, is_open = run.run.environment, any(row.record.verdict == "INCONCLUSIVE" for row in run.rows)
    findings = (*run.incomplete, *environment.router_configuration.afterwards, _busy_words(environment) * is_open)
    return [*(Note(words, strong=True) for words in findings if words), Facts(run.facts)]


def _busy_words(environment: EnvironmentRecord) -> str:
    """Return how busy the machine that the run was started on was with other things; "": it was not."""
    load, cpus, steal = environment.host.get("load", 0), environment.host.get("cpus", 0), environment.cpu_steal_percent
    busy = []
    if load > cpus > 0:
        busy.append(f"{load:g} programs wanted its {counted(cpus, 'CPU')} when the run began")
    if steal is not None and steal >= _BUSY_STEAL:
        busy.append(f"{steal:.3g} % of its CPU time was withheld (steal)")
    return f"this machine was busy, which makes trials doubtful: {', '.join(busy)}" if busy else ""


def evidence(run: RunSummary) -> Part:
    """Return where the tables of *run* are, and its records."""
    return Code(f"{run.tables}Evidence: {run.run.path}")


def side_by_side(runs: Sequence[RunSummary]) -> list[Section]:
    """Return the sentences that several of *runs* have, with a column for each run; none without any."""
    named: dict[tuple[str, str], dict[Column, Cell | str]] = {}
    for run in runs:
        for row in run.rows:
            test, sentence, verdict = row.record.test, row.record.sentence, row.record.verdict
            cells = named.setdefault((test, sentence), {Column("promised", left=True): sentence})
            shown = replace(verdict_cell(verdict), text=f"{verdict}: {row.carries}")
            cells[Column(run.run.path.name, left=True)] = shown
    shared = [cells for cells in named.values() if len(cells) > 2]
    return [Section("Side by side", [Table.of(shared)])] if shared else []


def last_section(found: ExecutionSummary) -> Section:
    """Return which runs are not there, how to go on, and where the page is."""
    commands = {"Next": next_command(found.runs), "Page": found.page}
    told = [Code(f"{name}: {words}") for name, words in commands.items() if words]
    return Section("", [*map(Note, found.unread), *told])


def _figures(run: RunSummary, row: SentenceRow) -> dict[str, object]:
    """Return figures as numbers in the sentence's unit, without SI prefix."""
    record, demanded, measured = row.record, row.record.requirement, row.measured
    low, high = (100 * end if math.isfinite(end) else None for end in row.margin or (math.inf, math.inf))
    return {
        "run": record.run,
        "suite": run.run.environment.suite,
        **{name: getattr(record, name) for name in ("test", "sentence", "verdict", "quantity")},
        "statistic": demanded.statistic and demanded.statistic.name,
        "relation": demanded.relation,
        "promised": demanded.threshold.number,
        "unit": demanded.threshold.unit.value,
        "scope": demanded.scope.value,
        "published": row.published,
        "measured": measured and measured.estimate,
        "low": measured and measured.low,
        "high": measured and measured.high,
        "confidence": measured and measured.confidence,
        "trials": len(row.sample),
        "set_aside": row.set_aside,
        "loss_ratio": row.lost,
        "margin_low_percent": low,
        "margin_high_percent": high,
        **{name: run.facts.get(name) for name in ("testbed", "router", "software", "firmware")},
        "goal": record.goal.goal,
        "simulated": record.simulated,
        "incomplete": "; ".join(run.incomplete),
    }


def next_command(runs: Sequence[RunSummary]) -> str:
    """Return how to go on with the first of *runs* that is incomplete or INCONCLUSIVE; "" if none is."""
    for run in runs:
        name, records = run.run.path.name, [row.record for row in run.rows]
        suite = run.run.environment.suite or "that it was"
        if run.incomplete or any({record.verdict, record.counts_as} == {"INCONCLUSIVE"} for record in records):
            if run.tables:
                return f"the same study again, with --resume {name} (a suite: -v RESUME:{name})"
            return f"robot -v RESUME:{name}, the options of that run, and the suite {suite}"
        if kept := [record.test for record in records if record.verdict == "PASS" != record.counts_as]:
            return f"remove 'expect=' from {', '.join(kept)}: the promise is kept"
    return ""


def page_name(execution: Path) -> str:
    """Return the path of the page of *execution*, from the current folder if it lies below."""
    page, here = execution / PAGE, Path.cwd()
    return str(page.relative_to(here) if page.is_relative_to(here) else page)
