"""Traffic on an open session: streams put on the ports, trials measured, and whether frames arrive at all."""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TypeVar

from ..core.doubts import Conditions, copies, lost_probes
from ..core.foreign import IDLE_SECONDS, LATEST, ForeignFrames, Heard, LateFrames
from ..core.quantity import Requirement
from ..core.step_down import StepDown
from ..core.traffic.frame_kinds import refuse_not_forwarded
from ..core.traffic.profiles import Profile, Traffic
from ..core.trial import DRAIN, EXAMINED, During, Fault, Load, Outcome, Trial, read_trial
from ..errors import TestbedError
from ..generators.base import Direction, Generator, Probe, ProbesRefused, directions_of
from ..generators.streams import MOST_PROBE_GROUPS, probe_size
from ..testbed.opening import OpenTestbed
from ..testbed.settings import HardwareSettings
from .came_back import Content, SeenFrames, frames_kept, longest_frames, with_content
from .generator import GeneratorConnection
from .links import ALL_RATIO, CHECK, DIRECTION_STEP, check_arrival, dropped_by_card, wrong_destination
from .plan import PROBE_SHARE, Plan
from .router import RouterConnection

T = TypeVar("T")

LONGEST_PAUSE = 0.2
"""Up to so many s of the testbed's clock are waited before a trial, each time another time: loss that comes in a period
could else fall between the trials for ever."""

PROBE_PPS = 1000.0
"""Frames/s in each direction that must come back before anything is judged."""

MOST_PROBES, FEW_PROBES = 937.3, 0.00937
"""Frames/s, and at most that share of the load, that are probe frames where their times do not matter: not in step with
timers of the router."""

CHECK_SECONDS = 0.5
"""Seconds of the testbed's clock that frames of a new kind are sent slowly."""


