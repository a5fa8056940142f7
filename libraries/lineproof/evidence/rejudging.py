"""Judges a recorded run again: from its folder alone, by the judge of today.

A recorded sentence stands in place of a testbed: its session's generator and router answer from the records, in order.
The judge is that of a live run. It knows the world by measurements and readings alone, so that a record of these is all
that it needs. All that a trial was measured with is in its readings.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, cast

from ..ceilings.cards import PublishedLimits, choose_card
from ..ceilings.headroom import MeasuredLimits
from ..core.deciding import MOST_EXTRA, Standing
from ..core.doubts import with_doubts
from ..core.quantity import Promise, Requirement
from ..core.rule import Ruling
from ..core.telemetry import Telemetry
from ..core.trial import Fault, Measure, Outcome, Problem, Tolerance, Trial, read_trial
from ..core.verdict import Verdict
from ..errors import BREAKDOWN_ERRORS, ConfigError, TestbedError, in_words
from ..generators.site import GeneratorEndpoint
from ..routers.base import Router, Side
from ..session.afterwards import Bookkeeper
from ..session.explaining import explained
from ..session.generator import GeneratorConnection
from ..session.judging import Judge
from ..session.plan import Plan
from ..session.router import RouterConnection
from ..session.router_watch import RouterRestarted, RouterWatch
from ..session.session import Session
from ..session.traffic import Traffic
from ..testbed.facts import NO_ROUTER, TestbedFacts
from ..testbed.opening import OpenTestbed
from ..units import si
from .inputs import read_kept_plan
from .records import (
    INTERRUPTED,
    EnvironmentRecord,
    ReadingRecord,
    RequirementRecord,
    TrialRecord,
)
from .run import RecordedRun, read_run
from .run_files import REQUIREMENTS, TRIALS

ROUNDED = 1 - 1e-9
"""Ratio to which two loads, or times, are the same."""


class RecordMismatch(Exception):
    """The judge asks for what was not recorded. No LineproofError: it is no breakdown of a testbed."""


@dataclass
class RecordedSentence:
    """The *trials* (without a warm-up) and *readings* of one requirement, given out once each, in their order.

    ``earlier``: trials of the runs that its own went on with. ``differences``: where a trial shows something else now
    than its record says, or has other problems, in words.
    """

    record: RequirementRecord
    trials: Sequence[TrialRecord]
    readings: Sequence[ReadingRecord]
    earlier: Sequence[Trial] = ()
    differences: list[str] = field(default_factory=list)
    asked: int = 0
    judged: int = 0
    _read: int = 0

    @classmethod
    def of(
        cls,
        record: RequirementRecord,
        trials: Sequence[TrialRecord],
        readings: Sequence[ReadingRecord],
        with_earlier: bool = True,
    ) -> Self:
        """Return the sentence with its *trials*, of which those of earlier runs are only evidence."""
        own = [item for item in trials if not item.trial.run]
        return cls(record, own, readings, [item.trial for item in trials if item.trial.run and with_earlier])

    def outcome(self, promise: Promise) -> Outcome:
        """Return the next trial's outcome. What was asked for then is no part of the rule, if it proves as much.

        Raises RecordMismatch where it is of less than the load or the time of *promise*, or of much more than the load,
        and TestbedError where the testbed broke down.
        """
        if self.asked >= len(self.trials):
            if self.record.breakdown is not None:
                raise TestbedError(self.record.breakdown)
            raise RecordMismatch(f"a verdict needs more than the {len(self.trials)} recorded trials now")
        record = self.trials[self.asked]
        self.asked += 1
        was, seconds = record.trial.outcome, promise.quantity.trial_seconds(promise)
        fits = ROUNDED <= was.load.pps / promise.load_pps <= (1 + MOST_EXTRA) / ROUNDED
        if not fits or was.duration < seconds * ROUNDED:
            raise RecordMismatch(
                f"trial {record.trial.number} is one of {seconds:g} s at {si(promise.load_pps, 'pps')} now, and the"
                f" recorded one took {was.duration:g} s at {si(was.load.pps, 'pps')}"
            )
        return was

    def on_trial(self, trial: Trial, standing: Standing) -> None:
        """A trial was judged: compare it with its record."""
        record = self.trials[self.judged]
        self.judged += 1
        if standing.last != record.evidence:
            self.differences.append(f"trial {trial.number} was '{record.evidence}', and is '{standing.last}' now")
        if trial.problems != record.trial.problems:
            was, is_now = ("; ".join(map(str, item.problems)) or "none" for item in (record.trial, trial))
            self.differences.append(f"trial {trial.number} had as problems: {was}; and has now: {is_now}")

    def reading(self, last_will_do: bool) -> Telemetry:
        """Return what the next reading after the judged trials came to. Raises as it did, and RecordMismatch.

        *last_will_do*: where none was recorded then, because a verdict was reached later, the last one is taken.
        """
        while self._read < len(self.readings) and self.readings[self._read].after_trial < self.judged:
            self._read += 1
        found = self.readings[self._read] if self._read < len(self.readings) else None
        if found is not None and found.after_trial == self.judged:
            self._read += 1
        elif last_will_do and self.readings:
            found = self.readings[-1]
        else:
            raise RecordMismatch(f"no reading of the router was recorded after {self.judged} trials")
        if found.reading.telemetry is None:
            raise (RouterRestarted if found.reading.restarted else TestbedError)(found.reading.error)
        return found.reading.telemetry


class RecordedWatch(RouterWatch):
    """Readings of a recorded sentence."""

    def __init__(self, sentence: RecordedSentence) -> None:
        super().__init__(_NO_ROUTER, 1.0, tuple)
        self._sentence = sentence

    def read_again(self) -> Telemetry:
        """The reading that was recorded here. Raises as it did, and RecordMismatch before the trials.

        After a trial that was not read then, because it kept the limit: raises TestbedError, and is without a ledger.
        """
        try:
            return self._sentence.reading(last_will_do=False)
        except RecordMismatch as error:
            if not self._sentence.judged:
                raise
            raise TestbedError(str(error)) from None

    def read_last(self) -> Telemetry:
        """The reading after the trials, with the neighbours; the last one if the verdict is reached sooner now."""
        known = self._sentence.record.known_afterwards
        # a restart that was noticed where nothing was read for the verdict
        self.restarts += any(problem.fault is Fault.ROUTER for part in known for problem in part.problems)
        return self._sentence.reading(last_will_do=True)


_NO_ROUTER = cast(Router, None)


class RecordedRouter(RouterConnection):
    """The router's end: its recorded readings."""

    sentence: RecordedSentence

    @property
    def watch(self) -> RouterWatch:
        """The recorded readings."""
        self._watch = self._watch or RecordedWatch(self.sentence)
        return self._watch


