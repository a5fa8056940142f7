"""May this go out? The verdicts of runs, and what is proven worse than a baseline, as one answer for CI.

A throughput that passes is compared by its margin: the loads that two searches proved to be carried, and not carried.
Every other sentence is compared by what its trials measured (Welch's t-test), with Holm's correction over all of these
sentences. Both are proven worse where the change lies beyond what is allowed, all of its interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar
from xml.etree import ElementTree

from ..core.goal import Goal
from ..core.units import Unit
from ..stats import compare, confidence_text, holm_levels
from ..units import counted
from ..visible import one_line, visible
from .document import Cell, Code, Column, Document, Facts, Folded, Items, Mark, Note, Part, Section, verdict_cell
from .records import MarginRecord, code_text
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

BASELINE = "the baseline"


class Proven(Enum):
    """The answer of a comparison to one sentence; what a reader must see comes first."""

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
        sure = f"{confidence_text(self.confidence)} confidence in all sentences together (Welch's t-test, Holm)"
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
            return f"{estimate}, without any spread"
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
    def figures(self) -> str:
        """The figure of the baseline, and then that of the run."""
        new = self.after.carries
        if self.before is None or new == NOTHING == self.before.carries:
            return new
        return f"{new} in both" if self.before.carries == new else f"{self.before.carries} → {new}"

    @property
    def proven(self) -> str:
        """The proof in words, with the change of the figures; or why nothing is proven."""
        change, allowed = self.change, f"{100 * self.rule.allowed:g} %"
        if self.turned:
            return f"{self.state.value}: {self.turned}"
        if change is None:
            return self.why_not
        if self.state is not Proven.NOTHING_PROVEN:
            proven = f"proven {self.state.value} by more than {allowed}"
        elif (change.low or 0) <= 0 and (change.high is None or change.high >= 0):
            proven = "no difference proven"
        else:
            proven = f"a difference, not proven to be more than {allowed}"
        return ": ".join(filter(None, (proven, str(change))))

    def cells(self, heading: str) -> dict[Column, Cell]:
        """Return what people read."""
        # a terminal has no room for the margin beside what is proven
        own = self.after.cells(heading, self.figures).items()
        cells = {replace(column, on_page=column.name == "margin"): cell for column, cell in own}
        return cells | {Column("proven", left=True): Cell(self.proven, mark=_MARKS.get(self.state, ""))}

    @property
    def data(self) -> dict[str, object]:
        """All of it for programs: means in the sentence's unit, changes and margins in per cent."""
        record, change = self.after.record, self.change or CandidateChange(of="")
        ratios = {"change_low": change.low, "change_high": change.high, "change_estimate": change.estimate}
        sides: dict[str, object] = {}
        for name, side in (("baseline", self.before), ("run", self.after)):
            sides[f"{name}_verdict"] = side and side.record.verdict
            sides[f"{name}_observations"] = side and len(side.sample)
            sides[f"{name}_mean"] = side and side.measured and side.measured.estimate
            search = side.search if side else None
            ratios[f"{name}_margin_low"] = search.low if search else None
            ratios[f"{name}_margin_high"] = search.high if search else None
        return {
            "suite": self.suite,
            "test": record.test,
            "sentence": record.sentence,
            "verdict": record.verdict,
            "proven": self.proven,
            "unit": record.requirement.threshold.unit.value,
            "state": self.state.value,
            "by": self.change and ("margin" if change.confidence is None else "sample"),
            "change_of": change.of,
            "change_confidence": change.confidence,
            **sides,
            **{f"{name}_percent": None if ratio is None else 100 * ratio for name, ratio in ratios.items()},
        }


@dataclass(frozen=True)
class ComparedRuns:
    """A run and an earlier one of its suite (None: there is none). ``only_before``: what was not judged again."""

    before: RecordedRun | None
    after: RecordedRun
    sentences: Sequence[ComparedSentence]
    only_before: Sequence[SentenceRow] = ()


@dataclass(frozen=True)
class RunComparison:
    """Runs, each beside its baseline. ``problems``: why not all can be compared; ``differences``: what else differs."""

    pairs: Sequence[ComparedRuns] = ()
    rule: ComparisonRule = ComparisonRule()
    problems: Sequence[str] = ()
    differences: Sequence[str] = ()

    @property
    def sentences(self) -> list[ComparedSentence]:
        """The sentences of all runs, in their order."""
        return [sentence for pair in self.pairs for sentence in pair.sentences]

    @property
    def has_baseline(self) -> bool:
        """Return whether any run has one."""
        return any(pair.before for pair in self.pairs)


def compare_runs(before: Sequence[RecordedRun], after: Sequence[RecordedRun], rule: ComparisonRule) -> RunComparison:
    """Compare each run of *after* with the earlier one of its suite; Holm's correction is over all. Raises ConfigError.

    The only two are compared whatever their suites are called, as Robot names a suite by how it was called.
    """
    only_two = len(before) == len(after) == 1
    couples, alone = _paired(before, after, lambda run: "" if only_two else suite_of(run))
    alone += [new for old, new in couples if before and old is None]
    problems = [f"only one side has a run of suite '{suite_of(run)}': {run.path.name}" for run in alone]
    pairs: list[ComparedRuns] = []
    differences: list[str] = []
    for old, new in couples:
        earlier, reasons = sentence_rows(old) if old else (), _why_not_comparable(old, new) if old else []
        rows, only_before = _paired(earlier, sentence_rows(new), lambda row: (row.record.test, row.record.sentence))
        if old and len(only_before) == len(earlier):
            both = f"{old.path.name} and {new.path.name}"
            reasons.append(f"{both} have no sentence in common; expected two runs of a suite")
        sentences = [ComparedSentence(*row, rule, not reasons, suite_of(new)) for row in rows]
        pairs.append(ComparedRuns(old, new, sentences, only_before))
        problems += reasons
        differences += _changed(_circumstances(old), _circumstances(new)) if old else []
    compared = RunComparison(pairs, rule, problems, differences)
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
        sentence.change, sentence.why_not = None, "; ".join(unfinished)


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
    if other := _changed(_goal(old.goal), _goal(new.goal)):
        return f"other {'; '.join(other)}"
    if "INCONCLUSIVE" in (old.verdict, new.verdict):
        return "INCONCLUSIVE proves nothing"
    sides = {BASELINE: before, "the run": after}
    if before.is_carried or after.is_carried:
        missing = [name for name, row in sides.items() if row.search is None]
        where = "either run" if len(missing) == len(sides) else "".join(missing)
        return f"margin not measured in {where}: {MARGIN_REMEDY}" if missing else ""
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


