"""From a sentence to its verdict on an open session: the method that tries it, and the readings of the router."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ..ceilings.headroom import apply_ceilings
from ..ceilings.rare_loss import apply_rare_loss
from ..core.duplicates import SETTLE_SECONDS, duplicates_reason
from ..core.ledger import lost_at_router
from ..core.requirement import ENERGY_UNITS, RUNTIME_UNITS, Quantity, Requirement, Unit
from ..core.step_down import StepDown
from ..core.telemetry import Telemetry
from ..core.trial import Load, Measure, Trial
from ..core.verdict import Ruling, Tally, Verdict
from ..errors import BREAKDOWN_ERRORS, TestbedError, in_words
from ..methods.cost import RuntimeCounters, cost
from ..methods.deviations import deviations_of_verdict
from ..methods.energy import energy
from ..methods.latency import latency
from ..methods.recovery import recovery
from ..methods.saturate import saturate
from ..methods.sequential import TrialConditions
from ..methods.verify import verify
from .bookkeeping import Bookkeeper
from .damaged_loss import damage_text, damaged_since, why_damaged
from .neighbour_loss import lost_beside_unaddressed, why_unaddressed
from .pause_loss import why_paused
from .router_watch import Reading, RouterRestarted, RouterWatch
from .session import Session

PROBED, PROBED_AGAIN = "probe_frames", "probe_frames_again"
"""Figures where loss is forgiven and the router's counts are not read: probe frames that came back, and came twice."""


