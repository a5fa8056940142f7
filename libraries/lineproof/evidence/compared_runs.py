"""Runs compared sentence by sentence: what is proven worse, by one rule for ``compare`` and ``gate``.

A throughput that passes is compared by its margin: the loads that two searches proved to be carried, and not carried.
Every other sentence is compared by what its trials measured (Welch's t-test), with Holm's correction over all of these
sentences. Both are proven worse where the change lies beyond what is allowed, all of its interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Any

from ..core.units import Unit
from ..stats import compare, dot_plot, holm_levels
from ..stats.intervals import confidence_text
from ..units import counted
from ..visible import one_line
from .document import Cell, Code, Column, Document, Facts, Items, Mark, Note, Part, Section
from .records import EnvironmentRecord, MarginRecord, RequirementRecord
from .run import RecordedRun
from .run_files import MANIFEST_FILE
from .sentence_rows import NOTHING, SentenceRow, figure_heading, sentence_rows, table_of_sentences

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

    low: float | None
    high: float | None
    estimate: float | None = None
    confidence: float | None = None
    of: str = BASELINE


@dataclass(frozen=True)
class ComparedSentence:
    """A sentence of a run. ``before``: the same in the baseline; None: it is not there.

    ``change`` None: not compared; ``why_not`` says why. ``comparable``: the runs are.
    """

    before: SentenceRow | None
    after: SentenceRow
    rule: ComparisonRule
    change: CandidateChange | None = None
    why_not: str = ""
    comparable: bool = True

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


@dataclass(frozen=True)
class ComparedRuns:
    """A run and an earlier one of its suite (None: there is none).

    ``reasons``: why they are not comparable; ``differences``: what else is another. ``only_before``: what was not
    judged again.
    """

    before: RecordedRun | None
    after: RecordedRun
    reasons: tuple[str, ...]
    differences: tuple[str, ...]
    sentences: tuple[ComparedSentence, ...]
    only_before: tuple[SentenceRow, ...] = ()

    @property
    def simulated(self) -> bool:
        """Return whether any of both is."""
        return self.after.simulated or (self.before is not None and self.before.simulated)

    def count(self, state: Proven) -> int:
        """Return how many sentences are in *state*."""
        return sum(sentence.state is state for sentence in self.sentences)


def pair_runs(
    before: Sequence[RecordedRun], after: Sequence[RecordedRun]
) -> tuple[list[tuple[RecordedRun, RecordedRun]], list[str]]:
    """Return earlier and later run of each suite, in the order of the later ones; and what has no partner, in words."""
    if len(before) == len(after) == 1:
        return [(before[0], after[0])], []
    waiting, pairs, problems = list(before), [], []
    for run in after:
        partner = next((one for one in waiting if suite_of(one) == suite_of(run)), None)
        if partner is None:
            problems.append(f"the baseline has no run of suite '{suite_of(run)}' for {run.path.name}")
        else:
            waiting = [one for one in waiting if one is not partner]
            pairs.append((partner, run))
    problems += [f"suite '{suite_of(run)}' of the baseline ({run.path.name}) was not run" for run in waiting]
    return pairs, problems


def suite_of(run: RecordedRun) -> str:
    """Return the suite's name; that of the folder where nobody wrote it down."""
    known = run.environment.extra.get("suite")
    return str(known or Path(run.path).resolve().name)


def compare_runs(
    pairs: Iterable[tuple[RecordedRun | None, RecordedRun]], rule: ComparisonRule
) -> tuple[ComparedRuns, ...]:
    """Compare each pair of baseline and run. Holm's correction is over all pairs together. Raises ConfigError."""
    found, couples = [], []
    for before, after in pairs:
        matched, only_before = _matched(sentence_rows(before) if before else (), sentence_rows(after))
        reasons = list(why_not_comparable(before, after)) if before else []
        if before and not any(earlier for earlier, _ in matched):
            reasons.append(
                f"{before.path.name} and {after.path.name} have no sentence in common; expected two runs of a suite"
            )
        differences = tuple(_differences(before, after)) if before else ()
        found.append((ComparedRuns(before, after, tuple(reasons), differences, (), only_before), len(matched)))
        couples += [(*couple, not reasons) for couple in matched]
    compared = iter(compare_rows(couples, rule))
    return tuple(replace(runs, sentences=tuple(islice(compared, count))) for runs, count in found)


