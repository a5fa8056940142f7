"""Runs as people look at them: what was tested, and of each sentence what was promised, is carried, and by how much.

Report, sheet, comparison, gate and history read runs through the rows of this file. Everything is made of the records
alone, also of those of a run that was killed.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain, count, takewhile
from pathlib import Path
from shlex import quote
from types import MappingProxyType

from ..core.bounds import UNKNOWN, Bounds
from ..core.deciding import ask
from ..core.phrases import changed_words, difference, percent
from ..core.quantity import Promise
from ..core.registry import is_installed
from ..core.rule import Ruling
from ..core.trial import Trial, loss_ratio
from ..core.units import RATE_UNITS
from ..core.verdict import weighing_trials
from ..documents.document import Cell, Code, Column, Document, Facts, Note, Part, Section, Table, verdict_cell
from ..errors import LineproofError, in_words
from ..session.judging import REMEDY
from ..stats import Interval, mean_interval
from ..units import counted, range_text
from .records import CharacterisationRecord, EnvironmentRecord, MarginRecord, RequirementRecord
from .run import RecordedRun, execution_of, read_run
from .run_files import PAGE, REQUIREMENTS, RESULTS, STUDY_PAGE

NOTHING, NOT_SEARCHED = "–", "not searched"


@dataclass(frozen=True)
class SentenceRow:
    """A sentence with its verdict.

    ``sample``: what each trial that counts measured, in the unit of its threshold; trials of which any number of frames
    may be the testbed's do not. ``lost``: the loss ratio of them together, as it was counted, of the worst direction.
    ``search``: the search for its margin; None: there was none; ``searched``: its trials. ``trials``: all of the
    sentence, with the warm-up. ``set_aside``: how many trials do not count.
    """

    record: RequirementRecord
    sample: tuple[float, ...]
    lost: float | None
    set_aside: int = 0
    search: MarginRecord | None = None
    trials: tuple[Trial, ...] = ()
    searched: tuple[Trial, ...] = ()

    @property
    def is_carried(self) -> bool:
        """The threshold was offered and carried, which does not say how much more would be carried."""
        return self.record.verdict == "PASS" and self.record.requirement.quantity.threshold_is_load

    @cached_property
    def measured(self) -> Interval | None:
        """The worse end of all trials together, where they have two; else the mean of the finite figures of ``sample``.

        The mean's interval is as sure as the goal asks. A quantity whose mean is not below 0 (as energy above idle may
        be) never is, so neither is the interval: Student's t of two trials does not know that. None without a figure.
        """
        sure, whole = 1 - self.record.goal.risk, self.whole
        if whole and self.sample and not self.changed and math.isfinite(whole.high):
            worse = whole.low if self.record.requirement.at_least else whole.high
            return Interval(worse, whole.low, whole.high, sure)
        values = [value for value in self.sample if math.isfinite(value)]
        mean = mean_interval(values, sure) if values else None
        return replace(mean, low=0.0) if mean and mean.low and mean.low < 0 <= mean.estimate else mean

    @cached_property
    def whole(self) -> Bounds | None:
        """The ends between which the figure of all trials lies, as the message has it; None: it has one, or none.

        A throughput that passed is carried, whatever may be hidden; a FAIL shows the frames that were counted as lost.
        """
        judged, promise = [trial for trial in self.trials if trial.number], self.record.promise
        is_counted = self.record.verdict == "FAIL" and promise.quantity.judges_loss and not self.changed
        if self.is_carried or is_counted or not judged or not judged[0].outcome.directions:
            return None
        ends = promise.quantity.ends(promise, weighing_trials(promise, judged, Ruling(self.record.verdict)))
        return None if ends == UNKNOWN or ends.is_exact else ends

    @property
    def ends(self) -> Bounds | None:
        """The ends between which the figure of an INCONCLUSIVE sentence lies; None: they are not known."""
        return self.whole if self.record.verdict == "INCONCLUSIVE" else None

    @property
    def margin(self) -> tuple[float, float] | None:
        """The ratio of the threshold by which the sentence is kept, at least and at most (infinite: not known).

        Below 0 it is not kept. None where nobody looked: a throughput that passed says only that it is kept.
        """
        if self.search is not None:
            return self.search.low - 1, math.inf if self.search.high is None else self.search.high - 1
        demanded, mean = self.record.requirement, None if self.is_carried else self.measured
        threshold = demanded.threshold.number
        if self.whole:
            ends = self.whole.low, self.whole.high
        elif mean is None or not all(map(math.isfinite, self.sample)):
            return None
        else:
            ends = (mean.estimate, mean.estimate) if mean.low is None or mean.high is None else (mean.low, mean.high)
        if not threshold:
            return None
        low, high = (end / threshold - 1 if demanded.at_least else 1 - end / threshold for end in ends)
        return min(low, high), max(low, high)

    @property
    def published(self) -> str:
        """The figure of others that the test's documentation names: ``97 %`` of ``Published: 97 %, which …``."""
        named = re.search(r"Published: (\d\S* [^\s.,;:]+(?: of \d+ %)?)", self.record.documentation)
        return named[1] if named else ""

    @property
    def changed(self) -> str:
        """How many of the frames that were looked at came back changed, of a FAIL in words; "": none, or no FAIL."""
        return changed_words([trial for trial in self.trials if trial.number]) if self.record.verdict == "FAIL" else ""

    @property
    def carries(self) -> str:
        """The load that the router carries, or what else was measured, in the sentence's unit: ``≥ 95% line rate``."""
        demanded, endless = self.record.requirement, sum(not math.isfinite(value) for value in self.sample)
        if self.search is not None:
            threshold, limit = demanded.threshold.number, f" ({self.search.limit})" if self.search.limit else ""
            low = demanded.text(self.search.low * threshold, math.floor)
            if self.search.high is None:
                return f"≥ {low}{limit}"
            return range_text(low, demanded.text(self.search.high * threshold, math.ceil))
        if self.whole and not (self.changed and demanded.quantity.judges_loss):
            ends = self.whole.low, self.whole.high
            if math.isinf(ends[1]):
                return f"≥ {demanded.text(ends[0], math.floor)}, no upper end"
            # ends that are alike as people read them are one figure
            down, up = (round, round) if len(set(map(demanded.text, ends))) == 1 else (math.floor, math.ceil)
            return range_text(demanded.text(ends[0], down), demanded.text(ends[1], up))
        if endless:
            return f"beyond any limit in {counted(endless, 'trial')}"
        if self.is_carried and self.sample:
            return f"≥ {demanded.text()}"
        if self.measured is None:
            return NOTHING if is_installed(self.record.quantity) else f"{self.record.quantity} is not installed"
        shown = demanded.text(self.measured.estimate)
        if self.changed and demanded.quantity.judges_loss:
            return f"{'≤' if demanded.at_least else '≥'} {shown}, {self.changed}"
        return f"{shown}, {percent(self.lost)} lost" if demanded.quantity.threshold_is_load and self.lost else shown

    @property
    def margin_text(self) -> str:
        """The margin in words: ``+8 % to +9 %``."""
        if self.margin is None:
            return NOT_SEARCHED if self.is_carried else NOTHING
        low, high = self.margin
        # never more than was found: the ends of an interval are rounded outwards
        down, up = (round, round) if low == high else (math.floor, math.ceil)
        ends = [difference(end, to) for end, to in ((low, down), (high, up)) if math.isfinite(end)]
        open_ended = "at least " if math.isinf(high) else "at most " if math.isinf(low) else ""
        figures = open_ended + " to ".join(dict.fromkeys(ends))
        return figures if self.search is None or self.search.finished else f"{figures}, unfinished"

    @property
    def outcome(self) -> str:
        """The figure and its margin in words, as ``carries ≥ 97% line rate, margin at least +2.1 %``; "": not known."""
        # a FAIL shows its own trials, beyond what is carried
        told = "forwarded" if self.record.verdict == Ruling.FAIL.value else "carries"
        heading = figure_heading([self]).replace("carries", told)
        margin = "" if self.margin is None else f", margin {self.margin_text}"
        return "" if self.carries == NOTHING else f"{heading} {self.carries}{margin}"

    @property
    def verdict(self) -> Cell:
        """The verdict, which looks as it counts: ``FAIL, as expected`` is in order."""
        got, wanted = self.record.verdict, self.record.expected
        beside = "" if wanted == "PASS" else ", as expected" if got == wanted else f", {wanted} was expected"
        return Cell(got + beside, verdict_cell(self.record.counts_as).mark)

    def cells(self, heading: str, carries: str = "") -> dict[Column, Cell]:
        """Return its cells in a table of sentences; the report has its own. *carries*: in place of this run's."""
        return {
            Column("promised", left=True): Cell(self.record.sentence),
            Column(heading, left=True): Cell(carries or self.carries),
            Column("margin", left=True): Cell(self.margin_text),
            Column("verdict", left=True): self.verdict,
        }


