"""Traffic on an open session: streams put on the ports, trials measured, and whether frames arrive at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..counts.live_traffic import LiveTraffic
from ..counts.reachability import APART, check_own_addresses, check_reached
from ..counts.step_down import StepDown
from ..counts.trial import Fault, Load, Outcome, Trial, judge
from ..errors import TestbedError
from ..generators.base import Direction, Generator, Probe, directions_of
from ..sla.requirement import Requirement
from ..testbed.opening import OpenTestbed
from ..traffic.frame_kinds import refuse
from ..traffic.profiles import Profile
from .generator import GeneratorConnection
from .plan import Plan
from .reconnection import Reconnection
from .router import RouterConnection

PROBE_PPS = 1000.0
"""Frames/s each way that must come back before anything is judged."""


@dataclass
class Traffic:
    """What the *generator* of *testbed* sends through the *router*, and what comes back."""

    plan: Plan
    testbed: OpenTestbed
    generator: GeneratorConnection
    router: RouterConnection
    recovery: Reconnection = field(default_factory=Reconnection, repr=False)
    _prepared: tuple[Profile, bool, Probe | None, int] | None = field(default=None, repr=False)
    _link_was_down: bool = False
    _reached: set[tuple[Profile, bool]] = field(default_factory=set, repr=False)

    @property
    def pairs(self) -> int:
        """How many pairs of ports the testbed has."""
        return len(self.testbed.facts.generator.ports) // 2

    def directions(self, bidirectional: bool, pairs: int = 1) -> tuple[Direction, ...]:
        """The directions that a sentence uses, pair by pair."""
        return directions_of(self.testbed.facts.generator.ports, bidirectional, pairs)

    def put(self, profile: Profile, bidirectional: bool, probe: Probe | None = None, *, pairs: int = 1) -> None:
        """Put the profile's streams on the first *pairs* pairs of ports, unless they are there: a sentence begins."""
        self.recovery.before_sentence(self)
        wanted = (profile, bidirectional, probe, pairs)
        if self._prepared == wanted:
            return
        refuse(profile, self.router.lacking)
        limits = self.generator.known_limits
        if limits is not None:
            limits.refuse(profile, probe is not None)
        if probe is not None:
            self._refuse_latency(profile, self.directions(bidirectional, pairs))
        self._prepared = None
        with self.recovery.watching():
            self.generator.driver.prepare(profile, self.directions(bidirectional, pairs), probe)
        if profile.own_addresses:
            self._check_direction_of(profile, bidirectional, pairs)
        self._prepared = wanted

    def put_for(self, requirement: Requirement) -> None:
        """Put a sentence's streams on the ports, with probe frames where it speaks of latency."""
        probe = self.probe_for(requirement)
        self.put(requirement.profile, requirement.bidirectional, probe, pairs=requirement.pairs)

    def forget(self) -> None:
        """No streams are on the ports: they were released, or taken anew."""
        self._prepared = None

    def probe_for(self, requirement: Requirement) -> Probe | None:
        """As many probe frames as the statistic needs in a trial, twice over, but no more than a tenth of the load."""
        if requirement.statistic is None:
            return None
        enough = 2 * requirement.statistic.frames_needed / self.plan.goal.final_trial_duration
        return Probe(min(max(PROBE_PPS, enough), self.load_for(requirement).pps / 10))

    def maximum_load(self, profile: Profile) -> Load:
        """The most that the testbed lets its generator be asked for, per port."""
        return self.plan.maximum_load(profile, self.testbed.facts.link_bps)

    def load_for(self, requirement: Requirement) -> Load:
        """The load that a sentence is judged at, per sending port."""
        return self.plan.load_for(requirement, self.testbed.facts.link_bps)

    # -- trials --------------------------------------------------------------------------------------------------------

    def measure(self, load: Load, duration: float) -> Outcome:
        """One trial; raises TestbedError where a part of the testbed has died, or a link took the router's ways with it."""
        with self.recovery.watching():
            generator = self._alive()
        if self._link_was_down:
            self._restore_after_link()
        with self.recovery.watching():
            outcome = generator.measure(load, duration)
        self._link_was_down = any(problem.fault is Fault.LINK_DOWN for problem in outcome.problems)
        return outcome

    def warm_up(self, requirement: Requirement) -> Trial | None:
        """A first trial that is not judged (caches, frequency scaling). None where the goal has none."""
        seconds = self.plan.warm_up
        if not seconds:
            return None
        outcome = self.measure(self.load_for(requirement), seconds)
        return judge(0, outcome, self.plan.testbed.tolerances(), self.testbed.facts.clock_speed)

    def step_down(self, first: Load, seconds: float, second: Load, after: float, every: float) -> StepDown:
        """Traffic whose load goes down, see :meth:`~linerate.generators.base.Generator.step_down`."""
        with self.recovery.watching():
            return self._alive().step_down(first, seconds, second, after, every)

    def burst(self, frames: int, pps: float) -> Outcome:
        """So many frames from each port, see :meth:`~linerate.generators.base.Generator.burst`."""
        with self.recovery.watching():
            return self._alive().burst(frames, pps)

    def live(self) -> LiveTraffic:
        """Traffic that is steered while it runs, see :meth:`~linerate.generators.base.Generator.live`."""
        return self._alive().live()

    def capture(
        self, profile: Profile, bidirectional: bool, load: Load, limit: int, pairs: int = 1
    ) -> Mapping[int, tuple[bytes, ...]]:
        """A short trial whose received frames are looked at: port -> frames without FCS."""
        self.put(profile, bidirectional, pairs=pairs)
        with self.recovery.watching():
            return self.generator.driver.capture(load, 1.0, limit)

    # -- whether frames arrive -----------------------------------------------------------------------------------------

    def check_reachability(self) -> None:
        """A second of slow traffic each way of every pair, before anything is judged.

        Raises TestbedError where a way carries none. Swapped cables, a wrong next hop or an unconfigured router are the
        testbed's: they must never read as loss.
        """
        profile = self.plan.catalogue.profile(["64b"])
        self.put(profile, bidirectional=True, pairs=self.pairs)
        check_reached(self._slowly(2 * self.pairs, PROBE_PPS, 1.0))

    def _slowly(self, directions: int, pps: float, seconds: float) -> Outcome:
        """Slow traffic: each way another rate, so that frames which arrive elsewhere cannot stand for those missing."""
        with self.recovery.watching():
            return self._alive().reach([pps * (1 + APART * index) for index in range(directions)], seconds)

    def _check_direction_of(self, profile: Profile, bidirectional: bool, pairs: int) -> None:
        """Slow traffic of a profile that brings its own addresses, once. Raises TestbedError where some does not arrive.

        What the router has no way for would read as its loss.
        """
        seen = (profile, bidirectional)
        if self.generator.bypassed or seen in self._reached:
            return
        outcome = self._slowly(len(self.directions(bidirectional, pairs)), PROBE_PPS + 2 * _fixed(profile), 0.5)
        check_own_addresses(profile.name, outcome)
        self._reached.add(seen)

    def _restore_after_link(self) -> None:
        """Routes and neighbours may have gone with an interface that was down: they are put there again, and tried.

        Raises TestbedError where slow traffic of the sentence does not arrive.
        """
        self._link_was_down = False
        if self.generator.bypassed:
            return
        if self.router.connected:
            self.router.configure()
        if self._prepared is None or self.testbed.facts.simulated:
            return
        profile, bidirectional, probe, pairs = self._prepared
        fixed = _fixed(profile) + (probe.pps if probe else 0.0)
        outcome = self._slowly(len(self.directions(bidirectional, pairs)), PROBE_PPS + 2 * fixed, 0.5)
        try:
            check_reached(outcome)
        except TestbedError as error:
            raise TestbedError(f"a link was down in the trial before, and since then: {error}") from error

    def _refuse_latency(self, profile: Profile, directions: tuple[Direction, ...]) -> None:
        """Raise TestbedError where a receiving port measures no latency: its probe frames would be lost ones."""
        receiving = {direction.rx_port for direction in directions}
        for port in self.generator.ports:
            if port.index in receiving and port.measures is not None and "latency" not in port.measures:
                raise TestbedError(
                    f"'{profile.name}' was not sent: TRex says that its port {port.index} (driver {port.driver})"
                    " measures no latency; expected another card, or TRex started with '--software'"
                )

    def reconnect_generator(self) -> None:
        """A new connection in place of one that failed, with no streams yet. Raises TestbedError."""
        self.forget()
        self.generator.reconnect()

    def _alive(self) -> Generator:
        if dead := self.testbed.problems():
            raise TestbedError("; ".join(dead))
        return self.generator.driver


def _fixed(profile: Profile) -> float:
    return profile.program.fixed_pps if profile.program is not None else 0.0
