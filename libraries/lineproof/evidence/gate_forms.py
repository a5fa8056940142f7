"""The answer of the gate as a document, and as JUnit XML for a CI server."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from xml.etree import ElementTree

from ..units import counted
from ..visible import one_line, visible
from .compared_runs import suite_of
from .comparison_forms import bars, change_text, comparison_data, figure_text, figures_text, proven_text, rule_text
from .document import (
    Cell,
    Code,
    Column,
    Document,
    Facts,
    Folded,
    Items,
    Note,
    Part,
    Section,
    Table,
    data_cells,
    verdict_cell,
)
from .gate import Answer, Gate, GatedSentence
from .run import RecordedRun

_GATE = "lineproof gate"


def gate_document(found: Gate, tagged: str = "") -> Document:
    """Return the answer, each sentence, and why it is what it is where that is no PASS. *tagged*: what became of it."""
    runs = [("run", run) for run in found.runs] + [("baseline", run) for run in found.baseline]
    differences = [words for pair in found.comparisons for words in pair.differences]
    first: list[Part] = [
        Code("\n".join(f"{name:<8}  {one_line(_about(run))}" for name, run in runs)),
        Facts({"rule": rule_text(found.rule)} if found.baseline else {}),
        *(Note(f"NOT DECIDED: {words}", strong=True) for words in found.problems),
        Items([*(f"differs: {words}" for words in differences), *(f"note: {words}" for words in found.notes)]),
        Table.of([_row(item, bool(found.baseline)) for item in found.sentences], "sentences"),
    ]
    reasons = [_reason(item) for item in found.sentences if item.answer is not Answer.PASS]
    data = {
        "answer": found.answer.name,
        "exit_status": found.answer.value,
        "counts": {answer.name: found.count(answer) for answer in Answer},
        "runs": [str(run.path) for run in found.runs],
        "baseline": [str(run.path) for run in found.baseline],
        "allowed_percent": 100 * found.rule.allowed,
        "confidence": found.rule.confidence,
        "problems": list(found.problems),
        "notes": list(found.notes),
        "differences": differences,
    }
    sections = [Section("", first), Section("", reasons), Section("", [Note(tagged)] if tagged else [])]
    return Document(f"{found.answer.name}: {headline(found)}", sections, found.simulated, data)


def _row(item: GatedSentence, has_baseline: bool) -> dict[Column, Cell]:
    record, pair = item.row.record, item.compared
    row = data_cells({"suite": suite_of(item.run), "test": record.test, "verdict": record.verdict, "why": item.why})
    row[Column("sentence", left=True)] = Cell(record.sentence)
    measured = figure_text(item.row) if pair is None else figures_text(pair)
    row[Column("measured", left=True, only="people")] = Cell(measured)
    if has_baseline:
        row[Column("baseline", left=True, only="people")] = Cell("not in it" if pair is None else proven_text(pair))
    row[Column("answer", left=True)] = verdict_cell(item.answer.name)
    return row if pair is None else row | comparison_data(pair)


def _reason(item: GatedSentence) -> Folded:
    why = item.why
    if item.row.record.verdict != item.answer.name:
        why = f"{item.answer.name}: {item.row.record.sentence}: {why}"
    if item.compared is None or not item.compared.change:
        return Folded.of(why)
    reason = Folded.of(why, change_text(item.compared))
    return Folded(reason.title, [*reason.parts, *bars(item.compared)])


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
        ElementTree.SubElement(case, "error", message=one_line(words), type="INCONCLUSIVE").text = visible(words)


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
        why = one_line(item.why.partition("\n")[0])
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
