"""May this go out? The verdicts of runs, and what is proven worse than a baseline, as one answer for CI.

The answer is given as text, as Markdown for a merge request, as JUnit XML for a CI server, and as JSON data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any
from xml.etree import ElementTree

from ..units import counted
from ..visible import visible
from .compared_runs import (
    MARGIN_REMEDY,
    ComparedRuns,
    ComparedSentence,
    ComparisonRule,
    Proven,
    compare_runs,
    not_finished,
    pair_runs,
    suite_of,
)
from .comparison_forms import (
    change_text,
    figure_text,
    figures_text,
    line,
    markdown_bars,
    proven_text,
    rule_text,
    sentence_document,
)
from .run import RecordedRun
from .sentence_rows import SentenceRow, sentence_rows, unfinished_sentences
from .tables import SIMULATED
from .text_tables import markdown_table, markdown_text


class Answer(Enum):
    """Of a sentence, and of all; the value is the exit status."""

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
        """What a person who releases should know, and decides nothing: throughputs that nobody knows the margin of."""
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


_GATE = "lineproof gate"


def text(found: Gate) -> str:
    """For a terminal and a job's log: the answer, why, a line for each sentence."""
    lines = [f"{found.answer.name}: {headline(found)}"]
    lines += [SIMULATED] if found.simulated else []
    lines += [f"run       {line(_about(run))}" for run in found.runs]
    lines += [f"baseline  {line(_about(run))}" for run in found.baseline]
    lines += [f"          {rule_text(found.rule)}"] if found.baseline else []
    lines += [f"NOT DECIDED: {line(words)}" for words in found.problems]
    lines += [f"differs: {line(words)}" for pair in found.comparisons for words in pair.differences]
    lines += [f"note: {words}" for words in found.notes]
    for item in found.sentences:
        # of a verdict its first line; the run's own report has the details
        words, _, _ = _words(item).partition("\n")
        lines.append(f"{item.answer.name:<12}  {line(item.row.record.sentence)}: {line(words)}")
    return "\n".join(lines)


def headline(found: Gate) -> str:
    """``8 of 9 sentences are in order, 1 FAIL, 0 INCONCLUSIVE``."""
    total = counted(len(found.sentences), "sentence")
    counts = ", ".join(f"{found.count(answer)} {answer.name}" for answer in (Answer.FAIL, Answer.INCONCLUSIVE))
    against = "" if found.baseline else "; without a baseline"
    undecided = f"; {counted(len(found.problems), 'reason')} not to decide" if found.problems else ""
    return f"{found.count(Answer.PASS)} of {total} in order, {counts}{undecided}{against}"


def _about(run: RecordedRun) -> str:
    known = run.environment
    if known is None:
        return str(run.path)
    goal = known.extra.get("goal")
    words = [known.platform, known.software, known.versions.get("router.version", ""), f"on {known.testbed}"]
    judged = f", goal {goal.get('goal')}" if isinstance(goal, Mapping) else ""
    return f"{run.path}: {suite_of(run)}, {' '.join(filter(None, words))}{judged}"


def _words(item: GatedSentence) -> str:
    """The figures, then why the answer is what it is."""
    if item.compared is None:
        return "; ".join(filter(None, [figure_text(item.row), item.why]))
    found = [figures_text(item.compared), change_text(item.compared), item.why or proven_text(item.compared)]
    return "; ".join(filter(None, found))


def markdown(found: Gate) -> str:
    """For a merge request, or the summary of a job."""
    simulated = f" ({SIMULATED})" if found.simulated else ""
    lines = [f"### {_GATE}: {found.answer.name}{markdown_text(simulated)}", "", markdown_text(headline(found)), ""]
    for name, runs in (("run", found.runs), ("baseline", found.baseline)):
        lines += [f"- {name}: {markdown_text(line(_about(run)))}" for run in runs]
    lines += [f"- rule: {markdown_text(rule_text(found.rule))}"] if found.baseline else []
    lines += [f"- **not decided**: {markdown_text(line(words))}" for words in found.problems]
    lines += [f"- differs: {markdown_text(line(words))}" for pair in found.comparisons for words in pair.differences]
    lines += [f"- note: {words}" for words in found.notes]
    heads = ["answer", "sentence", "measured", "change", "why"]
    heads += ["baseline, run: least, median, largest"] if found.baseline else []
    lines += ["", *markdown_table(heads, [_markdown_cells(item, bool(found.baseline)) for item in found.sentences])]
    return "\n".join(lines)


def _markdown_cells(item: GatedSentence, against: bool) -> list[str]:
    answer = item.answer.name if item.answer is Answer.PASS else f"**{item.answer.name}**"
    pair = item.compared
    measured = figure_text(item.row) if pair is None else figures_text(pair)
    change, why = ("", item.why) if pair is None else (change_text(pair), item.why or proven_text(pair))
    why = why.partition("\n")[0]
    cells = [markdown_text(line(words)) for words in (item.row.record.sentence, measured, change, why)]
    return [answer, *cells, *(["" if pair is None else markdown_bars(pair)] if against else [])]


