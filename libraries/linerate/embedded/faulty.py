"""A modelled bench on which things go wrong when asked to: wraps the model, which stays faultless.

Everything that a fault changes lies between the model and whoever asks: a link that is down is a router without
interfaces, frames that are not sent are lower rates, counters are read through an offset. A fault begins and ends at
its exact moment of the bench's clock, however seldom anybody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from .backend import CapturedFrame, FlowCounters, LatencyCounters, PortCounters, PortDescription, StreamTraffic
from .backend import Utilisation as Used
from .faults import Fault
from .model_backend import ModelBackend
from .schedule import HeldClock, Schedule
from .state import InterfaceState, RouterConfiguration, RouterState

UPTIME = 86_400.0
"""Seconds that the router is up when the bench begins: a reboot is then a step that nobody takes for a slow clock."""

WRAP = 2**32
THIEF = "somebody"
_FRAMES = ("opackets", "ipackets")
_ROUTER = ("rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "rx_missed", "no_route", "tx_dropped")


@dataclass(frozen=True, slots=True)
class Notice:
    """What the server has to do about a fault: tell of a ``link``, give ports away (``steal``), or ``end``."""

    what: Literal["link", "steal", "end"]
    port: int = 0
    up: bool = True


@dataclass(slots=True)
class _Meter:
    """Frames counted while a fault lasts, as a share of those that a port sends or receives."""

    fault: Fault
    port: int
    name: str
    share: float
    first: int


class FaultyBackend:
    """*make* builds the model on the clock that it is given; *source*: the bench's clock in s."""

    def __init__(
        self, make: Callable[[HeldClock], ModelBackend], source: Callable[[], float], faults: Iterable[Fault] = ()
    ) -> None:
        self._source, self._clock = source, HeldClock(source)
        self._model = make(self._clock)
        self._schedule = Schedule()
        self._notices: list[Notice] = []
        self._down: list[int] = []
        self._booting = 0
        self._unsent: list[Fault] = []
        self._meters: list[_Meter] = []
        self._extra: dict[tuple[int, str], int] = {}
        self._offsets: dict[tuple[int, str], int] = {}
        self._wraps = False
        self._base: dict[str, InterfaceState] = {}
        self._booted = source() - UPTIME
        self._traffic: dict[int, tuple[StreamTraffic, ...]] = {}
        self._ssh: list[dict[str, Any]] = []
        self._hold: float | None = None
        self._configuration = RouterConfiguration()
        self.cause(faults)

    def cause(self, faults: Iterable[Fault]) -> None:
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
            self._clock.hold(moment)
            try:
                self._begin(fault) if begins else self._end(fault)
            finally:
                self._clock.release()

    def _begin(self, fault: Fault) -> None:
        every = [port.index for port in self.ports]
        match fault.kind:
            case "link flap":
                self._links(every if fault.port is None else [fault.port], up=False)
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
            case "late reply":
                self._hold = fault.hold
            case "unsent frames":
                share = fault.share or 0.0
                self._unsent.append(fault)
                self._meter(fault, "opackets", share / (1 - share))
                self._rates()
            case "duplicated frames":
                self._meter(fault, "ipackets", fault.share or 0.0)
            case "counter reset" if fault.of == "router":
                self._base = {row.name: row for row in self._model.state().interfaces}
            case "counter reset":
                for index in every if fault.port is None else [fault.port]:
                    self._count_from(index, 0)
            case "counter wrap":
                self._wraps = True
                for index in every:
                    self._count_from(index, WRAP - (fault.frames or 1))

    def _end(self, fault: Fault) -> None:
        for meter in [row for row in self._meters if row.fault is fault]:
            self._extra[meter.port, meter.name] = self._extra_of(meter.port, meter.name)
            self._meters.remove(meter)
        match fault.kind:
            case "link flap":
                self._links([port.index for port in self.ports] if fault.port is None else [fault.port], up=True)
            case "router reboot":
                self._booting -= 1
                self._booted = self._clock.now()
                self._base = {row.name: row for row in self._model.state().interfaces}
                self._links([port.index for port in self.ports], up=True)
            case "unsent frames":
                self._unsent.remove(fault)
                self._rates()

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
                self._model.update(port, self._lower(traffic))

    def _lower(self, traffic: tuple[StreamTraffic, ...]) -> tuple[StreamTraffic, ...]:
        factor = 1.0
        for fault in self._unsent:
            factor *= 1 - (fault.share or 0.0)
        return tuple(replace(stream, pps=stream.pps * factor) for stream in traffic)

    def _meter(self, fault: Fault, name: str, share: float) -> None:
        for port in self.ports:
            key = port.index, name
            self._extra[key] = self._extra_of(*key)
            self._meters = [row for row in self._meters if (row.port, row.name) != key]
            first = getattr(self._model.counters(port.index), name)
            self._meters.append(_Meter(fault, port.index, name, share, first))

    def _extra_of(self, port: int, name: str) -> int:
        found = self._extra.get((port, name), 0)
        for meter in self._meters:
            if (meter.port, meter.name) == (port, name):
                found += int(meter.share * (getattr(self._model.counters(port), name) - meter.first))
        return found

    def _count_from(self, port: int, value: int) -> None:
        counted = self._plain(port)
        for name in _FRAMES:
            self._offsets[port, name] = value - getattr(counted, name)
        if not self._wraps:
            for name in ("obytes", "ibytes"):
                self._offsets[port, name] = value - getattr(counted, name)

    def _plain(self, port: int) -> PortCounters:
        found = self._model.counters(port)
        twice = self._extra_of(port, "ipackets")
        size = found.ibytes // found.ipackets if found.ipackets else 0
        return replace(
            found,
            ipackets=found.ipackets + twice,
            ibytes=found.ibytes + twice * size,
            queue_full=found.queue_full + self._extra_of(port, "opackets"),
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
        self._clock.hold(now)
        try:
            self._model.start({port: self._lower(rows) for port, rows in traffic.items()}, duration)
        finally:
            self._clock.release()
        self._traffic.update(traffic)
        self._schedule.started(now)
        self._advance()

    def update(self, port: int, streams: tuple[StreamTraffic, ...]) -> None:
        """New rates."""
        self._advance()
        self._model.update(port, self._lower(streams))
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
        found = self._plain(port)
        if not self._offsets:
            return found
        seen = {
            name: getattr(found, name) + self._offsets.get((port, name), 0) for name in (*_FRAMES, "obytes", "ibytes")
        }
        if self._wraps:
            seen |= {name: seen[name] % WRAP for name in _FRAMES}
        return replace(found, **seen)

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
        """As the model."""
        self._advance()
        return self._model.flow_counters(group)

    def latency_counters(self, group: int) -> LatencyCounters:
        """As the model."""
        self._advance()
        return self._model.latency_counters(group)

    def forget(self, group: int) -> None:
        """As the model."""
        self._model.forget(group)

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
        found = self._model.state()
        rows = []
        for index, row in enumerate(found.interfaces):
            base = self._base.get(row.name)
            since = {name: getattr(row, name) - getattr(base, name) for name in _ROUTER} if base else {}
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
