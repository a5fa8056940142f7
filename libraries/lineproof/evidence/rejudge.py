"""Judges the trials of a recorded run, from its folder alone: its own sentences again, or those of another SLA.

A recorded sentence stands in place of a testbed: it gives out outcomes and readings from the records, in order. The
judge is that of a live run. It knows the world by measurements and readings alone, so that a record of these is all
that it needs. Which trials decide a sentence of another SLA, and why: ``docs/evidence.md``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ..ceilings import PublishedLimits, choose_card, own_part
from ..core.deciding import MOST_EXTRA
from ..core.doubts import OwnPart, with_doubts
from ..core.goal import Goal
from ..core.quantity import Promise, Reason, Requirement, TrafficWords
from ..core.registry import is_installed
from ..core.rule import Ruling
from ..core.telemetry import Telemetry
from ..core.trial import EXAMINED, EXAMINED_SLOWLY, Fault, Load, Measure, Outcome, Trial, read_trial
from ..core.units import Unit, Value
from ..core.verdict import Verdict
from ..errors import BREAKDOWN_ERRORS, ConfigError, SentenceError, TestbedError, in_words
from ..session.explaining import explained
from ..session.generator import measured_limits
from ..session.judging import AFTER, BEFORE, SET_UP, Listener, judge, nobody, promised
from ..session.plan import Plan
from ..session.router_watch import RouterRestarted
from ..units import counted, si
from .inputs import read_kept_plan, word_not_sent
from .records import RequirementRecord
from .run import RecordedRun, read_run
from .run_files import ENVIRONMENT_FILE, REQUIREMENTS, TRIALS
from .summary import unfinished_sentences

SAME_LOAD = 1e-4
"""Loads that differ by no more than this ratio are the same: `95% line rate` and its figure. So are times."""


class RecordMismatch(Exception):
    """The judge asks for what was not recorded. No LineproofError: it is no breakdown of a testbed."""


@dataclass(eq=False)
class RecordedBench:
    """The trials of *record* in *run*, and its readings, in place of a testbed, each given out once.

    ``kept``: all that were judged, those of the runs that its own went on with first; ``trials``: its own. ``judged``:
    how many of these were given out.
    """

    run: RecordedRun
    plan: Plan
    record: RequirementRecord
    judged: int = field(default=0, init=False)
    _given: Counter[str] = field(default_factory=Counter, init=False)

    def __post_init__(self) -> None:
        self.environment, number = self.run.environment, self.record.number
        self.kept = [record.trial for record in self.run.trials_by_number.get(number, ()) if record.trial.number]
        self.trials = [trial for trial in self.kept if not trial.run]
        self.readings = [record.reading for record in self.run.readings_by_number.get(number, ())]
        self.tolerance = self.record.tolerance
        self.simulated, self.clock_speed = self.record.simulated, self.environment.clock_speed
        if self.simulated and self.clock_speed == 1:
            self.clock_speed = math.nan
        self.interfaces = {int(port): name for port, name in self.environment.interfaces.items()}
        self.uncounted = self.plan.uncounted

    def verdict(self, requirement: Requirement) -> Verdict:
        """Return what the trials say of *requirement*. Raises RecordMismatch where they are not enough."""
        record, promise = self.record, promised(self, requirement)
        # what an earlier run showed was weighed for its own sentence
        is_own = requirement.sentence == record.sentence
        earlier = [self._doubted(trial, promise) for trial in self.kept if trial.run and is_own]
        return judge(self, requirement, nobody, earlier)

    def _doubted(self, trial: Trial, promise: Promise) -> Trial:
        """Return a trial of an earlier run with today's doubts, and what else its record says was known of it."""
        again = read_trial(trial.number, trial.outcome, self.tolerance, self.clock_speed)
        problems = with_doubts(again, promise.conditions, promise.quantity.doubts).problems
        known = {replace(problem, detail="") for problem in problems}
        others = (problem for problem in trial.problems if replace(problem, detail="") not in known)
        return replace(trial, problems=(*problems, *others))

    # -- the bench: see :class:`..session.judging.Bench` --------------------------------------------------------------

    @property
    def restarts(self) -> int:
        """The number of restarts of the router that were noticed where nothing was read for the verdict."""
        known = (problem for part in self.record.known_afterwards for problem in part.problems)
        return sum(problem.fault is Fault.ROUTER for problem in known) if self._given[AFTER] else 0

    @property
    def why_no_ledger(self) -> str:
        """The reason why the last reading is also of trials that were not judged; "" if it is not."""
        return "the reading after the trials is also of further ones" if self.judged < len(self.trials) else ""

    def own_part(self, traffic: TrafficWords, load_pps: float, seconds: float) -> OwnPart:
        """Return what is known of the generator's limits, as of the run's time."""
        plan, environment, ports = self.plan, self.environment, self.environment.ports
        server = environment.versions.get("generator.server")
        then = datetime.fromtimestamp(environment.started, UTC)
        measured = measured_limits(plan, server, environment.simulated, then)
        card, why = choose_card(plan.cards, ports, plan.card)
        published = PublishedLimits(card, why, ports, plan.fastest, server) if ports else None
        return own_part(measured, published, traffic, load_pps, seconds)

    def prepare(self, requirement: Requirement) -> None:
        """Raise TestbedError where the testbed broke down before the trials."""
        if self.record.breakdown is not None and not self.readings:
            raise TestbedError(self.record.breakdown)

    def measure_of(self, promise: Promise, hear: Listener) -> Measure:
        """Return what gives out the recorded outcomes. They need not be as asked for, if they prove as much."""
        needed, least = promise.quantity.trial_seconds(promise), 1 - SAME_LOAD

        def outcome(load: Load, seconds: float) -> Outcome:
            if self.judged >= len(self.trials):
                if self.record.breakdown is not None:
                    raise TestbedError(self.record.breakdown)
                raise RecordMismatch(f"a verdict needs more than the {len(self.trials)} recorded trials now")
            trial = self.trials[self.judged]
            self.judged += 1
            pps, duration = trial.outcome.load.pps, trial.outcome.duration
            if not least <= pps / promise.load_pps <= (1 + MOST_EXTRA) / least or duration < needed * least:
                now = f"trial {trial.number} is one of {needed:g} s at {si(promise.load_pps, 'pps')} now"
                raise RecordMismatch(f"{now}, and the recorded one took {duration:g} s at {si(pps, 'pps')}")
            return trial.outcome

        return outcome

    def read(self, moment: str) -> Telemetry:
        """Return what the next reading at this *moment* came to. Raises as it did.

        Raises TestbedError where none was recorded, because the trial kept the limit then: it has no ledger. Raises
        RecordMismatch where the trials cannot be judged without it.
        """
        readings = [reading for reading in self.readings if reading.moment == moment]
        if moment == SET_UP and not readings:  # recorded only where it shows a change
            return Telemetry(None, {})
        if self._given[moment] >= len(readings):
            needed = moment in (BEFORE, AFTER) and not readings
            raise (RecordMismatch if needed else TestbedError)(f"no reading of the router was recorded: {moment}")
        reading = readings[self._given[moment]]
        self._given[moment] += 1
        if reading.telemetry is None:
            raise (RouterRestarted if reading.restarted else TestbedError)(reading.error)
        return reading.telemetry

    def examine(self, frames: bool) -> None:
        """Do nothing: the records have what was seen."""

    def settle(self) -> None:
        """Wait for nothing: no counter lags in a record."""

    def problems(self) -> tuple[str, ...]:
        """Return nothing: the breakdown names them."""
        return ()


