"""May this be released? The verdicts of runs, and what is proven worse than a baseline, as one answer for CI.

A throughput that passes is compared by its margin: the loads that two searches proved to be carried, and not carried.
Every other sentence is compared by what its trials measured (Welch's t-test), with Holm's correction over all of these
sentences. Both are proven worse where the change lies beyond what is allowed, all of its interval.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar
from xml.etree import ElementTree

from ..core.goal import Goal
from ..core.rule import Ruling
from ..core.units import Unit
from ..documents.document import Cell, Column, Document, Facts, Folded, Items, Mark, Note, Part, Section, verdict_cell
from ..stats import compare, confidence_text, holm_levels
from ..units import counted
from ..visible import one_line, visible
from .records import MarginRecord, code_text
from .resume import differences, identity
from .run import RecordedRun
from .run_files import MANIFEST_FILE
from .summary import (
    NOTHING,
    SentenceRow,
    figure_heading,
    sentence_rows,
    table_of_sentences,
    unfinished_sentences,
)

_GATE = "lineproof gate"

ALLOWED = 0.01
"""The ratio by which something may be worse, if nobody says another one: run-to-run variation is no regression."""

MARGIN_REMEDY = "run without -v MARGIN:off"
LONGER_SEARCH = "give it more traffic, as -v 'MARGIN:1 min'"

BASELINE = "the baseline"

EXIT_STATUS = {Ruling.FAIL: 1, Ruling.INCONCLUSIVE: 2, Ruling.PASS: 0}
"""The exit status of each answer, that which a reader must see first before the others."""


class Proven(Enum):
    """The answer of a comparison to one sentence."""

    WORSE = "worse"
    UNSURE = "unsure"
    """The verdict became, or was, INCONCLUSIVE."""
    NOT_COMPARED = "not compared"
    NOTHING_PROVEN = "nothing proven"
    BETTER = "better"


_MARKS: Mapping[Proven, Mark] = {Proven.WORSE: "bad", Proven.BETTER: "good", Proven.UNSURE: "unsure"}


@dataclass(frozen=True)
class ComparisonRule:
    """``confidence`` of all tests together; ``allowed``: the ratio by which something may be worse."""

    confidence: float = 0.95
    allowed: float = ALLOWED

    def __str__(self) -> str:
        """Return how it is decided, in words."""
        sure = f"{confidence_text(self.confidence)} confidence over all sentences (Welch's t-test, Holm)"
        return f"allowed {100 * self.allowed:g} %, {sure}"


@dataclass(frozen=True)
class CandidateChange:
    """The change from baseline to run, as a ratio: -0.02 is 2 % less. ``low`` and ``high``: None is not bounded.

    ``of``: what it is a ratio of. ``confidence`` None: bounds of two searches, which have none; ``estimate`` too.
    """

    low: float | None = None
    high: float | None = None
    estimate: float | None = None
    confidence: float | None = None
    of: str = BASELINE

    def __str__(self) -> str:
        """Return ``-2 % (-2.3 % to -1.7 %, 95 % confidence)``; empty where both carry all that can be sent."""
        ends = [f"{100 * end + 0.0:+.3g} %" for end in (self.low, self.high) if end is not None]
        if self.estimate is None or self.confidence is None:
            return f"at {'most' if self.low is None else 'least'} {ends[0]}" if len(ends) == 1 else " to ".join(ends)
        estimate = f"{100 * self.estimate + 0.0:+.3g} %{'' if self.of == BASELINE else f' of {self.of}'}"
        if self.low == self.high:
            return f"{estimate} (no spread)" if self.estimate else "the same figure in both"
        return f"{estimate} ({' to '.join(ends)}, {confidence_text(float(f'{self.confidence:.4g}'))} confidence)"


@dataclass
class ComparedSentence:
    """A sentence of a run of *suite*. ``before``: the same in the baseline; None: it is not there.

    ``change`` None: not compared; ``why_not`` says why. ``comparable``: the runs are.
    """

    before: SentenceRow | None
    after: SentenceRow
    rule: ComparisonRule
    comparable: bool = True
    suite: str = ""
    change: CandidateChange | None = None
    why_not: str = ""

    @property
    def turned(self) -> str:
        """``PASS → FAIL``; "" where both verdicts are the same, or there is one only."""
        if self.before is None or not self.comparable or self.before.record.verdict == self.after.record.verdict:
            return ""
        return f"{self.before.record.verdict} → {self.after.record.verdict}"

    @property
    def state(self) -> Proven:
        """Return what is proven. A verdict that turned is proof without a figure."""
        if "INCONCLUSIVE" in self.turned:
            return Proven.UNSURE
        if self.turned:
            return Proven.WORSE if self.after.record.verdict == "FAIL" else Proven.BETTER
        if self.change is None:
            return Proven.NOT_COMPARED
        is_less = self.change.high is not None and self.change.high < -self.rule.allowed
        is_more = self.change.low is not None and self.change.low > self.rule.allowed
        if not is_less and not is_more:
            return Proven.NOTHING_PROVEN
        return Proven.WORSE if is_less is self.after.record.requirement.at_least else Proven.BETTER

    @property
    def answer(self) -> Ruling:
        """The answer to it: as its own verdict counts, and where that is a PASS what its baseline proves."""
        record = self.after.record
        own = Ruling(record.counts_as)
        if own is not Ruling.PASS or self.before is None or not self.comparable:
            return own
        if self.state is Proven.WORSE:
            return Ruling.FAIL
        # an expected FAIL that one trial decided may have nothing to compare
        is_unsure = record.verdict == "PASS" and self.state in (Proven.UNSURE, Proven.NOT_COMPARED)
        return Ruling.INCONCLUSIVE if is_unsure else own

    @property
    def figures(self) -> str:
        """The figure of the baseline, then the run's."""
        new = self.after.carries
        if self.before is None or new == NOTHING == self.before.carries:
            return new
        return f"{new} in both" if self.before.carries == new else f"{self.before.carries} → {new}"

    @property
    def proven(self) -> str:
        """The proof in words, with the change of the figures; or why nothing is proven."""
        change = self.change
        if self.turned:
            return f"{self.state.value}: {self.turned}"
        if change is None:
            return self.why_not
        if self.state is not Proven.NOTHING_PROVEN:
            proven = f"proven {self.state.value}"
        elif (change.low or 0) <= 0 and (change.high is None or change.high >= 0):
            proven = "no difference proven"
        else:
            proven = "a difference, not proven to be more than is allowed"
        return ": ".join(filter(None, (proven, str(change))))

    def cells(self, heading: str, has_baseline: bool) -> dict[Column, Cell]:
        """Return what people read."""
        cells = self.after.cells(heading, self.figures if has_baseline else "")
        if has_baseline:
            # a terminal has no room for the margin beside what is proven
            cells = {replace(column, on_page=column.name == "margin"): cell for column, cell in cells.items()}
            cells[Column("proven", left=True)] = Cell(self.proven, mark=_MARKS.get(self.state, ""))
        # people see it where it is not the verdict, as of a PASS that is proven worse than its baseline
        answer = self.answer.value
        shown = verdict_cell("" if answer == self.after.verdict.text else answer)
        return cells | {Column("counts as", left=True): shown}

    @property
    def data(self) -> dict[str, object]:
        """All of it for programs, changes in per cent."""
        record, change = self.after.record, self.change or CandidateChange(of="")
        ends = {"low": change.low, "high": change.high, "estimate": change.estimate}
        return {
            "suite": self.suite,
            "test": record.test,
            "sentence": record.sentence,
            "answer": self.answer.value,
            "verdict": record.verdict,
            "baseline_verdict": self.before and self.before.record.verdict,
            "carries": self.after.carries,
            "baseline_carries": self.before and self.before.carries,
            "state": self.state.value,
            "proven": self.proven,
            **{f"change_{name}_percent": None if end is None else 100 * end for name, end in ends.items()},
            "change_of": change.of,
            "change_confidence": change.confidence,
        }


