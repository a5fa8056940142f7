"""Judges a recorded run again: from its folder alone, by the judge of today."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..core.doubts import with_doubts
from ..core.quantity import Promise, Requirement
from ..core.rule import Ruling
from ..core.trial import Trial, read_trial
from ..core.verdict import Verdict
from ..errors import BREAKDOWN_ERRORS, ConfigError, in_words
from ..session.explaining import explained
from ..session.plan import Plan
from .inputs import read_kept_plan
from .recorded_session import RecordedJudge, RecordedSentence, RecordedSession, RecordMismatch
from .recorder import ROUTER_FACTS
from .records import BEGINS_AT_1, INTERRUPTED, EnvironmentRecord, RequirementRecord
from .run import RecordedRun, read_run
from .run_files import REQUIREMENTS, TRIALS
from .under_load_record import WHY, recorded_facts, recorded_load

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
    trials = [item for item in run.trials if item.requirement == record.number and item.trial.number]
    readings = [item for item in run.readings if item.requirement == record.number]
    problems = tuple(contradictions([item.trial for item in trials], record))
    sentence = RecordedSentence.of(record, trials, readings)
    try:
        verdict = judged(RecordedSession(plan, environment, sentence), plan.requirement(record.sentence))
        if WHY in record.extra:
            # a record without it was written before there were explanations, or was never explained
            facts = recorded_facts(environment.extra.get(ROUTER_FACTS))
            verdict = explained(verdict, facts, recorded_load(record.extra))
        verdict = replace(verdict, tries=record.tries[:-1], begins_at_1=str(record.extra.get(BEGINS_AT_1, "")))
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
        sentence.record.verdict != Ruling.INCONCLUSIVE.value or len(sentence.trials) >= sentence.record.demand.soak
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
