"""One suite's work on one bench: joins bench, generator, router, goal and evidence, and judges sentences.

The keyword libraries call it step by step, so that every step shows in Robot's log; nothing here knows Robot.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from .cross_check import SETTLE, lost_at_router, received_too_many
from .embedded.faults import Fault
from .embedded.shells.control import Control
from .errors import BenchError, ConfigError, LinerateError, SentenceError
from .generators.base import Generator, Way
from .goals import Goal, read_goal
from .methods.cost import cost
from .methods.saturate import saturate
from .methods.sequential import Conditions
from .methods.verify import verify
from .platforms import Platform, Software, read_platform
from .profiles import Catalogue, Profile
from .project import Project
from .requirement import Quantity, Requirement, parse
from .routers import make
from .routers.base import Router, Shell, Telemetry
from .routers.efficiency import cycles_per_packet, mean_cost
from .testbed.bench import Bench, open_bench
from .testbed.settings import Testbed, read_testbed
from .trial import Load, Outcome, Trial, judge
from .verdict import Ruling, Tally, Verdict

PROBE_PPS = 1000.0
"""Frames/s each way that must come back before anything is judged."""

BOOT_TOLERANCE = 5.0
"""Seconds by which the computed moment of booting may move: a router tells its uptime in whole seconds, late."""

BREAKDOWNS = (LinerateError, OSError, LookupError, ValueError, TypeError, ArithmeticError, RuntimeError)
"""What makes a verdict INCONCLUSIVE. Not Exception: Robot stops a run by raising one of its own."""


class RouterRestarted(BenchError):
    """The router booted anew between two readings."""


@dataclass(frozen=True)
class Plan:
    """All that is known before anything starts: read from the files, checked, nothing opened."""

    project: Project
    platform: Platform
    software_name: str
    software: Software
    testbed: Testbed
    goal: Goal
    catalogue: Catalogue

    @classmethod
    def read(cls, project: Project, platform: str, software: str | None, testbed: str, goal: str) -> Plan:
        """Read every file concerned. Raises ConfigError naming file, line and remedy."""
        box = read_platform(project.platforms, platform)
        name = software or next(iter(box.software))
        if name not in box.software:
            raise ConfigError(
                f"platform '{platform}' has no software '{name}'; known: {', '.join(box.software)}",
                project.platforms / f"{platform}.yaml",
            )
        return cls(
            project,
            box,
            name,
            box.software[name],
            read_testbed(project.testbeds, testbed),
            read_goal(project.goals, goal),
            Catalogue.read(project.profiles),
        )

    def requirement(self, sentence: str) -> Requirement:
        """The sentence, understood and checked against the platform's ports. Raises SentenceError."""
        found = parse(sentence, self.catalogue)
        found.check(self.platform.link_bps)
        if found.quantity is Quantity.COST and self.software.shell != "vpp":
            raise SentenceError(f"'{sentence}': cycles per packet are read from VPP; {self.software_name} shows none")
        return found