@dataclass(frozen=True)
class ComparedRuns:
    """A run and an earlier one of its suite (None: there is none)."""

    before: RecordedRun | None
    after: RecordedRun
    sentences: Sequence[ComparedSentence]


@dataclass(frozen=True)
class RunComparison:
    """Runs, each beside its baseline. ``problems``: why not all is decided; ``differences``: what else differs."""

    pairs: Sequence[ComparedRuns] = ()
    rule: ComparisonRule = ComparisonRule()
    problems: Sequence[str] = ()
    differences: Sequence[str] = ()

    @property
    def sentences(self) -> list[ComparedSentence]:
        """The sentences of all runs, in their order."""
        return [sentence for pair in self.pairs for sentence in pair.sentences]

    @property
    def answer(self) -> Ruling:
        """FAIL: a sentence is one, and all runs ended. Else INCONCLUSIVE: one is no PASS, or there is a problem."""
        answers = {sentence.answer for sentence in self.sentences}
        if Ruling.FAIL in answers and not any(_unclosed(pair.after) for pair in self.pairs):
            return Ruling.FAIL
        return Ruling.INCONCLUSIVE if self.problems or answers != {Ruling.PASS} else Ruling.PASS


def gate(runs: Sequence[RecordedRun], baseline: Sequence[RecordedRun], rule: ComparisonRule) -> RunComparison:
    """Compare each of *runs* with the run of its suite in *baseline*, if there is one; Holm's correction is over all.

    The only two are compared whatever their suites are called, as Robot names a suite by how it was called. Raises
    ConfigError.
    """
    only_two = len(baseline) == len(runs) == 1
    couples, alone = _paired(baseline, runs, lambda run: "" if only_two else suite_of(run))
    alone += [new for old, new in couples if baseline and old is None]
    problems = [f"only one side has a run of suite '{suite_of(run)}': {run.path.name}" for run in alone]
    pairs, others = list[ComparedRuns](), list[str]()
    for old, new in couples:
        name, earlier, unlike = new.path.name, sentence_rows(old) if old else (), _unclosed(new)
        if old is not None:
            apart, other = _apart(old, new)
            unlike, others = [*unlike, *_unclosed(old), *apart], [*others, *other]
        same, missing = _paired(earlier, sentence_rows(new), lambda row: (row.record.test, row.record.sentence))
        if old is not None and len(missing) == len(earlier):
            both, missing = f"{old.path.name} and {name}", []
            unlike.append(f"{both} have no sentence of the same test in common; expected two runs of a suite")
        pairs.append(ComparedRuns(old, new, [ComparedSentence(*row, rule, not unlike, suite_of(new)) for row in same]))
        unjudged = new.environment.unjudged
        problems += [*unlike, *([f"{name} has no verdict of {unjudged}"] if unjudged else [])]
        problems += [f"{name} ended in '{ended}', which has no verdict" for _, ended in unfinished_sentences(new)]
        lost = (row.record for row in missing)
        problems += [f"'{record.sentence}' ({record.test}) of the baseline was not judged in {name}" for record in lost]
    if not any(pair.sentences for pair in pairs):
        problems.append("no sentence was judged")
    compared = RunComparison(pairs, rule, problems, others)
    compare_sentences(compared.sentences, rule)
    return compared


