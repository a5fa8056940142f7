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
from .sentence_rows import unfinished_sentences


class Answer(Enum):
    """The answer to a sentence, and to all; the value is the exit status."""

    PASS = 0
    FAIL = 1
    """The router's fault: a FAIL, or proven worse than the baseline."""
    INCONCLUSIVE = 2
    """Nothing is proven either way, or nothing can be compared."""


@dataclass(frozen=True)
class Gate:
    """The runs, each beside its baseline if it has one. ``problems``: why nothing can be said of the whole."""

    runs: tuple[ComparedRuns, ...]
    rule: ComparisonRule
    problems: tuple[str, ...] = ()
    has_baseline: bool = False

    @property
    def sentences(self) -> tuple[ComparedSentence, ...]:
        """The sentences of all runs, in their order."""
        return tuple(sentence for run in self.runs for sentence in run.sentences)

    @property
    def answer(self) -> Answer:
        """FAIL if a sentence is; INCONCLUSIVE if one is, or there is a problem. A run that did not end is no proof."""
        if any(not_finished(run.after) for run in self.runs):
            return Answer.INCONCLUSIVE
        if self.count(Answer.FAIL):
            return Answer.FAIL
        return Answer.INCONCLUSIVE if self.problems or self.count(Answer.INCONCLUSIVE) else Answer.PASS

    @property
    def simulated(self) -> bool:
        """Return whether any of its runs is."""
        return any(pair.simulated for pair in self.runs)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes that decide nothing, for a person who releases: throughputs that nobody knows the margin of."""
        unknown = sum(item.after.is_carried and item.after.search is None for item in self.sentences)
        if not unknown:
            return ()
        of = "it" if unknown == len(self.sentences) == 1 else f"{unknown} of {counted(len(self.sentences), 'sentence')}"
        return (f"margin not measured of {of}, so no later run can be compared with this one there: {MARGIN_REMEDY}",)

    def count(self, answer: Answer) -> int:
        """How many sentences have this *answer*."""
        return sum(answer_to(sentence) is answer for sentence in self.sentences)


def gate(runs: Sequence[RecordedRun], baseline: Sequence[RecordedRun], rule: ComparisonRule) -> Gate:
    """The answer for *runs*, by themselves and, where there is one, against *baseline*. Raises ConfigError."""
    pairs, problems = pair_runs(baseline, runs) if baseline else ([], [])
    earlier = {id(after): before for before, after in pairs}
    compared = compare_runs([(earlier.get(id(run)), run) for run in runs], rule)
    for run in runs:
        unjudged = [f"ended in '{sentence}', which has no verdict" for _, sentence in unfinished_sentences(run)]
        problems += [f"{run.path.name} {lack}" for lack in (*not_finished(run), *unjudged)]
    for pair in compared:
        problems += [reason for reason in pair.reasons if reason not in problems]
        problems += [
            f"'{row.record.sentence}' ({row.record.test}) of the baseline was not judged in {pair.after.path.name}"
            for row in pair.only_before
        ]
    if not any(pair.sentences for pair in compared):
        problems.append("no sentence was judged")
    return Gate(compared, rule, tuple(problems), bool(baseline))


def answer_to(sentence: ComparedSentence) -> Answer:
    """Return the answer to a sentence: its own verdict, and where that is PASS what its baseline proves."""
    record = sentence.after.record
    own = Answer[record.counts_as]
    if {own.name, record.verdict} != {"PASS"} or sentence.before is None or not sentence.comparable:
        return own
    if sentence.state is Proven.WORSE:
        return Answer.FAIL
    return Answer.INCONCLUSIVE if sentence.state in (Proven.UNSURE, Proven.NOT_COMPARED) else own
