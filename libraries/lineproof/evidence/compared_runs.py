"""Runs compared sentence by sentence: what is proven worse, by one rule for ``compare`` and ``gate``.

A throughput that passes is compared by its margin: the loads that two searches proved to be carried, and not carried.
Every other sentence is compared by what its trials measured (Welch's t-test), with Holm's correction over all of these
sentences. Both are proven worse where the change lies beyond what is allowed, all of its interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from ..core.units import Unit
from ..stats import Comparison, Method, RelativeChange, compare, holm_levels
from .records import MarginRecord, RequirementRecord
from .run import RecordedRun
from .run_files import MANIFEST_FILE
from .sentence_rows import SentenceRow, sentence_rows

ALLOWED = 0.01
"""The ratio by which something may be worse, if nobody says another one: run-to-run variation is no regression."""

RELEVANT = 0.001
"""The least ratio that counts between samples without spread, if less is allowed."""

_ROUNDING = 1e-9
"""Up to this ratio to the mean, a standard deviation comes from rounding."""

MARGIN_REMEDY = "run with -v MARGIN:on"


class Proven(Enum):
    """The answer of a comparison to one sentence."""

    WORSE = "worse"
    BETTER = "better"
    UNSURE = "unsure"
    """The verdict became, or was, INCONCLUSIVE."""
    NOTHING_PROVEN = "nothing proven"
    NOT_COMPARED = "not compared"


@dataclass(frozen=True)
class ComparisonRule:
    """``confidence`` of all tests together; ``allowed``: the ratio by which something may be worse."""

    confidence: float = 0.95
    method: Method = "welch"
    allowed: float = ALLOWED


@dataclass(frozen=True)
class CandidateChange:
    """The change from reference to candidate, as a ratio: -0.02 is 2 % less. ``low`` and ``high``: None is not bounded.

    ``of``: what it is a ratio of. ``confidence`` None: bounds of two searches, which have none; ``estimate`` too.
    """

    low: float | None
    high: float | None
    estimate: float | None = None
    confidence: float | None = None
    of: str = "the reference"


@dataclass(frozen=True)
class ComparedSentence:
    """A sentence in two runs. ``change`` None: not compared; ``why_not`` says why. ``test``: where samples were."""

    before: SentenceRow
    after: SentenceRow
    rule: ComparisonRule
    change: CandidateChange | None = None
    why_not: str = ""
    test: Comparison | None = None
    comparable: bool = True

    @property
    def by_margin(self) -> bool:
        """Return whether two searches were compared."""
        return self.change is not None and self.test is None

    @property
    def still(self) -> bool:
        """Neither run's trials have any spread, so that no test applies."""
        return self.test is not None and _still(self.test)

    @property
    def state(self) -> Proven:
        """Return what is proven. A verdict that turned is proof without a figure."""
        verdicts = self.before.record.verdict, self.after.record.verdict
        if not self.comparable:
            return Proven.NOT_COMPARED
        if "INCONCLUSIVE" in verdicts:
            return Proven.UNSURE if verdicts[0] != verdicts[1] else Proven.NOT_COMPARED
        if verdicts[0] != verdicts[1]:
            return Proven.WORSE if verdicts[1] == "FAIL" else Proven.BETTER
        if self.change is None:
            return Proven.NOT_COMPARED
        allowed = max(self.rule.allowed, RELEVANT) if self.still else self.rule.allowed
        less = self.change.high is not None and self.change.high < -allowed
        more = self.change.low is not None and self.change.low > allowed
        if not less and not more:
            return Proven.NOTHING_PROVEN
        return Proven.WORSE if less is self.before.record.requirement.at_least else Proven.BETTER

    @property
    def differs(self) -> bool:
        """Return whether any change is proven, also one that is allowed."""
        found = self.change
        return found is not None and bool((found.high is not None and found.high < 0) or (found.low or 0) > 0)


