"""A run as people look at it: a row for each sentence, with what it promised, carries, its margin and its verdict.

Report, sheet, comparison, gate and history read runs through these rows. Everything is from the records: they can be
made of any run's folder, also of one that was never closed.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..core.bounds import UNKNOWN, Bounds
from ..core.phrases import difference, percent
from ..core.quantity import Promise
from ..core.registry import is_installed
from ..core.trial import Trial, loss_ratio
from ..core.units import RATE_UNITS
from ..stats import Interval, interval
from .document import Cell, Column, Table, verdict_cell
from .records import MarginRecord, RequirementRecord
from .run import RecordedRun

NOTHING, NOT_SEARCHED = "–", "not searched"


@dataclass(frozen=True)
class SentenceRow:
    """A sentence with its verdict.

    ``sample``: what each trial that counts measured, in the unit of its threshold; trials of which any number of frames
    may be the testbed's do not. ``lost``: the loss ratio of them together, as it was counted, of the worst direction.
    ``search``: the search for its margin; None: there was none. ``trials``: all of it, with the warm-up.
    ``set_aside``: how many trials do not count. ``method``: of the interval, at a confidence between 0 and 1.
    """

    record: RequirementRecord
    sample: tuple[float, ...]
    lost: float | None
    set_aside: int = 0
    search: MarginRecord | None = None
    trials: tuple[Trial, ...] = ()
    method: Callable[[Sequence[float], float], Interval] = interval

    @property
    def is_carried(self) -> bool:
        """Return whether the threshold was offered and carried, which does not say how much more would be."""
        return self.record.verdict == "PASS" and self.record.requirement.quantity.threshold_is_load

    @cached_property
    def measured(self) -> Interval | None:
        """The mean of the finite figures of ``sample`` with its interval, as sure as the goal asks; None without one.

        A quantity whose mean is not below 0 (as energy above idle may be) never is, so neither is the interval:
        Student's t of two trials does not know that.
        """
        values = [value for value in self.sample if math.isfinite(value)]
        mean = self.method(values, 1 - self.record.goal.risk) if values else None
        return replace(mean, low=0.0) if mean and mean.low and mean.low < 0 <= mean.estimate else mean

    @cached_property
    def ends(self) -> Bounds | None:
        """The ends between which the figure of an INCONCLUSIVE sentence lies; None: they are not known."""
        judged, promise = [trial for trial in self.trials if trial.number], self.record.promise
        if self.record.verdict != "INCONCLUSIVE" or not judged or not judged[0].outcome.directions:
            return None
        ends = promise.quantity.ends(promise, judged)
        return None if ends == UNKNOWN or ends.is_exact else ends

    @property
    def margin(self) -> tuple[float, float] | None:
        """The ratio of the threshold by which the sentence is kept, at least and at most (infinite: not known).

        Below 0 it is not kept. None where nobody looked: a throughput that passed says only that it is kept.
        """
        if self.search is not None:
            return self.search.low - 1, math.inf if self.search.high is None else self.search.high - 1
        demanded, mean = self.record.requirement, None if self.is_carried else self.measured
        threshold = demanded.threshold.number
        if self.ends is not None:
            ends = self.ends.low, self.ends.high
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
    def carries(self) -> str:
        """The load that the router carries, or what else was measured, in the sentence's unit: ``≥ 95% line rate``."""
        demanded, endless = self.record.requirement, sum(not math.isfinite(value) for value in self.sample)
        if self.search is not None:
            threshold, limit = demanded.threshold.number, f" ({self.search.limit})" if self.search.limit else ""
            low = demanded.text(self.search.low * threshold, math.floor)
            if self.search.high is None:
                return f"≥ {low}{limit}"
            return range_text(low, demanded.text(self.search.high * threshold, math.ceil))
        if self.ends is not None:
            low = demanded.text(self.ends.low, math.floor)
            if math.isinf(self.ends.high):
                return f"≥ {low}, no upper end"
            return f"between {range_text(low, demanded.text(self.ends.high, math.ceil), 'and')}"
        if endless:
            return f"beyond any limit in {endless} of {len(self.sample)} trials"
        if self.is_carried and self.sample:
            return f"≥ {demanded.text()}"
        if self.measured is None:
            return NOTHING if is_installed(self.record.quantity) else f"{self.record.quantity} is not installed"
        shown = demanded.text(self.measured.estimate)
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
        words = open_ended + " to ".join(dict.fromkeys(ends))
        return words if self.search is None or self.search.finished else f"{words}, unfinished"

    @property
    def verdict(self) -> Cell:
        """The verdict, which looks as it counts: ``FAIL, as expected`` is in order."""
        got, wanted = self.record.verdict, self.record.expected
        beside = "" if wanted == "PASS" else ", as expected" if got == wanted else f", {wanted} was expected"
        return Cell(got + beside, verdict_cell(self.record.counts_as).mark)

    def cells(self, heading: str, carries: str = "") -> dict[Column, Cell]:
        """Return what every table of sentences shows. *carries*: in place of its own, as of two runs."""
        return {
            Column("promised", left=True): Cell(self.record.sentence),
            Column(heading, left=True): Cell(carries or self.carries),
            Column("margin", left=True): Cell(self.margin_text),
            Column("verdict", left=True): self.verdict,
        }


def figure_heading(rows: Iterable[SentenceRow]) -> str:
    """Return the heading of what *rows* carry; what is no rate of frames, or bits, is measured."""
    units = (row.record.requirement.threshold.unit for row in rows)
    return " / ".join(dict.fromkeys("carries" if unit in RATE_UNITS else "measured" for unit in units))


def range_text(low: str, high: str, joined: str = "to") -> str:
    """Return both figures, with their unit once where they have the same: ``5.01 to 5.04 Mpps``."""
    number = low.rstrip(string.ascii_letters + "/%µ ")
    if low == high:
        return high
    return f"{number if high.endswith(low.removeprefix(number)) else low} {joined} {high}"


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
        counted = [trial for trial in judged if not trial.is_set_aside]
        figures = (measured(record.promise, trial) for trial in counted)
        sample = tuple(figure for figure in figures if figure is not None)
        lost = loss_ratio(counted, record.requirement.in_total) if counted else None
        aside = len(judged) - len(counted)
        made.append(SentenceRow(record, sample, lost, aside, searches.get(record.number), trials))
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