S = TypeVar("S")


def _paired(
    before: Iterable[S], after: Iterable[S], name: Callable[[S], object]
) -> tuple[list[tuple[S | None, S]], list[S]]:
    """Return each of *after* with the first of *before* that has its name; and those of *before* that are left."""
    waiting: dict[object, list[S]] = {}
    for one in before:
        waiting.setdefault(name(one), []).append(one)
    couples: list[tuple[S | None, S]] = []
    for one in after:
        same = waiting.get(name(one))
        couples.append((same.pop(0) if same else None, one))
    return couples, [one for same in waiting.values() for one in same]


# -- the rule ----------------------------------------------------------------------------------------------------------


def compare_sentences(sentences: Iterable[ComparedSentence], rule: ComparisonRule) -> None:
    """Set ``change`` of each sentence, or ``why_not``."""
    tests = []
    for sentence in sentences:
        before, after = sentence.before, sentence.after
        sentence.why_not = _why_not(sentence)
        if before is None or sentence.why_not:
            continue
        if before.search is not None and after.search is not None and (before.is_carried or after.is_carried):
            _compare_margins(sentence, before.search, after.search)
            continue
        if min(len(before.sample), len(after.sample)) < 2:  # one trial decided, so there is no spread
            ratio = after.sample[-1] / before.sample[-1] - 1
            sentence.change = CandidateChange(ratio, ratio, ratio, rule.confidence)
            continue
        test, threshold = compare(before.sample, after.sample, rule.confidence), after.record.requirement.threshold
        # a share of next to nothing is no measure
        scale = threshold.number if threshold.unit is Unit.PERCENT or not test.reference.mean else 0
        if not scale and not test.reference.mean:  # nothing was lost in both
            sentence.change = CandidateChange(0.0, 0.0, 0.0, rule.confidence)
            continue
        tests.append((sentence, test.relative_to(scale or None, rule.allowed), "the threshold" if scale else BASELINE))
    levels = holm_levels([change.p for _, change, _ in tests], 1 - rule.confidence)
    for (sentence, change, of), level in zip(tests, levels, strict=True):
        sentence.change = CandidateChange(*change.interval(1 - level), change.change, 1 - level, of)


