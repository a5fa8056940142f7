"""Characterises a router on an open session: joins traffic words, methods and the testbed.

A method chooses the loads, and the result is how much the router carries. Nothing fails because a router is slow.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

from ..ceilings.headroom import first_known, own_part
from ..core.deciding import TrialConditions
from ..core.doubts import USABLE_SHARE, Conditions, OwnPart
from ..core.goal import Goal
from ..core.quantity import Promise, Requirement, TrafficWords
from ..core.sentence import parse_traffic
from ..core.trial import Load, Outcome, Trial, read_trial
from ..errors import SentenceError, TestbedError
from ..generators.abilities import Method
from ..generators.base import Probe
from ..methods.deviations import Deviation
from ..methods.margin import Margin, find_margin
from ..methods.ramp import RampPlan, RampResult, ramp
from ..methods.rfc2544 import FRAME_SIZES
from ..methods.rfc2544.back_to_back import BackToBackResult, back_to_back
from ..methods.rfc2544.latency import LatencyResult, latency
from ..methods.rfc2544.recovery import RecoveryResult, recovery
from ..methods.rfc2544.reset import ResetResult, reset
from ..methods.rfc2544.throughput import LossCurve, ThroughputResult, loss_curve, throughput
from ..methods.scaling import ScalingResult, ScalingSetup, scale
from ..methods.search import LOSS_RATIOS, LOWEST_LOAD_RATIO, RELATIVE_WIDTH, SearchResult, search
from ..methods.trials import TAKEN_AT_ITS_WORD, CharacterisationTerms, Deadline, shows_loss
from .router_watch import RouterRestarted
from .session import Session
from .traffic import PROBE_PPS

MIN_PROBE_FRAMES = 100
"""The fewest probe frames that give a latency."""


RESTART_POLL = 0.5
"""Seconds of the testbed's clock between two readings of a router that restarts."""

RECONFIGURED = Deviation(
    "RFC 2544 26.6",
    "a router that comes back with its configuration",
    "the testbed configured it anew as soon as it could log in, and the time that took is in the figure",
)


