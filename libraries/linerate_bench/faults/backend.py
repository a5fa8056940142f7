"""A modelled bench on which things go wrong when asked to: wraps the model, which stays faultless.

Everything that a fault changes lies between the model and whoever asks: a link that is down is a router without
interfaces, frames that are not sent are lower rates, counters are read through an offset. A fault begins and ends at
its exact moment of the bench's clock, however seldom anybody asks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from linerate.simulation.faults import InjectedFault

from ..backend import CapturedFrame, FlowCounters, LatencyCounters, PortCounters, PortDescription, StreamTraffic
from ..backend import Utilisation as Used
from ..model.lossy import LossyModel
from ..state import InterfaceState, RouterConfiguration, RouterState
from .disorder import Disorder
from .notices import Notice
from .readings import FRAMES, Readings
from .schedule import FaultSchedule, HeldClock
from .shares import Key, Shares
from .survival import COUNTS, Remains, base_of

UPTIME = 86_400.0
"""Seconds that the router is up when the bench begins: a reboot is then a step that nobody takes for a slow clock."""


class FaultyBackend:
    """*make* builds the model on the clock that it is given; *source*: the bench's clock in s.

    It runs *speed* times as fast as the wall's. *remains*: what an earlier server left of its router, :mod:`.survival`.
    """

    def __init__(
        self,
        make: Callable[[HeldClock], LossyModel],
        source: Callable[[], float],
        faults: Iterable[InjectedFault] = (),
        speed: float = 1.0,
        remains: Mapping[str, Any] | None = None,
    ) -> None:
        self._source, self._clock, self._speed = source, HeldClock(source), speed
        self._model = make(self._clock)
        self._schedule = FaultSchedule()
        self._notices: list[Notice] = []
        self._down: list[int] = []
        self._booting = 0
        self._unsent: list[InjectedFault] = []
        self._stalled: list[int] = []
        self._losing: list[InjectedFault] = []
        self._shares = Shares(self._counted)
        self._disorder = Disorder(self._model, self._shares)
        self._readings = Readings()
        self._base: dict[str, InterfaceState] = {}
        self._booted = source() - UPTIME
        self._traffic: dict[int, tuple[StreamTraffic, ...]] = {}
        self._ssh: list[dict[str, Any]] = []
        self._hold: float | None = None
        self._drop = False
        self._configuration = RouterConfiguration()
        if remains:
            found = Remains.from_json(remains)
            self._booted = source() - found.uptime(speed)
            self._base = base_of(found, self._model.state())
            self.configure(found.configuration)
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

    def notices(self) -> tuple[Notice, ...]:
        """What the server is to do since it last asked."""
        self._advance()
        found, self._notices = tuple(self._notices), []
        return found

    def hold(self) -> float | None:
        """Seconds of wall time that the answer just made is to be kept back; None: not at all. Told once."""
        self._advance()
        found, self._hold = self._hold, None
        return found

    def drop(self) -> bool:
        """Whether the answer just made is never to be sent. Told once."""
        found, self._drop = self._drop, False
        return found

    def at_once(self) -> AbstractContextManager[None]:
        """What is read in here is of one moment."""
        return self._clock.held(self._clock.now())

    def shown(self, groups: list[int]) -> list[int]:
        """Those of the packet *groups* asked for that an answer tells of."""
        self._advance()
        return self._disorder.shown(groups)

    def ssh(self) -> dict[str, Any]:
        """What befalls the SSH command that has just come: {}, {"cut": true} or {"freeze": s of wall time}."""
        self._advance()
        if self._booting:
            return {"cut": True}
        return self._ssh.pop(0) if self._ssh else {}

    # -- what happens

    def _advance(self) -> None:
        while (due := self._schedule.pop(self._source())) is not None:
            moment, fault, begins = due
            with self._clock.held(moment):
                self._begin(fault) if begins else self._end(fault)

    def _begin(self, fault: InjectedFault) -> None:
        every = [port.index for port in self.ports]
        match fault.kind:
            case "link flap":
                self._links(self._hit(fault), up=False)
            case "router reboot":
                self._booting += 1
                # a router that boots loses what nobody had saved, and whoever was logged in
                self._configuration = RouterConfiguration()
                self._ssh.append({"cut": True})
                self._links(every, up=False)
            case "ssh cut":
                self._ssh.append({"cut": True})
            case "ssh freeze":
                self._ssh.append({"freeze": fault.hold})
            case "ports stolen":
                self._notices += [Notice("steal", index) for index in every]
            case "server end":
                self._notices.append(Notice("end"))
            case "server restart":
                self._notices.append(
                    Notice("restart", after=(fault.lasts or 0.0) / self._speed, specification=self._legacy())
                )
            case "late reply":
                self._hold = fault.hold
            case "lost reply":
                self._drop = True
            case "stalled generator":
                self._stalled += self._hit(fault)
                self._rates()
            case "one-way loss":
                self._losing.append(fault)
                self._lose()
            case "reordered frames" | "flow stats dropped":
                self._disorder.begin(fault)
            case "unsent frames":
                share = fault.share or 0.0
                self._unsent.append(fault)
                self._meter(fault, "opackets", share / (1 - share))
                self._rates()
            case "duplicated frames":
                self._meter(fault, "ipackets", fault.share or 0.0)
                self._disorder.begin(fault)
            case "counter reset" if fault.of == "router":
                self._base = {row.name: row for row in self._model.state().interfaces}
            case "counter reset":
                for index in self._hit(fault):
                    self._readings.reset(index, self._plain(index))
            case "counter wrap":
                for index in every:
                    self._readings.wrap(index, self._plain(index), fault.frames or 1)

    def _end(self, fault: InjectedFault) -> None:
        self._shares.end(fault)
        every = [port.index for port in self.ports]
        match fault.kind:
            case "link flap":
                self._links(self._hit(fault), up=True)
            case "router reboot":
                self._booting -= 1
                self._booted = self._clock.now()
                self._base = {row.name: row for row in self._model.state().interfaces}
                self._links(every, up=True)
            case "unsent frames":
                self._unsent.remove(fault)
                self._rates()
            case "stalled generator":
                for port in self._hit(fault):
                    self._stalled.remove(port)
                self._rates()
            case "one-way loss":
                self._losing.remove(fault)
                self._lose()
            case "ports stolen":
                self._notices += [Notice("free", index) for index in every]
            case "duplicated frames" | "reordered frames" | "flow stats dropped":
                self._disorder.end(fault)

    def _hit(self, fault: InjectedFault) -> list[int]:
        return [port.index for port in self.ports if fault.port in (None, port.index)]

    def _links(self, ports: Iterable[int], up: bool) -> None:
        for port in ports:
            self._down.remove(port) if up else self._down.append(port)
            self._notices.append(Notice("link", port, self.link_up_now(port)))
        self._apply()

    def _apply(self) -> None:
        found = self._configuration
        self._model.configure(replace(found, up=()) if self._down else found)

    def _rates(self) -> None:
        for port, traffic in self._traffic.items():
            if self._model.sending(port):
                self._model.update(port, self._lower(port, traffic))

    def _lower(self, port: int, traffic: tuple[StreamTraffic, ...]) -> tuple[StreamTraffic, ...]:
        factor = 0.0 if port in self._stalled else _kept(self._unsent, port)
        return tuple(replace(stream, pps=stream.pps * factor) for stream in traffic)

    def _lose(self) -> None:
        for port in self.ports:
            router, cable = ([fault for fault in self._losing if fault.of == whose] for whose in ("router", "cable"))
            self._model.lose(port.index, 1 - _kept(router, port.index), 1 - _kept(cable, port.index))

    def _legacy(self) -> dict[str, Any]:
        """What the server that comes after this one is to be told."""
        left = [fault.model_dump(exclude_none=True) for fault in self._schedule.left(self._clock.now())]
        return {"faults": left, "remains": Remains.of(self._seen(), self._speed).to_json()}

    def _meter(self, fault: InjectedFault, name: str, share: float) -> None:
        for port in self.ports:
            self._shares.begin(fault, (name, port.index), share)

    def _counted(self, key: Key) -> int:
        name, number = key
        if name in FRAMES:
            return int(getattr(self._model.counters(number), name))
        return self._disorder.counted(number)

    def _plain(self, port: int) -> PortCounters:
        found = self._model.counters(port)
        twice = self._shares.of(("ipackets", port))
        size = found.ibytes // found.ipackets if found.ipackets else 0
        return replace(
            found,
            ipackets=found.ipackets + twice,
            ibytes=found.ibytes + twice * size,
            queue_full=found.queue_full + self._shares.of(("opackets", port)),
        )

    # -- Backend

    @property
    def ports(self) -> tuple[PortDescription, ...]:
        """The model's."""
        return self._model.ports

    def start(self, traffic: Mapping[int, tuple[StreamTraffic, ...]], duration: float | None) -> None:
        """Begin to send, and what was to go wrong with this start."""
        self._advance()
        now = self._clock.now()
        self._disorder.met(traffic)
        with self._clock.held(now):
            self._model.start({port: self._lower(port, rows) for port, rows in traffic.items()}, duration)
        self._traffic.update(traffic)
        self._schedule.started(now)
        self._advance()

    def update(self, port: int, streams: tuple[StreamTraffic, ...]) -> None:
        """New rates."""
        self._advance()
        self._model.update(port, self._lower(port, streams))
        self._traffic[port] = streams

    def pause(self, port: int) -> None:
        """As the model."""
        self._advance()
        self._model.pause(port)

    def resume(self, port: int) -> None:
        """As the model."""
        self._advance()
        self._model.resume(port)

    def stop(self, port: int) -> None:
        """As the model."""
        self._advance()
        self._model.stop(port)
        self._traffic.pop(port, None)

    def sending(self, port: int) -> bool:
        """As the model."""
        self._advance()
        return self._model.sending(port)

    def counters(self, port: int) -> PortCounters:
        """The model's, as the faults let them be seen."""
        self._advance()
        return self._readings.seen(port, self._plain(port))

    def link_up(self, port: int) -> bool:
        """Whether the port has carrier."""
        self._advance()
        return self.link_up_now(port)

    def link_up_now(self, port: int) -> bool:
        """The same, without looking at the clock."""
        return port not in self._down and self._model.link_up(port)

    def capture(self, port: int, limit: int) -> None:
        """As the model."""
        self._advance()
        self._model.capture(port, limit)

    def captured(self, port: int) -> tuple[CapturedFrame, ...]:
        """As the model."""
        self._advance()
        return self._model.captured(port)

    def utilisation(self) -> Used:
        """As the model."""
        self._advance()
        return self._model.utilisation()

    def flow_counters(self, group: int) -> FlowCounters:
        """The model's, as the faults let them be seen."""
        self._advance()
        return self._disorder.flow_counters(group)

    def latency_counters(self, group: int) -> LatencyCounters:
        """The model's, as the faults let them be seen."""
        self._advance()
        return self._disorder.latency_counters(group)

    def forget(self, group: int) -> None:
        """As the model."""
        self._advance()
        self._disorder.forget(group)

    def answers(self, port: int, address: str) -> bool | None:
        """As the model; nobody behind a link that is down."""
        self._advance()
        return self._model.answers(port, address)

    def close(self) -> None:
        """As the model."""
        self._model.close()

    # -- the router, for its shells

    def state(self) -> RouterState:
        """The model's router: links, counters and uptime as the faults left them."""
        self._advance()
        return self._seen()

    def _seen(self) -> RouterState:
        found = self._model.state()
        rows = []
        for index, row in enumerate(found.interfaces):
            base = self._base.get(row.name)
            since = {name: getattr(row, name) - getattr(base, name) for name in COUNTS} if base else {}
            rows.append(replace(row, link_up=row.link_up and index not in self._down, **since))
        return replace(
            found,
            interfaces=tuple(rows),
            configuration=self._configuration,
            uptime=self._clock.now() - self._booted,
        )

    def configure(self, configuration: RouterConfiguration) -> None:
        """Take over a whole configuration. Raises ValueError with a sentence."""
        self._advance()
        self._model.configure(configuration)
        self._configuration = configuration
        if self._down:
            self._apply()

    def clear(self) -> None:
        """``clear runtime``."""
        self._advance()
        self._model.clear()


def _kept(faults: Iterable[InjectedFault], port: int) -> float:
    """The share of *port*'s frames that *faults* leave."""
    return math.prod(1 - (fault.share or 0.0) for fault in faults if fault.port in (None, port))
