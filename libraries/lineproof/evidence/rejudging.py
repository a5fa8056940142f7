"""Judges a recorded run again: from its folder alone, by the judge of today.

A recorded sentence stands in place of a testbed: it gives out outcomes and readings from the records, in order. The
judge is that of a live run. It knows the world by measurements and readings alone, so that a record of these is all
that it needs. All that a trial was measured with is in its readings.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from ..ceilings.cards import PublishedLimits, choose_card
from ..ceilings.headroom import own_part
from ..core.deciding import MOST_EXTRA
from ..core.doubts import OwnPart, with_doubts
from ..core.quantity import Promise, Requirement
from ..core.rule import Ruling
from ..core.step_down import StepDown
from ..core.telemetry import Telemetry
from ..core.trial import Fault, Measure, Outcome, Trial, read_trial
from ..core.verdict import Verdict
from ..errors import BREAKDOWN_ERRORS, ConfigError, TestbedError, in_words
from ..session.bench import AFTER, BEFORE, EndedTrial, Listener, Reading
from ..session.explaining import explained
from ..session.generator import measured_limits
from ..session.judging import judge, promised
from ..session.plan import Plan
from ..session.power import PoweredTrials
from ..session.router_watch import RouterRestarted
from ..units import si
from .inputs import read_kept_plan
from .records import INTERRUPTED, EnvironmentRecord, ReadingRecord, RequirementRecord, TrialRecord
from .run import RecordedRun, read_run
from .run_files import REQUIREMENTS, TRIALS

ROUNDED = 1 - 1e-9
"""Ratio to which two loads, or times, are the same."""

NOT_READ = "no reading of the router goes with trials of a search"


class RecordMismatch(Exception):
    """The judge asks for what was not recorded. No LineproofError: it is no breakdown of a testbed."""


@dataclass
class RecordedBench:
    """The trials and *readings* of one sentence in place of a testbed, each given out once.

    *kept*: the sentence's trials, those of the runs that its own went on with first. *readings*: None: none go with
    them, as with the trials of a search. ``differences``: where a trial shows something else now than its record says,
    or has other problems.
    """

    plan: Plan
    environment: EnvironmentRecord
    record: RequirementRecord
    kept: Sequence[TrialRecord]
    readings: Sequence[ReadingRecord] | None = ()
    differences: list[str] = field(default_factory=list)
    judged: int = 0
    _asked: int = 0
    _given: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        # a warm-up is not judged
        judged = [item for item in self.kept if item.trial.number]
        self.trials = [item for item in judged if not item.trial.run]
        self.earlier = [item.trial for item in judged if item.trial.run]
        self.link_bps, self.tolerance = self.record.link_bps, self.record.tolerance
        self.simulated, self.clock_speed = self.record.simulated, self.environment.clock_speed
        if self.simulated and self.clock_speed == 1:
            self.clock_speed = math.nan
        self.interfaces = {int(port): name for port, name in self.environment.interfaces.items()}

    def verdict(self, requirement: Requirement) -> Verdict:
        """Return what the recorded trials say of *requirement*. Raises RecordMismatch where they are not enough."""
        record = self.record
        promise = promised(self, requirement)
        earlier = [self._doubted(trial, promise) for trial in self.earlier]
        # a soak that was ended early has fewer trials than it asks for
        is_whole = record.verdict != Ruling.INCONCLUSIVE.value or len(self.trials) >= record.promise.soak
        return judge(self, requirement, self.compare, earlier, is_whole)

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
        record, trial, shows = self.trials[self.judged], event.trial, event.standing.last
        self.judged += 1
        if shows != record.evidence:
            self.differences.append(f"trial {trial.number} was '{record.evidence}', and is '{shows}' now")
        if trial.problems != record.trial.problems:
            was, is_now = ("; ".join(map(str, item.problems)) or "none" for item in (record.trial, trial))
            self.differences.append(f"trial {trial.number} had as problems: {was}; and has now: {is_now}")

    # -- the bench: see :class:`..session.bench.Bench` --------------------------------------------------------------

    @property
    def power_text(self) -> str:
        """Where the power came from, in words."""
        return PoweredTrials(self.plan.testbed.power, self.plan.platform.watts, _never, _never, sudo=False).text

    @property
    def restarts(self) -> int:
        """How many restarts of the router were noticed where nothing was read for the verdict."""
        known = (problem for part in self.record.known_afterwards for problem in part.problems)
        return sum(problem.fault is Fault.ROUTER for problem in known) if self._given[AFTER] else 0

    @property
    def uncounted(self) -> str:
        """Why the frames that the router itself counts are not known; "": they are."""
        return NOT_READ if self.readings is None else self.plan.uncounted

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
        if self.record.breakdown is not None and self.readings is not None and not self.readings:
            raise TestbedError(self.record.breakdown)

    def measure_of(self, promise: Promise, hear: Listener) -> Measure:
        """Return what gives out the recorded outcomes."""
        return lambda load, seconds: self.outcome(promise)

    def outcome(self, promise: Promise) -> Outcome:
        """Return the next trial's outcome. What was asked for then is no part of the rule, if it proves as much.

        Raises RecordMismatch where it is of less than the load or the time of *promise*, or of much more than the load,
        and TestbedError where the testbed broke down.
        """
        if self._asked >= len(self.trials):
            if self.record.breakdown is not None:
                raise TestbedError(self.record.breakdown)
            raise RecordMismatch(f"a verdict needs more than the {len(self.trials)} recorded trials now")
        record = self.trials[self._asked]
        self._asked += 1
        was, seconds = record.trial.outcome, promise.quantity.trial_seconds(promise)
        fits = ROUNDED <= was.load.pps / promise.load_pps <= (1 + MOST_EXTRA) / ROUNDED
        if not fits or was.duration < seconds * ROUNDED:
            raise RecordMismatch(
                f"trial {record.trial.number} is one of {seconds:g} s at {si(promise.load_pps, 'pps')} now, and the"
                f" recorded one took {was.duration:g} s at {si(was.load.pps, 'pps')}"
            )
        return was

    def read(self, moment: str) -> Telemetry:
        """Return what the next reading at this *moment* came to. Raises as it did.

        Raises TestbedError where none was recorded, because the trial kept the limit then: it has no ledger. Raises
        RecordMismatch where the trials cannot be judged without it.
        """
        if self.readings is None:
            return Telemetry(None, {})
        found = [item.reading for item in self.readings if item.reading.moment == moment]
        if (number := self._given[moment]) >= len(found):
            needed = moment in (BEFORE, AFTER) and not found
            raise (RecordMismatch if needed else TestbedError)(f"no reading of the router was recorded: {moment}")
        self._given[moment] += 1
        reading = found[number]
        if reading.telemetry is None:
            raise (RouterRestarted if reading.restarted else TestbedError)(reading.error)
        return reading.telemetry

    def examine(self, frames: bool) -> None:
        """Nothing more can be looked at."""

    def settle(self) -> None:
        """Nothing lags."""

    def problems(self) -> tuple[str, ...]:
        """Return nothing: the breakdown names them."""
        return ()


def _never(*_: object) -> NoReturn:
    raise TestbedError("nothing is measured in a recorded run")


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
    trials, readings = run.trials_by_number.get(record.number, ()), run.readings_by_number.get(record.number, ())
    bench = RecordedBench(plan, environment, record, trials, readings)
    problems = tuple(contradictions([item.trial for item in trials if item.trial.number], record))
    try:
        verdict = bench.verdict(plan.requirement(record.sentence))
        if record.why is not None:
            verdict = explained(verdict, environment.router_facts, record.why.load)
        verdict = replace(verdict, tries=record.other_tries, begins_at_1=record.begins_at_1)
        message = verdict.message
    except (RecordMismatch, *BREAKDOWN_ERRORS) as error:
        words = str(error) if isinstance(error, RecordMismatch) else in_words(error)
        return RejudgedSentence(record, None, (*problems, words), tuple(bench.differences))
    terms = json.loads(json.dumps(verdict.goal.model_dump(exclude={"goal", "about"})))
    if verdict.trials and terms != json.loads(json.dumps(dict(record.goal_terms))):
        problems = (*problems, f"its record has other terms of goal '{record.goal}' than the kept files")
    notes = list(bench.differences)
    if bench.judged < len(bench.trials):
        count = len(bench.trials)
        notes.append(f"the verdict is reached after {bench.judged} of the {count} recorded trials now")
    if message != record.message:
        notes.append("its message has other words now")
    return RejudgedSentence(record, verdict, problems, tuple(notes))


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
