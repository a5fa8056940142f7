"""The rows of a run while it is measured: each is made when its sentence has ended, of the records that were written.

So the end of a run reads none of them again: after a day of trials that took longer than anybody waits.
"""

from __future__ import annotations

from dataclasses import replace

from .margin import MarginRecord
from .records import EnvironmentRecord, RequirementRecord, TrialRecord
from .sentence_rows import Begun, SentenceRow, sentence_row, unfinished


class KeptRows:
    """Is given every record after it was written; holds the trials of one sentence at a time."""

    def __init__(self) -> None:
        self._rows: dict[int, SentenceRow] = {}
        self._searches: dict[int, MarginRecord] = {}
        self._begun: list[Begun] = []
        self._trials: list[tuple[int, TrialRecord]] = []
        self._count = 0

    @property
    def rows(self) -> tuple[SentenceRow, ...]:
        """Those of the sentences with a verdict, as :func:`.sentence_rows.sentence_rows` makes them of the run."""
        return tuple(replace(row, search=self._searches.get(number)) for number, row in self._rows.items())

    def add_trial(self, record: TrialRecord) -> None:
        """A trial of the sentence that is measured, or of what has no verdict."""
        self._let_go(record.requirement)
        self._trials.append((self._count, record))
        self._count += 1

    def add_requirement(self, record: RequirementRecord) -> None:
        """The verdict of the sentence whose trials came before."""
        self._let_go(record.number)
        self._rows[record.number] = sentence_row(record, self._trials)
        self._trials = []

    def add_margin(self, record: MarginRecord) -> None:
        """The margin of a sentence."""
        self._searches[record.requirement] = record

    def unfinished(self, environment: EnvironmentRecord) -> dict[tuple[str, str], int]:
        """As :func:`.sentence_rows.unfinished_sentences`."""
        last = [Begun.of([record for _, record in self._trials])] if self._trials else []
        return unfinished([*self._begun, *last], environment, [row.record for row in self._rows.values()])

    def _let_go(self, number: int) -> None:
        """Of trials that are not of sentence *number*, only how many there were stays."""
        if self._trials and self._trials[0][1].requirement != number:
            self._begun.append(Begun.of([record for _, record in self._trials]))
            self._trials = []