def _compare_margins(sentence: ComparedSentence, old: MarginRecord, new: MarginRecord) -> None:
    # the reference carries low to high of the threshold: what it lost is between these two
    low = None if old.high is None else new.low / old.high - 1
    high = None if new.high is None or old.low <= 0 else new.high / old.low - 1
    sentence.change = CandidateChange(low, high)
    unfinished = [
        f"the search for the margin is unfinished in the {name}: {search.reason}"
        for name, search in (("baseline", old), ("run", new))
        if not search.finished
    ]
    if unfinished and sentence.state is not Proven.WORSE and (low is None or low < -sentence.rule.allowed):
        sentence.change, sentence.why_not = None, "; ".join([*unfinished, LONGER_SEARCH])


def _is_beyond_repair(before: SentenceRow, after: SentenceRow) -> bool:
    """Return whether a throughput failed in both, and lost so much more that the rest of a budget could not undo it."""
    record, verdicts = after.record, {before.record.verdict, after.record.verdict}
    if before.lost is None or after.lost is None or not record.requirement.quantity.threshold_is_load:
        return False
    forgiven = record.goal.budget * record.goal.forgiven
    return verdicts == {"FAIL"} and after.lost - before.lost > forgiven


def _why_not(sentence: ComparedSentence) -> str:
    """Return why no figures of a sentence are to be compared; "": they are."""
    before, after = sentence.before, sentence.after
    if before is None:
        return "not in the baseline"
    if not sentence.comparable:
        return "the runs are not comparable"
    old, new = before.record, after.record
    demands = [(replace(record.requirement, sentence=""), record.load_pps, record.link_bps) for record in (old, new)]
    if demands[0] != demands[1]:
        return "the same words demand something else: other traffic, threshold or link speed"
    if other := differences(_terms(old.goal), _terms(new.goal)):
        return "; ".join(other)
    if "INCONCLUSIVE" in (old.verdict, new.verdict):
        return "INCONCLUSIVE proves nothing"
    sides = {BASELINE: before, "the run": after}
    if before.is_carried or after.is_carried:
        missing = [name for name, row in sides.items() if row.search is None]
        where = "either run" if len(missing) == len(sides) else "".join(missing)
        return f"margin not measured in {where}: {MARGIN_REMEDY}" if missing else ""
    if shared := {old.run, *old.runs} & {new.run, *new.runs}:  # -v RESUME went on with it
        return f"both rest on trials of {', '.join(sorted(shared))}"
    for name, row in sides.items():
        if endless := sum(not math.isfinite(value) for value in row.sample):
            return f"{endless} of {len(row.sample)} trials of {name} have no upper bound"
    counts = len(before.sample), len(after.sample)
    if min(counts) < 2 and not _is_beyond_repair(before, after):
        return f"{counts[0]} and {counts[1]} figures, too few to compare: expected 2 in each run"
    if not old.requirement.threshold.number and not math.fsum(before.sample) and math.fsum(after.sample):
        return "both the baseline and the threshold are 0: there is nothing to relate a change to"
    return ""


