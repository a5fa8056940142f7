"""The modelled bench with faults on request: each begins and ends at its exact moment of the bench's clock.

A link that is down is a router without interfaces, frames that are not sent are lower rates, counters are read through
an offset.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lineproof.platforms import Platform
from lineproof.simulation import InjectedFault
from lineproof.units import FCS

from ..backend import CapturedFrame, Clock, FlowCounters, LatencyCounters, PortCounters, ServerAction, StreamTraffic
from ..model.backend import DEFAULTS, ModelBackend, ModelSettings
from ..model.counting import Sending, StreamCounts
from ..model.forwarding import Fate
from ..model.ports import LeavingFrames, ModelPort
from ..model.routing import IPV4, fix_checksum, flow_of, forwarded_frame, frame_of, mac_bytes, spread, ttl_offset
from ..state import InterfaceState, RouterConfiguration, RouterState

UPTIME = 86_400.0
"""Seconds that the router is up when the bench begins: a reboot is then too large a step for a slow clock."""

HELLO = bytes.fromhex("0180c2000000 0200000000fe 0026 424203") + bytes(35 + 8)
"""A configuration message of spanning tree, from a bridge with the address 02:00:00:00:00:fe."""

EVERY = {"foreign frames": 2.0, "pause frames": 0.01}
"""Seconds between two of them. Hellos of spanning tree (IEEE 802.1D) come each 2 s; of 10 Gbit/s the longest pause
that one frame asks for is 3.4 ms (65 535 x 512 bit)."""

ROUTER_COUNTERS = (
    *("rx_packets", "rx_bytes", "tx_packets", "tx_bytes"),
    *("rx_missed", "rx_damaged", "no_route", "tx_dropped"),
)
WRAP = 2**32
_FRAMES, _BYTES = ("opackets", "ipackets"), ("obytes", "ibytes")
_OF_ARRIVED = ("reordered frames", "duplicated frames")
"""Faults of a share of the frames that arrive."""
_TINY = 1e-6
"""Frames: a sum of shares that is short of a whole frame by less is whole."""


class FaultyModel(ModelBackend):
    """The model, faultless until :meth:`cause` is called."""

    def __init__(self, platform: Platform, software: str, clock: Clock, settings: ModelSettings = DEFAULTS) -> None:
        super().__init__(platform, software, clock, settings)
        self._schedule = FaultSchedule()
        self._added: defaultdict[tuple[str, int, int], float] = defaultdict(float)
        """Kind of frames, their port or packet group, and how many come at once: how often these came."""
        self._actions: list[ServerAction] = []
        self._ssh: list[dict[str, Any]] = []
        self._reply_delay = 0.0
        self._booted = self._begin - UPTIME
        self._base: dict[str, InterfaceState] = {}
        """The counts that the router's counters of an interface begin at."""
        self._offsets: dict[int, PortCounters] = {}
        self._wraps = False
        self._hellos: dict[int, int] = {}
        """By port the foreign frames that were captured, or came before."""
        self._lies: dict[Sending, Lie] = {}
        self._cable_losses: dict[Sending, tuple[float, float]] = {}
        """By stream: the share of its missed frames that the cable lost, and the fraction of a frame carried on."""

    def cause(self, faults: Iterable[InjectedFault]) -> None:
        """Let these happen too. Raises ValueError for a port that is not there."""
        known, wanted = list(range(len(self._ports))), tuple(faults)
        for fault in wanted:
            if fault.port is not None and fault.port not in known:
                raise ValueError(f"fault '{fault.kind}': there is no port {fault.port}; known: {known}")
        self._schedule.arm(wanted, self._advance())
        self._change = None
        self._advance()

    def take_over(self, router: RouterState) -> None:
        """Go on with *router*, as an earlier server left it.

        On real hardware it is another machine; its counts by thread and node begin at zero here, as after ``clear
        runtime``.
        """
        self._booted = self._advance() - router.uptime
        self._base = {
            row.name: row._replace(**{name: -getattr(row, name) for name in ROUTER_COUNTERS})
            for row in router.interfaces
        }
        self.configure(router.configuration)

    # -- for the server and the shells

    def server_actions(self) -> tuple[ServerAction, ...]:
        self._pass_events()
        actions, self._actions = tuple(self._actions), []
        return actions

    def reply_delay(self) -> float:
        self._pass_events()
        delay, self._reply_delay = self._reply_delay, 0.0
        return delay

    def reported_groups(self, groups: list[int]) -> list[int]:
        self._pass_events()
        return {"nothing": [], "some": groups[::2]}.get(self._shows, groups)

    def ssh_fault(self) -> dict[str, Any]:
        """Return the fault of the SSH command that has just come: {}, {"cut": true} or {"freeze": s of wall time}."""
        self._pass_events()
        if self._active("router reboot"):
            return {"cut": True}
        return self._ssh.pop(0) if self._ssh else {}

    # -- faults begin and end

    def _next_event(self) -> float:
        if self._change is None:
            self._change = min(super()._next_event(), self._schedule.next_change)
        return self._change

    def _happen(self, moment: float) -> None:
        if self._links.next_change <= moment:
            super()._happen(moment)
            self._tell_links(range(len(self._ports)))
        while due := self._schedule.pop(moment):
            fault, begins = due
            self._begin_fault(fault) if begins else self._end_fault(fault)

    def _begin_fault(self, fault: InjectedFault) -> None:
        every, ports = range(len(self._ports)), self._ports_of(fault)
        match fault.kind:
            case "link flap":
                self._set_cables(ports, up=False)
            case "router reboot":
                # a router that boots loses its unsaved configuration and its logins
                self._configuration = RouterConfiguration()
                self._ssh.append({"cut": True})
                self._set_cables(every, up=False)
            case "ssh cut":
                self._ssh.append({"cut": True})
            case "ssh freeze":
                self._ssh.append({"freeze": fault.hold})
            case "ports stolen":
                self._actions += [ServerAction("steal", index) for index in every]
            case "server end":
                self._actions.append(ServerAction("end"))
            case "server restart":
                left = self._schedule.left(self._last)
                self._actions.append(ServerAction("restart", after=fault.lasts or 0.0, faults=left))
            case "late reply" | "lost reply":
                self._reply_delay = fault.hold or math.inf
            case "counter reset" if fault.of == "router":
                self._base = {port.name: port.interface for port in self._ports}
            case "counter reset" | "counter wrap":
                self._wraps |= fault.kind == "counter wrap"
                value = WRAP - (fault.frames or 1) if fault.kind == "counter wrap" else 0
                # as many frames were received and sent as the counters show, of 64 bytes at least
                shown = dict.fromkeys(_FRAMES, value) | dict.fromkeys(_BYTES, 64 * value)
                for index in ports:
                    counted = self._counted(index)._asdict()
                    self._offsets[index] = PortCounters(**{name: shown[name] - counted[name] for name in shown})
            case "neighbour lost":
                for index in ports:
                    self._configuration = self._configuration.without_neighbours(self._ports[index].name)
                self._enforce(self._last)

    def _end_fault(self, fault: InjectedFault) -> None:
        every = range(len(self._ports))
        match fault.kind:
            case "link flap":
                self._set_cables(self._ports_of(fault), up=True)
            case "router reboot":
                self._booted = self._last
                self._base = {port.name: port.interface for port in self._ports}
                self._set_cables(every, up=True)
            case "ports stolen":
                self._actions += [ServerAction("free", index) for index in every]

    def _active(self, kind: str, port: int | None = None) -> list[InjectedFault]:
        """Return the faults of *kind* that last; *port*: those that concern it."""
        return [row for row in self._schedule.active if row.kind == kind and (port is None or row.port in (None, port))]

    def _ports_of(self, fault: InjectedFault) -> list[int]:
        return [index for index in range(len(self._ports)) if fault.port in (None, index)]

    def _set_cables(self, ports: Iterable[int], up: bool) -> None:
        for port in ports:
            self._unplugged.remove(port) if up else self._unplugged.append(port)
            if up:
                self._links.restored(self._ports[port].name, self._last)
        self._tell_links(ports)
        self._enforce(self._last)

    def _tell_links(self, ports: Iterable[int]) -> None:
        self._actions += [ServerAction("link", port, self._has_carrier(port)) for port in ports]

    # -- what lasts changes what is sent and forwarded

    def start(self, traffic: Mapping[int, tuple[StreamTraffic, ...]], duration: float | None) -> None:
        """Begin to send, and begin the faults that wait for this start."""
        super().start(traffic, duration)
        self._schedule.started(self._last)
        self._change = None
        self._pass_events()

    def _shares(self, port: int) -> tuple[float, float]:
        slow = [*self._active("unsent frames", port), *self._active("pause frames", port)]
        return float(not self._active("stalled generator", port)), _left(row for row in slow if row.of != "generator")

    def _settle(self, now: float) -> None:
        super()._settle(now)
        before, self._cable_losses = self._cable_losses, {}
        for port in range(len(self._ports)) if self._active("one-way loss") else ():
            losing = self._active("one-way loss", port)
            kept = _left(row for row in losing if row.of == "router")
            cable = 1 - _left(row for row in losing if row.of != "router")
            self._rings.reduce(port, kept * (1 - cable))
            for sending, number in self._entering.items():
                if sending.port == port:
                    fate = _with_loss(self._forwarding.fates[number], kept * (1 - cable))
                    sending.fate(fate)
                    if cable and fate.missed:
                        self._cable_losses[sending] = (cable / fate.missed, before.get(sending, (0.0, 0.0))[1])
        self._settle_lies()

    def _record(self, sending: Sending, new: StreamCounts, unsent: int) -> None:
        super()._record(sending, new, unsent)
        if sending in self._cable_losses:
            # the router's interface counts its losses as missed; those of the cable nobody counts, unless damaged
            share, carry = self._cable_losses[sending]
            exact = share * new.missed + carry
            unseen = min(new.missed, math.floor(exact + _TINY))
            self._cable_losses[sending] = (share, max(0.0, exact - unseen))
            port = self._ports[sending.port]
            damages = any(row.of == "damaged cable" for row in self._active("one-way loss", sending.port))
            port.interface = port.interface._replace(
                rx_missed=port.interface.rx_missed - unseen, rx_damaged=port.interface.rx_damaged + unseen * damages
            )

    def _settle_lies(self) -> None:
        former, lies = self._lies, self._active("changed frames")
        # frames that wait in a ring when their sending ends are changed, too
        self._lies = {row: lie for row, lie in former.items() if lies and row not in self._sending}
        for sending in self._sending if lies else ():
            own = [row for row in self._sending if row.port == sending.port]
            load = sum(row.pps for row in own)
            if fault := next((row for row in lies[::-1] if Lie.concerns(row, sending, load)), None):
                lie = former.get(sending)
                if lie is None or lie.fault is not fault:
                    lie = Lie(fault, self._ports[sending.port], sending, own[0].traffic)
                self._lies[sending] = lie

    def _leaving(self, sending: Sending, exits: Iterable[tuple[int, int]], numbers: range) -> list[LeavingFrames]:
        rows = super()._leaving(sending, exits, numbers)
        if lie := self._lies.get(sending):
            rows = [part for row in rows for part in lie.divided(row)]
        return rows

    # -- what is counted

    def _count(self, now: float) -> None:
        active, seconds = self._schedule.active, now - self._last
        before = self._arrived() if any(fault.kind in _OF_ARRIVED for fault in active) else {}
        super()._count(now)
        for fault in active:
            if fault.kind in _OF_ARRIVED:
                for (place, number), frames in self._arrived().items():
                    new = frames - before.get((place, number), 0)
                    self._added[f"{fault.kind} of a {place}", number, 1] += (fault.share or 0.0) * new
            elif fault.kind in EVERY:
                kind = f"pauses of the {fault.of}" if fault.kind == "pause frames" else "hellos"
                for port in self._ports_of(fault):
                    self._added[kind, port, fault.frames or 1] += seconds / EVERY[fault.kind]

    def _arrived(self) -> dict[tuple[str, int], int]:
        """Return the frames that arrived of each packet group, and at each port."""
        groups = {("group", number): frames for number, frames in self._groups.arrived().items()}
        return {**groups, **{("port", index): port.sent.ipackets for index, port in enumerate(self._ports)}}

    def _added_to(self, kind: str, number: int) -> int:
        """Return the frames of *kind* that were added to this port or group."""
        rows = (
            (at_once, times) for (name, own, at_once), times in self._added.items() if (name, own) == (kind, number)
        )
        return sum(at_once * math.floor(times + _TINY) for at_once, times in rows)

    def counters(self, port: int) -> PortCounters:
        """Return the model's counts, changed by the faults."""
        self._advance()
        counted, offset = self._counted(port), self._offsets.get(port)
        if offset is None and not self._wraps:
            return counted
        shown = {name: getattr(counted, name) + getattr(offset or PortCounters(), name) for name in (*_FRAMES, *_BYTES)}
        if self._wraps:
            shown |= {name: shown[name] % WRAP for name in _FRAMES}
        return counted._replace(**shown)

    def _counted(self, port: int) -> PortCounters:
        counted = self._ports[port].sent
        if not self._added:
            return counted
        twice, hellos = self._added_to("duplicated frames of a port", port), self._added_to("hellos", port)
        size = counted.ibytes // counted.ipackets if counted.ipackets else 0
        return counted._replace(
            ipackets=counted.ipackets + twice + hellos,
            ibytes=counted.ibytes + twice * size + 64 * hellos,
            multicasts=counted.multicasts + hellos,
            **self._pauses(port, "router", "generator"),
        )

    def _pauses(self, port: int, received: str, sent: str) -> dict[str, int]:
        """Pause frames at *port* as an end of its cable counts them, by who sent them."""
        of = {"pauses_received": received, "pauses_sent": sent}
        return {name: self._added_to(f"pauses of the {who}", port) for name, who in of.items()}

    def capture(self, port: int, limit: int) -> None:
        """Capture as the model does, and what comes by itself."""
        super().capture(port, limit)
        self._hellos[port] = self._added_to("hellos", port)

    def captured(self, port: int) -> tuple[CapturedFrame, ...]:
        """Return the frames since :meth:`capture`, or the last call."""
        frames, came = super().captured(port), self._added_to("hellos", port)
        new = min(self._ports[port].kept.limit, came - self._hellos.get(port, 0))
        self._hellos[port] = came
        return (*frames, *(CapturedFrame(port, HELLO, self._last),) * new)

    @property
    def _shows(self) -> str:
        """Return what flow statistics report in place of everything; "" if they report that."""
        return next((row.shows for row in reversed(self._active("flow stats dropped")) if row.shows), "")

    def flow_counters(self, group: int) -> FlowCounters:
        """Return the model's counts and the duplicated frames, at the port where most arrived."""
        counted = super().flow_counters(group)
        twice = self._added_to("duplicated frames of a group", group)
        if self._shows == "zeros":
            return FlowCounters()
        if not twice or not counted.received:
            return counted
        port = max(counted.received, key=lambda port: counted.received[port][0])
        frames, size = counted.received[port]
        more = frames + twice, size + twice * (size // frames if frames else 0)
        return replace(counted, received={**counted.received, port: more})

    def latency_counters(self, group: int) -> LatencyCounters:
        """Return the model's counts, and overtaken and duplicated frames."""
        counted = super().latency_counters(group)
        if self._shows == "zeros":
            return LatencyCounters()
        if not self._added:
            return counted
        late, twice = (self._added_to(f"{kind} of a group", group) for kind in _OF_ARRIVED)
        return replace(counted, out_of_order=counted.out_of_order + late, duplicates=counted.duplicates + twice)

    def forget(self, group: int) -> None:
        super().forget(group)
        for kind in _OF_ARRIVED:
            self._added.pop((f"{kind} of a group", group, 1), None)

    def state(self) -> RouterState:
        """Return the model's router with counters and uptime as the faults changed them."""
        router, rows = super().state(), []
        for index, row in enumerate(router.interfaces):
            base = self._base.get(row.name)
            since = {name: getattr(row, name) - getattr(base, name) for name in ROUTER_COUNTERS} if base else {}
            since |= self._pauses(index, "generator", "router")
            rows.append(row._replace(**since))
        return replace(router, interfaces=tuple(rows), uptime=self._last - self._booted)


def _left(faults: Iterable[InjectedFault]) -> float:
    """Return the share of frames that is left by *faults*."""
    return math.prod(1 - (fault.share or 0.0) for fault in faults)


def _with_loss(fate: Fate, kept: float) -> Fate:
    """Return *fate* when the share *kept* of the frames that it does not miss is left."""
    exits = {direction: part * kept for direction, part in fate.exits.items() if kept}
    return replace(fate, missed=1 - (1 - fate.missed) * kept, exits=exits)


class FaultSchedule:
    """Faults that wait for a start of traffic, those whose moment is known, and those that last."""

    def __init__(self) -> None:
        self._armed: list[tuple[InjectedFault, int]] = []
        self._due: list[tuple[float, InjectedFault]] = []
        self._ends: list[tuple[float, InjectedFault]] = []

    @property
    def active(self) -> list[InjectedFault]:
        """The faults that have begun and last, in the order in which they began."""
        return [fault for _, fault in self._ends]

    @property
    def next_change(self) -> float:
        """When one begins or ends next; infinite: not before another start."""
        return min((moment for moment, _ in (*self._due, *self._ends)), default=math.inf)

    def arm(self, faults: Iterable[InjectedFault], now: float) -> None:
        """Let *faults* wait for their start; those without one begin ``at`` s after *now*."""
        wanted = tuple(faults)
        self._armed += [(fault, fault.start) for fault in wanted if fault.start]
        self._due += [(now + fault.at, fault) for fault in wanted if not fault.start]

    def started(self, now: float) -> None:
        """Begin the faults that wait for this start of traffic."""
        self._due += [(now + fault.at, fault) for fault, left in self._armed if left == 1]
        self._armed = [(fault, max(1, left - 1)) for fault, left in self._armed if left > 1 or fault.every]

    def pop(self, now: float) -> tuple[InjectedFault, bool] | None:
        """Return the next change that is due by *now*: the fault, and whether it begins (else it ends).

        A fault that is due to begin again while it lasts ends first.
        """
        moment, fault = min((*self._ends, *self._due), key=lambda row: row[0], default=(math.inf, None))
        if fault is None or moment > now:
            return None
        if lasting := next((row for row in self._ends if row[1] is fault), None):
            self._ends.remove(lasting)
            return fault, False
        self._due.remove((moment, fault))
        if fault.lasts is not None:
            self._ends.append((moment + fault.lasts, fault))
        return fault, True

    def left(self, now: float) -> tuple[InjectedFault, ...]:
        """Return the faults that have not begun yet, for a schedule that begins at *now*."""
        waiting = [fault.model_copy(update={"start": starts}) for fault, starts in self._armed]
        due = [
            fault.model_copy(update={"start": 0, "at": max(0.0, moment - now), "every": False})
            for moment, fault in sorted(self._due, key=lambda row: row[0])
        ]
        return (*waiting, *due)


_SHORTEST = 64
"""Bytes with FCS of a frame that is cut."""
_LLDP = bytes.fromhex("88cc 020704020000000bad 040703020000000bad 06020078")
"""EtherType, chassis and port by MAC address, 120 s to live (IEEE 802.1AB)."""


class Lie:
    """A *fault* of a router that lies, for the frames of *sending* from *port*.

    They leave it changed, late, elsewhere or not at all. *first*: the stream whose first frame may come for all.
    """

    def __init__(self, fault: InjectedFault, port: ModelPort, sending: Sending, first: StreamTraffic) -> None:
        self.fault, self._port, self._frames = fault, sending.port, 0
        self._traffic = sending.traffic
        self._back = mac_bytes(port.mac) + mac_bytes(port.router_mac)
        frame = frame_of(first, 0)
        self._cached = forwarded_frame(frame, flow_of(frame), port.mac, port.mac)
        self._share = self._part = fault.share or 1.0
        self._flows: list[object] = []
        if fault.what == "flow" or fault.flow is not None:
            begin, wanted = fault.flow or 0, 1 + (fault.what == "flow")
            shares = dict(list(spread(self._traffic).items())[begin : begin + wanted])
            self._share *= len(shares) == wanted
            self._flows, self._part = list(shares), self._share * sum(shares.values())

    @staticmethod
    def concerns(fault: InjectedFault, sending: Sending, load: float) -> bool:
        """Return whether *fault* is about frames of *sending*, whose port sends *load* frames/s."""
        of_it = fault.port in (None, sending.port) and fault.size in (None, sending.size)
        return of_it and load > (fault.above or 0.0) and not (fault.spare and sending.traffic.is_latency)

    def _chosen(self, number: int) -> int:
        """Return how many of the stream's first *number* frames are changed, if all have its flows."""
        return math.floor(self._share * number + 1e-9)

    def _chooses(self, number: int) -> bool:
        """Return whether the stream's frame *number* is changed."""
        if self._chosen(number + 1) == self._chosen(number):
            return False
        return not self._flows or flow_of(frame_of(self._traffic, number)) in self._flows

    def _changed(self, number: int, data: bytes) -> Sequence[bytes]:
        """Return what comes in the place of the stream's frame *number*, which the router forwards as *data*."""
        new, flow, what = bytearray(data), flow_of(data), self.fault.what
        ip, is_ipv4 = (flow.ip, flow.version == 4) if flow else (IPV4, False)
        match what:
            case "copies":
                return (data, data) if self._chosen(number) % 2 else ()
            case "flow":
                return (data, data) if flow == self._flows[0] else ()
            case "hairpin":
                new[:12] = self._back
            case "cached":
                new[12:] = self._cached[12:]
            case "payload":
                begin = ip + (28 if is_ipv4 else 48)
                new[begin:] = b"\xee" * (len(new) - begin)
            case "length":
                del new[_SHORTEST - FCS :]
            case "checksum" if is_ipv4:
                new[ip + 10] ^= 0xFF
            case "mac":
                new[:6] = b"\x02\0\0\0\x0b\xad"
            case "lldp":
                new[:] = (b"\x01\x80\xc2\0\0\x0e" + new[6:12] + _LLDP).ljust(len(new), b"\0")
            case "ttl":
                new[ttl_offset(flow)] = 0
            case "addresses":
                new[(end := ip + (20 if is_ipv4 else 40)) - 3 : end] = b"\x0b\xad\x0b"
        if what in ("ttl", "addresses") and is_ipv4:
            fix_checksum(new, ip)
        return (bytes(new),)

    def divided(self, row: LeavingFrames) -> list[LeavingFrames]:
        """Return the frames of *row* that leave as they should, and the others."""
        what, before, after = self.fault.what, self._frames, self._frames + row.frames
        self._frames = after
        first, end = (math.floor(self._part * number + 1e-9) for number in (before, after))
        true = replace(
            row,
            frames=row.frames - (end - first),
            sent=lambda number: () if self._chooses(number) else row.sent(number),
        )
        if what == "lost":
            return [true]
        size = {"length": min(row.size, _SHORTEST), "cached": len(self._cached) + FCS}.get(what or "", row.size)
        is_cut = self._traffic.is_latency and (what in ("payload", "cached") or size < row.size)
        changed = replace(
            row,
            exit=self._port if what == "hairpin" else row.exit,
            frames=end - first,
            size=size,
            sent=lambda number: (
                [new for data in row.sent(number) for new in self._changed(number, data)]
                if self._chooses(number)
                else ()
            ),
            copies=end // 2 - first // 2 if what in ("copies", "flow") else 0,
            # without its last bytes a latency frame is none; without IP header no frame has a group
            is_known=what != "lldp" and not is_cut,
            is_multicast=what == "lldp",
            hold=(self.fault.hold or 0.0) if what == "late" else 0.0,
        )
        return [true, changed]