def compare_rows(
    couples: Sequence[tuple[SentenceRow | None, SentenceRow, bool]], rule: ComparisonRule
) -> list[ComparedSentence]:
    """Compare baseline and run of each sentence; the third says whether their runs are comparable."""
    compared, tests = [], {}
    for place, (before, after, comparable) in enumerate(couples):
        why_not = _why_not(before, after) if comparable or before is None else "the runs are not comparable"
        row = ComparedSentence(before, after, rule, None, why_not, comparable)
        if before is not None and not why_not:
            if before.search is not None and after.search is not None and (before.is_carried or after.is_carried):
                row = _compared_margins(row, before.search, after.search)
            else:
                test, threshold = (
                    compare(before.sample, after.sample, rule.confidence),
                    after.record.requirement.threshold,
                )
                # a share of next to nothing is no measure
                scale = threshold.number if threshold.unit is Unit.PERCENT or not test.reference.mean else None
                tests[place] = test.relative_to(scale or None, rule.allowed), "the threshold" if scale else BASELINE
        compared.append(row)
    levels = holm_levels([change.p for change, _ in tests.values()], 1 - rule.confidence)
    for (place, (change, of)), level in zip(tests.items(), levels, strict=True):
        ends = change.interval(1 - level)
        compared[place] = replace(compared[place], change=CandidateChange(*ends, change.change, 1 - level, of))
    return compared


def why_not_comparable(before: RecordedRun, after: RecordedRun) -> tuple[str, ...]:
    """Return why figures of these two runs cannot be set against each other, in words; empty if they can."""
    reasons = [f"{run.path.name} {lack}" for run in (before, after) for lack in not_finished(run)]
    if before.simulated != after.simulated:
        sham, real = (before, after) if before.simulated else (after, before)
        reasons.append(f"{sham.path.name} is simulated, {real.path.name} is not")
    old, new = _identity(before.environment), _identity(after.environment)
    reasons += [f"other {name}: {old[name]} → {new[name]}" for name in old if new[name] != old[name]]
    goals = [known.extra.get("goal") for known in (before.environment, after.environment)]
    was, now = (goal if isinstance(goal, Mapping) else {} for goal in goals)
    return (*reasons, *(_other_terms(str(was.get("goal")), was, str(now.get("goal")), now) if was and now else ()))


def not_finished(run: RecordedRun) -> list[str]:
    """Return what *run* lacks because it did not end, in words."""
    is_closed = (run.path / MANIFEST_FILE).is_file()
    return [] if is_closed else ["was never closed: Robot was killed, or still runs"]


def _identity(known: EnvironmentRecord) -> Mapping[str, str]:
    """Return what must be the same. The router's own versions are what may differ: they are what is tried."""
    ports, card = (
        {f"{port.driver} at {port.speed_bps} bit/s" for port in known.ports},
        known.extra.get("generator_card"),
    )
    generator = [known.versions.get("generator.server", "not known"), *sorted(ports)]
    generator += [str(card.get("card"))] if isinstance(card, Mapping) else []
    return {
        "testbed": known.testbed,
        "platform": f"{known.platform} with {known.software}",
        "generator": ", ".join(generator),
    }


def _other_terms(was: str, old: Mapping[str, Any], now: str, new: Mapping[str, Any]) -> Iterator[str]:
    """Yield what differs between two goals, but for keys that only one Lineproof knows."""
    changed = [key for key in old if key in new and key != "about" and old[key] != new[key]]
    if was != now:
        yield f"other goal: {was} → {now}"
    elif changed:
        yield f"other goal: in '{was}' {', '.join(f'{key} was {old[key]}, is {new[key]}' for key in changed)}"


def _differences(before: RecordedRun, after: RecordedRun) -> Iterator[str]:
    """Yield what else is another: versions, the code that judged, files of the testbed."""
    one, two = before.environment, after.environment
    if one.run == two.run:
        yield "the baseline is the run itself"
    names = sorted((one.versions.keys() & two.versions) - {"generator.server"})
    facts = [(name, one.versions[name], two.versions[name]) for name in names]
    facts.append(("Lineproof", _code(one), _code(two)))
    yield from (f"{name}: {was} → {now}" for name, was, now in facts if was != now)
    old, new = (known.extra.get("fingerprints") for known in (one, two))
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        yield from (f"{name}: other content" for name in old if new.get(name, old[name]) != old[name])


def _code(known: EnvironmentRecord) -> str:
    dirty = " with changes" if known.code.get("dirty") is True else ""
    return f"{known.code.get('version', 'unknown')} (commit {str(known.code.get('commit', 'unknown'))[:12]}{dirty})"


