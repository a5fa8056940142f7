"""Judges another SLA by the trials of a recorded run: other sentences, another goal, no testbed.

What may decide a sentence, of the same traffic, in this order:

1. trials at the same load (of the same sentence of the same test alone, if there is one);
2. of a throughput, a FAIL at a lower load: what a router loses there it does not carry at more (the rule of every
   verdict: loss at less than the load counts against the router);
3. of a throughput, a PASS at a higher load: a router that carries more than the sentence asks for has at least that
   throughput (RFC 1242 3.17: the *maximum* rate). A FAIL at a lower load comes first, as in RFC 9971 the smallest load
   that was not carried does.

A FAIL at a higher load and a PASS at a lower one say nothing. Where nothing decides, the sentence is INCONCLUSIVE and
says which trials would.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..core.goal import Goal
from ..core.quantity import Need, Reason, Requirement, Scope
from ..core.rule import Ruling
from ..core.trial import Load, Trial
from ..core.units import Unit, Value
from ..core.verdict import Verdict
from ..errors import BREAKDOWN_ERRORS, ConfigError, SentenceError, in_words
from ..session.plan import Plan
from ..units import counted, si
from .inputs import read_kept_plan, word_not_sent
from .records import EnvironmentRecord, RequirementRecord, TrialRecord
from .rejudging import RecordedBench, RecordMismatch
from .run import RecordedRun, read_run

SAME_LOAD = 1e-4
"""Loads that differ by no more than this ratio are the same: `95% line rate` and its figure in Mpps."""


RESTART_LOSS = 0.02
"""The least ratio of a trial's frames that a router loses which restarts in it, or loses a neighbour."""


@dataclass(frozen=True, slots=True)
class AskedSentence:
    """A sentence of another suite; ``where``: file and line."""

    test: str
    sentence: str
    where: str = ""


@dataclass(frozen=True, slots=True)
class AnotherVerdict:
    """The verdict of a run's trials on a sentence. ``rests_on``: the recorded sentence of those that decided, or ""."""

    asked: AskedSentence
    ruling: Ruling
    message: str
    rests_on: str = ""


@dataclass(frozen=True, slots=True)
class _Source:
    """Recorded trials at one ``load``: those of a sentence, or of one load of a search for its margin.

    ``forwards_again``: its last trial, or a later one, shows that the router still forwarded (a sentence's readings
    show it).
    """

    record: RequirementRecord
    requirement: Requirement
    load: Load
    trials: tuple[TrialRecord, ...]
    is_search: bool = False
    forwards_again: bool = True

    @property
    def words(self) -> str:
        """Where its trials are from."""
        searched = "the search for the margin of " if self.is_search else ""
        return f"{searched}'{self.record.sentence}' in test '{self.record.test}'"


def judge_another_sla(
    folder: Path, asked: Sequence[AskedSentence] | None, goal: Goal | None = None
) -> tuple[RecordedRun, tuple[AnotherVerdict, ...]]:
    """*asked* (None: the run's own sentences), judged under *goal* (None: the run's) by the trials in *folder*.

    Raises ConfigError, above all where the folder was altered, and SentenceError for sentences that say nothing.
    """
    run = read_run(folder)
    if run.environment is None:
        raise ConfigError("has no environment.json, which says what was tested", folder)
    kept = read_kept_plan(folder, run.environment)
    if asked is None:
        asked = [AskedSentence(record.test, record.sentence) for record in run.requirements]
    judge = _RecordedJudge(run, run.environment, kept, kept if goal is None else replace(kept, goal=goal))
    return run, judge.verdicts(asked)