# -- the run's own sentences -------------------------------------------------------------------------------------------


SAME, UNKNOWN, DIFFERS, SUSPECT = "same", "UNKNOWN", "DIFFERS", "SUSPECT"
"""States of a sentence judged again: equal, not enough records, another verdict, records that contradict each other."""


@dataclass(frozen=True, slots=True)
class RejudgedSentence:
    """A recorded sentence and the ``verdict`` of today (None: the records are not enough).

    ``remarks``: why that is so, what contradicts in the records, and what is otherwise now.
    """

    record: RequirementRecord
    verdict: Verdict | None
    state: str
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RejudgedRun:
    """All sentences of a run. ``changed``: which verdicts it lacks, and what no run can leave, in words."""

    run: RecordedRun
    sentences: tuple[RejudgedSentence, ...]
    changed: tuple[str, ...] = ()

    @property
    def same(self) -> int:
        """The number of sentences that come to the same verdict, from records that agree with each other."""
        return sum(sentence.state == SAME for sentence in self.sentences)


def rejudge(run: RecordedRun) -> RejudgedRun:
    """Return every sentence of *run*, judged again. Raises ConfigError where its kept files make no plan."""
    environment, plan = run.environment, read_kept_plan(run)
    lacking = unfinished_sentences(run) if environment.ended is not None else {}
    changed = (
        f"{REQUIREMENTS} has no verdict of '{sentence}' ({test}), which has trials"
        for test, sentence in lacking
        if sentence != environment.interrupted
    )
    sentences = tuple(_rejudged(RecordedBench(run, plan, record)) for record in run.requirements)
    return RejudgedRun(run, sentences, (*changed, *_impossible(run)))


