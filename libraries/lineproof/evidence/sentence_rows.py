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

from ..core.registry import is_installed
from ..core.trial import Trial
from ..core.units import RATE_UNITS
from ..stats import Interval, interval
from .document import Cell, Column, Table, verdict_cell
from .rates import is_set_aside, percent
from .recorder import ABOUT
from .records import MarginRecord, RequirementRecord, TrialRecord, measured
from .run import RecordedRun

IntervalOf = Callable[[Sequence[float], float], Interval]
"""A sample's mean with its interval, at a confidence between 0 and 1."""

NOTHING, NOT_SEARCHED = "–", "not searched"

_PUBLISHED = re.compile(r"Published: (\d\S* [^\s.,;:]+(?: of \d+ %)?)")


@dataclass(frozen=True)
class SentenceRow:
    """A sentence with its verdict.

    ``sample``: what each trial that counts measured, in the unit of its threshold; trials of which any number of frames
    may be the testbed's do not. ``lost``: the loss ratio of them together, as it was counted, of the worst direction.
    ``search``: the search for its margin; None: there was none.
    ``set_aside``: how many trials do not count. ``method``: of the interval.
    """

    record: RequirementRecord
    sample: tuple[float, ...]
    lost: float | None
    set_aside: int = 0
    search: MarginRecord | None = None
    method: IntervalOf = interval

    @property
    def confidence(self) -> float:
        """Return that of the goal, 0 to 1."""
        return 1 - float(self.record.goal_terms.get("risk", 0.05))

    @property
    def is_carried(self) -> bool:
        """Return whether the threshold was offered and carried, which does not say how much more would be."""
        return self.record.verdict == "PASS" and self.record.requirement.quantity.threshold_is_load

    @cached_property
    def measured(self) -> Interval | None:
        """The mean of the finite figures of ``sample`` with its interval; None without one.

        A quantity whose mean is not below 0 (as energy above idle may be) never is, so neither is the interval:
        Student's t of two trials does not know that.
        """
        values = [value for value in self.sample if math.isfinite(value)]
        mean = self.method(values, self.confidence) if values else None
        if mean is None or mean.low is None or mean.estimate < 0:
            return mean
        return replace(mean, low=max(0.0, mean.low))

    @property
    def margin(self) -> tuple[float, float | None] | None:
        """The ratio of the threshold by which the sentence is kept, at least and at most (None: not known).

        Below 0 it is not kept. None where nobody looked: a throughput that passed says only that it is kept.
        """
        if self.search is not None:
            return self.search.low - 1, None if self.search.high is None else self.search.high - 1
        demanded, mean = self.record.requirement, self.measured
        threshold = demanded.threshold.number
        if mean is None or self.is_carried or not threshold or not all(map(math.isfinite, self.sample)):
            return None
        ends = (mean.estimate, mean.estimate) if mean.low is None or mean.high is None else (mean.low, mean.high)
        low, high = (end / threshold - 1 if demanded.at_least else 1 - end / threshold for end in ends)
        return min(low, high), max(low, high)

    @property
    def published(self) -> str:
        """The figure of others that the test's documentation names: ``97 %`` of ``Published: 97 %, which …``."""
        about = self.record.extra.get(ABOUT)
        named = _PUBLISHED.search(str(about.get("documentation", ""))) if isinstance(about, Mapping) else None
        return named[1] if named else ""

    @property
    def carries(self) -> str:
        """The load that the router carries, or what else was measured, in the sentence's unit: ``≥ 95% line rate``."""
        demanded, endless = self.record.requirement, sum(not math.isfinite(value) for value in self.sample)
        if self.search is not None and demanded.quantity.threshold_is_load:
            threshold, limit = demanded.threshold.number, f" ({self.search.limit})" if self.search.limit else ""
            low = demanded.text(four_digits(self.search.low * threshold, math.floor))
            if self.search.high is None:
                return f"≥ {low}{limit}"
            return range_text(low, demanded.text(four_digits(self.search.high * threshold, math.ceil)))
        if endless:
            return f"beyond any limit in {endless} of {len(self.sample)} trials"
        if self.measured is None:
            return NOTHING if is_installed(self.record.quantity) else f"{self.record.quantity} is not installed"
        if self.is_carried:
            return f"≥ {demanded.text()}"
        shown = demanded.text(self.measured.estimate)
        return f"{shown}, {percent(self.lost)} lost" if demanded.quantity.threshold_is_load and self.lost else shown

    @property
    def margin_text(self) -> str:
        """The margin in words: ``+8 % to +9 %``."""
        if self.margin is None:
            return NOT_SEARCHED if self.is_carried else NOTHING
        low, high = self.margin
        # finer than a hundredth of a per cent is noise; adding 0 makes -0 a 0
        shown = [round(100 * end, 2) + 0.0 for end in (low, high) if end is not None]
        ends = [f"{end:+{'.3g' if abs(end) < 1000 else ',.0f'}} %" for end in shown]
        words = f"at least {ends[0]}" if high is None else " to ".join(dict.fromkeys(ends))
        return words if self.search is None or self.search.finished else f"{words}, unfinished"

    @property
    def is_rate(self) -> bool:
        """Return whether the sentence promises frames, or bits, per second."""
        return self.record.requirement.threshold.unit in RATE_UNITS

    @property
    def outcome(self) -> str:
        """``carries 5.02 Mpps, margin +0.4 %``; "" where nothing is known."""
        margin = "" if self.margin is None else f", margin {self.margin_text}"
        return "" if self.carries == NOTHING else f"{figure_heading([self])} {self.carries}{margin}"

    def cells(self, heading: str, carries: str = "") -> dict[Column, Cell]:
        """Return what every table of sentences shows. *carries*: in place of its own, as of two runs."""
        return {
            Column("promised", left=True): Cell(self.record.sentence),
            Column(heading, left=True): Cell(carries or self.carries),
            Column("margin", left=True): Cell(self.margin_text),
            Column("verdict", left=True): verdict_cell(self.record.verdict),
        }