def junit(found: Gate) -> bytes:
    """JUnit XML: a suite for each run, a case for each sentence.

    A FAIL, or what is proven worse, is a failure. What is INCONCLUSIVE is an error: the router did not fail. Whatever
    keeps the whole undecided is an error of a suite of its own.
    """
    root = ElementTree.Element("testsuites", name=_GATE)
    for run in found.runs:
        name = f"{suite_of(run)}{' (SIMULATED)' if run.simulated else ''}"
        items = [item for item in found.sentences if item.run is run]
        suite = _suite(root, name, [item.answer for item in items], _times(run))
        properties = ElementTree.SubElement(suite, "properties")
        for key, value in _properties(found, run).items():
            ElementTree.SubElement(properties, "property", name=key, value=visible(value))
        for item in items:
            _case(suite, name, item)
    if found.problems:
        add_problems(root, found.problems)
    return _document(root)


def junit_of_error(words: str) -> bytes:
    """JUnit XML that says why there is no answer: a run that was altered, or is none."""
    root = ElementTree.Element("testsuites", name=_GATE)
    add_problems(root, [words])
    return _document(root)


def add_problems(root: ElementTree.Element, problems: tuple[str, ...] | list[str]) -> None:
    """A suite with an error for each of *problems*."""
    suite = _suite(root, _GATE, [Answer.INCONCLUSIVE] * len(problems), (0.0, 0.0))
    for number, words in enumerate(problems, 1):
        case = ElementTree.SubElement(suite, "testcase", classname=_GATE, name=f"decided ({number})", time="0.000")
        ElementTree.SubElement(case, "error", message=visible(line(words)), type="INCONCLUSIVE").text = visible(words)


def _document(root: ElementTree.Element) -> bytes:
    for key in ("tests", "failures", "errors"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    root.set("time", f"{sum(float(suite.get('time', '0')) for suite in root):.3f}")
    ElementTree.indent(root)
    content: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def _suite(
    root: ElementTree.Element, name: str, answers: list[Answer], times: tuple[float, float]
) -> ElementTree.Element:
    started, ended = times
    return ElementTree.SubElement(
        root,
        "testsuite",
        name=visible(name),
        tests=str(len(answers)),
        failures=str(answers.count(Answer.FAIL)),
        errors=str(answers.count(Answer.INCONCLUSIVE)),
        skipped="0",
        time=f"{max(ended - started, 0):.3f}",
        timestamp=f"{datetime.fromtimestamp(started, UTC):%Y-%m-%dT%H:%M:%S}",
    )


def _case(suite: ElementTree.Element, name: str, item: GatedSentence) -> None:
    record = item.row.record
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=visible(name),
        name=visible(f"{record.test}: {record.sentence}"),
        time=f"{max(record.ended - record.started, 0):.3f}",
    )
    if item.answer is not Answer.PASS:
        tag = "failure" if item.answer is Answer.FAIL else "error"
        kind = record.verdict if record.verdict != "PASS" else "regression" if tag == "failure" else "INCONCLUSIVE"
        why = visible(line(item.why.partition("\n")[0]))
        ElementTree.SubElement(case, tag, message=why, type=kind).text = visible(_words(item))
    ElementTree.SubElement(case, "system-out").text = visible(_words(item))


def _properties(found: Gate, run: RecordedRun) -> dict[str, str]:
    properties = {"run": str(run.path), "simulated": str(run.simulated).lower()}
    properties |= {"note": "; ".join(found.notes)} if found.notes else {}
    if (known := run.environment) is not None:
        properties |= {"testbed": known.testbed, "platform": known.platform, "software": known.software}
        properties |= {name: version for name, version in known.versions.items() if name == "router.version"}
        goal = known.extra.get("goal")
        properties |= {"goal": str(goal.get("goal"))} if isinstance(goal, Mapping) else {}
    if found.baseline:
        baseline = next((pair.before.path for pair in found.comparisons if pair.after is run), None)
        properties |= {"baseline": str(baseline or "none of this suite"), "rule": rule_text(found.rule)}
    return properties


def _times(run: RecordedRun) -> tuple[float, float]:
    """When it began and ended, as Unix time in s."""
    ends = [record.ended for record in run.requirements]
    if run.environment is None:
        return (0.0, 0.0)
    started = run.environment.started
    return started, run.environment.ended or max(ends, default=started)


def document(found: Gate) -> dict[str, Any]:
    """The same as data for ``--json``."""
    return {
        "answer": found.answer.name,
        "exit_status": found.answer.value,
        "runs": [str(run.path) for run in found.runs],
        "baseline": [str(run.path) for run in found.baseline],
        "simulated": found.simulated,
        "allowed_percent": 100 * found.rule.allowed,
        "confidence": found.rule.confidence,
        "problems": list(found.problems),
        "notes": list(found.notes),
        "differences": [words for pair in found.comparisons for words in pair.differences],
        "sentences": [_sentence_document(item) for item in found.sentences],
        "counts": {answer.name: found.count(answer) for answer in Answer},
    }


def _sentence_document(item: GatedSentence) -> dict[str, Any]:
    record = item.row.record
    return {
        "suite": suite_of(item.run),
        "test": record.test,
        "sentence": record.sentence,
        "verdict": record.verdict,
        "answer": item.answer.name,
        "why": item.why,
        "compared": None if item.compared is None else sentence_document(item.compared),
    }