@dataclass(frozen=True)
class Judge:
    """Judges sentences on *session*. ``on_trial`` gets each trial at once, ``on_telemetry`` each reading with a name.

    ``on_reading`` gets what every reading of the router comes to, ``on_step_down`` each repetition of an overload
    before its trial: with the trials, all that the verdict rests on. ``wait``: for counters that lag, s.
    """

    session: Session
    on_trial: Callable[[Trial, Tally], None] = lambda trial, so_far: None
    on_telemetry: Callable[[str, Telemetry], None] = lambda name, telemetry: None
    on_reading: Callable[[Reading], None] = lambda reading: None
    on_step_down: Callable[[StepDown], None] = lambda found: None
    wait: Callable[[float], None] = time.sleep

    def judge(self, requirement: Requirement) -> Verdict:
        """:meth:`decide` between two readings of the router's counters.

        A router that restarted meanwhile makes the verdict INCONCLUSIVE. If it cannot be read afterwards, a PASS stays;
        a FAIL becomes INCONCLUSIVE, because the router may not have been forwarding at all. The router is also read
        after each bad trial, for the ledgers, which change no verdict.
        """
        watch = self.session.router.watch
        with watch.reporting(self.on_reading):
            verdict = self._judge(requirement, watch)
        return replace(verdict, deviations=deviations_of_verdict(verdict))

    def _judge(self, requirement: Requirement, watch: RouterWatch) -> Verdict:
        try:
            before = watch.read_again()
        except TestbedError as error:
            return self.inconclusive(requirement, f"the router could not be read before the trials: {error}")
        self.on_telemetry("before", before)
        book = self._book(before)
        decided = self.decide(requirement, book)
        verdict = apply_ceilings(decided, *self.session.generator.ceilings)
        verdict = self._with_final_reading(requirement, verdict, before, book)
        found = replace(verdict, ledgers=tuple(book.ledgers), breakdown=decided.breakdown)
        return apply_rare_loss(found, self.session.generator.headroom)

    def _book(self, before: Telemetry) -> Bookkeeper:
        lags = None if self.session.simulated else lambda: self.wait(SETTLE_SECONDS)
        unread = self.session.plan.uncounted
        return Bookkeeper(
            self.session.router.watch.read_again, before, self.session.interfaces, lags, self.on_telemetry, unread
        )

    def _with_final_reading(
        self, requirement: Requirement, verdict: Verdict, before: Telemetry, book: Bookkeeper
    ) -> Verdict:
        """*verdict* after the reading of the router's counters that follows the last trial."""
        watch = self.session.router.watch
        try:
            after = watch.read_last()
        except RouterRestarted as error:
            book.close_without_reading(str(error))
            return self.inconclusive(requirement, str(error), verdict.trials)
        except TestbedError as error:
            book.close_without_reading(f"the router could not be read: {error}")
            reason = f"{verdict.reason}; the router could not be read afterwards: {error}"
            if verdict.ruling is Ruling.FAIL:
                unknown = "whether it restarted is not known; run again"
                return self.inconclusive(requirement, f"{reason}; {unknown}", verdict.trials)
            if _may_hide_duplicates(verdict):
                unknown = "whether frames came twice, which would hide as many lost ones, is not known; run again"
                return self.inconclusive(requirement, f"{reason}; {unknown}", verdict.trials)
            return replace(verdict, reason=reason)
        self.on_telemetry("after", after)
        book.close(after)
        if unaddressed := why_unaddressed(verdict, after, self.session.interfaces):
            return self.inconclusive(requirement, f"{verdict.reason}; {unaddressed}", verdict.trials)
        if beside := lost_beside_unaddressed(verdict, after, self.session.interfaces):
            verdict = replace(verdict, reason=f"{verdict.reason}; {beside}")
        if paused := after.pauses_since(before, self.session.interfaces.values()):
            # the router's card counts them where the generator's does not show them
            rows = ", ".join(f"{name} received {new.received} and sent {new.sent}" for name, new in paused.items())
            reason = f"{verdict.reason}; pause frames: the router's {rows}; switch flow control off at both ends"
            if unknown := why_paused(verdict, paused, self.session.interfaces):
                return self.inconclusive(requirement, f"{reason}; {unknown}", verdict.trials)
            verdict = replace(verdict, reason=reason)
        if damaged := damaged_since(before, after, self.session.interfaces.values()):
            reason = f"{verdict.reason}; {damage_text(damaged)}"
            if unknown := why_damaged(verdict, damaged, self.session.interfaces):
                return self.inconclusive(requirement, f"{reason}; {unknown}", verdict.trials)
            verdict = replace(verdict, reason=reason)
        drops = lost_at_router(before, after, self.session.interfaces.values())
        if _may_hide_duplicates(verdict) or _more_dropped_than_missing(verdict, drops):
            try:
                if self.session.plan.uncounted:
                    verdict, surplus = self._probed_duplicates(verdict)
                else:
                    surplus = self._duplicates(verdict, before, after)
            except TestbedError as error:
                surplus = str(error)
            if surplus:
                return self.inconclusive(requirement, f"{verdict.reason}; {surplus}", verdict.trials)
        return replace(verdict, router_drops=drops)

    def decide(self, requirement: Requirement, book: Bookkeeper) -> Verdict:
        """Run trials until the goal's rule decides. A testbed that breaks down makes the verdict INCONCLUSIVE."""
        seen: list[Trial] = []

        def on_trial(trial: Trial, so_far: Tally) -> None:
            seen.append(trial)
            self.on_trial(trial, so_far)
            book.add_trial(trial, so_far)

        try:
            return self._run_method(requirement, on_trial, book.reading_after_bad_trials)
        except BREAKDOWN_ERRORS as error:
            words = in_words(error)
            words = "; ".join([*(ended for ended in self.session.testbed.problems() if ended not in words), words])
            reason = f"the testbed broke down after {len(seen)} trials: {words}"
            return replace(self.inconclusive(requirement, reason, tuple(seen)), breakdown=words)

    def _run_method(
        self, requirement: Requirement, on_trial: Callable[[Trial, Tally], None], around: Callable[[Measure], Measure]
    ) -> Verdict:
        session, traffic = self.session, self.session.traffic
        measure = around(traffic.measure)
        goal, load = session.plan.goal_for(requirement), traffic.load_for(requirement)
        link_bps = session.link_bps
        conditions = TrialConditions(session.tolerance, session.clock_speed, on_trial)
        match requirement.quantity:
            case Quantity.THROUGHPUT:
                return verify(requirement, load, goal, measure, link_bps, conditions)
            case Quantity.LOSS:
                goal = goal.with_loss_ratio(requirement.threshold.number / 100)
                return verify(requirement, load, goal, measure, link_bps, conditions)
            case Quantity.FORWARDING_RATE:
                return saturate(requirement, load, goal, measure, link_bps, conditions)
            case Quantity.LATENCY | Quantity.DELAY_VARIATION:
                return latency(requirement, load, goal, measure, link_bps, conditions, self._clock_words(requirement))
            case Quantity.RECOVERY:
                return recovery(requirement, load, session.plan.goal, self._step_down, link_bps, conditions, around)
            case Quantity.COST if requirement.threshold.unit in ENERGY_UNITS:
                measure = around(session.power.of_sentence())
                return energy(requirement, load, goal, measure, session.power.text, link_bps, conditions)
            case Quantity.COST | Quantity.GATHERING:
                router = session.router
                runtime = RuntimeCounters(router.driver.clear, router.watch.read, self._keep_runtime)
                return cost(requirement, load, goal, traffic.measure, runtime, link_bps, conditions, around)

    def _step_down(self, first: Load, seconds: float, second: Load, after: float, every: float) -> StepDown:
        found = self.session.traffic.step_down(first, seconds, second, after, every)
        self.on_step_down(found)
        return found

    def inconclusive(self, requirement: Requirement, reason: str, trials: tuple[Trial, ...] = ()) -> Verdict:
        """The verdict INCONCLUSIVE, because of *reason*."""
        goal, link_bps = self.session.plan.goal_for(requirement), self.session.link_bps
        return Verdict(requirement, goal, Ruling.INCONCLUSIVE, reason, trials, link_bps, {})

    def _clock_words(self, requirement: Requirement) -> str:
        """Which latency is measured, and resolution and bias of the generator's clock, in words."""
        own = "; its own part of the latency is not subtracted"
        if (headroom := self.session.generator.headroom) is not None:
            bypassed = headroom.clock_text(requirement.profile, requirement.bidirectional, requirement.pairs)
            own += f": {bypassed}" if bypassed else ""
        if self.session.generator.simulation_signs:
            return "a modelled latency" + (own if ": " in own else "")
        return (
            "stamped by the generator in software, before a frame's first bit is sent and after its last bit is"
            " received: RFC 1242's latency of a store-and-forward device (3.8), and the frame's time on both links;"
            f" reported in buckets of one digit{own}"
        )

    def _duplicates(self, verdict: Verdict, before: Telemetry, after: Telemetry) -> str | None:
        """Where more frames came back than the router sent, in words. Counters that may lag are read a second time."""
        interfaces = self.session.interfaces
        if not duplicates_reason(verdict.trials, before, after, interfaces):
            return None
        self.wait(SETTLE_SECONDS)
        again = self.session.router.watch.read_again()
        return duplicates_reason(verdict.trials, before, again, interfaces)

    def _probed_duplicates(self, verdict: Verdict) -> tuple[Verdict, str | None]:
        """*verdict* with what probe frames show of copies, and why it proves nothing. The router's counts cannot."""
        requirement, unread = verdict.requirement, self.session.plan.uncounted
        received, again = self.session.traffic.duplicates(requirement, verdict.goal.final_trial_duration)
        verdict = replace(verdict, figures={**verdict.figures, PROBED: float(received), PROBED_AGAIN: float(again)})
        if not received:
            return verdict, f"{unread}, and no probe frame came back that would show whether frames come twice"
        if again:
            return verdict, f"{again} of {received} probe frames came twice, which would hide as many lost ones"
        words = f"none of {received} probe frames in a further trial came twice; {unread}"
        return replace(verdict, reason=f"{verdict.reason}; {words}"), None

    def _keep_runtime(self, telemetry: Telemetry) -> None:
        shown = {command: text for command, text in telemetry.raw.items() if "runtime" in command}
        self.on_telemetry("under load", replace(telemetry, raw=shown))


def _may_hide_duplicates(verdict: Verdict) -> bool:
    """A PASS with lost frames: duplicates may hide further ones.

    Without any loss the generator's own counts show a duplicate. What a packet costs is counted by the router.
    """
    return _is_pass_by_loss(verdict) and any(trial.lost for trial in verdict.trials if trial.blames_router)


def _more_dropped_than_missing(verdict: Verdict, drops: Mapping[str, int]) -> bool:
    """A PASS in which the router counts more *drops* than frames are missing: others may have taken their place."""
    return _is_pass_by_loss(verdict) and sum(drops.values()) > sum(trial.lost for trial in verdict.trials)


def _is_pass_by_loss(verdict: Verdict) -> bool:
    """A PASS that lost frames would change."""
    loss_does_not_matter = (*RUNTIME_UNITS, *ENERGY_UNITS, Unit.SECONDS)
    return verdict.ruling is Ruling.PASS and verdict.requirement.threshold.unit not in loss_does_not_matter
