"""A router that is a function: a capacity, a buffer, and problems of the testbed; and a session around it."""

import math
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

from lineproof.core.doubts import OwnPart
from lineproof.core.goal import Goal
from lineproof.core.latency import LatencyCount
from lineproof.core.quantity import Instruments, Promise, TrafficWords
from lineproof.core.step_down import StepDown
from lineproof.core.trial import DirectionCount, During, Fault, Load, Measure, Outcome, Problem, Tolerance, Trial
from lineproof.errors import TestbedError
from lineproof.generators.base import Probe
from lineproof.procedures.procedure import ProcedureRun
from lineproof.procedures.search import CapacityBounds, SearchResult
from lineproof.session.router_watch import RouterRestarted
from lineproof.session.session import Session
from support.catalogue import CATALOGUE
from support.made_testbeds import stepped

LINE = 14_880_952.0


LINK_DOWN = Problem(Fault.LINK_DOWN, "port 0")


@dataclass
class PureRouter:
    """``capacity``: frames/s of each direction; ``buffer``: frames that wait and come in the end; ``counts_held``:
    whether they are known to have waited: so short trials of a router with a deep queue lose nothing.

    ``ceiling``: the most the generator sends; ``spoils``: numbers of the trials (from 0) that ``spoilt_by`` spoils;
    ``breaks``: the number of the trial from which on it is broken; ``burst``: trials that lose a frame at any load;
    ``changed``: frames of each direction that come back as others than were sent.
    """

    capacity: float = 5e6
    buffer: int = 0
    ceiling: float = LINE
    directions: int = 1
    spoils: frozenset[int] = frozenset()
    spoilt_by: Problem = LINK_DOWN
    breaks: int | None = None
    burst: frozenset[int] = frozenset()
    changed: int = 0
    counts_held: bool = False
    asked: list[tuple[float, float]] = field(default_factory=list)

    def __call__(self, load: Load, duration: float) -> Outcome:
        number, problems = self.begin(load.pps, duration)
        counts = []
        for direction in range(self.directions):
            intended = int(load.pps * duration)
            offered = int(min(load.pps, self.ceiling) * duration)
            at_once = min(offered, int(self.capacity * duration))
            held = min(offered - at_once, self.buffer)
            changed = min(self.changed, at_once)
            ends = (direction, 1 - direction, intended, offered, at_once + held - changed - (number in self.burst))
            counts.append(DirectionCount(*ends, backlog=held if self.counts_held else None, changed=changed))
        return Outcome(load, duration, duration, 1_795_000_000.0 + number, tuple(counts), problems)

    def send_burst(self, frames: int) -> Outcome:
        """Send *frames* at line rate: what the router forwards meanwhile and what it buffers comes back."""
        seconds = frames / LINE
        number, problems = self.begin(LINE, seconds)
        carried = min(frames, int(self.buffer / (1 - self.capacity / LINE))) if self.capacity < LINE else frames
        count = DirectionCount(0, 1, frames, frames, carried - (number in self.burst))
        return Outcome(Load(LINE), seconds, seconds, 1_795_000_000.0, (count,), problems)

    def begin(self, pps: float, seconds: float) -> tuple[int, tuple[Problem, ...]]:
        """Return the number of the trial, and its problems. Raises TestbedError once the testbed has broken down."""
        number = len(self.asked)
        self.asked.append((pps, seconds))
        if self.breaks is not None and number >= self.breaks:
            raise TestbedError("the generator went away")
        return number, (self.spoilt_by,) if number in self.spoils else ()


EVERY_TRIAL = frozenset(range(10_000))

ONE_WAY = "64b 1-flow unidirectional"
GOAL = Goal(
    goal="test", bad_share=0.6, good_share=0.12, final_trial_duration=1, duration_sum=2, exceed_ratio=0, about="a test"
)


