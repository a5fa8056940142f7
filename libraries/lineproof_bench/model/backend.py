"""A router as a forwarding model, behind the embedded TRex server: rates between events, counts in whole frames.

Nothing runs between calls: each call first brings the counts up to the clock's reading, event by event.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from lineproof.platforms import Platform, RouterSetup
from lineproof.simulation import MODEL_DRIVER, Habit, Noise, RouterHabits
from lineproof.units import OVERHEAD, l1_bits

from ..backend import (
    TICK,
    Backend,
    CapturedFrame,
    Clock,
    FlowCounters,
    LatencyCounters,
    PortCounters,
    PortDescription,
    StreamTraffic,
)
from ..state import NodeState, RouterConfiguration, RouterState, ThreadState
from .counting import ReceiveRings, ReleasedFrames, Sending, StreamCounts
from .forwarding import Fate, Forwarding, StreamLoad, StreamPart, forward, parts_of, placement
from .latency import Delay, PacketGroups, delay_of, delay_of_released
from .noise import ModelNoise
from .ports import KeptFrames, LeavingFrames, egress_frame, ports_of
from .routing import HEADERS, Fib, Flow, RouterFeature, RouterLinks, check_names, owns_address
from .schema import RouterModel, Vectors, router_model

_ROUNDING, CPU_AT_CEILING = 1 + 1e-9, 0.8
"""Rates within this factor of the ceiling are at it; busy share of the generator's CPU at its ceiling (assumed)."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """A modelled bench beside its platform. *noise* is drawn from *seed*; *path*: the platform's file, for messages.

    *features*: frames that it forwards without configuration by its shell; *setups*: of a study; *habits*: what a card
    with ``own frames only`` drops, as most cards of hardware do, is counted nowhere; *links*: of the router.
    """

    rx_queues: int | None = None
    noise: Noise = field(default_factory=Noise)
    seed: int = 0
    path: Path | None = None
    features: Set[RouterFeature] = frozenset()
    setups: Sequence[RouterSetup] = ()
    habits: Sequence[Habit] = ()
    links: RouterHabits = field(default_factory=RouterHabits)


@dataclass(slots=True)
class HeldFrames:
    """Frames of a *row* that come later; *came*: how many have. *version*: of their packet group."""

    row: LeavingFrames
    traffic: StreamTraffic
    delay: Delay
    version: int
    came: int = 0

    def due(self, now: float) -> LeavingFrames | None:
        """Return those that come by *now* and have not come yet; None: there are none."""
        row, before = self.row, self.came
        passed = (now - row.begin - row.hold) / max(row.end - row.begin, 1e-9)
        self.came = math.floor(row.frames * min(1.0, max(0.0, passed)) + 1e-9)
        if self.came == before:
            return None
        numbers = row.numbers[len(row.numbers) * before // row.frames : len(row.numbers) * self.came // row.frames]
        begin, end = row.begin + row.hold, row.end + row.hold
        return replace(row, frames=self.came - before, numbers=numbers, begin=begin, end=end)


DEFAULTS = ModelSettings()
"""A bench without noise and habits, whose router has nothing set up."""


class ModelBackend(Backend):
    """A :class:`.backend.Backend` and, for the shells, a modelled router. *clock* in s.

    Raises ConfigError for what cannot be modelled.
    """

    is_simulated = True

    def __init__(self, platform: Platform, software: str, clock: Clock, settings: ModelSettings = DEFAULTS) -> None:
        modelled = partial(router_model, platform, software, settings.rx_queues, settings.path)
        self._noiseless = self._model = self._plain = modelled()
        self._set_up = {
            frozenset(pair.given for pair in row.commands): modelled(row.configured) for row in settings.setups
        }
        self._platform, self._software, self._clock = platform, software, clock
        self._noise, self._offered = ModelNoise(settings.noise, settings.seed), 0.0
        self._ports = ports_of(platform, software, settings.habits)
        self._numbers = {port.name: index for index, port in enumerate(self._ports)}
        self._sending: list[Sending] = []
        self._features, self._groups = settings.features, PacketGroups()
        self._configuration = self._in_force = RouterConfiguration()
        """One as its shell has made it, one as frames see it: without the interfaces whose links are not there."""
        self._fib = Fib(self._in_force, self._features)
        self._parts: dict[tuple[Any, ...], tuple[StreamPart, ...]] = {}
        self._frames: dict[tuple[Any, ...], dict[Any, Sequence[bytes]]] = {}
        """The frames of the last streams as they left: the next trial sends them again."""
        self._forwarding, self._loads = Forwarding(), list[StreamLoad]()
        self._entering: dict[Sending, int] = {}
        self._delays: dict[int, Delay] = {}
        """By number of a stream that enters the router; empty after a change."""
        self._rings, self._telemetry = ReceiveRings(self._model.ring), ModelTelemetry(self._model)
        self._held_frames = list[HeldFrames]()
        """Frames that have left, and come later."""
        self._before = self._last = self._settled = self._cleared = self._begin = clock.now()
        self._held: float | None = None
        """The moment at which the clock stands still, if it does."""
        self._change: float | None = None
        self._used, self._was_above, self._above_ceiling = (self._begin, [0] * len(self._ports)), False, False
        self._links, self._unplugged = RouterLinks(settings.links, self._begin), list[int]()
        """``_unplugged``: ports whose cable is out, one with two reasons for it twice."""

    @property
    def model(self) -> RouterModel:
        """The parameters without noise."""
        return self._noiseless

    # -- the generator

    @property
    def ports(self) -> tuple[PortDescription, ...]:
        return tuple(
            PortDescription(
                *(index, port.mac, port.router_mac, port.interface.speed_bps, MODEL_DRIVER), interface=f"model{index}"
            )
            for index, port in enumerate(self._ports)
        )

    def start(self, traffic: Mapping[int, tuple[StreamTraffic, ...]], duration: float | None) -> None:
        now = self._advance()
        if len(self._frames) > 8:
            self._frames.clear()
        if not self._sending:
            self._noise.new_trial(self._noiseless.spread)
        lasts = math.inf if duration is None else duration
        for index, streams in traffic.items():
            self._remove(index)
            for stream in streams:
                if (gap := stream.isg_usec / 1e6) < lasts:
                    sending = Sending(index, stream, self._parts_of(stream), now + gap, lasts - gap)
                    key = stream.frame, stream.variables, stream.fix_ipv4_checksum
                    sending.made = self._frames.setdefault(key, {})
                    self._sending.append(sending)
        self._settle(now)

    def update(self, port: int, streams: tuple[StreamTraffic, ...]) -> None:
        now = self._advance()
        new = {stream.stream_id: stream for stream in streams}
        for sending in self._sending:
            if sending.port == port and sending.traffic.stream_id in new:
                sending.traffic = replace(sending.traffic, pps=new[sending.traffic.stream_id].pps)
        self._settle(now)

    def stop(self, port: int) -> None:
        now = self._advance()
        self._remove(port)
        self._settle(now)

    def sending(self, port: int) -> bool:
        self._pass_events()
        return any(sending.port == port for sending in self._sending)

    def counters(self, port: int) -> PortCounters:
        """Return the counts up to now. ``queue_full``: unsent frames, beyond what the generator can send."""
        self._advance()
        return self._ports[port].sent

    def link_up(self, port: int) -> bool:
        self._pass_events()
        return self._has_carrier(port)

    def _has_carrier(self, port: int) -> bool:
        return port not in self._unplugged and self._links.has_carrier(self._ports[port].name, self._last)

    def capture(self, port: int, limit: int) -> None:
        self._advance()
        self._ports[port].kept = KeptFrames(limit)

    def captured(self, port: int) -> tuple[CapturedFrame, ...]:
        self._advance()
        return self._ports[port].kept.take(port)

    def utilisation(self) -> float:
        """Return the CPU per cent since the last call, by the busiest port's share of the ceiling; above it 100."""
        now = self._advance()
        sent = [8 * (row.obytes + OVERHEAD * row.opackets) for row in (port.sent for port in self._ports)]
        (before, then), self._used = self._used, (now, sent)
        above, self._was_above = self._was_above, self._above_ceiling
        if now <= before:
            return 0.0
        used = max((new - old) / limit for new, old, limit in zip(sent, then, self._limits, strict=True))
        share = min(1.0, used / (now - before))
        return 100.0 if above else 100 * CPU_AT_CEILING * share

    def flow_counters(self, group: int) -> FlowCounters:
        self._advance()
        return self._groups.flow_counters(group)

    def latency_counters(self, group: int) -> LatencyCounters:
        self._advance()
        return self._groups.latency_counters(group)

    def forget(self, group: int) -> None:
        self._advance()
        self._groups.forget(group)

    def answers(self, port: int, address: str) -> bool | None:
        self._advance()
        return owns_address(self._in_force, self._ports[port].name, address)

    def set_promiscuous(self, port: int, enabled: bool) -> None:
        self._advance()
        self._ports[port].promiscuous = enabled

    def close(self) -> None:
        for port in range(len(self._ports)):
            self.stop(port)

    # -- the router

    def state(self) -> RouterState:
        """Return the router as it is now."""
        now = self._advance()
        self._work()
        software = self._platform.software[self._software]
        interfaces = tuple(
            port.interface._replace(link_up=number not in self._unplugged and self._links.is_seen(port.name, now))
            for number, port in enumerate(self._ports)
        )
        return RouterState(
            software=software.shell,
            version=software.version,
            hostname=self._platform.platform,
            uptime=now - self._begin,
            since_clear=now - self._cleared,
            clock_hz=self._noiseless.clock_hz,
            interfaces=interfaces,
            threads=self._telemetry.threads(software.interfaces, software.shell),
            configuration=self._configuration,
        )

    def configure(self, configuration: RouterConfiguration) -> None:
        """Replace the whole configuration. Raises ValueError with a sentence."""
        now = self._advance()
        check_names(configuration, self._numbers)
        Fib(configuration)  # refuses addresses that are none
        self._configuration = configuration
        self._links.configured(configuration.up, now)
        self._enforce(now)
        self._settle(now)

    def _enforce(self, now: float) -> None:
        """Let frames see the configuration, as far as links are there; :meth:`_settle` must follow."""
        configuration = self._in_force = self._links.in_force(self._configuration, bool(self._unplugged), now)
        self._fib = Fib(configuration, self._features)
        self._noiseless = self._set_up.get(frozenset(configuration.done), self._plain)
        self._telemetry.use(self._noiseless)
        self._noise.cool_down()
        self._parts.clear()
        self._frames.clear()
        for sending in self._sending:
            sending.parts = self._parts_of(sending.traffic)

    def clear(self) -> None:
        """``clear runtime``: zeroes nodes and busy times, not the interfaces' counts."""
        self._cleared = self._advance()
        self._work()
        self._telemetry.clear()

    # -- time

    def _advance(self) -> float:
        """Bring all counts up to now, event by event; returns now."""
        if (now := self._pass_events()) > self._last:
            self._count(now)
        return now

    def _pass_events(self) -> float:
        """Let happen what is due by now; returns now."""
        now = max(self._last, self._clock.now() if self._held is None else self._held)
        while (event := self._next_event()) <= now:
            self._count(max(event, self._last))
            self._sending = [sending for sending in self._sending if sending.over > event]
            self._happen(max(event, self._last))
            self._settle(max(event, self._last))
        return now

    def until_change(self) -> float:
        now = self._pass_events()
        return max(TICK / 4, min(1.0, self._next_event() - now) / self._clock.speed)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        outer, self._held = self._held, self._pass_events()
        try:
            yield
        finally:
            self._held = outer

    def _happen(self, moment: float) -> None:
        """Do what is due at *moment*, up to which frames are counted; :meth:`_settle` follows."""
        if self._links.next_change <= moment:
            self._links.settle(moment)
            self._enforce(moment)

    def _next_event(self) -> float:
        if self._change is None:
            # once after each change: a reading meanwhile moves no moment
            self._change = min(
                self._last + min(self._noise.next_change(self._offered), self._rings.next_change()),
                self._links.next_change,
                *(sending.over for sending in self._sending),
            )
        return self._change

    def _work(self) -> None:
        """Add what the workers did since the last change."""
        self._telemetry.add(self._forwarding, self._last - self._settled)
        self._settled = self._last

    def _count(self, now: float) -> None:
        self._noise.advance(now - self._last, self._offered)
        released = self._rings.advance(now - self._last)
        self._before, self._last = self._last, now
        for held in self._held_frames:
            if came := held.due(now):
                self._arrive(came, held.traffic, held.delay, self._groups.version(held.traffic.group) == held.version)
        self._held_frames = [held for held in self._held_frames if held.came < held.row.frames]
        for row in released:
            self._forward_released(row)
        for sending in self._sending:
            unsent = sending.unsent
            new = sending.advance(now)
            if new.offered or sending.unsent > unsent:
                late = self._rings.put(sending, new.held)  # found no room in the ring
                lost = new._replace(missed=new.missed + late, held=new.held - late) if late else new
                self._record(sending, lost, sending.unsent - unsent)

    def _record(self, sending: Sending, new: StreamCounts, unsent: int) -> None:
        self._ports[sending.port].enter(new, sending.size, unsent)
        if new.tx_dropped:
            # the sending ring that most of its frames go to is full
            shares = {part.exit: part.share for part in sending.parts if part.exit is not None}
            port = self._ports[max(shares, key=shares.__getitem__)]
            port.interface = port.interface._replace(tx_dropped=port.interface.tx_dropped + new.tx_dropped)
        self._leave(sending, new.exits, new.offered, new.offered - new.held)

    def _forward_released(self, row: ReleasedFrames) -> None:
        sending = row.sending
        if row.exit is None:
            self._ports[sending.port].enter(StreamCounts(no_route=row.frames), sending.size, 0)
            return
        late = delay_of_released(self._noiseless, row)
        self._leave(sending, ((row.exit, row.frames),), 0, row.frames, late)

    def _leave(
        self, sending: Sending, exits: Iterable[tuple[int, int]], sent: int, ended: int, delay: Delay | None = None
    ) -> None:
        """Let those of *ended* frames of *sending* leave that go by *exits*, (port, frames); *sent*: now or earlier."""
        numbers = range(sending.left, sending.left + ended)
        sending.left += ended
        leaving, traffic = self._leaving(sending, exits, numbers), sending.traffic
        usual = (delay or self._delay(sending)) if traffic.group else Delay(0.0, 0.0)
        never = ended - sum(row.frames for row in leaving if row.is_known)
        self._groups.record(sending.port, traffic, sending.size, sent, {}, usual, never)
        for row in leaving:
            if row.hold:
                later = usual._replace(least=usual.least + 1e6 * row.hold, most=usual.most + 1e6 * row.hold)
                self._held_frames.append(HeldFrames(row, traffic, later, self._groups.version(traffic.group)))
            else:
                self._arrive(row, traffic, usual)

    def _arrive(self, row: LeavingFrames, traffic: StreamTraffic, delay: Delay, is_known: bool = True) -> None:
        """Let *row* come to the generator; *is_known*: and to the packet group of *traffic*."""
        if self._ports[row.exit].receive(row) and is_known and row.is_known:
            late, came = row.frames if row.hold else 0, {row.exit: row.frames}
            self._groups.record(row.exit, traffic, row.size, 0, came, delay, row.copies, row.copies, late)

    def _leaving(self, sending: Sending, exits: Iterable[tuple[int, int]], numbers: range) -> list[LeavingFrames]:
        span, known = (numbers, self._before, self._last), partial(self._made, sending, self._fib)
        stream, size = (sending.port, sending.traffic.stream_id), sending.size
        return [LeavingFrames(port, stream, frames, size, *span, partial(known, port)) for port, frames in exits]

    def _made(self, sending: Sending, fib: Fib, port: int, number: int) -> Sequence[bytes]:
        """Return :meth:`_sent` of frame *number*; those that come again are made once."""
        if not sending.period:
            return self._sent(sending.traffic, fib, port, number)
        place = fib, port, number % sending.period
        if place not in sending.made:
            sending.made[place] = self._sent(sending.traffic, *place)
        return sending.made[place]

    def _sent(self, traffic: StreamTraffic, fib: Fib, port: int, number: int) -> Sequence[bytes]:
        """Return frame *number* of *traffic* as it leaves for *port*; () if it does not."""
        return egress_frame(traffic, fib, self._ports[port].name, self._ports[port].router_mac, number)

    @property
    def _limits(self) -> list[float]:
        """The most that the generator sends from each port, L1 bit/s."""
        return [self._noiseless.ceiling * port.interface.speed_bps for port in self._ports]

    def _settle(self, now: float) -> None:
        """Compute what is sent and forwarded from *now* on."""
        self._change = None
        self._work()
        self._delays.clear()
        limits, asked = self._limits, [0.0] * len(self._ports)
        shares = [self._shares(port) for port in range(len(self._ports))]
        for sending in self._sending:
            wanted, sent = shares[sending.port]
            asked[sending.port] += sending.traffic.pps * wanted * sent * l1_bits(sending.size)
        self._above_ceiling = any(bps > limit * _ROUNDING for bps, limit in zip(asked, limits, strict=True))
        self._was_above |= self._above_ceiling
        for sending in self._sending:
            limit, bps = limits[sending.port], asked[sending.port]
            scale = limit / bps if bps > limit * _ROUNDING else 1.0
            wanted, sent = shares[sending.port]
            pps = sending.traffic.pps * wanted
            sending.rate(now, pps, pps * sent * scale)
        up = {self._numbers[name] for name in self._in_force.up}
        entering = [sending for sending in self._sending if sending.port in up]
        self._offered, self._model = sum(row.pps for row in entering), self._noise.apply(self._noiseless)
        if self._noise.in_burst:
            entering = []
        self._entering = {sending: number for number, sending in enumerate(entering)}
        self._loads = [StreamLoad(row.port, row.pps, row.size, row.parts) for row in entering]
        self._forwarding = self._rings.settle(self._model, forward(self._model, self._loads), self._loads, entering)
        for sending, fate in zip(entering, self._forwarding.fates, strict=True):
            sending.fate(fate)
        for sending in self._sending:
            if sending not in self._entering:
                sending.fate(Fate(1.0, 0.0, 0.0, {}))

    def _shares(self, port: int) -> tuple[float, float]:
        """Return the share of its streams' rates that *port* tries to send, and the share of that which has room."""
        return 1.0, 1.0

    def _delay(self, sending: Sending) -> Delay:
        # none of its frames enters the router
        if (number := self._entering.get(sending)) is None:
            return Delay(0.0, 0.0)
        if (waiting := self._rings.waiting) or number not in self._delays:
            self._delays[number] = delay_of(self._model, self._forwarding, self._loads, number, waiting)
        return self._delays[number]

    def _remove(self, port: int) -> None:
        self._sending = [sending for sending in self._sending if sending.port != port]

    def _route(self, flow: Flow | None) -> int | None:
        return self._numbers[exit_.interface] if (exit_ := self._fib.exit_for(flow)) else None

    def _parts_of(self, stream: StreamTraffic) -> tuple[StreamPart, ...]:
        key = (stream.frame[:HEADERS], len(stream.frame), stream.variables)
        if key not in self._parts:
            if len(self._parts) > 256:
                self._parts.clear()
            self._parts[key] = parts_of(self._noiseless, stream, self._route)
        return self._parts[key]