@dataclass
class SentTraffic:
    """Traffic that the *generator* of *testbed* sends through the *router*."""

    plan: Plan
    testbed: OpenTestbed
    generator: GeneratorConnection
    router: RouterConnection
    reconnected: str = ""
    """A note that the generator was connected again before the present sentence, in words; "": it was not."""
    foreign: ForeignFrames = field(default_factory=ForeignFrames)
    """Frames of other origin, measured when reachability was checked."""
    examines: bool = field(default=False, repr=False)
    """True: the last frames of a trial are looked at, where the generator can keep some at any load."""
    _prepared: tuple[Traffic, Probe | None] | None = field(default=None, repr=False)
    _content: Content | None = field(default=None, repr=False)
    _slow: dict[Traffic, Mapping[int, tuple[Counter[str], int]]] = field(default_factory=dict, repr=False)
    _unprobed: set[Profile] = field(default_factory=set, repr=False)
    _late: LateFrames = field(default_factory=LateFrames, repr=False)
    _lost_because: str = ""
    """Why a call of the generator failed, so that it is connected again later; "": none did."""
    noticed: str = ""
    """The time at which a call of the generator noticed that a process of the testbed had ended; "": none did."""
    _link_was_down: bool = False
    _restarts: int = field(default=0, repr=False)

    @cached_property
    def _seen(self) -> SeenFrames:
        return SeenFrames(side.network for side in self.testbed.facts.sides)

    def directions(self, traffic: Traffic) -> tuple[Direction, ...]:
        """Return the directions of *traffic*, pair by pair.

        Without a router the frames carry the MAC address of the port that they go to: cards drop those for others.
        """
        directions = directions_of(self.testbed.facts.generator.ports, traffic.bidirectional, traffic.pairs)
        if not self.generator.bypassed:
            return directions
        macs = self.generator.card_macs
        return tuple(replace(direction, destination=macs.get(direction.rx_port, "")) for direction in directions)

    def put(self, traffic: Traffic, probe: Probe | None = None) -> None:
        """Put, as a sentence begins, the streams of *traffic* on the ports, unless they are there.

        Probe frames whose times nobody needs are left out where the cards cannot count them. Raises TestbedError if
        the router does not forward such frames at all, as far as slow traffic shows.
        """
        self._reconnect_if_lost()
        if self.router.restarts != self._restarts:
            self._restarts = self.router.restarts
            self._seen.forget()
        # a router that has restarted is not judged until it is configured again
        known = self.generator.bypassed or self.router.restarted
        known = known or self._seen.knows(traffic.profile, self.directions(traffic))
        if known and self._prepared == (traffic.alone, probe):
            return
        try:
            self._refuse_unsendable(traffic, probe)
            if not known:
                self._check_arrival(traffic)
            self._prepare(traffic, probe)
        except ProbesRefused:
            if probe is None or probe.times:
                raise
            self._unprobed.add(traffic.profile)
            self.put(traffic)

    def _prepare(self, traffic: Traffic, probe: Probe | None = None) -> None:
        """Put streams on the ports, unless they are there."""
        wanted, profile = (traffic.alone, probe), traffic.profile
        if self._prepared == wanted:
            return
        self._prepared = self._content = self._late.come = None
        directions = self.directions(traffic)
        self._asked(lambda generator: generator.prepare(profile, directions, probe))
        self._prepared = wanted
        if profile.program is None:
            self._content = Content(profile, directions, probe, {port.index: port for port in self.generator.ports})

    def put_for(self, requirement: Requirement) -> None:
        """Put a sentence's streams on the ports, with probe frames if it needs them."""
        probe = self.probe_for(requirement)
        self.put(requirement, probe)
        is_known = requirement.alone in self._slow or "capture" not in self.plan.abilities.can
        if self._content is not None and not self._content.is_kept_at_any_load and not is_known:
            self._examine_slowly(requirement.alone)
            self.put(requirement, probe)

    def forget(self) -> None:
        """No streams are on the ports any more: they were released, or claimed again."""
        self._prepared = self._content = None
        self._seen.forget()
        self._slow.clear()

    def probe_for(self, requirement: Requirement) -> Probe | None:
        """Return the probe frames of a sentence's trials: those whose times it needs, or those that may be lost.

        Twice as many as make its figure close, no more than a share of the load.
        """
        quantity, load = requirement.quantity, self.plan.load_for(requirement).pps
        if "probes" not in quantity.needs:
            can_show = lost_probes in quantity.doubts and quantity.needs <= {"load"}
            return self.few_probes(requirement, load) if can_show else None
        wanted = 0 if requirement.statistic is None else requirement.statistic.frames_wanted
        enough = 2 * max(wanted, self.plan.probes_needed(requirement)) / self.plan.goal.final_trial_duration
        return Probe(min(max(PROBE_PPS, enough), PROBE_SHARE * load))

    def few_probes(self, traffic: Traffic, pps: float) -> Probe | None:
        """Return probe frames of trials at *pps*: lost and copied ones show what equal counts cannot.

        None where the generator counts none, or the frames are too short to be some.
        """
        profile = traffic.profile
        try:
            is_long = all(probe_size(profile, frame) == frame.size for frame in profile.frames)
        except ValueError:
            return None
        can_count = profile not in self._unprobed and "latency" in self.plan.abilities.can
        has_room = can_count and is_long and len(profile.frames) * traffic.directions <= MOST_PROBE_GROUPS
        return Probe(min(MOST_PROBES, FEW_PROBES * pps), times=False) if has_room else None

    # -- trials --------------------------------------------------------------------------------------------------------

    def measure(self, load: Load, duration: float, during: During | None = None) -> Outcome:
        """Measure one trial, as :meth:`~lineproof.generators.base.Generator.measure`.

        Raises TestbedError if a process of the testbed ended, or the router's routes went with a link.
        """
        if self._link_was_down:
            self._restore_after_link()
        traffic, probe = self._prepared or (None, None)
        if traffic and probe and not probe.times:
            # at a small load there is room for fewer
            self._prepare(traffic, probe := self.few_probes(traffic, load.pps))
        time.sleep(random.uniform(0, LONGEST_PAUSE) / self.testbed.facts.clock_speed)  # noqa: S311  (no secret)
        keep = self._frames_kept if during is None else 0
        switch = self.generator.switch
        before = switch.read() if switch else {}
        outcome = self._asked(lambda generator: generator.measure(load, duration, during, keep))
        outcome = switch.checked(outcome, before) if switch else outcome
        outcome = self.foreign.with_budgets(outcome)
        if traffic and probe and not probe.times and _are_refused(outcome):
            # i40e firmware 9.5 (trex-core #1222); firewalls, because TRex does not correct their TCP and UDP checksums
            self._unprobed.add(traffic.profile)
            self._prepare(traffic)
            return self.measure(load, duration, during)
        outcome = self._without_late(outcome)
        outcome = with_content(outcome, self._content, self._slow.get(traffic, {}) if traffic else {})
        self._link_was_down = any(problem.fault is Fault.LINK_DOWN for problem in outcome.problems)
        return outcome

    def warm_up(self, requirement: Requirement) -> Trial | None:
        """Measure a first trial that is not judged (caches, frequency scaling). None if the goal has none."""
        seconds = self.plan.warm_up
        if not seconds:
            return None
        outcome = self.measure(requirement.quantity.gentle_load(self.plan.load_for(requirement)), seconds)
        return read_trial(0, outcome, self.plan.testbed.tolerances(), self.testbed.facts.clock_speed)

    def step_down(self, first: Load, seconds: float, second: Load, after: float, every: float) -> StepDown:
        """Send at a load, then at a lower one; frames that came back are looked at in a trial after it."""
        self._prepare_alone()
        step = self._asked(lambda generator: generator.step_down(first, seconds, second, after, every))
        return replace(step, outcome=self._looked_at_after(self._without_late(step.outcome), second))

    def burst(self, frames: int, pps: float) -> Outcome:
        """Send bursts of *frames* at *pps*; frames that came back are looked at in a trial after it."""
        self._prepare_alone()
        outcome = self._asked(lambda generator: generator.burst(frames, pps))
        return self._looked_at_after(self._without_late(outcome), Load(pps))

    def _without_late(self, outcome: Outcome) -> Outcome:
        """Return *outcome* without frames of earlier trials. Its own late ones are waited for where some may come."""
        outcome = self._late.taken_off(outcome, self.foreign, self.testbed.facts.clock_speed)
        if not self._late.may_follow(outcome):
            return outcome
        heard = self.listen(LATEST - DRAIN)
        if self._late.among(outcome, heard, self.foreign):
            # what comes still later is of other origin, and as many of the same may be among these
            self.foreign = self.foreign.heard_again(self.listen(IDLE_SECONDS))
        return self._late.looked_for(outcome, heard, self.foreign)

    def _prepare_alone(self) -> None:
        """Put the streams on the ports without probe frames, whose rate does not change with the load."""
        if self._prepared is not None:
            self._prepare(self._prepared[0])

    @property
    def _frames_kept(self) -> int:
        """Return how many frames of each direction a trial keeps now, to be looked at."""
        content = self._content
        return frames_kept(content.profile) if self.examines and content and content.is_kept_at_any_load else 0

    def _looked_at_after(self, outcome: Outcome, load: Load) -> Outcome:
        """Return *outcome*, which kept no frames, with what a trial of *load* after it shows of frames that come back.

        Frames that came back changed, and probe frames that were copied or lost where other frames are not.
        """
        traffic, _ = self._prepared or (None, None)
        if not self.examines or traffic is None:
            return outcome
        self._prepare(traffic, self.few_probes(traffic, load.pps))
        seen = read_trial(0, self.measure(load, 1.0), self.plan.testbed.tolerances())
        shown = [problem for problem in seen.problems if problem.fault is Fault.CHANGED]
        for doubt in (copies, lost_probes):
            shown += doubt(seen, Conditions(load.pps, resolution=0.0, unseen=0.0, risk=0.0))
        readings = seen.outcome.readings.items()
        looked_at = {name: value for name, value in readings if name.startswith(EXAMINED)}
        return replace(outcome, problems=(*outcome.problems, *shown), readings={**outcome.readings, **looked_at})

    def capture(self, traffic: Traffic, load: Load, limit: int) -> Mapping[int, tuple[bytes, ...]]:
        """Frames received in a short trial: port -> frames without FCS, at most *limit* each."""
        self.put(traffic)
        return self._asked(lambda generator: generator.measure(load, 1.0, keep=limit)).frames

    def _examine_slowly(self, traffic: Traffic) -> None:
        """Look at frames of *traffic* that come back at a small load: a card that counts in hardware keeps no other."""
        frames = self.capture(traffic, Load(PROBE_PPS), frames_kept(traffic.profile))
        if content := self._content:
            self._slow[traffic] = {
                way.rx_port: (content.wrong(way, frames.get(way.rx_port, ())), len(frames.get(way.rx_port, ())))
                for way in content.directions
            }

    # -- whether frames arrive -----------------------------------------------------------------------------------------

    def check_reachability(self) -> None:
        """Send a second of slow traffic in each direction of every pair, before anything is judged.

        Raises TestbedError if a direction carries none: swapped cables, a wrong next hop or an unconfigured router are
        the testbed's fault and must not count as loss.
        """
        self._reconnect_if_lost()
        probe = self.plan.probe
        self._refuse_unsendable(probe, None)
        self._prepare(probe)
        name = probe.profile.name
        self.router.links.retried(lambda: check_arrival(name, self._send_slowly(probe, PROBE_PPS, 1.0), self._likely))
        self.foreign = ForeignFrames.of(self.listen(IDLE_SECONDS))
        self._seen.note(probe.profile, self.directions(probe))

    def listen(self, seconds: float, keep: int = 0) -> Mapping[int, Heard]:
        """Return what comes to each port in *seconds* of the testbed's clock without traffic, and *keep* frames.

        Raises TestbedError.
        """
        return self._asked(lambda generator: generator.idle(seconds, keep))

    def _send_slowly(self, traffic: Traffic, pps: float, seconds: float) -> Outcome:
        """Slow traffic. Each direction has its own rate, so that frames at a wrong port do not hide missing ones."""
        rates = [pps * (1 + DIRECTION_STEP * index) for index in range(traffic.directions)]
        return self._asked(lambda generator: generator.measure(Load(max(rates)), seconds, rates=rates))

    def _likely(self) -> str:
        """Return why frames do not come back, as the testbed's file and both ends' MAC addresses tell."""
        if self.generator.bypassed:
            return CHECK
        if trouble := self.router.trouble():
            return trouble
        likely = list(map(self.plan.misfit_words, self.plan.misfits()))
        endpoint = self.testbed.facts.generator
        # the wires between interfaces of one machine filter nothing
        if isinstance(self.plan.testbed, HardwareSettings):
            addressed = dict(zip(endpoint.ports, (side.peer_mac for side in self.router.sides()), strict=True))
            dropped = {port.index: dropped_by_card(port, addressed[port.index]) for port in self.generator.ports}
            likely += [f"of port {index}: {wrong}" for index, wrong in dropped.items() if wrong]
        if self.router.connected and not self.router.is_black_box:
            with contextlib.suppress(TestbedError):  # the frames are what is told
                ports = {port.index: port for port in self.generator.ports}
                for state, number in zip(self.router.driver.link_states(), endpoint.ports, strict=False):
                    if wrong := wrong_destination(state, ports.get(number), endpoint):
                        likely.append(f"router interface {state.interface} {wrong}")
        return f"most likely: {'; '.join(likely)}; else {CHECK}" if likely else CHECK

    def _check_arrival(self, traffic: Traffic) -> None:
        """Send frames of a kind that has not come through yet slowly. Raises TestbedError if they do not arrive.

        Frames that the router is not set up for would count as its loss. Of frames of several sizes only the longest
        are sent: what an MTU lets through, it lets through shorter, too. Those with their own addresses are all sent,
        and all must arrive, because each may need a route of its own.
        """
        profile, directions = traffic.profile, self.directions(traffic)

        def cause() -> str:
            return self.router.trouble() or self._seen.likely_cause(profile, directions)

        if profile.has_own_addresses:
            self._prepare(traffic)
            check_arrival(profile.name, self._send_slowly(traffic, PROBE_PPS, CHECK_SECONDS), cause, ALL_RATIO)
        longest = longest_frames(profile)
        if profile.program is None and not (profile.has_own_addresses and longest is profile):
            self._prepare(replace(traffic.alone, profile=longest))
            check_arrival(longest.name, self._send_slowly(traffic, PROBE_PPS, CHECK_SECONDS), cause)
        self._seen.note(profile, directions)

    def _restore_after_link(self) -> None:
        """Configure the router again, because an interface that was down may have lost its routes and neighbours.

        Raises TestbedError if slow traffic of the sentence does not arrive then.
        """
        self._link_was_down = False
        self._seen.forget()
        if self.generator.bypassed:
            return
        if self.router.connected:
            self.router.configure(links_moved=True)
        if self._prepared is None or self.testbed.facts.simulated:
            return
        traffic, probe = self._prepared
        pps = PROBE_PPS + 2 * (probe.pps if probe else 0.0)
        name = traffic.profile.name
        self.router.links.retried(lambda: check_arrival(name, self._send_slowly(traffic, pps, CHECK_SECONDS)))

    def _refuse_unsendable(self, traffic: Traffic, probe: Probe | None) -> None:
        """Raise TestbedError for frames that the generator cannot send, or the router is known not to forward."""
        refuse_not_forwarded(traffic.profile, self.router.not_forwarded)
        limits = self.generator.known_limits
        if limits is not None:
            limits.check_sendable(traffic.profile, probe is not None)
        if probe is not None:
            self._refuse_latency(traffic)

    def _refuse_latency(self, traffic: Traffic) -> None:
        """Raise TestbedError if a receiving port measures no latency: its probe frames would count as lost."""
        receiving = {direction.rx_port for direction in self.directions(traffic)}
        for port in self.generator.ports:
            if port.index in receiving and port.measures is not None and "latency" not in port.measures:
                raise ProbesRefused(
                    f"'{traffic.profile.name}' was not sent: TRex reports that its port {port.index} (driver"
                    f" {port.driver}) measures no latency; expected another card, or TRex started with '--software'"
                )

    def _reconnect_if_lost(self) -> None:
        """Connect the generator again if a call of it failed. Raises TestbedError: the next sentence tries again."""
        self.reconnected, why = "", self._lost_because
        if not why:
            return
        try:
            self._check_testbed()
            self._lost_because = ""
            self.forget()
            self.generator.reconnect()
            # the router notices a link that was gone late
            self.router.links.begin()
            self.check_reachability()
        except TestbedError as error:
            self._lost_because = why
            raise TestbedError(
                f"the generator was lost in an earlier sentence and could not be connected again: {error}"
                f" (it was lost because {why})"
            ) from error
        self.reconnected = f"the generator was connected again before this sentence: {why}"

    def _check_testbed(self) -> None:
        """Raise TestbedError if a process of the testbed has ended."""
        if problems := self.testbed.problems():
            self.noticed = self.noticed or f"{datetime.now(UTC):%H:%M:%S} UTC"
            raise TestbedError("; ".join(problems))

    def _asked(self, ask: Callable[[Generator], T]) -> T:
        """Return what *ask* gives of the generator, which is connected again later if that fails.

        Raises TestbedError, also if a process of the testbed ended.
        """
        try:
            self._check_testbed()
            return ask(self.generator.driver)
        except TestbedError as error:
            self._lost_because = self._lost_because or str(error)
            raise


def _are_refused(outcome: Outcome) -> bool:
    """Return whether probe frames alone do not come back: as many are lost, or are errors of the card."""
    sent, came = (sum(getattr(count, name) for count in outcome.latency) for name in ("sent", "received"))
    lost = sum(row.lost for row in outcome.directions)
    return sent > 0 and not came and (lost == sent or outcome.readings.get("ierrors", 0.0) >= sent)
