"""Characterises a router on an open session: joins traffic words, methods and the testbed.

A method chooses the loads, and the result is how much the router carries. Nothing fails because a router is slow.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Literal

from ..core.deciding import TrialConditions
from ..core.doubts import USABLE_SHARE, Conditions
from ..core.quantity import Promise, Requirement, TrafficWords
from ..core.sentence import parse_traffic
from ..core.trial import During, Load, Outcome, Trial, read_trial
from ..errors import SentenceError, TestbedError
from ..generators.base import Probe
from ..methods import rfc2544
from ..methods.deviations import Deviation
from ..methods.margin import LINE_RATE, OWN_LIMIT, Margin, find_margin
from ..methods.ramp import RampPlan, RampResult, ramp
from ..methods.rfc2544 import (
    BackToBackResult,
    LatencyResult,
    LossCurve,
    RecoveryResult,
    ResetResult,
    ThroughputResult,
)
from ..methods.search import (
    LOSS_RATIOS,
    LOWEST_LOAD_RATIO,
    RELATIVE_WIDTH,
    ScalingResult,
    SearchResult,
    V,
    scale,
    search,
    sendable,
)
from ..methods.trials import TAKEN_AT_ITS_WORD, CharacterisationTerms, SendingResult
from .judging import promised
from .router_watch import RouterRestarted
from .session import Session
from .traffic import PROBE_PPS

RESTART_POLL = 0.5
"""Seconds of the testbed's clock between two readings of a router that restarts."""

RECONFIGURED = Deviation(
    "RFC 2544 26.6",
    "a router that comes back with its configuration",
    "the testbed configured it anew as soon as it could log in, and the time that took is in the figure",
)


