"""Two runs of a suite, and the gate's answer, as documents; the answer as JUnit XML for a CI server too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from ..stats import compare, dot_plot
from ..stats.intervals import confidence_text
from ..units import counted
from ..visible import one_line, visible
from .compared_runs import CandidateChange, ComparedRuns, ComparedSentence, ComparisonRule, Proven, suite_of
from .document import (
    Cell,
    Code,
    Column,
    Document,
    Facts,
    Folded,
    Items,
    Mark,
    Note,
    Part,
    Section,
    Table,
    data_cells,
    verdict_cell,
)
from .gate import Answer, Gate, answer_to
from .run import RecordedRun
from .sentence_rows import SentenceRow

_GATE = "lineproof gate"
_MARKS: dict[Proven, Mark] = {Proven.WORSE: "bad", Proven.BETTER: "good", Proven.UNSURE: "unsure"}


# -- documents ---------------------------------------------------------------------------------------------------------


def comparison(compared: Sequence[ComparedRuns], problems: Sequence[str], rule: ComparisonRule) -> Document:
    """Return each sentence of runs beside the same of earlier ones. *problems*: why runs have no partner."""
    reasons = [*problems, *(reason for pair in compared for reason in pair.reasons)]
    sentences = [(pair, sentence) for pair in compared for sentence in pair.sentences]
    worse, unsure, left = (
        sum(pair.count(state) for pair in compared) for state in (Proven.WORSE, Proven.UNSURE, Proven.NOT_COMPARED)
    )
    more = f"; {unsure} with a verdict that became, or was, INCONCLUSIVE" if unsure else ""
    more += f"; {left} not compared" if left else ""
    title = f"{worse} of {counted(len(sentences), 'sentence')} proven worse{more}"
    sentences.sort(key=lambda each: list(Proven).index(each[1].state))
    rows = [
        {**_row(*each, True), Column("verdict", left=True): verdict_cell(each[1].after.record.verdict)}
        for each in sentences
    ]
    data = {**_data(compared, rule), "not_comparable": reasons, "worse": worse}
    only = [f"only in the baseline: {row.record.sentence}" for pair in compared for row in pair.only_before]
    parts = [*_head(compared, "NOT COMPARABLE", reasons, rule), Items(only), Table.of(rows, "sentences")]
    return Document(title, [Section("", parts)], any(pair.simulated for pair in compared), data)


def gate_document(answered: Gate, tagged: str = "") -> Document:
    """Return the answer, each sentence, and the message of each that is no PASS. *tagged*: what became of the tag."""
    counts = {answer: answered.count(answer) for answer in _URGENCY}
    undecided = f"; {counted(len(answered.problems), 'reason')} not to decide" if answered.problems else ""
    title = (
        f"{answered.answer.name}: {counts[Answer.PASS]} of {counted(sum(counts.values()), 'sentence')} in order,"
        f" {counts[Answer.FAIL]} FAIL, {counts[Answer.INCONCLUSIVE]} INCONCLUSIVE{undecided}"
        f"{'' if answered.has_baseline else '; without a baseline'}"
    )
    sentences = [(pair, sentence) for pair in answered.runs for sentence in pair.sentences]
    sentences.sort(key=lambda each: _URGENCY.index(answer_to(each[1])))
    rows = [
        {**_row(*each, answered.has_baseline), Column("answer", left=True): verdict_cell(answer_to(each[1]).name)}
        for each in sentences
    ]
    data = {
        **_data(answered.runs, answered.rule),
        "answer": answered.answer.name,
        "exit_status": answered.answer.value,
        "counts": {answer.name: number for answer, number in counts.items()},
        "problems": list(answered.problems),
        "notes": list(answered.notes),
    }
    rule = answered.rule if answered.has_baseline else None
    parts = _head(answered.runs, "NOT DECIDED", answered.problems, rule)
    parts += [Items([f"note: {note}" for note in answered.notes]), Table.of(rows, "sentences")]
    messages = [each.after.record.message for _, each in sentences if each.after.record.counts_as != "PASS"]
    reasons = Section("", [*map(Folded.of, messages), *([Note(tagged)] if tagged else [])])
    return Document(title, [Section("", parts), reasons], answered.simulated, data)


_URGENCY = (Answer.FAIL, Answer.INCONCLUSIVE, Answer.PASS)


def _head(
    pairs: Sequence[ComparedRuns], not_done: str, reasons: Sequence[str], rule: ComparisonRule | None
) -> list[Part]:
    """Return the runs, the rule, why not all is compared, and what differs."""
    runs = [(name, run) for pair in pairs for name, run in (("baseline", pair.before), ("run", pair.after)) if run]
    differences = [f"differs: {words}" for pair in pairs for words in pair.differences]
    return [
        Code("\n".join(f"{name:<8}  {one_line(_about(run))}" for name, run in runs)),
        Facts({"rule": rule_text(rule)} if rule else {}),
        *(Note(f"{not_done}: {reason}", strong=True) for reason in reasons),
        Items(differences),
    ]


def _about(run: RecordedRun) -> str:
    if (known := run.environment) is None:
        return str(run.path)
    goal = known.extra.get("goal")
    words = [known.platform, known.software, known.versions.get("router.version", ""), f"on {known.testbed}"]
    judged = f", goal {goal.get('goal')}" if isinstance(goal, Mapping) else ""
    return f"{run.path}: {suite_of(run)}, {' '.join(filter(None, words))}{judged}"


def _data(pairs: Sequence[ComparedRuns], rule: ComparisonRule) -> dict[str, object]:
    runs = [{"baseline": pair.before and str(pair.before.path), "run": str(pair.after.path)} for pair in pairs]
    return {
        "runs": runs,
        "confidence": rule.confidence,
        "allowed_percent": 100 * rule.allowed,
        "differences": [words for pair in pairs for words in pair.differences],
        "only_baseline": [row.record.sentence for pair in pairs for row in pair.only_before],
    }


def _row(pair: ComparedRuns, sentence: ComparedSentence, has_baseline: bool) -> dict[Column, Cell]:
    """Return what people read, then figures: means in the sentence's unit, changes in per cent."""
    record, change = sentence.after.record, sentence.change or CandidateChange(None, None, of="")
    people = {
        Column("sentence", left=True): Cell(record.sentence),
        Column("measured", left=True, only="people"): Cell(measured_text(sentence)),
    }
    if not has_baseline:
        return data_cells({"suite": suite_of(pair.after), "test": record.test, "verdict": record.verdict}) | people
    people[Column("proven", left=True)] = Cell(proven_text(sentence), mark=_MARKS.get(sentence.state, ""))
    data = {
        "unit": record.requirement.threshold.unit.value,
        "state": sentence.state.value,
        "by": None if sentence.change is None else "sample" if sentence.test else "margin",
        "change_low_percent": _hundred(change.low),
        "change_high_percent": _hundred(change.high),
        "change_estimate_percent": _hundred(change.estimate),
        "change_of": change.of,
        "change_confidence": change.confidence,
        **_side("baseline", sentence.before),
        **_side("run", sentence.after),
    }
    return data_cells({"suite": suite_of(pair.after), "test": record.test}) | people | data_cells(data)


