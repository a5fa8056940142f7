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
from pathlib import Path
from typing import Any

from ..core.units import Unit
from ..stats import Comparison, compare, holm_levels
from .records import EnvironmentRecord, MarginRecord, RequirementRecord
from .run import RecordedRun
from .run_files import MANIFEST_FILE
from .sentence_rows import SentenceRow, sentence_rows

ALLOWED = 0.01
"""The ratio by which something may be worse, if nobody says another one: run-to-run variation is no regression."""

MARGIN_REMEDY = "run without -v MARGIN:off"


class Proven(Enum):
    """The answer of a comparison to one sentence; what a reader must see comes first."""

    WORSE = "worse"
    UNSURE = "unsure"
    """The verdict became, or was, INCONCLUSIVE."""
    NOT_COMPARED = "not compared"
    NOTHING_PROVEN = "nothing proven"
    BETTER = "better"


@dataclass(frozen=True)
class ComparisonRule:
    """``confidence`` of all tests together; ``allowed``: the ratio by which something may be worse."""

    confidence: float = 0.95
    allowed: float = ALLOWED


@dataclass(frozen=True)
class CandidateChange:
    """The change from baseline to run, as a ratio: -0.02 is 2 % less. ``low`` and ``high``: None is not bounded.

    ``of``: what it is a ratio of. ``confidence`` None: bounds of two searches, which have none; ``estimate`` too.
    """

    low: float | None
    high: float | None
    estimate: float | None = None
    confidence: float | None = None
    of: str = "the baseline"


@dataclass(frozen=True)
class ComparedSentence:
    """A sentence of a run. ``before``: the same in the baseline; None: it is not there.

    ``change`` None: not compared; ``why_not`` says why. ``test``: where samples were. ``comparable``: the runs are.
    """

    before: SentenceRow | None
    after: SentenceRow
    rule: ComparisonRule
    change: CandidateChange | None = None
    why_not: str = ""
    test: Comparison | None = None
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
        """How many sentences are in *state*."""
        return sum(sentence.state is state for sentence in self.sentences)


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
    left = ((suite, run) for suite, runs in waiting.items() for run in runs)
    problems += [f"suite '{suite}' of the baseline ({run.path.name}) was not run" for suite, run in left]
    return pairs, problems


def suite_of(run: RecordedRun) -> str:
    """The suite's name; that of the folder where nobody wrote it down."""
    known = run.environment.extra.get("suite") if run.environment is not None else None
    return str(known or Path(run.path).resolve().name)


def compare_runs(
    pairs: Iterable[tuple[RecordedRun | None, RecordedRun]], rule: ComparisonRule
) -> tuple[ComparedRuns, ...]:
    """Each pair of baseline and run. Holm's correction is over all pairs together. Raises ConfigError."""
    matched = []
    for before, after in pairs:
        couples, only_before = _matched(sentence_rows(before) if before else (), sentence_rows(after))
        reasons = list(why_not_comparable(before, after)) if before else []
        if before and not any(earlier for earlier, _ in couples):
            reasons.append(
                f"{before.path.name} and {after.path.name} have no sentence in common; expected two runs of a suite"
            )
        matched.append((before, after, tuple(reasons), couples, only_before))
    asked = [(*couple, not reasons) for _, _, reasons, couples, _ in matched for couple in couples]
    compared = iter(compare_rows(asked, rule))
    return tuple(
        ComparedRuns(
            before,
            after,
            reasons,
            tuple(_differences(before, after)) if before else (),
            tuple(next(compared) for _ in couples),
            only_before,
        )
        for before, after, reasons, couples, only_before in matched
    )


def compare_rows(
    couples: Sequence[tuple[SentenceRow | None, SentenceRow, bool]], rule: ComparisonRule
) -> list[ComparedSentence]:
    """Baseline and run of each sentence, and whether their runs are comparable."""
    compared = [_compared(before, after, comparable, rule) for before, after, comparable in couples]
    tests = []
    for place, row in enumerate(compared):
        if row.test is not None and row.before is not None:
            scale = _scale(row.test, row.before)
            tests.append((place, row.test.relative_to(scale, rule.allowed), scale))
    levels = holm_levels([change.p for _, change, _ in tests], 1 - rule.confidence)
    for (place, change, scale), level in zip(tests, levels, strict=True):
        low, high = change.interval(1 - level)
        of = "the threshold" if scale else "the baseline"
        compared[place] = replace(compared[place], change=CandidateChange(low, high, change.change, 1 - level, of))
    return compared


