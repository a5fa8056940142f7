"""May this go out? The verdicts of runs, and what is proven worse than a baseline, as one answer for CI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from xml.etree import ElementTree

from ..units import counted
from ..visible import one_line, visible
from .compared_runs import (
    MARGIN_REMEDY,
    ComparedSentence,
    ComparisonRule,
    Proven,
    RunComparison,
    about_run,
    compare_runs,
    not_finished,
    suite_of,
)
from .document import Column, Document, Folded, Note, Section, verdict_cell
from .run import RecordedRun
from .sentence_rows import figure_heading, unfinished_sentences

_GATE = "lineproof gate"


class Answer(Enum):
    """The answer to a sentence, and to all, what a reader must see first; the value is the exit status."""

    FAIL = 1
    """The router's fault: a FAIL, or proven worse than the baseline."""
    INCONCLUSIVE = 2
    """Nothing is proven either way, or nothing can be compared."""
    PASS = 0


def gate(runs: Sequence[RecordedRun], baseline: Sequence[RecordedRun], rule: ComparisonRule) -> RunComparison:
    """Return *runs* beside *baseline*, if there is one, with all that keeps them undecided. Raises ConfigError."""
    compared = compare_runs(baseline, runs, rule)
    problems = list(compared.problems)
    for pair in compared.pairs:
        name, unfinished = pair.after.path.name, unfinished_sentences(pair.after)
        problems += [f"{name} {lack}" for lack in not_finished(pair.after)]
        problems += [f"{name} ended in '{sentence}', which has no verdict" for _, sentence in unfinished]
        missing = (row.record for row in pair.only_before)
        problems += [f"'{was.sentence}' ({was.test}) of the baseline was not judged in {name}" for was in missing]
    if not compared.sentences:
        problems.append("no sentence was judged")
    return replace(compared, problems=tuple(dict.fromkeys(problems)))


def answer_of(compared: RunComparison) -> Answer:
    """Return FAIL if a sentence is and all runs ended; INCONCLUSIVE if a sentence is, or there is a problem."""
    answers = {answer_to(sentence) for sentence in compared.sentences}
    if Answer.FAIL in answers and not any(not_finished(pair.after) for pair in compared.pairs):
        return Answer.FAIL
    return Answer.INCONCLUSIVE if compared.problems or answers != {Answer.PASS} else Answer.PASS


def answer_to(sentence: ComparedSentence) -> Answer:
    """Return the answer to a sentence: as its own verdict counts, and where that is a PASS what its baseline proves."""
    record = sentence.after.record
    own = Answer[record.counts_as]
    if own is not Answer.PASS or sentence.before is None or not sentence.comparable:
        return own
    if sentence.state is Proven.WORSE:
        return Answer.FAIL
    # an expected FAIL that one trial decided may have nothing to compare
    is_unsure = record.verdict == "PASS" and sentence.state in (Proven.UNSURE, Proven.NOT_COMPARED)
    return Answer.INCONCLUSIVE if is_unsure else own


# -- forms -------------------------------------------------------------------------------------------------------------


def gate_document(compared: RunComparison, tagged: str = "") -> Document:
    """Return the answer, each sentence, and the message of each that is no PASS. *tagged*: what became of the tag."""
    answer, problems = answer_of(compared), compared.problems
    answered = [(answer_to(sentence), sentence) for sentence in compared.sentences]
    counts = {each.name: sum(own is each for own, _ in answered) for each in Answer}
    number = counted(len(answered), "sentence")
    title = f"{answer.name}: {counts['PASS']} of {number} in order"
    title += f", {counts['FAIL']} FAIL, {counts['INCONCLUSIVE']} INCONCLUSIVE"
    title += f"; {counted(len(problems), 'reason')} not to decide" if problems else ""
    title += "" if compared.has_baseline else "; without a baseline"
    notes = []
    if unknown := sum(row.after.is_carried and row.after.search is None for _, row in answered):
        of = "it" if unknown == len(answered) == 1 else f"{unknown} of {number}"
        notes = [f"margin not measured of {of}, so no later run can be compared with this one there: {MARGIN_REMEDY}"]
    answered.sort(key=lambda each: list(Answer).index(each[0]))
    heading = figure_heading(sentence.after for _, sentence in answered)
    rows, messages = [], []
    for own, sentence in answered:
        record = sentence.after.record
        cells = sentence.cells(heading) if compared.has_baseline else sentence.after.cells(heading)
        # people see it where it is not the verdict, as of a PASS that is proven worse than its baseline
        counts_as = verdict_cell("" if own.name == sentence.after.verdict.text else own.name)
        rows.append(cells | {Column("counts as", left=True): counts_as})
        messages += [Folded.of(record.outcome)] if record.counts_as != "PASS" else []
    data: dict[str, object] = {
        "answer": answer.name,
        "exit_status": answer.value,
        "counts": counts,
        "problems": list(problems),
        "notes": notes,
        "sentences": [{**sentence.data, "answer": own.name} for own, sentence in answered],
    }
    reasons, told = [f"NOT DECIDED: {problem}" for problem in problems], [f"note: {note}" for note in notes]
    document = compared.document(title, reasons, told, rows, data)
    last = Section("", [*messages, *([Note(tagged)] if tagged else [])])
    return replace(document, sections=[*document.sections, last])


def junit(compared: RunComparison) -> bytes:
    """Return JUnit XML: a suite for each run, a case for each sentence.

    A FAIL, or what is proven worse, is a failure. What is INCONCLUSIVE is an error: the router did not fail. Whatever
    keeps the whole undecided is an error of a suite of its own.
    """
    root = ElementTree.Element("testsuites", name=_GATE)
    for pair in compared.pairs:
        suite = ElementTree.SubElement(root, "testsuite")
        suite.set("name", visible(f"{suite_of(pair.after)}{' (SIMULATED)' if pair.after.simulated else ''}"))
        facts = {"run": about_run(pair.after), "baseline": str(pair.before.path) if pair.before else ""}
        properties = ElementTree.SubElement(suite, "properties")
        for name, value in facts.items():
            ElementTree.SubElement(properties, "property", name=name, value=visible(value))
        for sentence in pair.sentences:
            record = sentence.after.record
            why = sentence.proven if record.counts_as == "PASS" else record.outcome
            name, seconds = f"{record.test}: {record.sentence}", record.ended - record.started
            _case(suite, name, answer_to(sentence), why, f"{sentence.figures}\n{sentence.proven}".strip(), seconds)
    if compared.problems:
        suite = ElementTree.SubElement(root, "testsuite", name=_GATE)
        for number, problem in enumerate(compared.problems, 1):
            _case(suite, f"decided ({number})", Answer.INCONCLUSIVE, problem)
    for part in (*root, root):
        for key, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
            part.set(key, str(sum(1 for _ in part.iter(tag))))
        part.set("time", f"{sum(float(case.get('time', '0')) for case in part.iter('testcase')):.3f}")
    ElementTree.indent(root)
    content: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def _case(
    suite: ElementTree.Element, name: str, answer: Answer, why: str, figures: str = "", seconds: float = 0
) -> None:
    case = ElementTree.SubElement(suite, "testcase", classname=suite.get("name", ""), name=visible(name))
    case.set("time", f"{max(seconds, 0):.3f}")
    if answer is not Answer.PASS:
        tag = "failure" if answer is Answer.FAIL else "error"
        first = one_line(why.partition("\n")[0])
        ElementTree.SubElement(case, tag, message=first, type=answer.name).text = visible(why)
    ElementTree.SubElement(case, "system-out").text = visible(figures)
