"""From a sentence to its verdict on an open session: trials until the rule decides, between two readings."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from ..ceilings.headroom import own_part
from ..core.deciding import Decision, Standing, TrialConditions, ask, decide
from ..core.duplicates import SETTLE_SECONDS, copied_frames
from ..core.ledger import Ledger, lost_at_router
from ..core.phrases import rate_figures
from ..core.quantity import Promise, Reason, Requirement
from ..core.rule import Ruling
from ..core.step_down import StepDown
from ..core.telemetry import Telemetry
from ..core.trial import POWER, Fault, Load, Measure, Problem, Trial, counted_trials
from ..core.verdict import Verdict, verdict_of
from ..errors import BREAKDOWN_ERRORS, TestbedError, in_words
from ..methods.deviations import deviations_of_verdict
from ..units import counted
from .afterwards import Bookkeeper, damaged_frames, lost_after_router, lost_neighbours, pauses, ports_of, widened
from .router_watch import Reading, RouterRestarted, RouterWatch
from .session import Session


@dataclass(frozen=True)
class Judge:
    """Judges sentences on *session*. ``on_trial`` gets each trial at once, ``on_telemetry`` each reading with a name.

    ``on_reading`` gets what every reading of the router comes to, ``on_step_down`` each repetition of an overload
    before its trial: with the trials, all that the verdict rests on. ``wait``: for counters that lag, s.
    ``whole_soak``: a soak that can no longer pass, and has not failed, goes on all the same.
    """

    session: Session
    on_trial: Callable[[Trial, Standing], None] = lambda trial, standing: None
    on_telemetry: Callable[[str, Telemetry], None] = lambda name, telemetry: None
    on_reading: Callable[[Reading], None] = lambda reading: None
    on_step_down: Callable[[StepDown], None] = lambda found: None
    wait: Callable[[float], None] = time.sleep
    whole_soak: bool = False

    def judge(self, requirement: Requirement, warm_up: Trial | None = None, earlier: Sequence[Trial] = ()) -> Verdict:
        """Return the verdict on *requirement*. What is known of the testbed afterwards weighs the same trials again.

        The router is also read after each bad trial, for the ledgers. *warm_up*: the trial before, which is not judged.
        *earlier*: trials of the runs that this one goes on with. If they decide, nothing is sent.
        """
        if (verdict := self.decided(requirement, earlier)) is not None:
            return verdict
        watch = self.session.router.watch
        with watch.reporting(self.on_reading):
            verdict = self._judge(requirement, warm_up, earlier, watch)
        return replace(verdict, deviations=deviations_of_verdict(verdict))

    def decided(self, requirement: Requirement, earlier: Sequence[Trial]) -> Verdict | None:
        """Return the verdict on *requirement* that the trials of *earlier* runs have reached; None: it is open."""
        # of a run that was interrupted, probe frames must show first whether lost frames were hidden by copies
        if not earlier or any(_unread(trial) for trial in earlier if trial.run == earlier[-1].run):
            return None
        promise = self.promise(requirement)
        decision = ask(promise, earlier)
        if decision.ruling not in (Ruling.PASS, Ruling.FAIL):
            return None
        verdict = verdict_of(decision, promise, requirement, _figures(promise, earlier))
        return replace(verdict, deviations=deviations_of_verdict(verdict))

    def must_begin_again(self, requirement: Requirement, earlier: Sequence[Trial]) -> bool:
        """Return whether *earlier* trials are of a soak that came to no verdict: it promises all of its time."""
        return bool(earlier) and self.promise(requirement).soak > 0

    def promise(self, requirement: Requirement) -> Promise:
        """Return *requirement* in numbers, on this testbed."""
        session = self.session
        load, goal = session.traffic.load_for(requirement), session.plan.goal
        promise = requirement.promise(goal, load, session.link_bps)
        seconds = promise.quantity.trial_seconds(promise)
        generator = session.generator
        own = own_part(generator.ceilings, generator.headroom, requirement, load.pps, seconds)
        return replace(promise, own=own)

    def measure_of(self, promise: Promise) -> Measure:
        """Return how a trial of *promise* is measured."""
        return promise.quantity.measure(_Instruments(self), promise)

    def _judge(
        self, requirement: Requirement, warm_up: Trial | None, earlier: Sequence[Trial], watch: RouterWatch
    ) -> Verdict:
        try:
            before = watch.read_again()
        except TestbedError as error:
            return self.inconclusive(requirement, f"the router could not be read before the trials: {error}")
        self.on_telemetry("before", before)
        promise, book, trials = self.promise(requirement), self._book(before), list[Trial]()
        restarts = watch.restarts

        def on_trial(trial: Trial, standing: Standing) -> None:
            trials.append(trial)
            self.on_trial(trial, standing)
            book.add_trial(trial, standing)

        def before_trial(is_last: bool) -> None:
            # a PASS rests on frames that were looked at, at its full load; so does all that follows wrong ones
            wrong = any(item.fault is Fault.CHANGED for trial in trials for item in trial.problems)
            self.session.traffic.examines = is_last or wrong

        session = self.session
        conditions = TrialConditions(session.tolerance, session.clock_speed, self.whole_soak, on_trial, before_trial)
        measure = book.reading_after_bad_trials(self.measure_of(promise))
        line_pps = requirement.profile.line_rate_pps(self.session.link_bps)
        try:
            decision = decide(promise, measure, conditions, line_pps, warm_up, earlier)
        except BREAKDOWN_ERRORS as error:
            words = in_words(error)
            words = "; ".join([*(ended for ended in self.session.testbed.problems() if ended not in words), words])
            book.close_without_reading(words)
            reason = f"the testbed broke down after {counted(len(trials), 'trial')}: {words}"
            verdict = self.inconclusive(requirement, reason, (*earlier, *trials))
            verdict = replace(verdict, breakdown=words, promise=promise)
            return replace(verdict, ledgers=tuple(book.ledgers))
        finally:
            session.traffic.examines = False
        after, problems = self._reading_afterwards(watch, trials, book)
        figures: dict[str, float] = {}
        if after is not None and watch.restarts > restarts:
            # a link was down too, so the router was configured again before the next trial
            problems.append(Problem(Fault.ROUTER, "it restarted between two trials, and was configured again"))
        if after is not None:
            problems += self._known_afterwards(promise, requirement, trials, before, after)
        interrupted = next(filter(None, map(_unread, earlier)), "")
        unread, unseen = self.session.plan.uncounted or interrupted, list[Problem]()
        if unread and decision.ruling is Ruling.PASS and (interrupted or any(map(_lost, decision.trials))):
            # the probe frames of each trial show copies, if there are any
            unprobed = any(trial.probes(row) is None for trial in decision.trials for row in trial.outcome.directions)
            unseen += [Problem(Fault.COPIES, f"{unread}, and no probe frames were sent")] if unprobed else []
        ledgers = tuple(book.ledgers)
        decision = self._asked_again(promise, decision, problems, unseen, ledgers)
        figures |= _figures(promise, decision.trials)
        verdict = replace(verdict_of(decision, promise, requirement, figures), ledgers=ledgers)
        if POWER in figures:
            verdict = replace(verdict, reason=verdict.reason.with_details(self.session.power.text))
        if after is None:
            return verdict
        return replace(verdict, router_drops=lost_at_router(before, after, self.session.interfaces.values()))

    def _book(self, before: Telemetry) -> Bookkeeper:
        lags = None if self.session.simulated else lambda: self.wait(SETTLE_SECONDS)
        unread = self.session.plan.uncounted
        return Bookkeeper(
            self.session.router.watch.read_again, before, self.session.interfaces, lags, self.on_telemetry, unread
        )

    def _reading_afterwards(
        self, watch: RouterWatch, trials: Sequence[Trial], book: Bookkeeper
    ) -> tuple[Telemetry | None, list[Problem]]:
        """Return the reading after the last trial, or None and what that means."""
        try:
            after = watch.read_last()
        except RouterRestarted as error:
            book.close_without_reading(str(error))
            return None, [Problem(Fault.ROUTER, str(error))]
        except TestbedError as error:
            book.close_without_reading(f"the router could not be read: {error}")
            problems = [Problem(Fault.ROUTER, f"it could not be read afterwards: {error}")]
            if any(map(_lost, trials)):
                problems.append(Problem(Fault.COPIES, "the router was not read, so whether they did is not known"))
            return None, problems
        self.on_telemetry("after", after)
        book.close(after)
        return after, []

    def _known_afterwards(
        self,
        promise: Promise,
        requirement: Requirement,
        trials: Sequence[Trial],
        before: Telemetry,
        after: Telemetry,
    ) -> list[Problem]:
        """Return what two readings of the router show of the testbed."""
        interfaces = self.session.interfaces
        problems = [
            *lost_neighbours(trials, after, interfaces, requirement.profile),
            *pauses(trials, before, after, interfaces, promise.link_bps),
            *damaged_frames(trials, before, after, interfaces),
        ]
        if not copied_frames(trials, before, after, interfaces):
            return problems
        # counters that lag are read a second time
        self.wait(SETTLE_SECONDS)
        with suppress(TestbedError):
            after = self.session.router.watch.read_again()
        for port, (frames, words) in copied_frames(trials, before, after, interfaces).items():
            directions = tuple(ports for ports in ports_of(trials) if ports[1] == port)
            problems.append(Problem(Fault.COPIES, words, frames, directions))
        return problems

    @staticmethod
    def _asked_again(
        promise: Promise,
        decision: Decision,
        problems: Sequence[Problem],
        unseen: Sequence[Problem],
        ledgers: Sequence[Ledger],
    ) -> Decision:
        """Return *decision*, or what its trials decide with *problems* in those of this run, and those of *ledgers*.

        *unseen*: in those of earlier runs too.
        """
        of_spans = list(lost_after_router(ledgers, promise.own, promise.goal.risk))
        if not promise.quantity.counts_frames or not (problems or unseen or of_spans):
            return decision
        trials = [
            replace(trial, problems=(*trial.problems, *(item for numbers, item in of_spans if trial.number in numbers)))
            for trial in widened(decision.trials, problems)
        ]
        return ask(promise, [replace(trial, problems=(*trial.problems, *unseen)) for trial in trials])

    def inconclusive(self, requirement: Requirement, reason: str, trials: Sequence[Trial] = ()) -> Verdict:
        """Return the verdict INCONCLUSIVE, because of *reason*."""
        goal, link_bps = self.session.plan.goal, self.session.link_bps
        found = Verdict(requirement, goal, Ruling.INCONCLUSIVE, Reason(reason), tuple(trials), link_bps, {})
        return replace(found, promise=requirement.promise(goal, self.session.traffic.load_for(requirement), link_bps))


class _Instruments:
    """The session as a quantity measures with it."""

    def __init__(self, judge: Judge) -> None:
        session = judge.session
        self._judge = judge
        self.measure = session.traffic.measure
        self.clear_runtime = session.router.driver.clear
        self.read_runtime = session.router.watch.read
        self.powered = session.power.of_sentence
        self.clock_speed = session.clock_speed

    def step_down(self, first: Load, seconds: float, second: Load, after: float, every: float) -> StepDown:
        """Measure traffic whose load changes."""
        found = self._judge.session.traffic.step_down(first, seconds, second, after, every)
        self._judge.on_step_down(found)
        return found

    def keep_runtime(self, telemetry: Telemetry) -> None:
        """Keep what the router showed of its runtime."""
        shown = {command: text for command, text in telemetry.raw.items() if "runtime" in command}
        self._judge.on_telemetry("under load", replace(telemetry, raw=shown))


def _figures(promise: Promise, trials: Sequence[Trial]) -> dict[str, float]:
    ended = counted_trials(trials)
    return {**rate_figures(promise, ended), **promise.quantity.named_figures(promise, ended)}


def _lost(trial: Trial) -> bool:
    return trial.lost > 0


def _unread(trial: Trial) -> str:
    """Return why the router was not read after a trial of an earlier run: copies may have hidden what it lost."""
    return next((item.detail for item in trial.problems if item.fault is Fault.ROUTER), "")