@dataclass(frozen=True)
class ComparedRuns:
    """Runs of the same suite. ``reasons``: why they are not comparable; ``differences``: what else is another."""

    before: RecordedRun
    after: RecordedRun
    reasons: tuple[str, ...]
    differences: tuple[str, ...]
    sentences: tuple[ComparedSentence, ...]
    only_before: tuple[SentenceRow, ...] = ()
    only_after: tuple[SentenceRow, ...] = ()

    @property
    def simulated(self) -> bool:
        """Return whether any of both is."""
        return self.before.simulated or self.after.simulated

    def count(self, state: Proven) -> int:
        """How many sentences are in *state*."""
        return sum(row.state is state for row in self.sentences)


def pair_runs(
    before: Sequence[RecordedRun], after: Sequence[RecordedRun]
) -> tuple[list[tuple[RecordedRun, RecordedRun]], list[str]]:
    """Earlier and later run of each suite, in the order of the later ones; what has no partner, in words."""
    if len(before) == len(after) == 1:
        return [(before[0], after[0])], []
    waiting: dict[str, list[RecordedRun]] = {}
    for run in before:
        waiting.setdefault(suite_of(run), []).append(run)
    pairs, problems = [], []
    for run in after:
        if same := waiting.get(suite_of(run)):
            pairs.append((same.pop(0), run))
        else:
            problems.append(f"the baseline has no run of suite '{suite_of(run)}' for {run.path.name}")
    problems += [
        f"suite '{suite}' of the baseline ({run.path.name}) was not run"
        for suite, left in waiting.items()
        for run in left
    ]
    return pairs, problems


def suite_of(run: RecordedRun) -> str:
    """The suite's name; that of the folder where nobody wrote it down."""
    known = run.environment.extra.get("suite") if run.environment is not None else None
    return str(known or Path(run.path).resolve().name)


def compare_runs(pairs: Iterable[tuple[RecordedRun, RecordedRun]], rule: ComparisonRule) -> tuple[ComparedRuns, ...]:
    """Each pair of reference and candidate. Holm's correction is over all pairs together. Raises ConfigError."""
    found = []
    for before, after in pairs:
        rows = [sentence_rows(run) for run in (before, after)]
        couples, only_before, only_after = _matched(*rows)
        reasons = list(why_not_comparable(before, after))
        if not couples:
            reasons.append(
                f"{before.path.name} and {after.path.name} have no sentence in common; expected two runs of a suite"
            )
        found.append((before, after, tuple(reasons), couples, only_before, only_after))
    compared = iter(compare_rows([(*couple, not item[2]) for item in found for couple in item[3]], rule))
    return tuple(
        ComparedRuns(before, after, reasons, _differences(before, after), tuple(next(compared) for _ in couples), *only)
        for before, after, reasons, couples, *only in found
    )


def compare_rows(
    couples: Sequence[tuple[SentenceRow, SentenceRow, bool]], rule: ComparisonRule
) -> list[ComparedSentence]:
    """Reference and candidate of each sentence, and whether their runs are comparable."""
    found = [_compared(before, after, comparable, rule) for before, after, comparable in couples]
    tests = [(place, row, _relative(row, row.test)) for place, row in enumerate(found) if row.test is not None]
    levels = holm_levels([change.p for _, _, (change, _) in tests], 1 - rule.confidence)
    for (place, row, (change, of)), level in zip(tests, levels, strict=True):
        low, high = change.interval(1 - level)
        found[place] = _with(row, CandidateChange(low, high, change.change, 1 - level, of))
    return found


def why_not_comparable(before: RecordedRun, after: RecordedRun) -> tuple[str, ...]:
    """Why figures of these two runs cannot be set against each other, in words; empty if they can."""
    reasons = [f"{run.path.name} {words}" for run in (before, after) for words in not_finished(run)]
    if before.simulated != after.simulated:
        sham, real = (before, after) if before.simulated else (after, before)
        reasons.append(f"{sham.path.name} is simulated, {real.path.name} is not")
    old, new = _identity(before), _identity(after)
    reasons += [f"other {name}: {old[name]} → {new[name]}" for name in old if new.get(name, old[name]) != old[name]]
    return (*reasons, *_other_goal(before, after))