# -- what was tested with what -----------------------------------------------------------------------------------------


def _unclosed(run: RecordedRun) -> list[str]:
    """Return that *run* did not end, in words."""
    is_closed = (run.path / MANIFEST_FILE).is_file()
    return [] if is_closed else [f"{run.path.name} was never closed: Robot was killed, or still runs"]


def suite_of(run: RecordedRun) -> str:
    """Return the suite's name; that of the folder where nobody wrote it down."""
    return run.environment.suite or run.path.resolve().name


def _tested(run: RecordedRun) -> str:
    """Return what *run* tested on what, by which goal."""
    known = run.environment
    goal = f", goal {known.goal.goal}" if known.goal else ""
    tested = [known.platform, known.software, known.versions.get("router.version", ""), f"on {known.testbed}"]
    return f"{suite_of(run)}, {' '.join(filter(None, tested))}{goal}"


def _terms(goal: Goal) -> dict[str, object]:
    return {f"goal {name}": term for name, term in goal.model_dump(exclude={"about"}).items()}


_MUST_BE_SAME = re.compile(r"(testbed|platform|software|generator\.server|generator's \w+|goal( \w+)?) (was|has) ")
"""Begins what makes runs incomparable. The router's own versions may be others: they are what is tried."""


def _apart(old: RecordedRun, new: RecordedRun) -> tuple[list[str], list[str]]:
    """Return why two runs are not comparable, and what else is not the same in them."""
    lines = differences(*map(_identity, (old, new)))
    return list(filter(_MUST_BE_SAME.match, lines)), [line for line in lines if not _MUST_BE_SAME.match(line)]


def _identity(run: RecordedRun) -> Mapping[str, object]:
    # what the router reports of itself, its versions have too
    known = identity(replace(run.environment, router_facts=None))
    testbed = f"{known.pop('testbed')}{' (SIMULATED)' if run.simulated else ''}"
    return {"testbed": testbed, **known, "simulated": "", "Lineproof": code_text(run.environment.code)}


# -- forms -------------------------------------------------------------------------------------------------------------


def gate_document(compared: RunComparison, tagged: str = "") -> Document:
    """Return the answer, each sentence, and the message of each that is no PASS. *tagged*: what became of the tag."""
    answer, problems, sentences = compared.answer, compared.problems, compared.sentences
    has_baseline = any(pair.before for pair in compared.pairs)
    counts = {ruling.value: sum(sentence.answer is ruling for sentence in sentences) for ruling in Ruling}
    title = f"{answer.value}: {', '.join(f'{count} {name}' for name, count in counts.items())}"
    if problems:
        reasons = f"{counted(len(problems), 'reason')} not to decide"
        title += f"; {counted(len(problems), 'problem')} besides" if answer is Ruling.FAIL else f"; {reasons}"
    title += "" if has_baseline else "; without a baseline"
    notes = []
    unknown = sum(sentence.after.is_carried and sentence.after.search is None for sentence in sentences)
    if unknown and not has_baseline:  # beside one, the sentence's own line says so
        of = "it" if unknown == len(sentences) == 1 else f"{unknown} of {counted(len(sentences), 'sentence')}"
        notes = [f"margin not measured of {of}, so no later run can be compared with this one there: {MARGIN_REMEDY}"]
    sentences.sort(key=lambda sentence: list(EXIT_STATUS).index(sentence.answer))
    heading = figure_heading(sentence.after for sentence in sentences)
    records = (sentence.after.record for sentence in sentences)
    messages = [Folded.of(record.outcome) for record in records if record.counts_as != "PASS"]
    simulated = any(run.simulated for pair in compared.pairs for run in (pair.before, pair.after) if run)
    facts = {
        name if name == "rule" or len(compared.pairs) == 1 else f"{name} {number}": value
        for number, pair in enumerate(compared.pairs, 1)
        for name, value in _facts(pair, compared.rule).items()
    }
    parts: list[Part] = [
        Facts(facts),
        *(Note(f"NOT DECIDED: {problem}", strong=True) for problem in problems),
        Items([f"differs: {difference}" for difference in compared.differences]),
        Items([f"note: {note}" for note in notes]),
        table_of_sentences([sentence.cells(heading, has_baseline) for sentence in sentences]),
    ]
    data: dict[str, object] = {
        "answer": answer.value,
        "exit_status": EXIT_STATUS[answer],
        "counts": counts,
        "runs": [
            {"baseline": pair.before and str(pair.before.path), "run": str(pair.after.path)} for pair in compared.pairs
        ],
        "confidence": compared.rule.confidence,
        "allowed_percent": 100 * compared.rule.allowed,
        "differences": list(compared.differences),
        "problems": list(problems),
        "notes": notes,
        "sentences": [sentence.data for sentence in sentences],
    }
    last = Section("", [*messages, *([Note(tagged)] if tagged else [])])
    return Document(title, [Section("", parts), last], simulated, data)


