"""Judges the trials of a recorded run, from its folder alone: its own sentences again, or those of another SLA.

A recorded sentence stands in place of a testbed: it gives out outcomes and readings from the records, in order. The
judge is that of a live run. It knows the world by measurements and readings alone, so that a record of these is all
that it needs. All that a trial was measured with is in its readings.

What may decide a sentence of another SLA, of the same traffic, in this order:

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
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from ..ceilings.cards import PublishedLimits, choose_card
from ..ceilings.headroom import own_part
from ..core.deciding import MOST_EXTRA
from ..core.doubts import OwnPart, with_doubts
from ..core.goal import Goal
from ..core.quantity import Promise, Reason, Requirement, Scope
from ..core.registry import is_installed
from ..core.rule import Ruling
from ..core.step_down import StepDown
from ..core.telemetry import Telemetry
from ..core.trial import Fault, Measure, Outcome, Trial, read_trial
from ..core.units import Unit, Value
from ..core.verdict import Verdict
from ..errors import BREAKDOWN_ERRORS, SentenceError, TestbedError, in_words
from ..session.bench import AFTER, BEFORE, EndedTrial, Listener, Reading
from ..session.explaining import explained
from ..session.generator import measured_limits
from ..session.judging import judge, promised
from ..session.plan import Plan
from ..session.router_watch import RouterRestarted
from ..units import counted, si
from .inputs import read_kept_plan, word_not_sent
from .records import INTERRUPTED, EnvironmentRecord, ReadingRecord, RequirementRecord, TrialRecord
from .run import RecordedRun, read_run
from .run_files import REQUIREMENTS, TRIALS

ROUNDED = 1 - 1e-9
"""Ratio to which two loads, or times, are the same."""

SAME_LOAD = 1e-4
"""Loads of two sentences that differ by no more than this ratio are the same: `95% line rate` and its figure."""

RESTART_LOSS = 0.02
"""The least ratio of a trial's frames that a router loses which restarts in it, or loses a neighbour."""

NOT_READ = "no reading of the router goes with trials of a search"


class RecordMismatch(Exception):
    """The judge asks for what was not recorded. No LineproofError: it is no breakdown of a testbed."""