def _side(name: str, side: SentenceRow | None) -> dict[str, object]:
    return {
        f"{name}_verdict": side and side.record.verdict,
        f"{name}_observations": side and len(side.sample),
        f"{name}_mean": side and side.measured and side.measured.estimate,
        f"{name}_margin_low_percent": side and side.search and _hundred(side.search.low),
        f"{name}_margin_high_percent": side and side.search and _hundred(side.search.high),
    }


# -- words -------------------------------------------------------------------------------------------------------------


def measured_text(sentence: ComparedSentence) -> str:
    """Return what was measured, of the baseline and then of the run."""
    new = _figure(sentence.after)
    old = new if sentence.before is None else _figure(sentence.before)
    return new if sentence.before is None else f"{new} in both" if old == new else f"{old} → {new}"


def _figure(side: SentenceRow) -> str:
    if side.search is not None and side.record.requirement.quantity.threshold_is_load:
        return str(side.search)
    return "nothing measured" if side.measured is None else side.record.requirement.text(side.measured.estimate)


def proven_text(sentence: ComparedSentence) -> str:
    """Return what is proven and by how much the figures changed, or why nothing is, in words."""
    change, allowed, state = sentence.change, f"{100 * sentence.rule.allowed:g} %", sentence.state
    if sentence.turned:
        return f"{state.value}: {sentence.turned}"
    if change is None:
        return sentence.why_not
    if state in (Proven.WORSE, Proven.BETTER):
        proven = f"proven {state.value} by more than {allowed}"
    elif (change.low or 0) <= 0 and (change.high is None or change.high >= 0):
        proven = "no difference proven"
    else:
        proven = f"a difference, not proven to be more than {allowed}"
    shown = change_text(change)
    return f"{proven}: {shown}" if shown else proven