class RecordedGenerator(GeneratorConnection):
    """The generator's end: what is known of its limits, as of the run's time."""

    environment: EnvironmentRecord

    @property
    def versions(self) -> dict[str, str]:
        """The recorded versions."""
        found = self.environment.versions.items()
        return {name.removeprefix("generator."): value for name, value in found if name.startswith("generator.")}

    @property
    def headroom(self) -> MeasuredLimits | None:
        """Return what the kept calibration says; as stale as it was then."""
        plan = self.plan
        if plan.calibration is None:
            return None
        then = datetime.fromtimestamp(self.environment.started, UTC)
        link_bps, server = self.testbed.facts.link_bps, self.versions.get("server")
        simulated = self.environment.simulated
        return MeasuredLimits(plan.calibration, plan.catalogue, plan.testbed.kind, link_bps, server, simulated, then)

    def know_card(self) -> None:
        """Find the card of the recorded ports."""
        ports = self.environment.ports
        if ports:
            choice, link_bps = choose_card(self.plan.cards, ports, self.plan.card), self.testbed.facts.link_bps
            self.known_limits = PublishedLimits.of(choice, ports, link_bps, self.versions.get("server"))


class RecordedSession(Session):
    """The session in which *sentence* was judged, with the plan and the environment of then."""

    def __init__(self, plan: Plan, environment: EnvironmentRecord, sentence: RecordedSentence) -> None:
        super().__init__(plan, OpenTestbed(_facts(environment, sentence.record)))
        self.sentence = sentence
        self.generator = generator = RecordedGenerator(plan, self.testbed)
        generator.environment = environment
        generator.know_card()
        self.router = router = RecordedRouter(plan, self.testbed, generator, self.cause_fault)
        router.sentence = sentence
        self.traffic = Traffic(plan, self.testbed, generator, router)

    @property
    def tolerance(self) -> Tolerance:
        """Return those that were in force."""
        return self.sentence.record.tolerance


class RecordedJudge(Judge):
    """The judge of a recorded session."""

    session: RecordedSession

    def measure_of(self, promise: Promise) -> Measure:
        """Return what gives out the recorded outcomes. Raises RecordMismatch."""
        return lambda load, seconds: self.session.sentence.outcome(promise)

    def _reading_afterwards(
        self, watch: RouterWatch, trials: Sequence[Trial], book: Bookkeeper
    ) -> tuple[Telemetry | None, list[Problem]]:
        if self.session.sentence.judged < len(self.session.sentence.trials):
            book.close_without_reading("the reading after the trials is also of further ones")
        return super()._reading_afterwards(watch, trials, book)


def _facts(environment: EnvironmentRecord, record: RequirementRecord) -> TestbedFacts:
    ports = tuple(int(port) for port in environment.interfaces)
    return TestbedFacts(
        generator=GeneratorEndpoint("", 0, 0, ports=ports),
        router=NO_ROUTER,
        sides=tuple(Side(name, "", "", "", "") for name in environment.interfaces.values()),
        link_bps=record.link_bps,
        label="recorded",
        clock_speed=environment.clock_speed,
        simulated=record.simulated,
    )


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
        return not self.problems and self.verdict is not None and self.verdict.ruling.value == self.record.verdict

    @property
    def state(self) -> str:
        """UNKNOWN: the records are not enough; DIFFERS: another verdict; SUSPECT: they contradict each other."""
        if self.same:
            return SAME
        if self.verdict is None:
            return UNKNOWN
        return DIFFERS if self.verdict.ruling.value != self.record.verdict else SUSPECT