@dataclass(eq=False)
class RecordedBench:
    """The trials at one load, and *readings*, in place of a testbed, each given out once.

    *kept*: the trials of the sentence of *record*, those of the runs that its own went on with first; or those of one
    load of the search for its margin, *searched* in frames/s, with which no readings go.
    ``differences``: where a trial shows something else now than its record says, or has other problems. ``judged``: how
    many trials were given out.
    """

    plan: Plan
    environment: EnvironmentRecord
    record: RequirementRecord
    kept: Sequence[TrialRecord]
    readings: Sequence[ReadingRecord] = ()
    searched: float = 0.0
    forwards_again: bool = True
    """The last trial, or a later one, shows that the router still forwarded; readings of a sentence show it."""

    differences: list[str] = field(default_factory=list, init=False)
    judged: int = field(default=0, init=False)
    _given: Counter[str] = field(default_factory=Counter, init=False)

    def __post_init__(self) -> None:
        # a warm-up is not judged
        self.trials = [item for item in self.kept if item.trial.number and not item.trial.run]
        self.link_bps, self.tolerance = self.record.link_bps, self.record.tolerance
        self.simulated, self.clock_speed = self.record.simulated, self.environment.clock_speed
        if self.simulated and self.clock_speed == 1:
            self.clock_speed = math.nan
        self.interfaces = {int(port): name for port, name in self.environment.interfaces.items()}

    @property
    def load_pps(self) -> float:
        """The load of each port."""
        return self.searched or self.record.load_pps

    def verdict(self, requirement: Requirement) -> Verdict:
        """Return what the trials say of *requirement*. Raises RecordMismatch where they are not enough."""
        record, promise = self.record, promised(self, requirement)
        # what an earlier run showed was weighed for its own sentence
        earlier = [item.trial for item in self.kept if item.trial.run and requirement.sentence == record.sentence]
        # a soak that was ended early has fewer trials than it asks for
        is_whole = record.verdict != Ruling.INCONCLUSIVE.value or len(self.trials) >= record.promise.soak
        return judge(self, requirement, self.compare, [self._doubted(trial, promise) for trial in earlier], is_whole)

    def _doubted(self, trial: Trial, promise: Promise) -> Trial:
        """Return a trial of an earlier run with today's doubts, and what else its record says was known of it."""
        again = read_trial(trial.number, trial.outcome, self.tolerance, self.clock_speed)
        again = with_doubts(again, promise.conditions, promise.quantity.doubts)
        known = {(item.fault, item.frames, item.directions) for item in again.problems}
        others = (item for item in trial.problems if (item.fault, item.frames, item.directions) not in known)
        return replace(trial, problems=(*again.problems, *others))

    def compare(self, event: EndedTrial | Reading | StepDown) -> None:
        """Compare a trial that was judged with its record."""
        if not isinstance(event, EndedTrial) or event.standing is None:
            return
        record, trial, shows = self.trials[self.judged - 1], event.trial, event.standing.last
        if shows != record.evidence:
            self.differences.append(f"trial {trial.number} was '{record.evidence}', and is '{shows}' now")
        if trial.problems != record.trial.problems:
            was, is_now = ("; ".join(map(str, item.problems)) or "none" for item in (record.trial, trial))
            self.differences.append(f"trial {trial.number} had as problems: {was}; and has now: {is_now}")

    # -- the bench: see :class:`..session.bench.Bench` --------------------------------------------------------------

    @property
    def restarts(self) -> int:
        """How many restarts of the router were noticed where nothing was read for the verdict."""
        known = (problem for part in self.record.known_afterwards for problem in part.problems)
        return sum(problem.fault is Fault.ROUTER for problem in known) if self._given[AFTER] else 0

    @property
    def uncounted(self) -> str:
        """Why the frames that the router itself counts are not known; "": they are."""
        return NOT_READ if self.searched else self.plan.uncounted

    @property
    def why_no_ledger(self) -> str:
        """Why the last reading is not of the trials that were judged alone."""
        return "the reading after the trials is also of further ones" if self.judged < len(self.trials) else ""

    def own_part(self, requirement: Requirement, load_pps: float, seconds: float) -> OwnPart:
        """Return what is known of the generator's limits, as of the run's time."""
        plan, environment, ports = self.plan, self.environment, self.environment.ports
        server = environment.versions.get("generator.server")
        then = datetime.fromtimestamp(environment.started, UTC)
        measured = measured_limits(plan, self.link_bps, server, environment.simulated, then)
        card, why = choose_card(plan.cards, ports, plan.card)
        published = PublishedLimits(card, why, ports, self.link_bps, server) if ports else None
        return own_part(measured, published, requirement, load_pps, seconds)

    def prepare(self, requirement: Requirement) -> None:
        """Raise TestbedError where the testbed broke down before the trials."""
        if self.record.breakdown is not None and not self.searched and not self.readings:
            raise TestbedError(self.record.breakdown)

    def measure_of(self, promise: Promise, hear: Listener) -> Measure:
        """Return what gives out the recorded outcomes."""
        return lambda load, seconds: self.outcome(promise)

    def outcome(self, promise: Promise) -> Outcome:
        """Return the next trial's outcome. What was asked for then is no part of the rule, if it proves as much.

        Raises RecordMismatch where it is of less than the load or the time of *promise*, or of much more than the load,
        and TestbedError where the testbed broke down.
        """
        if self.judged >= len(self.trials):
            if self.record.breakdown is not None:
                raise TestbedError(self.record.breakdown)
            raise RecordMismatch(f"a verdict needs more than the {len(self.trials)} recorded trials now")
        trial, seconds = self.trials[self.judged].trial, promise.quantity.trial_seconds(promise)
        self.judged += 1
        pps, duration = trial.outcome.load.pps, trial.outcome.duration
        fits = ROUNDED <= pps / promise.load_pps <= (1 + MOST_EXTRA) / ROUNDED
        if not fits or duration < seconds * ROUNDED:
            raise RecordMismatch(
                f"trial {trial.number} is one of {seconds:g} s at {si(promise.load_pps, 'pps')} now, and the"
                f" recorded one took {duration:g} s at {si(pps, 'pps')}"
            )
        return trial.outcome

    def read(self, moment: str) -> Telemetry:
        """Return what the next reading at this *moment* came to. Raises as it did.

        Raises TestbedError where none was recorded, because the trial kept the limit then: it has no ledger. Raises
        RecordMismatch where the trials cannot be judged without it.
        """
        if self.searched:
            return Telemetry(None, {})
        readings = [item.reading for item in self.readings if item.reading.moment == moment]
        if (number := self._given[moment]) >= len(readings):
            needed = moment in (BEFORE, AFTER) and not readings
            raise (RecordMismatch if needed else TestbedError)(f"no reading of the router was recorded: {moment}")
        self._given[moment] += 1
        reading = readings[number]
        if reading.telemetry is None:
            raise (RouterRestarted if reading.restarted else TestbedError)(reading.error)
        return reading.telemetry

    def examine(self, frames: bool) -> None:
        """Do nothing: the records have what was seen."""

    def settle(self) -> None:
        """Nothing lags."""

    def problems(self) -> tuple[str, ...]:
        """Return nothing: the breakdown names them."""
        return ()


