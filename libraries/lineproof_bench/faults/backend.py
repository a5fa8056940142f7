"""A modelled bench with faults on request: it wraps the model, which stays faultless.

A fault changes what passes between the model and its callers: a link that is down is a router without interfaces,
frames that are not sent are lower rates, counters are read through an offset. A fault begins and ends at its exact
moment of the bench's clock, however seldom the bench is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, TypeVar

from lineproof.simulation.faults import InjectedFault
from lineproof.simulation.habits import RouterHabits

from ..backend import (
    CapturedFrame,
    FlowCounters,
    LatencyCounters,
    PortCounters,
    PortDescription,
    ServerAction,
    StreamTraffic,
)
from ..model.injected_loss import LossyModel
from ..state import InterfaceState, RouterConfiguration, RouterState
from .added_frames import AddedFrames, CountKey, HelloFrames, PauseFrames
from .counter_readings import COUNTERS, FRAMES, CounterReadings, counter_base
from .fault_schedule import FaultSchedule, FreezableClock, share_left
from .group_faults import GroupFaults
from .link_habits import LinkHabits

UPTIME = 86_400.0
"""Seconds that the router is up when the bench begins: a reboot is then too large a step for a slow clock."""

P = ParamSpec("P")
R = TypeVar("R")


def of_model(method: Callable[Concatenate[LossyModel, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Return *method* of a faulty backend's model, called once the faults that are due have begun and ended."""

    def call(backend: FaultyBackend, /, *args: P.args, **kwargs: P.kwargs) -> R:
        backend._advance()
        return method(backend._model, *args, **kwargs)

    return call