GRAPH = {
    "ethernet-input": 0.12,
    "ip4-input-no-checksum": 0.13,
    "ip4-lookup": 0.18,
    "ip4-load-balance": 0.10,
    "ip4-rewrite": 0.19,
    "-output": 0.06,
    "-tx": 0.22,
}
"""The nodes after the input node that a forwarded frame visits, with their shares of the cycles (together 1)."""


@dataclass(slots=True)
class _Core:
    frames: float = 0.0
    calls: float = 0.0
    cycles: float = 0.0
    busy: float = 0.0
    idle: float = 0.0
    exits: defaultdict[int | None, float] = field(default_factory=lambda: defaultdict(float))
    calls_of: defaultdict[int | None, float] = field(default_factory=lambda: defaultdict(float))
    sent: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))


class ModelTelemetry:
    """Sums over time of what the workers of *model* did: VPP's nodes, or frames and busy time of a kernel's CPUs."""

    def __init__(self, model: RouterModel) -> None:
        self._model = model
        self._seconds = 0.0
        self._cores = [_Core() for _ in range(model.workers)]

    def use(self, model: RouterModel) -> None:
        """Use *model* from now on, which has as many workers."""
        self._model = model

    def clear(self) -> None:
        """Set all sums to zero."""
        self._seconds = 0.0
        self._cores = [_Core() for _ in range(self._model.workers)]

    def add(self, forwarding: Forwarding, seconds: float) -> None:
        """Add *seconds* in which the workers did as *forwarding* says."""
        self._seconds += seconds
        for core, load in zip(self._cores, forwarding.workers, strict=False):
            core.frames += load.pps * seconds
            core.calls += load.pps / load.vector * seconds
            core.cycles += load.pps * load.cycles * seconds
            # each grows by itself: a difference of two sums may fall by its rounding
            core.busy += min(1.0, load.busy) * seconds
            core.idle += max(0.0, 1.0 - load.busy) * seconds
            for direction, pps in load.exits.items():
                core.exits[direction] += pps * seconds
                core.calls_of[direction] += pps / load.vector * seconds
            for out, pps in load.sent.items():
                core.sent[out] += pps * seconds

    def threads(self, interfaces: Sequence[str], kind: str) -> tuple[ThreadState, ...]:
        """Return the workers' threads for software of *kind* (``vpp``, ``linux``, ``freebsd``)."""
        vectors = self._model.software.vectors
        threads = []
        for number, (core, queues) in enumerate(zip(self._cores, placement(self._model, len(interfaces)), strict=True)):
            named = tuple((interfaces[port], queue) for port, queue in queues)
            nodes = self._nodes(core, interfaces, vectors) if vectors and named else ()
            name, lcore = (f"vpp_wk_{number}", number + 1) if kind == "vpp" else (f"cpu{number}", number)
            threads.append(ThreadState(name, lcore, named, nodes, round(core.frames), core.busy, core.idle))
        return tuple(threads)

    def _nodes(self, core: _Core, interfaces: Sequence[str], vectors: Vectors) -> tuple[NodeState, ...]:
        cost, clock = self._model.software.cost, self._model.clock_hz
        frames = round(core.frames)
        own_input = cost.input * core.frames
        graph = max(0.0, core.cycles - own_input)
        # a polling worker never rests: the time that the graph leaves goes into looks at empty queues
        idle = max(0.0, clock * self._seconds - core.cycles)
        looks = idle / (vectors.poll + vectors.loop)
        polls = round(core.calls + looks)
        nodes = [NodeState(vectors.input, "polling", polls, frames, own_input + looks * vectors.poll)]
        if not frames:
            return tuple(nodes)
        for name, share in GRAPH.items():
            if not name.startswith("-"):
                nodes.append(NodeState(name, "active", max(1, round(core.calls)), frames, share * graph))
                continue
            for direction, handed in core.exits.items():
                if direction is not None and round(handed):
                    calls = max(1, round(core.calls_of[direction]))
                    clocks = share * graph * handed / core.frames
                    # what finds no free slot in the sending ring is dropped in the last node
                    vectors_of = round(core.sent[direction] if name == "-tx" else handed)
                    nodes.append(NodeState(interfaces[direction] + name, "active", calls, vectors_of, clocks))
        unrouted = core.exits[None]
        if round(unrouted):
            calls = max(1, round(core.calls_of[None]))
            nodes.append(NodeState("error-drop", "active", calls, round(unrouted), 0.0))
        return tuple(nodes)