def _why_not(error: BaseException) -> str:
    return str(error) if isinstance(error, RecordMismatch) else in_words(error)


def _of_sentence(run: RecordedRun, plan: Plan, record: RequirementRecord) -> RecordedBench:
    trials, readings = run.trials_by_number.get(record.number, ()), run.readings_by_number.get(record.number, ())
    return RecordedBench(plan, run.known_environment, record, trials, readings)


# -- the run's own sentences -------------------------------------------------------------------------------------------

SAME, UNKNOWN, DIFFERS, SUSPECT = "same", "UNKNOWN", "DIFFERS", "SUSPECT"
"""What becomes of a sentence: :attr:`RejudgedSentence.state`."""


@dataclass(frozen=True, slots=True)
class RejudgedSentence:
    """A recorded sentence and the ``verdict`` of today (None: the records are not enough, ``problems`` says why).

    ``problems``: what contradicts in the records; ``notes``: what is otherwise now and changes no verdict.
    """

    record: RequirementRecord
    verdict: Verdict | None
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Return whether the records agree with each other, and today's verdict with theirs."""
        return self.state == SAME

    @property
    def state(self) -> str:
        """UNKNOWN: the records are not enough; DIFFERS: another verdict; SUSPECT: they contradict each other."""
        if self.verdict is None:
            return UNKNOWN
        if self.verdict.ruling.value != self.record.verdict:
            return DIFFERS
        return SUSPECT if self.problems else SAME