def _facts(pair: ComparedRuns, rule: ComparisonRule) -> dict[str, str]:
    """Return what was tested, where the run is, and beside a baseline what no other line says of it, and the *rule*."""
    facts = {"tested": _tested(pair.after), "run": str(pair.after.path)}
    if old := pair.before:
        other_suite = "" if suite_of(old) == suite_of(pair.after) else f": {suite_of(old)}"
        facts |= {"baseline": f"{old.path}{other_suite}", "rule": str(rule)}
    return facts


def junit(compared: RunComparison) -> bytes:
    """Return JUnit XML: a suite for each run, a case for each sentence.

    A FAIL, or what is proven worse, is a failure. What is INCONCLUSIVE is an error: the router did not fail. Whatever
    keeps the whole undecided is an error of a suite of its own.
    """
    root = ElementTree.Element("testsuites", name=_GATE)
    for pair in compared.pairs:
        simulated = " (SIMULATED)" if pair.after.simulated else ""
        suite = ElementTree.SubElement(root, "testsuite", name=visible(f"{suite_of(pair.after)}{simulated}"))
        properties = ElementTree.SubElement(suite, "properties")
        for name, value in _facts(pair, compared.rule).items():
            ElementTree.SubElement(properties, "property", name=name, value=visible(value))
        for sentence in pair.sentences:
            record = sentence.after.record
            why = sentence.proven if record.counts_as == "PASS" else record.outcome
            case = _case(suite, f"{record.test}: {record.sentence}", sentence.answer, why)
            case.set("time", f"{max(record.ended - record.started, 0):.3f}")
            shown = visible(f"{sentence.figures}\n{sentence.proven}".strip())
            ElementTree.SubElement(case, "system-out").text = shown
    if compared.problems:
        suite = ElementTree.SubElement(root, "testsuite", name=_GATE)
        for number, problem in enumerate(compared.problems, 1):
            _case(suite, f"decided ({number})", Ruling.INCONCLUSIVE, problem)
    for part in (*root, root):
        for key, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
            part.set(key, str(sum(1 for _ in part.iter(tag))))
    ElementTree.indent(root)
    content: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def _case(suite: ElementTree.Element, name: str, answer: Ruling, why: str) -> ElementTree.Element:
    """Add a case to *suite*, with *why* unless it is a PASS."""
    case = ElementTree.SubElement(suite, "testcase", classname=suite.get("name", ""), name=visible(name))
    if answer is not Ruling.PASS:
        tag, first = "failure" if answer is Ruling.FAIL else "error", one_line(why.partition("\n")[0])
        ElementTree.SubElement(case, tag, message=first, type=answer.value).text = visible(why)
    return case
