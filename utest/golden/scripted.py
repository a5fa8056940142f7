"""A bench without a testbed: trials as a script has them, and what its router and its generator say of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from types import SimpleNamespace
from typing import Any, TypeVar

from lineproof.ceilings import own_part
from lineproof.core.doubts import OwnPart
from lineproof.core.latency import LatencyCount
from lineproof.core.quantity import Instruments, Promise, Requirement, TrafficWords
from lineproof.core.step_down import StepDown
from lineproof.core.telemetry import Cause, InterfaceCounters, NodeRuntime, Stage, Telemetry
from lineproof.core.trial import DirectionCount, Load, Measure, Outcome, Problem, Tolerance
from lineproof.errors import TestbedError
from lineproof.session.judging import AFTER, Listener
from lineproof.session.router_watch import RouterWatch
from support.ceilings import LINE, ceiling
from support.made_testbeds import goal_named, stepped

V = TypeVar("V")
LINK_BPS = 10e9
INTERFACES = {port: f"eth{port + 1}" for port in range(4)}


@dataclass(frozen=True)
class T:
    """A scripted trial; of tuples the last entry is that of all further directions."""

    lost: tuple[float, ...] = (0,)
    """Frames from 1 on, below it a share of those sent."""
    sent: float = 1.0
    slow: float = 1.0
    faults: tuple[Problem, ...] = ()
    backlog: tuple[int | None, ...] = (0,)
    foreign: tuple[int, ...] = (0,)
    readings: Mapping[str, float] = field(default_factory=dict)
    probes: tuple[LatencyCount, ...] = ()
    cycles: tuple[float, ...] = (200.0,)
    """Per packet, of each of VPP's workers."""
    late: float = 0.0
    """Seconds by which the router answers late while frames flow."""
    covered: float = 0.0
    """Seconds of 'show runtime' beyond those of the trial."""
    overload: tuple[float, float, float] = (0.0, 0.0, 0.2)
    """The arguments of :func:`.stepped`."""
    step: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the counts of an overload."""


_CLEAN = {"goal": "standard", "load_pps": LINE, "trials": 2000, "lossy": 0, "most_lost": 0, "trial_duration": 1.0}
WATCHED: Any = SimpleNamespace(
    entry=lambda *traffic: ceiling(lossless=LINE, watched=_CLEAN), ceiling=lambda entry: OwnPart()
)
"""A generator that carries line rate, and was watched for longer than any goal needs without losing a frame."""


def of_way(values: tuple[V, ...], way: int) -> V:
    """Return that of a direction."""
    return values[min(way, len(values) - 1)]


Script = Callable[[int, Load, float], T]
"""The trial of a number, from 0 on, with its load and seconds."""


class ScriptedBench:
    """A bench whose trials are those of *script*. *more*: what else is not usual.

    Its generator is WATCHED, unless *limits* are others (None: none).
    """

    def __init__(self, requirement: Any, script: Script, **more: Any) -> None:
        self.requirement, self.script, self.more = requirement, script, more
        self.numbers, self.readings, self.trial, self.waited = count(), -1, T(), 0.0
        self.received, self.sent, self.lost = [0] * 4, [0] * 4, 0
        self.limits, self.simulated = more.get("limits", WATCHED), True
        self.clock_speed, self.tolerance, self.interfaces = 1.0, Tolerance(), INTERFACES
        self.why_no_ledger, self.uncounted = "", more.get("uncounted", "")
        router: Any = SimpleNamespace(read=self._counters, neighbours=self._neighbours)
        self.watch = RouterWatch(router, 1.0, tuple)
        self.watch.sides = (None,) * ("neighbours" in more)  # type: ignore[assignment]
        goal, power = goal_named(more.get("goal", "quick")), "measured by a meter"
        self.plan: Any = SimpleNamespace(goal=goal, load_for=self._load_for, power_text=power)
        self.plan.calibrate = "lineproof calibrate"
        self.plan.link_bps, self.plan.line_text = lambda pairs: LINK_BPS, lambda pairs: ""

    def _load_for(self, requirement: Any) -> Load:
        """Return the load of the sentence, by default that of a generator of 1 Mpps."""
        load: Load = requirement.quantity.load(requirement, LINK_BPS, Load(self.more.get("pps", 1e6)))
        return load

    @property
    def restarts(self) -> int:
        return self.watch.restarts

    def own_part(self, traffic: TrafficWords, load_pps: float, seconds: float) -> OwnPart:
        return own_part(self.limits, None, traffic, load_pps, seconds)

    def prepare(self, requirement: Requirement) -> None:
        """Do nothing: there is no warm-up."""

    def examine(self, frames: bool) -> None:
        """Do nothing: there are no frames."""

    def settle(self) -> None:
        """Do nothing: no counter lags."""

    def problems(self) -> tuple[str, ...]:
        ended: tuple[str, ...] = self.more.get("ended", ())
        return ended

    def measure_of(self, promise: Promise, hear: Listener) -> Measure:
        runtime = lambda: None, self.watch.read, lambda telemetry: None
        instruments = Instruments(self.clock_speed, self.measure, self.step_down, *runtime, lambda: self.measure)
        return promise.quantity.measure(instruments, promise)

    def _next(self, load: Load, seconds: float) -> T:
        number = next(self.numbers)
        if number == self.more.get("breaks"):
            raise TestbedError("the generator went away")
        self.trial = self.script(number, load, seconds)
        return self.trial

    def measure(
        self, load: Load, seconds: float, during: Callable[[Callable[[float], None]], None] | None = None
    ) -> Outcome:
        """Send a trial; the router counts its frames."""
        trial, rows, intended = self._next(load, seconds), [], round(load.pps * seconds)
        if during:
            during(self._wait)
        for at in range(self.requirement.directions):
            lost, offered = of_way(trial.lost, at), round(trial.sent * intended)
            gone = round(lost if abs(lost) >= 1 else lost * offered)
            tx, rx = (at, at ^ 1) if self.requirement.bidirectional else (2 * at, 2 * at + 1)
            came = offered - gone
            held: dict[str, Any] = {"backlog": of_way(trial.backlog, at), "foreign": of_way(trial.foreign, at)}
            rows.append(DirectionCount(tx, rx, intended, offered, came, **held))
            self.received[tx] += came if self.more.get("drops") else offered
            self.sent[rx] += offered if self.more.get("behind") else came - self.more.get("copies", 0)
            self.lost += gone
        readings = {**trial.readings, **({"during_ended": self.waited + 0.05 + trial.late} if during else {})}
        probes = trial.probes[: len(rows)]
        return Outcome(load, seconds, seconds * trial.slow, 0.0, tuple(rows), trial.faults, readings, probes)

    def step_down(self, first: Load, seconds: float, second: Load, after: float, every: float) -> StepDown:
        """Send an overload and what follows."""
        trial = self._next(first, seconds + after)
        made = stepped(first, seconds, second, after, every, self.requirement.directions, *trial.overload)
        for row in made.outcome.directions:
            self.received[row.tx_port] += row.offered
            self.sent[row.rx_port] += row.forwarded
        outcome = replace(made.outcome, elapsed=made.outcome.elapsed * trial.slow, problems=trial.faults)
        return replace(made, **{"outcome": outcome, **trial.step})

    def _wait(self, seconds: float) -> None:
        self.waited = seconds

    def read(self, moment: str) -> Telemetry:
        return self.watch.read_last() if moment == AFTER else self.watch.read_again()

    def _neighbours(self, sides: object) -> Any:
        if isinstance(entries := self.more["neighbours"], TestbedError):
            raise entries
        return entries

    def _counters(self) -> Telemetry:
        """Read its counters; from reading ``silent`` on it does not answer."""
        self.readings += 1
        if self.readings >= self.more.get("silent", 99):
            raise TestbedError("no answer")
        causes = (Cause(Stage.ARRIVING, "rx-miss", "eth1", self.lost),) if self.more.get("drops") else ()
        # these rise by as much until each reading
        causes += tuple(replace(cause, count=self.readings * cause.count) for cause in self.more.get("causes", ()))
        counted = self.more.get("counted", 1.0)
        nodes = (
            NodeRuntime(f"vpp_wk_{worker}", name, state, 10_000, 1_000_000, 0, clocks, 100)
            for worker, cycles in enumerate(self.trial.cycles)
            for name, state, clocks in (("dpdk-input", "polling", 50.0), ("ip4-lookup", "active", cycles - 50.0))
        )
        return Telemetry(
            self.more["uptimes"][self.readings] if "uptimes" in self.more else None,
            {
                name: InterfaceCounters(round(counted * self.received[port]), round(counted * self.sent[port]))
                for port, name in INTERFACES.items()
            },
            runtime=tuple(nodes) if self.trial.cycles[0] else (),
            since_clear=self.waited + self.trial.covered,
            causes=causes,
            pauses={name: self.readings * count for name, count in self.more.get("pauses", {}).items()},
        )