@dataclass(frozen=True, slots=True)
class RejudgedRun:
    """All sentences of a run. ``changed``: which verdicts it lacks, in words."""

    run: RecordedRun
    sentences: tuple[RejudgedSentence, ...]
    changed: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Return whether no verdict is missing, and every sentence comes to the same one."""
        return not self.changed and all(item.same for item in self.sentences)


def rejudge(folder: Path) -> RejudgedRun:
    """Return every sentence of the run in *folder*, judged again. Reads nothing else.

    Raises ConfigError, above all where the folder was altered.
    """
    run = read_run(folder)
    environment, plan = run.known_environment, read_kept_plan(run)
    interrupted, judged = environment.extra.get(INTERRUPTED), {record.number for record in run.requirements}
    tried = {item.requirement for item in run.trials if item.evidence and item.sentence != interrupted}
    changed: tuple[str, ...] = ()
    if (lonely := sorted(tried - judged)) and environment.ended is not None:
        changed = (f"{REQUIREMENTS} has no verdict of sentence {', '.join(map(str, lonely))}, which has trials",)
    sentences = (_rejudged(_of_sentence(run, plan, record)) for record in run.requirements)
    return RejudgedRun(run, tuple(sentences), changed)


def _rejudged(bench: RecordedBench) -> RejudgedSentence:
    record = bench.record
    problems = tuple(contradictions([item.trial for item in bench.kept if item.trial.number], record))
    try:
        verdict = bench.verdict(bench.plan.requirement(record.sentence))
        if record.why is not None:
            verdict = explained(verdict, bench.environment.router_facts, record.why.load)
        verdict = replace(verdict, tries=record.other_tries, begins_at_1=record.begins_at_1)
        message = verdict.message
    except (RecordMismatch, *BREAKDOWN_ERRORS) as error:
        return RejudgedSentence(record, None, (*problems, _why_not(error)), tuple(bench.differences))
    terms = verdict.goal.model_dump(mode="json", exclude={"goal", "about"})
    if verdict.trials and terms != dict(record.goal_terms):
        problems = (*problems, f"its record has other terms of goal '{record.goal}' than the kept files")
    notes, count = list(bench.differences), len(bench.trials)
    if bench.judged < count:
        notes.append(f"the verdict is reached after {bench.judged} of the {count} recorded trials now")
    if message != record.message:
        notes.append("its message has other words now")
    return RejudgedSentence(record, verdict, problems, tuple(notes))


def contradictions(trials: Sequence[Trial], record: RequirementRecord) -> Iterator[str]:
    """Yield where the trials of *record* contradict it, or their counts their own raw counters, in words."""
    numbers = tuple(trial.number for trial in trials)
    if numbers != record.trials:
        yield f"the verdict names trials {_numbers(record.trials)}, and {TRIALS} has {_numbers(numbers)}"
    for trial in trials:
        counters = trial.outcome.counters
        if "before" not in counters or "after" not in counters:
            continue
        for row in trial.outcome.directions:
            for name, key, count in (
                ("offered", f"{row.tx_port}.opackets", row.offered),
                ("forwarded", f"{row.rx_port}.ipackets", row.forwarded),
            ):
                raw = max(0, counters["after"].get(key, 0) - counters["before"].get(key, 0))
                if raw != count:
                    yield f"trial {trial.number} says that {count} frames were {name}, and its counters say {raw}"


def _numbers(numbers: Sequence[int]) -> str:
    if not numbers:
        return "none"
    whole = tuple(range(numbers[0], numbers[-1] + 1)) == tuple(numbers) and len(numbers) > 1
    return f"{numbers[0]} to {numbers[-1]}" if whole else ", ".join(map(str, numbers))


# -- another SLA -------------------------------------------------------------------------------------------------------


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


def judge_another_sla(
    folder: Path, asked: Sequence[AskedSentence] | None, goal: Goal | None = None
) -> tuple[RecordedRun, tuple[AnotherVerdict, ...]]:
    """Return the run in *folder*, and what its trials say of *asked* (None: its own sentences).

    *goal*: None: the run's. Raises ConfigError, above all where the folder was altered, and SentenceError for sentences
    that say nothing.
    """
    run = read_run(folder)
    plan = read_kept_plan(run)
    plan = plan if goal is None else replace(plan, goal=goal)
    if asked is None:
        asked = [AskedSentence(record.test, record.sentence) for record in run.requirements]
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
    benches = [_of_sentence(run, plan, record) for record in run.requirements if is_installed(record.quantity)]
    benches += _of_margins(run, plan)
    verdicts = (_another_verdict(*pair, plan, benches) for pair in zip(asked, requirements, strict=True))
    return run, tuple(verdicts)


def _of_margins(run: RecordedRun, plan: Plan) -> Iterator[RecordedBench]:
    """Yield the loads of finished searches for margins. Other searches may have changed the router meanwhile."""
    records = {record.number: record for record in run.requirements}
    for number, margin in run.margins.items():
        record = records.get(margin.requirement)
        if record is None or number in records or not margin.finished or not is_installed(record.quantity):
            continue
        trials = [item for item in run.trials_by_number.get(number, ()) if item.trial.number]
        for pps in dict.fromkeys(item.trial.outcome.load.pps for item in trials):
            there = [item for item in trials if item.trial.outcome.load.pps == pps]
            later = [item.trial for item in trials[trials.index(there[-1]) :]]
            again = any(trial.lost < RESTART_LOSS * trial.offered for trial in later)
            yield RecordedBench(plan, run.known_environment, record, there, (), pps, again)


def _another_verdict(
    asked: AskedSentence, requirement: Requirement | str, plan: Plan, benches: Sequence[RecordedBench]
) -> AnotherVerdict:
    def undecided(why: str) -> AnotherVerdict:
        return AnotherVerdict(asked, Ruling.INCONCLUSIVE, f"INCONCLUSIVE: {asked.sentence}: {why}")

    if isinstance(requirement, str):
        words = f"the run never sent '{requirement}', and its folder does not have the file of that word"
        return undecided(f"{words}; trials of this traffic are needed")
    link_bps = plan.platform.link_bps
    promise = requirement.promise(plan.goal, plan.load_for(requirement, link_bps), link_bps)
    mine = [bench for bench in benches if _has_traffic_of(bench.record.requirement, requirement)]
    same = [bench for bench in mine if math.isclose(bench.load_pps, promise.load_pps, rel_tol=SAME_LOAD)]
    own = [bench for bench in same if not bench.searched]
    own = [bench for bench in own if (bench.record.test, bench.record.sentence) == (asked.test, asked.sentence)]
    # of trials that disagree the worse count
    steps = [(own, (Ruling.FAIL, Ruling.PASS, Ruling.INCONCLUSIVE), ""), (same, (Ruling.FAIL, Ruling.PASS), "")]
    if requirement.quantity.threshold_is_load:
        less = [bench for bench in mine if bench not in same and bench.load_pps < promise.load_pps]
        more = [bench for bench in mine if bench not in same and bench.load_pps > promise.load_pps]
        steps += [(less, (Ruling.FAIL,), "less"), (more, (Ruling.PASS,), "more")]
    why = ""
    for sources, rulings, side in steps:
        judged = [(bench, _judged(bench, _at_load(requirement, bench.load_pps))) for bench in sources]
        for ruling in rulings:
            for bench, verdict in judged:
                if isinstance(verdict, Verdict) and verdict.ruling is ruling:
                    return _decided(asked, requirement, verdict, bench, side)
        if judged and not side:
            verdict = judged[0][1]
            why = why or (verdict if isinstance(verdict, str) else verdict.reason.summary)
    why = why or "the run has no trials that decide it"
    trials, seconds = plan.goal.shares(promise.soak).fewest_trials, promise.quantity.trial_seconds(promise)
    each = " into each port" if requirement.directions > 1 else ""
    load = f"{si(promise.load_pps, 'pps')}{each} of {requirement.traffic}"
    needs = f"{counted(trials, 'trial')} of {seconds:g} s at {load}"
    return undecided(f"{why}; goal '{plan.goal.goal}' needs at least {needs}")


def _has_traffic_of(recorded: Requirement, asked: Requirement) -> bool:
    """Return whether the same was sent, and measured beside frames. That a load is named changes no trial."""
    then, now = (
        (item.profile.name, item.bidirectional, item.pairs, item.quantity.needs - {"load"})
        for item in (recorded, asked)
    )
    return then == now


def _at_load(requirement: Requirement, pps: float) -> Requirement:
    """Return *requirement* as one about exactly the recorded load of each port."""
    if requirement.quantity.threshold_is_load:
        pps = pps * requirement.directions if requirement.in_total else pps
        return replace(requirement, threshold=Value(pps, Unit.PPS))
    if requirement.load is None:
        return requirement
    return replace(requirement, load=Value(pps, Unit.PPS), load_scope=Scope.ONE)


def _judged(bench: RecordedBench, requirement: Requirement) -> Verdict | str:
    """Return the verdict of one bench alone, or why its trials give none."""
    if bench.searched and not requirement.quantity.threshold_is_load:
        return "trials of a search judge a throughput only"
    try:
        verdict = replace(bench).verdict(requirement)
    except (RecordMismatch, *BREAKDOWN_ERRORS) as error:
        return _why_not(error)
    if verdict.ruling is Ruling.FAIL and not bench.forwards_again:
        return "no later trial shows that the router still forwarded"
    return verdict


def _decided(
    asked: AskedSentence, requirement: Requirement, verdict: Verdict, bench: RecordedBench, side: str
) -> AnotherVerdict:
    """Return *verdict* as that on the sentence that was asked. *side*: ``less`` or ``more`` load than it asks for."""
    where = f"judged at {si(bench.load_pps, 'pps')} into each port, {side} than it asks for: " if side else ""
    reason = Reason(f"{where}{verdict.reason.summary}", verdict.reason.details)
    message = replace(verdict, requirement=requirement, reason=reason).message
    searched = "the search for the margin of " if bench.searched else ""
    rests_on = f"{searched}'{bench.record.sentence}' in test '{bench.record.test}'"
    return AnotherVerdict(asked, verdict.ruling, message, rests_on)