def _why_not_comparable(before: RecordedRun, after: RecordedRun) -> list[str]:
    """Return why figures of these two runs cannot be set against each other, in words; empty if they can."""
    reasons = [f"{run.path.name} {lack}" for run in (before, after) for lack in not_finished(run)]
    return reasons + [f"other {change}" for change in _changed(_identity(before), _identity(after))]


def not_finished(run: RecordedRun) -> list[str]:
    """Return what *run* lacks because it did not end, in words."""
    return [] if (run.path / MANIFEST_FILE).is_file() else ["was never closed: Robot was killed, or still runs"]


def suite_of(run: RecordedRun) -> str:
    """Return the suite's name; that of the folder where nobody wrote it down."""
    return run.environment.suite or run.path.resolve().name


def about_run(run: RecordedRun) -> str:
    """Return where *run* is, and what was tested on what."""
    known = run.environment
    goal = f", goal {known.goal.goal}" if known.goal else ""
    tested = [known.platform, known.software, known.versions.get("router.version", ""), f"on {known.testbed}"]
    return f"{run.path}: {suite_of(run)}, {' '.join(filter(None, tested))}{goal}"


def _identity(run: RecordedRun) -> Mapping[str, object]:
    """Return what must be the same. The router's own versions are what may differ: they are what is tried."""
    known, card = run.environment, run.environment.generator_card.get("card")
    ports = {f"{port.driver} at {port.speed_bps} bit/s" for port in known.ports}
    generator = known.versions.get("generator.server", "not known"), *sorted(ports), card
    return {
        "testbed": f"{known.testbed} (SIMULATED)" if run.simulated else known.testbed,
        "platform": f"{known.platform} with {known.software}",
        "generator": ", ".join(str(part) for part in generator if part),
        **(_goal(known.goal) if known.goal else {}),
    }


def _goal(goal: Goal) -> dict[str, object]:
    """Return the goal's name and its terms, by words that no other goal has."""
    terms = goal.model_dump(exclude={"goal", "about"})
    return {"goal": goal.goal, **{f"{term} of goal '{goal.goal}'": value for term, value in terms.items()}}


def _circumstances(run: RecordedRun) -> Mapping[str, object]:
    """Return what may differ, and is told: versions, the code that judged, the beginnings of the files' sums."""
    known = run.environment
    return {
        **{name: known.versions[name] for name in sorted(known.versions) if name != "generator.server"},
        "Lineproof": code_text(known.code),
        **{name: str(digest)[:12] for name, digest in known.fingerprints.items()},
    }


def _changed(then: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """Return what is not *now* as it was *then*, but for what only one Lineproof knows."""
    return [f"{name}: {was} → {now[name]}" for name, was in then.items() if name in now and now[name] != was]


# -- the answer --------------------------------------------------------------------------------------------------------


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
        problems += [f"{name} has no verdict of {pair.after.environment.unjudged}"] * bool(
            pair.after.environment.unjudged
        )
        problems += [f"{name} ended in '{sentence}', which has no verdict" for _, sentence in unfinished]
        # that nothing is in common is one reason
        is_same_suite = any(sentence.before for sentence in pair.sentences)
        missing = [row.record for row in pair.only_before if is_same_suite]
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
    counts = {
        each.name: sum(own is each for own, _ in answered) for each in (Answer.PASS, Answer.FAIL, Answer.INCONCLUSIVE)
    }
    number = counted(len(answered), "sentence")
    title = f"{answer.name}: {', '.join(f'{count} {name}' for name, count in counts.items())}"
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
    runs = [(name, run) for pair in compared.pairs for name, run in (("baseline", pair.before), ("run", pair.after))]
    parts: list[Part] = [
        Code("\n".join(f"{name:<8}  {one_line(about_run(run))}" for name, run in runs if run)),
        Facts({"rule": str(compared.rule)} if compared.has_baseline else {}),
        *(Note(f"NOT DECIDED: {problem}", strong=True) for problem in problems),
        Items([f"differs: {difference}" for difference in compared.differences]),
        Items([f"note: {note}" for note in notes]),
        table_of_sentences(rows),
    ]
    data: dict[str, object] = {
        "answer": answer.name,
        "exit_status": answer.value,
        "counts": counts,
        "runs": [
            {"baseline": pair.before and str(pair.before.path), "run": str(pair.after.path)} for pair in compared.pairs
        ],
        "confidence": compared.rule.confidence,
        "allowed_percent": 100 * compared.rule.allowed,
        "differences": list(compared.differences),
        "only_baseline": [row.record.sentence for pair in compared.pairs for row in pair.only_before],
        "problems": list(problems),
        "notes": notes,
        "sentences": [{**sentence.data, "answer": own.name} for own, sentence in answered],
    }
    last = Section("", [*messages, *([Note(tagged)] if tagged else [])])
    return Document(title, [Section("", parts), last], any(run.simulated for _, run in runs if run), data)


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
