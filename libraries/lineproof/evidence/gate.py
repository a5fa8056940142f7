"""May this go out? The verdicts of runs, and what is proven worse than a baseline, as one answer for CI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from xml.etree import ElementTree

from ..units import counted
from ..visible import one_line, visible
from .compared_runs import (
    MARGIN_REMEDY,
    ComparedRuns,
    ComparedSentence,
    ComparisonRule,
    Proven,
    about_run,
    compare_runs,
    compared_cells,
    compared_data,
    compared_figures,
    compared_head,
    figures_text,
    not_finished,
    pair_runs,
    proven_text,
    sentences_of,
    suite_of,
)
from .document import Cell, Column, Document, Folded, Items, Note, Section, verdict_cell
from .run import RecordedRun
from .sentence_rows import figure_heading, table_of_sentences, unfinished_sentences

_GATE = "lineproof gate"


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
        """Return how many sentences have this *answer*."""
        return sum(answer_to(sentence) is answer for sentence in self.sentences)


def gate(runs: Sequence[RecordedRun], baseline: Sequence[RecordedRun], rule: ComparisonRule) -> Gate:
    """Return the answer for *runs*, by themselves and, where there is one, against *baseline*. Raises ConfigError."""
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


# -- forms -------------------------------------------------------------------------------------------------------------


def gate_document(answered: Gate, tagged: str = "") -> Document:
    """Return the answer, each sentence, and the message of each that is no PASS. *tagged*: what became of the tag."""
    counts = {answer.name: answered.count(answer) for answer in (Answer.FAIL, Answer.INCONCLUSIVE, Answer.PASS)}
    undecided = f"; {counted(len(answered.problems), 'reason')} not to decide" if answered.problems else ""
    title = (
        f"{answered.answer.name}: {counts['PASS']} of {counted(sum(counts.values()), 'sentence')} in order,"
        f" {counts['FAIL']} FAIL, {counts['INCONCLUSIVE']} INCONCLUSIVE{undecided}"
        f"{'' if answered.has_baseline else '; without a baseline'}"
    )
    data = {
        **compared_data(answered.runs, answered.rule),
        "answer": answered.answer.name,
        "exit_status": answered.answer.value,
        "counts": counts,
        "problems": list(answered.problems),
        "notes": list(answered.notes),
    }
    sentences = sorted(sentences_of(answered.runs), key=lambda each: list(counts).index(answer_to(each[1]).name))
    heading = figure_heading(sentence.after for _, sentence in sentences)
    rows = [compared_cells(each, heading, answered.has_baseline) | _answer_cells(each) for _, each in sentences]
    data["sentences"] = [
        {**compared_figures(*each, answered.has_baseline), "answer": answer_to(each[1]).name} for each in sentences
    ]
    rule, notes = answered.rule if answered.has_baseline else None, Items([f"note: {note}" for note in answered.notes])
    head = compared_head(answered.runs, "NOT DECIDED", answered.problems, rule)
    parts = [*head, notes, table_of_sentences(rows)]
    messages = [each.after.record.message for _, each in sentences if each.after.record.counts_as != "PASS"]
    reasons = Section("", [*map(Folded.of, messages), *([Note(tagged)] if tagged else [])])
    return Document(title, [Section("", parts), reasons], answered.simulated, data)


def _answer_cells(sentence: ComparedSentence) -> dict[Column, Cell]:
    """Return the answer; people see it where it is not the verdict: a PASS that is proven worse than its baseline."""
    answer = answer_to(sentence).name
    shown = Cell("") if answer == sentence.after.record.verdict else verdict_cell(answer)
    return {Column("answer", left=True): shown}


def junit(answered: Gate) -> bytes:
    """Return JUnit XML: a suite for each run, a case for each sentence.

    A FAIL, or what is proven worse, is a failure. What is INCONCLUSIVE is an error: the router did not fail. Whatever
    keeps the whole undecided is an error of a suite of its own.
    """
    root = ElementTree.Element("testsuites", name=_GATE)
    for pair in answered.runs:
        suite = ElementTree.SubElement(root, "testsuite")
        suite.set("name", visible(f"{suite_of(pair.after)}{' (SIMULATED)' if pair.after.simulated else ''}"))
        facts = {"run": about_run(pair.after), "baseline": str(pair.before.path) if pair.before else ""}
        properties = ElementTree.SubElement(suite, "properties")
        for name, value in facts.items():
            ElementTree.SubElement(properties, "property", name=name, value=visible(value))
        for sentence in pair.sentences:
            record = sentence.after.record
            figures = f"{figures_text(sentence)}\n{proven_text(sentence)}".strip()
            why = proven_text(sentence) if record.verdict == "PASS" else record.message
            seconds = max(record.ended - record.started, 0)
            _case(suite, f"{record.test}: {record.sentence}", answer_to(sentence), why, figures, seconds)
    return _with_problems(root, answered.problems)


def junit_of_error(words: str) -> bytes:
    """Return JUnit XML that says why there is no answer: a run that was altered, or is none."""
    return _with_problems(ElementTree.Element("testsuites", name=_GATE), [words])


def _case(
    suite: ElementTree.Element, name: str, answer: Answer, why: str, figures: str = "", seconds: float = 0
) -> None:
    case = ElementTree.SubElement(suite, "testcase", classname=suite.get("name", ""), name=visible(name))
    case.set("time", f"{seconds:.3f}")
    if answer is not Answer.PASS:
        tag = "failure" if answer is Answer.FAIL else "error"
        first = one_line(why.partition("\n")[0])
        ElementTree.SubElement(case, tag, message=first, type=answer.name).text = visible(why)
    ElementTree.SubElement(case, "system-out").text = visible(figures)


def _with_problems(root: ElementTree.Element, problems: Sequence[str]) -> bytes:
    """Return the file, with a suite that has an error for each of *problems*, and with the sums of its suites."""
    if problems:
        suite = ElementTree.SubElement(root, "testsuite", name=_GATE)
        for number, words in enumerate(problems, 1):
            _case(suite, f"decided ({number})", Answer.INCONCLUSIVE, words)
    for part in (*root, root):
        for key, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
            part.set(key, str(sum(1 for _ in part.iter(tag))))
        part.set("time", f"{sum(float(case.get('time', '0')) for case in part.iter('testcase')):.3f}")
    ElementTree.indent(root)
    content: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"