def figure_heading(sentences: Iterable[SentenceRow]) -> str:
    """Return the heading of what *sentences* carry; what is no rate of frames, or bits, is measured."""
    units = (row.record.requirement.threshold.unit for row in sentences)
    return " / ".join(dict.fromkeys("carries" if unit in RATE_UNITS else "measured" for unit in units))


def table_of_sentences(rows: Sequence[Mapping[Column, Cell]]) -> Table:
    """Return the table of *rows* without the columns that say nothing to people."""
    silent = ("", NOTHING, NOT_SEARCHED)
    spoken = {column for row in rows for column, cell in row.items() if cell.text not in silent}
    return Table.of([{column: row[column] for column in row if column in spoken} for row in rows])


def sentence_rows(run: RecordedRun) -> tuple[SentenceRow, ...]:
    """Return the rows of *run*, in the order of its sentences."""
    searches, made = {search.requirement: search for search in run.margins.values()}, []
    for record in run.requirements:
        trials = tuple(record.known_of(one.trial) for one in run.trials_by_number.get(record.number, ()))
        judged = [trial for trial in trials if trial.number]
        known = [trial for trial in judged if not trial.is_set_aside]
        # a FAIL shows what was counted, as its message does: what may be hidden beside it is no reason for it
        shown = [replace(trial, problems=()) for trial in known] if record.verdict == "FAIL" else known
        figures = (measured(record.promise, trial) for trial in shown)
        sample = tuple(figure for figure in figures if figure is not None)
        lost = loss_ratio(known, record.requirement.in_total) if known else None
        aside, search = len(judged) - len(known), searches.get(record.number)
        # a margin of the verdict's own trials has no others
        number = search.number if search and search.number != record.number else -1
        tried = tuple(one.trial for one in run.trials_by_number.get(number, ()) if one.trial.number)
        made.append(SentenceRow(record, sample, lost, aside, search, trials, tried))
    return tuple(made)