def why_not_comparable(before: RecordedRun, after: RecordedRun) -> tuple[str, ...]:
    """Why figures of these two runs cannot be set against each other, in words; empty if they can."""
    reasons = [f"{run.path.name} {words}" for run in (before, after) for words in not_finished(run)]
    if before.simulated != after.simulated:
        sham, real = (before, after) if before.simulated else (after, before)
        reasons.append(f"{sham.path.name} is simulated, {real.path.name} is not")
    old, new = _identity(before), _identity(after)
    reasons += [f"other {name}: {old[name]} → {new[name]}" for name in old if new.get(name, old[name]) != old[name]]
    goals = [run.environment.extra.get("goal") if run.environment is not None else None for run in (before, after)]
    was, now = (goal if isinstance(goal, Mapping) else {} for goal in goals)
    return (*reasons, *(_other_terms(str(was.get("goal")), was, str(now.get("goal")), now) if was and now else ()))


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


def _other_terms(was: str, old: Mapping[str, Any], now: str, new: Mapping[str, Any]) -> Iterator[str]:
    """Yield what differs between two goals, but for keys that only one Lineproof knows."""
    changed = [key for key in old if key in new and key != "about" and old[key] != new[key]]
    if was != now:
        yield f"other goal: {was} → {now}"
    elif changed:
        yield f"other goal: in '{was}' {', '.join(f'{key} was {old[key]}, is {new[key]}' for key in changed)}"


def _differences(before: RecordedRun, after: RecordedRun) -> Iterator[str]:
    one, two = before.environment, after.environment
    if one is None or two is None:
        return
    if one.run == two.run:
        yield "the baseline is the run itself"
    names = sorted((one.versions.keys() & two.versions) - {"generator.server"})
    facts = [(name, one.versions[name], two.versions[name]) for name in names]
    yield from (
        f"{name}: {was} → {now}" for name, was, now in (*facts, ("Lineproof", *map(_code, (one, two)))) if was != now
    )
    old, new = (known.extra.get("fingerprints") for known in (one, two))
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        yield from (f"{name}: other content" for name in old if new.get(name, old[name]) != old[name])


def _code(known: EnvironmentRecord) -> str:
    dirty = " with changes" if known.code.get("dirty") is True else ""
    return f"{known.code.get('version', 'unknown')} (commit {str(known.code.get('commit', 'unknown'))[:12]}{dirty})"


def _matched(
    before: Sequence[SentenceRow], after: Sequence[SentenceRow]
) -> tuple[list[tuple[SentenceRow | None, SentenceRow]], tuple[SentenceRow, ...]]:
    """Each sentence of the later run, with that of the earlier one; those that only the earlier one has."""
    waiting: dict[tuple[str, str], list[SentenceRow]] = {}
    for row in before:
        waiting.setdefault((row.record.test, row.record.sentence), []).append(row)
    couples: list[tuple[SentenceRow | None, SentenceRow]] = []
    for row in after:
        same = waiting.get((row.record.test, row.record.sentence))
        couples.append((same.pop(0) if same else None, row))
    return couples, tuple(row for left in waiting.values() for row in left)


def _compared(
    before: SentenceRow | None, after: SentenceRow, comparable: bool, rule: ComparisonRule
) -> ComparedSentence:
    if before is None:
        return ComparedSentence(None, after, rule, why_not="not in the baseline")
    why_not = _why_not(before, after) if comparable else "the runs are not comparable"
    compared = ComparedSentence(before, after, rule, why_not=why_not, comparable=comparable)
    if why_not:
        return compared
    if before.search is not None and after.search is not None and (before.is_carried or after.is_carried):
        return _compared_margins(compared, before.search, after.search)
    return replace(compared, test=compare(before.sample, after.sample, rule.confidence))


def _why_not(before: SentenceRow, after: SentenceRow) -> str:
    """Return why no figures of a sentence are to be compared; "": they are."""
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
        ends = (
            f"the search for the margin is unfinished in the {name}: {search.reason}" for name, search in unfinished
        )
        return replace(row, why_not="; ".join(ends))
    return compared


def _scale(test: Comparison, row: SentenceRow) -> float | None:
    """Return what a change is a ratio of where the reference's mean is no measure: a share of next to nothing."""
    threshold = row.record.requirement.threshold
    if threshold.unit is Unit.PERCENT or not test.reference.mean:
        return threshold.number or None
    return None
