"""From a sentence to its verdict on an open session: which method, between which readings of the router."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..ceilings.headroom import applied
from ..counts.duplicates import SETTLE, received_too_many
from ..counts.ledger import lost_at_router
from ..counts.telemetry import Telemetry
from ..counts.trial import Measure, Trial
from ..errors import LinerateError, TestbedError
from ..methods.cost import cost
from ..methods.latency import latency
from ..methods.recovery import recovery
from ..methods.saturate import saturate
from ..methods.sequential import Conditions
from ..methods.trials import BREAKDOWNS
from ..methods.verify import verify
from ..routers.efficiency import cycles_per_packet, mean_cost
from ..sla.requirement import Quantity, Requirement
from ..sla.verdict import Ruling, Tally, Verdict
from .bookkeeping import Bookkeeper
from .router_watch import RouterRestarted
from .session import Session


@dataclass(frozen=True)
class Judge:
    """Judges sentences on *session*. ``on_trial`` sees each trial at once, ``on_telemetry`` each reading."""

    session: Session
    on_trial: Callable[[Trial, Tally], None] = lambda trial, so_far: None
    on_telemetry: Callable[[str, Telemetry], None] = lambda name, telemetry: None

    def judge(self, requirement: Requirement) -> Verdict:
        """:meth:`decide` between two readings of the router's counters.

        A router that restarted meanwhile makes it INCONCLUSIVE. One that cannot be read afterwards does not take back
        a PASS; a FAIL it does, for nobody knows then whether it was forwarding at all. It is read after each bad trial
        too, for the ledgers, which change no verdict.
        """
        watch = self.session.router.watch
        try:
            before = watch.read_again()
        except TestbedError as error:
            return self.inconclusive(requirement, f"the router could not be read before the trials: {error}")
        self.on_telemetry("before", before)
        book = self._book(before)
        verdict = self.decide(requirement, book)
        verdict = applied(verdict, *self.session.generator.ceilings)
        verdict = self._compared(requirement, verdict, before, book)
        return replace(verdict, ledgers=tuple(book.ledgers))

    def _book(self, before: Telemetry) -> Bookkeeper:
        def settle() -> None:
            time.sleep(SETTLE)

        lags = None if self.session.simulated else settle
        return Bookkeeper(self.session.router.watch.read_again, before, self._interfaces(), lags, self.on_telemetry)

    def _interfaces(self) -> dict[int, str]:
        """The router's interfaces under test, by the generator's port."""
        facts = self.session.testbed.facts
        return {port: side.interface for port, side in zip(facts.generator.ports, facts.sides, strict=True)}

    def _compared(self, requirement: Requirement, verdict: Verdict, before: Telemetry, book: Bookkeeper) -> Verdict:
        """*verdict* after another look at the router's counters."""
        watch = self.session.router.watch
        try:
            after = watch.read_again()
        except RouterRestarted as error:
            book.give_up(str(error))
            return self.inconclusive(requirement, str(error), verdict.trials)
        except TestbedError as error:
            book.give_up(f"the router could not be read: {error}")
            reason = f"{verdict.reason}; the router could not be read afterwards: {error}"
            if verdict.outcome is Ruling.FAIL:
                return self.inconclusive(
                    requirement, f"{reason}; whether it restarted is not known; run again", verdict.trials
                )
            if _may_hide_duplicates(verdict):
                unknown = "whether frames came twice, which would hide as many lost ones, is not known; run again"
                return self.inconclusive(requirement, f"{reason}; {unknown}", verdict.trials)
            return replace(verdict, reason=reason)
        self.on_telemetry("after", after)
        book.close(after)
        if _may_hide_duplicates(verdict):
            try:
                surplus = self._surplus(verdict, before, after)
            except TestbedError as error:
                surplus = str(error)
            if surplus:
                return self.inconclusive(requirement, f"{verdict.reason}; {surplus}", verdict.trials)
        return replace(verdict, router_drops=lost_at_router(before, after, self._interfaces().values()))

    def decide(self, requirement: Requirement, book: Bookkeeper) -> Verdict:
        """Run trials until the goal's rule decides. A testbed that breaks down makes the verdict INCONCLUSIVE."""
        seen: list[Trial] = []

        def keep(trial: Trial, so_far: Tally) -> None:
            seen.append(trial)
            self.on_trial(trial, so_far)
            book.saw(trial, so_far)

        try:
            return self._method(requirement, keep, book.measuring)
        except BREAKDOWNS as error:
            words = str(error) if isinstance(error, LinerateError) else f"{type(error).__name__}: {error}"
            words = "; ".join([*(dead for dead in self.session.testbed.problems() if dead not in words), words])
            return self.inconclusive(
                requirement, f"the testbed broke down after {len(seen)} trials: {words}", tuple(seen)
            )

    def _method(
        self, requirement: Requirement, keep: Callable[[Trial, Tally], None], around: Callable[[Measure], Measure]
    ) -> Verdict:
        session, traffic = self.session, self.session.traffic
        measure = around(traffic.measure)
        goal, load = session.plan.goal_for(requirement), traffic.load_for(requirement)
        link_bps = session.link_bps
        conditions = Conditions(session.plan.testbed.tolerances(), session.testbed.facts.clock_speed, keep)
        match requirement.quantity:
            case Quantity.THROUGHPUT:
                return verify(requirement, load, goal, measure, link_bps, conditions)
            case Quantity.LOSS:
                goal = goal.allowing(requirement.threshold.number / 100)
                return verify(requirement, load, goal, measure, link_bps, conditions)
            case Quantity.FORWARDING_RATE:
                return saturate(requirement, load, goal, measure, link_bps, conditions)
            case Quantity.LATENCY | Quantity.JITTER:
                return latency(requirement, load, goal, measure, link_bps, conditions, self._clock(requirement))
            case Quantity.RECOVERY:
                return recovery(requirement, load, session.plan.goal, traffic.step_down, link_bps, conditions, around)
            case Quantity.COST:
                clear = session.router.driver.clear
                return cost(requirement, load, goal, measure, clear, self._cycles, link_bps, conditions)

    def inconclusive(self, requirement: Requirement, reason: str, trials: tuple[Trial, ...] = ()) -> Verdict:
        """The verdict that the testbed could not tell, and why."""
        goal, link_bps = self.session.plan.goal_for(requirement), self.session.link_bps
        return Verdict(requirement, goal, Ruling.INCONCLUSIVE, reason, trials, link_bps, {})

    def _clock(self, requirement: Requirement) -> str:
        """Resolution and bias of the generator's clock, in words."""
        own = "; its own part of the latency is not taken off"
        if (headroom := self.session.generator.headroom) is not None:
            bypassed = headroom.clock(requirement.profile, requirement.bidirectional, requirement.pairs)
            own += f": {bypassed}" if bypassed else ""
        if self.session.simulated:
            return "a modelled latency" + (own if ": " in own else "")
        return f"stamped by the generator in software and told in buckets of one digit{own}"

    def _surplus(self, verdict: Verdict, before: Telemetry, after: Telemetry) -> str | None:
        """Where more came back than the router sent, in words. Counters that may lag are read again after SETTLE s."""
        interfaces = self._interfaces()
        if not received_too_many(verdict.trials, before, after, interfaces):
            return None
        time.sleep(SETTLE)
        again = self.session.router.watch.read_again()
        return received_too_many(verdict.trials, before, again, interfaces)

    def _cycles(self, traffic: float) -> float:
        found = mean_cost(cycles_per_packet(self.session.router.watch.read(), traffic))
        if found is None:
            raise TestbedError(
                "VPP's 'show runtime' shows no packets on any thread; is the traffic reaching the router?"
            )
        return found.total


def _may_hide_duplicates(verdict: Verdict) -> bool:
    """A PASS although frames were lost: as many may have come twice as were lost besides.

    Where nothing is missing a frame that came twice shows in the generator's own counts. Cycles are the router's.
    """
    if verdict.outcome is not Ruling.PASS or verdict.requirement.quantity in (Quantity.COST, Quantity.RECOVERY):
        return False
    return any(trial.lost for trial in verdict.trials if trial.blames_router)