@dataclass(frozen=True)
class Characteriser:
    """``begin`` gets each traffic before its first trial, ``on_trial`` each trial before the next begins."""

    session: Session
    begin: Callable[[TrafficWords], None] = lambda traffic: None
    on_trial: Callable[[TrafficWords, Trial], None] = lambda traffic, trial: None

    def traffic(self, words: str) -> TrafficWords:
        """The traffic that *words* name. Raises SentenceError."""
        found = parse_traffic(words, self.session.plan.catalogue)
        self.session.plan.check_pairs(found)
        self.session.plan.check_generator(found)
        return found

    def search(
        self,
        words: str,
        loss_ratios: Mapping[str, float] = LOSS_RATIOS,
        relative_width: float = RELATIVE_WIDTH,
        deadline: Deadline | None = None,
    ) -> SearchResult:
        """The highest loads carried, by MLRsearch; see :func:`~lineproof.methods.search.search`."""
        traffic = self.traffic(words)
        highest = self._put(traffic)
        lowest = Load(highest.pps * LOWEST_LOAD_RATIO)
        terms = self._terms(traffic, deadline)
        return search(self.session.traffic.measure, self._goal, lowest, highest, terms, loss_ratios, relative_width)

    def margin(self, requirement: Requirement, deadline: Deadline | None = None) -> Margin:
        """How much more than *requirement*, which has just passed, is carried, by the same rule at higher loads.

        To what the ports can send within their clocks, and the generator without loss of its own: loss beyond that
        would not be the router's. A router that restarted meanwhile makes nothing of it certain.
        """
        session, link_bps = self.session, self.session.link_bps
        profile, pairs = requirement.profile, requirement.pairs
        traffic = TrafficWords(requirement.traffic, profile, requirement.bidirectional, pairs=pairs)
        carried = requirement.within_clocks(requirement.threshold_load(link_bps), link_bps)
        highest = requirement.within_clocks(session.traffic.maximum_load(profile), link_bps)
        own = first_known(session.generator.ceilings, profile, requirement.bidirectional, pairs)
        highest = Load(min(highest.pps, USABLE_SHARE * own.lossless_pps))
        conditions = TrialConditions(
            session.tolerance,
            session.clock_speed,
            on_trial=lambda trial, standing: self.on_trial(traffic, trial),
        )
        if highest.pps > carried.pps:
            self._put(traffic, warm_up=False)  # the verdict's trials were of the same traffic
        line_pps = profile.line_rate_pps(link_bps)
        found = find_margin(
            lambda pps: self._promise(requirement, pps),
            carried,
            highest,
            session.traffic.measure,
            conditions,
            line_pps,
            deadline,
        )
        problem = self.router_problem() if found.trials else ""
        return found.unproven(problem) if problem else found

    def _promise(self, requirement: Requirement, pps: float) -> Promise:
        """Return *requirement* in numbers, at another load."""
        promise = requirement.promise(self._goal, Load(pps), self.session.link_bps)
        return replace(promise, own=self._own_part(requirement, pps, promise.quantity.trial_seconds(promise)))

    def _own_part(self, traffic: Requirement | TrafficWords, pps: float, seconds: float) -> OwnPart:
        generator = self.session.generator
        return own_part(generator.ceilings, generator.headroom, traffic, pps, seconds)

    def ramp(
        self,
        words: str,
        steps: int = 100,
        step: float = 1.0,
        warm_up: float = 5.0,
        hold: float = 5.0,
        behind: float = 0.001,
        deadline: Deadline | None = None,
    ) -> RampResult:
        """A ramp to the testbed's maximum load; see :class:`~lineproof.methods.ramp.RampPlan`."""
        traffic = self.traffic(words)
        line = traffic.profile.line_rate_pps(self.session.link_bps)
        top = 100 * self.session.traffic.maximum_load(traffic.profile).pps / line
        plan = RampPlan(line, steps, step, min(100.0, top), warm_up, min(PROBE_PPS, line / 100), hold, behind)
        self._put(traffic, warm_up=False)
        return ramp(self.session.traffic.measure, plan, self._terms(traffic, deadline))

    def throughput(
        self, words: str, sizes: Sequence[int] = FRAME_SIZES, duration: float = 60.0, resolution: float = 0.001
    ) -> tuple[ThroughputResult, ...]:
        """RFC 2544 26.1 for each of *sizes* (bytes with FCS); *words* without a size, as ``unidirectional``."""
        self.session.plan.check_method(Method.THROUGHPUT)
        found = []
        for traffic in self._of_sizes(words, sizes):
            line = traffic.profile.line_rate_pps(self.session.link_bps)
            highest = self._put(traffic)
            size = round(traffic.profile.mean_size)
            terms = self._terms(traffic)
            found.append(throughput(self.session.traffic.measure, size, line, terms, highest, duration, resolution))
        return tuple(found)

    def loss_curve(self, words: str, step: float = 10.0, duration: float = 60.0) -> LossCurve:
        """RFC 2544 26.3: loss from the highest load down."""
        self.session.plan.check_method(Method.FRAME_LOSS)
        traffic = self.traffic(words)
        line = traffic.profile.line_rate_pps(self.session.link_bps)
        highest = self._put(traffic)
        percent = min(100.0, 100 * highest.pps / line)
        terms = self._terms(traffic)
        return loss_curve(self.session.traffic.measure, traffic.profile.mean_size, line, terms, step, duration, percent)

    def latency(
        self, words: str, found: Sequence[ThroughputResult], repeats: int = 20, duration: float = 120.0
    ) -> tuple[LatencyResult, ...]:
        """RFC 2544 26.2 at each throughput *found* with the same *words*; sizes without one are left out."""
        self.session.plan.check_method(Method.LATENCY)
        results = []
        for item, pps in _with_throughput(found):
            (traffic,) = self._of_sizes(words, [item.size])
            probe = Probe(min(PROBE_PPS, pps / 10))
            self.begin(traffic)
            self.session.traffic.put(traffic.profile, traffic.bidirectional, probe, pairs=traffic.pairs)
            measured = latency(self._latency_of(traffic), item.size, Load(pps), repeats, duration)
            used = self.session.traffic.directions(traffic.bidirectional, traffic.pairs)
            names = [f"{direction.tx_port} → {direction.rx_port}" for direction in used]
            directions = tuple(
                replace(direction, direction=name) for direction, name in zip(measured.directions, names, strict=False)
            )
            results.append(replace(measured, directions=directions))
        return tuple(results)

    def back_to_back(
        self,
        words: str,
        found: Sequence[ThroughputResult],
        repeats: int = 50,
        longest: int | None = None,
        resolution: int = 1,
    ) -> tuple[BackToBackResult, ...]:
        """RFC 2544 26.4, RFC 9004: the longest burst that passes, at the testbed's maximum load."""
        self.session.plan.check_method(Method.BACK_TO_BACK)
        results = []
        for item, pps in _with_throughput(found):
            (traffic,) = self._of_sizes(words, [item.size])
            rate = self._put(traffic, warm_up=False).pps

            send, terms = partial(self.session.traffic.burst, pps=rate), self._terms(traffic)
            result = back_to_back(send, item.size, rate, min(pps, rate), terms, longest, resolution, repeats)
            if rate < item.line_pps * (1 - 1e-9):
                done = f"bursts at {100 * rate / item.line_pps:.4g} % of it, the most that the generator is asked for"
                short = Deviation("RFC 2544 26.4", "frames with the minimum gap of the medium", done)
                result = replace(result, deviations=(*result.deviations, short))
            results.append(result)
        return tuple(results)

    def recovery(
        self,
        words: str,
        found: Sequence[ThroughputResult],
        repeats: int = 3,
        overload_for: float = 60.0,
        after: float = 20.0,
        interval: float = 0.1,
    ) -> tuple[RecoveryResult, ...]:
        """RFC 2544 26.5 from 110 % of each throughput, or from the testbed's maximum load if that is less."""
        self.session.plan.check_method(Method.RECOVERY)
        results = []
        for item, pps in _with_throughput(found):
            (traffic,) = self._of_sizes(words, [item.size])
            most, terms = self._put(traffic).pps, self._terms(traffic)
            times = (repeats, overload_for, after, interval)
            results.append(recovery(self.session.traffic.step_down, item.size, Load(pps), most, terms, *times))
        return tuple(results)

    def reset(
        self,
        words: str,
        found: Sequence[ThroughputResult],
        cause: Callable[[], None],
        kind: str = "software",
        interval: float = 0.1,
        quiet: float = 5.0,
        limit: float = 600.0,
    ) -> tuple[ResetResult, ...]:
        """RFC 2544 26.6 at the throughput of the smallest frames: *cause* starts a reset of the router.

        If the testbed's ``prepare`` configures the router, that is repeated after the restart, and declared. Raises
        TestbedError if the router cannot be reset, SentenceError if no throughput was found.
        """
        self.session.plan.check_method(Method.RESET)
        rows = sorted(_with_throughput(found), key=lambda row: row[0].size)
        if not rows:
            raise SentenceError("a reset is measured at a throughput, and none was found")
        self.session.router.check_resettable()
        item, pps = rows[0]
        (traffic,) = self._of_sizes(words, [item.size])
        if traffic.pairs > 1:
            raise SentenceError(
                f"'{words}': the frames of all ports together show when a router is back, and one pair's frames may"
                " hide that another's are missing; expected without 'on N pairs'"
            )
        self._put(traffic)
        with self._reconfiguring_after_restart():
            live = self.session.traffic.live()
            result = reset(live, cause, kind, item.size, Load(pps), interval, quiet=quiet, limit=limit)
        if self.session.plan.testbed.prepare == "configure":
            result = replace(result, deviations=(*result.deviations, RECONFIGURED))
        return (result,)

    @contextmanager
    def _reconfiguring_after_restart(self) -> Iterator[None]:
        """Meanwhile wait for a restart of the router, and configure it again."""
        session, over, back = self.session, threading.Event(), threading.Event()
        configure = session.router.prepare_configuration()

        def attend() -> None:
            while not over.wait(RESTART_POLL / session.testbed.facts.clock_speed):
                try:
                    session.router.watch.read()
                except RouterRestarted:
                    if not back.is_set():
                        session.router.driver.forget_changes()
                        back.set()
                    if _succeeds(configure):
                        session.router.watch.configured()
                        return
                except TestbedError:
                    continue  # not there yet

        thread = threading.Thread(target=attend, name="reset", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(60.0)

    def scale(
        self,
        axis: str,
        values: Sequence[int],
        words: Callable[[int], str],
        relative_width: float = RELATIVE_WIDTH,
        deadline: Deadline | None = None,
        set_up: Callable[[int], None] = lambda value: None,
    ) -> ScalingResult:
        """A search for each of *values*: ``set_up(value)`` changes the router, ``words(value)`` are the traffic."""
        # all words are parsed before any frame is sent
        known = {value: self.traffic(words(value)) for value in values}
        running: list[TrafficWords] = []

        def prepare(value: int) -> ScalingSetup:
            set_up(value)
            running[:] = [known[value]]
            return ScalingSetup(self.session.traffic.measure, self._put(known[value]))

        first = next(iter(known.values()))
        terms = replace(self._terms(first, deadline), on_trial=lambda trial: self.on_trial(running[0], trial))
        return scale(axis, values, prepare, self._goal, terms, relative_width)

    def router_problem(self) -> str:
        """The router's restart or failed reading since the last one, in words; "": none."""
        try:
            self.session.router.watch.read_again()
        except RouterRestarted as error:
            return str(error)
        except TestbedError as error:
            return f"the router could not be read: {error}"
        return ""

    @property
    def _goal(self) -> Goal:
        return self.session.plan.goal

    def _terms(self, traffic: TrafficWords, deadline: Deadline | None = None) -> CharacterisationTerms:
        session, goal = self.session, self._goal
        # a generator that was watched below the loads that are tried may lose more at them, but no less
        own = self._own_part(traffic, 0.0, goal.final_trial_duration)
        return CharacterisationTerms(
            session.tolerance,
            session.clock_speed,
            lambda trial: self.on_trial(traffic, trial),
            deadline=deadline or Deadline(),
            longest_trial=goal.longest_trial,
            conditions=Conditions(
                math.inf,
                goal.resolution,
                goal.unseen,
                goal.risk,
                goal.final_trial_duration,
                own if own.lossy else TAKEN_AT_ITS_WORD,
            ),
        )

    def _put(self, traffic: TrafficWords, warm_up: bool = True) -> Load:
        """Put *traffic* on the ports and warm the router up with it; the highest load to ask for."""
        session = self.session
        self.begin(traffic)
        session.traffic.put(traffic.profile, traffic.bidirectional, pairs=traffic.pairs)
        highest = session.traffic.maximum_load(traffic.profile)
        given = session.plan.testbed.warm_up
        seconds = self._goal.warm_up if given is None else given
        if warm_up and seconds:
            self.on_trial(traffic, self._judged(0, session.traffic.measure(highest, seconds)))
        return highest

    def _judged(self, number: int, outcome: Outcome) -> Trial:
        return read_trial(number, outcome, self.session.tolerance, self.session.clock_speed)

    def _of_sizes(self, words: str, sizes: Sequence[int]) -> list[TrafficWords]:
        if not sizes or len(set(sizes)) != len(sizes):
            raise SentenceError(f"expected frame sizes in bytes with FCS, each once, not {list(sizes)}")
        # all words are parsed before any frame is sent
        return [self.traffic(f"{size}b {words}") for size in sizes]

    def _latency_of(self, traffic: TrafficWords) -> Callable[[Load, float], tuple[float, ...]]:
        numbers = count(1)

        def measure(load: Load, duration: float) -> tuple[float, ...]:
            trial = self._judged(next(numbers), self.session.traffic.measure(load, duration))
            self.on_trial(traffic, trial)
            counts = trial.outcome.latency
            if not shows_loss(trial, self._goal.resolution) or len(counts) != len(trial.outcome.directions):
                return (math.nan,)
            return tuple(count.mean if count.received >= MIN_PROBE_FRAMES else math.nan for count in counts)

        return measure


def flow_words(number: int) -> str:
    """Return *number* of flows as a word of traffic."""
    return "1-flow" if number == 1 else f"{number}-flows"


def _succeeds(action: Callable[[], None]) -> bool:
    try:
        action()
    except TestbedError:
        return False
    return True


def _with_throughput(found: Sequence[ThroughputResult]) -> list[tuple[ThroughputResult, float]]:
    return [(item, item.throughput.pps) for item in found if item.throughput is not None]