class FaultyBackend:
    """*make_model* builds the model on the clock that it is given; *source* is the bench's clock in s.

    That clock runs *speed* times as fast as the wall's. *router*: as an earlier server left it that this one replaces.
    *habits*: of the router's links.
    """

    def __init__(
        self,
        make_model: Callable[[FreezableClock], LossyModel],
        source: Callable[[], float],
        faults: Iterable[InjectedFault] = (),
        speed: float = 1.0,
        router: RouterState | None = None,
        habits: RouterHabits | None = None,
    ) -> None:
        self._source, self._clock, self._speed = source, FreezableClock(source()), speed
        self._model = make_model(self._clock)
        self._schedule = FaultSchedule()
        self._actions: list[ServerAction] = []
        self._down: list[int] = []
        self._booting = 0
        self._active: list[InjectedFault] = []
        self._added = AddedFrames(self._count_of)
        self._hellos = HelloFrames(self._clock.now)
        self._pauses = PauseFrames(self._clock.now)
        self._groups = GroupFaults(self._model, self._added, lambda: self._active)
        self._readings = CounterReadings()
        self._base: dict[str, InterfaceState] = {}
        self._booted = source() - UPTIME
        self._traffic: dict[int, tuple[StreamTraffic, ...]] = {}
        self._ssh: list[dict[str, Any]] = []
        self._delay: float | None = None
        self._drop = False
        self._configuration = RouterConfiguration()
        self._names = [row.name for row in self._model.state().interfaces]
        self._links = LinkHabits(habits or RouterHabits(), source())
        if router:
            # on real hardware it is another machine, which goes on; its counts by thread and node begin at zero here,
            # as after ``clear runtime``
            self._booted = source() - router.uptime
            self._base = counter_base(router, self._model.state())
            self.configure(router.configuration)
        self.cause(faults)

    def cause(self, faults: Iterable[InjectedFault]) -> None:
        """Let these happen too. Raises ValueError for a port that is not there."""
        known, wanted = [port.index for port in self.ports], tuple(faults)
        for fault in wanted:
            if fault.port is not None and fault.port not in known:
                raise ValueError(f"fault '{fault.kind}': there is no port {fault.port}; known: {known}")
        self._schedule.arm(wanted, self._source())
        self._advance()

    # -- for the server and the shells

    def server_actions(self) -> tuple[ServerAction, ...]:
        """Return what the server has to do because of faults since the last call."""
        self._advance()
        found, self._actions = tuple(self._actions), []
        return found

    def reply_delay(self) -> float | None:
        """Seconds of wall time to delay the present reply, once; None: do not delay it."""
        self._advance()
        found, self._delay = self._delay, None
        return found

    def drops_reply(self) -> bool:
        """Return whether the present reply is not sent at all, once."""
        found, self._drop = self._drop, False
        return found

    def frozen(self) -> AbstractContextManager[None]:
        """Stop the bench's clock while the context is open."""
        return self._clock.frozen_at(self._clock.now())

    def reported_groups(self, groups: list[int]) -> list[int]:
        """Return those of the packet *groups* asked for that an answer reports."""
        self._advance()
        return self._groups.reported(groups)

    def ssh_fault(self) -> dict[str, Any]:
        """The fault of the SSH command that has just come: {}, {"cut": true} or {"freeze": s of wall time}."""
        self._advance()
        if self._booting:
            return {"cut": True}
        return self._ssh.pop(0) if self._ssh else {}

    # -- faults begin and end

    def _advance(self) -> None:
        now = self._source()
        while (due := self._schedule.pop(min(now, self._links.next_change))) or self._links.next_change <= now:
            moment = due[0] if due else self._links.next_change
            with self._clock.frozen_at(moment):
                if due:
                    self._begin(due[1]) if due[2] else self._end(due[1])
                else:
                    self._settle_links(moment)
        self._clock.reach(now)

    def _settle_links(self, moment: float) -> None:
        self._links.settle(moment)
        self._apply_configuration()
        self._actions += [ServerAction("link", port.index, self._has_carrier(port.index)) for port in self.ports]

    def _begin(self, fault: InjectedFault) -> None:
        self._pauses.begin(fault)
        self._active += [fault] if fault.lasts else []
        every = [port.index for port in self.ports]
        match fault.kind:
            case "link flap":
                self._set_links(self._ports_of(fault), up=False)
            case "router reboot":
                self._booting += 1
                # a router that boots loses its unsaved configuration and its logins
                self._configuration = RouterConfiguration()
                self._ssh.append({"cut": True})
                self._set_links(every, up=False)
            case "ssh cut":
                self._ssh.append({"cut": True})
            case "ssh freeze":
                self._ssh.append({"freeze": fault.hold})
            case "ports stolen":
                self._actions += [ServerAction("steal", index) for index in every]
            case "server end":
                self._actions.append(ServerAction("end"))
            case "server restart":
                left = tuple(self._schedule.left(self._clock.now()))
                self._actions.append(ServerAction("restart", after=(fault.lasts or 0.0) / self._speed, faults=left))
            case "late reply":
                self._delay = fault.hold
            case "lost reply":
                self._drop = True
            case "reordered frames" | "late frames":
                self._groups.begin(fault)
            case "foreign frames":
                self._hellos.begin(fault)
            case "unsent frames" | "pause frames" if fault.of != "generator":
                share = fault.share or 0.0
                self._begin_adding(fault, "opackets", share / (1 - share))
            case "duplicated frames":
                self._begin_adding(fault, "ipackets", fault.share or 0.0)
                self._groups.begin(fault)
            case "counter reset" if fault.of == "router":
                self._base = {row.name: row for row in self._model.state().interfaces}
            case "counter reset":
                for index in self._ports_of(fault):
                    self._readings.reset(index, self._with_added(index))
            case "neighbour lost":
                for port in self._ports_of(fault):
                    self._configuration = self._configuration.without_neighbours(self._names[port])
                self._apply_configuration()
            case "counter wrap":
                for index in every:
                    self._readings.wrap(index, self._with_added(index), fault.frames or 1)
        self._apply_active(fault)

    def _end(self, fault: InjectedFault) -> None:
        self._active = [row for row in self._active if row is not fault]
        self._added.end(fault)
        self._hellos.end(fault)
        self._pauses.end(fault)
        every = [port.index for port in self.ports]
        match fault.kind:
            case "link flap":
                self._set_links(self._ports_of(fault), up=True)
            case "router reboot":
                self._booting -= 1
                self._booted = self._clock.now()
                self._base = {row.name: row for row in self._model.state().interfaces}
                self._set_links(every, up=True)
            case "ports stolen":
                self._actions += [ServerAction("free", index) for index in every]
        self._apply_active(fault)

    def _apply_active(self, changed: InjectedFault) -> None:
        match changed.kind:
            case "unsent frames" | "pause frames" | "stalled generator":
                self._update_rates()
            case "one-way loss":
                self._update_losses()
            case "changed frames":
                self._model.lie(self._active_of("changed frames"))

    def _active_of(self, *kinds: str) -> list[InjectedFault]:
        return [fault for fault in self._active if fault.kind in kinds]

    def _ports_of(self, fault: InjectedFault) -> list[int]:
        return [port.index for port in self.ports if fault.port in (None, port.index)]

    def _set_links(self, ports: Iterable[int], up: bool) -> None:
        for port in ports:
            self._down.remove(port) if up else self._down.append(port)
            if up:
                self._links.restored([self._names[port]], self._clock.now())
            self._actions.append(ServerAction("link", port, self._has_carrier(port)))
        self._apply_configuration()

    def _apply_configuration(self) -> None:
        self._model.configure(self._links.forwarding(self._configuration, bool(self._down), self._clock.now()))

    def _update_rates(self) -> None:
        for port, traffic in self._traffic.items():
            if self._model.sending(port):
                self._model.update(port, self._reduced(port, traffic))

    def _reduced(self, port: int, traffic: tuple[StreamTraffic, ...]) -> tuple[StreamTraffic, ...]:
        slow = [row for row in self._active_of("unsent frames", "pause frames") if row.of != "generator"]
        stalled = any(row.port in (None, port) for row in self._active_of("stalled generator"))
        factor = 0.0 if stalled else share_left(slow, port)
        return tuple(replace(stream, pps=stream.pps * factor) for stream in traffic)

    def _update_losses(self) -> None:
        for port in self.ports:
            losing = self._active_of("one-way loss")
            router = [fault for fault in losing if fault.of == "router"]
            cable = [fault for fault in losing if fault.of != "router"]
            damages = any(fault.of == "damaged cable" and fault.port in (None, port.index) for fault in cable)
            lost = 1 - share_left(router, port.index), 1 - share_left(cable, port.index)
            self._model.lose(port.index, *lost, damages)

    def _begin_adding(self, fault: InjectedFault, name: str, share: float) -> None:
        for port in self.ports:
            self._added.begin(fault, (name, port.index), share)

    def _count_of(self, key: CountKey) -> int:
        name, number = key
        if name in FRAMES:
            return int(getattr(self._model.counters(number), name))
        return self._groups.counted(number)

    def _with_added(self, port: int) -> PortCounters:
        found = self._model.counters(port)
        duplicated = self._added.of(("ipackets", port))
        size = found.ibytes // found.ipackets if found.ipackets else 0
        hellos = self._hellos.at(port)
        return found._replace(
            ipackets=found.ipackets + duplicated + hellos,
            ibytes=found.ibytes + duplicated * size + 64 * hellos,
            multicasts=found.multicasts + hellos,
            queue_full=found.queue_full + self._added.of(("opackets", port)),
            **self._pauses.at(port, "generator"),
        )

    # -- Backend

    sending = of_model(LossyModel.sending)
    utilisation = of_model(LossyModel.utilisation)
    answers = of_model(LossyModel.answers)
    clear = of_model(LossyModel.clear)
    close = of_model(LossyModel.close)
    set_promiscuous = of_model(LossyModel.set_promiscuous)

    def capture(self, port: int, limit: int) -> None:
        """Capture as the model does, and what comes by itself."""
        self._advance()
        self._model.capture(port, limit)
        self._hellos.capture(port, limit)

    def captured(self, port: int) -> tuple[CapturedFrame, ...]:
        """Since :meth:`capture`, or the last call."""
        self._advance()
        return (*self._model.captured(port), *self._hellos.captured(port))

    @property
    def ports(self) -> tuple[PortDescription, ...]:
        """The model's."""
        return self._model.ports

    def start(self, traffic: Mapping[int, tuple[StreamTraffic, ...]], duration: float | None) -> None:
        """Begin to send, and begin the faults that wait for this start."""
        self._advance()
        now = self._clock.now()
        self._groups.expect(traffic)
        with self._clock.frozen_at(now):
            self._model.start({port: self._reduced(port, rows) for port, rows in traffic.items()}, duration)
        self._traffic.update(traffic)
        self._schedule.started(now)
        self._advance()

    def update(self, port: int, streams: tuple[StreamTraffic, ...]) -> None:
        """New rates."""
        self._advance()
        self._model.update(port, self._reduced(port, streams))
        self._traffic[port] = streams

    def stop(self, port: int) -> None:
        """Stop as the model does."""
        self._advance()
        self._model.stop(port)
        self._traffic.pop(port, None)

    def counters(self, port: int) -> PortCounters:
        """The model's, changed by the faults."""
        self._advance()
        return self._readings.read(port, self._with_added(port))

    def link_up(self, port: int) -> bool:
        """Return whether the port has carrier."""
        self._advance()
        return self._has_carrier(port)

    def _has_carrier(self, port: int) -> bool:
        """Return :meth:`link_up`, without looking at the clock."""
        there = self._links.has_carrier(self._names[port], self._clock.now())
        return there and port not in self._down and self._model.link_up(port)

    def flow_counters(self, group: int) -> FlowCounters:
        """The model's, changed by the faults."""
        self._advance()
        return self._groups.flow_counters(group)

    def latency_counters(self, group: int) -> LatencyCounters:
        """The model's, changed by the faults."""
        self._advance()
        return self._groups.latency_counters(group)

    def forget(self, group: int) -> None:
        """Forget as the model does."""
        self._advance()
        self._groups.forget(group)

    # -- the router, for its shells

    def state(self) -> RouterState:
        """The model's router with links, counters and uptime as the faults changed them."""
        self._advance()
        found = self._model.state()
        rows = []
        for index, row in enumerate(found.interfaces):
            base = self._base.get(row.name)
            since = {name: getattr(row, name) - getattr(base, name) for name in COUNTERS} if base else {}
            seen = self._links.is_seen(row.name, self._clock.now())
            now = since | self._pauses.at(index, "router")
            rows.append(row._replace(link_up=row.link_up and seen and index not in self._down, **now))
        uptime = self._clock.now() - self._booted
        return replace(found, interfaces=tuple(rows), configuration=self._configuration, uptime=uptime)

    def configure(self, configuration: RouterConfiguration) -> None:
        """Take over a whole configuration. Raises ValueError with a sentence."""
        self._advance()
        self._model.configure(configuration)
        self._configuration = configuration
        self._links.configured(configuration.up, self._clock.now())
        if self._down or not self._links.none:
            self._apply_configuration()