def _matched(
    before: Sequence[SentenceRow], after: Sequence[SentenceRow]
) -> tuple[list[tuple[SentenceRow | None, SentenceRow]], tuple[SentenceRow, ...]]:
    """Return each sentence of the later run, with that of the earlier one; and those that only the earlier one has."""
    waiting: dict[tuple[str, str], list[SentenceRow]] = {}
    for row in before:
        waiting.setdefault((row.record.test, row.record.sentence), []).append(row)
    couples: list[tuple[SentenceRow | None, SentenceRow]] = []
    for row in after:
        same = waiting.get((row.record.test, row.record.sentence))
        couples.append((same.pop(0) if same else None, row))
    return couples, tuple(row for left in waiting.values() for row in left)


def _why_not(before: SentenceRow | None, after: SentenceRow) -> str:
    """Return why no figures of a sentence are to be compared; "": they are."""
    if before is None:
        return "not in the baseline"
    old, new = before.record, after.record
    if _demanded(old) != _demanded(new):
        return "the same words demand something else: other traffic, threshold or link speed"
    if other := list(_other_terms(old.goal, old.goal_terms, new.goal, new.goal_terms)):
        return "; ".join(other)
    if "INCONCLUSIVE" in (old.verdict, new.verdict):
        return "INCONCLUSIVE proves nothing"
    sides = {"baseline": before, "run": after}
    if before.is_carried or after.is_carried:
        missing = [f"the {name}" for name, row in sides.items() if row.search is None]
        where = "either run" if len(missing) == 2 else "".join(missing)
        if old.verdict != new.verdict:
            return "the verdicts say it"
        return f"margin not measured in {where}: {MARGIN_REMEDY}" if missing else ""
    for name, row in sides.items():
        if endless := sum(not math.isfinite(value) for value in row.sample):
            return f"{endless} of {len(row.sample)} trials of the {name} have no upper bound"
    counts = len(before.sample), len(after.sample)
    if min(counts) < 2:
        return f"{counts[0]} and {counts[1]} figures, too few to compare: expected 2 in each run"
    if not old.requirement.threshold.number and not math.fsum(before.sample):
        return "both the baseline and the threshold are 0: there is nothing to relate a change to"
    return ""


def _demanded(record: RequirementRecord) -> tuple[object, ...]:
    """Return the demand in numbers, however it was written."""
    return replace(record.requirement, sentence=""), record.load_pps, record.link_bps


def _compared_margins(row: ComparedSentence, old: MarginRecord, new: MarginRecord) -> ComparedSentence:
    # the reference carries low to high of the threshold: what it lost is between these two
    low = None if old.high is None else new.low / old.high - 1
    high = None if new.high is None or old.low <= 0 else new.high / old.low - 1
    compared = replace(row, change=CandidateChange(low, high))
    unfinished = [(name, search) for name, search in (("baseline", old), ("run", new)) if not search.finished]
    if unfinished and compared.state is not Proven.WORSE and (low is None or low < -row.rule.allowed):
        ends = (f"the search for the margin is unfinished in the {name}: {one.reason}" for name, one in unfinished)
        return replace(row, why_not="; ".join(ends))
    return compared


# -- the document ------------------------------------------------------------------------------------------------------


def comparison(compared: Sequence[ComparedRuns], problems: Sequence[str], rule: ComparisonRule) -> Document:
    """Return each sentence of runs beside the same of earlier ones. *problems*: why runs have no partner."""
    reasons = [*problems, *(reason for pair in compared for reason in pair.reasons)]
    worse, unsure, left = (
        sum(pair.count(state) for pair in compared) for state in (Proven.WORSE, Proven.UNSURE, Proven.NOT_COMPARED)
    )
    more = f"; {unsure} with a verdict that became, or was, INCONCLUSIVE" if unsure else ""
    more += f"; {left} not compared" if left else ""
    title = f"{worse} of {counted(sum(len(pair.sentences) for pair in compared), 'sentence')} proven worse{more}"
    only = [f"only in the baseline: {row.record.sentence}" for pair in compared for row in pair.only_before]
    sentences = sorted(sentences_of(compared), key=lambda each: list(Proven).index(each[1].state))
    heading = figure_heading(sentence.after for _, sentence in sentences)
    table = table_of_sentences([compared_cells(sentence, heading) for _, sentence in sentences])
    parts = [*compared_head(compared, "NOT COMPARABLE", reasons, rule), Items(only), table]
    figures = [compared_figures(*each) for each in sentences]
    data = {**compared_data(compared, rule), "not_comparable": reasons, "worse": worse, "sentences": figures}
    return Document(title, [Section("", parts)], any(pair.simulated for pair in compared), data)


