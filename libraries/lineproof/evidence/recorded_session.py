"""A recorded sentence in place of a testbed: a session whose generator and router answer from the records, in order.

The judge is that of a live run. It knows the world by measurements and readings alone, so that a record of these is all
that it needs. All that a trial was measured with is in its readings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Self, cast

from ..ceilings.cards import choose_card
from ..ceilings.headroom import MeasuredLimits
from ..ceilings.published_limits import PublishedLimits
from ..core.deciding import MOST_EXTRA, Standing
from ..core.quantity import Promise
from ..core.telemetry import Telemetry
from ..core.trial import Fault, Measure, Outcome, Problem, Tolerance, Trial
from ..errors import TestbedError
from ..generators.base import GeneratorPort
from ..generators.site import GeneratorEndpoint
from ..routers.base import Router, Side
from ..session.afterwards import Bookkeeper
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
from .json_fields import read_problems
from .records import KNOWN_AFTERWARDS, EnvironmentRecord, ReadingRecord, RequirementRecord, TrialRecord

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
        known = self._sentence.record.extra.get(KNOWN_AFTERWARDS, ())
        # a restart that was noticed where nothing was read for the verdict
        self.restarts += any(
            problem.fault is Fault.ROUTER for part in known for problem in read_problems(part["problems"])
        )
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
        """As recorded."""
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
        return MeasuredLimits.of(plan.calibration, plan.catalogue, plan.testbed.kind, link_bps, server, simulated, then)

    def know_card(self) -> None:
        """Find the card of the recorded ports."""
        ports = tuple(_port(data) for data in self.environment.ports)
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
        """Return those that were in force; of keys that are new since then, the testbed's."""
        known = {item.name for item in fields(Tolerance)}
        then = {name: value for name, value in self.sentence.record.tolerance.items() if name in known}
        return replace(super().tolerance, **then)


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


def _port(data: object) -> GeneratorPort:
    found = dict(cast(dict[str, object], data))
    measures = cast(list[str] | None, found.pop("measures", None))
    cores = cast(list[int], found.pop("cores", []))
    return replace(
        GeneratorPort(**found),  # type: ignore[arg-type]  # a record's own fields
        measures=None if measures is None else frozenset(measures),
        cores=tuple(cores),
    )