def measured(promise: Promise, trial: Trial) -> float | None:
    """Return what *trial* measured, as people read it: the end that is worse for the router; None: nothing is known."""
    bounds = promise.quantity.shown(promise, [trial]) if trial.outcome.directions else UNKNOWN
    if bounds == UNKNOWN:
        return None
    return bounds.low if promise.quantity.at_least else bounds.high


def unfinished_sentences(run: RecordedRun) -> dict[tuple[str, str], int]:
    """Test and sentence that were begun and have no verdict -> how many trials it has; "" for a test not known.

    A sentence that was tried again, and judged then, is finished. Warm-ups do not count as trials.
    """
    judged = {(record.test, record.sentence): record.number for record in run.requirements}
    numbers, ended = {record.number for record in run.requirements}, run.environment.ended is not None
    begun: dict[tuple[str, str], int] = {}
    for number, records in run.trials_by_number.items():
        name, trials = (records[0].test, records[0].sentence), sum(bool(record.trial.number) for record in records)
        # what is not to be judged (a search, a ramp) has trials without evidence, as every warm-up
        to_be_judged = any(record.evidence for record in records) or not (ended or trials)
        if to_be_judged and number not in numbers and number > judged.get(name, 0):
            begun[name] = trials
    interrupted = run.environment.interrupted
    if interrupted and interrupted not in {sentence for _, sentence in begun}:
        begun["", interrupted] = 0
    return begun