@dataclass
class PureSession:
    """The part of a session that procedures ask, around a router that is a function. Line rate of 64 bytes is LINE.

    ``most``: the testbed's maximum load as a ratio of line rate; ``lag``: s for which the router loses frames
    after an overload (None: changes of the load break down); ``outage``: s for which it is silent after a reset.
    """

    model: Any
    goal: Goal = GOAL
    most: float = 1.0
    warm_up: float = 0.0
    own: OwnPart = field(default_factory=OwnPart)
    lag: float | None = None
    outage: float = 0.0
    silent: float = field(default=0.0, init=False)
    restarted: bool = False
    prepared: list[tuple[str, bool, Probe | None]] = field(default_factory=list)
    simulated, clock_speed, tolerance = True, 1.0, Tolerance()

    def __post_init__(self) -> None:
        self.plan: Any = SimpleNamespace(
            goal=self.goal,
            catalogue=CATALOGUE,
            warm_up=self.warm_up,
            testbed=SimpleNamespace(prepare="check"),
            check_pairs=lambda traffic: None,
            check_generator=lambda traffic: None,
            link_bps=lambda pairs: LINE * 672,
            maximum_load=lambda traffic: Load(traffic.profile.line_rate_pps(LINE * 672) * self.most),
            check_measurable=lambda asked: None,
            load_for=lambda requirement: requirement.named_load(LINE * 672),
        )
        self.traffic: Any = SimpleNamespace(
            put=self._put,
            measure=self._measure,
            burst=lambda frames, pps: self.model.send_burst(frames),
            few_probes=lambda *terms: None,
        )
        self.router: Any = SimpleNamespace(
            watch=SimpleNamespace(read_again=self._read, read=lambda: None),
            check_resettable=lambda: None,
            prepare_configuration=lambda: None,
            restart=self._restart,
        )

    def own_part(self, *terms: object) -> OwnPart:
        return self.own

    def examine(self, frames: bool) -> None:
        pass

    def _read(self) -> None:
        if self.restarted:
            raise RouterRestarted("the router restarted")

    def _put(self, traffic: TrafficWords, probe: Probe | None = None) -> None:
        self.prepared.append((traffic.profile.name, traffic.bidirectional, probe))
        if isinstance(self.model, PureRouter):
            self.model.directions = traffic.directions

    def _measure(self, load: Load, duration: float, during: During | None = None) -> Outcome:
        if during is not None:
            during(lambda seconds: None)
        outcome: Outcome = self.model(load, duration)
        if self.silent:
            gone = min(self.silent, duration)
            self.silent -= gone
            rows = (
                replace(row, forwarded=max(0, row.forwarded - round(load.pps * gone))) for row in outcome.directions
            )
            return replace(outcome, directions=tuple(rows))
        if outcome.latency or not self.prepared[-1][2]:
            return outcome
        # 10 and 20 µs, and a hundredth of them 30 µs more
        ways = [(row, 10 * (1 + row.tx_port)) for row in outcome.directions]
        counts = (
            LatencyCount(row.tx_port, row.rx_port, 500, 500, mean, mean + 30.0, mean, {mean: 495, mean + 30: 5})
            for row, mean in ways
        )
        return replace(outcome, latency=tuple(counts))

    def _restart(self, *terms: object) -> None:
        self.silent = self.outage

    def measure_of(self, promise: Promise, hear: object) -> Measure:
        return promise.quantity.measure(cast(Instruments, SimpleNamespace(step_down=self._step_down)), promise)

    def _step_down(self, first: Load, seconds: float, second: Load, after: float, every: float) -> StepDown:
        if self.lag is None:
            raise TestbedError("a link was down")
        found = stepped(first, seconds, second, after, every, 1, self.lag, 0.0, 0.3)
        _, problems = self.model.begin(first.pps, seconds + after)
        return replace(found, outcome=replace(found.outcome, problems=problems))


def run_on(model: Any, deadline: float = math.inf, seen: list[Trial] | None = None, **session: Any) -> ProcedureRun:
    """Return a procedure's run on *model*, a PureRouter or another function; *seen* gets its trials."""
    kept = [] if seen is None else seen
    on = PureSession(model, **session)
    return ProcedureRun(cast(Session, on), on_trial=lambda traffic, trial: kept.append(trial), deadline=deadline)


def at_throughput(pps: float | None, way: str = "unidirectional", size: int = 64) -> SearchResult:
    """Return what a test of RFC 2544 26.1 found."""
    bounds = CapacityBounds("throughput", 0.0, None if pps is None else Load(pps), None, pps, finished=True)
    return SearchResult(sentence=f"{size}b {way}", value=f"{size}b", bounds=(bounds,), relative_width=0.001)


def prepared(run: ProcedureRun) -> list[tuple[str, bool, Probe | None]]:
    """Return the traffic that was put on the ports: its frames, whether in both directions, and the probe frames."""
    return cast(PureSession, run.session).prepared