def change_text(change: CandidateChange) -> str:
    """By how much, with its interval: ``-2 % (-2.3 % to -1.7 %)``; empty where both carry all that can be sent."""
    of = "" if change.of == "the baseline" else f" of {change.of}"
    ends = [_percent(end) for end in (change.low, change.high) if end is not None]
    if change.estimate is not None and change.confidence is not None:
        if change.low == change.high:
            return f"{_percent(change.estimate)}{of}, without any spread"
        sure = confidence_text(float(f"{change.confidence:.4g}"))
        return f"{_percent(change.estimate)}{of} ({' to '.join(ends)}, {sure} confidence)"
    return f"at {'most' if change.low is None else 'least'} {ends[0]}" if len(ends) == 1 else " to ".join(ends)


def rule_text(rule: ComparisonRule) -> str:
    """How it is decided, in words."""
    sure = confidence_text(rule.confidence)
    return f"allowed {100 * rule.allowed:g} %, {sure} confidence in all sentences together (Welch's t-test, Holm)"


def _hundred(ratio: float | None) -> float | None:
    return None if ratio is None else 100 * ratio


def _percent(ratio: float) -> str:
    return f"{100 * ratio + 0.0:+.3g} %"


def ministat_text(compared: Sequence[ComparedRuns], confidence: float) -> str:
    """Picture, table and answer of ministat(1) for each sentence of which both runs have figures.

    As ministat does it: one test for each sentence, one variance for both samples, nothing allowed.
    """
    lines = []
    for pair in compared:
        for row in pair.sentences:
            if pair.before is None or row.before is None:
                continue
            old, new = ([value for value in side.sample if math.isfinite(value)] for side in (row.before, row.after))
            lines += ["", f"{row.after.record.sentence} [{row.after.record.requirement.threshold.unit.value}]"]
            if len(old) < 2 or len(new) < 2:
                lines.append(f"{len(old)} and {len(new)} figures, too few for ministat")
                continue
            lines += [f"x {pair.before.path.name}", f"+ {pair.after.path.name}", dot_plot(old, new)]
            lines.append(compare(old, new, confidence, "pooled").text())
    return "\n".join(lines)


# -- JUnit -------------------------------------------------------------------------------------------------------------


def junit(answered: Gate) -> bytes:
    """JUnit XML: a suite for each run, a case for each sentence.

    A FAIL, or what is proven worse, is a failure. What is INCONCLUSIVE is an error: the router did not fail. Whatever
    keeps the whole undecided is an error of a suite of its own.
    """
    root = ElementTree.Element("testsuites", name=_GATE)
    for pair in answered.runs:
        suite = ElementTree.SubElement(root, "testsuite")
        suite.set("name", visible(f"{suite_of(pair.after)}{' (SIMULATED)' if pair.after.simulated else ''}"))
        facts = {"run": _about(pair.after), "baseline": str(pair.before.path) if pair.before else ""}
        properties = ElementTree.SubElement(suite, "properties")
        for name, value in facts.items():
            ElementTree.SubElement(properties, "property", name=name, value=visible(value))
        for sentence in pair.sentences:
            record = sentence.after.record
            figures = f"{measured_text(sentence)}\n{proven_text(sentence)}".strip()
            why = proven_text(sentence) if record.verdict == "PASS" else record.message
            seconds = max(record.ended - record.started, 0)
            _case(suite, f"{record.test}: {record.sentence}", answer_to(sentence), why, figures, seconds)
    return _with_problems(root, answered.problems)


def junit_of_error(words: str) -> bytes:
    """JUnit XML that says why there is no answer: a run that was altered, or is none."""
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