# -- the summary of runs -----------------------------------------------------------------------------------------------


WITHOUT_VERDICT = "without a verdict: "
"""Begins what names the tests of a run that failed without one."""


@dataclass(frozen=True)
class RunSummary:
    """A run with its sentences. ``facts``: name and words of what was tested, with what, by which goal, and when.

    ``incomplete``: what the run lacks because it ended badly, in words. ``instead``: what the run has in place of
    sentences, or why it has none; ``tables``: where those of a study are. ``doubt``: why its verdicts are not believed.
    """

    run: RecordedRun
    sentences: tuple[SentenceRow, ...]
    facts: Mapping[str, str]
    incomplete: tuple[str, ...] = ()
    instead: str = ""
    tables: str = ""
    doubt: str = ""

    @property
    def title(self) -> str:
        """``Suite: 8 PASS, 1 FAIL, 0 INCONCLUSIVE``, or what there is instead."""
        name = self.run.environment.suite or self.run.path.name
        verdicts = Counter[str](row.record.counts_as for row in self.sentences)
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
    environment, sentences, instead, tables = run.environment, sentence_rows(run), "", ""
    begun = {} if environment.study else unfinished_sentences(run)
    lacks = [f"unfinished: {counted(trials, 'trial')} of '{name}', no verdict" for (_, name), trials in begun.items()]
    if environment.ended is None:
        lacks = ["incomplete: run did not end", *(lacks or ["no trial of an unfinished sentence"])]
    if environment.unjudged and (sentences or run.results):
        lacks.append(f"{WITHOUT_VERDICT}{environment.unjudged}")
    facts = _facts(environment)
    if environment.study:  # the trials of a study are of its measurements, and have no verdicts
        page = f"{run.path / STUDY_PAGE}, or " if (run.path / STUDY_PAGE).is_file() else ""
        tables = f"Its tables: {page}lineproof study report {run.path.name}"
        gaps = sum(record.value is None for record in run.measured)
        instead = counted(len(run.measured), "measurement") + (f", {gaps} without a value" if gaps else "")
    elif not sentences and (methods := [one.method for one in run.results if isinstance(one, CharacterisationRecord)]):
        facts["results"] = f"{', '.join(dict.fromkeys(methods))} (in {RESULTS})"
        instead = f"{counted(len(methods), 'characterisation')}, no sentence"
    elif not sentences and not lacks:
        instead = ": ".join(filter(None, ("nothing was judged", environment.unjudged)))
    return RunSummary(run, sentences, facts, tuple(lacks), instead, tables)


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
    return {name: str(value) for name, value in facts.items() if value}


# -- the document ------------------------------------------------------------------------------------------------------


def summary(execution: ExecutionSummary) -> Document:
    """Return a section for each run, which is the whole document of one run, and sentences of several side by side."""
    alone = len(execution.runs) == 1
    title = execution.runs[0].title if alone else f"Summary of {counted(len(execution.runs), 'run')}"
    sections, test = [], Column("test", left=True, on_page=True)
    for run in execution.runs:
        heading = figure_heading(run.sentences)
        table = table_of_sentences([{test: Cell(row.record.test), **row.cells(heading)} for row in run.sentences])
        parts = [*head(run), *[table] * bool(run.sentences), *evidence(run)]
        sections.append(Section("" if alone else run.title, parts))
    sections += [*side_by_side(execution.runs), last_section(execution)]
    figures = [_figures(run, row) for run in execution.runs for row in run.sentences]
    return Document(title, sections, any(run.run.simulated for run in execution.runs), {"sentences": figures})


def head(run: RunSummary) -> list[Part]:
    """Return what *run* lacks, what was found at its end, and what was tested when."""
    environment, is_open = run.run.environment, any(row.record.verdict == "INCONCLUSIVE" for row in run.sentences)
    findings = (
        run.doubt,
        *run.incomplete,
        *environment.router_configuration.afterwards,
        _busy_words(environment) * is_open,
    )
    return [*(Note(finding, strong=True) for finding in findings if finding), Facts(run.facts)]