def figure_heading(rows: Iterable[SentenceRow]) -> str:
    """Return the heading of what *rows* carry; what is no rate is measured."""
    return " / ".join(dict.fromkeys("carries" if row.is_rate else "measured" for row in rows))


def range_text(low: str, high: str) -> str:
    """Return both figures, with their unit once where they have the same: ``5.01 to 5.04 Mpps``."""
    number = low.rstrip(string.ascii_letters + "/%µ ")
    if low == high:
        return high
    return f"{number if high.endswith(low.removeprefix(number)) else low} to {high}"


def four_digits(number: float, rounded: Callable[[float], int]) -> float:
    """Return *number* with four digits: of what was found, no more is said than that."""
    size = 10.0 ** (3 - math.floor(math.log10(number))) if number > 0 else 1.0
    return rounded(round(number * size, 6)) / size


def table_of_sentences(rows: Sequence[Mapping[Column, Cell]]) -> Table:
    """Return the table of *rows* without the columns that say nothing to people."""
    silent = ("", NOTHING, NOT_SEARCHED)
    spoken = {column for row in rows for column, cell in row.items() if cell.text not in silent}
    return Table.of([{column: row[column] for column in row if column in spoken} for row in rows])


def sentence_rows(run: RecordedRun, method: IntervalOf = interval) -> tuple[SentenceRow, ...]:
    """Return the rows of *run*, in the order of its sentences."""
    searches = {search.requirement: search for search in run.margins.values()}
    return tuple(
        _sentence_row(record, run.trials_by_number.get(record.number, ()), searches.get(record.number), method)
        for record in run.requirements
    )


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


def _sentence_row(
    record: RequirementRecord, trials: Sequence[TrialRecord], search: MarginRecord | None, method: IntervalOf
) -> SentenceRow:
    """Return the row of *record*. *trials*: its own."""
    judged = [one.trial for one in trials if one.trial.number]
    counted = [trial for trial in judged if not is_set_aside(trial)]
    figures = (measured(record.promise, trial) for trial in counted)
    return SentenceRow(
        record,
        tuple(figure for figure in figures if figure is not None),
        _loss_ratio(counted, record.requirement.in_total) if counted else None,
        len(judged) - len(counted),
        search,
        method,
    )


def _loss_ratio(trials: Sequence[Trial], in_total: bool) -> float:
    """Return the loss ratio of *trials* together, as it was counted, of all directions or of the worst one."""
    columns = list(zip(*(trial.outcome.directions for trial in trials), strict=True))
    groups = [[row for column in columns for row in column]] if in_total else columns
    ratios = [sum(row.lost for row in group) / max(1, sum(row.offered for row in group)) for group in groups]
    return max(ratios, default=0.0)