def not_finished(run: RecordedRun) -> list[str]:
    """Return what *run* lacks because it did not end, in words."""
    lacks = []
    if not (run.path / MANIFEST_FILE).is_file():
        lacks.append("was never closed: Robot was killed, or still runs")
    if run.environment is None:
        lacks.append("has no environment.json: its testbed is not known")
    return lacks


def _identity(run: RecordedRun) -> Mapping[str, str]:
    """Return what must be the same. The router's own versions are what may differ: they are what is tried."""
    if (known := run.environment) is None:
        return {}
    ports = {f"{port.driver} at {port.speed_bps} bit/s" for port in known.ports}
    card = known.extra.get("generator_card")
    generator = [known.versions.get("generator.server", "not known"), *sorted(ports)]
    generator += [str(card.get("card"))] if isinstance(card, Mapping) else []
    return {
        "testbed": known.testbed,
        "platform": f"{known.platform} with {known.software}",
        "generator": ", ".join(generator),
    }


def _other_goal(before: RecordedRun, after: RecordedRun) -> Iterable[str]:
    old, new = (run.environment.extra.get("goal") if run.environment is not None else None for run in (before, after))
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        yield from _other_terms(str(old.get("goal")), old, str(new.get("goal")), new)


def _other_terms(was: str, old: Mapping[str, Any], now: str, new: Mapping[str, Any]) -> Iterable[str]:
    """Return what differs between two goals, but for keys that only one Lineproof knows."""
    if was != now:
        yield f"other goal: {was} → {now}"
        return
    changed = [key for key in old if key in new and key != "about" and old[key] != new[key]]
    if changed:
        yield f"other goal: in '{was}' {', '.join(f'{key} was {old[key]}, is {new[key]}' for key in changed)}"


def _differences(before: RecordedRun, after: RecordedRun) -> tuple[str, ...]:
    one, two = before.environment, after.environment
    if one is None or two is None:
        return ()
    names = sorted((one.versions.keys() & two.versions) - {"generator.server"})
    facts = [(name, one.versions[name], two.versions[name]) for name in names]
    facts.append(("Lineproof", _code(one.code), _code(two.code)))
    old, new = (item.extra.get("fingerprints") for item in (one, two))
    lines = ["the reference is the run itself"] if one.run == two.run else []
    lines += [f"{name}: {was} → {now}" for name, was, now in facts if was != now]
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        lines += [f"{name}: other content" for name in old if new.get(name, old[name]) != old[name]]
    return tuple(lines)


def _code(code: Mapping[str, Any]) -> str:
    dirty = " with changes" if code.get("dirty") is True else ""
    return f"{code.get('version', 'unknown')} (commit {str(code.get('commit', 'unknown'))[:12]}{dirty})"


def _matched(
    before: Sequence[SentenceRow], after: Sequence[SentenceRow]
) -> tuple[list[tuple[SentenceRow, SentenceRow]], tuple[SentenceRow, ...], tuple[SentenceRow, ...]]:
    """The sentences of both, in the order of the later run; those that only the one or the other has."""
    waiting: dict[tuple[str, str], list[SentenceRow]] = {}
    for row in before:
        waiting.setdefault((row.record.test, row.record.sentence), []).append(row)
    couples, fresh = [], []
    for row in after:
        same = waiting.get((row.record.test, row.record.sentence))
        if same:
            couples.append((same.pop(0), row))
        else:
            fresh.append(row)
    left = {id(row) for rows in waiting.values() for row in rows}
    return couples, tuple(row for row in before if id(row) in left), tuple(fresh)


