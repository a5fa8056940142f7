"""A run as people look at it: a row for each sentence, what was promised and what was measured.

Summary, sheet, comparison, gate and history read runs through these rows. Everything is from the records: they can be
made of any run's folder, also of one that was never closed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..core.trial import Trial
from ..stats import Interval, interval
from .rates import is_set_aside
from .records import INTERRUPTED, MarginRecord, RequirementRecord, TrialRecord, measured
from .run import RecordedRun

IntervalOf = Callable[[Sequence[float], float], Interval]
"""A sample's mean with its interval, at a confidence between 0 and 1."""


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
        found = self.method(values, self.confidence) if values else None
        if found is None or found.low is None or found.estimate < 0:
            return found
        return replace(found, low=max(0.0, found.low))

    @property
    def margin(self) -> tuple[float, float | None] | None:
        """By how much the sentence is kept, as a ratio of the threshold, at least and at most (None: not known).

        Below 0 it is not kept. None where nobody looked: a throughput that passed says only that it is kept.
        """
        if self.search is not None:
            return self.search.low - 1, None if self.search.high is None else self.search.high - 1
        demanded = self.record.requirement
        threshold = demanded.threshold.number
        if self.measured is None or self.is_carried or not threshold:
            return None
        found = self.measured
        ends = (found.estimate, found.estimate) if found.low is None or found.high is None else (found.low, found.high)
        low, high = (end / threshold - 1 if demanded.at_least else 1 - end / threshold for end in ends)
        return min(low, high), max(low, high)


def sentence_rows(run: RecordedRun, method: IntervalOf = interval) -> tuple[SentenceRow, ...]:
    """Return the rows of *run*, in the order of its sentences."""
    searches = {item.requirement: item for item in run.margins.values()}
    return tuple(
        _sentence_row(record, run.trials_by_number.get(record.number, ()), searches.get(record.number), method)
        for record in run.requirements
    )


def unfinished_sentences(run: RecordedRun) -> dict[tuple[str, str], int]:
    """Test and sentence that were begun and have no verdict -> how many trials it has; "" for a test not known.

    A sentence that was tried again, and judged then, is finished. Warm-ups do not count as trials.
    """
    judged = {(record.test, record.sentence): record.number for record in run.requirements}
    numbers, environment = {record.number for record in run.requirements}, run.environment
    begun = {number: records for number, records in run.trials_by_number.items() if number not in numbers}
    ended = environment is not None and environment.ended is not None
    found: dict[tuple[str, str], int] = {}
    for number, records in begun.items():
        name, trials = (records[0].test, records[0].sentence), sum(bool(item.trial.number) for item in records)
        # what is not to be judged (a search, a ramp) has trials without evidence, as every warm-up
        to_be_judged = any(item.evidence for item in records) or not (ended or trials)
        if to_be_judged and number > judged.get(name, 0):
            found[name] = trials
    interrupted = str(environment.extra.get(INTERRUPTED, "")) if environment else ""
    if interrupted and interrupted not in {sentence for _, sentence in found}:
        found["", interrupted] = 0
    return found


def _sentence_row(
    record: RequirementRecord, trials: Sequence[TrialRecord], search: MarginRecord | None, method: IntervalOf
) -> SentenceRow:
    """Return the row of *record*. *trials*: its own."""
    judged = [each.trial for each in trials if each.trial.number]
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