@dataclass(frozen=True)
class Characteriser:
    """The methods on *session*; loads end at the testbed's maximum. *traffic* is traffic and direction in words.

    ``begin`` gets each traffic before its first trial, ``on_trial`` each trial before the next begins. Those of
    ``robot/procedures.py`` are keywords by their own arguments and documentation.
    """

    session: Session
    begin: Callable[[TrafficWords], None] = lambda traffic: None
    on_trial: Callable[[TrafficWords, Trial], None] = lambda traffic, trial: None

    def traffic(self, words: str) -> TrafficWords:
        """The traffic that *words* name. Raises SentenceError."""
        known = parse_traffic(words, self.session.plan.catalogue)
        self.session.plan.check_pairs(known)
        self.session.plan.check_generator(known)
        return known

    def search(
        self,
        words: str,
        loss_ratios: Mapping[str, float] = LOSS_RATIOS,
        relative_width: float = RELATIVE_WIDTH,
        deadline: float = math.inf,
    ) -> SearchResult:
        """The highest loads carried, by MLRsearch; see :func:`~lineproof.methods.search.search`."""
        traffic = self.traffic(words)
        terms, goal = self._terms(traffic, deadline), self.session.plan.goal
        lowest = Load(self.session.plan.maximum_load(traffic).pps * LOWEST_LOAD_RATIO)
        highest = self._put(traffic, as_sent=True)
        return search(self._measure, goal, lowest, highest, terms, loss_ratios, relative_width)

    def scale(
        self,
        axis: str,
        values: Sequence[V],
        words: Callable[[V], str],
        relative_width: float = RELATIVE_WIDTH,
        deadline: float = math.inf,
        set_up: Callable[[V], object] = lambda value: None,
    ) -> ScalingResult:
        """A search for each of *values*: ``set_up(value)`` changes the router, ``words(value)`` are the traffic."""
        for value in values:
            self.traffic(words(value))  # before any frame is sent

        def search_at(value: V, seconds: float) -> SearchResult:
            set_up(value)
            return self.search(words(value), LOSS_RATIOS, relative_width, seconds)

        return scale(axis, values, search_at, deadline)

    def send(self, words: str, load: str, seconds: float, during: During | None = None) -> SendingResult:
        """One trial of *seconds* at *load* into each port, as ``1 Mpps``; *during* meanwhile. Raises SentenceError."""
        if not 0 < seconds < math.inf:
            raise SentenceError(f"a trial takes time; expected a duration above 0, not {seconds:g} s")
        session, known = self.session, self.traffic(words)
        # a demand that nothing breaks stands in, so that the load is read as a sentence's
        demand = f" forwards ≥ 1 pps{' each way' if known.directions > 1 else ''}"
        try:
            asked = session.plan.measurable(f"{words}{demand} at {load}")
            if asked.duration_sum is not None:
                raise SentenceError(f"'{asked.sentence}': how long is an argument of its own; expected no 'for' here")
        except SentenceError as error:
            raise SentenceError(str(error).replace(demand, "")) from None
        self.begin(known)
        session.traffic.put(known)
        outcome = session.traffic.measure(session.plan.load_for(asked), seconds, during)
        trial = read_trial(1, outcome, session.tolerance, session.clock_speed)
        self.on_trial(known, trial)
        return SendingResult(trials=(trial,))

    def margin(self, requirement: Requirement, deadline: float = math.inf) -> Margin:
        """How much more than *requirement*, which has just passed, is carried, by the same rule at higher loads.

        To what the ports can send within their clocks, and the generator without loss of its own: loss beyond that
        would not be the router's. A router that restarted meanwhile makes nothing of it certain.
        """
        session, pairs = self.session, requirement.pairs
        link_bps = session.plan.link_bps(pairs)
        traffic = TrafficWords(requirement.profile, requirement.bidirectional, requirement.traffic, pairs=pairs)
        carried = requirement.within_clocks(requirement.threshold_load(link_bps), link_bps)
        own = session.own_part(traffic)
        most = min(session.plan.maximum_load(traffic).pps, USABLE_SHARE * own.lossless_pps)
        highest = requirement.within_clocks(Load(most), link_bps)
        conditions = TrialConditions(
            session.tolerance, session.clock_speed, on_trial=lambda trial, standing: self.on_trial(traffic, trial)
        )
        if highest.pps > carried.pps:
            self._put(traffic, warm_up=False)  # the verdict's trials were of the same traffic
        line = self._line(traffic)
        limit = LINE_RATE if highest.pps < most else OWN_LIMIT

        def promise_at(pps: float) -> Promise:
            return promised(session, requirement, Load(pps))

        margin = find_margin(promise_at, carried, highest, self._measure, conditions, line, deadline, limit)
        problem = self.router_problem() if margin.trials else ""
        return margin.unproven(problem) if problem else margin

    def ramp(
        self,
        traffic: str,
        steps: int = 100,
        step: timedelta = timedelta(seconds=1),
        warm_up: timedelta = timedelta(seconds=5),
        hold: timedelta = timedelta(seconds=5),
    ) -> RampResult:
        """Raise the load from nothing to the testbed's maximum in *steps* trials of *step*, then hold it.

        *warm_up* before, *hold* after the rise. The result is also kept as the JSON that trex-loadtest-viz draws.
        Example:
        | Ramp    64b 1-flow unidirectional    steps=10    step=500 ms
        """
        known = self.traffic(traffic)
        line, highest = self._line(known), self._put(known, warm_up=False)
        percent = min(100.0, 100 * highest.pps / line)
        before, after = warm_up.total_seconds(), hold.total_seconds()
        plan = RampPlan(line, steps, step.total_seconds(), percent, before, min(PROBE_PPS, line / 100), after)
        return ramp(self._measure, plan, self._terms(known))

    def throughput(
        self, traffic: str, *sizes: int, duration: timedelta = timedelta(seconds=60), resolution: float = 0.001
    ) -> tuple[ThroughputResult, ...]:
        """RFC 2544 26.1 for frames of each of *sizes* (bytes with FCS; none given: the standard seven).

        *traffic* names the rest. *duration* of each trial: less than 60 s is a declared deviation. *resolution*: how
        close loss and no loss come, as a ratio of line rate. Example:
        | ${found} =    RFC 2544 Throughput Of    unidirectional    64    1518    duration=10 s
        """
        sizes = sizes or rfc2544.FRAME_SIZES
        if len(set(sizes)) != len(sizes):
            raise SentenceError(f"expected frame sizes in bytes with FCS, each once, not {list(sizes)}")
        found = []
        # all words are parsed before any frame is sent
        for size, known in [(size, self.traffic(f"{size}b {traffic}")) for size in sizes]:
            line, highest, terms = self._line(known), self._put(known), self._terms(known)
            of_trials = terms, highest, duration.total_seconds(), resolution
            found.append(rfc2544.throughput(self._measure, size, line, *of_trials))
        return tuple(found)

    def loss_curve(self, traffic: str, step: float = 10.0, duration: timedelta = timedelta(seconds=60)) -> LossCurve:
        """RFC 2544 26.3: loss at the highest load and in steps of *step* per cent down, until nothing is lost twice.

        *duration* of each trial: less than 60 s is a declared deviation. Example:
        | Frame Loss Rate Of    64b unidirectional    duration=10 s
        """
        known = self.traffic(traffic)
        line, highest, size = self._line(known), self._put(known), known.profile.mean_size
        of_trials = step, duration.total_seconds(), min(100.0, 100 * highest.pps / line)
        return rfc2544.loss_curve(self._measure, size, line, self._terms(known), *of_trials)

    def latency(
        self,
        traffic: str,
        throughputs: Sequence[ThroughputResult],
        repeats: int = 20,
        duration: timedelta = timedelta(seconds=120),
    ) -> tuple[LatencyResult, ...]:
        """RFC 2544 26.2 at each of *throughputs*, which `RFC 2544 Throughput Of` gave for the same *traffic*.

        *repeats* streams of *duration* each: fewer than 20, or less than 120 s, is a declared deviation. Example:
        | RFC 2544 Latency Of    unidirectional    ${found}    repeats=2    duration=10 s
        """
        found = []
        for size, load, known in self._at_throughputs(traffic, throughputs):
            probe, terms = Probe(min(PROBE_PPS, load.pps / 10)), self._terms(known)
            self.begin(known)
            self.session.traffic.put(known, probe)
            found.append(rfc2544.latency(self._measure, size, load, terms, repeats, duration.total_seconds()))
        return tuple(found)

    def back_to_back(
        self,
        traffic: str,
        throughputs: Sequence[ThroughputResult],
        repeats: int = 50,
        longest: int | None = None,
        resolution: int = 1,
    ) -> tuple[BackToBackResult, ...]:
        """RFC 2544 26.4 (RFC 9004): the longest burst at line rate that passes, and the buffer time that follows.

        *throughputs* as `RFC 2544 Throughput Of` gave for the same *traffic*. *repeats*: searches, each to *resolution*
        frames; *longest*: frames (none: 2 s of line rate). Example:
        | Back To Back Of    unidirectional    ${found}    repeats=5
        """
        found = []
        for size, load, known in self._at_throughputs(traffic, throughputs):
            rate, line, terms = self._put(known, warm_up=False).pps, self._line(known), self._terms(known)
            send = partial(self.session.traffic.burst, pps=rate)
            result = rfc2544.back_to_back(send, size, rate, min(load.pps, rate), terms, longest, resolution, repeats)
            if rate < line * (1 - 1e-9):
                done = f"bursts at {100 * rate / line:.4g} % of it, the most that the generator is asked for"
                short = Deviation("RFC 2544 26.4", "frames with the minimum gap of the medium", done)
                result = replace(result, deviations=(*result.deviations, short))
            found.append(result)
        return tuple(found)

    def recovery(
        self,
        traffic: str,
        throughputs: Sequence[ThroughputResult],
        repeats: int = 3,
        overload: timedelta = timedelta(seconds=60),
        after: timedelta = timedelta(seconds=20),
    ) -> tuple[RecoveryResult, ...]:
        """RFC 2544 26.5: *overload* at 110 % of each of *throughputs*, then *after* at half of it, *repeats* times.

        Less than 60 s of overload is a declared deviation. *throughputs* as `RFC 2544 Throughput Of` gave for the same
        *traffic*. Example:
        | System Recovery Of    unidirectional    ${found}    overload=10 s
        """
        found = []
        for size, load, known in self._at_throughputs(traffic, throughputs):
            most, terms, step_down = self._put(known).pps, self._terms(known), self.session.traffic.step_down
            seconds = overload.total_seconds(), after.total_seconds()
            found.append(rfc2544.recovery(step_down, size, load, most, terms, repeats, *seconds))
        return tuple(found)

    def reset(
        self,
        traffic: str,
        throughputs: Sequence[ThroughputResult],
        command: str = "",
        kind: Literal["software", "hardware", "power"] = "software",
        limit: timedelta = timedelta(minutes=10),
    ) -> tuple[ResetResult, ...]:
        """RFC 2544 26.6 (RFC 6201): how long nothing is forwarded once *command* reset the router, at most *limit*.

        At the throughput of the smallest frames among *throughputs*. A simulated router needs no command. Example:
        | Reset Time Of    unidirectional    ${found}    command=sudo reboot
        """
        measured = list(self._at_throughputs(traffic, throughputs))
        if not measured:
            raise SentenceError("a reset is measured at a throughput, and none was found")
        router = self.session.router
        router.check_resettable()
        size, load, known = min(measured, key=lambda smallest: smallest[0])
        if known.pairs > 1:
            raise SentenceError(
                f"'{traffic}': the frames of all ports together show when a router is back, and one pair's frames may"
                " hide that another's are missing; expected without 'on N pairs'"
            )
        self._put(known)
        of_reset = partial(router.reset, command), kind, size, load, limit.total_seconds()
        with self._reconfiguring_after_restart():
            result = rfc2544.reset(self.session.traffic.live(), *of_reset)
        if self.session.plan.testbed.prepare == "configure":
            result = replace(result, deviations=(*result.deviations, RECONFIGURED))
        return (result,)

    @contextmanager
    def _reconfiguring_after_restart(self) -> Iterator[None]:
        """Meanwhile wait for a restart of the router, and configure it again."""
        over, router = threading.Event(), self.session.router
        configure = router.prepare_configuration()

        def attend() -> None:
            while not over.wait(RESTART_POLL / self.session.testbed.facts.clock_speed):
                # until it is there, and takes its configuration
                with suppress(TestbedError):
                    try:
                        router.watch.read()
                    except RouterRestarted:
                        configure()
                        router.watch.configured()
                        return

        thread = threading.Thread(target=attend, name="reset", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(60.0)

    def router_problem(self) -> str:
        """The router's restart or failed reading since the last one, in words; "": none."""
        try:
            self.session.router.watch.read_again()
        except RouterRestarted as error:
            return str(error)
        except TestbedError as error:
            return f"the router could not be read: {error}"
        return ""

    def _terms(self, traffic: TrafficWords, deadline: float = math.inf) -> CharacterisationTerms:
        session, goal = self.session, self.session.plan.goal
        # a generator that was watched below the loads that are tried may lose more at them, but no less
        own = session.own_part(traffic, 0.0, goal.final_trial_duration)
        own = own if own.lossy else TAKEN_AT_ITS_WORD
        of_trials = math.inf, goal.resolution, goal.unseen, goal.risk, goal.final_trial_duration, own
        return CharacterisationTerms(
            session.tolerance,
            session.clock_speed,
            on_trial=partial(self.on_trial, traffic),
            deadline=deadline,
            longest_trial=goal.longest_trial,
            conditions=Conditions(*of_trials),
        )

    def _put(self, traffic: TrafficWords, warm_up: bool = True, as_sent: bool = False) -> Load:
        """Put *traffic* on the ports and warm the router up with it; the highest load to ask for.

        *as_sent*: where the generator fell behind in the warm-up, that is what it sends.
        """
        session, seconds = self.session, self.session.plan.warm_up
        self.begin(traffic)
        session.traffic.put(traffic)
        highest = session.plan.maximum_load(traffic)
        if warm_up and seconds:
            outcome = self._measure(highest, seconds)
            trial = read_trial(0, outcome, session.tolerance, session.clock_speed)
            self.on_trial(traffic, trial)
            return sendable(trial) if as_sent else highest
        return highest

    def _measure(self, load: Load, duration: float) -> Outcome:
        return self.session.traffic.measure(load, duration)

    def _line(self, traffic: TrafficWords) -> float:
        """Return line rate in frames/s of each port."""
        return traffic.profile.line_rate_pps(self.session.plan.link_bps(traffic.pairs))

    def _at_throughputs(
        self, traffic: str, throughputs: Sequence[ThroughputResult]
    ) -> Iterator[tuple[int, Load, TrafficWords]]:
        """Yield size, throughput and traffic of each result that has one."""
        for result in throughputs:
            if result.throughput is not None:
                yield result.size, result.throughput, self.traffic(f"{result.size}b {traffic}")


def flow_words(number: int) -> str:
    """Return *number* of flows as a word of traffic."""
    return "1-flow" if number == 1 else f"{number}-flows"