def compared_head(
    pairs: Sequence[ComparedRuns], not_done: str, reasons: Sequence[str], rule: ComparisonRule | None
) -> list[Part]:
    """Return the runs, the rule, why not all is compared, and what differs."""
    runs = [(name, run) for pair in pairs for name, run in (("baseline", pair.before), ("run", pair.after)) if run]
    differences = [f"differs: {words}" for pair in pairs for words in pair.differences]
    return [
        Code("\n".join(f"{name:<8}  {one_line(about_run(run))}" for name, run in runs)),
        Facts({"rule": str(rule)} if rule else {}),
        *(Note(f"{not_done}: {reason}", strong=True) for reason in reasons),
        Items(differences),
    ]


def about_run(run: RecordedRun) -> str:
    """Return where *run* is, and what was tested on what."""
    known = run.environment
    goal = known.extra.get("goal")
    words = [known.platform, known.software, known.versions.get("router.version", ""), f"on {known.testbed}"]
    judged = f", goal {goal.get('goal')}" if isinstance(goal, Mapping) else ""
    return f"{run.path}: {suite_of(run)}, {' '.join(filter(None, words))}{judged}"


def compared_data(pairs: Sequence[ComparedRuns], rule: ComparisonRule) -> dict[str, object]:
    """Return what no table shows, for programs."""
    return {
        "runs": [{"baseline": pair.before and str(pair.before.path), "run": str(pair.after.path)} for pair in pairs],
        "confidence": rule.confidence,
        "allowed_percent": 100 * rule.allowed,
        "differences": [words for pair in pairs for words in pair.differences],
        "only_baseline": [row.record.sentence for pair in pairs for row in pair.only_before],
    }


def sentences_of(pairs: Sequence[ComparedRuns]) -> list[tuple[ComparedRuns, ComparedSentence]]:
    """Return all sentences, each with its runs."""
    return [(pair, sentence) for pair in pairs for sentence in pair.sentences]


def compared_cells(sentence: ComparedSentence, heading: str, has_baseline: bool = True) -> dict[Column, Cell]:
    """Return what people read."""
    cells = sentence.after.cells(heading, figures_text(sentence))
    if not has_baseline:
        return cells
    # a terminal has no room for it beside what is proven
    cells = {replace(column, on_page=column.name == "margin"): cell for column, cell in cells.items()}
    proven = Cell(proven_text(sentence), mark=_MARKS.get(sentence.state, ""))
    return cells | {Column("proven", left=True): proven}


def compared_figures(pair: ComparedRuns, sentence: ComparedSentence, has_baseline: bool = True) -> dict[str, object]:
    """Return means in the sentence's unit, and changes in per cent."""
    record, change = sentence.after.record, sentence.change or CandidateChange(None, None, of="")
    own = {"suite": suite_of(pair.after), "test": record.test, "sentence": record.sentence, "verdict": record.verdict}
    if not has_baseline:
        return {**own}
    return {
        **own,
        "proven": proven_text(sentence),
        "unit": record.requirement.threshold.unit.value,
        "state": sentence.state.value,
        "by": sentence.change and ("margin" if change.confidence is None else "sample"),
        "change_low_percent": _hundred(change.low),
        "change_high_percent": _hundred(change.high),
        "change_estimate_percent": _hundred(change.estimate),
        "change_of": change.of,
        "change_confidence": change.confidence,
        **_side("baseline", sentence.before),
        **_side("run", sentence.after),
    }


def _side(name: str, side: SentenceRow | None) -> dict[str, object]:
    return {
        f"{name}_verdict": side and side.record.verdict,
        f"{name}_observations": side and len(side.sample),
        f"{name}_mean": side and side.measured and side.measured.estimate,
        f"{name}_margin_low_percent": side and side.search and _hundred(side.search.low),
        f"{name}_margin_high_percent": side and side.search and _hundred(side.search.high),
    }


def figures_text(sentence: ComparedSentence) -> str:
    """Return what the baseline carries, and then what the run does."""
    new = sentence.after.carries
    if sentence.before is None or new == NOTHING == sentence.before.carries:
        return new
    return f"{new} in both" if sentence.before.carries == new else f"{sentence.before.carries} → {new}"


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
    """Return by how much: ``-2 % (-2.3 % to -1.7 %)``; empty where both carry all that can be sent."""
    of = "" if change.of == "the baseline" else f" of {change.of}"
    ends = [_percent(end) for end in (change.low, change.high) if end is not None]
    if change.estimate is not None and change.confidence is not None:
        if change.low == change.high:
            return f"{_percent(change.estimate)}{of}, without any spread"
        sure = confidence_text(float(f"{change.confidence:.4g}"))
        return f"{_percent(change.estimate)}{of} ({' to '.join(ends)}, {sure} confidence)"
    return f"at {'most' if change.low is None else 'least'} {ends[0]}" if len(ends) == 1 else " to ".join(ends)


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