def _impossible(run: RecordedRun) -> Iterator[str]:
    """Yield what no run can leave: two trials at one time, and a simulation that calls itself none."""
    if run.simulated and not run.environment.simulated:
        yield f"{ENVIRONMENT_FILE} says that it is not simulated, and other signs in it or beside it that it is"
    # by a clock that was set back in a trial nobody knows when it was
    timed = (
        one for one in run.trials if not one.trial.run and all(p.fault is not Fault.CLOCK for p in one.trial.problems)
    )
    for one, other in pairwise(sorted(timed, key=lambda record: record.trial.outcome.started)):
        outcome = one.trial.outcome
        if other.trial.outcome.started < outcome.started + outcome.elapsed / run.environment.clock_speed:
            both = [f"trial {record.trial.number} of sentence {record.requirement}" for record in (one, other)]
            yield f"{TRIALS} has {' and '.join(both)} at the same time"
            return


def confirmed(run: RecordedRun) -> RecordedRun:
    """Return *run* with the messages that its records come to. Raises ConfigError where that is another verdict.

    Whoever changes a verdict can seal the run anew; he would have to change all that leads to it too.
    """
    if not run.requirements:
        return run
    judged, records = rejudge(run), list[RequirementRecord]()
    for one in judged.sentences:
        if one.verdict is None or one.state != SAME:
            now = one.remarks[0] if one.verdict is None or one.state != DIFFERS else one.verdict.ruling.value
            raise ConfigError(f"is not believed: '{one.record.sentence}', judged again: {now}", run.path)
        records.append(replace(one.record, message=one.verdict.message))
    if judged.changed:
        raise ConfigError(f"is not believed: {judged.changed[0]}", run.path)
    return replace(run, requirements=tuple(records))


def _rejudged(bench: RecordedBench) -> RejudgedSentence:
    record, problems = bench.record, list(contradictions(bench.kept, bench.record))
    try:
        verdict = bench.verdict(bench.plan.requirement(record.sentence))
        if record.why is not None:
            verdict = explained(verdict, bench.environment.router_facts, record.why.load)
        verdict = replace(verdict, tries=record.other_tries, begins_at_1=record.begins_at_1)
        message = verdict.message
    except (RecordMismatch, *BREAKDOWN_ERRORS) as error:
        return RejudgedSentence(record, None, UNKNOWN, (*problems, _why_not(error)))
    if verdict.trials and verdict.promise.goal != record.goal:
        problems.append(f"its record has other terms of goal '{record.goal.goal}' than the kept files")
    state = DIFFERS if verdict.ruling.value != record.verdict else SUSPECT if problems else SAME
    if bench.judged < len(bench.trials):
        problems.append(f"the verdict is reached after {bench.judged} of the {len(bench.trials)} recorded trials now")
    if message != record.message:
        problems.append("its message has other words now")
    return RejudgedSentence(record, verdict, state, tuple(problems))