class _RecordedJudge:
    """Judges by the sources of one run. ``kept``: the plan of then; ``plan``: it with the goal of now."""

    def __init__(self, run: RecordedRun, environment: EnvironmentRecord, kept: Plan, plan: Plan) -> None:
        self._run, self._environment, self._plan = run, environment, plan
        self._sources = (*self._of_sentences(kept), *self._of_margins(kept))

    def verdicts(self, asked: Sequence[AskedSentence]) -> tuple[AnotherVerdict, ...]:
        """One for each. Raises SentenceError naming all sentences that say nothing."""
        problems: list[str] = []
        read: list[Requirement | str] = []
        for item in asked:
            try:
                word = word_not_sent(self._plan.catalogue, item.sentence)
                read.append(word or self._plan.requirement(item.sentence))
            except SentenceError as error:
                problems.append(f"{item.where}: {error}" if item.where else str(error))
        if problems:
            words = "platform, ports and traffic words are those of the run, as its folder has them"
            raise SentenceError("\n".join([*problems, f"({words})"]))
        return tuple(
            _never_sent(item, found) if isinstance(found, str) else self._verdict(item, found)
            for item, found in zip(asked, read, strict=True)
        )

    def _verdict(self, asked: AskedSentence, requirement: Requirement) -> AnotherVerdict:
        load = self._plan.load_for(requirement, self._plan.platform.link_bps)
        mine = [source for source in self._sources if _same_traffic(source, requirement)]
        same = [source for source in mine if math.isclose(source.load.pps, load.pps, rel_tol=SAME_LOAD)]
        own = [source for source in same if _is_own(source, asked)]
        shortage = ""
        for sources in (own, same):
            found = [(source, self._judged(requirement, source)) for source in sources]
            # of trials that disagree the worse count
            for ruling in (Ruling.FAIL, Ruling.PASS, *((Ruling.INCONCLUSIVE,) if sources is own else ())):
                for source, verdict in found:
                    if isinstance(verdict, Verdict) and verdict.ruling is ruling:
                        return _decided(asked, requirement, verdict, source, "")
            reasons = [verdict for _, verdict in found if isinstance(verdict, str)]
            reasons += [verdict.reason.summary for _, verdict in found if isinstance(verdict, Verdict)]
            shortage = shortage or next(iter(reasons), "")
        if requirement.quantity.threshold_is_load:
            for ruling, sources, words in (
                (Ruling.FAIL, [item for item in mine if item.load.pps < load.pps], "less"),
                (Ruling.PASS, [item for item in mine if item.load.pps > load.pps], "more"),
            ):
                for source in sources:
                    other = "" if source in same else self._judged(requirement, source)
                    if isinstance(other, Verdict) and other.ruling is ruling:
                        there = f"judged at {si(source.load.pps, 'pps')} into each port, {words} than it asks for: "
                        return _decided(asked, requirement, other, source, there)
        message = f"INCONCLUSIVE: {asked.sentence}: {self._needed(requirement, load, shortage)}"
        return AnotherVerdict(asked, Ruling.INCONCLUSIVE, message)

    def _needed(self, requirement: Requirement, load: Load, shortage: str) -> str:
        goal = self._plan.goal
        promise = requirement.promise(goal, load, self._plan.platform.link_bps)
        trials, seconds = goal.shares(promise.soak).fewest_trials, promise.quantity.trial_seconds(promise)
        each = " into each port" if requirement.directions > 1 else ""
        needs = f"{counted(trials, 'trial')} of {seconds:g} s at {si(load.pps, 'pps')}{each} of {requirement.traffic}"
        why = shortage or "the run has no trials that decide it"
        return f"{why}; goal '{goal.goal}' needs at least {needs}"

    def _judged(self, requirement: Requirement, source: _Source) -> Verdict | str:
        """The verdict from *source* alone; text: why its trials give none."""
        if source.is_search and not requirement.quantity.threshold_is_load:
            return "trials of a search judge a throughput only"
        record, readings = source.record, None if source.is_search else self._run.readings_by_number
        # what an earlier run showed was weighed for its own sentence
        same = requirement.sentence == record.sentence
        kept = [item for item in source.trials if same or not item.trial.run]
        read = None if readings is None else readings.get(record.number, ())
        try:
            bench = RecordedBench(self._plan, self._environment, record, kept, read)
            verdict = bench.verdict(_at_load(requirement, source.load))
        except RecordMismatch as error:
            return str(error)
        except BREAKDOWN_ERRORS as error:
            return in_words(error)
        if verdict.ruling is Ruling.FAIL and not source.forwards_again:
            return "no later trial shows that the router still forwarded"
        return verdict

    def _of_sentences(self, kept: Plan) -> Iterator[_Source]:
        for record in self._run.requirements:
            try:
                requirement = kept.requirement(record.sentence)
            except BREAKDOWN_ERRORS:  # it has no trials either
                continue
            trials = tuple(self._run.trials_by_number.get(record.number, ()))
            yield _Source(record, requirement, kept.load_for(requirement, record.link_bps), trials)

    def _of_margins(self, kept: Plan) -> Iterator[_Source]:
        """The loads of finished searches for margins. Other searches may have changed the router meanwhile."""
        records = {record.number: record for record in self._run.requirements}
        for number, margin in self._run.margins.items():
            record = records.get(margin.requirement)
            if record is None or number in records or not margin.finished:
                continue
            requirement = kept.requirement(record.sentence)
            trials = [item for item in self._run.trials_by_number.get(number, ()) if item.trial.number]
            for pps in dict.fromkeys(item.trial.outcome.load.pps for item in trials):
                there = tuple(item for item in trials if item.trial.outcome.load.pps == pps)
                again = any(_forwards(item.trial) for item in trials[trials.index(there[-1]) :])
                yield _Source(record, requirement, Load(pps), there, True, again)


def _never_sent(asked: AskedSentence, word: str) -> AnotherVerdict:
    message = (
        f"INCONCLUSIVE: {asked.sentence}: the run never sent '{word}', and its folder does not have the file of that"
        " word; trials of this traffic are needed"
    )
    return AnotherVerdict(asked, Ruling.INCONCLUSIVE, message)


def _forwards(trial: Trial) -> bool:
    return trial.lost < RESTART_LOSS * trial.offered


def _is_own(source: _Source, asked: AskedSentence) -> bool:
    return not source.is_search and (source.record.test, source.record.sentence) == (asked.test, asked.sentence)


def _same_traffic(source: _Source, requirement: Requirement) -> bool:
    then = source.requirement
    return (then.profile.name, then.bidirectional, then.pairs, _measured(then)) == (
        requirement.profile.name,
        requirement.bidirectional,
        requirement.pairs,
        _measured(requirement),
    )


def _measured(requirement: Requirement) -> frozenset[Need]:
    """Return what a trial has beside frames. That a load is named changes no trial."""
    return requirement.quantity.needs - {"load"}


def _at_load(requirement: Requirement, load: Load) -> Requirement:
    """*requirement* as one about exactly the recorded *load* of each port."""
    if requirement.quantity.threshold_is_load:
        pps = load.pps * requirement.directions if requirement.in_total else load.pps
        return replace(requirement, threshold=Value(pps, Unit.PPS))
    if requirement.load is None:
        return requirement
    return replace(requirement, load=Value(load.pps, Unit.PPS), load_scope=Scope.ONE)


def _decided(
    asked: AskedSentence, requirement: Requirement, verdict: Verdict, source: _Source, where: str
) -> AnotherVerdict:
    reason = Reason(f"{where}{verdict.reason.summary}", verdict.reason.details)
    found = replace(verdict, requirement=requirement, reason=reason)
    return AnotherVerdict(asked, verdict.ruling, found.message, source.words)
