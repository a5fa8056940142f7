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
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ..core.goal import Goal
from ..core.quantity import Reason, Requirement, Scope
from ..core.rule import Ruling
from ..core.trial import Load
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

    @classmethod
    def open(cls, asked: AskedSentence, why: str) -> AnotherVerdict:
        """Return that nothing decides, and *why*."""
        return cls(asked, Ruling.INCONCLUSIVE, f"INCONCLUSIVE: {asked.sentence}: {why}")


@dataclass(frozen=True, slots=True)
class _Source:
    """Recorded trials at one ``load``: those of a sentence, or of one load of a search for its margin.

    ``forwards_again``: its last trial, or a later one, shows that the router still forwarded (a sentence's readings
    show it).
    """

    record: RequirementRecord
    requirement: Requirement
    load: Load
    trials: Sequence[TrialRecord]
    is_search: bool = False
    forwards_again: bool = True

    @property
    def words(self) -> str:
        """Where its trials are from."""
        searched = "the search for the margin of " if self.is_search else ""
        return f"{searched}'{self.record.sentence}' in test '{self.record.test}'"

    def is_of(self, asked: AskedSentence) -> bool:
        """Return whether its trials are those of this sentence of this test."""
        return not self.is_search and (self.record.test, self.record.sentence) == (asked.test, asked.sentence)

    def has_traffic_of(self, requirement: Requirement) -> bool:
        """Return whether the same was sent, and measured beside frames. That a load is named changes no trial."""
        then, now = (
            (item.profile.name, item.bidirectional, item.pairs, item.quantity.needs - {"load"})
            for item in (self.requirement, requirement)
        )
        return then == now


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
    plan = kept if goal is None else replace(kept, goal=goal)
    # the word of what was never sent, in place of a requirement
    requirements, problems = list[Requirement | str](), list[str]()
    for item in asked:
        try:
            requirements.append(word_not_sent(plan.catalogue, item.sentence) or plan.requirement(item.sentence))
        except SentenceError as error:
            problems.append(f"{item.where}: {error}" if item.where else str(error))
    if problems:
        words = "platform, ports and traffic words are those of the run, as its folder has them"
        raise SentenceError("\n".join([*problems, f"({words})"]))
    judge = _RecordedJudge(run, run.environment, plan, (*_of_sentences(run, kept), *_of_margins(run, kept)))
    return run, tuple(map(judge.verdict, asked, requirements))


