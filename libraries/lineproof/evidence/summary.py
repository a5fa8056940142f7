"""The summary of runs: what was promised, what was measured, and the verdict of each sentence; as data.

:mod:`.summary_forms` shows it. It is made of the records alone, also of those of a run that was killed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..core.goal import Goal
from ..core.registry import is_installed
from ..units import counted
from .rates import percent
from .records import UNJUDGED, VERDICTS, EnvironmentRecord, MeasurementRecord
from .run import RecordedRun, methods_of, read_run
from .run_files import RESULTS, STUDY_PAGE
from .sentence_rows import SentenceRow, sentence_rows, unfinished_sentences
from .started_as import StartedAs

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
class StudySummary:
    """The measurements of a study's run. ``gaps``: measurements without a value; ``text``: where its tables are."""

    measurements: int
    gaps: int
    text: str

    def __str__(self) -> str:
        missing = f", {self.gaps} without a value" if self.gaps else ""
        return f"{counted(self.measurements, 'measurement')}{missing}"


@dataclass(frozen=True)
class RunSummary:
    """One run. ``rows``: its sentences. ``facts``: name and words of what was tested, with what, by which goal.

    ``incomplete``: what the run lacks because it ended badly, in words. ``suite``: "" where nobody wrote it down.
    ``study``: of a study's run, which has no sentences. ``unjudged``: why no sentence was judged. ``results``: of a run
    without sentences, the methods of its characterisations. ``resume``: the command that goes on with it; "" where
    nobody wrote down how it was started.
    """

    folder: Path
    suite: str
    simulated: bool
    facts: Mapping[str, str]
    rows: tuple[SentenceRow, ...]
    incomplete: tuple[str, ...] = ()
    study: StudySummary | None = None
    unjudged: str = ""
    results: tuple[str, ...] = ()
    resume: str = ""

    @property
    def title(self) -> str:
        """``Suite: 8 PASS, 1 FAIL, 0 INCONCLUSIVE``; of a study: ``study small: 8 measurements``.

        Where the set-up failed before any sentence: ``Suite: nothing was judged: …``; of characterisations alone:
        ``Suite: 6 characterisations, no sentence``.
        """
        return f"{self.suite or self.folder.name}: {self._outcome()}{' – INCOMPLETE' if self.incomplete else ''}"

    def _outcome(self) -> str:
        if self.study:
            return str(self.study)
        if self.unjudged and not self.rows and not self.incomplete:
            return f"nothing was judged: {self.unjudged}"
        if self.results:
            return f"{counted(len(self.results), 'characterisation')}, no sentence"
        found = Counter[str](row.record.verdict for row in self.rows)
        return ", ".join(f"{found[verdict]} {verdict}" for verdict in VERDICTS)


@dataclass(frozen=True)
class ExecutionSummary:
    """The ``runs`` of an execution.

    ``unread``: why others are not among them. ``next``: the command that goes on with a run that did not end.
    ``page``: the path of the summary as a page.
    """

    runs: tuple[RunSummary, ...]
    unread: tuple[str, ...] = field(default=())
    next: str = ""
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
    study = None if run.measurements is None else _study(folder, run.measurements)
    # the trials of a study are of its measurements, and have no verdicts
    incomplete = _incomplete(environment, {} if study else unfinished_sentences(run))
    unjudged = str(environment.extra.get(UNJUDGED, "")) if environment else ""
    results = () if rows or study else methods_of(folder)
    facts = _facts(environment) | ({"results": f"{', '.join(results)} (in {RESULTS})"} if results else {})
    started = StartedAs.of(environment.extra) if environment else None
    resume = started.going_on(folder) if started else ""
    return RunSummary(folder, suite, run.simulated, facts, rows, tuple(incomplete), study, unjudged, results, resume)


def _study(folder: Path, records: Sequence[MeasurementRecord]) -> StudySummary:
    page = f"{folder / STUDY_PAGE}, or " if (folder / STUDY_PAGE).is_file() else ""
    text = f"Its tables: {page}lineproof study report {folder.name}\n"
    return StudySummary(len(records), sum(record.value is None for record in records), text)


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
