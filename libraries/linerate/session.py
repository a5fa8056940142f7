"""One suite's work on one bench: joins bench, generator and router, and measures trials on them.

The keyword libraries call it step by step, so that every step shows in Robot's log; nothing here knows Robot.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from .cards import choose
from .control import Control
from .errors import BenchError
from .faults import Fault, fault_of
from .generators.base import Generator, Probe, Way, ways_of
from .headroom import Ceilings, Headroom
from .known_limits import KnownLimits
from .live import LiveTraffic
from .plan import Plan
from .profiles import Profile
from .reach import APART, check_own_addresses, check_reached
from .recovery import Recovery
from .requirement import Requirement
from .router_watch import RouterWatch
from .routers import make
from .routers.base import Router, Shell
from .routers.frames import Frames, refuse
from .step_down import StepDown
from .testbed.bench import Bench, open_bench
from .testbed.settings import NetnsSettings
from .trial import Fault as TrialFault
from .trial import Load, Outcome, Trial, judge

RESET_LIMIT = 10.0
"""Seconds that a command which restarts the router may take to say so."""

LINK_LIMIT, LINK_LOOK = 15.0, 0.1
"""Seconds that links may take to come up once the router's interfaces are (IEEE 802.3 28: some seconds of negotiation),
and between two looks at them."""

PROBE_PPS = 1000.0
"""Frames/s each way that must come back before anything is judged."""


@dataclass
class Session:
    """An open bench. Made by :meth:`start`; everything it holds is given back by :meth:`close`, whatever happened."""

    plan: Plan
    bench: Bench
    generator: Generator | None = None
    router: Router | None = None
    recovery: Recovery = field(default_factory=Recovery, repr=False)
    _prepared: tuple[Profile, bool, Probe | None, int] | None = field(default=None, repr=False)
    _watch: RouterWatch | None = None
    _shell: Shell | None = field(default=None, repr=False)
    bypassed: bool = False
    """Whether there is no router between the generator's ports."""

    known_limits: KnownLimits | None = None
    """What is published of the generator's card; None before it is connected."""
    _versions: Mapping[str, str] = field(default_factory=dict)
    _link_was_down: bool = False
    _reached: set[tuple[Profile, bool]] = field(default_factory=set, repr=False)

    @classmethod
    def start(cls, plan: Plan, bypass: bool = False) -> Session:
        """Start what the testbed consists of; *bypass*: without its router. Raises BenchError."""
        file = plan.project.platforms / f"{plan.platform.platform}.yaml"
        bench = open_bench(plan.testbed, plan.platform, plan.software_name, platform_file=file, bypass=bypass)
        return cls(plan, bench, bypassed=bypass)

    @property
    def link_bps(self) -> float:
        """Link speed of the ports under test in bit/s."""
        return self.bench.facts.link_bps

    @property
    def simulated(self) -> bool:
        """Whether anything measured here is a simulation's."""
        return self.bench.facts.simulated

    def connect_generator(self, connect: Callable[[Bench], Generator]) -> None:
        """Take the generator's ports, and check that they are what the platform says.

        A router that is yet to be configured may have its interfaces down, and with them the generator's links: these
        are looked at once it is.
        """
        self.generator = connect(self.bench)
        self._check_ports(linked=self.bypassed or self.plan.testbed.prepare == "none")

    def reconnect_generator(self) -> None:
        """A new connection in place of one that failed, with no streams yet. Raises BenchError."""
        self._prepared = None
        self._generator.reconnect()
        self._check_ports()

    def _await_links(self) -> None:
        """Wait until every port of the generator has its link, LINK_LIMIT s at most. Raises BenchError."""
        limit = time.monotonic() + LINK_LIMIT
        while not all(port.link_up for port in self._generator.ports) and time.monotonic() < limit:
            time.sleep(LINK_LOOK)
        self._check_ports()

    def _check_ports(self, linked: bool = True) -> None:
        ports, server = self._generator.ports, self._generator.versions.get("server")
        choice = choose(self.plan.cards, ports, self.plan.card)
        self.known_limits = KnownLimits.of(choice, ports, self.link_bps, server)
        for port in ports:
            if not port.link_up and not linked:
                continue
            if not port.link_up:
                raise BenchError(
                    f"the generator's port {port.index} has no link; check the cable and the router's port"
                )
            if port.speed_bps and abs(port.speed_bps - self.link_bps) > 0.01 * self.link_bps:
                raise BenchError(
                    f"the generator's port {port.index} runs at {port.speed_bps / 1e9:g} Gbit/s, the platform"
                    f" '{self.plan.platform.platform}' says {self.link_bps / 1e9:g}; mend 'port_speed' or the cabling"
                )

    def connect_router(self, shell: Shell) -> Mapping[str, str]:
        """Speak to the router through *shell*; returns what it says it is."""
        facts, self._shell = self.bench.facts, shell
        interfaces = tuple(side.interface for side in facts.sides)
        self.router = make(self.plan.software.shell, shell, interfaces, sudo=facts.router.sudo)
        self._watch = RouterWatch(self.router, facts.clock_speed, self.bench.problems)
        self._versions = self.router.identify()
        return self._versions

    def versions(self) -> dict[str, str]:
        """What generator and router say of themselves, as ``{"generator.server": "v3.08", "router.system": …}``."""
        generator = self.generator.versions if self.generator else {}
        found = {f"generator.{name}": value for name, value in generator.items()}
        return found | {f"router.{name}": value for name, value in self._versions.items()}

    @property
    def headroom(self) -> Headroom | None:
        """What the generator is known to carry by itself; None where nobody has calibrated it."""
        plan = self.plan
        if plan.calibration is None:
            return None
        server = self.generator.versions.get("server") if self.generator else None
        return Headroom.of(plan.calibration, plan.catalogue, plan.testbed.kind, self.link_bps, server)

    @property
    def ceilings(self) -> tuple[Ceilings, ...]:
        """Who knows of the generator's own ceilings, what was measured before what is published."""
        return tuple(source for source in (self.headroom, self.known_limits) if source is not None)

    def configuration(self) -> dict[str, object]:
        """How the router stands: its sides as configured or expected, and what else was changed on it."""
        sides = [f"{side.interface}: {side.address}, {side.network} via {side.peer}" for side in self.bench.facts.sides]
        notes = list(self.router.notes) if self.router else []
        return {"prepare": self.plan.testbed.prepare, "sides": sides, "notes": notes}

    def configure_router(self) -> None:
        """Addresses, static neighbours and routes, unless the testbed says that it is configured already.

        Raises BenchError, also where a link does not come up then.
        """
        self.configuring()()
        if self.plan.testbed.prepare == "configure":
            self.router_watch.configured()
            self._await_links()

    def configuring(self) -> Callable[[], None]:
        """What :meth:`configure_router` does on the router, to be done when it is there; the generator is asked now."""
        if self.plan.testbed.prepare != "configure":
            return lambda: None
        ports, router = {port.index: port for port in self._generator.ports}, self.router_connected
        sides = tuple(
            side if side.peer_mac else replace(side, peer_mac=ports[index].mac)
            for side, index in zip(self.bench.facts.sides, self.bench.facts.generator.ports, strict=True)
        )

        def configure() -> None:
            router.configure(sides)
            if self.plan.testbed.set_up and not self.simulated:
                router.set_up(sides, Frames.of(self.plan.catalogue, self.plan.testbed.set_up))

        return configure

    def check_resettable(self) -> None:
        """Raise BenchError where the router is not one that can be restarted."""
        if isinstance(self.plan.testbed, NetnsSettings):
            raise BenchError(
                f"the router of testbed '{self.plan.testbed.testbed}' is this machine's kernel, which is not reset;"
                " right would be a testbed of hardware, or a simulated one"
            )

    def reset_router(self, command: str = "") -> None:
        """Restart the router by its own *command*, as ``sudo reboot``; a simulated one without. Raises BenchError."""
        self.check_resettable()
        if not command:
            if self.bench.facts.control is None:
                raise BenchError("a reset needs the command that restarts the router; right would be 'sudo reboot'")
            self.cause_fault(fault_of("router reboot", start=0))
            return
        if self._shell is None:
            raise BenchError("no router is connected; call 'Connect Router' first")
        try:
            result = self._shell(command, RESET_LIMIT)
        except BenchError:
            return  # it went down under the command
        if result.status != 0:
            raise BenchError(f"'{command}' ended with status {result.status} on the router: {result.stderr.strip()}")

    def cause_fault(self, fault: Fault) -> None:
        """Let something go wrong on the bench. Raises BenchError where it is not a simulated one."""
        if self.bench.facts.control is None:
            raise BenchError(
                f"'{fault.kind}' can be caused on a simulated bench only, and '{self.plan.testbed.testbed}' is none"
            )
        control = Control(*self.bench.facts.control)
        try:
            control.cause(fault)
        finally:
            control.close()

    # -- traffic -------------------------------------------------------------------------------------------------------

    @property
    def pairs(self) -> int:
        """How many pairs of ports the bench has."""
        return len(self.bench.facts.generator.ports) // 2

    def ways(self, bidirectional: bool, pairs: int = 1) -> tuple[Way, ...]:
        """The directions that a sentence uses, pair by pair."""
        return ways_of(self.bench.facts.generator.ports, bidirectional, pairs)

    def put_traffic(self, profile: Profile, bidirectional: bool, probe: Probe | None = None, *, pairs: int = 1) -> None:
        """Put the profile's streams on the first *pairs* pairs of ports, unless they are there: a sentence begins."""
        self.recovery.before_sentence(self)
        wanted = (profile, bidirectional, probe, pairs)
        if self._prepared == wanted:
            return
        refuse(profile, self.router.lacking if self.router else {})
        if self.known_limits is not None:
            self.known_limits.refuse(profile, probe is not None)
        if probe is not None:
            self._refuse_latency(profile, self.ways(bidirectional, pairs))
        self._prepared = None
        with self.recovery.watching():
            self._generator.prepare(profile, self.ways(bidirectional, pairs), probe)
        if profile.own_addresses:
            self._check_way_of(profile, bidirectional, pairs)
        self._prepared = wanted

    def _refuse_latency(self, profile: Profile, ways: tuple[Way, ...]) -> None:
        """Raise BenchError where a receiving port measures no latency: its probe frames would be lost ones."""
        receiving = {way.rx_port for way in ways}
        for port in self._generator.ports:
            if port.index in receiving and port.measures is not None and "latency" not in port.measures:
                raise BenchError(
                    f"'{profile.name}' was not sent: TRex says that its port {port.index} (driver {port.driver})"
                    " measures no latency; right would be another card, or TRex started with '--software'"
                )

    def put_traffic_of(self, requirement: Requirement) -> None:
        """Put a sentence's streams on the ports, with probe frames where it speaks of latency."""
        probe = self.probe_for(requirement)
        self.put_traffic(requirement.profile, requirement.bidirectional, probe, pairs=requirement.pairs)

    def probe_for(self, requirement: Requirement) -> Probe | None:
        """As many probe frames as the statistic needs in a trial, twice over, but no more than a tenth of the load."""
        if requirement.statistic is None:
            return None
        enough = 2 * requirement.statistic.frames_needed / self.plan.goal.final_trial_duration
        return Probe(min(max(PROBE_PPS, enough), self.load_for(requirement).pps / 10))

    def maximum_load(self, profile: Profile) -> Load:
        """The most that the testbed lets its generator be asked for, per port."""
        return self.plan.maximum_load(profile, self.link_bps)

    def load_for(self, requirement: Requirement) -> Load:
        """The load that a sentence is judged at, per sending port."""
        return self.plan.load_for(requirement, self.link_bps)

    def measure(self, load: Load, duration: float) -> Outcome:
        """One trial; raises BenchError where a part of the bench has died, or a link took the router's ways with it."""
        with self.recovery.watching():
            generator = self._alive()
        if self._link_was_down:
            self._mend_after_link()
        with self.recovery.watching():
            outcome = generator.measure(load, duration)
        self._link_was_down = any(problem.fault is TrialFault.LINK_DOWN for problem in outcome.problems)
        return outcome

    def _mend_after_link(self) -> None:
        """Routes and neighbours may have gone with an interface that was down: they are put there again, and tried.

        Raises BenchError where slow traffic of the sentence does not arrive.
        """
        self._link_was_down = False
        if self.router is not None and not self.bypassed:
            self.configure_router()
        if self._prepared is None or self.bypassed or self.simulated:
            return
        profile, bidirectional, probe, pairs = self._prepared
        fixed = (profile.program.fixed_pps if profile.program is not None else 0.0) + (probe.pps if probe else 0.0)
        ways = len(self.ways(bidirectional, pairs))
        with self.recovery.watching():
            outcome = self._alive().reach([(PROBE_PPS + 2 * fixed) * (1 + APART * n) for n in range(ways)], 0.5)
        try:
            check_reached(outcome)
        except BenchError as error:
            raise BenchError(f"a link was down in the trial before, and since then: {error}") from error

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

    def _alive(self) -> Generator:
        if dead := self.bench.problems():
            raise BenchError("; ".join(dead))
        return self._generator

    def warm_up(self, requirement: Requirement) -> Trial | None:
        """A first trial that is not judged (caches, frequency scaling). None where the goal has none."""
        seconds = self.plan.warm_up
        if not seconds:
            return None
        outcome = self.measure(self.load_for(requirement), seconds)
        return judge(0, outcome, self.plan.testbed.tolerances(), self.bench.facts.clock_speed)

    def check_reachability(self) -> None:
        """A second of slow traffic each way of every pair, before anything is judged.

        Raises BenchError where a way carries none. Swapped cables, a wrong next hop or an unconfigured router are the
        bench's: they must never read as loss.
        """
        profile = self.plan.catalogue.profile(["64b"])
        self.put_traffic(profile, bidirectional=True, pairs=self.pairs)
        # of each way another number, so that frames which arrive elsewhere cannot stand for those that should be there
        rates = [PROBE_PPS * (1 + APART * index) for index in range(2 * self.pairs)]
        with self.recovery.watching():
            outcome = self._alive().reach(rates, 1.0)
        check_reached(outcome)

    def _check_way_of(self, profile: Profile, bidirectional: bool, pairs: int) -> None:
        """Slow traffic of a profile that brings its own addresses, once. Raises BenchError where some does not arrive.

        What the router has no way for would read as its loss.
        """
        seen = (profile, bidirectional)
        if self.bypassed or seen in self._reached:
            return
        fixed = profile.program.fixed_pps if profile.program is not None else 0.0
        rates = [(PROBE_PPS + 2 * fixed) * (1 + APART * index) for index in range(len(self.ways(bidirectional, pairs)))]
        with self.recovery.watching():
            outcome = self._alive().reach(rates, 0.5)
        check_own_addresses(profile.name, outcome)
        self._reached.add(seen)

    def capture(
        self, profile: Profile, bidirectional: bool, load: Load, limit: int, pairs: int = 1
    ) -> Mapping[int, tuple[bytes, ...]]:
        """A short trial whose received frames are looked at: port -> frames without FCS."""
        self.put_traffic(profile, bidirectional, pairs=pairs)
        with self.recovery.watching():
            return self._generator.capture(load, 1.0, limit)

    # -- the router ----------------------------------------------------------------------------------------------------

    @property
    def _generator(self) -> Generator:
        if self.generator is None:
            raise BenchError("no generator is connected; call 'Connect Generator' first")
        return self.generator

    @property
    def router_connected(self) -> Router:
        """The router. Raises BenchError where none is connected."""
        if self.router is None:
            raise BenchError("no router is connected; call 'Connect Router' first")
        return self.router

    @property
    def router_watch(self) -> RouterWatch:
        """The router's readings. Raises BenchError where none is connected."""
        if self._watch is None:
            raise BenchError("no router is connected; call 'Connect Router' first")
        return self._watch

    def release_generator(self) -> None:
        """Stop traffic and release the ports. Harmless when repeated."""
        generator, self.generator = self.generator, None
        self._prepared = None
        if generator is not None:
            generator.close()

    def restore_router(self) -> None:
        """Undo the configuration. Harmless when repeated. Raises BenchError where something stays on the router."""
        router, watch, self.router, self._watch = self.router, self._watch, None, None
        if router is None:
            return
        try:
            router.restore()
        except BenchError:
            # what is not there to be undone went with the restart
            if watch is None or not watch.restarted:
                raise

    def close(self) -> None:
        """Give back everything, in order, even where a step fails."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.bench.close)
            stack.callback(self.restore_router)
            stack.callback(self.release_generator)