def _busy_words(environment: EnvironmentRecord) -> str:
    """Return how busy the machine that the run was started on was with other things; "": it was not."""
    load, cpus, steal = environment.host.get("load", 0), environment.host.get("cpus", 0), environment.cpu_steal_percent
    busy = []
    if load > cpus > 0:
        busy.append(f"{load:g} programs wanted its {counted(cpus, 'CPU')} when the run began")
    if steal is not None and steal >= 2.0:  # 20 ms of a trial of a second
        busy.append(f"{steal:.3g} % of its CPU time was withheld (steal)")
    return f"this machine was busy, which makes trials doubtful: {', '.join(busy)}" if busy else ""


def evidence(run: RunSummary) -> list[Part]:
    """Return where the tables of *run* are, and its records."""
    return [*([Note(run.tables)] if run.tables else []), Code(f"Evidence: {run.run.path}")]


def side_by_side(runs: Sequence[RunSummary]) -> list[Section]:
    """Return the sentences that several of *runs* have, with a column for each run; none without any."""
    named: dict[tuple[str, str], dict[Column, Cell | str]] = {}
    for run in runs:
        for row in run.sentences:
            test, sentence, verdict = row.record.test, row.record.sentence, row.record.verdict
            cells = named.setdefault((test, sentence), {Column("promised", left=True): sentence})
            shown = replace(verdict_cell(verdict), text=f"{verdict}: {row.carries}")
            cells[Column(run.run.path.name, left=True)] = shown
    shared = [cells for cells in named.values() if len(cells) > 2]
    return [Section("Side by side", [Table.of(shared)])] if shared else []


def last_section(execution: ExecutionSummary) -> Section:
    """Return which runs are not there, how to go on, and where the page is."""
    command = next_command(execution.runs)
    page = [Code(f"Page: {execution.page}")] if execution.page else []
    return Section("", [*map(Note, execution.unread), *([Code(f"Next: {command}")] if command else []), *page])


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
    """Return how to go on with the first of *runs* that was interrupted or is INCONCLUSIVE; "" if none is.

    All runs of its execution are gone on with: those that are decided send nothing.
    """
    for run in runs:
        known, records = run.run.environment, [row.record for row in run.sentences]
        # a test without a verdict has no trials to go on with: what is wrong with it must be put right
        interrupted = any(not lack.startswith(WITHOUT_VERDICT) for lack in run.incomplete)
        undecided = [row for row in run.sentences if {row.record.verdict, row.record.counts_as} == {"INCONCLUSIVE"}]
        if interrupted or any(map(_may_change, undecided)):
            if run.tables:
                return "the same study again"
            resumed = execution_of(run.run.path.name)
            variables = {"TESTBED": known.testbed, "GOAL": known.goal and known.goal.goal, "RESUME": resumed}
            options = [f"-v {variable}:{value}" for variable, value in variables.items() if value]
            suite = _from_here(Path(known.extra.get("suite", known.suite)))
            return " ".join(["robot --outputdir", quote(_from_here(run.run.path.parent)), *options, quote(suite)])
        for record in (row.record for row in undecided):
            if remedy := re.search(f"^ *{REMEDY}(.+)", record.message, re.MULTILINE):
                return remedy[1]
        if kept := [record.test for record in records if record.verdict == "PASS" != record.counts_as]:
            return f"remove 'expect=' from {', '.join(kept)}: the promise is kept"
    return ""


def _may_change(row: SentenceRow) -> bool:
    """Return whether more trials may decide an INCONCLUSIVE sentence: they cannot where both ends have answered."""
    judged = [trial for trial in row.trials if trial.number]
    if row.record.breakdown or not judged:
        return True
    rule = ask(row.record.promise, judged).rule
    return {rule.better.answer, rule.worse.answer} != {Ruling.PASS, Ruling.FAIL}


def page_name(execution: Path) -> str:
    """Return the path of the page of *execution*, from the current folder if it lies below."""
    return _from_here(execution / PAGE)


def _from_here(path: Path) -> str:
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