def _why_not(error: BaseException) -> str:
    return str(error) if isinstance(error, RecordMismatch) else in_words(error)


def contradictions(trials: Sequence[Trial], record: RequirementRecord) -> Iterator[str]:
    """Yield where the trials of *record* contradict it, or their counts their own raw counters, in words."""
    if tuple(trial.number for trial in trials) != record.trials:
        yield f"the verdict names {counted(len(record.trials), 'trial')}, and {TRIALS} has others"
    for trial in trials:
        before, after = (trial.outcome.counters.get(moment) for moment in ("before", "after"))
        if before is None or after is None:
            continue
        for row in trial.outcome.directions:
            sent, came = f"{row.tx_port}.opackets", f"{row.rx_port}.ipackets"
            for name, key, count in (("offered", sent, row.offered), ("received", came, row.received)):
                raw = max(0, after.get(key, 0) - before.get(key, 0))
                if raw != count:
                    yield f"trial {trial.number} says that {count} frames were {name}, and its counters say {raw}"


# -- another SLA -------------------------------------------------------------------------------------------------------


_LOOKED_AT = EXAMINED, EXAMINED_SLOWLY


class AskedSentence(NamedTuple):
    """A sentence of another suite; ``where``: file and line."""

    test: str
    sentence: str
    where: str = ""


@dataclass(frozen=True, slots=True)
class AnotherVerdict:
    """The verdict of a run's trials on a sentence. ``rests_on``: the recorded sentence whose trials decided, or ""."""

    asked: AskedSentence
    ruling: Ruling
    message: str
    rests_on: str = ""


def judge_another_sla(
    folder: Path, asked: Sequence[AskedSentence] | None, goal: Goal | None = None
) -> tuple[RecordedRun, tuple[AnotherVerdict, ...]]:
    """Return the run in *folder*, and what its trials say of *asked* (None: its own sentences).

    *goal*: None: the run's. Raises ConfigError, above all where the folder was altered, and SentenceError for a
    sentence that says nothing.
    """
    run = read_run(folder)
    plan = read_kept_plan(run)
    plan = replace(plan, goal=goal or plan.goal)
    if asked is None:
        asked = [AskedSentence(record.test, record.sentence) for record in run.requirements]
    benches = [RecordedBench(run, plan, record) for record in run.requirements if is_installed(record.quantity)]
    return run, tuple(_another_verdict(sentence, plan, benches) for sentence in asked)


