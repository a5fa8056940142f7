"""May this go out? The verdicts of runs, and what is proven worse than a baseline, as one answer for CI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ..units import counted
from .compared_runs import (
    MARGIN_REMEDY,
    ComparedRuns,
    ComparedSentence,
    ComparisonRule,
    Proven,
    compare_runs,
    not_finished,
    pair_runs,
)
from .run import RecordedRun
from .sentence_rows import SentenceRow, sentence_rows, unfinished_sentences


class Answer(Enum):
    """The answer to a sentence, and to all; the value is the exit status."""

    PASS = 0
    FAIL = 1
    """The router's fault: a FAIL, or proven worse than the baseline."""
    INCONCLUSIVE = 2
    """Nothing is proven either way, or nothing can be compared."""


@dataclass(frozen=True)
class GatedSentence:
    """``why``: what stands against it, in words. ``compared`` None: there is no baseline of it."""

    run: RecordedRun
    row: SentenceRow
    answer: Answer
    why: str = ""
    compared: ComparedSentence | None = None

    @property
    def margin_unknown(self) -> bool:
        """Return whether a load is carried, and nobody looked by how much."""
        return self.row.is_carried and self.row.search is None


@dataclass(frozen=True)
class Gate:
    """``problems``: why nothing can be said of the whole. ``comparisons`` None: there is no baseline."""

    runs: tuple[RecordedRun, ...]
    rule: ComparisonRule
    sentences: tuple[GatedSentence, ...]
    problems: tuple[str, ...]
    baseline: tuple[RecordedRun, ...] = ()
    comparisons: tuple[ComparedRuns, ...] = ()

    @property
    def answer(self) -> Answer:
        """FAIL if a sentence is; INCONCLUSIVE if one is, or there is a problem. A run that did not end is no proof."""
        found = {item.answer for item in self.sentences}
        if any(not_finished(run) for run in self.runs):
            return Answer.INCONCLUSIVE
        if Answer.FAIL in found:
            return Answer.FAIL
        return Answer.INCONCLUSIVE if self.problems or Answer.INCONCLUSIVE in found else Answer.PASS

    @property
    def simulated(self) -> bool:
        """Return whether any of its runs is."""
        return any(run.simulated for run in (*self.runs, *self.baseline))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes that decide nothing, for a person who releases: throughputs that nobody knows the margin of."""
        unknown = sum(item.margin_unknown for item in self.sentences)
        if not unknown:
            return ()
        of = "it" if unknown == len(self.sentences) == 1 else f"{unknown} of {counted(len(self.sentences), 'sentence')}"
        return (f"margin not measured of {of}, so no later run can be compared with this one there: {MARGIN_REMEDY}",)

    def count(self, answer: Answer) -> int:
        """How many sentences have this *answer*."""
        return sum(item.answer is answer for item in self.sentences)


def gate(runs: Sequence[RecordedRun], baseline: Sequence[RecordedRun], rule: ComparisonRule) -> Gate:
    """The answer for *runs*, by themselves and, where there is one, against *baseline*. Raises ConfigError."""
    pairs, problems = pair_runs(baseline, runs) if baseline else ([], [])
    comparisons = compare_runs(pairs, rule)
    compared = {id(item.after): item for item in comparisons}
    sentences: list[GatedSentence] = []
    problems += [f"{run.path.name} {words}" for run in runs for words in (*not_finished(run), *_unjudged(run))]
    for item in comparisons:
        problems += [words for words in item.reasons if words not in problems]
        problems += [
            f"'{row.record.sentence}' ({row.record.test}) of the baseline was not judged in {item.after.path.name}"
            for row in item.only_before
        ]
    for run in runs:
        found = compared.get(id(run))
        sentences += _alone(run) if found is None else _against(found)
    if not sentences:
        problems.append("no sentence was judged")
    return Gate(tuple(runs), rule, tuple(sentences), tuple(problems), tuple(baseline), comparisons)


def _unjudged(run: RecordedRun) -> list[str]:
    return [f"ended in '{sentence}', which has no verdict" for _, sentence in unfinished_sentences(run)]


def _alone(run: RecordedRun) -> list[GatedSentence]:
    rows = sentence_rows(run)
    return [GatedSentence(run, row, *_verdict(row)) for row in rows]


def _against(found: ComparedRuns) -> list[GatedSentence]:
    """The sentences of the later run, in its order."""
    known = {id(item.after): item for item in found.sentences}
    rows = sorted((*(item.after for item in found.sentences), *found.only_after), key=lambda row: row.record.number)
    return [_compared(found.after, row, known.get(id(row))) for row in rows]


def _compared(run: RecordedRun, row: SentenceRow, compared: ComparedSentence | None) -> GatedSentence:
    answer, why = _verdict(row)
    if compared is not None and answer is Answer.PASS and compared.comparable:
        if compared.state is Proven.WORSE:
            answer, why = Answer.FAIL, f"proven worse than the baseline by more than {100 * compared.rule.allowed:g} %"
        elif compared.state is Proven.UNSURE:
            answer, why = Answer.INCONCLUSIVE, "the baseline's verdict is INCONCLUSIVE: choose another baseline"
        elif compared.state is Proven.NOT_COMPARED:
            answer, why = Answer.INCONCLUSIVE, compared.why_not
    return GatedSentence(run, row, answer, why, compared)


def _verdict(row: SentenceRow) -> tuple[Answer, str]:
    """By its own verdict; of what did not pass its message."""
    answer = Answer[row.record.verdict]
    return answer, "" if answer is Answer.PASS else row.record.message