def _compared(before: SentenceRow, after: SentenceRow, comparable: bool, rule: ComparisonRule) -> ComparedSentence:
    def not_compared(why: str) -> ComparedSentence:
        return ComparedSentence(before, after, rule, None, why, None, comparable)

    old, new = before.record, after.record
    if _demanded(old) != _demanded(new):
        return not_compared("the same words demand something else: other traffic, threshold or link speed")
    if other := list(_other_terms(old.goal, old.goal_terms, new.goal, new.goal_terms)):
        return not_compared("; ".join(other))
    verdicts = old.verdict, new.verdict
    if "INCONCLUSIVE" in verdicts:
        return not_compared("INCONCLUSIVE proves nothing")
    if before.is_carried or after.is_carried:
        if verdicts != ("PASS", "PASS"):
            return not_compared("the verdicts say it")
        old_search, new_search = before.search, after.search
        if old_search is None or new_search is None:
            missing = [name for name, row in (("reference", before), ("candidate", after)) if row.search is None]
            where = "either run" if len(missing) == 2 else f"the {missing[0]}"
            return not_compared(f"margin not measured in {where}: {MARGIN_REMEDY}")
        return _compared_margins(before, after, old_search, new_search, rule, comparable)
    for name, row in (("reference", before), ("candidate", after)):
        if endless := sum(not math.isfinite(value) for value in row.sample):
            return not_compared(f"{endless} of {len(row.sample)} trials of the {name} have no upper bound")
    counts = len(before.sample), len(after.sample)
    if min(counts) < 2:
        return not_compared(f"{counts[0]} and {counts[1]} figures, too few to compare: expected 2 in each run")
    test = compare(before.sample, after.sample, rule.confidence, rule.method)
    if not _scale(test, before) and not test.reference.mean:
        return not_compared("both the reference and the threshold are 0: there is nothing to relate a change to")
    return ComparedSentence(before, after, rule, None, "", test, comparable)


def _demanded(record: RequirementRecord) -> tuple[object, ...]:
    """Return the demand in numbers, however it was written."""
    return replace(record.requirement, sentence=""), record.load_pps, record.link_bps


def _compared_margins(
    before: SentenceRow,
    after: SentenceRow,
    old: MarginRecord,
    new: MarginRecord,
    rule: ComparisonRule,
    comparable: bool,
) -> ComparedSentence:
    # the reference carries low to high of the threshold: what it lost is between these two
    low = None if old.high is None else new.low / old.high - 1
    high = None if new.high is None or old.low <= 0 else new.high / old.low - 1
    found = ComparedSentence(before, after, rule, CandidateChange(low, high), "", None, comparable)
    unfinished = [(name, item) for name, item in (("reference", old), ("candidate", new)) if not item.finished]
    if unfinished and found.state is not Proven.WORSE and (low is None or low < -rule.allowed):
        words = "the search for the margin is unfinished in the"
        why = "; ".join(f"{words} {name}: {item.reason}" for name, item in unfinished)
        return _with(found, None, why)
    return found


def _scale(test: Comparison, row: SentenceRow) -> float | None:
    """Return what a change is a ratio of where the reference's mean is no measure: a share of next to nothing."""
    threshold = row.record.requirement.threshold
    if threshold.unit is Unit.PERCENT or not test.reference.mean:
        return threshold.number
    return None


def _relative(row: ComparedSentence, test: Comparison) -> tuple[RelativeChange, str]:
    allowed = max(row.rule.allowed, RELEVANT) if _still(test) else row.rule.allowed
    scale = _scale(test, row.before)
    return test.relative_to(scale or None, allowed), "the threshold" if scale else "the reference"


def _still(test: Comparison) -> bool:
    return all((each.stddev or 0.0) <= _ROUNDING * abs(each.mean) for each in (test.reference, test.candidate))


def _with(row: ComparedSentence, change: CandidateChange | None, why_not: str = "") -> ComparedSentence:
    return ComparedSentence(row.before, row.after, row.rule, change, why_not, row.test, row.comparable)