def _another_verdict(asked: AskedSentence, plan: Plan, benches: Sequence[RecordedBench]) -> AnotherVerdict:
    """Return the verdict of the first of *benches* that decides: a FAIL before a PASS. Raises SentenceError."""
    if word := word_not_sent(plan.catalogue, asked.sentence):
        complaint = f"the run never sent '{word}', and its folder does not have the file of that word"
        return _undecided(asked, f"{complaint}; trials of this traffic are needed")
    try:
        requirement = plan.requirement(asked.sentence)
    except SentenceError as error:
        complaint = f"{asked.where}: {error}" if asked.where else str(error)
        hint = "platform, ports and traffic words are those of the run, as its folder has them"
        raise SentenceError(f"{complaint}\n({hint})") from None
    promise = requirement.promise(plan.goal, plan.load_for(requirement), plan.link_bps(requirement.pairs))
    same, other = list[tuple[RecordedBench, Verdict]](), list[tuple[RecordedBench, Verdict]]()
    for bench in (bench for bench in benches if _traffic(bench.record.requirement) == _traffic(requirement)):
        is_same = math.isclose(bench.record.load_pps, promise.load_pps, rel_tol=SAME_LOAD)
        if is_same or requirement.quantity.threshold_is_load:
            (same if is_same else other).append((bench, _judged(bench, requirement)))
    for sources in (same, other):
        # a router carries no load of which another sentence's trials show that it does not
        fails_at = min((bench.record.load_pps for bench, one in sources if one.ruling is Ruling.FAIL), default=math.inf)
        for bench, verdict in sorted(sources, key=lambda pair: pair[1].ruling is not Ruling.FAIL):
            pps, is_fail = bench.record.load_pps, verdict.ruling is Ruling.FAIL
            # loss grows with the load
            proves = (sources is same or (pps < promise.load_pps) is is_fail) and (
                is_fail or fails_at > pps * (1 + SAME_LOAD)
            )
            if proves and verdict.ruling is not Ruling.INCONCLUSIVE:
                where = f"judged at {si(pps, 'pps')} into each port: " if sources is other else ""
                reason = Reason(f"{where}{verdict.reason.summary}", verdict.reason.details)
                message = replace(verdict, requirement=requirement, reason=reason).message
                rests_on = f"'{bench.record.sentence}' in test '{bench.record.test}'"
                return AnotherVerdict(asked, verdict.ruling, message, rests_on)
    why = same[0][1].reason.summary if same else "the run has no trials that decide it"
    trials, seconds = plan.goal.shares(promise.soak).fewest_trials, promise.quantity.trial_seconds(promise)
    per_port = " into each port" if requirement.directions > 1 else ""
    load = f"{si(promise.load_pps, 'pps')}{per_port} of {requirement.traffic}"
    needs = f"{counted(trials, 'trial')} of {seconds:g} s at {load}"
    return _undecided(asked, f"{why}; goal '{plan.goal.goal}' needs at least {needs}")


def _undecided(asked: AskedSentence, why: str) -> AnotherVerdict:
    return AnotherVerdict(asked, Ruling.INCONCLUSIVE, f"INCONCLUSIVE: {asked.sentence}: {why}")


def _traffic(requirement: Requirement) -> tuple[object, ...]:
    """Return what is sent, and measured beside frames. That a load is named changes no trial."""
    needs = requirement.quantity.needs - {"load"}
    return requirement.profile.name, requirement.bidirectional, requirement.pairs, needs


def _judged(bench: RecordedBench, requirement: Requirement) -> Verdict:
    """Return the verdict of one bench alone, of a throughput at exactly its load; INCONCLUSIVE says why."""
    if requirement.quantity.threshold_is_load:
        pps = bench.record.load_pps * (requirement.directions if requirement.in_total else 1)
        requirement = replace(requirement, threshold=Value(pps, Unit.PPS))
    own, why = replace(bench), ""
    try:
        verdict = own.verdict(requirement)
    except (RecordMismatch, *BREAKDOWN_ERRORS) as error:
        return Verdict(requirement, promised(own, requirement), Ruling.INCONCLUSIVE, Reason(_why_not(error)), ())
    # frames are looked at in the trial with which a sentence could pass, which may be none of those that decide here
    looked_at = [trial for trial in own.trials if any(name.startswith(_LOOKED_AT) for name in trial.outcome.readings)]
    if not looked_at and bench.record.verdict != Ruling.PASS.value:
        why = "no frame that came back was looked at in these trials"
    for trial in (trial for trial in looked_at if trial not in own.trials[: own.judged]):
        if any(problem.fault is Fault.CHANGED for problem in trial.problems):
            why = f"trial {trial.number}, which is not needed for it, shows changed or copied frames"
    if verdict.ruling is Ruling.PASS and why:
        return replace(verdict, ruling=Ruling.INCONCLUSIVE, reason=Reason(why))
    return verdict