@dataclass(frozen=True, slots=True)
class _RecordedJudge:
    """Judges by the sources of one run. ``plan``: that of then, with the goal of now."""

    run: RecordedRun
    environment: EnvironmentRecord
    plan: Plan
    sources: Sequence[_Source]

    def verdict(self, asked: AskedSentence, requirement: Requirement | str) -> AnotherVerdict:
        if isinstance(requirement, str):
            words = f"the run never sent '{requirement}', and its folder does not have the file of that word"
            return AnotherVerdict.open(asked, f"{words}; trials of this traffic are needed")
        load = self.plan.load_for(requirement, self.plan.platform.link_bps)
        mine = [source for source in self.sources if source.has_traffic_of(requirement)]
        same = [source for source in mine if math.isclose(source.load.pps, load.pps, rel_tol=SAME_LOAD)]
        own = [source for source in same if source.is_of(asked)]
        shortage = ""
        for sources in (own, same):
            found = [(source, self._judged(requirement, source)) for source in sources]
            # of trials that disagree the worse count
            for ruling in (Ruling.FAIL, Ruling.PASS, *((Ruling.INCONCLUSIVE,) if sources is own else ())):
                for source, verdict in found:
                    if isinstance(verdict, Verdict) and verdict.ruling is ruling:
                        return _decided(asked, requirement, verdict, source)
            reasons = [item if isinstance(item, str) else item.reason.summary for _, item in found]
            shortage = shortage or next(iter(reasons), "")
        lower = [source for source in mine if source not in same and source.load.pps < load.pps]
        higher = [source for source in mine if source not in same and source.load.pps > load.pps]
        if requirement.quantity.threshold_is_load:
            for ruling, sources, words in ((Ruling.FAIL, lower, "less"), (Ruling.PASS, higher, "more")):
                for source in sources:
                    other = self._judged(requirement, source)
                    if isinstance(other, Verdict) and other.ruling is ruling:
                        there = f"judged at {si(source.load.pps, 'pps')} into each port, {words} than it asks for: "
                        return _decided(asked, requirement, other, source, there)
        return AnotherVerdict.open(asked, self._needed(requirement, load, shortage))

    def _needed(self, requirement: Requirement, load: Load, shortage: str) -> str:
        goal = self.plan.goal
        promise = requirement.promise(goal, load, self.plan.platform.link_bps)
        trials, seconds = goal.shares(promise.soak).fewest_trials, promise.quantity.trial_seconds(promise)
        each = " into each port" if requirement.directions > 1 else ""
        needs = f"{counted(trials, 'trial')} of {seconds:g} s at {si(load.pps, 'pps')}{each} of {requirement.traffic}"
        why = shortage or "the run has no trials that decide it"
        return f"{why}; goal '{goal.goal}' needs at least {needs}"

    def _judged(self, requirement: Requirement, source: _Source) -> Verdict | str:
        """The verdict from *source* alone; text: why its trials give none."""
        if source.is_search and not requirement.quantity.threshold_is_load:
            return "trials of a search judge a throughput only"
        record = source.record
        readings = None if source.is_search else self.run.readings_by_number.get(record.number, ())
        # what an earlier run showed was weighed for its own sentence
        same = requirement.sentence == record.sentence
        kept = [item for item in source.trials if same or not item.trial.run]
        try:
            bench = RecordedBench(self.plan, self.environment, record, kept, readings)
            verdict = bench.verdict(_at_load(requirement, source.load))
        except RecordMismatch as error:
            return str(error)
        except BREAKDOWN_ERRORS as error:
            return in_words(error)
        if verdict.ruling is Ruling.FAIL and not source.forwards_again:
            return "no later trial shows that the router still forwarded"
        return verdict


def _of_sentences(run: RecordedRun, kept: Plan) -> Iterator[_Source]:
    for record in run.requirements:
        with suppress(*BREAKDOWN_ERRORS):  # it has no trials either
            requirement = kept.requirement(record.sentence)
            load = kept.load_for(requirement, record.link_bps)
            yield _Source(record, requirement, load, run.trials_by_number.get(record.number, ()))


def _of_margins(run: RecordedRun, kept: Plan) -> Iterator[_Source]:
    """The loads of finished searches for margins. Other searches may have changed the router meanwhile."""
    records = {record.number: record for record in run.requirements}
    for number, margin in run.margins.items():
        record = records.get(margin.requirement)
        if record is None or number in records or not margin.finished:
            continue
        requirement = kept.requirement(record.sentence)
        trials = [item for item in run.trials_by_number.get(number, ()) if item.trial.number]
        for pps in dict.fromkeys(item.trial.outcome.load.pps for item in trials):
            there = [item for item in trials if item.trial.outcome.load.pps == pps]
            later = [item.trial for item in trials[trials.index(there[-1]) :]]
            again = any(trial.lost < RESTART_LOSS * trial.offered for trial in later)
            yield _Source(record, requirement, Load(pps), there, True, again)


def _at_load(requirement: Requirement, load: Load) -> Requirement:
    """*requirement* as one about exactly the recorded *load* of each port."""
    if requirement.quantity.threshold_is_load:
        pps = load.pps * requirement.directions if requirement.in_total else load.pps
        return replace(requirement, threshold=Value(pps, Unit.PPS))
    if requirement.load is None:
        return requirement
    return replace(requirement, load=Value(load.pps, Unit.PPS), load_scope=Scope.ONE)


def _decided(
    asked: AskedSentence, requirement: Requirement, verdict: Verdict, source: _Source, where: str = ""
) -> AnotherVerdict:
    reason = Reason(f"{where}{verdict.reason.summary}", verdict.reason.details)
    found = replace(verdict, requirement=requirement, reason=reason)
    return AnotherVerdict(asked, verdict.ruling, found.message, source.words)