@dataclass
class Session:
    """An open bench. Made by :meth:`start`; everything it holds is given back by :meth:`close`, whatever happened."""

    plan: Plan
    bench: Bench
    generator: Generator | None = None
    router: Router | None = None
    _prepared: tuple[Profile, bool] | None = field(default=None, repr=False)
    _booted: float | None = None
    _restarted: RouterRestarted | None = None
    _versions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def start(cls, plan: Plan) -> Session:
        """Start what the testbed consists of. Raises BenchError."""
        file = plan.project.platforms / f"{plan.platform.platform}.yaml"
        return cls(plan, open_bench(plan.testbed, plan.platform, plan.software_name, platform_file=file))

    @property
    def link_bps(self) -> float:
        """Link speed of the ports under test in bit/s."""
        return self.bench.facts.link_bps

    @property
    def simulated(self) -> bool:
        """Whether anything measured here is a simulation's."""
        return self.bench.facts.simulated

    def connect_generator(self, connect: Callable[[Bench], Generator]) -> None:
        """Take the generator's ports, and check that they are what the platform says."""
        self.generator = connect(self.bench)
        for port in self.generator.ports:
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
        facts = self.bench.facts
        interfaces = tuple(side.interface for side in facts.sides)
        self.router = make(self.plan.software.shell, shell, interfaces, sudo=facts.router.sudo)
        self._versions = self.router.identify()
        return self._versions

    def versions(self) -> dict[str, str]:
        """What generator and router say of themselves, as ``{"generator.server": "v3.08", "router.system": …}``."""
        generator = self.generator.versions if self.generator else {}
        found = {f"generator.{name}": value for name, value in generator.items()}
        return found | {f"router.{name}": value for name, value in self._versions.items()}

    def configuration(self) -> dict[str, object]:
        """How the router stands: its sides as configured or expected, and what else was changed on it."""
        sides = [f"{side.interface}: {side.address}, {side.network} via {side.peer}" for side in self.bench.facts.sides]
        notes = list(self.router.notes) if self.router else []
        return {"prepare": self.plan.testbed.prepare, "sides": sides, "notes": notes}

    def configure_router(self) -> None:
        """Addresses, static neighbours and routes, unless the testbed says that it is configured already."""
        if self.plan.testbed.prepare != "configure":
            return
        ports = {port.index: port for port in self._generator.ports}
        sides = tuple(
            side if side.peer_mac else replace(side, peer_mac=ports[index].mac)
            for side, index in zip(self.bench.facts.sides, self.bench.facts.generator.ports, strict=True)
        )
        self._router.configure(sides)
        self._restarted = None

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

    def ways(self, bidirectional: bool) -> tuple[Way, ...]:
        """The directions that a sentence uses."""
        first, second = self.bench.facts.generator.ports
        forward, backward = Way(first, second), Way(second, first, swapped=True)
        return (forward, backward) if bidirectional else (forward,)

    def put_traffic(self, profile: Profile, bidirectional: bool) -> None:
        """Put the profile's streams on the ports, unless they are there already."""
        if self._prepared == (profile, bidirectional):
            return
        self._prepared = None
        self._generator.prepare(profile, self.ways(bidirectional))
        self._prepared = (profile, bidirectional)

    def maximum_load(self, profile: Profile) -> Load:
        """The most that the testbed lets its generator be asked for, per port."""
        return Load(profile.line_rate_pps(self.link_bps) * self.plan.testbed.maximum_load_percent / 100)

    def load_for(self, requirement: Requirement) -> Load:
        """The load that a sentence is judged at, per sending port."""
        if requirement.quantity is Quantity.THROUGHPUT:
            return requirement.threshold_load(self.link_bps)
        return requirement.named_load(self.link_bps) or self.maximum_load(requirement.profile)

    def measure(self, load: Load, duration: float) -> Outcome:
        """One trial; raises BenchError where a part of the bench has died."""
        dead = self.bench.problems()
        if dead:
            raise BenchError("; ".join(dead))
        return self._generator.measure(load, duration)

    def warm_up(self, requirement: Requirement) -> Trial | None:
        """A first trial that is not judged (caches, frequency scaling). None where the goal has none."""
        given = self.plan.testbed.warm_up
        seconds = self.plan.goal.warm_up if given is None else given
        if not seconds:
            return None
        outcome = self.measure(self.load_for(requirement), seconds)
        return judge(0, outcome, self.plan.testbed.tolerances(), self.bench.facts.clock_speed)

    def decide(self, requirement: Requirement, on_trial: Callable[[Trial, Tally], None]) -> Verdict:
        """Run trials until the goal's rule decides. A bench that breaks down makes the verdict INCONCLUSIVE."""
        seen: list[Trial] = []

        def keep(trial: Trial, so_far: Tally) -> None:
            seen.append(trial)
            on_trial(trial, so_far)

        goal, load = self.plan.goal, self.load_for(requirement)
        conditions = Conditions(self.plan.testbed.tolerances(), self.bench.facts.clock_speed, keep)
        try:
            if requirement.quantity is Quantity.FORWARDING_RATE:
                return saturate(requirement, load, goal, self.measure, self.link_bps, conditions)
            if requirement.quantity is Quantity.COST:
                return cost(
                    requirement,
                    load,
                    goal,
                    self.measure,
                    self._router.clear,
                    self._cycles,
                    self.link_bps,
                    conditions,
                )
            if requirement.quantity is Quantity.LOSS:
                goal = goal.allowing(requirement.threshold.number / 100)
            return verify(requirement, load, goal, self.measure, self.link_bps, conditions)
        except BREAKDOWNS as error:
            words = str(error) if isinstance(error, LinerateError) else f"{type(error).__name__}: {error}"
            words = "; ".join([*(dead for dead in self.bench.problems() if dead not in words), words])
            return self.inconclusive(
                requirement, f"the bench broke down after {len(seen)} trials: {words}", tuple(seen)
            )

    def judge(
        self,
        requirement: Requirement,
        on_trial: Callable[[Trial, Tally], None],
        on_telemetry: Callable[[str, Telemetry], None],
    ) -> Verdict:
        """:meth:`decide` between two readings of the router's counters.

        A router that restarted meanwhile makes it INCONCLUSIVE. One that cannot be read afterwards does not take back
        a PASS; a FAIL it does, for nobody knows then whether it was forwarding at all.
        """
        try:
            before = self._read_again()
        except BenchError as error:
            return self.inconclusive(requirement, f"the router could not be read before the trials: {error}")
        on_telemetry("before", before)
        verdict = self.decide(requirement, on_trial)
        try:
            after = self._read_again()
        except RouterRestarted as error:
            return self.inconclusive(requirement, str(error), verdict.trials)
        except BenchError as error:
            reason = f"{verdict.reason}; the router could not be read afterwards: {error}"
            if verdict.outcome is Ruling.FAIL:
                return self.inconclusive(
                    requirement, f"{reason}; whether it restarted is not known; run again", verdict.trials
                )
            return replace(verdict, reason=reason)
        on_telemetry("after", after)
        if verdict.outcome is Ruling.PASS and requirement.quantity is Quantity.FORWARDING_RATE:
            try:
                surplus = self._surplus(verdict, before, after)
            except BenchError as error:
                surplus = str(error)
            if surplus:
                return self.inconclusive(requirement, f"{verdict.reason}; {surplus}", verdict.trials)
        interfaces = {side.interface for side in self.bench.facts.sides}
        return verdict.with_router(lost_at_router(before, after, interfaces))

    def inconclusive(self, requirement: Requirement, reason: str, trials: tuple[Trial, ...] = ()) -> Verdict:
        """The verdict that the bench could not tell, and why."""
        return Verdict(requirement, self.plan.goal, Ruling.INCONCLUSIVE, reason, trials, self.link_bps, {})

    def check_reachability(self) -> None:
        """A second of slow traffic each way, before anything is judged. Raises BenchError where a way carries none.

        Swapped cables, a wrong next hop or an unconfigured router are the bench's: they must never read as loss.
        """
        profile = self.plan.catalogue.profile(["64b"])
        self.put_traffic(profile, bidirectional=True)
        outcome = self.measure(Load(PROBE_PPS), 1.0)
        for way in outcome.directions:
            if not way.offered:
                raise BenchError(f"the generator's port {way.tx_port} sends nothing; look at the TRex server's console")
            if not way.forwarded:
                raise BenchError(
                    f"none of {way.offered} frames sent from the generator's port {way.tx_port} came back at port"
                    f" {way.rx_port}; check the cables, the router's addresses, routes and neighbours, and the"
                    f" destination MAC of TRex's port"
                )

    def capture(self, profile: Profile, bidirectional: bool, load: Load, limit: int) -> Mapping[int, tuple[bytes, ...]]:
        """A short trial whose received frames are looked at: port -> frames without FCS."""
        self.put_traffic(profile, bidirectional)
        return self._generator.capture(load, 1.0, limit)

    # -- the router ----------------------------------------------------------------------------------------------------

    def _surplus(self, verdict: Verdict, before: Telemetry, after: Telemetry) -> str | None:
        """Where more came back than the router sent, in words. Counters that may lag are read again after SETTLE s."""
        facts = self.bench.facts
        interfaces = {port: side.interface for port, side in zip(facts.generator.ports, facts.sides, strict=True)}
        if not received_too_many(verdict.trials, before, after, interfaces):
            return None
        time.sleep(SETTLE)
        return received_too_many(verdict.trials, before, self._read_again(), interfaces)

    def _read_again(self) -> Telemetry:
        """:meth:`read_router`, a second time where the first failed: a link that broke may be there again."""
        try:
            return self.read_router()
        except BenchError:
            if self._restarted or self.bench.problems():
                raise
        return self.read_router()

    def read_router(self) -> Telemetry:
        """Counters now. Raises RouterRestarted where the moment it booted is not what it was, BenchError else.

        It is raised ever after, until the router is configured anew: what it had been told may be gone.
        """
        if self._restarted is not None:
            raise self._restarted
        telemetry = self._router.read()
        speed = self.bench.facts.clock_speed
        booted = time.monotonic() * speed - telemetry.uptime
        before, self._booted = self._booted, booted
        if before is not None and booted - before > BOOT_TOLERANCE * speed:
            self._restarted = RouterRestarted(
                f"the router restarted: it says that it is up for {telemetry.uptime:.0f} s; look at its console and run"
                " again"
            )
            raise self._restarted
        return telemetry

    def _cycles(self, traffic: float) -> float:
        found = mean_cost(cycles_per_packet(self.read_router(), traffic))
        if found is None:
            raise BenchError("VPP's 'show runtime' shows no packets on any thread; is the traffic reaching the router?")
        return found.total

    @property
    def _generator(self) -> Generator:
        if self.generator is None:
            raise BenchError("no generator is connected; call 'Connect Generator' first")
        return self.generator

    @property
    def _router(self) -> Router:
        if self.router is None:
            raise BenchError("no router is connected; call 'Connect Router' first")
        return self.router

    def release_generator(self) -> None:
        """Stop traffic and release the ports. Harmless when repeated."""
        generator, self.generator = self.generator, None
        self._prepared = None
        if generator is not None:
            generator.close()

    def restore_router(self) -> None:
        """Undo the configuration. Harmless when repeated."""
        router, self.router = self.router, None
        if router is not None:
            router.restore()

    def close(self) -> None:
        """Give back everything, in order, even where a step fails."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.bench.close)
            stack.callback(self.restore_router)
            stack.callback(self.release_generator)