@dataclass(frozen=True, slots=True)
class RejudgedRun:
    """All sentences of a run. ``notes``: what its files lack; ``changed``: which verdicts it lacks, in words."""

    run: RecordedRun
    environment: EnvironmentRecord
    sentences: tuple[RejudgedSentence, ...]
    notes: tuple[str, ...]
    changed: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Return whether no verdict is missing, and every sentence comes to the same one."""
        return not self.changed and all(item.same for item in self.sentences)


def rejudge(folder: Path) -> RejudgedRun:
    """Every sentence of the run in *folder*, judged again. Reads nothing else.

    Raises ConfigError, above all where the folder was altered.
    """
    run = read_run(folder)
    if run.environment is None:
        raise ConfigError("has no environment.json, which says what was tested", folder)
    plan = read_kept_plan(folder, run.environment)
    changed: tuple[str, ...] = ()
    judged = {record.number for record in run.requirements}
    interrupted = run.environment.extra.get(INTERRUPTED)
    tried = {item.requirement for item in run.trials if item.evidence and item.sentence != interrupted}
    if (lonely := sorted(tried - judged)) and run.environment.ended is not None:
        changed = (f"{REQUIREMENTS} has no verdict of sentence {', '.join(map(str, lonely))}, which has trials",)
    sentences = tuple(_rejudged(plan, run, run.environment, record) for record in run.requirements)
    return RejudgedRun(run, run.environment, sentences, run.notes, changed)


def _rejudged(
    plan: Plan, run: RecordedRun, environment: EnvironmentRecord, record: RequirementRecord
) -> RejudgedSentence:
    trials = [item for item in run.trials_by_number.get(record.number, ()) if item.trial.number]
    readings = run.readings_by_number.get(record.number, ())
    problems = tuple(contradictions([item.trial for item in trials], record))
    sentence = RecordedSentence.of(record, trials, readings)
    try:
        verdict = judged(RecordedSession(plan, environment, sentence), plan.requirement(record.sentence))
        if record.why is not None:
            verdict = explained(verdict, environment.router_facts, record.why.load)
        verdict = replace(verdict, tries=record.other_tries, begins_at_1=record.begins_at_1)
        message = verdict.message
    except (RecordMismatch, *BREAKDOWN_ERRORS) as error:
        words = str(error) if isinstance(error, RecordMismatch) else in_words(error)
        return RejudgedSentence(record, None, (*problems, words), tuple(sentence.differences))
    terms = json.loads(json.dumps(verdict.goal.model_dump(exclude={"goal", "about"})))
    if verdict.trials and terms != json.loads(json.dumps(dict(record.goal_terms))):
        problems = (*problems, f"its record has other terms of goal '{record.goal}' than the kept files")
    notes = list(sentence.differences)
    if sentence.judged < len(sentence.trials):
        count = len(sentence.trials)
        notes.append(f"the verdict is reached after {sentence.judged} of the {count} recorded trials now")
    if message != record.message:
        notes.append("its message has other words now")
    return RejudgedSentence(record, verdict, problems, tuple(notes))


def judged(session: RecordedSession, requirement: Requirement) -> Verdict:
    """The verdict on *requirement* from the one recorded sentence of *session*.

    Raises RecordMismatch where it asks for what was not recorded.
    """
    sentence = session.sentence
    # a soak that was ended early has fewer trials than it asks for
    is_whole = (
        sentence.record.verdict != Ruling.INCONCLUSIVE.value or len(sentence.trials) >= sentence.record.promise.soak
    )
    judge = RecordedJudge(session, sentence.on_trial, wait=lambda seconds: None, whole_soak=is_whole)
    if sentence.record.breakdown is not None and not sentence.readings:  # before the judge was asked
        return judge.inconclusive(requirement, sentence.record.breakdown)
    promise = judge.promise(requirement)
    return judge.judge(requirement, earlier=[_doubted(trial, session, promise) for trial in sentence.earlier])


def _doubted(trial: Trial, session: RecordedSession, promise: Promise) -> Trial:
    """Return a trial of an earlier run with today's doubts, and what else its record says was known of it."""
    again = read_trial(trial.number, trial.outcome, session.tolerance, session.clock_speed)
    again = with_doubts(again, promise.conditions, promise.quantity.doubts)
    known = {(item.fault, item.frames, item.directions) for item in again.problems}
    others = (item for item in trial.problems if (item.fault, item.frames, item.directions) not in known)
    return replace(trial, problems=(*again.problems, *others))


def contradictions(trials: Sequence[Trial], record: RequirementRecord) -> Iterator[str]:
    """Where the trials of *record* contradict it, or their counts their own raw counters, in words."""
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
